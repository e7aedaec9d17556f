"""What each builtin means, in NumPy: rows (C expression, operand types, result type, reference).

A reference gets x, y, r as arrays of vectors (one row each) in the operand's dtype, m as booleans, and returns the
result's lanes, which must agree bit for bit (any NaN equals any NaN). Integer references compute in int64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Vector:
    """A native vector type: its C name, dtype and mask type."""

    name: str
    dtype: Any
    mask: str

    @property
    def lanes(self) -> int:
        return 32 // int(np.dtype(self.dtype).itemsize)

    @property
    def bits(self) -> int:
        return 256 // self.lanes


I8, U8 = Vector("char32", np.int8, "bool32"), Vector("uchar32", np.uint8, "bool32")
I16, U16 = Vector("short16", np.int16, "bool16"), Vector("ushort16", np.uint16, "bool16")
I32, U32 = Vector("int8", np.int32, "bool8"), Vector("uint8", np.uint32, "bool8")
F16, BF16 = Vector("half16", np.float16, "bool16"), Vector("bf1616", ml_dtypes.bfloat16, "bool16")
F32 = Vector("float8", np.float32, "bool8")
SIGNED, UNSIGNED, FLOATS = (I8, I16, I32), (U8, U16, U32), (F16, BF16, F32)
INTS, ALL = SIGNED + UNSIGNED, SIGNED + UNSIGNED + FLOATS
UNSIGNED_OF = dict(zip(INTS, UNSIGNED * 2, strict=True))
SIGNED_OF = dict(zip(INTS + FLOATS, SIGNED * 2 + (I16, I16, I32), strict=True))
WIDE = {I8: I16, U8: U16, I16: I32, U16: U32, I32: I32, U32: U32}


@dataclass(frozen=True)
class Row:
    """One builtin on one choice of types. `y_max` bounds small second operands such as shift amounts."""

    expression: str
    x: Vector
    y: Vector
    r: Vector
    out: Vector
    reference: Callable[[Array, Array, Array, Array], Array]
    mask: str = ""

    @property
    def id(self) -> str:
        return f"{self.expression} {self.x.name} {self.y.name} {self.out.name}"


def limits(v: Vector) -> tuple[int, int]:
    info = np.iinfo(v.dtype)
    return int(info.min), int(info.max)


def sat(values: Array, v: Vector) -> Array:
    return np.clip(values, *limits(v)).astype(v.dtype)


def wrap(values: Array, v: Vector) -> Array:
    return np.asarray(values).astype(np.int64).astype(v.dtype)


def wide(a: Array) -> Array:
    return a.astype(np.int64)


def shift_of(s: Array, v: Vector) -> Array:
    """Shift amounts as the unsigned numbers the hardware reads, cut where more makes no difference."""
    return np.minimum(s.view(UNSIGNED_OF[v].dtype).astype(np.int64), 40)


def round_even(x: Array, s: Array) -> Array:
    """round_even(x / 2^s), exactly."""
    return np.where(s == 0, x, np.rint(x.astype(np.float64) / np.exp2(s.astype(np.float64)))).astype(np.int64)


def select(m: Array, a: Array, b: Array) -> Array:
    return np.where(m, a, b)


def bit_count(x: Array, v: Vector) -> Array:
    raw = np.ascontiguousarray(x).view(UNSIGNED_OF[v].dtype)
    return np.unpackbits(raw[..., None].view(np.uint8), axis=-1).sum(axis=-1).reshape(x.shape)


def bits_of(x: Array, v: Vector) -> Array:
    """The bits of each element, most significant first."""
    raw = np.ascontiguousarray(x).view(UNSIGNED_OF[v].dtype).astype(np.uint64)
    return np.stack([(raw >> np.uint64(v.bits - 1 - i)) & np.uint64(1) for i in range(v.bits)], axis=-1).astype(
        np.int64
    )


def from_bits(bits: Array, v: Vector) -> Array:
    weights = 1 << np.arange(v.bits - 1, -1, -1, dtype=np.int64)
    return (bits * weights).sum(axis=-1).astype(UNSIGNED_OF[v].dtype).view(v.dtype)


def leading(bits: Array) -> Array:
    """How many leading bits are 0."""
    return np.cumprod(1 - bits, axis=-1).sum(axis=-1)


def truncated_quotient(x: Array, y: Array) -> Array:
    safe = np.where(y == 0, 1, wide(y))
    q = np.abs(wide(x)) // np.abs(safe)
    return np.where((wide(x) < 0) != (safe < 0), -q, q)


def number_of_two(x: Array, y: Array, pick: Any) -> Array:
    """Minimum or maximum where a NaN loses against a number."""
    ordered = pick(x.astype(np.float32), y.astype(np.float32)).astype(x.dtype)
    return np.where(np.isnan(x), y, np.where(np.isnan(y), x, ordered))


def shuffle(index: Callable[[int, int], int]) -> Callable[[Array, Array, Array, Array], Array]:
    def reference(x: Array, y: Array, r: Array, m: Array) -> Array:
        lanes = x.shape[1]
        return np.concatenate([x, y], axis=1)[:, [index(i, lanes) for i in range(lanes)]]

    return reference


def pairs(x: Array, y: Array, op: Any, v: Vector) -> Array:
    both = np.concatenate([wide(x), wide(y)], axis=1)
    return sat(op(both[:, 0::2], both[:, 1::2]), v)


def dot(x: Array, y: Array, m: Array, group: int, start: Array, out: Vector, otherwise: Array | None) -> Array:
    products = np.where(m, wide(x) * wide(y), 0).reshape(x.shape[0], -1, group)
    total = sat(start + products.sum(axis=-1), out)
    any_active = m.reshape(x.shape[0], -1, group).any(axis=-1)
    return total if otherwise is None else np.where(any_active, total, otherwise)


def spread(values: Array, q: int, out: Vector) -> Array:
    """Narrow results placed in the first of every q lanes, zeros elsewhere."""
    lanes = np.zeros((values.shape[0], values.shape[1] * q), dtype=out.dtype)
    lanes[:, ::q] = values
    return lanes


def compress(x: Array, m: Array, rest: Array) -> Array:
    out = np.empty_like(x)
    for i in range(len(x)):
        out[i] = np.concatenate([x[i][m[i]], rest[i]])[: x.shape[1]]
    return out


def table(
    size: int, source: Callable[[Array, Array, Array], list[Array]]
) -> Callable[[Array, Array, Array, Array], Array]:
    def reference(x: Array, y: Array, r: Array, m: Array) -> Array:
        entries = np.concatenate(source(x, r, x[:, ::-1]), axis=1)
        index = wide(y)
        inside = index < entries.shape[1]
        return np.where(inside, np.take_along_axis(entries, np.where(inside, index, 0), axis=1), np.zeros((), x.dtype))

    return reference


def to_int(x: Array) -> Array:
    """float -> int32 of whole or cut values: saturating, NaN to 0."""
    value = np.trunc(np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=2.0**40, neginf=-(2.0**40)))
    return np.clip(value, -(2.0**31), 2.0**31 - 1).astype(np.int32)


def float_class(x: Array, v: Vector) -> Array:
    mantissa = {F16: 10, BF16: 7, F32: 23}[v]
    raw = bits_of(x.view(SIGNED_OF[v].dtype), SIGNED_OF[v])
    sign, exponent, fraction = raw[..., 0], raw[..., 1 : v.bits - mantissa], raw[..., v.bits - mantissa :]
    top, zero, empty = exponent.all(-1), ~exponent.any(-1), ~fraction.any(-1)
    size = np.select([top & empty, zero & empty, zero], [3, 0, 1], 2)
    code = np.where(sign == 1, np.array([0x20, 0x10, 0x8, 0x4])[size], np.array([0x40, 0x80, 0x100, 0x200])[size])
    return np.where(top & ~empty, np.where(fraction[..., 0] == 1, 2, 1), code).astype(SIGNED_OF[v].dtype)


def fma(a: Any, b: Any, c: Any) -> Array:
    """a * b + c of float32 values, rounded once.

    The product is exact in float64. What the float64 sum loses moves an even last bit to the odd neighbour on its
    side, so that the second rounding cannot take an inexact sum for a tie.
    """
    product, c = np.asarray(a, np.float64) * np.asarray(b, np.float64), np.asarray(c, np.float64)
    total = np.asarray(product + c)
    back = total - product
    lost = (product - (total - back)) + (c - back)
    move = np.isfinite(total) & np.isfinite(lost) & (lost != 0) & (total.view(np.int64) % 2 == 0)
    return np.where(move, np.nextafter(total, np.copysign(np.inf, lost)), total).astype(np.float32)


def exp(x: Array) -> Array:
    """The device's algorithm."""
    f = np.float32
    hexa = float.fromhex
    a = np.where((x < hexa("-0x1.5d589ep+6")) | (x >= hexa("0x1.62e430p+6")) | np.isnan(x), f(0), x)
    p = np.trunc(fma(a, hexa("0x1.715476p+0"), np.where(a < 0, -0.5, 0.5)))
    t = fma(p, -hexa("0x1.62e300p-1"), a) - p * f(hexa("0x1.2fefa2p-17"))
    s = t * t
    c = fma(s, hexa("0x1.637698p-25"), -hexa("0x1.bbd41cp-20"))
    for constant in ("0x1.1566aap-14", "-0x1.6c16c2p-9", "0x1.555556p-3"):
        c = fma(s, c, hexa(constant))
    v = fma(s, -c, t)
    with np.errstate(over="ignore"):
        y = ((f(1) + t) + (t * v) / (f(2) - v)) * np.exp2(p.astype(np.float64)).astype(f)
    y = np.where(x >= hexa("0x1.62e430p+6"), f("inf"), np.where(x < hexa("-0x1.5d589ep+6"), f(0), y))
    return np.where(np.isnan(x), x, y)


def rsqrt(x: Array) -> Array:
    return np.where((x == 0) | np.isneginf(x), np.float32(1) / np.sqrt(x), np.sqrt(np.float32(1) / x))


def in_double(f: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda x: f(x.astype(np.float64)).astype(np.float32)


def erf(x: Array) -> Array:
    import math

    return np.vectorize(math.erf, otypes=[np.float64])(x)


def tree_sum(a: Array) -> Array:
    while a.shape[1] > 1:
        a = a[:, 0::2] + a[:, 1::2]
    return np.float32(0) + a


def lane0(values: Array, out: Vector) -> Array:
    lanes = np.zeros((len(values), out.lanes), dtype=out.dtype)
    lanes[:, 0] = values
    return lanes
