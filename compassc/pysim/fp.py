"""Floating-point arithmetic on NumPy arrays, rounded exactly as the compiled code rounds."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from compass_core.arrays import Array
from compassc.ir.dtypes import DataType
from compassc.ops.numeric import np_dtype

from . import loops


def narrow(x: Array, dtype: DataType) -> Array:
    """A float32 result in the element type of `dtype`: one more rounding for the 16-bit types."""
    return x.astype(np_dtype(dtype), copy=False)


def in_float(f: Callable[..., Array], dtype: DataType, *arrays: Array) -> Array:
    """`f` computed in float32, rounded once to a 16-bit element type."""
    return narrow(f(*[a.astype(np.float32, copy=False) for a in arrays]), dtype)


def in_double(f: Callable[..., Array], dtype: DataType, *arrays: Array) -> Array:
    """`f` computed in double and rounded to float32, then to a 16-bit element type."""
    return narrow(np.asarray(f(*(a.astype(np.float64) for a in arrays))).astype(np.float32), dtype)


_BEHIND = (1 << 29) - 1
"""The bits of a double that float32 does not have."""
_TINY = float.fromhex("0x1p-125")
"""Sums as small as this may have fewer bits in float32."""


def _doubtful(totals: Array, bits: Array | None = None) -> Array:
    """Which sums of doubles could round to another float32 than the exact sums: those that seem to lie half-way. `bits`:
    room for as many 64-bit numbers."""
    if bits is None:
        bits = np.empty(totals.shape, np.int64)
    np.bitwise_and(totals.view(np.int64), _BEHIND, out=bits)
    found: Array = bits == (_BEHIND + 1) // 2
    found |= np.abs(totals, out=bits.view(np.float64)) < _TINY
    return found


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


_AT_ONCE = 1 << 16
"""Elements of products that are looked at together."""


class _Scratch(threading.local):
    """Arrays of a thread for sums of products. Fresh ones of their size cost more, in pages that are touched for the first
    time, than what is done in them."""

    def __init__(self) -> None:
        self.totals, self.bits = np.empty(_AT_ONCE), np.empty(_AT_ONCE, np.int64)

    def of(self, count: int) -> tuple[Array, Array]:
        """Room for so many doubles, and for as many bit patterns."""
        if count > self.totals.size:
            self.totals, self.bits = np.empty(count), np.empty(count, np.int64)
        return self.totals[:count], self.bits[:count]


_SCRATCH = _Scratch()


def fused_product(x: Array, y: Array, acc: Array) -> Array:
    """`acc + x @ y` of float32 matrices, where `acc = fma(x[:, k], y[k], acc)` for k = 0, 1, ..."""
    found = loops.fused_product(x, y, acc)
    if found is not None:
        return found
    left, right = x.T.astype(np.float64), y.astype(np.float64)
    steps = max(1, _AT_ONCE // acc.size)
    for k in range(0, len(left), steps):
        found = _fused(left[k : k + steps], right[k : k + steps], acc)
        if found is None:
            for j in range(k, min(k + steps, len(left))):
                acc = fma(x[:, j, None], y[None, j], acc)
        else:
            acc = found
    return acc


def _fused(left: Array, right: Array, acc: Array) -> Array | None:
    """Some steps of a product by sums in double; None where one of these is rounded, so that `fma` must do it."""
    totals, bits = _SCRATCH.of(len(left) * acc.size)
    np.multiply(left[:, :, None], right[:, None, :], totals.reshape(len(left), *acc.shape))
    total = acc.reshape(-1)
    for step in totals.reshape(len(left), -1):
        np.add(step, total.astype(np.float64), step)
        total = step.astype(np.float32)
    at = np.flatnonzero(_doubtful(totals, bits))
    if at.size:
        k, place = np.divmod(at, acc.size)
        row, column = np.divmod(place, acc.shape[1])
        addend = np.where(k > 0, totals[at - acc.size].astype(np.float32), acc.reshape(-1)[place])
        if _error(totals[at], left[k, row] * right[k, column], addend.astype(np.float64)).any():
            return None
    return total.reshape(acc.shape)


class _Steps:
    """Steps of `fma` on arrays of one length, which are taken first and looked at together when all are done."""

    def __init__(self) -> None:
        self._done: list[tuple[Array, Array, Array]] = []

    def fma(self, x: Array, y: Array, acc: Array) -> Array:
        product = np.multiply(x, y, dtype=np.float64)
        total = product + acc
        self._done.append((total, product, acc))
        return total.astype(np.float32)

    def are_sure(self) -> bool:
        """Whether each gave what `fma` does."""
        doubtful = _doubtful(np.concatenate([total for total, _, _ in self._done]))
        if not doubtful.any():
            return True
        places = doubtful.reshape(len(self._done), -1)
        return not any(at.any() and _error(*step)[at].any() for at, step in zip(places, self._done))


def _constants(*texts: str) -> list[Array]:
    """Numbers of float32 by their hexadecimal digits."""
    return [np.asarray(float.fromhex(text), np.float32) for text in texts]


_NOTHING, _ONE, _HALF, _TWO, _INFINITE = _constants("0", "1", "0x1p-1", "2", "inf")
_INVERSE_LN2, _MINUS_LN2_HIGH, _LN2_LOW = _constants("0x1.715476p+0", "-0x1.62e300p-1", "0x1.2fefa2p-17")
_FIRST_TERM, *_TERMS = _constants(
    "0x1.637698p-25", "-0x1.bbd41cp-20", "0x1.1566aap-14", "-0x1.6c16c2p-9", "0x1.555556p-3"
)
_EXP_MIN, _EXP_MAX = _constants("-0x1.5d589ep+6", "0x1.62e430p+6")


def exp(x: Array) -> Array:
    """e^x of float32 arrays by the device's algorithm: x = p*ln2 + t, a rational approximation of e^t, times 2^p.

    Results below the smallest normal number are 0, and 2^128 is infinite already.
    """
    flat = np.asarray(x).reshape(-1)
    found = loops.exp(flat)
    if found is None:
        steps = _Steps()
        found = _exp(flat, steps.fma)
        found = found if steps.are_sure() else _exp(flat, fma)
    return found.reshape(np.shape(x))


def _exp(x: Array, fma: Callable[[Array, Array, Array], Array]) -> Array:
    normal = (x >= _EXP_MIN) & (x < _EXP_MAX)
    a = x if normal.all() else np.where(normal, x, _NOTHING)
    p = np.trunc(fma(a, _INVERSE_LN2, np.copysign(_HALF, a)))
    t = fma(p, _MINUS_LN2_HIGH, a) - p * _LN2_LOW
    s = t * t
    c = _FIRST_TERM
    for term in _TERMS:
        c = fma(s, c, term)
    v = fma(s, -c, t)
    power = ((p.astype(np.int32) + np.int32(127)) << np.int32(23)).view(np.float32)
    y: Array = ((_ONE + t) + (t * v) / (_TWO - v)) * power
    if a is not x:
        y = np.where(normal, y, np.where(x < 0, _NOTHING, np.where(x > 0, _INFINITE, x)))
    return y


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
