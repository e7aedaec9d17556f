"""Documentation derived from the declarations: one Markdown page per operation, and the table of all operations.

What an operation accepts is not written down a second time: its typing rule is asked, type by type.
"""

from __future__ import annotations

from inspect import Parameter, Signature
from typing import NamedTuple

from compass_core.errors import CompassError

from ..ir.dtypes import BOOL, STORAGE, DataType, make_dtype
from . import core
from .core import Op
from .rules import FLOATS, INTS

FORMS = ("scalar", "native", "multiple", "flexible")
FORM_NOTES = "native: one 256-bit register; multiple: several whole registers; flexible: any other lane count"
_REGISTERS = {"native": 1, "multiple": 3}
_FLEXIBLE_LANES = 5

ARGUMENTS = {
    "mask": "active lanes: a mask string, a list of bools, a bool array or a mask value; None means all",
    "r": "value of inactive lanes, a scalar or vector that fits the result; without it the mask is ignored",
    "saturate": "clip the result to the range of its type instead of wrapping",
    "out_sign": 'sign of an integer result: "s", "u", or None for the default',
    "with_round": "round to nearest, ties to even, instead of dropping bits",
    "return_idx": "also give the index of the lane found",
    "to_h": "narrow to 16 bits instead of 8",
}


class Row(NamedTuple):
    """One operation in the overview."""

    name: str
    group: str
    signature: str
    dtypes: str


def vector_of(t: DataType, form: str) -> DataType:
    """The type of element `t` in a form; masks count as native with 32 lanes."""
    if form == "scalar":
        return t
    return t.with_lanes(_REGISTERS[form] * (t.native_lanes or 32) if form in _REGISTERS else _FLEXIBLE_LANES)


def _ask(op: Op, operands: list[DataType]) -> DataType | None:
    """The result type for operand types; None where the typing rule refuses them."""
    options = {name: op.signature.parameters[name].default for name in op.options}
    try:
        return op.typing(operands, **options).result if op.typing else None
    except CompassError:
        return None


def operands_of(op: Op, t: DataType, form: str) -> list[DataType]:
    """Operand types of element type `t` in a form that the operation accepts; empty where it has no such form. An
    accumulator is of the type itself or of a wider one of the same kind."""
    x = vector_of(t, form)
    plain = [x] * len(op.operands)
    if _ask(op, plain) is not None:
        return plain
    if op.operands[0] != "acc" or form == "scalar":
        return []
    code = "float" if t in FLOATS else t.type_code
    wider = (make_dtype(code, t.bits * by, x.lanes // by) for by in (2, 4) if t.bits * by <= 32)
    return next((found for acc in wider if _ask(op, found := [acc, *plain[1:]]) is not None), [])


def result_of(op: Op, t: DataType, form: str) -> DataType | None:
    """The result of an operation on operands of element type `t` in a form; None where it has no such form."""
    operands = operands_of(op, t, form)
    return _ask(op, operands) if operands else None


def forms(op: Op) -> dict[DataType, dict[str, DataType]]:
    """The result type per accepted element type and form."""
    found = {t: {form: result_of(op, t, form) for form in FORMS} for t in (*STORAGE, BOOL)}
    kept = {t: {form: r for form, r in row.items() if r is not None} for t, row in found.items()}
    return {t: row for t, row in kept.items() if row}


def dtype_summary(types: list[DataType]) -> str:
    """Element types in few words."""
    rest, words = list(types), []
    for group, word in ((INTS, "integers"), (FLOATS, "floating-point"), ((BOOL,), "masks")):
        if all(t in rest for t in group):
            words.append(word)
            rest = [t for t in rest if t not in group]
    return ", ".join([*words, *rest])


def usage(op: Op) -> str:
    """A call of the operation with its parameters and their defaults."""
    parameters = [p.replace(annotation=Parameter.empty) for p in op.signature.parameters.values()]
    return f"S.{op.name}{Signature(parameters)}"


def table() -> list[Row]:
    """All operations, by group and name."""
    rows = [
        Row(op.name, op.group, usage(op), "" if op.special else dtype_summary(list(forms(op))))
        for op in core.load().values()
    ]
    return sorted(rows, key=lambda row: (row.group, row.name))


def _types_section(op: Op) -> list[str]:
    lines = ["## Types", "", f"| element | {' | '.join(FORMS)} | result |", "|---" * (len(FORMS) + 2) + "|"]
    for t, row in forms(op).items():
        example = next(form for form in ("native", *FORMS) if form in row)
        cells = " | ".join("yes" if form in row else "no" for form in FORMS)
        lines.append(f"| {t} | {cells} | `{vector_of(t, example)}` -> `{row[example]}` |")
    return [*lines, "", FORM_NOTES + ".", ""]


def _inactive(op: Op) -> str:
    if op.r == "auto" and not op.extra.get("mask_aware"):
        return "Inactive lanes are undefined."
    return "Inactive lanes take `r`; without `r` every lane is computed." if op.r == "param" else ""


def page(op: Op) -> str:
    """The Markdown page of an operation."""
    lines = [f"# S.{op.name}", "", f"`{usage(op)}`", "", f"Group: {op.group}", "", op.doc, ""]
    known = [name for name in op.signature.parameters if name in ARGUMENTS and name not in op.operands]
    if known and not op.special:
        lines += ["## Options", "", *(f"- `{name}`: {ARGUMENTS[name]}" for name in known), ""]
    if _inactive(op):
        lines += [_inactive(op), ""]
    if not op.special:
        lines += _types_section(op)
    if op.c:
        lines += ["## C", "", *(f"- {when or 'otherwise'}: `{template}`" for when, template in op.c), ""]
    return "\n".join(lines)
