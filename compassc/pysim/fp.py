"""Floating-point arithmetic on NumPy arrays, rounded exactly as the compiled code rounds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compass_core.arrays import Array
from compassc.ir.dtypes import DataType
from compassc.ops.numeric import np_dtype


def narrow(x: Array, dtype: DataType) -> Array:
    """A float32 result in the element type of `dtype`: one more rounding for the 16-bit types."""
    return x.astype(np_dtype(dtype))


def in_float(f: Callable[..., Array], dtype: DataType, *arrays: Array) -> Array:
    """`f` computed in float32, rounded once to a 16-bit element type."""
    return narrow(f(*(a.astype(np.float32) for a in arrays)), dtype)


def in_double(f: Callable[..., Array], dtype: DataType, *arrays: Array) -> Array:
    """`f` computed in double and rounded to float32, then to a 16-bit element type."""
    return narrow(np.asarray(f(*(a.astype(np.float64) for a in arrays))).astype(np.float32), dtype)


_BEHIND = (1 << 29) - 1
"""The bits of a double that float32 does not have."""
_TINY = float.fromhex("0x1p-125")
"""Sums as small as this may have fewer bits in float32."""


def _doubtful(totals: Array) -> Array:
    """Which sums of doubles could round to another float32 than the exact sums: those that seem to lie half-way."""
    found: Array = (totals.view(np.int64) & _BEHIND) == (_BEHIND + 1) // 2
    return found | (np.abs(totals) < _TINY)


def _error(total: Array, product: Array, addend: Array) -> Array:
    """What a sum in double lacks of the exact one."""
    part = total - product
    error: Array = (product - (total - part)) + (addend - part)
    return error


def fma(x: Array, y: Array, acc: Array) -> Array:
    """`x*y + acc` of float32 arrays with one rounding.

    The product is exact in double. The sum is rounded to odd there: when it is inexact, the neighbour with an odd last
    bit stands for everything between its even neighbours, so the final rounding to float32 sees which side it was on.
    """
    product, addend = x.astype(np.float64) * y.astype(np.float64), np.asarray(acc, dtype=np.float64)
    total = np.asarray(product + addend)
    if not _doubtful(total).any():
        return total.astype(np.float32)
    error = _error(total, product, addend)
    if not error.any():
        return total.astype(np.float32)
    even = (total.view(np.int64) & 1) == 0
    inexact = np.isfinite(total) & (error != 0) & even
    return np.where(inexact, np.nextafter(total, np.copysign(np.inf, error)), total).astype(np.float32)


def fused_product(x: Array, y: Array, acc: Array) -> Array:
    """`acc + x @ y` of float32 matrices, where `acc = fma(x[:, k], y[k], acc)` for k = 0, 1, ..."""
    products = x.T[:, :, None].astype(np.float64) * y[:, None, :].astype(np.float64)
    totals = np.empty_like(products)
    total, wide = acc.copy(), acc.astype(np.float64)
    for product, step in zip(products, totals):
        np.add(product, wide, step)
        total[...] = step
        wide[...] = total
    doubtful = _doubtful(totals)
    if not doubtful.any():
        return total
    addends = np.concatenate([acc[None], totals[:-1].astype(np.float32)])[doubtful].astype(np.float64)
    if not _error(totals[doubtful], products[doubtful], addends).any():
        return total
    for k in range(x.shape[1]):
        acc = fma(x[:, k, None], y[None, k], acc)
    return acc


_INVERSE_LN2, _LN2_HIGH, _LN2_LOW = (float.fromhex(h) for h in ("0x1.715476p+0", "0x1.62e300p-1", "0x1.2fefa2p-17"))
_EXP_TERMS = tuple(
    float.fromhex(h) for h in ("0x1.637698p-25", "-0x1.bbd41cp-20", "0x1.1566aap-14", "-0x1.6c16c2p-9", "0x1.555556p-3")
)
_EXP_MIN, _EXP_MAX = float.fromhex("-0x1.5d589ep+6"), float.fromhex("0x1.62e430p+6")


def exp(x: Array) -> Array:
    """e^x of float32 arrays by the device's algorithm: x = p*ln2 + t, a rational approximation of e^t, times 2^p.

    Results below the smallest normal number are 0, and 2^128 is infinite already.
    """
    f32 = np.float32
    under, over, nan = x < f32(_EXP_MIN), x >= f32(_EXP_MAX), np.isnan(x)
    a = np.where(under | over | nan, f32(0), x)
    p = np.trunc(fma(a, np.full_like(a, _INVERSE_LN2), np.where(a < 0, f32(-0.5), f32(0.5))))
    t = fma(p, np.full_like(a, -_LN2_HIGH), a) - p * f32(_LN2_LOW)
    s = t * t
    c = np.full_like(a, _EXP_TERMS[0])
    for term in _EXP_TERMS[1:]:
        c = fma(s, c, np.asarray(f32(term)))
    v = fma(s, -c, t)
    power = np.asarray((p.astype(np.int32) + np.int32(127)) << np.int32(23), dtype=np.int32).view(f32)
    y = ((f32(1) + t) + (t * v) / (f32(2) - v)) * power
    return np.where(nan, x, np.where(over, f32(np.inf), np.where(under, f32(0), y)))


def rsqrt(x: Array) -> Array:
    """1/sqrt(x) of float32 arrays: sqrt(1/x), each step rounded, except for the zeros and -inf."""
    one = np.float32(1)
    return np.where((x == 0) | (x == -np.inf), one / np.sqrt(x), np.sqrt(one / x))


def larger(x: Array, y: Array) -> Array:
    """Maximum; of a number and a NaN the number. Ties give y."""
    return np.where((x > y) | np.isnan(y), x, y)


def smaller(x: Array, y: Array) -> Array:
    """Minimum; of a number and a NaN the number. Ties give y."""
    return np.where((x < y) | np.isnan(y), x, y)
