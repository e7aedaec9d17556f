"""Updates of tensors at indices, sums of segments and frames, morphology: operands are brought to one scale first."""

from __future__ import annotations

import numpy as np

from compassc.graph import Layer, Tensor
from compassc.graph.dtypes import numpy_dtype
from compassc.graph.values import Value
from compassc.quantizer.job import Job, NotQuantised, scale_of
from compassc.quantizer.numbers import FULL, WIDEST, Levels, factor, levels
from compassc.quantizer.rules import rule
from compassc.quantizer.rules.binary import any_signed, common_scales

F32 = np.float32
BOTH = {"ScatterElements": (WIDEST, WIDEST), "ScatterND": (16383, 8191)}
"""The largest multipliers of operands of 8 bits, and of more."""


@rule("ScatterElements", "ScatterND")
def scatter(job: Job) -> Layer:
    layer, (data, _, updates) = job.layer, job.inputs
    method = layer.word("reduction", "NONE")
    if method == "MUL":
        raise NotQuantised("products lose their precision")
    out = job.output(any_signed(data, updates))
    bits = max(data.integer.bits, updates.integer.bits)
    most = BOTH[layer.type][bits > 8]
    if scale_of(data) == scale_of(updates) and data.zero == updates.zero and method != "SUB":
        made = factor(scale_of(out) / scale_of(data), job.settings.factor_bits)
        scales, shift = [int(made.multiplier), 1, 1], int(made.shift)
    else:
        scales, shift = common_scales(scale_of(data), scale_of(updates), scale_of(out), job.settings.factor_bits, most)
    while max(scales[1:]) >= 1 << job.bits:
        scales = [scales[0], *(round(k / 2) for k in scales[1:])]
        shift -= 1
    kind = "uint8" if job.bits <= 8 else "uint16"
    attributes: dict[str, Value] = {
        "scale_value": scales, "scale_type": ["uint16", kind, kind], "shift_value": shift, "shift_type": "int8",
    }  # fmt: skip
    return job.made(out, attributes)


@rule("OverlapAdd", "SegmentReduce", "SlotUpdate")
def summed(job: Job) -> Layer:
    source = job.input
    out = job.output(source.integer.signed)
    bits = max(16, job.bits) if job.layer.type == "SegmentReduce" else job.bits
    return job.made(out, factor(scale_of(out) / scale_of(source), bits).attributes())


@rule("Dilation", "Erosion")
def morphology(job: Job) -> Layer:
    """Weights have a scale of their own; sums are in the finer of both."""
    source, weights = job.input, job.layer.constant("weights")
    own = levels(float(weights.min()), float(weights.max()), FULL, job.bits, True)
    out = job.output(True)
    first, second = (F32(np.clip(s, 1 / WIDEST, WIDEST)) if extreme else F32(s)
                     for s, extreme in ((scale_of(source), _apart(source, own)), (own.scale, _apart(source, own))))  # fmt: skip
    most = max(first, second)
    each, fine = [float(most / first * 256), float(most / second * 256)], 8
    while max(int(k) for k in each) > WIDEST:
        each, fine = [float(max(1, round(k / 2))) for k in each], fine - 1
    made = factor(scale_of(out) / most / F32(2.0**fine), job.bits)
    attributes: dict[str, Value] = {"scale_value": [int(made.multiplier), *(int(k) for k in each)], "scale_type": ["uint16"] * 3,
                  "shift_value": int(made.shift), "shift_type": "int8", "weights_scale": float(own.scale),
                  "weights_zp": 0}  # fmt: skip
    return job.made(
        out,
        attributes,
        {"weights": own.of(weights.reshape(1, -1)).reshape(weights.shape).astype(numpy_dtype(own.dtype))},
    )


def _apart(source: Tensor, own: Levels) -> bool:
    """Whether the scales are too far apart for multipliers."""
    return bool(scale_of(source) / F32(own.scale) < 256 / WIDEST)
