"""Products that change the width or add up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from compass_core.arrays import Array
from compassc.ir.dtypes import FLOAT32
from compassc.ops.numeric import np_dtype
from compassc.ops.products import matrix_types

from .. import fp
from ..memory import bounds_error, pointer_of
from . import meaning
from .arithmetic import exact, saturated

if TYPE_CHECKING:
    from compassc.ir.dtypes import DataType

    from ..values import PyVar


def widened(half: slice, x: Array, y: Array, mask: Array | None, r: Array | None, dtype: DataType) -> Array:
    """The products of one half of the lanes in twice the width; 64-bit products lie in pairs of 32-bit lanes."""
    product = exact(x[half]) * exact(y[half])
    words = 2 if x.dtype.itemsize == 4 else 1
    out = product.view(np.uint32).astype(np_dtype(dtype)) if words == 2 else product.astype(np_dtype(dtype))
    return out if mask is None or r is None else np.where(np.repeat(mask[half], words), out, r)


def _half(n: int, high: bool) -> slice:
    return slice(n // 2, n) if high else slice(0, n // 2)


@meaning
def vmull(x: Array, y: Array, dtype: DataType, mask: Array | None = None, r: Array | None = None) -> Array:
    return widened(_half(len(x), False), x, y, mask, r, dtype)


@meaning
def vmulh(x: Array, y: Array, dtype: DataType, mask: Array | None = None, r: Array | None = None) -> Array:
    return widened(_half(len(x), True), x, y, mask, r, dtype)


def group_sums(x: Array, y: Array, mask: Array | None, count: int) -> Array:
    """Exact int64 sums of the active products of each `count` neighbouring lanes."""
    product = exact(x) * exact(y)
    found: Array = (product if mask is None else np.where(mask, product, 0)).reshape(-1, count).sum(axis=1)
    return found


def quad_sums(x: Array, y: Array, mask: Array | None) -> Array:
    """Sums of the active products of each 4 neighbouring floating-point lanes, in double, in lane order."""
    product = (x.astype(np.float64) * y.astype(np.float64)).reshape(-1, 4)
    if mask is not None:
        product = np.where(np.reshape(mask, (-1, 4)), product, 0.0)
    total = np.zeros(len(product))
    for k in range(4):
        total = total + product[:, k]
    return total


@meaning
def vdot(x: Array, y: Array, dtype: DataType, mask: Array | None = None) -> Array:
    return saturated(group_sums(x, y, mask, 2), dtype)


@meaning
def vqdot(x: Array, y: Array, dtype: DataType, mask: Array | None = None) -> Array:
    if not dtype.is_floating:
        return saturated(group_sums(x, y, mask, 4), dtype)
    out = np.zeros(dtype.lanes, np.float32)
    out[::2] = quad_sums(x, y, mask).astype(np.float32)
    return out


@meaning
def vdpa(acc: Array, x: Array, y: Array, dtype: DataType, mask: Array | None = None) -> Array:
    return saturated(exact(acc) + group_sums(x, y, mask, 2), dtype)


@meaning
def vqdpa(acc: Array, x: Array, y: Array, dtype: DataType, mask: Array | None = None) -> Array:
    if not dtype.is_floating:
        return saturated(exact(acc) + group_sums(x, y, mask, 4), dtype)
    out = acc.copy()
    total = (acc[::2].astype(np.float64) + quad_sums(x, y, mask)).astype(np.float32)
    out[::2] = total if mask is None else np.where(np.reshape(mask, (-1, 4)).any(axis=1), total, acc[::2])
    return out


@meaning
def fma(acc: Array, x: Array, y: Array, dtype: DataType, mask: Array | None = None) -> Array:
    value = fp.fma(x, y, acc)
    return value if mask is None or not acc.ndim else np.where(mask, value, acc)


def _add_products(acc: Array, x: Array, y: Array, mask: Array | None) -> Array:
    total = acc + x.astype(np.float32) * y.astype(np.float32)
    return total if mask is None else np.where(mask, total, acc)


@meaning
def vfmae(acc: Array, x: Array, y: Array, dtype: DataType, mask: Array | None = None) -> Array:
    return _add_products(acc, x[::2], y[::2], mask)


@meaning
def vfmao(acc: Array, x: Array, y: Array, dtype: DataType, mask: Array | None = None) -> Array:
    return _add_products(acc, x[1::2], y[1::2], mask)


def matrix_product(x: Array, y: Array) -> Array:
    """The 16 dot products of 4x4 matrices, x by rows and y by columns: exact products, summed in double in order."""
    a, b = (np.asarray(m).astype(np.float64).reshape(4, 4) for m in (x, y))
    total = np.zeros((4, 4))
    for k in range(4):
        total = total + a[:, k, None] * b[None, :, k]
    return total.reshape(16)


def _run_matrix(name: str, ptr: object, x: PyVar, y: PyVar, accumulate: bool) -> None:
    what = f"S.{name}"
    to = pointer_of(ptr, f"{what}: ptr")
    matrix_types(what, to.dtype, x.dtype, y.dtype)
    view, base = to.elements(FLOAT32)
    if base < 0 or base + 16 > view.size:
        raise bounds_error(what, to, 0, 15)
    total = matrix_product(x.value, y.value)
    with np.errstate(all="ignore"):
        view[base : base + 16] = (view[base : base + 16].astype(np.float64) + total if accumulate else total).astype(
            np.float32
        )


@meaning
def vmml(ptr: object, x: PyVar, y: PyVar) -> None:
    _run_matrix("vmml", ptr, x, y, accumulate=False)


@meaning
def vmma(acc_ptr: object, x: PyVar, y: PyVar) -> None:
    _run_matrix("vmma", acc_ptr, x, y, accumulate=True)
