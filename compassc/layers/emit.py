"""Steps that kernels of several families share: requantisation, table look-ups, rectifiers, stores."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from compass_core.arrays import Array
from compassc.build import Value
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError, Tensor
from compassc.graph.dtypes import INTEGER_TYPES
from compassc.layers import vectors
from compassc.layers.arithmetic import TRUNCATED_DTYPES, Number, requantise_as, whole_limits
from compassc.layers.rectify import slopes_of
from compassc.layers.steps import Steps
from compassc.layers.vectors import (
    WIDE,
    clamp,
    entry_of,
    narrowed,
    narrowed_less,
    narrowed_word,
    requantise_far,
    requantise_wide,
    rounded_word,
    scale_exactly,
    scale_toward_zero,
    wide,
)

INT32_MAX = 2**31 - 1


class WideFactor(NamedTuple):
    """The arguments of `vectors.requantise_wide`."""

    scale: int
    bound: int
    drop: int
    shift: int


def wide_factor(scale: int, shift: int) -> WideFactor:
    """A multiplier of up to 16 bits and a shift, prepared for products of up to 48 bits and results of 17.

    A result of 2^17 is beyond every limit of a 16-bit output, so larger inputs need not be told apart.
    """
    if scale == 0 or shift > 47:
        return WideFactor(0, 0, 0, 0)
    while shift < 0 and scale < 1 << 15:
        scale, shift = scale << 1, shift + 1
    if shift < 0 or scale >> 16:
        raise LayerError(f"the shift {shift} with the multiplier {scale} is beyond what kernels compute")
    drop = min(16, max(0, shift - 12))
    bound = INT32_MAX if shift > 28 else min(INT32_MAX, -(-(1 << (17 + shift)) // scale))
    return WideFactor(scale, bound, drop, shift - drop)


def operand(k: Steps, numbers: Array) -> Value:
    """A number of the kernel, numbers per channel, or of several axes: a scalar, or the pass's vector."""
    if numbers.size == 1:
        return k.number(numbers.reshape(-1)[0])
    kind = np.float32 if numbers.dtype.kind == "f" else np.int32
    if numbers.size > numbers.shape[-1] and not k.any_lanes:  # else the kernel says which number is a lane's
        return k.broadcast(numbers.astype(kind))
    return k.channels(numbers.reshape(-1).astype(kind))


def requantise(k: Steps, value: Value, scale: Number, shift: Number, zero: int, low: int, high: int) -> Value:
    """round(value * scale / 2^shift) - zero, within low..high. Scale and shift may be numbers per channel."""
    if value.low < -(2**31) or value.high > INT32_MAX:
        raise LayerError("its sums do not fit 32 bits, which no kernel here computes with")
    scales, shifts = np.broadcast_arrays(np.asarray(scale, np.int64), np.asarray(shift, np.int64))
    if shifts.size and not -128 <= shifts.min() <= shifts.max() <= 127:
        raise LayerError(f"shifts from {shifts.min()} to {shifts.max()} are beyond what kernels compute")
    if (scales == 1).all() and not shifts.any():
        rounded = value
    else:
        most = max(abs(low + zero), abs(high + zero))
        rounded = scaled(k, value, scales, shifts, limited=most <= 1 << 17, most=most)
    moved = result = k.shifted(rounded, -zero)
    if moved.low < low or moved.high > high:
        result = limited(k, moved, low, high)
    if dtype := WHOLE_RANGES.get((low, high)):
        _store_at_once(k, result, rounded, moved, zero, dtype)
    return result


def limited(k: Steps, value: Value, low: int, high: int) -> Value:
    """The value, at least and at most these."""
    return k.let(clamp(value, k.number(low), k.number(high)), low=low, high=high)


WHOLE_RANGES = {(kind.low, kind.high): name for name, kind in INTEGER_TYPES.items() if name[-1] in "86"}
"""Range -> the type of 8 or 16 bits that it is all of."""


def _store_at_once(k: Steps, result: Value, rounded: Value, moved: Value, zero: int, dtype: str) -> None:
    """Where a result may take up its type's whole range, shift, rounding and limits are one step on the way to memory."""
    source, shift = k.shifted_from.get(rounded.name, (rounded, 0))
    word = k.rounded_from.get(rounded.name)
    if word is not None and dtype[-1] == "8" and rounded.magnitude < 1 << 15 and abs(zero) < 1 << 14:
        form = narrowed_word(word, k.number(zero) if zero else 0, dtype)
    elif rounded.name == moved.name:
        form = narrowed(source, shift, dtype)
    elif dtype[-1] == "8" and abs(zero) < 1 << 14:
        form = narrowed_less(source, shift, k.number(zero), dtype)
    else:
        form = narrowed(moved, 0, dtype)
    k.stored_forms[result.name, dtype] = form


def scaled(k: Steps, value: Value, scale: Array, shift: Array, limited: bool = True, most: int = 1 << 17) -> Value:
    """round(value * scale / 2^shift). `limited`: results whose magnitude is more than `most` need not be told apart; it
    is at most 17 bits."""
    left = np.where((shift < 0) & (value.magnitude * (scale << np.clip(-shift, 0, 31)) <= INT32_MAX), -shift, 0)
    scale, shift = scale << np.maximum(left, 0), shift + left
    ends = [v * scale / 2.0**shift for v in (value.low, value.high)]
    low, high = _span(ends)
    low, high = low - 1, high + 1
    limited = limited or max(abs(low), abs(high)) < 1 << 17
    if shift.min() >= 0 and value.magnitude * int(scale.max()) <= INT32_MAX:
        scale, shift = np.where(shift > 31, 0, scale), np.where(shift > 31, 0, shift)
        product = value if (scale == 1).all() else k.let(value * operand(k, scale))
        by = operand(k, shift)
        rounded = k.let(S.vsr(product, by, with_round=True), low=low, high=high)
        k.shifted_from[rounded.name] = product, by
        return rounded
    if limited and (near := _by_one_rounding(k, value, scale, shift, min(most, 1 << 17))) is not None:
        return near
    if (
        17 <= shift.min()
        and shift.max() <= 46
        and scale.max() < 1 << 16
        and value.magnitude * int(scale.max()) < 1 << 46
    ):
        result = k.let(value, low=low, high=high)
        k.paste(requantise_far, result, operand(k, scale), operand(k, shift - 15))
        return result
    if not limited:
        if scale.size > 1 or not 0 < int(shift) <= 16 or max(abs(low), abs(high)) > INT32_MAX or int(scale) >> 16:
            raise LayerError(f"a product with the factor {scale} / 2^{shift} is beyond what kernels compute")
        result = k.let(value, low=low, high=high)
        k.paste(scale_exactly, result, operand(k, scale), operand(k, shift))
        return result
    factors = [wide_factor(int(m), int(n)) for m, n in zip(scale.reshape(-1), shift.reshape(-1), strict=True)]
    columns = [operand(k, np.asarray(column, np.int64)) for column in zip(*factors, strict=True)]
    result = k.let(value, low=-(2**30), high=2**30)
    k.paste(requantise_wide, result, *columns)
    return result


FLOAT_EXACT = 1 << 24
"""Integers up to here are float32."""
FLOATS_BELOW_2_31 = 2**31 - 65
"""The largest integer whose nearest float32 is an int32."""
ROUNDED_EXACT = (1 << 22) - 1
"""Products up to here are rounded to integers when 1.5 * 2^23 is added to them in one step."""


def _by_one_rounding(k: Steps, value: Value, scale: Array, shift: Array, most: int) -> Value | None:
    """The same by a fused multiplication in float32, whose only rounding is that to an integer; None where integers or
    products are too large for it, and cannot be limited without a change of what is told apart."""
    factors = scale.reshape(-1) * 2.0 ** -shift.reshape(-1)
    if scale.min() < 0 or scale.max() >= FLOAT_EXACT or not -40 <= shift.min() <= shift.max() <= 100:
        return None
    bound = min(FLOAT_EXACT, int(ROUNDED_EXACT / max(factors.max(), 2.0**-40)))
    near, real = value, k.float_forms.get(value.name)
    if value.magnitude > bound:
        real = None
        if bound * factors.min() <= most + 1:
            return None
        near = limited(k, value, -bound, bound)
    single = (factors == factors[0]).all()
    factor = k.number(float(factors[0])) if single else k.channels(factors.astype(np.float32))
    ends = [max(-bound, min(bound, v)) * f for v in (value.low, value.high) for f in (factors.min(), factors.max())]
    word = k.let(rounded_word(k.let(S.cast(near, "float32")) if real is None else real, factor))
    rounded = k.let(word - 0x4B400000, low=round(min(ends)) - 1, high=round(max(ends)) + 1)
    k.rounded_from[rounded.name] = word
    return rounded


def _span(ends: list[Array]) -> tuple[int, int]:
    return int(min(e.min() for e in ends)), int(max(e.max() for e in ends))


def requantise_rounded(k: Steps, value: Value, scale: Array, shift: Array, out: Tensor) -> Value:
    """Requantised to the nearest integer whatever the output's type is; LayerError where 32 bits do not hold it."""
    if out.dtype not in TRUNCATED_DTYPES:
        return requantise(k, value, scale, shift, out.scalar_zero, out.low, out.high)
    scales, shifts = np.broadcast_arrays(np.asarray(scale, np.int64), np.asarray(shift, np.int64))
    if not ((scales == 1).all() and not shifts.any()):
        if out.dtype != "int32":
            raise LayerError(f"requantisation to {out.dtype} is not implemented")
        value = scaled(k, value, scales, shifts, limited=False)
    if min(value.low, value.low - out.scalar_zero) < -(2**31) or max(value.high, value.high - out.scalar_zero) >= 2**31:
        raise LayerError(
            f"results from {value.low} to {value.high} less the zero point {out.scalar_zero} are beyond 32 bits"
        )
    moved = k.shifted(value, -out.scalar_zero)
    if out.low <= moved.low and moved.high <= out.high:
        return moved
    return limited(k, moved, out.low, out.high)


def requantise_to(k: Steps, value: Value, scale: Array, shift: Array, out: Tensor) -> Value:
    """Requantised as the output of a rectifier wants it: to 16 bits and less to the nearest, to more without fraction."""
    if out.dtype in TRUNCATED_DTYPES and not ((scale == 1).all() and not shift.any()):
        return _without_fraction(k, value, scale, shift, out)
    return requantise(k, value, scale, shift, out.scalar_zero, out.low, out.high)


def _without_fraction(k: Steps, value: Value, scale: Array, shift: Array, out: Tensor) -> Value:
    """value * scale / 2^shift without its fraction: outputs of 32 bits are not rounded."""
    scales, shifts = np.broadcast_arrays(np.asarray(scale, np.int64), np.asarray(shift, np.int64))
    left = np.maximum(-shifts, 0)
    if out.dtype != "int32" or out.scalar_zero or left.max() > 16:
        raise LayerError(
            f"requantisation to {out.dtype} with the zero point {out.scalar_zero} and the shift {int(shifts.min())} is "
            "not implemented"
        )
    scales, shifts = scales << left, np.minimum(shifts + left, 47)
    if scales.min() < 0 or scales.max() >> 16 or value.low < -(2**31) or value.high > INT32_MAX:
        raise LayerError(
            f"the multiplier {int(scales.max())} for sums of up to {value.magnitude} is beyond what kernels compute"
        )
    result = k.let(value, low=-(2**31), high=INT32_MAX)
    k.paste(scale_toward_zero, result, operand(k, scales), operand(k, shifts))
    whole = (out.low, out.high) == (-(2**31), INT32_MAX)
    return result if whole else limited(k, result, out.low, out.high)


def rectify(k: Steps, layer: Layer, method: str, value: Value, scale: Array, shift: Array) -> Value:
    """The quantised rectifier at the end of a layer; see `compassc.layers.rectify`."""
    out = layer.output
    if method == "CLIP":
        extra = 8 if INTEGER_TYPES[out.dtype].bits <= 8 else 0
        low, high = layer.integer("clip_min"), layer.integer("clip_max")
        inner = requantise(k, value, scale, shift - extra, 0, low, high)
        return requantise(k, inner, 1, extra, out.scalar_zero, out.low, out.high)
    if method in ("RELU", "RELU6"):
        return _positive(k, value, scale, shift, out)
    if method == "LEAKYRELU":
        value = _leak(k, layer, value)
    elif method == "PRELU" and _is_steep(layer, value):
        from compassc.layers.pairs import Pair, finish_pair

        pair = Pair(k.let(value >> 16), k.let(value & 65535), value.low, value.high)
        return finish_pair(k, layer, pair, scale, shift, method)
    elif method == "PRELU":
        value = _leak_by_slopes(k, layer, value)
    elif method != "NONE":
        raise LayerError(f"the fused activation {method} has no kernel")
    return requantise_to(k, value, scale, shift, out)


def _positive(k: Steps, value: Value, scale: Array, shift: Array, out: Tensor) -> Value:
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


def _leak(k: Steps, layer: Layer, value: Value) -> Value:
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


def _leak_by_slopes(k: Steps, layer: Layer, value: Value) -> Value:
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


def rectify_float(k: Steps, layer: Layer, method: str, value: Value) -> Value:
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


def single(values: Array, key: str) -> int:
    if values.size != 1:
        raise LayerError(f"'{key}' has {values.size} values, expected 1")
    return int(values.reshape(-1)[0])


def look_up(k: Steps, value: Value, table: Array, bits: int) -> Value:
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


def as_stored(k: Steps, value: Value, out: Tensor) -> Value:
    """The value as it is after being stored: integers in the range of their type, floats of 16 bits rounded to them."""
    if out.dtype in ("float16", "bfloat16"):
        return k.let(wide(k.stored(value, out.dtype), out.dtype))
    if out.is_integer and value.kind == "int32":
        low, high = out.integer.low, out.integer.high
        if value.low < low or value.high > high:
            stored = clamp(value, k.number(low), k.number(high))
            return k.let(stored, low=max(low, value.low), high=min(high, value.high))
    return value


def wide_kind(tensor: Tensor) -> str:
    if tensor.dtype not in WIDE:
        raise LayerError(f"kernels do not compute with {tensor.dtype}")
    return WIDE[tensor.dtype]
