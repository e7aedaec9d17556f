"""Boxes of detectors: chosen by integers, which are compared as they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compass_core.arrays import Array
from compassc.graph import Layer, Tensor
from compassc.graph.values import Value
from compassc.layers.families.detection.boxes import decode_sizes, four, limits_of
from compassc.layers.families.detection.generating import OVERLAP_BITS as AREA_FRACTION
from compassc.layers.families.detection.generating import centred_anchors, generation_of
from compassc.layers.families.detection.suppression import STEPS, suppression_of
from compassc.layers.families.detection.yolo import least
from compassc.quantizer.job import Job, NotQuantised, scale_of
from compassc.quantizer.numbers import factor, real, table_positions
from compassc.quantizer.rules import rule

F32 = np.float32
OVERLAP_BITS = 8
"""Fraction bits of the overlap."""
MOST = 32767
TABLE_BITS = 10
"""Of the tables that offsets of generated regions go through."""


def below(limit: float, t: Tensor) -> int:
    """The largest integer of a tensor that does not stand for more than a limit."""
    real = np.clip(limit * t.scalar_scale, -(2.0**40), 2.0**40)
    return int(np.clip(np.floor(real) - t.scalar_zero, t.low - 1, t.high))


def steps_of(*places: Array | float) -> np.float32:
    """The scale of coordinates, with which the farthest of these places fits 16 bits: a power of two."""
    farthest = max(float(np.abs(v).max(initial=0)) for v in map(np.asarray, places))
    scale = F32(max(1.0, 2.0 ** np.floor(np.log2(MOST / farthest))))
    if farthest * float(scale) > MOST:
        raise NotQuantised(f"coordinates go to {farthest:g}, beyond 16 bits")
    return scale


def offset_tables(offsets: Tensor, divisors: Sequence[float], bits: int) -> tuple[dict[str, Array], int]:
    """(what offsets y, x, h, w decode to in tables of 2^bits entries, their fraction bits)."""
    at = real(table_positions(offsets, bits), offsets)
    found: dict[str, Array] = {f"t{a}_lut": at / F32(v) for a, v in zip("yxhw", divisors, strict=True)}
    found |= {key: np.exp(found[key]) for key in ("th_lut", "tw_lut")}
    shift = int(np.floor(np.log2(MOST / max(float(np.abs(v).max()) for v in found.values()))))
    if shift < 6:
        raise NotQuantised(f"its offsets make boxes up to {2.0 ** (15 - shift):.0f} times as large as anchors")
    return {key: np.rint(v * F32(2.0**shift)).astype(np.int16) for key, v in found.items()}, shift


@rule("NMS")
def nms(job: Job) -> Layer:
    """Areas lose as many bits as the product of two sides with the overlap, or its steps, has more than 31."""
    layer, boxes, scores, own = job.layer, job.inputs[0], job.inputs[3], suppression_of(job.layer)
    if boxes.zero:
        raise NotQuantised("its boxes have a zero point")
    record = job.record(layer.inputs[0].name)
    side = (max(record.most, 0.0) - min(record.least, 0.0)) * boxes.scalar_scale
    if side * side >= 1 << 31:
        raise NotQuantised("areas of its boxes do not fit 32 bits")
    overlap = int(own.overlap * (1 << OVERLAP_BITS))
    most = STEPS if own.gaussian else max(overlap, 1)
    attributes: dict[str, Value] = {
        "iou_threshold": overlap,
        "iou_thresh_shift": OVERLAP_BITS,
        "areas_shift": max(0, 2 * boxes.integer.bits + 1 + most.bit_length() - 31),
        "scale_value": 1, "scale_type": "uint8", "shift_value": 0, "shift_type": "int8",
    }  # fmt: skip
    attributes["score_threshold"] = below(own.threshold, scores)
    kept = [job.as_input(0, 0), job.plain(1, "uint16"), job.as_input(2, 3), job.plain(3, "uint16")]
    if not own.gaussian:
        return job.made(kept, attributes)
    steps = np.arange(STEPS + 1, dtype=F32) / F32(STEPS)
    lowered = factor(np.maximum(np.exp(F32(-0.5 / own.sigma) * steps * steps), F32(1e-9)), 16)
    tables = {"gaussian_scale_lut": lowered.multiplier.astype(np.uint16)}
    return job.made(kept, attributes, tables | {"gaussian_shift_lut": lowered.shift.astype(np.uint8)})


@rule("DecodeBox")
def decode_box(job: Job) -> Layer:
    """Offsets go through tables, into the scale of coordinates: a power of two, so that they fit 16 bits."""
    layer, scores, offsets = job.layer, job.inputs[0], job.inputs[1]
    s, limits = decode_sizes(layer), limits_of(layer)
    if len(job.inputs) > 2:
        raise NotQuantised("its anchors are no constants")
    if not limits.clip:
        raise NotQuantised("its boxes are not cut at the image")
    fixed = {key: layer.constant(key).reshape(-1).astype(F32) for key in ("ycenter", "xcenter", "ha", "wa")}
    scale = steps_of(limits.height, limits.width, *fixed.values())
    constants, shift = offset_tables(offsets, four(layer, "variance", (10, 10, 5, 5)), job.settings.table_bits)
    constants |= {key: np.trunc(v * scale).astype(np.int16) for key, v in fixed.items()}
    attributes = {
        "box_shift": shift, "image_height": int(limits.height * scale), "image_width": int(limits.width * scale),
        "score_threshold_uint8": below(layer.number("score_threshold", 0.5), scores) + scores.scalar_zero,
    }  # fmt: skip
    boxes = Tensor(layer.outputs[0].name, layer.outputs[0].shape, "int16", float(scale), 0, (-MOST, MOST))
    if scores.zero:
        raise NotQuantised("its scores have a zero point")
    assert s.boxes == len(fixed["ha"])
    rest = [job.plain(1, "uint16"), job.plain(2, "uint16"), job.as_input(3, 0), job.plain(4, "int16")]
    return job.made([boxes, *rest], attributes, constants)


@rule("GenerateProposals")
def generate_proposals(job: Job) -> Layer:
    """A pixel is a power of two of steps, so that anchors and places fit 16 bits."""
    layer, deltas, g = job.layer, job.inputs[1], generation_of(job.layer)
    anchors = centred_anchors(layer, g.boxes)
    told = job.record(layer.inputs[2].name).most if g.told else 0.0
    sides = [layer.number(key, 600) for key in ("image_width", "image_height")] if not g.told else [told]
    farthest = max(*sides, float(np.abs(anchors).max()))
    scale = int(2.0 ** np.floor(np.log2(MOST / farthest)))
    if scale < 1:
        raise NotQuantised(f"coordinates go to {farthest:g}, beyond 16 bits")
    at = real(table_positions(deltas, TABLE_BITS), deltas)
    found = {"xy_lut": at, "wh_lut": np.exp(at)}
    largest = max(float(np.abs(v).max()) for v in found.values())
    shift = int(np.floor(np.log2(MOST / largest)))
    if shift < 6:
        raise NotQuantised(f"its offsets make boxes up to {largest:.0f} times as large as anchors")
    constants = {key: np.rint(v * F32(2.0**shift)).astype(np.int32) for key, v in found.items()}
    constants["weights"] = np.rint(anchors * F32(scale)).astype(np.int16)
    attributes = {
        "anchor_scale": scale, "delta_shift": shift, "roi_last_shift": 0,
        "iou_threshold": int(g.overlap * (1 << AREA_FRACTION)), "min_size": int((g.size - 1) * scale),
    }  # fmt: skip
    own = layer.outputs[1]
    boxes = Tensor(own.name, own.shape, "uint16", float(scale))
    return job.made([job.as_input(0, 0), boxes, job.plain(2, "uint16"), job.plain(3, "uint16")], attributes, constants)


@rule("FilterBoxes")
def filter_boxes(job: Job) -> Layer:
    """Thresholds are those of the integers: nothing is rounded."""
    layer, boxes, scores = job.layer, job.inputs[0], job.inputs[1]
    score, *sizes = least(layer)
    attributes: dict[str, Value] = {
        "min_size": [int(np.ceil(v * float(scale_of(boxes)))) for v in sizes],
        "score_threshold": below(score, scores),
    }
    rest = [job.plain(i) for i in range(2, len(layer.outputs))]
    return job.made([job.as_input(0, 0), job.as_input(1, 1), *rest], attributes)
