"""Operations that move lanes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from compass_core.arrays import Array
from compassc.ir.dtypes import bool_of
from compassc.ops.numeric import part_of
from compassc.ops.permute import (
    bcast_dtype,
    check_inputs,
    check_table,
    concat_dtype,
    in_range,
    one_register,
    split_types,
    tbl_dtype,
    whole_registers,
)
from compassc.ops.typing import Number, is_literal

from ..masks import mask_array
from ..operands import broadcast, integer, vector
from ..values import PyVar, Scalar, pyvar
from . import meaning

if TYPE_CHECKING:
    from compassc.ir.dtypes import DataType


@meaning
def vconcat(inps: object, part: str = "all") -> PyVar:
    types, arrays = broadcast("vconcat", check_inputs(inps))
    result = concat_dtype(types, part)
    return PyVar(np.concatenate([part_of(a, part) for a in arrays]), result)


@meaning
def vsplit(x: PyVar) -> tuple[PyVar, ...]:
    part, count = split_types(vector(x, "S.vsplit: x"))
    step = part.lanes
    return tuple(PyVar(x.value[k * step : (k + 1) * step], part) for k in range(count))


@meaning
def vzip(x: Array, y: Array, dtype: DataType, part: str = "all") -> Array:
    return np.stack((part_of(x, part), part_of(y, part)), axis=1).reshape(-1)


@meaning
def vrevs(x: Array, dtype: DataType) -> Array:
    return x[::-1].copy()


@meaning
def vsel(x: Array, y: Array, dtype: DataType, mask: Array | None = None) -> Array:
    return x.copy() if mask is None else np.where(mask, x, y)


@meaning
def vcompt(x: PyVar, mask: object) -> PyVar:
    dtype = one_register(vector(x, "S.vcompt: x"), "S.vcompt")
    active = mask_array(mask, dtype.lanes)
    packed = x.value if active is None else x.value[active]
    out = np.zeros_like(x.value)
    out[: packed.size] = packed
    return PyVar(out, dtype)


@meaning
def vcompc(x: object, y: object, mask: object) -> PyVar:
    types, (a, b) = broadcast("vcompc", [x, y])
    active = mask_array(mask, one_register(types[0], "S.vcompc").lanes)
    packed = a if active is None else a[active]
    return PyVar(np.concatenate([packed, b[: b.size - packed.size]]), types[0])


@meaning
def vshfl(x: PyVar, shift: object) -> PyVar:
    dtype = whole_registers(vector(x, "S.vshfl: x"), "S.vshfl")
    n = in_range(integer(shift, "S.vshfl: shift"), dtype.lanes, "S.vshfl: shift")
    return PyVar(np.roll(x.value, -n), dtype)


@meaning
def vbcast(x: Scalar | Number, mask: object = None, lanes: object = None) -> PyVar:
    scalar = pyvar(x, bool_of(1) if type(x) is bool else None) if is_literal(x) else x
    own = bool_of(1) if type(scalar) is bool else scalar.dtype
    result = bcast_dtype(own, mask is not None, lanes)
    mask_array(mask, result.lanes)
    return PyVar(np.full(result.lanes, scalar if type(scalar) is bool else scalar.value), result)


@meaning
def vsldl(x: object, y: object, shift: object) -> PyVar:
    types, (a, b) = broadcast("vsldl", [x, y])
    lanes = whole_registers(types[0], "S.vsldl").lanes
    n = in_range(integer(shift, "S.vsldl: shift"), lanes, "S.vsldl: shift")
    return PyVar(np.concatenate([a[n:], b[:n]]), types[0])


@meaning
def vtbl(table: object, indices: PyVar) -> PyVar:
    types, arrays = broadcast("vtbl", check_table(table))
    result = tbl_dtype(types, vector(indices, "S.vtbl: indices"))
    whole = np.concatenate(arrays)
    at = indices.value.astype(np.int64)
    inside = (at >= 0) & (at < whole.size)
    return PyVar(np.where(inside, whole[np.where(inside, at, 0)], whole.dtype.type(0)), result)


@meaning
def vreplic(x: PyVar, index: object = 0) -> PyVar:
    dtype = whole_registers(vector(x, "S.vreplic: x"), "S.vreplic")
    n = in_range(integer(index, "S.vreplic: index"), dtype.lanes, "S.vreplic: index")
    return PyVar(np.full(dtype.lanes, x.value[n]), dtype)
