"""What expressions exist, asked from the declarations: operations and operators by the type of their result."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from compass_core.errors import CompassError
from compassc.ir import exprs as E
from compassc.ir.dtypes import BOOL, STORAGE, DataType, bool_of, dtype, make_dtype
from compassc.language.parser import operators
from compassc.language.parser.values import Value
from compassc.ops import core
from compassc.ops.docs import operands_of
from compassc.ops.typing import promote

FLAGS = ("saturate", "with_round", "to_h")
LANE0 = ("vrpadd", "vrpmax", "vrpmin")
BF16 = dtype("bfloat16")
NOT_DRAWN = ("ceildiv",)  # its divisor needs care


@dataclass(frozen=True)
class Form:
    """A call of an operation: operand types, options that are not defaults, lanes of its mask (0: takes none)."""

    op: core.Op
    operands: tuple[DataType, ...]
    options: tuple[tuple[str, Any], ...]
    mask_lanes: int
    mask_width: int


def _option_sets(op: core.Op) -> list[tuple[tuple[str, Any], ...]]:
    sets: list[tuple[tuple[str, Any], ...]] = [()]
    for flag in FLAGS:
        if flag in op.options:
            sets += [(*s, (flag, True)) for s in sets]
    if "out_sign" in op.options:
        sets += [(*s, ("out_sign", sign)) for s in sets for sign in "su"]
    if "part" in op.options:
        sets += [(*s, ("part", part)) for s in sets for part in ("low", "high", "even", "odd")]
    return sets


@cache
def _defaults(name: str) -> dict[str, Any]:
    op = core.get(name)
    return {option: op.signature.parameters[option].default for option in op.options}


def _infer(op: core.Op, operands: list[DataType], options: dict[str, Any]) -> Any:
    try:
        return op.typing(operands, **{**_defaults(op.name), **options}) if op.typing else None
    except CompassError:
        return None


def _operand_sets(op: core.Op, t: DataType) -> list[list[DataType]]:
    """Operands all of type `t`, the last or an accumulator of the other sign, an accumulator of a wider type."""
    n = len(op.operands)
    sets = [[t] * n]
    if t.is_integer and not t.is_bool and n > 1:
        other = t.with_uint() if t.is_int else t.with_int()
        sets += [[t] * (n - 1) + [other], [other] + [t] * (n - 1)]
    if op.operands[0] == "acc" and t.is_vector:
        for by in (2, 4):
            if t.bits * by <= 32 and t.lanes % by == 0:
                for code in ("int", "uint") if t.is_integer else ("float",):
                    acc = make_dtype(code, t.bits * by, t.lanes // by)
                    sets += [[acc, *s[1:]] for s in list(sets) if s[0].bits == t.bits]
    return sets


@cache
def op_forms(result: DataType, target: str) -> tuple[Form, ...]:
    """Every call of a value operation that gives `result`, on a target generation."""
    found: list[Form] = []
    lane_counts = (1,) if result.is_scalar else (result.lanes, result.lanes * 2, result.lanes * 4, result.lanes // 2)
    for elem in (*STORAGE, BOOL):
        for lanes in lane_counts:
            if lanes and (lanes > 1 or result.is_scalar) and lanes * elem.bits <= 2048:
                forms = _forms_on(elem.with_lanes(lanes)).get(result, ())
                found += [form for form, targets in forms if not targets or target in targets]
    return tuple(found)


@cache
def _forms_on(t: DataType) -> dict[DataType, list[tuple[Form, tuple[str, ...]]]]:
    """The calls whose operands are of type `t` in the main, by result type, each with the generations that have it."""
    found: dict[DataType, list[tuple[Form, tuple[str, ...]]]] = {}
    for op in core.load().values():
        if op.special or op.name in NOT_DRAWN or op.name in LANE0:
            continue
        if op.name == "vqdot" and t.is_floating:
            continue  # every other lane of it is unspecified
        for operands in _operand_sets(op, t):
            for options in _option_sets(op):
                typed = _infer(op, operands, dict(options))
                if typed is not None:
                    found.setdefault(typed.result, []).append((_form(op, operands, options, typed), typed.targets))
    return found


def _form(op: core.Op, operands: list[DataType], options: tuple[tuple[str, Any], ...], typed: Any) -> Form:
    lanes = width = 0
    if op.has_mask and any(o.is_vector for o in operands):
        lanes = core.mask_lanes_of(op, typed)
        governed = typed.result if op.mask_like < 0 or typed.mask_lanes else typed.operands[op.mask_like]
        width = next((o.bits for o in (governed, *typed.operands) if o.lanes == lanes), 0)
    return Form(op, tuple(operands), options, lanes, width)


@cache
def lane0_forms(result: DataType) -> tuple[tuple[core.Op, DataType], ...]:
    """Reductions whose lane 0 is a `result`."""
    if result.is_bool:
        return ()
    found = []
    for name in LANE0:
        op = core.get(name)
        operands = operands_of(op, result, "native")
        typed = _infer(op, operands, {}) if operands else None
        if typed is not None and typed.result.element_of is result:
            found.append((op, operands[0]))
    return tuple(found)


@cache
def binary_type(symbol: str, a: DataType, b: DataType) -> DataType | None:
    """The type of `a symbol b`; None where the language refuses it."""
    if BF16 in (a, b):
        return None  # there is no scalar arithmetic of bfloat16
    try:
        return operators.binary(symbol, Value(E.Var("a", a)), Value(E.Var("b", b))).dtype
    except CompassError:
        return None


@cache
def operand_pairs(symbol: str, result: DataType) -> tuple[tuple[DataType, DataType], ...]:
    """Operand types (scalar or vector) of an operator whose result is `result`."""
    elem, lanes = result.element_of, result.lanes
    pairs = []
    for other in (*STORAGE, BOOL):
        if promote(elem, other) is elem:
            for x, y in ((elem, other), (other, elem)):
                shapes = [(lanes, lanes)] if lanes == 1 else [(lanes, lanes), (lanes, 1), (1, lanes)]
                for p, q in shapes:
                    pair = x.with_lanes(p), y.with_lanes(q)
                    if any(t.is_mask for t in pair) and not result.is_bool:
                        continue
                    if binary_type(symbol, *pair) is result:
                        pairs.append(pair)
    return tuple(pairs)


@cache
def compare_pairs(elem: DataType, lanes: int) -> tuple[tuple[DataType, DataType], ...]:
    """Operand types of a comparison whose common element type is `elem`."""
    pairs = []
    for other in STORAGE:
        if promote(elem, other) is elem:
            for p, q in [(1, 1)] if lanes == 1 else [(lanes, lanes), (lanes, 1), (1, lanes)]:
                pair = elem.with_lanes(p), other.with_lanes(q)
                if binary_type("<", *pair) is bool_of(lanes):
                    pairs.append(pair)
    return tuple(pairs)
