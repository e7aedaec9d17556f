"""Samples of detectors' layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from compassc.graph import Layer, Tensor
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
    given: dict[str, Any] = {"method": "HARD", "iou_threshold": 0.5, "max_output_size": 3}
    if x.is_integer:
        given |= {"iou_threshold": 128, "areas_shift": 9 if x.integer.bits > 8 else 2, "iou_thresh_shift": 8}
    return layer_of(draw, kind, inputs, outputs, None, **given)


def _anchors(draw: Draw, boxes: int, integers: bool) -> dict[str, np.ndarray[Any, Any]]:
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
    given: dict[str, Any] = {"score_threshold": 0.1, "class_num": max(1, c - 1)}
    if x.is_integer:
        constants |= {f"t{a}_lut": draw.array("int16", 256) for a in "yxhw"}
        given |= {"box_shift": 12, "score_threshold_uint8": 60, "image_height": 256, "image_width": 256}
    return layer_of(draw, kind, [x, deltas], [draw.plain(s, d) for s, d in shapes], constants, **given)


@sample("DetectionOutput", "Proposal", "MultiboxTransformLoc", "BoundingBox")
def _boxes(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != 3 or x.is_integer or x.shape[2] < 2:
        return None
    n, b, c = x.shape
    if kind == "DetectionOutput":
        inputs = [x, draw.plain((n, b, c, 4), x.dtype), draw.plain((n, b, 4), x.dtype)]
        shapes = [((n, 5), x.dtype), ((n, 5, 4), x.dtype), ((n, c), "int32"), ((n, c), "int32"), ((n, 1), "int32")]
        return layer_of(
            draw,
            kind,
            inputs,
            [draw.plain(s, d) for s, d in shapes],
            None,
            score_threshold=0.1,
            image_height=2,
            image_width=3,
        )
    if kind == "BoundingBox":
        rows = [draw.plain((n, b, 4), x.dtype) for _ in range(3)]
        return layer_of(draw, kind, rows[:2], rows[2:], None)
    if kind == "Proposal":
        inputs = [draw.plain((n, b, 2), x.dtype), draw.plain((n, b, 4), x.dtype)]
        shapes = [((n, 2), x.dtype), ((n, 2, 4), x.dtype), ((n, 1), "int32"), ((n, 1), "int32")]
        constants = _anchors(draw, b, False)
        return layer_of(draw, kind, inputs, [draw.plain(s, d) for s, d in shapes], constants, score_threshold=0.1)
    inputs = [x, draw.plain((n, 4 * c), x.dtype), draw.plain((1, c, 4), x.dtype)]
    return layer_of(
        draw, kind, inputs, [draw.plain((n, 3, 6), x.dtype), draw.plain((n,), "int32")], None, score_threshold=0.1
    )


@sample("Region")
def _head(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if x.is_integer:
        return None
    x = draw.plain((1, 2, 3, 2, 8), x.dtype)
    shapes = [((1, 6), x.dtype), ((1, 6, 4), x.dtype), ((1, 3), "int32"), ((1, 3), "int32"), ((1, 1), "int32")]
    return layer_of(
        draw,
        kind,
        [x],
        [draw.plain(s, d) for s, d in shapes],
        None,
        grid_height=2,
        grid_width=3,
        box_per_grid=2,
        class_num=3,
        obj_thresh=0.2,
        anchors=[1.0, 2.0, 0.5, 0.75],
    )


@sample("RegionFuse", "FilterBoxes", "PostNMS1", "GetValidCount")
def _lists(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != 3 or (x.is_integer and kind in ("RegionFuse", "PostNMS1")):
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
    return layer_of(draw, kind, inputs, outputs, None, class_num=5)
