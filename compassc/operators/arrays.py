"""What references compute in NumPy otherwise than NumPy, as every target has it.

Extremes are of a number and NaN the number: so has the device, and so the expressions of operators mean it (`te.max`,
`te.min`). Sums for means of whole numbers wrap around.
"""

from __future__ import annotations

import numpy as np

from compass_core.arrays import Array

Axes = int | tuple[int, ...] | None
"""One axis, several, or all."""
Operand = Array | np.generic
"""An array, or a number of its type."""


def larger(x: Array, y: Operand) -> Array:
    """The larger one, of a number and NaN the number; of equal ones (-0.0 and 0.0) the second."""
    return np.where((x > y) | (y != y), x, y)  # noqa: PLR0124 (NaN)


def smaller(x: Array, y: Operand) -> Array:
    """The smaller one, of a number and NaN the number; of equal ones (-0.0 and 0.0) the second."""
    return np.where((x < y) | (y != y), x, y)  # noqa: PLR0124 (NaN)


def limited(x: Array, low: float | Array, high: float | Array) -> Array:
    """x, not below `low` and not above `high`, in its type; of NaN it is `low`."""
    return smaller(larger(x, np.asarray(low, x.dtype)), np.asarray(high, x.dtype))


def largest_of(x: Array, axis: Axes = None, keepdims: bool = False) -> Array:
    """The largest element that is no NaN; of reals where there is none it is minus infinity."""
    if x.dtype.kind in "iub":
        return np.asarray(np.max(x, axis, keepdims=keepdims))
    return np.asarray(np.nanmax(x, axis, keepdims=keepdims, initial=-np.inf), x.dtype)


def smallest_of(x: Array, axis: Axes = None, keepdims: bool = False) -> Array:
    """The smallest element that is no NaN; of reals where there is none it is infinity."""
    if x.dtype.kind in "iub":
        return np.asarray(np.min(x, axis, keepdims=keepdims))
    return np.asarray(np.nanmin(x, axis, keepdims=keepdims, initial=np.inf), x.dtype)


def place_of_extreme(x: Array, axis: int, largest: bool = True) -> Array:
    """The first place on an axis of the largest (or smallest) element; a NaN counts as equal to it."""
    if largest:
        return np.asarray((~(x < largest_of(x, axis, True))).argmax(axis))
    return np.asarray((~(x > smallest_of(x, axis, True))).argmax(axis))


def cast(x: Array, dtype: str) -> Array:
    """Elements in another type: reals are cut towards zero for whole numbers, what is not 0 is true."""
    return x != 0 if dtype == "bool" else x.astype(dtype)


def order(x: Array, axis: int = -1, ascending: bool = True) -> Array:
    """The places of the elements of an axis in order; of equal ones the first comes first. NaN counts as the infinity that
    comes last."""
    if x.dtype.kind not in "iub":
        x = np.where(x == x, x, np.asarray(np.inf if ascending else -np.inf, x.dtype))  # noqa: PLR0124 (NaN)
    if ascending:
        return np.argsort(x, axis, kind="stable")
    from_end = np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
    return np.asarray(x.shape[axis] - 1 - from_end)


def mean_of_sum(total: Operand, count: float | Array, kind: np.dtype[np.generic]) -> Array:
    """A sum of elements of a type over their count: of whole numbers, whose sums wrap around in int32, or in their own type
    where that has 32 bits and more, it is cut towards zero."""
    if kind.kind not in "iu":
        return np.asarray(np.asarray(total) / count)
    whole = np.asarray(total).astype(np.int64)
    wrapped = whole.astype(kind if kind.itemsize >= 4 else np.int32).astype(np.int64)
    return np.asarray(np.sign(wrapped) * (np.abs(wrapped) // count))


def mean(x: Array, axis: Axes = None, keepdims: bool = False) -> Array:
    """The mean of elements, in their type; sums of narrow reals are in float32. See `mean_of_sum` for whole numbers."""
    if x.dtype.kind not in "iu":
        return np.asarray(np.mean(x, axis, keepdims=keepdims))
    total = np.sum(x, axis, dtype=np.int64, keepdims=keepdims)
    return mean_of_sum(total, max(x.size // max(total.size, 1), 1), x.dtype).astype(x.dtype)
