"""Normalisation: the integers around a mean of 0 have a range of their own, weights and biases follow as in linear layers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from compass_core.arrays import Array, NumpyDType
from compassc.graph import Layer, Tensor
from compassc.graph.dtypes import numpy_dtype
from compassc.graph.values import Value
from compassc.layers.arithmetic import inverse_root_table
from compassc.layers.families.normalise.reference import counts_of, norm_axes
from compassc.quantizer.job import Job, NotQuantised, scale_of
from compassc.quantizer.numbers import (
    FULL,
    WIDEST,
    Levels,
    common_shift,
    extremes,
    factor,
    index_positions,
    levels,
    quantised_biases,
    real,
    table_positions,
)
from compassc.quantizer.rules import rule
from compassc.quantizer.rules.binary import any_signed, common_scales

F32 = np.float32
LUT = {"lut": inverse_root_table().astype(np.int16)}
LEAST_REACH = 4.0
"""Deviations from the mean that 8 bits hold at least."""
MOST_8 = 127.0
"""The root of as many elements as 8 bits hold the normalised values of with a whole step."""


def _normalised(job: Job, count: int) -> tuple[np.float32, dict[str, int | str]]:
    """(scale of the normalised values, attributes of how they are made)."""
    root = np.sqrt(np.float32(count))
    bits = job.bits
    if job.input.integer.bits <= 8:
        if count < 2:
            raise NotQuantised("it normalises single elements")
        if job.settings.rescale_norms:
            farthest = max(abs(v) for v in job.inside("normalised"))
            adjust = min(0, int(np.ceil(np.log2(max(farthest, LEAST_REACH) / float(root)))))
        else:
            adjust = int(np.ceil(np.log2(127.5 / float(root) / 4))) if root > MOST_8 else 0
        reach = float(root * F32(2.0**adjust))
        scale = F32(levels(-reach, reach, job.mode, bits, True).scale)
        shift = int(np.ceil(np.log2(count))) - 4
        shift += shift & 1
        if shift < 0:
            raise NotQuantised(f"it normalises {count} elements, which is too few for 8 bits")
        made: dict[str, int | str] = {"var_shift_value": shift, "var_shift_type": "uint8", "norm_scale_value": 1, "norm_scale_type": "uint8",
                "norm_shift_value": (shift >> 1) + adjust, "norm_shift_type": "int8" if adjust else "uint8"}  # fmt: skip
        return scale, made
    scale = F32(levels(-float(root), float(root), FULL, bits, True).scale)
    own = factor(scale / F32(127), bits)
    return scale, {"var_shift_value": 0, "var_shift_type": "uint8", **own.attributes("norm_")}


def _affine(job: Job, out: Tensor, scale: np.float32, each: bool) -> tuple[Mapping[str, Value], dict[str, Array]]:
    """Attributes and constants of weights and biases on normalised values in `scale`."""
    layer, settings = job.layer, job.settings
    if "weights" not in layer.constants:
        return factor(scale_of(out) / scale, job.bits).attributes(), {}
    weights = layer.constant("weights")
    flat = weights.reshape(-1)

    def ratio(of_weights: object) -> Array:
        return scale_of(out) / (scale * np.asarray(of_weights, F32))

    if each:
        low, high = extremes(flat)
        found, own = common_shift(low, high, len(flat), settings.weight_mode, settings.weight_bits, ratio,
                                  settings.factor_bits)  # fmt: skip
    else:
        found = levels(flat.min(), flat.max(), settings.weight_mode, settings.weight_bits, True)
        own = factor(ratio(found.scale), settings.factor_bits)
    sums = scale * np.asarray(found.scale, F32)
    made: dict[str, Array] = {"weights": found.of(flat).reshape(weights.shape).astype(_stored(found))}
    if "biases" in layer.constants:
        biases = layer.constant("biases")
        whole = quantised_biases(biases.reshape(-1), sums, settings.bias_bits, 0, settings.bias_effective_bits)
        kind = np.int32 if settings.bias_bits <= 32 else np.int64
        made["biases"] = whole.reshape(biases.shape).astype(kind)
    if not each:
        attributes = {**own.attributes(), "weights_scale": float(found.scale), "weights_zp": int(found.zero),
                      "biases_scale": float(sums), "biases_zp": 0}  # fmt: skip
        return attributes, made
    made["weights_zp"] = np.broadcast_to(np.asarray(found.zero, np.int32), flat.shape).copy()
    return {}, made | own.constants() | {"weights_scale": found.scale, "biases_scale": sums.astype(F32)}


def _stored(found: Levels) -> NumpyDType:
    return numpy_dtype(found.dtype)


@rule("LayerNorm", "InstanceNorm")
def layer_norm(job: Job) -> Layer:
    if len(job.layer.outputs) > 1:
        raise NotQuantised("it gives mean and deviation, too")
    count = int(np.prod([job.input.shape[a] for a in norm_axes(job.layer)]))
    scale, attributes = _normalised(job, count)
    out = job.output(True)
    more, constants = _affine(job, out, scale, False)
    return job.made(out, {**attributes, **more}, {**LUT, **constants})


@rule("GroupNorm")
def group_norm(job: Job) -> Layer:
    count = int(np.prod(job.input.shape[1:])) // job.layer.integer("group")
    scale, attributes = _normalised(job, count)
    out = job.output(True)
    last = job.layer.axis("axis", -1) == len(job.input.shape) - 1
    more, constants = _affine(job, out, scale, job.settings.per_channel and last)
    return job.made(out, {**attributes, **more}, {**LUT, **constants})


@rule("RMSNorm")
def rms_norm(job: Job) -> Layer:
    count = int(np.prod([job.input.shape[a] for a in norm_axes(job.layer)]))
    root = float(np.sqrt(count))
    scale = F32(levels(-root, root, job.mode if job.bits <= 8 else FULL, job.bits, True).scale)
    own = factor(scale / F32(127), job.bits)
    out = job.output(True)
    more, constants = _affine(job, out, scale, False)
    return job.made(out, {**own.attributes("norm_"), **more}, {**LUT, **constants})


@rule("MVN")
def mvn(job: Job) -> Layer:
    """The output's factor is part of that of the normalised values."""
    count = int(np.prod([job.input.shape[a] for a in norm_axes(job.layer)]))
    scale, attributes = _normalised(job, count)
    out = job.output(True)
    last = factor(scale_of(out) / scale, job.bits)
    first = int(attributes["norm_scale_value"])
    made = factor(F32(first) * F32(int(last.multiplier)) * F32(2.0) ** -int(last.shift), job.bits)
    shift = int(made.shift) + int(attributes["norm_shift_value"])
    kept = {k: v for k, v in attributes.items() if k.startswith("var_")}
    return job.made(out, {**kept, **made.attributes(), "shift_value": shift}, LUT, without=("weights", "biases"))


@rule("Moments")
def moments(job: Job) -> Layer:
    source = job.input
    variance = job.output(False, 1)
    own = factor(scale_of(variance) / (scale_of(source) * scale_of(source)), job.bits)
    given: dict[str, Value] = {
        "input_scale_value": 1,
        "input_scale_type": "uint8",
        "input_shift_value": 0,
        "input_shift_type": "int8",
    }
    return job.made([job.as_input(), variance], {**given, **own.attributes("var_")})


@rule("Normalization")
def normalization(job: Job) -> Layer:
    source, layer = job.input, job.layer
    out = job.output(source.low + source.scalar_zero < 0)
    own = factor(scale_of(out), job.bits)
    if layer.word("method") == "L1":
        return job.made(out, own.attributes())
    low, high = source.low + source.scalar_zero, source.high + source.scalar_zero
    bits = max((-low - 1).bit_length() if low < 0 else 0, max(high, 0).bit_length()) + 1
    drop = max(0, bits + int(np.ceil(np.log2(max(int(own.multiplier), 1)))) - 16)
    more: dict[str, Value] = {"reciprocal_shift_value": drop, "reciprocal_shift_type": "int8"}
    return job.made(out, {**own.attributes(), **more}, LUT)


@rule("LRN")
def local_response(job: Job) -> Layer:
    layer, source = job.layer, job.input
    if layer.word("method", "ACROSS_CHANNELS") != "ACROSS_CHANNELS":
        raise NotQuantised("within a channel it is inaccurate in integers")
    out = job.output(source.integer.signed)
    most = max(job.inside("squares")[1], 1e-12)
    squares = F32(65535) / F32(most)
    at = index_positions(16, job.settings.table_bits, source.integer.bits) / squares
    inner = F32(layer.number("bias", 1.0)) + F32(layer.number("alpha", 1e-4)) * at
    values = F32(1) / inner ** F32(layer.number("beta", 0.75))
    own = levels(0.0, float(values.max()), FULL, 16, False)
    size = F32(layer.integer("size"))
    sums = factor(squares / (scale_of(source) * scale_of(source) * size), job.bits)
    made = factor(scale_of(out) / scale_of(source) / F32(own.scale), job.bits)
    attributes: dict[str, Value] = {
        "scale_sum_value": int(sums.multiplier), "scale_sum_type": sums.type, "shift_sum_value": int(sums.shift),
        "shift_sum_type": "int8",
    }  # fmt: skip
    return job.made(out, {**made.attributes(), **attributes}, {"lut": own.of(values).astype(np.uint16)})


@rule("NormalizedMoments")
def normalised_moments(job: Job) -> Layer:
    """The square of the mean is a table of the first input's values."""
    mean, variance, shift = job.inputs
    if not (mean.integer.bits == variance.integer.bits == shift.integer.bits):
        raise NotQuantised("its inputs have different numbers of bits")
    counts = F32(counts_of(job.layer))
    outs = [job.output(any_signed(mean, shift), 0), job.output(True, 1)]
    squares = Levels(*levels(*job.inside("squares"), FULL, job.bits, False))
    at = real(table_positions(mean, job.settings.table_bits), mean) / counts
    attributes: dict[str, Value] = {}
    for out, key, given, other, scale in (
        (outs[0], "mean", mean, shift.zero, scale_of(shift)),
        (outs[1], "var", variance, 0, F32(squares.scale)),
    ):
        most = WIDEST if not (given.zero or other) else WIDEST >> 1
        three, amount = common_scales(scale_of(given) * counts, scale, scale_of(out), job.settings.factor_bits, most)
        attributes |= {f"{key}_scale_value": three, f"{key}_scale_type": ["uint16"] * 3,
                       f"{key}_shift_value": amount, f"{key}_shift_type": "int8"}  # fmt: skip
    table = squares.of(at * at).astype(squares.dtype)
    return job.made(outs, attributes, {"lut": table})
