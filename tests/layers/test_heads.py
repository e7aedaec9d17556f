"""YOLO heads and lists of boxes: kernels give what the references give, and these what is known of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compassc.graph import Layer, Tensor
from compassc.graph.dtypes import numpy_dtype
from compassc.layers.declare import evaluate
from tests.layers.cases import drawn, same, tensor

Array = np.ndarray[Any, Any]
NEAR = {"float32": 1e-5, "float16": 3e-3}


@pytest.fixture
def source() -> np.random.Generator:
    return np.random.default_rng(23)


def head(dtype: str, images: int, grid: tuple[int, int], boxes: int, classes: int, room: int) -> Layer:
    x = tensor("x", (images, *grid, boxes, 5 + classes), dtype)
    outputs = (
        tensor("s", (images, room), dtype),
        tensor("y", (images, room, 4), dtype),
        tensor("k", (images, classes), "int32"),
        tensor("l", (images, classes), "int32"),
        tensor("m", (images, 1), "int32"),
    )
    anchors = [0.5 + 0.25 * i for i in range(2 * boxes)]
    given = {
        "grid_height": grid[0],
        "grid_width": grid[1],
        "box_per_grid": boxes,
        "class_num": classes,
        "obj_thresh": 0.5,
        "anchors": anchors,
    }
    return Layer("l", "Region", (x,), outputs, given)


@pytest.mark.parametrize("dtype", ["float32"])
def test_heads(tmp_path, source, dtype):
    for grid, boxes, classes, room in (((3, 4), 2, 3, 30), ((3, 3), 2, 40, 4), ((4, 2), 1, 1, 5)):
        layer = head(dtype, 2, grid, boxes, classes, room)
        values = source.normal(0, 1, layer.input.shape)
        # scores are well above or below the threshold
        best = source.integers(0, classes, values.shape[:-1])
        values[..., 4] = source.choice([-6, 4], values.shape[:-1]) + source.uniform(0, 1, values.shape[:-1])
        np.put_along_axis(values[..., 5:], best[..., None], 8, -1)
        same(layer, [values.astype(numpy_dtype(dtype))], tmp_path, NEAR[dtype])


def test_a_cell_of_certain_trust_is_a_box():
    layer = head("float32", 1, (3, 3), 1, 2, 4)
    x = np.full((1, 3, 3, 1, 7), -50, "float32")
    x[0, 1, 2, 0] = [0, 0, 0, 0, 50, -50, 50]
    scores, boxes, counts, labels, many = evaluate(layer, [x])
    assert scores[0, 0] == 1 and (counts[0, 0], labels[0, 0], many[0, 0]) == (1, 1, 1)
    middle, half = np.asarray([1.5, 2.5]) / 3, np.asarray([0.75, 0.5]) / 6
    np.testing.assert_allclose(boxes[0, 0], np.clip([*(middle - half), *(middle + half)], 0, 1), atol=1e-6)


def lists(
    source: np.random.Generator, images: int, room: int, slots: int, dtype: str, integers: bool = False
) -> tuple[list[Tensor], list[Array]]:
    """scores, boxes, boxes per class, labels, classes."""
    counts, labels = np.zeros((images, slots), int), np.zeros((images, slots), int)
    for n in range(images):
        kinds = np.sort(source.choice(9, slots - n, replace=False))
        labels[n, : slots - n] = kinds
        counts[n, : slots - n] = source.integers(1, room // slots + 1, slots - n)
    boxes = np.sort(source.uniform(0, 1, (images, room, 2, 2)), 2).reshape(images, room, 4)
    scores = source.uniform(0, 1, (images, room))
    if integers:
        boxes, scores = np.rint(boxes * 3000), np.rint(scores * 100)
    many = np.asarray([[slots - n] for n in range(images)])
    tensors = [
        tensor("s", (images, room), dtype),
        tensor("y", (images, room, 4), "int16" if integers else dtype),
        tensor("k", counts.shape, "int32"),
        tensor("l", labels.shape, "int32"),
        tensor("m", many.shape, "int32"),
    ]
    return tensors, [
        v.astype(numpy_dtype(t.dtype)) for v, t in zip((scores, boxes, counts, labels, many), tensors, strict=True)
    ]


def renamed(tensors: list[Tensor], suffix: str, room: int = 0, slots: int = 0) -> list[Tensor]:
    found = []
    for i, t in enumerate(tensors):
        size = (room if i < 2 else slots if i < 4 else 0) or t.shape[1]
        found.append(Tensor(t.name + suffix, (t.shape[0], size, *t.shape[2:]), t.dtype))
    return found


def test_lists_of_two_heads(tmp_path, source):
    for room, slots in ((20, 9), (6, 9), (20, 2)):
        (a, values_a), (b, values_b) = (lists(source, 2, n, k, "float32") for n, k in ((12, 4), (8, 3)))
        inputs = [t for pair in zip(renamed(a, "a"), renamed(b, "b"), strict=True) for t in pair]
        layer = Layer("l", "RegionFuse", tuple(inputs), tuple(renamed(a, "o", room, slots)), {"class_num": 9})
        same(layer, [v for pair in zip(values_a, values_b, strict=True) for v in pair], tmp_path)


@pytest.mark.parametrize("dtype", ["float32", "int8", "int32"])
def test_filtered_lists(tmp_path, source, dtype):
    integers = dtype != "float32"
    for most, threshold in ((30, 0.3), (3, -np.inf)):
        tensors, values = lists(source, 2, 20, 4, dtype, integers)
        if dtype == "int32":  # sides of 33 bits
            values[1] = drawn(source, tensors[1])
        order = (1, 0, 2, 3, 4)
        given = {
            "score_threshold": 30 if integers and threshold > -np.inf else threshold,
            "maxnum": most,
            "min_size": [600, 300] if integers else [0.2, 0.1],
        }
        layer = Layer(
            "l", "FilterBoxes", tuple(tensors[i] for i in order), tuple(renamed(tensors, "o")[i] for i in order), given
        )
        same(layer, [values[i] for i in order], tmp_path)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_valid_rows(tmp_path, source, dtype):
    x = tensor("x", (2, 35, 6), dtype)
    outputs = (tensor("m", (2,), "int32"), tensor("y", x.shape, dtype), tensor("p", (2, 35), "int16"))
    values = source.integers(-3, 9, x.shape).astype(dtype)
    for key in (-1, 0):
        layer = Layer("l", "GetValidCount", (x,), outputs, {"score_threshold": 2, "score_index": 1, "id_index": key})
        same(layer, [values], tmp_path)


def test_kept_boxes(tmp_path, source):
    inputs = (tensor("b", (2, 30, 4), "float32"), tensor("i", (2, 12), "int32"), tensor("k", (2, 3), "int32"))
    outputs = (tensor("y", (2, 8, 4), "float32"), tensor("z", (2, 8, 4), "float32"))
    layer = Layer("l", "PostNMS1", inputs, outputs, {"image_height": 300, "image_width": 200, "proposal_cnt": 8})
    values = [
        source.uniform(0, 300, (2, 30, 4)).astype("float32"),
        source.integers(0, 9, (2, 12)).astype("int32"),
        np.asarray([[2, 3, 1], [4, 0, 8]], "int32"),
    ]
    same(layer, values, tmp_path, 1e-6)
