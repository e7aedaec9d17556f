"""Samples of detectors' layers."""

from __future__ import annotations

import numpy as np

from compass_core.arrays import Array
from compassc.graph import Layer, Tensor
from compassc.graph.values import Value
from compassc.layers.samples.draw import Draw, layer_of, sample


@sample("NMS")
def _nms(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != 2:
        return None
    n, b = x.shape
    boxes = draw.plain((n, b, 4), x.dtype)
    inputs = [boxes, draw.indices((n, 2), b), draw.indices((n, 1), 3), x]
    outputs = [
        draw.like(boxes, (n, 5, 4)),
        draw.plain((n, 2), "int32"),
        draw.like(x, (n, 5)),
        draw.plain((n, 5), "int32"),
    ]
    given: dict[str, Value] = {"method": "HARD", "iou_threshold": 0.5, "max_output_size": 3}
    constants = None
    if x.is_integer:
        given |= {"iou_threshold": 128, "areas_shift": 9 if x.integer.bits > 8 else 2, "iou_thresh_shift": 8}
        given |= {"scale_value": 1, "shift_value": 0}
        if draw.integer(0, 1):
            given |= {"method": "GAUSSIAN", "areas_shift": 10 if x.integer.bits > 8 else 2}
            constants = {"gaussian_scale_lut": draw.array("uint16", 256, high=32000)}
            constants["gaussian_shift_lut"] = draw.array("uint8", 256, low=14, high=16)
    return layer_of(draw, kind, inputs, outputs, constants, **given)


def _anchors(draw: Draw, boxes: int, integers: bool) -> dict[str, Array]:
    keys = ("ycenter", "xcenter", "ha", "wa")
    if integers:
        return {key: draw.array("int16", boxes, low=20, high=300) for key in keys}
    return {key: draw.source.uniform(0.1, 0.9, boxes).astype("float32") for key in keys}


@sample("DecodeBox")
def _decode(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != 3:
        return None
    n, b, c = x.shape
    deltas = draw.plain((n, b, 4), x.dtype)
    boxes = "int16" if x.is_integer else x.dtype
    whole = "uint16" if x.is_integer else "int32"
    shapes = (((n, 5, 4), boxes), ((n, c), whole), ((n, 1), whole), ((n, 5), x.dtype), ((n, c), whole))
    constants = _anchors(draw, b, x.is_integer)
    given: dict[str, Value] = {"score_threshold": 0.1, "class_num": max(1, c - 1)}
    if x.is_integer:
        constants |= {f"t{a}_lut": draw.array("int16", 256) for a in "yxhw"}
        given |= {"box_shift": 12, "score_threshold_uint8": 60, "image_height": 256, "image_width": 256}
    return layer_of(draw, kind, [x, deltas], [draw.plain(s, d) for s, d in shapes], constants, **given)


WHOLE = "uint16"


def _tables(draw: Draw, letters: str, low: int = -32768) -> dict[str, Array]:
    return {f"t{a}_lut": draw.array("int16", 256, low=low, high=32767) for a in letters}


def _lists_of(x: Tensor, n: int, room: int, slots: int) -> list[tuple[tuple[int, ...], str]]:
    """Shapes and types of scores, boxes, boxes per class, labels and classes."""
    boxes, whole = ("int16", WHOLE) if x.is_integer else (x.dtype, "int32")
    return [((n, room), x.dtype), ((n, room, 4), boxes), ((n, slots), whole), ((n, slots), whole), ((n, 1), whole)]


@sample("DetectionOutput")
def _detection(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != 3 or x.shape[2] < 2:
        return None
    n, b, c = x.shape
    regions = draw.tensor((n, b, 4), "int16") if x.is_integer else draw.plain((n, b, 4), x.dtype)
    inputs = [x, draw.plain((n, b, c, 4), x.dtype), regions]
    outputs = [draw.plain(s, d) for s, d in _lists_of(x, n, 5, c)]
    if not x.is_integer:
        return layer_of(draw, kind, inputs, outputs, None, score_threshold=0.1, image_height=2, image_width=3)
    given = {
        "score_threshold_value": 20,
        "height": 9000,
        "width": 7000,
        "box_scale_value": [draw.integer(15000, 32767), 20000, draw.integer(0, 32767)],
        "box_shift_value": [draw.integer(24, 30), 29, draw.integer(14, 18)],
        "delta_shift": [15, 15],
        "anchor_mode": draw.choice(("caffe_detection", "tf_fasterrcnn")),
    }
    return layer_of(draw, kind, inputs, outputs, _tables(draw, "yxhw"), **given)


@sample("Proposal")
def _proposal(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != 3:
        return None
    n, b, _ = x.shape
    inputs = [draw.plain((n, b, 2), x.dtype), draw.plain((n, b, 4), x.dtype)]
    scores, boxes, _, *numbers = _lists_of(x, n, 2, 1)
    outputs = [draw.plain(s, d) for s, d in (scores, boxes, *numbers)]
    constants = _anchors(draw, b, x.is_integer)
    if not x.is_integer:
        return layer_of(draw, kind, inputs, outputs, constants, score_threshold=0.1)
    given = {"score_threshold_value": 20, "box_shift_value": draw.integer(8, 13), "height": 350, "width": 400}
    return layer_of(draw, kind, inputs, outputs, constants | _tables(draw, "yxhw"), **given)


def _boxes_of_regions(draw: Draw, deltas: Tensor) -> dict[str, Value]:
    part = 16 + deltas.integer.bits - 15 + bool(deltas.zero)
    return {
        "box_scale_value": [20000, 30000, 25000, draw.integer(100, 30000), 16383],
        "box_shift_value": [part + 8, part + draw.integer(0, 12), 26, 27, draw.integer(13, 15)],
        "delta_shift": part,
    }


@sample("BoundingBox")
def _regions(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != 3:
        return None
    shape = (*x.shape[:2], 4)
    if not x.is_integer:
        rows = [draw.plain(shape, x.dtype) for _ in range(3)]
        return layer_of(draw, kind, rows[:2], rows[2:], None)
    deltas = draw.tensor(shape, x.dtype)
    inputs, y = [draw.tensor(shape, "int16"), deltas], draw.plain(shape, "int16")
    return layer_of(draw, kind, inputs, y, _tables(draw, "hw", 0), **_boxes_of_regions(draw, deltas))


@sample("MultiboxTransformLoc")
def _priors(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != 3 or x.shape[1] < 2:
        return None
    n, _, c = x.shape
    if not x.is_integer:
        inputs = [x, draw.plain((n, 4 * c), x.dtype), draw.plain((1, c, 4), x.dtype)]
        outputs = [draw.plain((n, 3, 6), x.dtype), draw.plain((n,), "int32")]
        return layer_of(draw, kind, inputs, outputs, None, score_threshold=0.1)
    deltas = draw.tensor((n, 4 * c), x.dtype)
    inputs, outputs = (
        [x, deltas, draw.tensor((1, c, 4), "int16")],
        [draw.plain((n, 3, 6), "int16"), draw.plain((n,), WHOLE)],
    )
    given = {"score_threshold_value": 20, "scale_value": draw.integer(100, 32767), "shift_value": 12}
    given |= _boxes_of_regions(draw, deltas) | {"clip": draw.choice((True, False))}
    return layer_of(draw, kind, inputs, outputs, _tables(draw, "hw", 0), **given)


@sample("GenerateProposals")
def _generated(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != 4:
        return None
    n, h, w, a = x.shape
    boxes, whole = ("uint16", WHOLE) if x.is_integer else (x.dtype, "int32")
    outputs = [draw.plain(s, d) for s, d in (((n, 9), x.dtype), ((n, 9, 4), boxes), ((n, 9), whole), ((n, 1), whole))]
    anchors = draw.source.uniform(8, 60, (h * w * a, 4)).astype("float32")
    inputs = [x, draw.plain((n, h, w, 4 * a), x.dtype)]
    given: dict[str, Value] = {
        "pre_nms_topn": draw.integer(min(20, h * w * a), h * w * a),
        "post_nms_topn": 8,
        "image_height": 70,
        "image_width": 60,
    }
    if not x.is_integer:
        return layer_of(draw, kind, inputs, outputs, {"weights": anchors}, **given, iou_threshold=0.4, min_size=10)
    scale = draw.choice((8, 32))
    given |= {"iou_threshold": 820, "min_size": 9 * scale, "anchor_scale": scale, "delta_shift": 10}
    outputs[:2] = [draw.like(x, (n, 9)), Tensor(outputs[1].name, (n, 9, 4), boxes, float(scale))]
    constants = {
        "weights": np.rint(anchors * scale).astype("int16"),
        "xy_lut": draw.array("int16", 256, low=-2000, high=2000),
    }
    constants["wh_lut"] = draw.array("int32", 256, low=400, high=2000)
    return layer_of(draw, kind, inputs, outputs, constants, **given)


@sample("Region")
def _head(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    outputs = [draw.plain(s, d) for s, d in _lists_of(x, 1, draw.integer(3, 8), 3)]
    given: dict[str, Value] = {"grid_height": 2, "grid_width": 3, "box_per_grid": 2, "class_num": 3}
    if not x.is_integer:
        x = draw.plain((1, 2, 3, 2, 8), x.dtype)
        given |= {"obj_thresh": 0.2, "anchors": [1.0, 2.0, 0.5, 0.75]}
        return layer_of(draw, kind, [x], outputs, None, **given)
    outputs[0] = draw.plain(outputs[0].shape, f"uint{x.integer.bits}")
    given |= {
        "obj_thresh": draw.integer(0, 60) << (x.integer.bits - 8),
        "col_shift": 14,
        "row_shift": 14,
        "grid_w_scale": 10923,
        "grid_h_scale": 16384,
        "anchors_exp_w_shift": 12,
        "anchors_exp_h_shift": 11,
        "wh_exp_scale": draw.integer(20000, 40000),
        "wh_exp_shift": draw.integer(10, 18),
    }
    constants = {
        "qanchors_lut": draw.array("uint16", 4),
        "score_softmax_lut": np.rint(np.exp(np.linspace(-3, 13.86, 256))).astype("uint32"),
        "conf_sigmoid_lut": draw.array("uint16", 256, high=1 << 15),
        "xy_sigmoid_lut": draw.array("int16", 256, low=-8192, high=16384),
        "wh_exp_lut": draw.array("uint16", 256),
    }
    return layer_of(draw, kind, [draw.plain((1, 2, 3, 2, 8), x.dtype)], outputs, constants, **given)


@sample("RegionFuse", "FilterBoxes", "PostNMS1", "GetValidCount")
def _lists(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != 3 or (x.is_integer and kind == "PostNMS1"):
        return None
    n, b, c = x.shape
    if kind == "GetValidCount":
        outputs = [draw.plain((n,), "int32"), draw.like(x), draw.plain((n, b), "int16")]
        return layer_of(draw, kind, [x], outputs, None, score_index=c - 1, score_threshold=1)
    scores, boxes = draw.plain((n, b), x.dtype), draw.plain((n, b, 4), x.dtype)
    if kind == "PostNMS1":
        inputs = [boxes, draw.indices((n, b), b), draw.indices((n, 2), b)]
        return layer_of(draw, kind, inputs, [draw.like(boxes, (n, 2, 4)) for _ in range(2)], None)
    counted = [draw.indices((n, 3), b), draw.indices((n, 3), 5), draw.indices((n, 1), 4)]
    outputs = [draw.like(scores, (n, 4)), draw.like(boxes, (n, 4, 4)), *(draw.plain(t.shape, "int32") for t in counted)]
    if kind == "FilterBoxes":
        return layer_of(draw, kind, [boxes, scores, *counted], [outputs[1], outputs[0], *outputs[2:]], None, maxnum=3)
    other = [draw.plain((n, b), x.dtype), draw.plain((n, b, 4), x.dtype)]
    more = [draw.indices((n, 3), b), draw.indices((n, 3), 5), draw.indices((n, 1), 4)]
    inputs = [t for pair in zip([scores, boxes, *counted], [*other, *more], strict=True) for t in pair]
    if x.is_integer:
        first, second, last = boxes.name, other[1].name, outputs[1].name
        scaled = {first: 4096.0, second: 16384.0, last: 4096.0 * draw.choice((1, 2))}
        inputs, outputs = (
            [Tensor(t.name, t.shape, t.dtype, scaled.get(t.name, 1.0)) for t in ts] for ts in (inputs, outputs)
        )
    return layer_of(draw, kind, inputs, outputs, None, class_num=5)
