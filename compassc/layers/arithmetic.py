"""The integer arithmetic of quantised layers, in NumPy: requantisation, saturation, table look-up, integer functions.

Every reference computes with these functions, and kernels are held against them, so that rounding and saturation are
said once. A quantised value q of a tensor with scale s and zero point z stands for (q + z) / s.

Rounding is to the nearest integer, ties to even, unless a function says otherwise. Integers are int64 arrays; where
the definition of a step is in float64 or float32, it is computed in that type, because results depend on it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from compass_core.arrays import Array
from compassc.graph import LayerError
from compassc.graph.dtypes import INTEGER_TYPES, IntegerType, integer_type  # noqa: F401 (asked for here, too)

Number = int | float | np.floating[Any] | np.integer[Any] | Array

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
TRUNCATED_DTYPES = ("int32", "uint32", "int64", "uint64")
"""Output types for which the last step does not round: storing drops the fraction."""


def requantise(values: Array, scale: Number, shift: Number, zero: Number, low: Number, high: Number) -> Array:
    """round(values * scale / 2^shift) - zero, limited to low..high; in float64, NaN gives 0. Shifts may be negative."""
    with np.errstate(invalid="ignore", over="ignore"):
        exact = values.astype(np.float64) * np.asarray(scale, np.float64) * np.exp2(-np.asarray(shift, np.float64))
    return saturate(np.rint(exact) - zero, low, high)


UPWARD, TWICE_UPWARD, TWICE_TONEAREST = "UPWARD", "TWICE_UPWARD", "TWICE_TONEAREST"
"""How products with multipliers of 31 bits are rounded: once, halves up; or as the high word, halves up, which is shifted and rounded
again, with halves up or away from zero."""


def fixed_point(values: Array, scale: Number, shift: Number, rounding: str) -> Array:
    """Whole numbers of 32 bits times scale / 2^shift, a scale of 31 bits, in int64."""
    scale, shift = np.asarray(scale, np.int64), np.asarray(shift, np.int64)
    left, right = np.maximum(31 - shift, 0), np.maximum(shift - 31, 0)
    product = (values.astype(np.int64) << left) * scale
    if rounding == UPWARD:
        return np.asarray((product + (np.int64(1) << (right + 30))) >> (right + 31))
    high = (product + (1 << 30)) >> 31
    half = (np.int64(1) << right) >> 1
    down = (high < 0) & (right > 0) if rounding == TWICE_TONEAREST else 0
    return np.asarray((high + half - down) >> right)


def requantise_as(
    dtype: str, values: Array, scale: Number, shift: Number, zero: Number, low: Number, high: Number
) -> Array:
    """`requantise` where the output's type decides the rounding: 32 bits and more are truncated toward zero."""
    if dtype not in TRUNCATED_DTYPES:
        return requantise(values, scale, shift, zero, low, high)
    exact = values.astype(np.float64) * np.asarray(scale, np.float64) * np.exp2(-np.asarray(shift, np.float64))
    return saturate(np.trunc(exact - zero), low, high)


def requantise_floor(values: Array, scale: Number, shift: Number, zero: Number, low: Number, high: Number) -> Array:
    """((values * scale) >> shift) - zero, limited to low..high; a negative shift is one to the left."""
    return saturate(shift_right(values.astype(np.int64) * scale, shift) - zero, low, high)


def saturate(values: Array, low: Number, high: Number) -> Array:
    """The values limited to low..high as int64; NaN gives 0."""
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), 0, values)
        # 2^63 itself does not fit int64
        return np.clip(values, low, np.minimum(high, 2.0**62)).astype(np.int64)
    return np.clip(values, low, high).astype(np.int64)


def saturate_int32(values: Array) -> Array:
    return saturate(values, INT32_MIN, INT32_MAX)


def shift_right(values: Array, shift: Number) -> Array:
    """Arithmetic shift (the quotient by 2^shift rounded down); a negative shift is one to the left."""
    amount = np.asarray(shift, np.int64)
    return np.where(amount >= 0, values >> np.clip(amount, 0, 63), values << np.clip(-amount, 0, 63))


def quantise(values: Array, scale: Number, zero: Number, low: Number, high: Number) -> Array:
    """round(values * scale - zero), limited to low..high; in float32, NaN gives 0."""
    with np.errstate(invalid="ignore", over="ignore"):
        exact = np.asarray(scale, np.float32) * values.astype(np.float32) - np.asarray(zero, np.float32)
    return saturate(np.rint(exact), low, high)


def dequantise(values: Array, scale: Number, zero: Number) -> Array:
    """Dequantised values in float32: (values + zero) times the reciprocal of `scale`."""
    found: Array = (values + np.asarray(zero)).astype(np.float32) * (np.float32(1) / np.asarray(scale, np.float32))
    return found


def whole_limits(table: Array, key: str = "lut") -> tuple[int, int]:
    """The smallest and largest integer of a table's type; LayerError for a table of floats."""
    if table.dtype.kind not in "iu":
        raise LayerError(
            f"the table '{key}' is {table.dtype.name}, but its tensors are integers: expected whole numbers"
        )
    kind = np.iinfo(table.dtype)
    return int(kind.min), int(kind.max)


def look_up(index: Array, table: Array, bits: int, signed: bool) -> Array:
    """The entries of `table` at indices of `bits` bits, between entries interpolated and rounded down; int64.

    The table has 2^t entries. An index has its `bits - t` low bits as the position between two entries; behind the last
    entry follows a copy of it.
    """
    size = len(table)
    t = size.bit_length() - 1
    if size != 1 << t:
        raise ValueError(f"the table has {size} entries, which is no power of two")
    at = index.astype(np.int64) - (-(1 << (bits - 1)) if signed else 0)
    wide = np.append(table, table[-1])
    if table.dtype.kind == "f":
        return _look_up_float(at, wide.astype(np.float32), bits - t)
    wide = wide.astype(np.int64)
    if bits <= t:
        return wide[at]
    low = at >> (bits - t)
    part = at - (low << (bits - t))
    found: Array = wide[low] + (((wide[low + 1] - wide[low]) * part) >> (bits - t))
    return found


def _look_up_float(at: Array, wide: Array, extra: int) -> Array:
    if extra <= 0:
        return wide[at]
    low = at >> extra
    part = (at - (low << extra)).astype(np.float32)
    found: Array = wide[low] + (wide[low + 1] - wide[low]) * part / np.float32(1 << extra)
    return found


def approximate_factor(ratio: Number, bits: int, shift_limit: int = 31) -> tuple[Array, Array]:
    """(multiplier, shift) with multiplier / 2^shift near `ratio`: a multiplier of `bits` bits, at most 15; in float32.

    Where every ratio is one, all multipliers are 1 and all shifts 0. Shifts may be negative.
    """
    ratio = np.asarray(ratio, np.float32)
    width = min(bits, 15)
    with np.errstate(divide="ignore"):
        shift = np.minimum(np.floor(np.log2(np.float32((1 << width) - 1) / ratio)), shift_limit).astype(np.int64)
    multiplier = np.floor(ratio * np.exp2(shift.astype(np.float32)) + np.float32(0.5)).astype(np.int64)
    if np.all(np.abs(multiplier - np.exp2(shift.astype(np.float64))) < 1.2e-7):
        return np.ones_like(multiplier), np.zeros_like(shift)
    return multiplier, shift


@cache
def inverse_root_table() -> Array:
    """32768 / sqrt(1 + i/64) for i = 0..192, at most 32767."""
    return np.minimum(32767, np.rint(32768 / np.sqrt(1 + np.arange(193) / 64))).astype(np.int64)


@cache
def log2_table() -> Array:
    """32768 * log2(1 + i/256) for i = 0..255."""
    found: Array = np.rint(32768 * np.log2(1 + np.arange(256) / 256)).astype(np.int64)
    return found


@cache
def exp2_table() -> Array:
    """32768 * 2^(i/256) for i = 0..255."""
    found: Array = np.rint(32768 * np.exp2(np.arange(256) / 256)).astype(np.int64)
    return found


def normalise(values: Array) -> tuple[Array, Array]:
    """(values shifted left until they are at least 2^30, how far); at most 30 steps."""
    shifts = np.zeros_like(values, dtype=np.int64)
    for _ in range(30):
        shifts += (values << shifts) < 1 << 30
    return values << shifts, shifts


def inverse_root(values: Array) -> Array:
    """About 2^31 / sqrt(v) for v < 2^31, by the table and a linear step; 0 behaves as 1."""
    x, shifts = normalise(np.maximum(values.astype(np.int64), 1))
    exponent = 31 - shifts
    odd = exponent & 1
    x = x >> odd
    exponent = (exponent - 1) >> 1
    x = x >> 7
    at = np.maximum((x >> 16) - 64, 0)
    part = (x >> 1) & 0x7FFF
    table = inverse_root_table()
    step = table[at] - table[np.minimum(at + 1, len(table) - 1)]
    found: Array = ((table[at] << 16) - ((step * part) << 1)) >> exponent
    return found


def log2_fixed(values: Array, fraction_in: int, fraction_out: int) -> Array:
    """log2(v / 2^fraction_in) * 2^fraction_out for 1 <= v < 2^31, by the table."""
    x, shifts = normalise(values.astype(np.int64))
    mantissa = (log2_table()[(x >> 22) & 255] << 15) >> (30 - fraction_out)
    found: Array = mantissa - ((shifts - (30 - fraction_in)) << fraction_out)
    return found


def log2_coarse(values: Array, fraction_in: int, fraction_out: int) -> Array:
    """As `log2_fixed`, to a half (fraction_out 1) or a whole (0) step, without a table."""
    x, shifts = normalise(values.astype(np.int64))
    half = (x > 1518500250).astype(np.int64) if fraction_out else np.zeros_like(x)
    return half - ((shifts - (30 - fraction_in)) << fraction_out)


def exp2_fixed(values: Array, fraction_in: int, fraction_out: int) -> Array:
    """2^(v / 2^fraction_in) * 2^fraction_out for v <= 0, by the table."""
    values = values.astype(np.int64)
    exponent = values >> fraction_in
    at = (values & ((1 << fraction_in) - 1)) >> (fraction_in - 8)
    shift = 30 - fraction_out - exponent
    return shift_right(exp2_table()[at] << 15, np.minimum(shift, 63))


def float24(values: Array) -> Array:
    """float32 with the low eight bits of the word cleared."""
    word = np.ascontiguousarray(values, np.float32).view(np.uint32) & np.uint32(0xFFFFFF00)
    return word.view(np.float32)


@cache
def exp2_table_float() -> Array:
    """2^(k/512) for k = 0..512, in float24."""
    return float24(np.exp2(np.linspace(0, 1, 513, dtype=np.float32)))


def exp2_float(values: Array, table: Array | None = None) -> Array:
    """2^x by a table of 513 entries, in float24; x is limited to -126.9..126.9, NaN counts as 0."""
    table = exp2_table_float() if table is None else table.astype(np.float32)
    x = np.where(np.isnan(values), np.float32(0), np.clip(values.astype(np.float32), -126.9, 126.9)).astype(np.float32)
    whole = np.floor(x)
    mantissa = np.trunc((x - whole) * np.float32(65535)).astype(np.int64)
    at, part = mantissa >> 7, (mantissa & 127).astype(np.float32)
    between = table[at] + (table[at + 1] - table[at]) * part * np.float32(2.0**-7)
    return float24(between * np.exp2(whole))


def look_up_range(
    index: Array, table: Array, scale: float, offset: float, mirrored: bool, value_offset: float
) -> Array:
    """A float table over an interval, linear between entries and beyond its ends; float32.

    The position is index * scale - offset, NaN counts as 0. `mirrored`: of negative positions the negative of the
    value at the positive one. `value_offset` is taken off at last.
    """
    position = np.where(np.isnan(index), np.float32(0), index.astype(np.float32)).astype(np.float32)
    position = position * np.float32(scale) - np.float32(offset)
    if mirrored:
        value = _along(np.abs(position), table)
        return (np.where(position >= 0, value, -value) - np.float32(value_offset)).astype(np.float32)
    return (_along(position, table) - np.float32(value_offset)).astype(np.float32)


def _along(position: Array, table: Array) -> Array:
    table = table.astype(np.float32)
    last = len(table) - 1
    low = np.clip(np.floor(position), 0, last - 1).astype(np.int64)
    inside = table[low] + (table[low + 1] - table[low]) * (position - low.astype(np.float32))
    below = table[0] - (table[1] - table[0]) * (np.float32(0) - position)
    above = table[last] + (table[last] - table[last - 1]) * (position - np.float32(last))
    found: Array = np.where(position < 0, below, np.where(position > last, above, inside)).astype(np.float32)
    return found
