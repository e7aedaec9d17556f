"""What operations give, a second time: written from the language's definition on matrices of one row per vector.

Nothing here uses the declarations' meanings. Integers are computed in 64 bits (with the division in double, exact for
32-bit operands), floating point in double with one correct rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np

from compassc.ir.dtypes import DataType

Array = np.ndarray[Any, Any]
Oracle = Callable[..., Array]

ORACLE: dict[str, Oracle] = {}
"""Operation -> `f(*operands, to=result type, mask=active lanes or None, r=matrix or None, **options)`."""
UNSIGNED_ZERO = ("max", "min", "vrpmax", "vrpmin", "clip")
"""Operations whose choice between -0.0 and 0.0 is not specified (of clip: on scalars)."""
ROWS = {"fma": 400}
"""Operations computed in exact fractions, and how many rows are enough."""


def oracle(function: Oracle) -> Oracle:
    ORACLE[function.__name__.rstrip("_")] = function
    return function


# ------------------------------------------------------------------------------------------------------------- numbers


def kind_of(t: DataType) -> Any:
    return np.dtype(ml_dtypes.bfloat16) if t.is_bfloat else np.dtype(bool if t.is_bool else str(t.element_of))


def limits(t: DataType) -> tuple[int, int]:
    return (-(1 << (t.bits - 1)), (1 << (t.bits - 1)) - 1) if t.is_int else (0, (1 << t.bits) - 1)


def wide(x: Array) -> Array:
    return x.astype(np.int64)


def wrap(x: Array, t: DataType) -> Array:
    """Exact integers modulo 2^bits."""
    low = x.astype(np.int64) & ((1 << t.bits) - 1)
    return (low - ((low >> (t.bits - 1)) << t.bits) if t.is_int else low).astype(kind_of(t))


def clipped(x: Array, t: DataType) -> Array:
    low, high = limits(t)
    return np.where(x < low, low, np.where(x > high, high, x)).astype(kind_of(t))


def rounded(x: Array, t: DataType) -> Array:
    """Doubles in a floating-point type: nearest, ties to even."""
    if not t.is_bfloat:
        return x.astype(kind_of(t))
    near = x.astype(np.float32)
    toward_zero = np.where(np.abs(near.astype(np.float64)) > np.abs(x), np.nextafter(near, np.float32(0)), near)
    bits = toward_zero.view(np.uint32).astype(np.int64) | (toward_zero.astype(np.float64) != x)  # odd when inexact
    up = ((bits & 0xFFFF) > 0x8000) | (((bits & 0xFFFF) == 0x8000) & (bits >> 16 & 1 == 1))
    top = np.where(np.isnan(x), 0x7FC0, (bits >> 16) + up).astype(np.uint16)
    return top.view(ml_dtypes.bfloat16)


def double(x: Array) -> Array:
    return x.astype(np.float64)


def chosen(value: Array, mask: Array | None, other: Array | None) -> Array:
    """`value` in active lanes; without `other` in all of them."""
    return value if mask is None or other is None else np.where(mask, value, other)


def kept(x: Array, mask: Array | None) -> Array:
    """`x` with 0 in inactive lanes."""
    return x if mask is None else np.where(mask, x, 0)


def grouped(x: Array, count: int) -> Array:
    return x.reshape(len(x), -1, count)


# ---------------------------------------------------------------------------------------------------------- arithmetic


def arithmetic(name: str, f: Callable[[Array, Array], Array]) -> None:
    def compute(
        x: Array, y: Array, to: DataType, mask: Any, r: Any, saturate: bool = False, out_sign: Any = None
    ) -> Array:
        if to.is_floating:
            return chosen(rounded(f(double(x), double(y)), to), mask, r)
        if x.dtype == y.dtype == np.uint32 and not saturate:
            return chosen(wrap(f(x.astype(np.uint64), y.astype(np.uint64)), to), mask, r)
        exact = f(wide(x), wide(y))
        return chosen((clipped if saturate else wrap)(exact, to), mask, r)

    ORACLE[name] = compute


arithmetic("vadd", lambda x, y: x + y)
arithmetic("vsub", lambda x, y: x - y)
arithmetic("vmul", lambda x, y: x * y)


def widening(name: str, half: int) -> None:
    def compute(x: Array, y: Array, to: DataType, mask: Any, r: Any, out_sign: Any = None) -> Array:
        lanes = x.shape[1] // 2
        part = slice(half * lanes, (half + 1) * lanes)
        a, b, active = x[:, part], y[:, part], None if mask is None else mask[:, part]
        if x.dtype.itemsize < 4:
            return chosen(wrap(wide(a) * wide(b), to), active, r)
        low_a, high_a = wide(a) & 0xFFFF, wide(a) >> 16  # 64-bit product from 16-bit pieces
        low, high = low_a * wide(b), high_a * wide(b) + (low_a * wide(b) >> 16)
        words = np.stack([wrap((low & 0xFFFF) + (high << 16), to), wrap(high >> 16, to)], axis=2)
        return chosen(words.reshape(len(x), -1), None if active is None else np.repeat(active, 2, axis=1), r)

    ORACLE[name] = compute


widening("vmull", 0)
widening("vmulh", 1)


def quotient(x: Array, y: Array) -> Array:
    """Toward zero; 0 for a divisor of 0. The double quotient of 32-bit integers never rounds up to an integer."""
    safe = np.where(y == 0, 1, y)
    return np.where(y == 0, 0, np.trunc(double(x) / double(safe))).astype(np.int64)


@oracle
def vdiv(x: Array, y: Array, to: DataType, mask: Any, r: Any) -> Array:
    return rounded(double(x) / double(y), to) if to.is_floating else wrap(quotient(x, y), to)


@oracle
def vmod(x: Array, y: Array, to: DataType, mask: Any, r: Any) -> Array:
    return np.where(y == 0, 0, wide(x) - quotient(x, y) * wide(y)).astype(kind_of(to))


@oracle
def abs_(x: Array, to: DataType, mask: Any, r: Any, saturate: bool = False) -> Array:
    if to.is_floating:
        return np.where(np.signbit(x), -x, x)
    size = np.where(wide(x) < 0, -wide(x), wide(x))
    return clipped(size, to) if saturate else wrap(size, to)


@oracle
def rint(x: Array, to: DataType, mask: Any, r: Any) -> Array:
    d = double(x)
    below = np.floor(d)
    part = d - below
    up = (part > 0.5) | ((part == 0.5) & (below % 2 == 1))
    return rounded(np.copysign(np.where(np.isfinite(d), below + up, d), d), to)


@oracle
def clip(x: Array, low: Array, high: Array, to: DataType, mask: Any, r: Any) -> Array:
    if to.is_floating and x.shape[1] > 1:
        at_least = np.where(double(x) < double(low), low, x)
        return chosen(np.where(double(x) > double(high), high, at_least), mask, x)
    return chosen(pick(pick(x, high, True), low, False), mask, x)


def dots(name: str, count: int, accumulate: bool) -> None:
    def compute(*operands: Array, to: DataType, mask: Any, r: Any) -> Array:
        acc, (x, y) = (operands[0], operands[1:]) if accumulate else (None, operands)
        if to.is_floating:
            return floating_dots(acc, x, y, mask)
        total = grouped(kept(wide(x) * wide(y), mask), count).sum(axis=2)
        return clipped(total if acc is None else total + wide(acc), to)

    ORACLE[name] = compute


def floating_dots(acc: Array | None, x: Array, y: Array, mask: Any) -> Array:
    """Sums of four products in double, in even lanes; odd lanes are those of acc."""
    products = grouped(kept(double(x) * double(y), mask), 4)
    total = products[..., 0] + products[..., 1] + products[..., 2] + products[..., 3]
    out = np.zeros((len(x), x.shape[1] // 2), np.float32) if acc is None else acc.copy()
    if acc is not None:
        total = double(acc[:, ::2]) + total
    some = np.ones(total.shape, bool) if mask is None else grouped(mask, 4).any(axis=2)
    out[:, ::2] = np.where(some, total.astype(np.float32), out[:, ::2])
    return out


dots("vdot", 2, False)
dots("vqdot", 4, False)
dots("vdpa", 2, True)
dots("vqdpa", 4, True)


def nearest(exact: Fraction) -> np.float32:
    """The float32 nearest to a fraction, ties to even."""
    near = np.float32(float(exact))
    if not np.isfinite(near):
        return near
    around = [near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))]
    finite = [f for f in around if np.isfinite(f)]
    return min(finite, key=lambda f: (abs(Fraction(float(f)) - exact), int(f.view(np.uint32)) & 1))


@oracle
def fma(acc: Array, x: Array, y: Array, to: DataType, mask: Any, r: Any) -> Array:
    special = double(acc) + double(x) * double(y)
    out = special.astype(np.float32)
    for at in np.argwhere(np.isfinite(out) & np.isfinite(acc) & (special != 0)):
        k = tuple(at)
        out[k] = nearest(Fraction(float(acc[k])) + Fraction(float(x[k])) * Fraction(float(y[k])))
    return chosen(out, mask, acc)


def half_fma(name: str, start: int) -> None:
    def compute(acc: Array, x: Array, y: Array, to: DataType, mask: Any, r: Any) -> Array:
        product = x[:, start::2].astype(np.float32) * y[:, start::2].astype(np.float32)
        return chosen(rounded(double(acc) + double(product), to), mask, acc)

    ORACLE[name] = compute


half_fma("vfmae", 0)
half_fma("vfmao", 1)


def first(value: Array, like: Array, lanes: int) -> Array:
    out = np.zeros((len(like), lanes), value.dtype)
    out[:, 0] = value
    return out


@oracle
def vrpadd(x: Array, to: DataType, mask: Any, r: Any) -> Array:
    if not to.is_floating:
        return first(wrap(kept(wide(x), mask).sum(axis=1), to), x, to.lanes)
    a = kept(x.astype(np.float32), mask)
    b = a[:, :8] + a[:, 8:] if a.shape[1] == 16 else a
    pairs = b[:, ::2] + b[:, 1::2]
    return first((pairs[:, 0] + pairs[:, 1]) + (pairs[:, 2] + pairs[:, 3]) + np.float32(0), x, to.lanes)


# ------------------------------------------------------------------------------------------------- comparison, selection


def comparison(name: str, f: Callable[[Array, Array], Array]) -> None:
    def compute(x: Array, y: Array, to: DataType, mask: Any, r: Any) -> Array:
        a, b = (wide(x), wide(y)) if x.dtype.kind in "iu" else (double(x), double(y))
        return f(a, b) if mask is None else f(a, b) & mask

    ORACLE[name] = compute


comparison("vceq", lambda x, y: (x <= y) & (x >= y))
comparison("vcneq", lambda x, y: ~((x <= y) & (x >= y)))
comparison("vcge", lambda x, y: (y < x) | (x == y))
comparison("vcgt", lambda x, y: y < x)
comparison("vcle", lambda x, y: (x < y) | (x == y))
comparison("vclt", lambda x, y: x < y)


def classes(name: str, f: Callable[[Array, int, int], Array]) -> None:
    """Tests on the bits: exponent field and fraction field."""

    def compute(x: Array, to: DataType, mask: Any, r: Any) -> Array:
        bits = x.view(f"u{x.dtype.itemsize}").astype(np.int64)
        digits = 7 if x.dtype == ml_dtypes.bfloat16 else {2: 10, 4: 23}[x.dtype.itemsize]
        top = (1 << (x.dtype.itemsize * 8 - 1 - digits)) - 1
        found = f(bits & ((1 << (x.dtype.itemsize * 8 - 1)) - 1), top << digits, digits)
        return found if mask is None else found & mask

    ORACLE[name] = compute


classes("isnan", lambda size, infinity, digits: size > infinity)
classes("isinf", lambda size, infinity, digits: size == infinity)
classes("isfinite", lambda size, infinity, digits: size < infinity)


def pick(x: Array, y: Array, smaller: bool) -> Array:
    """The larger or smaller; of a number and a NaN the number."""
    a, b = (wide(x), wide(y)) if x.dtype.kind in "iu" else (double(x), double(y))
    return np.where((a < b if smaller else a > b) | np.isnan(b), x, y)


def extreme(name: str, smaller: bool) -> None:
    ORACLE[name] = lambda x, y, to, mask, r: chosen(pick(x, y, smaller), mask, r)


def pairwise(name: str, f: Callable[[Array, Array, DataType], Array]) -> None:
    def compute(x: Array, y: Array, to: DataType, mask: Any, r: Any) -> Array:
        return np.concatenate([f(v[:, ::2], v[:, 1::2], to) for v in (x, y)], axis=1)

    ORACLE[name] = compute


def reduction(name: str, smaller: bool) -> None:
    def compute(x: Array, to: DataType, mask: Any, r: Any, return_idx: bool = False) -> Array:
        active = np.ones(x.shape, bool) if mask is None else mask
        number = active & ~(np.isnan(x) if to.is_floating else False)
        key = double(x) if smaller else -double(x)
        best = np.where(number, key, np.inf).min(axis=1, keepdims=True)
        at = np.argmax(number & (key == best), axis=1)
        taken = np.where(number.any(axis=1), at, np.argmax(active, axis=1))  # only NaN: that
        out = first(np.take_along_axis(x, taken[:, None], 1)[:, 0], x, to.lanes)
        if return_idx:
            out.view(f"u{x.dtype.itemsize}")[:, 1] = at
        return out

    ORACLE[name] = compute


for _name, _smaller in (("max", False), ("min", True)):
    extreme(_name, _smaller)
    pairwise(f"v{_name}h", lambda x, y, to, s=_smaller: pick(x, y, s))
    reduction(f"vrp{_name}", _smaller)
pairwise("vaddh", lambda x, y, to: clipped(wide(x) + wide(y), to))
pairwise("vsubh", lambda x, y, to: clipped(wide(x) - wide(y), to))


@oracle
def vsel(x: Array, y: Array, to: DataType, mask: Any, r: Any) -> Array:
    return chosen(x, mask, y)


@oracle
def vrevs(x: Array, to: DataType, mask: Any, r: Any) -> Array:
    return x[:, np.arange(x.shape[1])[::-1]]


def part_of(x: Array, part: str) -> Array:
    half = x.shape[1] // 2
    return {"all": x, "low": x[:, :half], "high": x[:, half:], "even": x[:, ::2], "odd": x[:, 1::2]}[part]


@oracle
def vzip(x: Array, y: Array, to: DataType, mask: Any, r: Any, part: str = "all") -> Array:
    out = np.zeros((len(x), to.lanes), x.dtype)
    out[:, ::2], out[:, 1::2] = part_of(x, part), part_of(y, part)
    return out


# ------------------------------------------------------------------------------------------------------ bits and shifts


def unsigned(x: Array) -> Array:
    """The bits of elements as non-negative int64."""
    return wide(x) if x.dtype.kind in "ub" else wide(x) & ((1 << (x.dtype.itemsize * 8)) - 1)


def logic(name: str, f: Callable[..., Array]) -> None:
    def compute(*operands: Array, to: DataType, mask: Any, r: Any) -> Array:
        if to.is_bool:
            out = (f(*map(wide, operands)) & 1).astype(bool)
            return out if mask is None else out & mask
        return wrap(f(*map(unsigned, operands)), to)

    ORACLE[name] = compute


logic("vand", lambda x, y: x & y)
logic("vor", lambda x, y: x | y)
logic("vxor", lambda x, y: (x | y) - (x & y))
logic("vinv", lambda x: -x - 1)


def shifted(x: Array, shift: Array, with_round: bool) -> Array:
    """x / 2^shift rounded down, or to nearest with ties to even; `shift` is read as unsigned."""
    by = np.where(unsigned(shift) > 40, 40, unsigned(shift))
    down = wide(x) >> by
    if not with_round:
        return down
    rest, unit = wide(x) - (down << by), np.int64(1) << by
    return down + ((2 * rest > unit) | ((2 * rest == unit) & (down % 2 == 1)))


@oracle
def vsr(x: Array, shift: Array, to: DataType, mask: Any, r: Any, with_round: bool = False) -> Array:
    return chosen(wrap(shifted(x, shift, with_round), to), mask, r)


@oracle
def vsl(x: Array, shift: Array, to: DataType, mask: Any, r: Any, saturate: bool = False) -> Array:
    by = np.where(unsigned(shift) > to.bits, to.bits, unsigned(shift))
    if not saturate:
        return chosen(wrap(np.where(by == to.bits, 0, unsigned(x) << by), to), mask, r)
    low, high = limits(to)
    fits = (by < to.bits) & (wide(x) >= low >> by) & (wide(x) <= high >> by)
    limit = np.where(x < 0, low, np.where(x > 0, high, 0))
    return chosen(np.where(fits, wide(x) << by, limit).astype(x.dtype), mask, r)


@oracle
def vror(x: Array, shift: Array, to: DataType, mask: Any, r: Any) -> Array:
    by = unsigned(shift) % to.bits
    doubled = unsigned(x) if to.bits == 32 else unsigned(x) | unsigned(x) << to.bits
    if to.bits == 32:
        return wrap((unsigned(x) >> by) | ((unsigned(x) & ((np.int64(1) << by) - 1)) << (32 - by)), to)
    return wrap(doubled >> by, to)


@oracle
def vnsr(
    x: Array, shift: Array, to: DataType, mask: Any, r: Any, saturate: bool = False, out_sign: Any = None,
    with_round: bool = False, to_h: bool = False,
) -> Array:  # fmt: skip
    value = shifted(x, shift, with_round)
    out = np.zeros((len(x), to.lanes), kind_of(to))
    out[:, :: to.lanes // x.shape[1]] = kept((clipped if saturate else wrap)(value, to), mask)
    return out


@oracle
def vnsrsr(x: Array, shift: Array, to: DataType, mask: Any, r: Any, out_sign: Any = None, to_h: bool = False) -> Array:
    return vnsr(x, shift, to, mask, r, saturate=True, with_round=True)


def bit_length(x: Array) -> Array:
    """Bits of non-negative integers up to the highest 1: the exponent of an exact double."""
    return np.frexp(x.astype(np.float64))[1].astype(np.int64)


@oracle
def vcls(x: Array, to: DataType, mask: Any, r: Any, out_sign: Any = None) -> Array:
    return (to.bits - 1 - bit_length(np.where(wide(x) < 0, -wide(x) - 1, wide(x)))).astype(kind_of(to))


@oracle
def clz(x: Array, to: DataType, mask: Any, r: Any) -> Array:
    return (to.bits - bit_length(unsigned(x))).astype(kind_of(to))


BYTE_REVERSED = np.array([int(f"{v:08b}"[::-1], 2) for v in range(256)], np.uint8)
BYTE_ONES = np.array([f"{v:b}".count("1") for v in range(256)], np.uint8)


@oracle
def vbrevs(x: Array, to: DataType, mask: Any, r: Any) -> Array:
    data = BYTE_REVERSED[np.ascontiguousarray(x).view(np.uint8)]
    return data.reshape(*x.shape, to.bytes)[..., ::-1].reshape(len(x), -1).copy().view(x.dtype)


@oracle
def vpcnt(x: Array, to: DataType, mask: Any, r: Any, out_sign: Any = None) -> Array:
    data = BYTE_ONES[np.ascontiguousarray(x).view(np.uint8)]
    return data.reshape(*x.shape, to.bytes).sum(axis=2).astype(kind_of(to))


@oracle
def vxtl(x: Array, to: DataType, mask: Any, r: Any) -> Array:
    return wrap(wide(part_of(x, "low")), to)


@oracle
def vxth(x: Array, to: DataType, mask: Any, r: Any) -> Array:
    return wrap(wide(part_of(x, "high")), to)


@oracle
def vall(x: Array, to: DataType, mask: Any, r: Any) -> Array:
    return x.all(axis=1, keepdims=True)


@oracle
def vany(x: Array, to: DataType, mask: Any, r: Any) -> Array:
    return x.any(axis=1, keepdims=True)


# ------------------------------------------------------------------------------------------------------- exact functions


def exact_function(name: str, f: Callable[[Array], Array]) -> None:
    ORACLE[name] = lambda x, to, mask, r: rounded(f(double(x)), to)


exact_function("sqrt", np.sqrt)
exact_function("floor", np.floor)
exact_function("ceil", np.ceil)


@oracle
def ceildiv(x: Array, y: Array, to: DataType, mask: Any, r: Any) -> Array:
    return wrap(quotient(wrap(wide(wrap(wide(x) + wide(y), to)) - 1, to), y), to)


# ---------------------------------------------------------------------------------------------------------- conversions


def integer_of(x: Array) -> Array:
    """Floating point toward int32: NaN is 0, clamped, truncated."""
    d = double(x)
    d = np.where(np.isnan(d), 0.0, np.minimum(np.maximum(d, -(2.0**31)), 2.0**31 - 1))
    return np.where(d < 0, np.ceil(d), np.floor(d)).astype(np.int64)


def cast(x: Array, to: DataType, saturate: bool = False) -> Array:
    """Elements converted to another type."""
    if x.dtype.kind in "iu":
        if to.is_integer:
            return clipped(wide(x), to) if saturate else wrap(wide(x), to)
        return rounded(double(x), to)
    return wrap(integer_of(x), to) if to.is_integer else rounded(double(x), to)
