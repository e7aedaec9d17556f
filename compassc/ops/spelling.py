"""How a call is spelt in C: picks one of the templates of its operation.

Besides the declared operations there are *builtins*: names that exist only in legalised modules (`__vexte`,
`convert_int8`, ...). Those without an entry in `BUILTINS` are printed as `name(args...)`, with the mask as last
argument when the call has one.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING

from ..ir.dtypes import DataType, PointerType
from ..ir.exprs import Call
from . import core

if TYPE_CHECKING:
    from .core import Op

Cases = tuple[tuple[str, str], ...]


def _bit_clear_like(name: str) -> Cases:
    return (
        ("masks", f"{name}({{x}}, {{y}}, {{m}})"),
        ("all_true", f"{name}({{x}}, {{y}})"),
        ("", f"{name}({{r}}, {{x}}, {{y}}, {{m}})"),
    )


BUILTINS: dict[str, Cases] = {
    "__vbclr": _bit_clear_like("__vbclr"),
    "__vbset": _bit_clear_like("__vbset"),
    "__vnand": (("", "__vnand({x}, {y}, {m})"),),
    "__vnor": (("", "__vnor({x}, {y}, {m})"),),
    "__vcompt": (("", "__vcompt({x}, {m})"),),
}
BUILTIN_OPERANDS = ("x", "y", "z", "w")


def is_builtin(name: str) -> bool:
    """Whether a call's operation is a C builtin that only legalisation introduces."""
    return name.startswith("__") or name in ("convert_int8", "init_event_state")


def operand_names(name: str) -> tuple[str, ...]:
    """Template fields of the operands of an operation or builtin."""
    return BUILTIN_OPERANDS if is_builtin(name) else core.get(name).operands


def cases(name: str) -> Cases:
    """The (condition, template) pairs of an operation or builtin."""
    return BUILTINS.get(name, ()) if is_builtin(name) else core.get(name).c


@cache
def has_mask(name: str) -> bool:
    """Whether an operation takes a mask, so that lanes can be switched off."""
    if is_builtin(name):
        return any("{m}" in template for _, template in cases(name))
    op = core.get(name)
    return op.has_mask or any("{m}" in template for _, template in op.c)


@cache
def mask_operand(name: str) -> int:
    """Index of the operand whose lanes the mask has; -1 stands for the result."""
    return 0 if is_builtin(name) else core.get(name).mask_like


def mask_dtype(call: Call) -> DataType | PointerType:
    """The type whose lanes the mask of `call` has: the declared operand's, else the result's or a vector operand's."""
    like = mask_operand(call.op)
    operands = [a.dtype for a in call.args]
    first = [operands[like]] if 0 <= like < len(operands) else []
    return next((t for t in (*first, call.dtype, *operands) if t.is_vector), call.dtype)


def choose(op: Op, call: Call) -> str:
    """The C template of a call; an empty string when the operation declares none."""
    return template_of(call) if op.name == call.op else _choose(op.name, *_facts(call))


def template_of(call: Call) -> str:
    """The C template of a call of an operation or builtin; an empty string when there is none."""
    return _choose(call.op, *_facts(call))


def needs_r(call: Call) -> bool:
    """Whether the C form of a call takes a source for its inactive lanes."""
    return _has_source(call.op) and "{r}" in _choose(call.op, *_facts(call))


@cache
def _has_source(name: str) -> bool:
    """Whether an operation has a C form that takes a source."""
    return any("{r}" in template for _, template in cases(name))


def _facts(call: Call) -> tuple[object, ...]:
    return call.attrs, call.mask is None, call.dtype, tuple([a.dtype for a in call.args])


def _words(
    name: str,
    attrs: tuple[tuple[str, object], ...],
    all_true: bool,
    result: DataType | PointerType,
    types: tuple[DataType | PointerType, ...],
) -> dict[str, bool]:
    """The words of conditions and whether each holds: options that are set, and facts about mask and types."""
    first = types[0] if types and isinstance(types[0], DataType) else None
    return {
        "saturate": False,
        "with_round": False,
        **dict.fromkeys(() if is_builtin(name) else core.get(name).options, False),
        **{option: bool(value) for option, value in attrs},
        "all_true": all_true,
        "float": first is not None and first.is_floating,
        "int": first is not None and first.is_integer and not first.is_bool,
        "signed": first is not None and first.is_int,
        "unsigned": first is not None and first.is_uint,
        "bits16": first is not None and first.bits == 16,
        "scalar": not any(t.is_vector for t in types),
        "masks": first is not None and first.is_mask,
        "mixed": first is not None
        and len(types) > 1
        and isinstance(types[1], DataType)
        and first.is_int != types[1].is_int,
        "result_signed": isinstance(result, DataType) and result.is_int,
    }


@lru_cache(maxsize=4096)
def _choose(
    name: str,
    attrs: tuple[tuple[str, object], ...],
    all_true: bool,
    result: DataType,
    types: tuple[DataType | PointerType, ...],
) -> str:
    known = _words(name, attrs, all_true, result, types)
    for condition, template in cases(name):
        words = [word.strip() for word in condition.split("&") if word.strip()]
        if all(not known[word[1:]] if word.startswith("!") else known[word] for word in words):
            return template
    return ""
