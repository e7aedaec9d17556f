"""Comparisons, tests, maximum and minimum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from compass_core.arrays import Array
from compass_core.errors import CompassError

from .. import fp
from ..fast_paths import Function
from . import meaning
from .arithmetic import pairs

if TYPE_CHECKING:
    from compassc.ir.dtypes import DataType


def active(found: Array, mask: Array | None) -> Array:
    """A result that is false in inactive lanes; scalars have no mask."""
    return found if mask is None or not found.ndim else found & mask


@meaning
def vceq(x: Array, y: Array, dtype: DataType, mask: Array | None = None) -> Array:
    return active(x == y, mask)


@meaning
def vcneq(x: Array, y: Array, dtype: DataType, mask: Array | None = None) -> Array:
    return active(x != y, mask)


@meaning
def vcge(x: Array, y: Array, dtype: DataType, mask: Array | None = None) -> Array:
    return active(x >= y, mask)


@meaning
def vcgt(x: Array, y: Array, dtype: DataType, mask: Array | None = None) -> Array:
    return active(x > y, mask)


@meaning
def vcle(x: Array, y: Array, dtype: DataType, mask: Array | None = None) -> Array:
    return active(x <= y, mask)


@meaning
def vclt(x: Array, y: Array, dtype: DataType, mask: Array | None = None) -> Array:
    return active(x < y, mask)


@meaning
def isnan(x: Array, dtype: DataType, mask: Array | None = None) -> Array:
    return active(np.asarray(np.isnan(x)), mask)


@meaning
def isinf(x: Array, dtype: DataType, mask: Array | None = None) -> Array:
    return active(np.asarray(np.isinf(x)), mask)


@meaning
def isfinite(x: Array, dtype: DataType, mask: Array | None = None) -> Array:
    return active(np.asarray(np.isfinite(x)), mask)


def _by_type(integer: Function, floating: Function, x: Array, y: Array, dtype: DataType) -> Array:
    return floating(x, y) if dtype.is_floating else integer(x, y)


@meaning
def max(x: Array, y: Array, dtype: DataType) -> Array:
    return _by_type(np.maximum, fp.larger, x, y, dtype)


@meaning
def min(x: Array, y: Array, dtype: DataType) -> Array:
    return _by_type(np.minimum, fp.smaller, x, y, dtype)


@meaning
def vmaxh(x: Array, y: Array, dtype: DataType) -> Array:
    return np.maximum(*pairs(x, y))


@meaning
def vminh(x: Array, y: Array, dtype: DataType) -> Array:
    return np.minimum(*pairs(x, y))


def halved(better: Function, kept: Array) -> Array:
    """The best lane of each row of a matrix, whose halves are compared until one column is left."""
    while (by := kept.shape[1] // 2) > 0:
        kept = better(kept[:, :by], kept[:, by:])
    return kept


def reduced(better: Function, x: Array, dtype: DataType, mask: Array | None, return_idx: bool, largest: bool) -> Array:
    """Lane 0: the best active lane, found by halving as the compiled code does, where NaN never wins; lane 1: its
    index as an integer bit pattern."""
    candidates = np.ones(len(x), bool) if mask is None else np.asarray(mask)
    if not candidates.any():
        raise CompassError(
            "the mask of a reduction has no active lane", code="mask", help="at least one must be active"
        )
    low, high = dtype.range()
    kept = np.where(
        candidates, x, np.asarray(np.nan if dtype.is_floating else low if largest else high).astype(x.dtype)
    )
    best = halved(better, kept.reshape(1, -1))[0, 0]
    out = np.zeros_like(x)
    out[0] = best
    if return_idx:
        out.view(f"u{x.dtype.itemsize}")[1] = np.argmax(candidates & (x == best))
    return out


@meaning
def vrpmax(x: Array, dtype: DataType, mask: Array | None = None, return_idx: bool = False) -> Array:
    return reduced(fp.larger, x, dtype, mask, return_idx, True)


@meaning
def vrpmin(x: Array, dtype: DataType, mask: Array | None = None, return_idx: bool = False) -> Array:
    return reduced(fp.smaller, x, dtype, mask, return_idx, False)
