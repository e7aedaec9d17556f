"""Layers of detectors: kernels give what the references give, and these what is known of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compassc.graph import Layer, LayerError, Tensor
from compassc.graph.dtypes import numpy_dtype
from compassc.layers.arithmetic import approximate_factor
from compassc.layers.declare import evaluate
from compassc.layers.kernels import kernel_of
from tests.layers.cases import drawn, same, tensor

Array = np.ndarray[Any, Any]
FLOATS = ["float32", "float16"]
REAL = ["float32"]
NEAR = {"float32": 1e-5, "float16": 2e-3}


@pytest.fixture
def source() -> np.random.Generator:
    return np.random.default_rng(17)


def suppression(dtype: str, images: int, boxes: int, classes: int, room: int, zero: int = 0, **given: Any) -> Layer:
    wide = "int16" if dtype.startswith(("int", "uint")) else dtype
    inputs = [
        Tensor("boxes", (images, boxes, 4), wide, 32.0, zero),
        tensor("n", (images, classes), "int32"),
        tensor("c", (images, 1), "int32"),
        Tensor("scores", (images, boxes), dtype, 100.0),
    ]
    outputs = [
        Tensor("y", (images, room, 4), wide),
        tensor("k", (images, classes), "uint16"),
        Tensor("s", (images, room), dtype),
        tensor("i", (images, room), "uint16"),
    ]
    return Layer("l", "NMS", tuple(inputs), tuple(outputs), given)


def crowd(source: np.random.Generator, layer: Layer, size: float) -> list[Array]:
    """Boxes around few places, with equal scores among them."""
    boxes, per_class, _, scores = layer.inputs
    n, b, _ = boxes.shape
    centre = source.choice(source.uniform(0.2, 0.8, (5, 2)), (n, b)) + source.normal(0, 0.04, (n, b, 2))
    side = source.uniform(0.05, 0.2, (n, b, 2))
    corners = np.concatenate([centre - side, centre + side], -1) * size
    corners[:, ::3] = corners[:, ::3, [2, 3, 0, 1]]
    counts = source.multinomial(b - 3, np.ones(per_class.shape[1]) / per_class.shape[1], n)
    real = source.integers(0 if scores.dtype == "uint8" else -20, 100, (n, b))
    values = real if scores.is_integer else real / 128
    many = np.full((n, 1), per_class.shape[1])
    many[-1] = max(1, per_class.shape[1] - 1)
    given = (np.rint(corners) if boxes.is_integer else corners, counts, many, values)
    return [a.astype(numpy_dtype(t.dtype)) for a, t in zip(given, layer.inputs, strict=True)]


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_suppression(tmp_path, source, dtype):
    for images, boxes, classes, room, most in ((2, 75, 3, 20, 5), (1, 33, 1, 40, 100)):
        given: dict[str, Any] = {"max_output_size": most, "iou_threshold": 0.4, "score_threshold": 0.05}
        if dtype not in FLOATS:
            given |= {
                "iou_threshold": 102,
                "score_threshold": 5,
                "areas_shift": 9,
                "scale_value": 200,
                "shift_value": 9,
            }
        layer = suppression(dtype, images, boxes, classes, room, 0 if dtype in FLOATS else 3, **given)
        same(layer, crowd(source, layer, 1 if dtype in FLOATS else 4000), tmp_path)


def test_soft_suppression(tmp_path, source):
    given = {"method": "GAUSSIAN", "soft_nms_sigma": 0.5, "score_threshold": 0.05, "max_output_size": 30}
    layer = suppression("float32", 2, 70, 2, 50, **given)
    same(layer, crowd(source, layer, 1), tmp_path, 1e-5)


def lowering(sigma: float) -> dict[str, Array]:
    """The tables of a quantised GAUSSIAN suppression."""
    scale, shift = approximate_factor(np.exp(-0.5 / sigma * (np.arange(256) / 255) ** 2), 16)
    return {"gaussian_scale_lut": scale.astype("uint16"), "gaussian_shift_lut": shift.astype("uint8")}


@pytest.mark.parametrize(("dtype", "zero"), [("uint8", 0), ("int16", 20)])
def test_soft_suppression_in_integers(tmp_path, source, dtype, zero):
    given = {"method": "GAUSSIAN", "score_threshold": 5, "max_output_size": 30, "areas_shift": 10,
             "scale_value": 1, "shift_value": 0}  # fmt: skip
    plain = suppression(dtype, 2, 70, 2, 50, 0, **given)
    *inputs, scores = plain.inputs
    layer = replace(plain, inputs=(*inputs, replace(scores, zero=zero)), constants=lowering(0.5))
    values = crowd(source, layer, 4000)
    same(layer, values, tmp_path)
    # as in floats, but for what is rounded down: the best of each class is the same, later ones have similar scores
    like = {"method": "GAUSSIAN", "score_threshold": 5.0 + zero, "soft_nms_sigma": 0.5, "max_output_size": 30}
    real = evaluate(suppression("float32", 2, 70, 2, 50, **like), [values[0].astype("f4"), *values[1:3], values[3] + np.float32(zero)])  # fmt: skip
    fixed = evaluate(layer, values)
    assert np.abs(real[1] - fixed[1].astype(int)).max() <= 6
    for n, per_class in enumerate(fixed[1].astype(int)):
        first = int(real[1][n, 0]), int(per_class[0])
        assert [fixed[3][n, 0], fixed[3][n, first[1]]] == [real[3][n, 0], real[3][n, first[0]]]
        np.testing.assert_allclose(fixed[2][n, :6] + zero, real[2][n, :6], atol=6)


def test_suppression_keeps_what_does_not_overlap():
    """No two kept boxes overlap too much, and every other one overlaps a kept one that is at least as good."""
    layer = suppression("float32", 1, 40, 1, 40, iou_threshold=0.3)
    values = crowd(np.random.default_rng(3), layer, 1)
    values[1][:] = 40
    _, (number,), _, (keep,) = evaluate(layer, values)
    kept, scores = keep[: int(number[0])].astype(int), values[3][0]
    low, high = (f(values[0][0, :, :2], values[0][0, :, 2:]) for f in (np.minimum, np.maximum))
    sides = np.maximum(np.minimum(high[:, None], high) - np.maximum(low[:, None], low), 0)
    inter, area = sides.prod(-1), (high - low).prod(-1)
    overlap = inter / (area[:, None] + area - inter)
    assert (overlap[np.ix_(kept, kept)][~np.eye(len(kept), dtype=bool)] <= 0.3).all()
    for i in set(range(40)) - set(kept.tolist()):
        assert (overlap[i, kept][scores[kept] >= scores[i]] > 0.3).any()


def anchors(source: np.random.Generator, boxes: int) -> dict[str, Array]:
    return {k: source.uniform(0.1, 0.9, boxes).astype("float32") for k in ("ycenter", "xcenter", "ha", "wa")}


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("room", [60, 7])
def test_decoded_boxes(tmp_path, source, dtype, room):
    n, b, c = 2, 45, 4
    inputs = (tensor("s", (n, b, c), dtype), tensor("d", (n, b, 4), dtype))
    outputs = (
        tensor("y", (n, room, 4), dtype),
        tensor("k", (n, c), "uint16"),
        tensor("m", (n, 1), "int32"),
        tensor("v", (n, room), dtype),
        tensor("l", (n, c), "int32"),
    )
    given = {"score_threshold": 0.8, "class_num": 3}
    layer = Layer("l", "DecodeBox", inputs, outputs, given, anchors(source, b))
    scores = source.integers(0, 30, (n, b, c)) / 32
    scores[1] = 0
    same(layer, [scores.astype(numpy_dtype(dtype)), drawn(source, inputs[1])], tmp_path, NEAR[dtype])


@pytest.mark.parametrize(("room", "size"), [(7, 64)])
def test_boxes_by_tables(tmp_path, source, room, size):
    n, b, c = 1, 45, 3
    inputs = (Tensor("s", (n, b, c), "uint8", 255.0), Tensor("d", (n, b, 4), "int8", 30.0, 4))
    outputs = (
        tensor("y", (n, room, 4), "int16"),
        tensor("k", (n, c), "uint16"),
        tensor("m", (n, 1), "uint16"),
        tensor("v", (n, room), "uint8"),
        tensor("l", (n, c), "int16"),
    )
    given = {"score_threshold_uint8": 200, "class_num": 2, "box_shift": 11, "image_height": 8000, "image_width": 9000}
    constants = {k: source.integers(100, 3000, b).astype("int16") for k in ("ycenter", "xcenter", "ha", "wa")}
    constants |= {f"t{a}_lut": source.integers(-4000, 4000, size).astype("int16") for a in "yxhw"}
    layer = Layer("l", "DecodeBox", inputs, outputs, given, constants)
    same(layer, [source.integers(0, 256, (n, b, c)).astype("uint8"), drawn(source, inputs[1])], tmp_path)


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("mode", ["caffe_detection", "tf"])
def test_detections(tmp_path, source, dtype, mode):
    n, b, c, room = 2, 40, 4, 12
    inputs = (tensor("s", (n, b, c), dtype), tensor("d", (n, b, c, 4), dtype), tensor("p", (n, b, 4), dtype))
    outputs = (
        tensor("v", (n, room), dtype),
        tensor("y", (n, room, 4), dtype),
        tensor("k", (n, c), "int32"),
        tensor("l", (n, c), "int32"),
        tensor("m", (n, 1), "int32"),
    )
    given = {
        "score_threshold": 0.85,
        "anchor_mode": mode,
        "image_height": 90,
        "image_width": 70,
        "bbox_xform_clip": 0.2,
    }
    layer = Layer("l", "DetectionOutput", inputs, outputs, given)
    corner = source.uniform(0, 60, (n, b, 2))
    places = np.concatenate([corner, corner + source.uniform(1, 30, (n, b, 2))], -1)
    scores = source.integers(0, 31, (n, b, c)) / 32
    values = [v.astype(numpy_dtype(dtype)) for v in (scores, source.normal(0, 3, inputs[1].shape), places)]
    same(layer, values, tmp_path, NEAR[dtype])


@pytest.mark.parametrize("dtype", REAL)
def test_boxes_of_anchors(tmp_path, source, dtype):
    n, b, room = 2, 37, 9
    scores = source.integers(0, 31, (n, b, 2)) / 32
    inputs = (tensor("s", (n, b, 2), dtype), tensor("d", (n, b, 4), dtype))
    outputs = (
        tensor("v", (n, room), dtype),
        tensor("y", (n, room, 4), dtype),
        tensor("k", (n, 1), "uint16"),
        tensor("o", (n, 1), dtype),
    )
    layer = Layer(
        "l", "Proposal", inputs, outputs, {"score_threshold": 0.7, "height": 1, "width": 1}, anchors(source, b)
    )
    same(layer, [scores.astype(numpy_dtype(dtype)), drawn(source, inputs[1])], tmp_path, NEAR[dtype])
    rows = (tensor("r", (n, b, 4), dtype), tensor("d", (n, b, 4), dtype))
    layer = Layer("l", "BoundingBox", rows, (tensor("y", (n, b, 4), dtype),))
    same(
        layer,
        [source.uniform(0, 1, (n, b, 4)).astype(numpy_dtype(dtype)), drawn(source, rows[1])],
        tmp_path,
        NEAR[dtype],
    )


@pytest.mark.parametrize("dtype", REAL)
def test_best_classes(tmp_path, source, dtype):
    n, c, a, room = 2, 4, 41, 12
    inputs = (tensor("s", (n, c, a), dtype), tensor("d", (n, 4 * a), dtype), tensor("a", (1, a, 4), dtype))
    outputs = (tensor("y", (n, room, 6), dtype), tensor("m", (n,), "int32"))
    layer = Layer(
        "l", "MultiboxTransformLoc", inputs, outputs, {"score_threshold": 0.7, "variance": [0.1, 0.1, 0.2, 0.2]}
    )
    scores = source.integers(0, 31, (n, c, a)) / 32
    values = (scores, source.normal(0, 0.1, (n, 4 * a)), source.uniform(0, 1, (1, a, 4)))
    same(layer, [v.astype(numpy_dtype(dtype)) for v in values], tmp_path, NEAR[dtype])


def test_an_anchor_without_offset_is_the_box(source):
    fixed = {k: np.asarray([v], "float32") for k, v in (("ycenter", 0.5), ("xcenter", 0.4), ("ha", 0.2), ("wa", 0.6))}
    inputs = (tensor("s", (1, 1, 2), "float32"), tensor("d", (1, 1, 4), "float32"))
    outputs = (
        tensor("y", (1, 3, 4), "float32"),
        tensor("k", (1, 2), "int32"),
        tensor("m", (1, 1), "int32"),
        tensor("v", (1, 3), "float32"),
        tensor("l", (1, 2), "int32"),
    )
    layer = Layer("l", "DecodeBox", inputs, outputs, {"class_num": 1, "score_threshold": 0.5}, fixed)
    boxes, counts, classes, scores, labels = evaluate(
        layer, [np.asarray([[[0.9, 0.75]]], "float32"), np.zeros((1, 1, 4), "float32")]
    )
    np.testing.assert_allclose(boxes[0], [[0.4, 0.1, 0.6, 0.7], [0] * 4, [0] * 4], atol=1e-6)
    assert (counts.tolist(), classes.tolist(), scores.tolist(), labels.tolist()) == (
        [[1, 0]],
        [[1]],
        [[0.75, 0, 0]],
        [[0, 0]],
    )


def test_what_is_not_defined_is_refused(tmp_path: Path):
    layer = suppression("int8", 1, 8, 1, 4, method="GAUSSIAN", soft_nms_sigma=0.5, scale_value=1, shift_value=0)
    with pytest.raises(LayerError, match="gaussian_scale_lut"):
        kernel_of([layer])
    with pytest.raises(LayerError, match="center_point_box"):
        kernel_of([suppression("float32", 1, 8, 1, 4, center_point_box=1)])
    with pytest.raises(LayerError, match="do not fit LSRAM"):
        kernel_of([suppression("float32", 1, 30000, 1, 4)])
