"""Exact arithmetic, what the definitions of operations are written with.

A definition computes on matrices with one row per vector (of scalars: one column). Integers are computed in 64 bits,
floating point in double with one correct rounding. Nothing here is shared with PySim or the C headers: the three are
held against each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from compass_core.arrays import Array
from compass_core.lazy import LazyModule, np

from ..ir.dtypes import DataType
from .numeric import np_dtype

if TYPE_CHECKING:
    import fractions

    import ml_dtypes
else:
    ml_dtypes, fractions = LazyModule("ml_dtypes"), LazyModule("fractions")

Lanes = TypeVar("Lanes", Array, "Array | None")

# ------------------------------------------------------------------------------------------------------------- numbers


def wide(x: Array) -> Array:
    """Integers in 64 bits."""
    return x.astype(np.int64)


def double(x: Array) -> Array:
    """Floating-point numbers in double."""
    return x.astype(np.float64)


def number(x: Array) -> Array:
    """Integers in 64 bits, floating-point numbers in double."""
    return wide(x) if x.dtype.kind in "iu" else double(x)


def unsigned(x: Array) -> Array:
    """The bits of elements as non-negative 64-bit integers."""
    return wide(x) if x.dtype.kind in "ub" else wide(x) & ((1 << (x.dtype.itemsize * 8)) - 1)


def wrapped(x: Array, to: DataType) -> Array:
    """Exact integers modulo 2**bits."""
    low = x.astype(np.int64) & ((1 << to.bits) - 1)
    return (low - ((low >> (to.bits - 1)) << to.bits) if to.is_int else low).astype(np_dtype(to))


def clipped(x: Array, to: DataType) -> Array:
    """Exact integers, the nearest that the type holds."""
    low, high = to.range()
    return np.where(x < low, low, np.where(x > high, high, x)).astype(np_dtype(to))


def fitted(x: Array, to: DataType, saturate: bool) -> Array:
    """Exact integers in a type: clipped with `saturate`, else modulo 2**bits."""
    return clipped(x, to) if saturate else wrapped(x, to)


def rounded(x: Array, to: DataType) -> Array:
    """Doubles in a floating-point type: nearest, ties to even."""
    if not to.is_bfloat:
        return x.astype(np_dtype(to))
    near = x.astype(np.float32)
    toward_zero = np.where(np.abs(near.astype(np.float64)) > np.abs(x), np.nextafter(near, np.float32(0)), near)
    bits = toward_zero.view(np.uint32).astype(np.int64) | (toward_zero.astype(np.float64) != x)  # odd when inexact
    up = ((bits & 0xFFFF) > 0x8000) | (((bits & 0xFFFF) == 0x8000) & (bits >> 16 & 1 == 1))
    top = np.where(np.isnan(x), 0x7FC0, (bits >> 16) + up).astype(np.uint16)
    return top.view(ml_dtypes.bfloat16)


def nearest(exact: fractions.Fraction) -> np.float32:
    """The float32 nearest to a fraction, ties to even."""
    near = np.float32(float(exact))
    if not np.isfinite(near):
        return near
    around = [near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))]
    finite = [f for f in around if np.isfinite(f)]
    return min(finite, key=lambda f: (abs(fractions.Fraction(float(f)) - exact), int(f.view(np.uint32)) & 1))


def fused(acc: Array, x: Array, y: Array) -> Array:
    """acc + x*y of float32 matrices with a single rounding, in fractions where numbers are finite."""
    special = double(acc) + double(x) * double(y)
    out: Array = special.astype(np.float32)
    for at in map(tuple, np.argwhere(np.isfinite(out) & np.isfinite(acc) & (special != 0))):
        a, b, c = (fractions.Fraction(float(v[at])) for v in (acc, x, y))
        out[at] = nearest(a + b * c)
    return out


def integer_of(x: Array) -> Array:
    """Floating point toward int32: NaN is 0, clamped, truncated."""
    d = double(x)
    d = np.where(np.isnan(d), 0.0, np.minimum(np.maximum(d, -(2.0**31)), 2.0**31 - 1))
    return np.where(d < 0, np.ceil(d), np.floor(d)).astype(np.int64)


def converted(x: Array, to: DataType, saturate: bool = False) -> Array:
    """Elements converted to another type."""
    if x.dtype.kind in "iu":
        return fitted(wide(x), to, saturate) if to.is_integer else rounded(double(x), to)
    return wrapped(integer_of(x), to) if to.is_integer else rounded(double(x), to)


def magnitude(x: Array) -> tuple[Array, int]:
    """The bits of floating-point numbers without sign, and those of infinity."""
    bits = x.view(f"u{x.dtype.itemsize}").astype(np.int64)
    width = x.dtype.itemsize * 8
    digits = 7 if x.dtype == ml_dtypes.bfloat16 else {16: 10, 32: 23}[width]
    return bits & ((1 << (width - 1)) - 1), ((1 << (width - 1 - digits)) - 1) << digits


def bit_length(x: Array) -> Array:
    """Bits of non-negative integers up to the highest 1: the exponent of an exact double."""
    return np.frexp(x.astype(np.float64))[1].astype(np.int64)


# --------------------------------------------------------------------------------------------------------------- lanes


def chosen(value: Array, mask: Array | None, other: Array | None) -> Array:
    """`value` in active lanes, `other` elsewhere; without `other` it is `value` everywhere."""
    return value if mask is None or other is None else np.where(mask, value, other)


def kept(x: Array, mask: Array | None) -> Array:
    """`x` with 0 in inactive lanes."""
    return x if mask is None else np.where(mask, x, np.zeros_like(x))


def half_of(x: Lanes, part: str) -> Lanes:
    """The lanes of a half of each row; of None None."""
    if x is None or part == "all":
        return x
    half = x.shape[1] // 2
    return {"low": x[:, :half], "high": x[:, half:], "even": x[:, ::2], "odd": x[:, 1::2]}[part]


def neighbours(f: Callable[[Array, Array], Array], x: Array, y: Array) -> Array:
    """`f` of each two neighbouring lanes of x, then of y."""
    return np.concatenate([f(v[:, ::2], v[:, 1::2]) for v in (x, y)], axis=1)


def in_lane_0(value: Array, to: DataType) -> Array:
    """Rows with a value in lane 0, which is 0 elsewhere."""
    out = np.zeros((len(value), to.lanes), value.dtype)
    out[:, 0] = value
    return out


def registers(x: Array, lanes: int) -> Iterator[Array]:
    """Each row cut into registers of so many lanes; those that the last one has more are 0."""
    whole = np.pad(x, ((0, 0), (0, -x.shape[1] % lanes)))
    for start in range(0, whole.shape[1], lanes):
        yield whole[:, start : start + lanes]


# ---------------------------------------------------------------------------------------------- what families share


def larger(x: Array, y: Array) -> Array:
    """The larger one; of a number and a NaN the number."""
    return np.where((number(x) > number(y)) | np.isnan(number(y)), x, y)


def smaller(x: Array, y: Array) -> Array:
    """The smaller one; of a number and a NaN the number."""
    return np.where((number(x) < number(y)) | np.isnan(number(y)), x, y)


def quotient(x: Array, y: Array) -> Array:
    """Toward zero; 0 for a divisor of 0. The double quotient of 32-bit integers never rounds up to an integer."""
    safe = np.where(y == 0, 1, y)
    return np.where(y == 0, 0, np.trunc(double(x) / double(safe))).astype(np.int64)


def products(x: Array, y: Array, mask: Array | None, to: DataType, r: Array | None) -> Array:
    """Products in twice the width; 64-bit ones in two lanes, the low word first."""
    if x.dtype.itemsize < 4:
        return chosen(wrapped(wide(x) * wide(y), to), mask, r)
    low, high = (wide(x) & 0xFFFF) * wide(y), (wide(x) >> 16) * wide(y)  # from 16-bit pieces
    high = high + (low >> 16)
    words = np.stack([wrapped((low & 0xFFFF) + (high << 16), to), wrapped(high >> 16, to)], axis=2)
    return chosen(words.reshape(len(x), -1), None if mask is None else np.repeat(mask, 2, axis=1), r)


def group_sums(x: Array, y: Array, mask: Array | None, count: int) -> Array:
    """Sums of the active products of each `count` neighbouring lanes."""
    found: Array = kept(wide(x) * wide(y), mask).reshape(len(x), -1, count).sum(axis=2)
    return found


def quad_sums(acc: Array | None, x: Array, y: Array, mask: Array | None) -> Array:
    """`acc` with the sums of four products each, in double, added in even lanes; a group without active lane adds none."""
    four = kept(double(x) * double(y), mask).reshape(len(x), -1, 4)
    total = four[..., 0] + four[..., 1] + four[..., 2] + four[..., 3]
    out = np.zeros((len(x), x.shape[1] // 2), np.float32) if acc is None else acc.copy()
    if acc is not None:
        total = double(acc[:, ::2]) + total
    some = np.ones(total.shape, bool) if mask is None else mask.reshape(len(x), -1, 4).any(axis=2)
    out[:, ::2] = np.where(some, total.astype(np.float32), out[:, ::2])
    return out


def half_product(x: Array, y: Array, start: int) -> Array:
    """Products of every second lane in float32, where those of 16-bit types are exact or rounded once."""
    return x[:, start::2].astype(np.float32) * y[:, start::2].astype(np.float32)


def best_lane(x: Array, to: DataType, mask: Array | None, return_idx: bool, smallest: bool) -> Array:
    """The best active number in lane 0, and with `return_idx` its lowest lane in lane 1.

    Found by halves, the lower one against the upper one, which tells which of -0.0 and 0.0 it is: of equal ones the upper.
    """
    active = np.ones(x.shape, bool) if mask is None else mask
    never = np.nan if to.is_floating else to.range()[1 if smallest else 0]
    best = np.where(active, x, np.asarray(never).astype(x.dtype))
    while best.shape[1] > 1:
        best = (smaller if smallest else larger)(*np.split(best, 2, axis=1))
    out = in_lane_0(best[:, 0], to)
    if return_idx:
        out.view(f"u{x.dtype.itemsize}")[:, 1] = np.argmax(active & (number(x) == number(best)), axis=1)
    return out


def of_bits(f: Callable[..., Array], to: DataType, mask: Array | None, *operands: Array) -> Array:
    """A function of the bits: of integers, or of masks, which are false in inactive lanes."""
    if to.is_bool:
        return kept((f(*map(wide, operands)) & 1).astype(bool), mask)
    return wrapped(f(*map(unsigned, operands)), to)


def shifted(x: Array, shift: Array, with_round: bool) -> Array:
    """x / 2**shift rounded down, or to nearest with ties to even; `shift` is read as unsigned."""
    by = np.minimum(unsigned(shift), 40)
    down = wide(x) >> by
    if not with_round:
        return down
    rest, unit = wide(x) - (down << by), np.int64(1) << by
    found: Array = down + ((2 * rest > unit) | ((2 * rest == unit) & (down % 2 == 1)))
    return found


def narrowed(value: Array, to: DataType, mask: Array | None) -> Array:
    """Values in the low slots of their old places, with 0 between them and where inactive."""
    out = np.zeros((len(value), to.lanes), value.dtype)
    out[:, :: to.lanes // value.shape[1]] = kept(value, mask)
    return out


def _pairs_of_bits(width: int, step: int) -> int:
    """Ones where groups of `step` bits have an even number."""
    return ((1 << width) - 1) // ((1 << step) + 1)


def reversed_bits(x: Array, width: int) -> Array:
    """The bits of integers in reverse order: halves are exchanged, then quarters, and so on."""
    out, step = unsigned(x), width // 2
    while step:
        even = _pairs_of_bits(width, step)
        out, step = (out & even) << step | (out >> step & even), step // 2
    return out


def ones(x: Array, width: int) -> Array:
    """How many bits of integers are 1: those of neighbouring groups are added, then of twice as wide ones, and so on."""
    out, step = unsigned(x), 1
    while step < width:
        even = _pairs_of_bits(width, step)
        out, step = (out & even) + (out >> step & even), step * 2
    return out
