"""Arithmetic operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from compass_core.arrays import Array
from compassc.ir.dtypes import VECTOR_BITS
from compassc.ops.numeric import np_dtype

from .. import fp
from . import meaning

if TYPE_CHECKING:
    from compassc.ir.dtypes import DataType


def exact(x: Array) -> Array:
    """Integer lanes in a type that holds sums and most products of them."""
    return x.astype(np.int64)


def wrap_or_clip(value: Array, dtype: DataType, saturate: bool) -> Array:
    """An exact integer result (int64) brought into `dtype`: clipped, or modulo 2^bits."""
    if saturate:
        low, high = dtype.range()
        value = np.maximum(np.minimum(value, high), low)
    return value.astype(np_dtype(dtype))


def saturated(value: Array, dtype: DataType) -> Array:
    return wrap_or_clip(value, dtype, True)


@meaning
def vadd(x: Array, y: Array, dtype: DataType, saturate: bool = False) -> Array:
    return x + y if dtype.is_floating else wrap_or_clip(exact(x) + exact(y), dtype, saturate)


@meaning
def vsub(x: Array, y: Array, dtype: DataType, saturate: bool = False) -> Array:
    return x - y if dtype.is_floating else wrap_or_clip(exact(x) - exact(y), dtype, saturate)


def pairs(x: Array, y: Array) -> tuple[Array, Array]:
    """The even and the odd lanes of x followed by y: what the pairwise operations combine."""
    both = np.concatenate((x, y))
    return both[::2], both[1::2]


@meaning
def vaddh(x: Array, y: Array, dtype: DataType) -> Array:
    even, odd = pairs(exact(x), exact(y))
    return saturated(even + odd, dtype)


@meaning
def vsubh(x: Array, y: Array, dtype: DataType) -> Array:
    even, odd = pairs(exact(x), exact(y))
    return saturated(even - odd, dtype)


@meaning
def abs(x: Array, dtype: DataType, saturate: bool = False) -> Array:
    return np.abs(x) if dtype.is_floating else wrap_or_clip(np.abs(exact(x)), dtype, saturate)


@meaning
def rint(x: Array, dtype: DataType) -> Array:
    return fp.in_float(np.rint, dtype, x)


@meaning
def clip(x: Array, min_val: Array, max_val: Array, dtype: DataType, mask: Array | None = None) -> Array:
    if x.ndim and dtype.is_floating:
        value = np.where(x > max_val, max_val, np.where(x < min_val, min_val, x))
    elif dtype.is_floating:
        value = fp.larger(fp.smaller(x, max_val), min_val)
    else:
        value = np.maximum(np.minimum(x, max_val), min_val)
    return value if mask is None or not x.ndim else np.where(mask, value, x)


@meaning
def vmul(x: Array, y: Array, dtype: DataType) -> Array:
    return x * y if dtype.is_floating else wrap_or_clip(exact(x) * exact(y), dtype, False)


def truncated_quotient(x: Array, y: Array) -> Array:
    """Quotient of int64 lanes rounded toward zero; 0 where y is 0."""
    size = np.abs(x) // np.where(y == 0, 1, np.abs(y))
    return np.where(y == 0, 0, np.where((x < 0) == (y < 0), size, -size))


@meaning
def vdiv(x: Array, y: Array, dtype: DataType) -> Array:
    return x / y if dtype.is_floating else wrap_or_clip(truncated_quotient(exact(x), exact(y)), dtype, True)


@meaning
def vmod(x: Array, y: Array, dtype: DataType) -> Array:
    a, b = exact(x), exact(y)
    return np.where(b == 0, 0, a - truncated_quotient(a, b) * b).astype(np_dtype(dtype))


def tree_sum(kept: Array) -> Array:
    """The float32 sums of the rows of a matrix, one register each: halves of 16 lanes first, then neighbours."""
    if kept.shape[1] == 16:
        kept = kept[:, :8] + kept[:, 8:]
    while kept.shape[1] > 1:
        kept = kept[:, ::2] + kept[:, 1::2]
    return np.float32(0) + kept[:, 0]


@meaning
def vrpadd(x: Array, dtype: DataType, mask: Array | None = None) -> Array:
    out = np.zeros(dtype.lanes, np_dtype(dtype))
    if not dtype.is_floating:
        out[0] = np.add.reduce(x if mask is None else x[mask], dtype=out.dtype)
        return out
    wide = x.astype(np.float32)
    kept = wide if mask is None else np.where(mask, wide, np.float32(0))
    sums = tree_sum(kept.reshape(-1, VECTOR_BITS // (x.dtype.itemsize * 8)))
    for part in sums[1:]:
        sums[0] += part
    out[0] = sums[0]
    return out
