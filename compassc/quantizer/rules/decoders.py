"""Boxes of detectors: decoded from regions, anchors and YOLO heads by tables, whose ranges follow from those of offsets."""

from __future__ import annotations

from typing import Any

import numpy as np

from compass_core.arrays import Array
from compassc.graph import Layer, Tensor
from compassc.graph.values import Value
from compassc.layers.families.detection.boxes import ANCHOR_MODES, four, proposal_anchors, proposal_sizes, xform_clip
from compassc.layers.families.detection.fixed import LIMIT, TRUST_BITS
from compassc.layers.families.detection.yolo import anchors_of_cells, head_of, shifts
from compassc.quantizer.job import Job, NotQuantised, scale_of
from compassc.quantizer.numbers import Factor, factor, positions, real, sigmoid, table_positions
from compassc.quantizer.rules import rule
from compassc.quantizer.rules.boxes import below, offset_tables, steps_of

F32 = np.float32
FARTHEST_SHIFT = 46
"""Of multipliers of boxes."""
LARGEST = 3276.0
"""How many times as large as its region a box may be."""
STEEPEST = 6.39
"""The logarithm of how many times as large as an anchor a YOLO box may be."""
HEAD_BITS = 10
"""Of the tables of heads of 16 bits."""


def _boxes(job: Job, index: int, scale: float) -> Tensor:
    own = job.layer.outputs[index]
    return Tensor(own.name, own.shape, "int16", scale, 0, (-LIMIT - 1, LIMIT))


def _listed(factors: list[Factor]) -> dict[str, Any]:
    return {
        "box_scale_value": [int(f.multiplier) for f in factors],
        "box_shift_value": [int(f.shift) for f in factors],
    }


@rule("Proposal")
def proposal(job: Job) -> Layer:
    """Coordinates have a power of two of steps, as those of a DecodeBox."""
    layer, scores = job.layer, job.inputs[0]
    anchors = proposal_anchors(layer, proposal_sizes(layer).boxes).astype(F32)
    sides = {key: layer.number(key, 600) for key in ("height", "width")}
    scale = steps_of(*sides.values(), anchors)
    constants, shift = offset_tables(job.inputs[1], (10, 10, 5, 5), job.settings.table_bits)
    constants["anchors"] = np.trunc(anchors * scale).astype(np.int16)
    attributes = {
        "box_shift_value": shift,
        "score_threshold_value": below(layer.number("score_threshold", 0.45), scores),
        **{key: int(v * scale) for key, v in sides.items()},
    }
    outputs = [job.as_input(0, 0), _boxes(job, 1, float(scale)), job.plain(2, "uint16"), job.plain(3, "uint16")]
    return job.made(outputs, attributes, constants, without=("ycenter", "xcenter", "ha", "wa"))


@rule("DetectionOutput")
def detection_output(job: Job) -> Layer:
    """Coordinates, exponentials and centres have scales of their own, which the tables and multipliers hold."""
    layer, (scores, offsets, proposals) = job.layer, job.inputs
    order = (1, 0, 3, 2) if layer.word("anchor_mode", "", ANCHOR_MODES) == "CAFFE_DETECTION" else (0, 1, 2, 3)
    variance, limit = four(layer, "variance", (10, 10, 5, 5)), xform_clip(layer)
    at = real(table_positions(offsets, job.settings.table_bits), offsets)
    t = [at / F32(variance[i]) for i in order]
    sizes = [np.exp(np.minimum(v, F32(limit))) for v in t[2:]]
    largest, farthest = (max(float(np.abs(v).max()) for v in part) for part in (sizes, t[:2]))
    if largest > 512:
        raise NotQuantised(f"its offsets make boxes up to {largest:.0f} times as large as proposals")
    sides = {key: layer.number(f"image_{key}", 600) for key in ("height", "width")}
    scale = F32(LIMIT / max(sides.values()))
    of_sizes, of_centres = F32(LIMIT / largest), F32(LIMIT / max(farthest, 1e-3))
    tables = [v * of_centres for v in t[:2]] + [v * of_sizes for v in sizes]
    ratio = scale / scale_of(proposals)
    factors = [factor(r, 16, FARTHEST_SHIFT) for r in (ratio / of_sizes, ratio / of_centres, ratio)]
    attributes: dict[str, Value] = {
        **_listed(factors),
        "delta_shift": [max(0, int(f.multiplier) - 1).bit_length() for f in factors[:2]],
        "score_threshold_value": below(layer.number("score_threshold", 0.7), scores),
        **{key: int(v * scale) for key, v in sides.items()},
    }
    constants = {f"t{a}_lut": np.rint(v).astype(np.int16) for a, v in zip("yxhw", tables, strict=True)}
    rest = [job.plain(i, "uint16") for i in (2, 3, 4)]
    return job.made([job.as_input(0, 0), _boxes(job, 1, float(scale)), *rest], attributes, constants)


@rule("BoundingBox")
def bounding_box(job: Job) -> Layer:
    """Exponentials are in the scale that 16 bits leave them, of corners 1 is the largest number."""
    layer, (regions, offsets) = job.layer, job.inputs
    std = four(layer, "std_div", (10, 10, 5, 5))
    at = real(table_positions(offsets, job.settings.table_bits), offsets)
    sizes = [np.exp(np.minimum(at / F32(v), F32(np.log(LARGEST)))) for v in std[2:]]
    own = [F32(LIMIT / float(v.max())) for v in sizes]
    factors = [factor(F32(1) / (scale_of(offsets) * F32(v)), 16, FARTHEST_SHIFT) for v in std[:2]]
    factors += [factor(F32(1) / v, 16, FARTHEST_SHIFT) for v in own]
    factors.append(factor(F32(LIMIT) / scale_of(regions), 14))
    attributes = _listed(factors)
    for i in (2, 3):
        attributes["box_shift_value"][i] += 1  # a box reaches half its size from the centre
    attributes["delta_shift"] = regions.integer.bits + offsets.integer.bits - 15 + bool(offsets.zero)
    constants = {f"t{a}_lut": np.rint(v * s).astype(np.int16) for a, v, s in zip("hw", sizes, own, strict=True)}
    return job.made(_boxes(job, 0, float(LIMIT)), attributes, constants)


@rule("Region")
def region(job: Job) -> Layer:
    """Cells have a power of two of steps; tables are of the whole range of the input."""
    layer, x, h = job.layer, job.input, head_of(job.layer)
    cells, anchors = shifts(layer, h), anchors_of_cells(layer, h.boxes)
    if cells[0] != cells[1]:
        raise NotQuantised(f"its grid of {h.rows} x {h.columns} is compensated along one axis only")
    if x.integer.bits not in (8, 16) or anchors.min() < 0:
        raise NotQuantised(f"its input has {x.integer.bits} bits, and its anchors are {anchors.min():g} and more")
    bits, most = x.integer.bits, (1 << x.integer.bits) - 1
    cell = min(14, int(np.floor(np.log2(65535 / max(h.columns, h.rows)))))
    fine = int(np.floor(np.log2(65535 / max(float(anchors.max()), 1.0))))
    sizes = factor(F32(2.0**cell * np.exp(STEEPEST) / 65535), 16)
    attributes: dict[str, Value] = {
        "obj_thresh": int(layer.number("obj_thresh", 0.3) * most),
        "col_shift": cell, "row_shift": cell,
        "grid_w_scale": (1 << 15) // h.columns, "grid_h_scale": (1 << 15) // h.rows,
        "grid_w_shift": 15, "grid_h_shift": 15, "anchors_exp_w_shift": fine, "anchors_exp_h_shift": fine,
        "wh_exp_scale": int(sizes.multiplier), "wh_exp_shift": int(sizes.shift), "conf_sigmoid_shift": TRUST_BITS,
        "grid_compensate": False,
    }  # fmt: skip
    scores, *rest = layer.outputs[0], *(job.plain(i, t) for i, t in ((2, "uint16"), (3, "int16"), (4, "uint16")))
    best = Tensor(scores.name, scores.shape, f"uint{bits}", float(most), 0, (0, most))
    constants = _head_tables(x, cell, cells[0]) | {"qanchors_lut": np.rint(anchors * 2.0**fine).astype(np.uint16)}
    made = [best, _boxes(job, 1, 2.0**cell), *rest]
    return job.made(made, attributes, {k: v.reshape(-1) for k, v in constants.items()}, without=("anchors",))


def _head_tables(x: Tensor, cell: int, moved: float) -> dict[str, Array]:
    many = 1 << (8 if x.integer.bits == 8 else HEAD_BITS)
    at = real(positions(x.integer.low, x.integer.high, many), x).astype(np.float64)
    trusts, most = sigmoid(at), 1 << x.integer.bits
    first = np.rint(scale_of(x) * np.log(2.0**20) - x.scalar_zero)
    powers = np.exp(real((positions(0, most - 1, many) + first - most).astype(F32), x).astype(np.float64))
    return {
        "score_softmax_lut": np.clip(np.rint(powers), 0, 1 << 20).astype(np.uint32),
        "conf_sigmoid_lut": np.rint(trusts * (1 << TRUST_BITS)).astype(np.uint16),
        "xy_sigmoid_lut": np.clip(np.rint((trusts + moved) * (1 << cell)), -LIMIT - 1, LIMIT).astype(np.int16),
        "wh_exp_lut": np.clip(np.rint(np.exp(at - STEEPEST) * 65535), 0, 65535).astype(np.uint16),
    }


@rule("RegionFuse")
def region_fuse(job: Job) -> Layer:
    """Boxes get the coarser scale of both lists; scores lose a part of 2^bits."""
    scores, boxes = job.inputs[:2], job.inputs[2:4]
    if any(t.zero for t in (*scores, *boxes)):
        raise NotQuantised("its scores or boxes have zero points")
    if len({(t.dtype, t.scalar_scale) for t in scores}) > 1:
        raise NotQuantised(f"its scores have the scales {scores[0].scalar_scale:g} and {scores[1].scalar_scale:g}")
    bits, own = scores[0].integer.bits, job.as_input(0, 0)
    kept = Tensor(
        own.name, own.shape, own.dtype, scores[0].scalar_scale * ((1 << bits) - 1) / (1 << bits), 0, own.limits
    )
    least = min(t.scalar_scale for t in boxes)
    rest = [job.plain(i, t) for i, t in ((2, "uint16"), (3, "int16"), (4, "uint16"))]
    return job.made([kept, _boxes(job, 1, least), *rest])
