"""Permutation operations: what moves lanes without changing their values."""

from __future__ import annotations

from collections.abc import Mapping

from compass_core.arrays import Array
from compass_core.errors import CompassError
from compass_core.lazy import np

from ..ir import exprs as E
from ..ir.dtypes import BOOL, INT32, STORAGE, VECTOR_BITS, DataType
from .args import choice, int32_arg, kind_of, known_int, lanes_arg, vector_arg
from .core import Cost, Part, build_mask, imm, operand_of, special_op, value_op
from .core import convert as converted
from .exact import chosen, half_of
from .example import Example, unary
from .typing import Operand, Typed, broadcast_group, is_literal, same_sign, type_error

GROUP = "Permutation"
LANES_MOVED: Mapping[Part, str] = {"definition": "tests/agreement/test_lanes.py has every width, mask and part"}

HALVES = ("low", "high", "even", "odd")

PARTS = ("all", *HALVES)


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


def one_register(t: DataType, what: str) -> DataType:
    if not t.is_native or t.is_mask:
        raise type_error(
            f"{what}: {t} is not a vector of one register", "work on parts of one register: S.vsplit and S.vconcat"
        )
    return t


def _constant(x: object, what: str) -> int:
    x = known_int(x)
    if type(x) is not int:
        raise type_error(f"{what} must be a constant integer, got {kind_of(x)}")
    return x


def in_range(value: int, lanes: int, what: str) -> int:
    if not 0 <= value < lanes:
        raise CompassError(f"{what} must be from 0 to {lanes - 1}, got {value}", code="range")
    return value


# ------------------------------------------------------------------------------------------------- joining and splitting


def check_inputs(inps: object) -> list[object]:
    if not isinstance(inps, (tuple, list)) or len(inps) < 2:
        raise type_error(f"S.vconcat: a tuple or list of at least 2 vectors is expected, got {inps!r}")
    return list(inps)


def concat_dtype(types: list[DataType], part: str) -> DataType:
    choice(part, PARTS, "S.vconcat: part")
    lanes = whole_registers(types[0], "S.vconcat").lanes * len(types)
    return types[0].with_lanes(lanes if part == "all" else lanes // 2)


@special_op(
    group=GROUP,
    operands=("*inps",),
    options=("part",),
    split="vconcat",
    cost=Cost("permute", {"__vext*": "permute", "__wexte": "permute", "__pexte": "permute"}),
    example=Example('S.vstore(S.vconcat((S.vload(x), S.vload(y)), "even"), out)'),
    exempt=LANES_MOVED,
    types={"inps": "Sequence[Value]"},
)
def vconcat(inps: object, part: str = "all") -> E.Expr:
    """Concatenate vectors, or the low, high, even or odd half of each of them.

    `inps` is a tuple or list of at least two vectors of one type that fill whole registers; the result has the lanes of
    all of them, or half as many.
    """
    items = check_inputs(inps)
    types = group_types([operand_of(x) for x in items])
    args = tuple(converted(x, t) for x, t in zip(items, types))
    return E.Call("vconcat", args, concat_dtype(types, part), attrs=(("part", part),))


def split_types(x: DataType) -> tuple[DataType, int]:
    if x.is_mask or x.native_lanes == 0:
        raise type_error(f"S.vsplit: {x} cannot be split")
    whole_registers(x, "S.vsplit")
    if x.is_native:
        raise type_error(f"S.vsplit: {x} is one register already, the call is redundant")
    return x.with_lanes(x.native_lanes), x.lanes // x.native_lanes


@special_op(
    group=GROUP,
    options=("index",),
    split="vsplit",
    cost=Cost("free"),
    example=Example("low, high = S.vsplit(S.vload(x, lanes=16))\nS.vstore(S.vadd(low, high), out)", size=16),
    exempt={"c": "LegalizeVectorWidth takes it apart: the registers are variables", **LANES_MOVED},
    returns="tuple[Value, ...]",
)
def vsplit(x: object) -> tuple[E.Expr, ...]:
    """The registers of a vector of several registers, as a tuple to unpack into names.

    The vector fills whole registers, at least two.
    """
    vector = vector_arg(x, "S.vsplit: x")
    part, count = split_types(vector.data_type)
    return tuple(E.Call("vsplit", (vector,), part, attrs=(("index", k),)) for k in range(count))


def _typed_zip(operands: list[Operand], part: str = "all") -> Typed:
    types = group_types(operands)
    choice(part, PARTS, "S.vzip: part")
    if part != "all":
        whole_registers(types[0], "S.vzip")
    result = types[0].with_lanes(types[0].lanes * 2) if part == "all" else types[0]
    return Typed(tuple(types), result)


@value_op(
    group=GROUP,
    parameters='x, y, part="all"',
    typing=_typed_zip,
    split="vzip",
    cost=Cost("permute", {"__vzip*": "permute"}),
    example=Example('S.vstore(S.vzip(S.vload(x), S.vload(y), "low"), out)'),
)
def vzip(x: Array, y: Array, to: DataType, part: str = "all") -> Array:
    """Interleave the lanes of two vectors, or of one half of each.

    x gives the even lanes of the result, y the odd ones. With `"all"` the result has twice the lanes; with a half it has
    as many as x, which then fills whole registers.
    """
    out = np.zeros((len(x), to.lanes), x.dtype)
    out[:, ::2], out[:, 1::2] = half_of(x, part), half_of(y, part)
    return out


# --------------------------------------------------------------------------------------------------- choosing and moving


def _typed_rev(operands: list[Operand]) -> Typed:
    (x,) = operands
    if is_literal(x) or not x.is_vector:
        raise type_error("S.vrevs: the argument must be a vector or a mask")
    return Typed((x,), whole_registers(x, "S.vrevs"))


@value_op(
    group=GROUP,
    parameters="x",
    typing=_typed_rev,
    c=[("masks", "__vprevs({x})"), "__vrevs({x})"],
    split="vrevs",
    cost=Cost("permute"),
    example=unary("i32"),
)
def vrevs(x: Array, to: DataType) -> Array:
    """Reverse the order of the lanes."""
    return x[:, np.arange(x.shape[1])[::-1]]


def _typed_sel(operands: list[Operand]) -> Typed:
    types = group_types(operands)
    return Typed(tuple(types), types[0])


@value_op(
    group=GROUP,
    parameters="x, y, mask=None",
    typing=_typed_sel,
    c="__vsel({x}, {y}, {m})",
    mask_aware=True,
    cost=Cost("alu", mask_is_data=True),
    example=Example("a = S.vload(x)\nS.vstore(S.vsel(a, 0, a > 0), out)"),
    arguments={"mask": "which lanes come from x; None means all"},
)
def vsel(x: Array, y: Array, to: DataType, mask: Array | None = None) -> Array:
    """`x` where the mask is active, `y` elsewhere."""
    return chosen(x, mask, y)


@special_op(
    group=GROUP,
    operands=("x",),
    c="__vcompt({x}, {m})",
    cost=Cost("permute", mask_is_data=True),
    example=Example("a = S.vload(x)\nS.vstore(S.vcompt(a, a > 0), out)"),
    exempt=LANES_MOVED,
)
def vcompt(x: object, mask: object) -> E.Expr:
    """Pack the active lanes at the bottom, zero the rest.

    Active lanes keep their order. The vector is one register.
    """
    vector = vector_arg(x, "S.vcompt: x")
    return E.Call("vcompt", (vector,), one_register(vector.data_type, "S.vcompt"), build_mask(mask, vector.dtype.lanes))


@special_op(
    group=GROUP,
    operands=("x", "y"),
    c="__vcompc({x}, {y}, {m})",
    cost=Cost("permute", mask_is_data=True),
    example=Example("a = S.vload(x)\nS.vstore(S.vcompc(a, S.vload(y), a > 0), out)"),
    exempt=LANES_MOVED,
)
def vcompc(x: object, y: object, mask: object) -> E.Expr:
    """Pack the active lanes of `x` at the bottom, followed by the first lanes of `y`.

    Both are one register of the same type. With n active lanes, result lane n is lane 0 of `y`.
    """
    types = group_types([operand_of(x), operand_of(y)])
    args = (converted(x, types[0]), converted(y, types[1]))
    return E.Call("vcompc", args, one_register(types[0], "S.vcompc"), build_mask(mask, types[0].lanes))


@special_op(
    group=GROUP,
    c="__vshfl({x}, {shift})",
    split="vshfl",
    cost=Cost("permute"),
    example=Example("S.vstore(S.vshfl(S.vload(x), 3), out)"),
    exempt=LANES_MOVED,
)
def vshfl(x: object, shift: object) -> E.Expr:
    """Rotate the lanes towards lane 0 by `shift`.

    Result lane i is lane (i + shift) modulo the lanes. The vector fills whole registers; on one register the shift may
    be a run-time int32, on several it is a constant. It must be from 0 to the lanes minus 1.
    """
    vector = vector_arg(x, "S.vshfl: x")
    whole_registers(vector.data_type, "S.vshfl")
    amount = int32_arg(shift, "S.vshfl: shift")
    if vector.dtype.is_native:
        return E.Call("vshfl", (vector, amount), vector.dtype)
    constant = in_range(
        _constant(shift, "S.vshfl: the shift of several registers"), vector.dtype.lanes, "S.vshfl: shift"
    )
    return E.Call("vshfl", (vector, imm(constant, INT32)), vector.dtype)


def bcast_dtype(x: DataType, has_mask: bool, lanes: object) -> DataType:
    if x.is_bool:
        if has_mask:
            raise type_error("S.vbcast: a bool takes no mask")
        if lanes is None:
            raise type_error("S.vbcast: a bool needs lanes")
    elif x not in STORAGE:
        raise type_error(f"S.vbcast: a scalar is expected, got {x}")
    return x.with_lanes(x.native_lanes if lanes is None else lanes_arg(lanes, "S.vbcast"))


@special_op(
    group=GROUP,
    c="__vbcast({r}, {x}, {m})",
    split="vbcast",
    cost=Cost("permute"),
    example=Example("S.vstore(S.vbcast(x[2]), out)"),
    exempt=LANES_MOVED,
    arguments={"lanes": "lanes of the result; by default one register of the type of x"},
)
def vbcast(x: object, mask: object = None, lanes: object = None) -> E.Expr:
    """A typed scalar in every lane; inactive lanes are unspecified.

    A literal needs a type first: `S.i16(5)`. A bool gives a mask, needs `lanes` and takes no mask.
    """
    if type(x) is bool:
        x = imm(x, BOOL)
    if not isinstance(x, E.Expr) or not isinstance(x.dtype, DataType):
        raise type_error(f"S.vbcast: a typed scalar is expected, got {kind_of(x)}", "give a type: S.i16(5)")
    result = bcast_dtype(x.dtype, mask is not None, lanes)
    active = build_mask(mask, result.lanes)
    if active is not None:
        return E.Call("vbcast", (x,), result, active)
    return converted(x, result)


@special_op(
    group=GROUP,
    c="__vsldl({x}, {y}, {shift})",
    split="vsldl",
    cost=Cost("permute"),
    example=Example("S.vstore(S.vsldl(S.vload(x), S.vload(y), 6), out)"),
    exempt=LANES_MOVED,
)
def vsldl(x: object, y: object, shift: object) -> E.Expr:
    """The lanes of `x` followed by `y`, from lane `shift` on.

    As many lanes as `x` has, which fills whole registers; `shift` is a constant from 0 to the lanes minus 1.
    """
    types = group_types([operand_of(x), operand_of(y)])
    whole_registers(types[0], "S.vsldl")
    n = in_range(_constant(shift, "S.vsldl: shift"), types[0].lanes, "S.vsldl: shift")
    return E.Call("vsldl", (converted(x, types[0]), converted(y, types[1]), imm(n, INT32)), types[0])


def check_table(table: object) -> list[object]:
    if not isinstance(table, (tuple, list)) or not 2 <= len(table) <= 4:
        raise type_error(
            f"S.vtbl: the table is a tuple of 2 to 4 vectors, got {len(table) if isinstance(table, (tuple, list)) else kind_of(table)}"
        )
    return list(table)


def tbl_dtype(types: list[DataType], indices: DataType) -> DataType:
    first = one_register(types[0], "S.vtbl: the table")
    if not indices.is_vector or not indices.is_integer or indices.is_bool:
        raise type_error(f"S.vtbl: indices must be an integer vector, got {indices}")
    if indices.bits != first.bits or indices.lanes != first.lanes:
        raise type_error(f"S.vtbl: indices are {indices}, the table {first}: the widths differ")
    return first


@special_op(
    group=GROUP,
    operands=("*table", "indices"),
    cost=Cost("permute", {"__vtbl": "permute", "__vperm": "permute"}),
    signs="table",
    example=Example(
        "table = (S.vload(x), S.vload(y))\nindices = S.i32x8([0, 8, 1, 9, 2, 10, 3, 99])\n"
        "S.vstore(S.vtbl(table, indices), out)"
    ),
    exempt=LANES_MOVED,
    types={"table": "Sequence[Value]"},
)
def vtbl(table: object, indices: object) -> E.Expr:
    """Look up every lane in the concatenation of 2 to 4 registers; out of range gives 0.

    `table` is a tuple of registers of one type, `indices` one register of integers as wide as its elements.
    """
    items = check_table(table)
    types = group_types([operand_of(x) for x in items])
    index = vector_arg(indices, "S.vtbl: indices")
    result = tbl_dtype(types, index.data_type)
    return E.Call("vtbl", (*[converted(x, t) for x, t in zip(items, types)], index), result)


@special_op(
    group=GROUP,
    c="__vreplic({x}, {index})",
    split="vreplic",
    operands=("x", "index"),
    cost=Cost("permute"),
    example=Example("S.vstore(S.vreplic(S.vload(x), 2), out)"),
    exempt=LANES_MOVED,
)
def vreplic(x: object, index: object = 0) -> E.Expr:
    """Lane `index` in every lane.

    The vector fills whole registers. The index is at least 0 and less than the number of lanes: one that is known is
    checked when the kernel is built, a run-time one in PySim.
    """
    vector = vector_arg(x, "S.vreplic: x")
    whole_registers(vector.data_type, "S.vreplic")
    at = int32_arg(index, "S.vreplic: index")
    if type(at) is E.IntImm:
        in_range(at.value, vector.dtype.lanes, "S.vreplic: index")
    return E.Call("vreplic", (vector, at), vector.dtype)
