"""Documentation derived from the declarations: the Markdown page of an operation, and the table of all operations.

What an operation accepts is not written down a second time: its typing rule is asked, type by type.
"""

from __future__ import annotations

from collections.abc import Iterable
from inspect import Parameter, Signature
from typing import Any

from compass_core.errors import CompassError
from compass_core.namedtuple import NamedTuple

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
    "out_sign": 'sign of an integer result: `"s"`, `"u"`, or None for the default',
    "with_round": "round to nearest, ties to even, instead of dropping bits",
    "return_idx": "also give the index of the lane found",
    "to_h": "narrow to 16 bits instead of 8",
    "part": 'which lanes: `"all"`, or the `"low"`, `"high"`, `"even"` or `"odd"` half',
    "lanes": "lanes of the result, a constant above 1",
    "stride": "elements between two lanes in memory, at least 1",
    "src_stride": "elements from one row of the source to the next",
    "dst_stride": "elements from one row of the destination to the next",
    "times": "number of rows",
    "event": "an event of `S.alloc_events`, by which `S.wait_events` waits for the copy",
}
FIELDS = {"r": "the source of inactive lanes", "m": "the mask", "T": "the C type of the result"}


class OperationSummary(NamedTuple):
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


def table() -> list[OperationSummary]:
    """All operations, by group and name."""
    rows = [
        OperationSummary(op.name, op.group, usage(op), "" if op.special else dtype_summary(list(forms(op))))
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
    if op.r == "auto" and not op.mask_aware:
        return "Inactive lanes are undefined."
    return "Inactive lanes take `r`; without `r` every lane is computed." if op.r == "param" else ""


def refusals(op: Op) -> list[tuple[str, str]]:
    """Calls the typing rule refuses, each with its message: one per kind of mistake that the operation knows."""
    if op.typing is None:
        return []
    i32, u32, f32 = (make_dtype(code, 32, 8) for code in ("int", "uint", "float"))
    good = next((operands_of(op, t, "native") for t in forms(op) if operands_of(op, t, "native")), [])
    count = len(op.operands)
    found: dict[str, tuple[str, CompassError]] = {}
    tries: list[tuple[str, list[DataType], dict[str, Any]]] = [
        ("scalars", [i32.element_of] * count, {}),
        ("float vectors", [f32] * count, {}),
        ("integer vectors", [i32] * count, {}),
        ("bfloat16 vectors", [make_dtype("bfloat", 16, 16)] * count, {}),
        ("8-bit vectors", [make_dtype("int", 8, 32)] * count, {}),
        ("signed with unsigned", [i32, u32, u32][:count], {}),
        ("lanes that differ", [*good[:-1], good[-1].with_lanes(good[-1].lanes + 1)] if good else [], {}),
        ("a lane count of 5", [t.with_lanes(5) for t in good], {}),
        ("saturate on floats", [f32] * count, {"saturate": True}),
    ]
    for title, operands, options in tries:
        if (
            not operands
            or any(name not in op.options for name in options)
            or (title.startswith("signed") and count < 2)
        ):
            continue
        defaults = {name: op.signature.parameters[name].default for name in op.options}
        try:
            op.typing(operands, **{**defaults, **options})
        except CompassError as error:
            found.setdefault(error.message, (f"{title}: `{', '.join(map(str, operands))}`", error))
    return [(title, f"{message}; {e.help}" if e.help else message) for message, (title, e) in found.items()]


def arguments(op: Op) -> dict[str, str]:
    """The descriptions of an operation's options, by name."""
    known = {**ARGUMENTS, **op.arguments}
    return {n: known[n] for n in op.signature.parameters if n in known and (op.special or n not in op.operands)}


def _options_section(op: Op) -> list[str]:
    known = arguments(op)
    return ["## Options", "", *(f"- `{name}`: {text}" for name, text in known.items()), ""] if known else []


def _c_section(op: Op) -> list[str]:
    if not op.c:
        return []
    used = [f"`{{{f}}}` is {text}" for f, text in FIELDS.items() if any(f"{{{f}}}" in c for _, c in op.c)]
    lines = ["## C", "", *(f"- {when or 'otherwise'}: `{template}`" for when, template in op.c), ""]
    return [*lines, f"The first line whose conditions hold is used; {', '.join(used)}.", ""] if used else lines


def _refusals_section(op: Op) -> list[str]:
    rows = refusals(op)
    if not rows:
        return []
    return ["## Errors", "", "| given | message |", "|---|---|", *(f"| {a} | {b} |" for a, b in rows), ""]


def page(op: Op, example: Iterable[str] = ()) -> str:
    """The Markdown page of an operation; `example`: the lines of that section (`compassc.reference` makes them)."""
    lines = [f"# S.{op.name}", "", f"`{usage(op)}`", "", f"Group: {op.group}", "", op.doc, "", *_options_section(op)]
    if _inactive(op):
        lines += [_inactive(op), ""]
    if not op.special:
        lines += _types_section(op)
    return "\n".join([*lines, *example, *_c_section(op), *_refusals_section(op)]).rstrip() + "\n"


def documented() -> list[Op]:
    """The operations that a kernel can call, by name."""
    return [op for _, op in sorted(core.load().items()) if op.public]


def index() -> str:
    """The Markdown page that lists all operations by group."""
    lines = ["# Operations", "", "Made by `make docs` from the declarations in `compassc/ops`.", ""]
    group = ""
    for row in table():
        op = core.get(row.name)
        if not op.public:
            continue
        if row.group != group:
            group = row.group
            lines += ["", f"## {group}", "", "| operation | what it does | element types |", "|---|---|---|"]
        first = " ".join(op.doc.split("\n\n")[0].split())
        lines.append(f"| [`S.{row.name}`]({row.name}.md) | {first} | {row.dtypes or 'see the page'} |")
    return "\n".join(lines).replace("\n\n\n", "\n\n") + "\n"
