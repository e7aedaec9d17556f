"""Regions from anchors: the kernel gives what the reference gives, and this what is known of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.declare import evaluate
from tests.layers.cases import drawn, same, tensor

Array = np.ndarray[Any, Any]


def proposals(
    images: int, grid: tuple[int, int, int], room: int, anchors: Array, told: bool = False, **given: Any
) -> Layer:
    shape = (images, *grid)
    inputs = [tensor("s", shape, "float32"), tensor("d", (*shape[:3], 4 * grid[2]), "float32")]
    inputs += [tensor("i", (images, 3), "float32")] if told else []
    outputs = (
        tensor("scores", (images, room), "float32"),
        tensor("boxes", (images, room, 4), "float32"),
        tensor("index", (images, room), "int32"),
        tensor("many", (images,), "int32"),
    )
    return Layer("l", "GenerateProposals", tuple(inputs), outputs, given, {"weights": anchors.astype("float32")})


def crowd(source: np.random.Generator, count: int) -> Array:
    centres = source.choice(source.uniform(20, 180, (6, 2)), count) + source.normal(0, 4, (count, 2))
    return np.concatenate([source.uniform(20, 60, (count, 2)), centres], 1)


def test_kernels_agree(tmp_path):
    source = np.random.default_rng(4)
    for images, grid, room, told, looked_at in ((2, (5, 7, 3), 20, True, 60), (1, (3, 4, 3), 6, False, 6000)):
        count = int(np.prod(grid))
        layer = proposals(
            images, grid, room, crowd(source, count), told, pre_nms_topn=looked_at, iou_threshold=0.3, image_height=200
        )
        # many scores are equal, at the last that is looked at, too; sides are well above or below the least
        scores = (source.integers(-6, 6, (images, *grid)) / 8).astype("float32")
        scores[..., 0][scores[..., 0] == 0] = -0.0
        deltas = source.normal(0, 0.2, layer.inputs[1].shape).astype("float32")
        inputs = [scores, deltas, *([np.asarray([[180, 160, 1]] * images, "float32")] if told else [])]
        assert evaluate(layer, inputs)[3].min() > 4
        same(layer, inputs, tmp_path, 1e-5)


@pytest.mark.parametrize("offset", [np.inf, -np.inf, np.nan, 3e38])
def test_boxes_without_corners_are_no_candidates(tmp_path, offset):
    source = np.random.default_rng(6)
    layer = proposals(1, (1, 2, 2), 2, crowd(source, 4), min_size=0)
    deltas = np.full(layer.inputs[1].shape, offset, "float32")
    with np.errstate(all="ignore"):
        same(layer, [source.normal(size=(1, 1, 2, 2)).astype("float32"), deltas], tmp_path)


def test_what_is_kept_is_known(tmp_path):
    """Of four boxes one is too small, one overlaps a better one, and the third best of all is not looked at."""
    anchors = np.asarray([[40, 40, 30, 30], [40, 40, 33, 30], [6, 40, 80, 80], [40, 30, 120, 60], [20, 20, 50, 90]])
    layer = proposals(1, (1, 5, 1), 4, anchors, pre_nms_topn=4, image_height=100, image_width=130)
    scores = np.asarray([0.9, 0.8, 0.7, 0.6, 0.1], "float32").reshape(1, 1, 5, 1)
    inputs = [scores, np.zeros((1, 1, 5, 4), "float32")]
    values, boxes, index, many = evaluate(layer, inputs)
    assert many.tolist() == [2] and not index.any()
    np.testing.assert_array_equal(values[0], np.asarray([0.9, 0.6, 0, 0], "float32"))
    np.testing.assert_array_equal(boxes[0, :2], [[10, 10, 50, 50], [100, 45, 129, 75]])
    same(layer, inputs, tmp_path)


@pytest.mark.parametrize(("dtype", "told", "zero"), [("int8", True, 0), ("uint16", False, 9)])
def test_kernels_agree_in_integers(tmp_path, dtype, told, zero):
    source, scale, entries = np.random.default_rng(8), 32, 256
    shape = (2, 5, 7, 3)
    anchors = np.rint(crowd(source, 105) * scale).astype("int16")
    inputs = [Tensor("s", shape, dtype, 64.0, zero), Tensor("d", (2, 5, 7, 12), dtype, 100.0)]
    inputs += [Tensor("i", (2, 3), "int16", 100.0, 3)] if told else []
    outputs = (
        Tensor("scores", (2, 20), dtype, 64.0, zero),
        Tensor("boxes", (2, 20, 4), "uint16", float(scale)),
        tensor("index", (2, 20), "uint16"),
        tensor("many", (2,), "uint16"),
    )
    # offsets from -0.4 to 0.4
    real = np.linspace(-0.4, 0.4, entries)
    constants = {"weights": anchors, "xy_lut": np.rint(real * 4096).astype("int32")}
    constants["wh_lut"] = np.rint(np.exp(real) * 4096).astype("int32")
    given = {"anchor_scale": scale, "delta_shift": 12, "iou_threshold": 600, "min_size": 15 * scale, "pre_nms_topn": 60,
             "image_height": 170, "image_width": 180}  # fmt: skip
    layer = Layer("l", "GenerateProposals", tuple(inputs), outputs, given, constants)
    low = inputs[0].low
    scores = (source.integers(0, 12, shape) * 9 + low).astype(dtype)
    deltas = drawn(source, inputs[1])
    values = [scores, deltas, *([np.asarray([[17000, 18000, 0], [9000, 20000, 0]], "int16")] if told else [])]
    assert evaluate(layer, values)[3].min() > 4
    same(layer, values, tmp_path)


def test_base_anchors_are_refused():
    layer = proposals(1, (2, 2, 3), 4, np.ones((3, 4)))
    with pytest.raises(LayerError, match=r"'weights' is \[3, 4\], expected \[12, 4\]"):
        evaluate(layer, [np.zeros(t.shape, "float32") for t in layer.inputs])


def test_a_sample_has_a_kernel_in_half_floats(tmp_path):
    from compassc.layers.kernels import kernel_of
    from compassc.layers.samples import SAMPLES, Draw

    layer = SAMPLES["GenerateProposals"](Draw(np.random.default_rng(1)), Tensor("x", (1, 4, 4, 8), "float16"))
    assert layer is not None and "S.barrier()" in kernel_of([layer]).text
