"""Softmax and its relatives along one axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from compass_core.arrays import Array
from compassc.graph import Layer, LayerError
from compassc.layers.arithmetic import (
    exp2_fixed,
    exp2_float,
    float24,
    log2_coarse,
    log2_fixed,
    look_up,
    requantise,
    saturate,
    shift_right,
    whole_limits,
)
from compassc.operators.calls import Calls, Operand, Outputs, References

F32 = np.float32


def _by_float_table(layer: Layer) -> bool:
    return layer.flag("is_perf_mode", False) and "lut" in layer.constants


def softmax_body(call: Calls, layer: Layer, x: Operand) -> Any:
    if _by_float_table(layer):
        raise LayerError("its exponentials are a table, which no operator is")
    return call("softmax", x, layer.axis("axis", -1))


def log_softmax_body(call: Calls, layer: Layer, x: Operand) -> Outputs:
    return call("log_softmax", x, layer.axis("axis", -1))


def softmax(layer: Layer, x: Array) -> Array:
    axis = layer.axis("axis", -1)
    wide = x.astype(F32)
    if not _by_float_table(layer):
        found: Array = softmax_body(References(), layer, wide)
        return found
    t = exp2_float((wide - wide.max(axis, keepdims=True)) * F32(1.442695), layer.constant("lut").reshape(-1))
    r = float24(F32(1) / t.sum(axis, keepdims=True, dtype=F32))
    return t.astype(np.float16).astype(F32) * r


def quantised_softmax(layer: Layer, x: Array) -> Array:
    axis = layer.axis("axis", -1)
    wide = np.moveaxis(x.astype(np.int64), axis, -1)
    if layer.word("quantize_method", "LUT", ("LUT", "FAST_EXP")) == "FAST_EXP":
        y = _fast_exp(layer, wide)
    elif "float_lut" in layer.constants and layer.flag("is_perf_mode", True):
        y = _by_floats(layer, wide)
    else:
        y = _by_table(layer, wide)
    return np.moveaxis(y, -1, axis)


def _fast_exp(layer: Layer, x: Array) -> Array:
    """Powers of two of differences from the maximum, in fixed point; `adjust_q` says how fine."""
    out, q, fine = layer.output, layer.integer("pow2_out_q"), layer.integer("adjust_q", 1)
    scale, shift = exponent_factor(layer)
    difference = x - x.max(-1, keepdims=True)
    bits = out.integer.bits
    if fine in (0, 1):
        e = shift_right(difference * scale, shift)
        t = np.where(q + e >= 0, np.int64(1) << np.clip(q + e, 0, 62), 0)
        log = log2_coarse(saturate(t.sum(-1, keepdims=True), 1, 2**31 - 1), q, fine)
        v = (((e + bits) << fine) - log) >> fine
        return saturate(np.where(v >= 0, np.int64(1) << np.clip(v, 0, 62), 0), out.low, out.high)
    if not 8 <= fine <= 15:
        raise LayerError(f"'adjust_q' is {fine}, expected 0, 1 or 8 to 15")
    e = shift_right(difference * scale, shift - fine)
    total = saturate(exp2_fixed(e, fine, q).sum(-1, keepdims=True), 1, 2**31 - 1)
    return exp2_fixed(e - log2_fixed(total, q, fine), fine, bits)


def exponent_factor(layer: Layer) -> tuple[int, int]:
    """The multiplier and shift that make exponents of two of differences."""
    scale, shift = layer.scale_shift("input_", of=1)
    return int(scale.reshape(-1)[0]), int(shift.reshape(-1)[0])


def _by_table(layer: Layer, x: Array) -> Array:
    """A table of exponentials, and a division of whole numbers."""
    out, table = layer.output, layer.constant("lut").reshape(-1)
    bits, n = layer.input.integer.bits, x.shape[-1]
    difference = x - x.max(-1, keepdims=True)
    t = np.clip(look_up(difference + (1 << bits) - 1, table, bits, False), *whole_limits(table))
    total = np.maximum(t.sum(-1, keepdims=True), 1)
    base = 30 if int(table.max()) == 1 else 31
    scale, shift = (int(v) for v in layer.scale_shift(of=1))
    if n < 8 and (x.size // n) % 128 == 0 and bits <= 8:
        extra = base - ceil_log2(int(table.max()))
        w = ((t << extra) + (total >> 1)) // total
        return requantise(w, scale, shift + extra, out.scalar_zero, out.low, out.high)
    extra = base - ceil_log2(scale)
    reciprocal = (np.int64(scale) << extra) // total
    return requantise(t * reciprocal, 1, shift + extra, out.scalar_zero, out.low, out.high)


def ceil_log2(value: int) -> int:
    return max(0, value - 1).bit_length()


def _by_floats(layer: Layer, x: Array) -> Array:
    """In float24 and half floats."""
    out, table = layer.output, layer.constant("float_lut").reshape(-1)
    wide = float24(x.astype(F32))
    t = exp2_float(float24((wide.max(-1, keepdims=True) - wide) * float_factor(layer)), table)
    total = float24(_sum_once_rounded(t, -1))
    r = float24(F32(1) / total)
    y = t.astype(np.float16).astype(F32) * F32(out.scalar_scale) * r
    return saturate(np.rint(y) - out.scalar_zero, out.low, out.high)


def float_factor(layer: Layer) -> np.float32:
    """Of differences of quantised values, to make exponents of two."""
    return F32(float24(np.array([F32(-1) / (F32(0.6931471) * F32(layer.input.scalar_scale))]))[0])


def _sum_once_rounded(values: Array, axis: int) -> Array:
    """The sum of float32 numbers: exact, then rounded to float32. No order of additions is defined."""
    found: Array = values.astype(np.float64).sum(axis, keepdims=True).astype(F32)
    return found


def quantised_log_softmax(layer: Layer, x: Array) -> Array:
    """Exponentials from a float table, the rest in float32."""
    axis, out, bits = layer.axis("axis", -1), layer.output, layer.input.integer.bits
    wide = x.astype(np.int64)
    shifted = wide - wide.max(axis, keepdims=True)
    table = layer.constant("lut_exp").reshape(-1)
    if table.dtype.kind != "f":
        raise LayerError("'lut_exp' holds integers, which only targets before X2 use")
    t = look_up(shifted + (1 << bits) - 1, table, bits, False).astype(F32)
    own, log = (F32(v) for v in layer.numbers("quantize_scale"))
    total = np.log(_sum_once_rounded(t, axis).astype(np.float64)).astype(F32)
    v = shifted.astype(F32) * own - total * log
    return saturate(np.rint(v) - out.scalar_zero, out.low, out.high)


def hardmax(layer: Layer, x: Array) -> Array:
    """1 at the first maximum, else 0."""
    axis = layer.axis("axis")
    best = np.expand_dims(x.argmax(axis), axis)
    places = np.arange(x.shape[axis]).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    found: Array = (places == best).astype(np.int64)
    return found
