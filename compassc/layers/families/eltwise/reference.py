"""Functions of two or three operands, element by element: arithmetic, comparisons, choices, conversions."""

from __future__ import annotations

from typing import Any

import numpy as np

from compass_core.arrays import Array
from compass_core.namedtuple import NamedTuple
from compassc.graph import Layer, LayerError
from compassc.graph.dtypes import INTEGER_TYPES, numpy_dtype
from compassc.layers.arithmetic import (
    TRUNCATED_DTYPES,
    TWICE_TONEAREST,
    TWICE_UPWARD,
    UPWARD,
    dequantise,
    fixed_point,
    look_up,
    quantise,
    requantise,
    requantise_as,
    saturate,
    saturate_int32,
)
from compassc.layers.broadcast import broadcast
from compassc.layers.rectify import on_channels, rectified, rectify
from compassc.operators.calls import Calls, Operand, Outputs, References

METHODS = {"ADD": "add", "SUB": "subtract", "MUL": "multiply", "MAX": "maximum", "MIN": "minimum"}
"""Operators by method."""
ALONE = {"Add": "ADD", "Sub": "SUB", "Mul": "MUL"}
SUMS = (-(2**31), 2**31)
"""Limits of a rescaled operand."""


def method_in(layer: Layer) -> str:
    """The key of `METHODS`."""
    return ALONE.get(layer.type) or layer.word("method", choices=tuple(METHODS))


def eltwise_body(call: Calls, layer: Layer, a: Operand, b: Operand) -> Any:
    return rectified(call, layer, layer.word("with_activation", "NONE"), call(METHODS[method_in(layer)], a, b))


def eltwise(layer: Layer, a: Array, b: Array) -> Array:
    found: Array = eltwise_body(References(), layer, *broadcast(a.astype(np.float32), b.astype(np.float32)))
    return found


def _shifted(layer: Layer, *arrays: Array) -> list[Array]:
    """The operands plus their zero points, int64."""
    return [x.astype(np.int64) + t.scalar_zero for x, t in zip(arrays, layer.inputs, strict=False)]


def quantised_eltwise(layer: Layer, a: Array, b: Array) -> Array:
    """Sums of operands that are brought to one scale first; products are not."""
    method = method_in(layer)
    left, right = broadcast(*_shifted(layer, a, b))
    scale, shift = layer.scale_shift()
    activation = layer.word("with_activation", "NONE")
    if method == "MUL":
        if scale.size != 1:
            raise LayerError(f"'scale_value' has {scale.size} values, expected 1 for MUL")
        return rectify(layer, activation, _product(left, right), scale, shift)
    if scale.size == 1:
        own, first, second = scale, 1, 1
    elif scale.size == 3:
        own, first, second = scale[0], int(scale[1]), int(scale[2])
    else:
        raise LayerError(f"'scale_value' has {scale.size} values, expected the output's and one per operand")
    low, high = SUMS if "uint32" not in (t.dtype for t in layer.inputs) else (SUMS[0], 2**32)
    total = References()(METHODS[method], saturate(left * first, low, high), saturate(right * second, low, high))
    return rectify(layer, activation, total, own, shift)


def _product(left: Array, right: Array) -> Array:
    """The exact product; of uint32, which may not fit int64, at most 2^62."""
    if left.size and min(left.min(), right.min()) >= 0:
        return np.minimum(left.astype(np.uint64) * right.astype(np.uint64), np.uint64(1 << 62)).astype(np.int64)
    return left * right


def divide(layer: Layer, a: Array, b: Array) -> Array:
    return np.divide(a, b)


def quantised_divide(layer: Layer, a: Array, b: Array) -> Array:
    """The numerator times a reciprocal from the table; by zero it is 0."""
    left, right = np.broadcast_arrays(*_shifted(layer, a, b))
    table = layer.constant("lut").reshape(-1)
    reciprocal = look_up(np.abs(right), table, layer.inputs[1].integer.bits, False)
    out = layer.output
    product = np.where(right < 0, -1, 1) * left * saturate(reciprocal, 0, 65535)
    return requantise(product, *layer.scale_shift(of=1), out.scalar_zero, out.low, out.high)


def div_mod(layer: Layer, a: Array, b: Array) -> list[Array]:
    """Quotient and remainder of whole numbers, rounded down or toward zero; by zero both are 0."""
    left, right = broadcast(a.astype(np.int64), b.astype(np.int64))
    safe = np.where(right == 0, 1, right)
    quotient = left // safe
    if layer.word("mode", "FLOOR", ("FLOOR", "TRUNC")) == "TRUNC":
        quotient = np.sign(left) * np.sign(safe) * (np.abs(left) // np.abs(safe))
    return [np.where(right == 0, 0, quotient), np.where(right == 0, 0, left - safe * quotient)]


def mod(layer: Layer, a: Array, b: Array) -> Array:
    left, right = broadcast(a.astype(np.float32), b.astype(np.float32))
    return np.fmod(left, right) if layer.flag("fmod", False) else left - np.floor(left / right) * right


def quantised_mod(layer: Layer, a: Array, b: Array) -> Array:
    """Both operands are brought to the output's scale first; a divisor of 0 counts as 1."""
    scale, shift = (np.resize(v, 2) for v in layer.scale_shift(of=2))
    wide = [
        requantise(x, m, s, 0, t.low, t.high)
        for x, m, s, t in zip(_shifted(layer, a, b), scale, shift, layer.inputs, strict=True)
    ]
    left, right = broadcast(*wide)
    right = np.where(right == 0, 1, right)
    rest = np.fmod(left, right) if layer.flag("fmod", False) else np.mod(left, right)
    return saturate(rest - layer.output.scalar_zero, layer.output.low, layer.output.high)


def power(layer: Layer, base: Array, *exponent: Array) -> Array:
    wide = base.astype(np.float32)
    if layer.has("exponent"):
        return np.power(wide, np.float32(layer.number("exponent")))
    return np.power(wide, exponent[0].astype(np.float32))


def quantised_power(layer: Layer, base: Array, *exponent: Array) -> Array:
    """A table of powers for one exponent; else tables of the logarithm and the exponential."""
    kind = layer.input.integer
    logarithm = look_up(base, layer.constant("lut_log").reshape(-1), kind.bits, kind.signed)
    if layer.has("exponent"):
        return logarithm
    scale, shift = layer.scale_shift(of=1)
    raised = exponent[0].astype(np.int64) + layer.inputs[1].scalar_zero
    inner = requantise(logarithm * raised, scale, shift, 0, -32768, 32767)
    value = look_up(inner, layer.constant("lut_exp").reshape(-1), 16, True)
    sign = np.sign(base.astype(np.int64) + layer.input.scalar_zero)
    odd = np.where(raised % 2 == 0, 1, sign)
    # 0 to the power 0 is 1, to any other 0
    return np.where(raised == 0, value, value * np.where(sign == 0, 0, odd))


def squared_difference(layer: Layer, a: Array, b: Array) -> Array:
    """Floats of 16 bits are rounded after each of the two steps."""
    difference = np.subtract(a, b)
    return difference * difference


def quantised_squared_difference(layer: Layer, a: Array, b: Array) -> Array:
    scale, shift = (np.resize(v, 3) for v in layer.scale_shift(of=3))
    wide = [
        requantise(x, m, s, 0, -(2**31), 2**31 - 1)
        for x, m, s in zip(_shifted(layer, a, b), scale[1:], shift[1:], strict=True)
    ]
    left, right = np.broadcast_arrays(*wide)
    out = layer.output
    return requantise(saturate_int32((left - right) ** 2), scale[0], shift[0], out.scalar_zero, out.low, out.high)


def bit_shift(layer: Layer, x: Array, n: Array) -> Array:
    """Shifts by the width or more leave 0 (or the sign, to the right)."""
    wide, count = np.broadcast_arrays(x, n.astype(np.int64))
    bits = x.dtype.itemsize * 8
    if layer.word("direction", choices=("LEFT", "RIGHT")) == "RIGHT":
        found: Array = wide.astype(np.int64) >> np.minimum(count, 63)
        return found
    moved = np.where(count >= bits, 0, wide.astype(np.int64) << np.minimum(count, bits - 1))
    return (moved & ((1 << bits) - 1)).astype(f"uint{bits}").view(x.dtype)


def bitwise(layer: Layer, *x: Array) -> Array:
    method = layer.word("method", choices=("AND", "OR", "XOR", "NOT"))
    if method == "NOT":
        return ~x[0]
    return {"AND": np.bitwise_and, "OR": np.bitwise_or, "XOR": np.bitwise_xor}[method](x[0], x[1])


COMPARISONS = {
    "EQUAL": "equal",
    "NOT_EQUAL": "not_equal",
    "GREATER": "greater",
    "GREATER_EQUAL": "greater_equal",
    "LESS": "less",
    "LESS_EQUAL": "less_equal",
}
CONNECTIVES = {"AND": "logical_and", "OR": "logical_or", "XOR": "logical_xor"}
LOGICAL = ("NOT", *CONNECTIVES, *COMPARISONS)


def logical_body(call: Calls, layer: Layer, *x: Operand) -> Any:
    """NOT, AND, OR and XOR ask whether the stored numbers differ from 0."""
    method = layer.word("method", choices=LOGICAL)
    if method == "NOT":
        return call("logical_not", x[0])
    return call(CONNECTIVES.get(method) or COMPARISONS[method], *x)


def logical(layer: Layer, *x: Array) -> Array:
    """0 or 1."""
    found: Array = logical_body(References(), layer, *x)
    return found.astype(np.int64)


def quantised_logical(layer: Layer, *x: Array) -> Array:
    """Compares after bringing both operands to one scale."""
    method = layer.word("method", choices=LOGICAL)
    if method not in COMPARISONS:
        return logical(layer, *x)
    factors = np.resize(layer.multipliers(of=2), 2)
    left, right = (v * f for v, f in zip(_shifted(layer, *x), factors, strict=True))
    found: Array = References()(COMPARISONS[method], left, right)
    return found.astype(np.int64)


def where_body(call: Calls, layer: Layer, condition: Operand, *x: Operand) -> Outputs:
    if not x:
        raise LayerError("how many indices there are no expression says")
    return call("where", condition, *x)


def divide_body(call: Calls, layer: Layer, a: Operand, b: Operand) -> Outputs:
    return call("divide", a, b)


def power_body(call: Calls, layer: Layer, base: Operand, *exponent: Operand) -> Outputs:
    return call("power", base, *([layer.number("exponent")] if layer.has("exponent") else exponent))


def squared_difference_body(call: Calls, layer: Layer, a: Operand, b: Operand) -> Outputs:
    return call("square", call("subtract", a, b))


def is_nan_body(call: Calls, layer: Layer, x: Operand) -> Outputs:
    return call("isnan", x)


def where(layer: Layer, condition: Array, *x: Array) -> Array:
    if not x:
        return _indices(layer, condition, 0)
    return np.where(condition != 0, x[0], x[1])


def quantised_where(layer: Layer, condition: Array, *x: Array) -> Array:
    zero = layer.input.scalar_zero
    if not x:
        return _indices(layer, condition, zero)
    scale, shift = (np.resize(v, 2) for v in layer.scale_shift(of=2))
    out = layer.output
    a, b = (
        requantise(v.astype(np.int64) + t.scalar_zero, m, s, out.scalar_zero, out.low, out.high)
        for v, t, m, s in zip(x, layer.inputs[1:], scale, shift, strict=True)
    )
    return np.where(condition.astype(np.int64) + zero != 0, a, b)


def _indices(layer: Layer, x: Array, zero: int) -> Array:
    """Rows of indices of elements other than 0; behind them a row of the type's maximum, then zeros."""
    found = np.argwhere(x.astype(np.int64) + zero != 0)
    rows = np.zeros(layer.output.shape, np.int64)
    rows[: len(found)] = found
    if len(found) < len(rows):
        rows[len(found)] = layer.output.integer.high
    return rows


def is_nan(layer: Layer, x: Array) -> Array:
    return np.isnan(x).astype(np.int64) if x.dtype.kind not in "iub" else np.zeros(x.shape, np.int64)


def is_inf(layer: Layer, x: Array) -> Array:
    if x.dtype.kind in "iub":
        return np.zeros(x.shape, np.int64)
    up = np.isposinf(x) & layer.flag("detect_positive", True)
    return (up | (np.isneginf(x) & layer.flag("detect_negative", True))).astype(np.int64)


def keeps_bits(layer: Layer) -> bool:
    """Whether a Cast reads the same bits as another type. LayerError for types of other sizes."""
    if layer.word("clip_mode", "SATURATION") != "BITS":
        return False
    sizes = [np.dtype(numpy_dtype(t.dtype)).itemsize for t in (layer.input, layer.output)]
    if sizes[0] != sizes[1]:
        raise LayerError(f"the bits of {layer.input.dtype} are no {layer.output.dtype}: their sizes differ")
    return True


def cast(layer: Layer, x: Array) -> Array:
    """To a float type as it rounds; to an integer type without the fraction, limited or wrapped around; NaN is 0."""
    out = layer.output
    if keeps_bits(layer):
        return x.view(numpy_dtype(out.dtype))
    if out.dtype not in INTEGER_TYPES:
        return x.astype(np.float32)
    if layer.word("clip_mode", "SATURATION", ("SATURATION", "TRUNCATION")) == "TRUNCATION":
        if out.dtype == "bool":
            return np.asarray(np.trunc(x) != 0)
        # of reals by int32, which they are limited to: more of them is left undefined
        wide = saturate_int32(np.trunc(x)) if x.dtype.kind not in "iub" else x.astype(np.int64)
        return wide.astype(numpy_dtype(out.dtype))
    return saturate(np.trunc(x) if x.dtype.kind not in "iub" else x, out.integer.low, out.integer.high)


def quantised_cast(layer: Layer, x: Array) -> Array:
    """With a multiplier a requantisation, else the number itself, moved from one zero point to the other."""
    out = layer.output
    if keeps_bits(layer):
        return x.view(numpy_dtype(out.dtype))
    if layer.has("scale_value") or "scale" in layer.constants:
        wide = x.astype(np.int64) + layer.input.scalar_zero
        return requantise_as(out.dtype, wide, *layer.scale_shift(), out.scalar_zero, out.low, out.high)
    if layer.word("clip_mode", "SATURATION", ("SATURATION", "TRUNCATION")) == "TRUNCATION":
        return x.astype(np.int64).astype(numpy_dtype(out.dtype))
    moved = 0 if layer.flag("ignore_scale_zp", False) else layer.input.scalar_zero - out.scalar_zero
    return saturate(x.astype(np.int64) + moved, out.integer.low, out.integer.high)


def quantise_layer(layer: Layer, x: Array) -> Array:
    """Real numbers in the output's scale and zero point; the nearest integer, ties to even."""
    out = layer.output
    if layer.word("round_mode", "ROUND_TO_EVEN") != "ROUND_TO_EVEN":
        raise LayerError(f"'round_mode' is {layer.word('round_mode')}; only ROUND_TO_EVEN is defined")
    scale, zero = (on_channels(out, v) for v in (out.scale, out.zero))
    if out.dtype in TRUNCATED_DTYPES:
        exact = np.asarray(scale, np.float32) * x.astype(np.float32) - np.asarray(zero, np.float32)
        return saturate(np.trunc(exact), out.low, out.high)
    return quantise(x, scale, zero, out.low, out.high)


def dequantise_layer(layer: Layer, x: Array) -> Array:
    source = layer.input
    shape = [1] * len(source.shape)
    if np.size(source.scale) > 1:
        shape[source.axis if source.axis is not None else -1] = np.size(source.scale)
        return dequantise(x.astype(np.int64), np.reshape(source.scale, shape), np.reshape(source.zero, shape))
    return dequantise(x.astype(np.int64), source.scalar_scale, source.scalar_zero)


def fixed_point_terms(layer: Layer) -> tuple[Array, Array, str]:
    """The multipliers and shifts, one or those of each channel, and the rounding. LayerError for others than kernels have."""
    rank = len(layer.input.shape)
    channels = layer.input.shape[layer.axis("axis", rank - 1)] if rank else 1
    given = layer.scale_shift(of=channels if "scale" in layer.constants else 1)
    scale, shift = np.broadcast_arrays(*(np.asarray(v, np.int64).reshape(-1) for v in given))
    rounding = layer.word("rounding", UPWARD, (UPWARD, TWICE_UPWARD, TWICE_TONEAREST))
    if scale.min() < 0 or scale.max() >= 1 << 31 or shift.min() < 1 or shift.max() > 62:
        raise LayerError(
            f"multipliers from {scale.min()} to {scale.max()} over 2^{shift.min()} to 2^{shift.max()} are none of 31 bits"
        )
    return scale, shift, rounding


def fixed_point_layer(layer: Layer, x: Array) -> Array:
    """Whole numbers times multipliers of 31 bits."""
    if not (layer.input.is_integer and layer.output.is_integer):
        raise LayerError(f"it makes {layer.output.dtype} of {layer.input.dtype}, expected whole numbers")
    scale, shift, rounding = fixed_point_terms(layer)
    axis, rank = layer.axis("axis", x.ndim - 1), x.ndim
    along = [-1 if a == axis and scale.size > 1 else 1 for a in range(rank)]
    centred = x.astype(np.int64) - layer.integer("x_zero_point", 0)
    made = fixed_point(centred, scale.reshape(along), shift.reshape(along), rounding)
    return saturate(made + layer.integer("y_zero_point", 0), layer.output.low, layer.output.high)


class Levels(NamedTuple):
    """The numbers of a quantisation and back: all float32, as they are computed with."""

    low: np.float32
    high: np.float32
    first: np.float32
    last: np.float32
    scale: np.float32
    zero: np.float32

    @property
    def step(self) -> np.float32:
        return np.float32(1) / self.scale


def fake_levels(layer: Layer) -> Levels:
    """The range so moved that 0 is a level, and its levels."""
    low, high = np.float32(layer.number("min")), np.float32(layer.number("max"))
    if not low < high:
        raise LayerError(f"'min' is {low}, 'max' is {high}: the range is empty")
    levels = (1 << layer.integer("num_bits", 8)) - 1
    if low > 0:
        low, high = np.float32(0), high - low
    elif high < 0:
        low, high = low - high, np.float32(0)
    else:
        step = (high - low) / np.float32(levels)
        moved = step * np.rint(low / step)
        low, high = moved, high + moved - low
    first = 1 if layer.flag("narrow_range", False) else 0
    scale = np.float32(levels - first) / (high - low)
    return Levels(low, high, np.float32(first), np.float32(levels), scale, np.rint(scale * low) - np.float32(first))


def fake_quantise(layer: Layer, x: Array) -> Array:
    """Real numbers after being quantised to `num_bits` and back."""
    f = fake_levels(layer)
    stored = quantise(x, f.scale, f.zero, int(f.first), int(f.last))
    return np.clip(dequantise(stored, f.scale, f.zero), f.low, f.high)
