"""Rescaling of whole int32 values as text of kernels: all 32 bits of the result count, unlike in `emit.requantise`.

Products of up to 48 bits are held as two numbers: high * 2^16 + low.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compass_core.arrays import Array
from compassc.build import Value, variable
from compassc.graph import LayerError
from compassc.ir.dtypes import INT32
from compassc.layers.arithmetic import Number
from compassc.layers.requantise import DOUBLE_EXACT, FARTHEST, INT32_MAX, Pair, saturated
from compassc.layers.source import KernelSource, named
from compassc.layers.steps import LANES

Name = Callable[[Array], str]
"""`name(numbers)`: the kernel's expression for numbers that may differ by lane or by pass."""


def held_pair(span: tuple[int, int] = (0, 0)) -> Pair:
    """The sums that a kernel of text has in its variables `high` and `low`."""
    high, low = (variable(name, INT32.with_lanes(LANES)) for name in ("high", "low"))
    return Pair(high, low, *span)


def symmetric(name: str, magnitude: int) -> Value:
    return named(name, "int32", -magnitude, magnitude)


def rescale(
    k: KernelSource,
    value: Value,
    scale: Number,
    shift: Number,
    name: Name,
    most: int = INT32_MAX,
    saturate: bool = False,
) -> Value:
    """round(value * scale / 2^shift). Results beyond `most` need not be told apart; without it they must fit int32, or
    are limited to it."""
    scales, shifts = _folded(np.asarray(scale, np.int64), np.asarray(shift, np.int64), value.magnitude)
    if (scales == 1).all() and not shifts.any():
        return value
    largest = _largest(value.magnitude, scales, shifts)
    if largest > INT32_MAX:
        if saturate:
            return _rescale_saturated(k, value, scales, shifts, name)
        if most >= INT32_MAX >> 1:
            raise LayerError(f"sums of up to {largest} do not fit 32 bits, which no kernel here computes with")
        bounds = np.minimum(((INT32_MAX - 1) << shifts) // np.maximum(scales, 1), INT32_MAX)
        bound = name(bounds)
        value = k.let(f"clamp({value.name}, 0 - {bound}, {bound})", "int32", value.low, value.high)
        largest = INT32_MAX
    elif shifts.max() <= 31 and value.magnitude * int(scales.max()) <= INT32_MAX:
        return k.let(f"requantised({value.name}, {name(scales)}, {name(shifts)})", "int32", -largest, largest)
    high = k.let(f"{value.name} >> 16").name
    low = k.let(f"{value.name} & 65535").name
    if (scales != 1).any():
        k.do(f"multiply_wide({high}, {low}, {name(scales)})")
    return shifted(k, high, low, shifts, name, largest)


def _rescale_saturated(k: KernelSource, value: Value, scales: Array, shifts: Array, name: Name) -> Value:
    """`rescale` where some results are beyond int32, and are limited to it."""
    pairs = zip(scales.reshape(-1), shifts.reshape(-1), strict=True)
    bounds = [min(INT32_MAX, (((2**32 - 1) << int(n)) - 1) // (2 * max(int(m), 1))) for m, n in pairs]
    bound = name(np.asarray(bounds, np.int64).reshape(scales.shape))
    inside = k.let(f"clamp({value.name}, 0 - {bound}, {bound})", "int32", value.low, value.high)
    high, low = k.let(f"{inside.name} >> 16").name, k.let(f"{inside.name} & 65535").name
    k.do(f"multiply_wide({high}, {low}, {name(scales)})")
    found = shifted(k, high, low, shifts, name, INT32_MAX).name
    ends = f"S.vsel({INT32_MAX}, S.vsel({-(2**31)}, {found}, {value.name} < 0 - {bound}), {value.name} > {bound})"
    return k.let(ends, "int32", -(2**31), INT32_MAX)


def shifted(k: KernelSource, high: str, low: str, shifts: Array, name: Name, largest: int) -> Value:
    """The variable `high`, after it took the rounded value of high * 2^16 + low over 2^shift, at most `largest`."""
    if shifts.min() < 0 or shifts.max() > FARTHEST:
        raise LayerError(f"the shift {int(shifts.max())} is beyond what kernels compute")
    form = "near" if shifts.max() <= 16 else "far" if shifts.min() > 16 else "any"
    k.do(f"shift_{form}({high}, {low}, {name(shifts)})")
    return symmetric(high, largest)


def shifted_limited(k: KernelSource, high: str, low: str, shifts: Array, name: Name, magnitude: int) -> Value:
    """`shifted` for numbers of up to `magnitude` whose rounded values are limited to int32."""
    if shifts.size and shifts.min() < 0:
        raise LayerError(f"the shift {int(shifts.min())} of its sums is negative, which has no kernel")
    largest = max(-(-magnitude // (1 << int(n))) for n in shifts.reshape(-1))
    if largest > INT32_MAX:
        # the largest number whose value fits: above it all are the same
        near = shifts <= 16
        tops = np.where(near, (np.int64(1) << np.minimum(15 + shifts, 31)) - 1, INT32_MAX)
        lasts = np.where(near, 65536 - (np.int64(1) << np.minimum(shifts, 16)), 65535)
        top, last = name(tops), name(lasts)
        k.do(f"limit_pair({high}, {low}, {top}, {last})")
        return shifted(k, high, low, shifts, name, INT32_MAX).within(low=-(2**31))
    return shifted(k, high, low, shifts, name, largest)


def limited(k: KernelSource, value: Value, low: int, high: int) -> Value:
    if low <= value.low and value.high <= high:
        return value
    return k.let(f"clamp({value.name}, {k.scalar(low)}, {k.scalar(high)})", "int32", low, high)


def total(k: KernelSource, *values: Value, saturate: bool = False) -> Value:
    """The sum of values; it must fit int32, or is limited to it."""
    low, high = sum(v.low for v in values), sum(v.high for v in values)
    if low < -(2**31) or high > INT32_MAX:
        if saturate:
            total_pair(k, *values)
            return saturated(k, held_pair())
        raise LayerError(f"sums of up to {max(high, -low)} do not fit 32 bits, which no kernel here computes with")
    return k.let(" + ".join(v.name for v in values), "int32", low, high)


def total_pair(k: KernelSource, *values: Value) -> tuple[int, int]:
    """The variables `high` and `low`: the sum of values as high * 2^16 + low (16 bits); gives what it can be."""
    k.do(f"low = {' + '.join(f'({v.name} & 65535)' for v in values)}")
    k.do(f"high = {' + '.join(f'({v.name} >> 16)' for v in values)} + (low >> 16)")
    k.do("low = low & 65535")
    return sum(v.low for v in values), sum(v.high for v in values)


def product(k: KernelSource, a: Value, b: Value) -> Value:
    """The product of two values; it must fit int32."""
    largest = a.magnitude * b.magnitude
    if largest > INT32_MAX:
        raise LayerError(f"products of up to {largest} do not fit 32 bits, which no kernel here computes with")
    return k.let(f"{a.name} * {b.name}", "int32", -largest, largest)


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


def _largest(magnitude: int, scale: Array, shift: Array) -> int:
    return max(
        -(-magnitude * int(m) // (1 << int(n))) for m, n in zip(scale.reshape(-1), shift.reshape(-1), strict=True)
    )


def rescale_pair(k: KernelSource, high: str, low: str, largest: int, scale: int, shift: int, bits: int) -> int:
    """The variables `high` and `low` become round(pair * scale / 2^shift), of at most `bits` bits; gives the largest."""
    if scale == 1 and shift == 0:
        return largest
    more = max(1 - shift, 0)
    scale, shift = scale << more, shift + more
    made = -(-largest * scale // (1 << shift))
    if scale >> 16 or scale < 0 or shift > 31 or largest * scale >= DOUBLE_EXACT or made >> (bits - 1):
        raise LayerError(f"sums of up to {largest} times {scale} over 2^{shift} have no kernel")
    k.do(f"scale_pair({high}, {low}, {k.scalar(scale)}, {k.scalar(shift)}, {high} == {high})")
    return made
