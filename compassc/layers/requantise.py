"""The one requantisation of kernels: sums become the integers of a tensor. The ranges of sums, multipliers and shifts choose
the cheapest exact form.
"""

from __future__ import annotations

from functools import reduce
from operator import add

import numpy as np

from compass_core.arrays import Array
from compass_core.namedtuple import NamedTuple
from compassc.build import Expression, Value
from compassc.dsl import script as S
from compassc.graph import LayerError, Tensor
from compassc.graph.dtypes import INTEGER_TYPES
from compassc.layers import vectors
from compassc.layers.arithmetic import TRUNCATED_DTYPES, Number
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.vectors import (
    clamp,
    narrowed,
    narrowed_less,
    narrowed_word,
    requantise_far,
    requantise_wide,
    rounded_word,
    scale_exactly,
    scale_toward_zero,
)

INT32_MAX = 2**31 - 1
FLOAT_EXACT = 1 << 24
"""Integers up to here are float32."""
ROUNDED_EXACT = (1 << 22) - 1
"""Products up to here are rounded to integers when 1.5 * 2^23 is added to them in one step."""
DOUBLE_EXACT = 2**53
"""The reference multiplies in float64, whose integers are exact up to here."""
FARTHEST = 46
"""The largest shift of `vectors.shift_far`."""


class Pair(NamedTuple):
    """The numbers `high` * 65536 + `low` (16 bits), two variables of the kernel, which are from `least` to `most`."""

    high: Value
    low: Value
    least: int
    most: int

    @property
    def span(self) -> tuple[int, int]:
        return self.least, self.most


Sum = Value | Pair
"""Integers of up to 32 bits, or of more."""


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


def operand(k: LayerKernel, numbers: Array) -> Value:
    """A number of the kernel, numbers per channel, or of several axes: a scalar, or the pass's vector."""
    if numbers.size == 1:
        return k.number(numbers.reshape(-1)[0])
    kind = np.float32 if numbers.dtype.kind == "f" else np.int32
    if numbers.size > numbers.shape[-1] and not k.any_lanes:  # else the kernel says which number is a lane's
        return k.broadcast(numbers.astype(kind))
    return k.channels(numbers.reshape(-1).astype(kind))


def requantise(
    k: LayerKernel, value: Sum, scale: Number, shift: Number, zero: int, low: int, high: int, bits: int = 48
) -> Value:
    """round(value * scale / 2^shift) - zero, within low..high. Scale and shift may be numbers per channel. `bits`: those of
    a pair from its first one that is not 0 on."""
    if isinstance(value, Pair):
        return _of_pair(k, value, np.asarray(scale), np.asarray(shift), zero, (low, high), bits)
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


def limited(k: LayerKernel, value: Value, low: int, high: int) -> Value:
    """The value, at least and at most these."""
    return k.let(clamp(value, k.number(low), k.number(high)), low=low, high=high)


WHOLE_RANGES = {(kind.low, kind.high): name for name, kind in INTEGER_TYPES.items() if name[-1] in "86"}
"""Range -> the type of 8 or 16 bits that it is all of."""


def _store_at_once(k: LayerKernel, result: Value, rounded: Value, moved: Value, zero: int, dtype: str) -> None:
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


def scaled(
    k: LayerKernel, value: Value, scale: Array, shift: Array, limited: bool = True, most: int = 1 << 17
) -> Value:
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


def _by_one_rounding(k: LayerKernel, value: Value, scale: Array, shift: Array, most: int) -> Value | None:
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


def requantise_rounded(k: LayerKernel, value: Sum, scale: Array, shift: Array, out: Tensor) -> Value:
    """Requantised to the nearest integer whatever the output's type is; LayerError where 32 bits do not hold it."""
    if out.dtype not in TRUNCATED_DTYPES:
        return requantise(k, value, scale, shift, out.scalar_zero, out.low, out.high)
    value = _of_32_bits(value, out)
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


def requantise_to(k: LayerKernel, value: Sum, scale: Array, shift: Array, out: Tensor) -> Value:
    """Requantised as the output of a rectifier wants it: to 16 bits and less to the nearest, to more without fraction."""
    if out.dtype in TRUNCATED_DTYPES:
        value = _of_32_bits(value, out)
        if not ((scale == 1).all() and not shift.any()):
            return _without_fraction(k, value, scale, shift, out)
    return requantise(k, value, scale, shift, out.scalar_zero, out.low, out.high)


def _of_32_bits(value: Sum, out: Tensor) -> Value:
    if isinstance(value, Pair):
        raise LayerError(f"requantisation to {out.dtype} of sums beyond 32 bits is not implemented")
    return value


def _without_fraction(k: LayerKernel, value: Value, scale: Array, shift: Array, out: Tensor) -> Value:
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


def _of_pair(
    k: LayerKernel, pair: Pair, scale: Array, shift: Array, zero: int, limits: tuple[int, int], bits: int
) -> Value:
    low, high = limits
    if max(abs(low), abs(high)) + abs(zero) >= 2**18:
        raise LayerError(f"results up to {high} of sums beyond 32 bits have no kernel")
    scales, shifts = (a.reshape(-1) for a in np.broadcast_arrays(scale, shift))
    scales, shifts = _positive(scales, shifts)
    largest = max(map(abs, pair.span)) * int(scales.max())
    exact = largest < DOUBLE_EXACT or bits + int(scales.max()).bit_length() <= 53
    if shifts.max() > (62 if largest < 1 << 62 else 44) or (shifts.max() > 35 and not exact):
        raise LayerError(f"a shift of {int(shifts.max())} of sums beyond 32 bits has no kernel")
    drop = np.clip(shifts - 12, 1, 31)
    columns = [operand(k, _one(c)) for c in (scales, (1 << (drop - 1)) - 1, drop, shifts - drop)]
    result = k.let(pair.high, low=-(2**30), high=2**30)
    k.paste(vectors.requantise_pair, result, pair.low, *columns)
    return limited(k, k.shifted(result, -zero), low, high)


def _one(numbers: Array) -> Array:
    """A single number where all are the same."""
    return numbers[:1] if (numbers == numbers[:1]).all() else numbers


def _positive(scales: Array, shifts: Array) -> tuple[Array, Array]:
    """The same factors with shifts of at least 1, which their multipliers of 16 bits must allow."""
    more = np.maximum(1 - shifts, 0)
    if more.max() > 16 or (scales << more).max() >= 1 << 16 or scales.min() < 0:
        raise LayerError(f"the shift {int(shifts.min())} of sums beyond 32 bits has no kernel")
    return scales << more, shifts + more


def carried(k: LayerKernel, high: Expression, low: Expression, least: int, most: int) -> Pair:
    """The numbers `high` * 65536 + `low`, of which `low` may have more than 16 bits."""
    whole = k.let(low)
    return Pair(k.let(high + (whole >> 16)), k.let(whole & 0xFFFF), least, most)


def total(k: LayerKernel, *parts: Sum) -> Sum:
    """The sum of values, in two words where 32 bits do not hold it."""
    least, most = sum(_ends(p)[0] for p in parts), sum(_ends(p)[1] for p in parts)
    if -(2**31) <= least and most <= INT32_MAX and not any(isinstance(p, Pair) for p in parts):
        values: list[Expression] = [p for p in parts if isinstance(p, Value)]
        return k.let(reduce(add, values), low=least, high=most)
    if max(-least, most) >= 2**47:
        raise LayerError(f"sums of up to {max(-least, most)} do not fit 48 bits, which no kernel here computes with")
    words = [(p.high, p.low) if isinstance(p, Pair) else (p >> 16, p & 0xFFFF) for p in parts]
    return carried(k, reduce(add, (high for high, _ in words)), reduce(add, (low for _, low in words)), least, most)


def _ends(value: Sum) -> tuple[int, int]:
    return value.span if isinstance(value, Pair) else (value.low, value.high)


def rescaled(k: LayerKernel, value: Value, scale: Number, shift: Number) -> Value:
    """round(value * scale / 2^shift), limited to int32. Scale and shift may be numbers per channel."""
    scales, shifts = _folded(np.asarray(scale, np.int64), np.asarray(shift, np.int64), value.magnitude)
    if (scales == 1).all() and not shifts.any():
        return value
    factors = [(int(m), int(n)) for m, n in zip(scales.reshape(-1), shifts.reshape(-1), strict=True)]
    if shifts.max() <= 31 and value.magnitude * int(scales.max()) <= INT32_MAX:
        ends = [_nearest(v * m, n) for v in (value.low, value.high) for m, n in factors]
        return k.let(vectors.requantised(value, operand(k, scales), operand(k, shifts)), low=min(ends), high=max(ends))
    largest = value.magnitude * int(scales.max())
    pair = Pair(k.let(value >> 16), k.let(value & 0xFFFF), -largest, largest)
    if (scales != 1).any():
        k.paste(vectors.multiply_wide, pair.high, pair.low, operand(k, scales))
    return shifted_pair(k, pair, shifts, max(-(-value.magnitude * m >> n) for m, n in factors))


def _nearest(number: int, shift: int) -> int:
    """number / 2^shift, rounded to the nearest integer, the even one of two."""
    whole, rest = divmod(number, 1 << shift)
    return whole + (2 * rest + (whole & 1) > 1 << shift)


def _folded(scale: Array, shift: Array, magnitude: int) -> tuple[Array, Array]:
    """Multipliers and shifts of one shape with shifts from 0; those whose results are all 0 have the multiplier 0."""
    scale, shift = (np.array(v) for v in np.broadcast_arrays(scale, shift))
    if scale.min() < 0:
        raise LayerError(f"the multiplier {int(scale.min())} is negative")
    left = np.maximum(-shift, 0)
    if left.max() > 16 or (scale << left).max() >> 16:
        raise LayerError(f"the shift {int(shift.min())} with the multiplier {int(scale.max())} is beyond 16 bits")
    scale, shift = scale << left, shift + left
    nothing = (scale == 0) | (scale * magnitude < np.left_shift(1, np.clip(shift - 1, 0, 61))) & (shift > 0)
    return np.where(nothing, 0, scale), np.where(nothing, 0, shift)


def rescaled_pair(k: LayerKernel, pair: Pair, scale: int, shift: int, bits: int) -> Pair:
    """round(pair * scale / 2^shift), of at most `bits` bits."""
    if scale == 1 and shift == 0:
        return pair
    more = max(1 - shift, 0)
    scale, shift, largest = scale << more, shift + more, max(map(abs, pair.span))
    made = -(-largest * scale // (1 << shift))
    if scale >> 16 or scale < 0 or shift > 31 or largest * scale >= DOUBLE_EXACT or made >> (bits - 1):
        raise LayerError(f"sums of up to {largest} times {scale} over 2^{shift} have no kernel")
    k.paste(vectors.scale_pair, pair.high, pair.low, k.number(scale), k.number(shift), pair.high == pair.high)
    return Pair(pair.high, pair.low, -made, made)


def shifted_pair(k: LayerKernel, pair: Pair, shift: Number, most: int | None = None) -> Value:
    """The sums over 2^shift, to the nearest, limited to int32. Shifts may be numbers per channel. `most`: the largest
    magnitude of the results, where more is known than sums and shifts tell."""
    shifts = np.asarray(shift, np.int64)
    if shifts.min() < 0 or shifts.max() > FARTHEST:
        raise LayerError(f"shifts from {shifts.min()} to {shifts.max()} of its sums are beyond what kernels compute")
    largest = -(-max(map(abs, pair.span)) >> int(shifts.min())) if most is None else most
    low = -largest
    if largest > INT32_MAX:
        # the largest number whose value fits: above it all are the same
        near = shifts <= 16
        tops = np.where(near, (np.int64(1) << np.minimum(15 + shifts, 31)) - 1, INT32_MAX)
        lasts = np.where(near, 65536 - (np.int64(1) << np.minimum(shifts, 16)), 65535)
        k.paste(vectors.limit_pair, pair.high, pair.low, operand(k, tops), operand(k, lasts))
        low, largest = -(2**31), INT32_MAX
    form = vectors.shift_near if shifts.max() <= 16 else vectors.shift_far if shifts.min() > 16 else vectors.shift_any
    k.paste(form, pair.high, pair.low, operand(k, shifts))
    return k.let(pair.high, low=low, high=largest)


def saturated(k: LayerKernel, value: Sum) -> Value:
    """The sums, at most what 32 bits hold."""
    if not isinstance(value, Pair):
        return value
    least, most = -(2**31), INT32_MAX
    top = S.vsel(most, (value.high << 16) | value.low, value.high > 32767)
    return k.let(S.vsel(least, top, value.high < -32768), low=least, high=most)
