"""Steps that kernels of several families share: rectifiers, table look-ups, stores."""

from __future__ import annotations

import numpy as np

from compass_core.arrays import Array
from compassc.build import Value
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError, Tensor
from compassc.graph.dtypes import INTEGER_TYPES
from compassc.layers import vectors
from compassc.layers.arithmetic import TRUNCATED_DTYPES, requantise_as, whole_limits
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.rectify import slopes_of
from compassc.layers.requantise import (
    DOUBLE_EXACT,
    FLOAT_EXACT,
    INT32_MAX,
    Pair,
    Sum,
    carried,
    operand,
    requantise,
    requantise_to,
    scaled,
    shifted_pair,
)
from compassc.layers.vectors import clamp, entry_of, negate_pair, positive_pair, requantised, scale_pair, wide

FLOATS_BELOW_2_31 = 2**31 - 65
"""The largest integer whose nearest float32 is an int32."""


def rectify(k: LayerKernel, layer: Layer, method: str, value: Sum, scale: Array, shift: Array) -> Value:
    """The quantised rectifier at the end of a layer; see `compassc.layers.rectify`."""
    out = layer.output
    if method == "PRELU" and not isinstance(value, Pair) and _is_steep(layer, value):
        value = Pair(k.let(value >> 16), k.let(value & 65535), value.low, value.high)
    if isinstance(value, Pair):
        return _rectify_pair(k, layer, method, value, scale, shift)
    if method == "CLIP":
        return _clip(k, layer, value, scale, shift)
    if method in ("RELU", "RELU6"):
        return _positive(k, value, scale, shift, out)
    if method == "LEAKYRELU":
        value = _leak(k, layer, value)
    elif method == "PRELU":
        value = _leak_by_slopes(k, layer, value)
    elif method != "NONE":
        raise LayerError(f"the fused activation {method} has no kernel")
    return requantise_to(k, value, scale, shift, out)


def _clip(k: LayerKernel, layer: Layer, value: Sum, scale: Array, shift: Array) -> Value:
    out, extra = layer.output, 8 if layer.output.integer.bits <= 8 else 0
    inner = requantise(k, value, scale, shift - extra, 0, layer.integer("clip_min"), layer.integer("clip_max"))
    return requantise(k, inner, 1, extra, out.scalar_zero, out.low, out.high)


def _rectify_pair(k: LayerKernel, layer: Layer, method: str, pair: Pair, scale: Array, shift: Array) -> Value:
    out = layer.output
    if method == "CLIP" and out.dtype not in TRUNCATED_DTYPES:
        return _clip(k, layer, pair, scale, shift)
    if method in ("RELU", "RELU6"):
        k.paste(positive_pair, pair.high, pair.low)
        pair = pair._replace(least=0, most=max(pair.most, 0))
    elif method in ("LEAKYRELU", "PRELU"):
        pair = _leak_pair(k, layer, method, pair)
    elif method != "NONE":
        raise LayerError(f"the fused activation {method} of sums beyond 32 bits has no kernel")
    return requantise_to(k, pair, scale, shift, out)


def _positive(k: LayerKernel, value: Value, scale: Array, shift: Array, out: Tensor) -> Value:
    """RELU. The reference takes the maximum in float32, which drops bits above 24 of them."""
    if value.high <= FLOAT_EXACT and out.low + out.scalar_zero >= 0 and scale.min() >= 0 and out.integer.bits <= 16:
        return requantise_to(k, value, scale, shift, out)  # the lower limit does it
    positive = S.max(value, 0)
    if value.high > FLOAT_EXACT:
        positive = S.cast(S.cast(positive, "float32"), "int32")
    ends = max(value.low, 0), max(value.high, 0)
    kept = requantise_to(k, k.let(positive, low=ends[0], high=ends[1]), scale, shift, out)
    if value.high <= FLOATS_BELOW_2_31:
        return kept
    # above, the nearest float32 is 2^31, which is no int32: its result is a constant
    most = requantise_as(out.dtype, np.asarray(2.0**31), scale, shift, out.scalar_zero, out.low, out.high)
    chosen = S.vsel(operand(k, most), kept, value > FLOATS_BELOW_2_31)
    return k.let(chosen, low=min(kept.low, int(most.min())), high=max(kept.high, int(most.max())))


def _leak(k: LayerKernel, layer: Layer, value: Value) -> Value:
    bits = INTEGER_TYPES[layer.output.dtype].bits
    slope, shift = layer.integer("negative_slope_value"), layer.integer("negative_slope_shift", bits)
    negative = k.let(S.min(value, 0), low=min(value.low, 0), high=0)
    steep = scaled(k, negative, np.asarray(slope), np.asarray(shift), limited=False)
    ends = sorted((round(value.low * slope / 2**shift), 0))
    low, high = min(ends[0], value.low, 0) - 1, max(ends[1], value.high, 0) + 1
    return k.let(steep + S.max(value, 0), low=low, high=high)


def _is_steep(layer: Layer, value: Value) -> bool:
    """Whether negative values times the slope do not fit 32 bits."""
    return -min(value.low, 0) * int(np.abs(slopes_of(layer).astype(np.int64)).max()) > INT32_MAX


def _leak_by_slopes(k: LayerKernel, layer: Layer, value: Value) -> Value:
    """PRELU: slopes of 16 bits, which may be negative."""
    kind, slopes = INTEGER_TYPES[layer.output.dtype], slopes_of(layer).astype(np.int64)
    shift = layer.integer("negative_slope_shift", kind.bits)
    if not 0 <= shift < 32:
        raise LayerError(f"'negative_slope_shift' is {shift}, expected 0 to 31")
    negative = k.let(S.min(value, 0), low=min(value.low, 0), high=0)
    ends = [0, *(round(value.low * int(s) / 2**shift) for s in (slopes.min(), slopes.max()) if value.low < 0)]
    steep = k.let(S.vsr(negative * operand(k, slopes), k.number(shift), with_round=True))
    result, low = steep + S.max(value, 0), min(ends) - 1
    if not kind.signed:
        result, low = S.max(result, 0), 0
    return k.let(result, low=low, high=max(ends) + 1 + max(value.high, 0))


def _leak_pair(k: LayerKernel, layer: Layer, method: str, pair: Pair) -> Pair:
    """Negative sums times the slope."""
    kind = layer.output.integer
    single = method == "LEAKYRELU"
    slopes = np.asarray([layer.integer("negative_slope_value")]) if single else slopes_of(layer).astype(np.int64)
    shift, steepest = layer.integer("negative_slope_shift", kind.bits), int(np.abs(slopes).max())
    if not 1 <= shift <= 31 or steepest >> 16 or -min(pair.least, 0) * steepest >= DOUBLE_EXACT:
        raise LayerError(
            f"'negative_slope_shift' is {shift}: sums down to {pair.least} times the slope {steepest} over it have no kernel"
        )
    high, low = pair.high, pair.low
    turned = bool((slopes < 0).any())
    below = k.let(high < 0) if turned else None
    negative = k.let(high < 0)
    k.paste(scale_pair, high, low, operand(k, np.abs(slopes)), k.number(shift), negative)
    if below is not None:
        k.paste(negate_pair, high, low, below & (operand(k, slopes) < high * 0))
    largest = -(min(pair.least, 0) * steepest >> shift) + 1
    if not single and not kind.signed:
        k.assign(low, S.vsel(0, low, high < 0))
        k.assign(high, S.max(high, 0))
        return pair._replace(least=0, most=max(pair.most, largest))
    return pair._replace(least=-largest, most=max(pair.most, largest if turned else 0))


def rectify_float(k: LayerKernel, layer: Layer, method: str, value: Value) -> Value:
    """The rectifier on real numbers."""
    if method == "NONE":
        return value
    if method == "RELU":
        return k.let(S.max(value, 0.0))
    if method == "RELU6":
        return k.let(clamp(value, 0.0, 6.0))
    if method == "CLIP":
        return k.let(clamp(value, *(k.number(layer.number(key)) for key in ("clip_min", "clip_max"))))
    if method == "LEAKYRELU":
        return k.let(S.vsel(value, value * k.number(layer.number("negative_slope_value")), value >= 0.0))
    if method == "PRELU":
        factor = operand(k, slopes_of(layer).astype(np.float32))
        return k.let(S.max(value, 0.0) + factor * S.min(value, 0.0))
    raise LayerError(f"the fused activation {method} has no kernel")


def finish_ahead(
    k: LayerKernel, layer: Layer, sums: Sum, amount: int, biases: Array, scale: Array, shift: Array
) -> Value:
    """The output's value of sums that are shifted, and limited to 32 bits, ahead of biases.

    `scale`, `shift`: those that are left.
    """
    if isinstance(sums, Pair):
        value = shifted_pair(k, sums, amount)
    elif amount:
        low, high = (round(v / 2**amount) for v in (sums.low, sums.high))
        value = k.let(requantised(sums, 1, k.number(amount)), low=low - 1, high=high + 1)
    else:
        value = sums
    low, high = value.low + int(biases.min()), value.high + int(biases.max())
    total: Sum = value
    if low < -INT32_MAX or high > INT32_MAX:
        words = (value >> 16) + operand(k, biases >> 16), (value & 0xFFFF) + operand(k, biases & 0xFFFF)
        total = carried(k, *words, low, high)
    elif biases.any():
        total = k.let(value + operand(k, biases), low=low, high=high)
    return rectify(k, layer, layer.word("with_activation", "NONE"), total, scale, shift)


def single(values: Array, key: str) -> int:
    if values.size != 1:
        raise LayerError(f"'{key}' has {values.size} values, expected 1")
    return int(values.reshape(-1)[0])


def look_up(k: LayerKernel, value: Value, table: Array, bits: int) -> Value:
    """The entries at indices of `bits` bits from 0; the table's type says which integers come out."""
    flat = np.ascontiguousarray(table.reshape(-1))
    size = flat.size
    if size != 1 << (size.bit_length() - 1):
        raise LayerError(f"the table has {size} entries, which is no power of two")
    least, most = whole_limits(flat)
    if bits <= size.bit_length() - 1 and size <= 256 and flat.dtype.itemsize <= 2:
        from compassc.layers.byte_functions import entries, widened_of

        whole = np.zeros(256, flat.dtype)
        whole[:size] = flat
        return widened_of(k, entries(k, value, "uint8", whole), flat)
    name = k.table(flat)
    extra = bits - (size.bit_length() - 1)
    low, high = max(least, -(2**31)), min(most, INT32_MAX)
    if extra <= 0:
        return k.let(entry_of(name, value, k.mask), low=low, high=high)
    steepest = int(np.abs(np.diff(flat.astype(np.int64))).max(initial=0))
    if steepest << extra > INT32_MAX:
        raise LayerError(f"between entries {steepest} apart, 2^{extra} indices are not told apart in 32 bits")
    result = k.let(value, low=low, high=high)
    k.paste(vectors.look_up, result, name, k.number(extra), k.number(size - 1), k.mask)
    return result


def as_stored(k: LayerKernel, value: Value, out: Tensor) -> Value:
    """The value as it is after being stored: integers in the range of their type, floats of 16 bits rounded to them."""
    if out.dtype in ("float16", "bfloat16"):
        return k.let(wide(k.stored(value, out.dtype), out.dtype))
    if out.is_integer and value.kind == "int32":
        low, high = out.integer.low, out.integer.high
        if value.low < low or value.high > high:
            stored = clamp(value, k.number(low), k.number(high))
            return k.let(stored, low=max(low, value.low), high=min(high, value.high))
    return value
