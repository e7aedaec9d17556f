"""Permutation operations: what moves lanes without changing their values."""

from __future__ import annotations

from typing import Any

from compass_core.errors import CompassError

from ..ir import exprs as E
from ..ir.dtypes import INT32, STORAGE, VECTOR_BITS, DataType, bool_of
from .args import choice, int32_arg, kind_of, lanes_arg, vector_arg
from .core import LazyModule, Typed, build_mask, imm, np, operand_of, special_op, value_op
from .core import convert as converted
from .typing import Operand, broadcast_group, is_literal, same_sign, type_error

GROUP = "Permutation"

values: Any = LazyModule("compassc.pysim.values")
masks: Any = LazyModule("compassc.pysim.masks")
sim: Any = LazyModule("compassc.pysim.operands")

HALVES = ("low", "high", "even", "odd")
PARTS = ("all", *HALVES)
_SELECT = {
    "low": lambda v: v[: v.size // 2],
    "high": lambda v: v[v.size // 2 :],
    "even": lambda v: v[0::2],
    "odd": lambda v: v[1::2],
}


def group_types(operands: list[Operand]) -> list[DataType]:
    """The types of a broadcast group of data vectors or masks, signs not mixed."""
    types = broadcast_group(operands)
    same_sign(types)
    return types


def whole_registers(t: DataType, what: str) -> DataType:
    """Refuse a vector that does not fill whole registers (a mask: a multiple of 8 lanes)."""
    if (t.lanes % 8) if t.is_mask else (t.total_bits % VECTOR_BITS):
        raise type_error(f"{what}: {t} does not fill whole registers", f"use a multiple of {t.native_lanes or 8} lanes")
    return t


def _native(t: DataType, what: str) -> DataType:
    if not t.is_native or t.is_mask:
        raise type_error(
            f"{what}: {t} is not a vector of one register", "work on parts of one register: S.vsplit and S.vconcat"
        )
    return t


def _constant(x: Any, what: str) -> int:
    if type(x) is not int:
        raise type_error(f"{what} must be a constant integer, got {kind_of(x)}")
    return x


def _in_range(value: int, lanes: int, what: str) -> int:
    if not 0 <= value < lanes:
        raise CompassError(f"{what} must be from 0 to {lanes - 1}, got {value}", code="range")
    return value


# ------------------------------------------------------------------------------------------------- joining and splitting


def _check_inputs(inps: Any) -> list[Any]:
    if not isinstance(inps, (tuple, list)) or len(inps) < 2:
        raise type_error(f"S.vconcat: a tuple or list of at least 2 vectors is expected, got {inps!r}")
    return list(inps)


def _concat_dtype(types: list[DataType], part: str) -> DataType:
    choice(part, PARTS, "S.vconcat: part")
    lanes = whole_registers(types[0], "S.vconcat").lanes * len(types)
    return types[0].with_lanes(lanes if part == "all" else lanes // 2)


def _build_vconcat(inps: Any, part: Any = "all") -> E.Expr:
    items = _check_inputs(inps)
    types = group_types([operand_of(x) for x in items])
    args = tuple(converted(x, t) for x, t in zip(items, types))
    return E.Call("vconcat", args, _concat_dtype(types, part), attrs=(("part", part),))


@special_op(GROUP, _build_vconcat, split="vconcat")
def vconcat(inps: Any, part: Any = "all") -> Any:
    """Concatenate vectors, or the low, high, even or odd half of each of them.

    `inps` is a tuple or list of at least two vectors of one type that fill whole registers; the result has the lanes of
    all of them, or half as many.
    """
    types, arrays = sim.broadcast("vconcat", _check_inputs(inps))
    result = _concat_dtype(types, part)
    return values.PyVar(np.concatenate(arrays if part == "all" else [_SELECT[part](a) for a in arrays]), result)


def _split_types(x: DataType) -> tuple[DataType, int]:
    if x.is_mask or x.native_lanes == 0:
        raise type_error(f"S.vsplit: {x} cannot be split")
    whole_registers(x, "S.vsplit")
    if x.is_native:
        raise type_error(f"S.vsplit: {x} is one register already, the call is redundant")
    return x.with_lanes(x.native_lanes), x.lanes // x.native_lanes


def _build_vsplit(x: Any) -> tuple[E.Expr, ...]:
    vector = vector_arg(x, "S.vsplit: x")
    part, count = _split_types(vector.dtype)
    return tuple(E.Call("vsplit", (vector,), part, attrs=(("index", k),)) for k in range(count))


@special_op(GROUP, _build_vsplit, split="vsplit")
def vsplit(x: Any) -> Any:
    """The registers of a vector of several registers, as a tuple to unpack into names.

    The vector fills whole registers, at least two.
    """
    part, count = _split_types(sim.vector(x, "S.vsplit: x"))
    step = part.lanes
    return tuple(values.PyVar(x.value[k * step : (k + 1) * step], part) for k in range(count))


def _typed_zip(operands: list[Operand], part: str = "all") -> Typed:
    types = group_types(operands)
    choice(part, PARTS, "S.vzip: part")
    if part != "all":
        whole_registers(types[0], "S.vzip")
    result = types[0].with_lanes(types[0].lanes * 2) if part == "all" else types[0]
    return Typed(tuple(types), result)


@value_op(GROUP, 'x, y, part="all"', _typed_zip, c=(), split="vzip")
def vzip(x: Any, y: Any, dtype: Any, part: str = "all") -> Any:
    """Interleave the lanes of two vectors, or of one half of each.

    x gives the even lanes of the result, y the odd ones. With `"all"` the result has twice the lanes; with a half it has
    as many as x, which then fills whole registers.
    """
    if part != "all":
        x, y = _SELECT[part](x), _SELECT[part](y)
    return np.stack((x, y), axis=1).reshape(-1)


# --------------------------------------------------------------------------------------------------- choosing and moving


def _typed_rev(operands: list[Operand]) -> Typed:
    (x,) = operands
    if is_literal(x) or not x.is_vector:
        raise type_error("S.vrevs: the argument must be a vector or a mask")
    return Typed((x,), whole_registers(x, "S.vrevs"))


@value_op(GROUP, "x", _typed_rev, c=[("masks", "__vprevs({x})"), "__vrevs({x})"], split="vrevs")
def vrevs(x: Any, dtype: Any) -> Any:
    """Reverse the order of the lanes."""
    return x[::-1].copy()


def _typed_sel(operands: list[Operand]) -> Typed:
    types = group_types(operands)
    return Typed(tuple(types), types[0])


@value_op(GROUP, "x, y, mask=None", _typed_sel, c="__vsel({x}, {y}, {m})", mask_aware=True)
def vsel(x: Any, y: Any, dtype: Any, mask: Any = None) -> Any:
    """`x` where the mask is active, `y` elsewhere."""
    return x.copy() if mask is None else np.where(mask, x, y)


def _build_vcompt(x: Any, mask: Any) -> E.Expr:
    vector = vector_arg(x, "S.vcompt: x")
    return E.Call("vcompt", (vector,), _native(vector.dtype, "S.vcompt"), build_mask(mask, vector.dtype.lanes))


@special_op(GROUP, _build_vcompt, c="__vcompt({x}, {m})")
def vcompt(x: Any, mask: Any) -> Any:
    """Pack the active lanes at the bottom, zero the rest.

    Active lanes keep their order. The vector is one register.
    """
    dtype = _native(sim.vector(x, "S.vcompt: x"), "S.vcompt")
    active = masks.mask_array(mask, dtype.lanes)
    packed = x.value if active is None else x.value[active]
    out = np.zeros_like(x.value)
    out[: packed.size] = packed
    return values.PyVar(out, dtype)


def _build_vcompc(x: Any, y: Any, mask: Any) -> E.Expr:
    types = group_types([operand_of(x), operand_of(y)])
    args = (converted(x, types[0]), converted(y, types[1]))
    return E.Call("vcompc", args, _native(types[0], "S.vcompc"), build_mask(mask, types[0].lanes))


@special_op(GROUP, _build_vcompc, c="__vcompc({x}, {y}, {m})")
def vcompc(x: Any, y: Any, mask: Any) -> Any:
    """Pack the active lanes of `x` at the bottom, followed by the first lanes of `y`.

    Both are one register of the same type. With n active lanes, result lane n is lane 0 of `y`.
    """
    types, (a, b) = sim.broadcast("vcompc", [x, y])
    active = masks.mask_array(mask, _native(types[0], "S.vcompc").lanes)
    packed = a if active is None else a[active]
    return values.PyVar(np.concatenate([packed, b[: b.size - packed.size]]), types[0])


def _build_vshfl(x: Any, shift: Any) -> E.Expr:
    vector = vector_arg(x, "S.vshfl: x")
    whole_registers(vector.dtype, "S.vshfl")
    amount = int32_arg(shift, "S.vshfl: shift")
    if vector.dtype.is_native:
        return E.Call("vshfl", (vector, amount), vector.dtype)
    constant = _in_range(
        _constant(shift, "S.vshfl: the shift of several registers"), vector.dtype.lanes, "S.vshfl: shift"
    )
    return E.Call("vshfl", (vector, imm(constant, INT32)), vector.dtype)


@special_op(GROUP, _build_vshfl, c="__vshfl({x}, {shift})", split="vshfl")
def vshfl(x: Any, shift: Any) -> Any:
    """Rotate the lanes towards lane 0 by `shift`.

    Result lane i is lane (i + shift) modulo the lanes. The vector fills whole registers; on one register the shift may
    be a run-time int32, on several it is a constant. It must be from 0 to the lanes minus 1.
    """
    dtype = whole_registers(sim.vector(x, "S.vshfl: x"), "S.vshfl")
    n = _in_range(sim.integer(shift, "S.vshfl: shift"), dtype.lanes, "S.vshfl: shift")
    return values.PyVar(np.roll(x.value, -n), dtype)


def _bcast_dtype(x: DataType, has_mask: bool, lanes: Any) -> DataType:
    if x.is_bool:
        if has_mask:
            raise type_error("S.vbcast: a bool takes no mask")
        if lanes is None:
            raise type_error("S.vbcast: a bool needs lanes")
    elif x not in STORAGE:
        raise type_error(f"S.vbcast: a scalar is expected, got {x}")
    return x.with_lanes(x.native_lanes if lanes is None else lanes_arg(lanes, "S.vbcast"))


def _build_vbcast(x: Any, mask: Any = None, lanes: Any = None) -> E.Expr:
    if not isinstance(x, E.Expr) or not isinstance(x.dtype, DataType):
        raise type_error(f"S.vbcast: a typed scalar is expected, got {kind_of(x)}", "give a type: S.i16(5)")
    result = _bcast_dtype(x.dtype, mask is not None, lanes)
    active = build_mask(mask, result.lanes)
    if active is not None:
        return E.Call("vbcast", (x,), result, active)
    return converted(x, result)


@special_op(GROUP, _build_vbcast, c="__vbcast({r}, {x}, {m})", split="vbcast")
def vbcast(x: Any, mask: Any = None, lanes: Any = None) -> Any:
    """A typed scalar in every lane; inactive lanes are unspecified.

    A literal needs a type first: `S.i16(5)`. A bool gives a mask, needs `lanes` and takes no mask.
    """
    if is_literal(x):
        x = values.pyvar(x, bool_of(1) if type(x) is bool else None)
    own = bool_of(1) if type(x) is bool else x.dtype
    result = _bcast_dtype(own, mask is not None, lanes)
    masks.mask_array(mask, result.lanes)
    return values.PyVar(np.full(result.lanes, x if type(x) is bool else x.value), result)


def _build_vsldl(x: Any, y: Any, shift: Any) -> E.Expr:
    types = group_types([operand_of(x), operand_of(y)])
    whole_registers(types[0], "S.vsldl")
    n = _in_range(_constant(shift, "S.vsldl: shift"), types[0].lanes, "S.vsldl: shift")
    return E.Call("vsldl", (converted(x, types[0]), converted(y, types[1]), imm(n, INT32)), types[0])


@special_op(GROUP, _build_vsldl, c="__vsldl({x}, {y}, {shift})", split="vsldl")
def vsldl(x: Any, y: Any, shift: Any) -> Any:
    """The lanes of `x` followed by `y`, from lane `shift` on.

    As many lanes as `x` has, which fills whole registers; `shift` is a constant from 0 to the lanes minus 1.
    """
    types, (a, b) = sim.broadcast("vsldl", [x, y])
    lanes = whole_registers(types[0], "S.vsldl").lanes
    n = _in_range(sim.integer(shift, "S.vsldl: shift"), lanes, "S.vsldl: shift")
    return values.PyVar(np.concatenate([a[n:], b[:n]]), types[0])


def _check_table(table: Any) -> list[Any]:
    if not isinstance(table, (tuple, list)) or not 2 <= len(table) <= 4:
        raise type_error(
            f"S.vtbl: the table is a tuple of 2 to 4 vectors, got {len(table) if isinstance(table, (tuple, list)) else kind_of(table)}"
        )
    return list(table)


def _tbl_dtype(types: list[DataType], indices: DataType) -> DataType:
    first = _native(types[0], "S.vtbl: the table")
    if not indices.is_vector or not indices.is_integer or indices.is_bool:
        raise type_error(f"S.vtbl: indices must be an integer vector, got {indices}")
    if indices.bits != first.bits or indices.lanes != first.lanes:
        raise type_error(f"S.vtbl: indices are {indices}, the table {first}: the widths differ")
    return first


def _build_vtbl(table: Any, indices: Any) -> E.Expr:
    items = _check_table(table)
    types = group_types([operand_of(x) for x in items])
    index = vector_arg(indices, "S.vtbl: indices")
    result = _tbl_dtype(types, index.dtype)
    return E.Call("vtbl", (*[converted(x, t) for x, t in zip(items, types)], index), result)


@special_op(GROUP, _build_vtbl)
def vtbl(table: Any, indices: Any) -> Any:
    """Look up every lane in the concatenation of 2 to 4 registers; out of range gives 0.

    `table` is a tuple of registers of one type, `indices` one register of integers as wide as its elements.
    """
    types, arrays = sim.broadcast("vtbl", _check_table(table))
    result = _tbl_dtype(types, sim.vector(indices, "S.vtbl: indices"))
    whole = np.concatenate(arrays)
    at = indices.value.astype(np.int64)
    inside = (at >= 0) & (at < whole.size)
    return values.PyVar(np.where(inside, whole[np.where(inside, at, 0)], whole.dtype.type(0)), result)


def _build_vreplic(x: Any, index: Any = 0) -> E.Expr:
    vector = vector_arg(x, "S.vreplic: x")
    whole_registers(vector.dtype, "S.vreplic")
    at = int32_arg(index, "S.vreplic: index")
    if type(at) is E.IntImm:
        _in_range(at.value, vector.dtype.lanes, "S.vreplic: index")
    return E.Call("vreplic", (vector, at), vector.dtype)


@special_op(GROUP, _build_vreplic, c="__vreplic({x}, {index})", split="vreplic", ir_operands=("x", "index"))
def vreplic(x: Any, index: Any = 0) -> Any:
    """Lane `index` in every lane.

    The vector fills whole registers. The index is at least 0 and less than the number of lanes: one that is known is
    checked when the kernel is built, a run-time one in PySim.
    """
    dtype = whole_registers(sim.vector(x, "S.vreplic: x"), "S.vreplic")
    n = _in_range(sim.integer(index, "S.vreplic: index"), dtype.lanes, "S.vreplic: index")
    return values.PyVar(np.full(dtype.lanes, x.value[n]), dtype)
