"""The guarantees of each stage, beyond the well-formedness of any module (`compassc.ir.verify`).

`OPERATIONS` holds everywhere: calls are of declared operations (or of C builtins, which passes introduce), with the
operands, options and mask that the declaration has. `STAGES` says what more holds of a module that was parsed, that
went through the lowering pipeline, and of a legalised one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from compass_core.errors import CompassError

from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.dtypes import DataType, PointerType, Type
from ..ir.rules import rules, table
from ..ir.verify import Rules, verify
from ..ops import core, spelling

Rule = Callable[[object], str | None]
_EXPRS = [c for c in vars(E).values() if isinstance(c, type) and issubclass(c, E.Expr) and c.declared]


def _merged(*tables: Mapping[type, tuple[Rule, ...]]) -> Rules:
    return {cls: tuple([rule for t in tables for rule in t.get(cls, ())]) for cls in {c for t in tables for c in t}}


# ---------------------------------------------------------------------------------------------------------- operations


def _declared(e: E.Call) -> str | None:
    if spelling.is_builtin(e.op):
        return None
    op = core.load().get(e.op)
    if op is None:
        return f"there is no operation {e.op!r}"
    for index, _, _ in op.touches:
        if index >= len(e.args) or not isinstance(e.args[index].dtype, PointerType):
            return f"operand {index} of S.{e.op} is no address"
    return _as_declared(op, e)


def _as_declared(op: core.Op, e: E.Call) -> str | None:
    if not op.takes(len(e.args)):
        return f"S.{e.op} takes {', '.join(op.operands)}, got {len(e.args)} operands"
    for name, _ in e.attrs:
        if name not in op.options:
            return f"S.{e.op} has no option {name!r}"
    if e.mask is not None and not spelling.has_mask(e.op):
        return f"S.{e.op} has no mask"
    return _types(op, e)


def _types(op: core.Op, e: E.Call) -> str | None:
    """The types of operands and result are those of the typing rule. Signs do not count: kernels and passes choose the
    one in which they read a register."""
    if op.typing is None or e.dtype.is_scalar:  # the scalar form becomes other nodes
        return None
    options = {name: value for name, value in e.attrs if name != "out_sign"}
    wrong = ""
    for read in (lambda t: t, _unsigned, _signed):
        given = tuple([read(a.dtype) for a in e.args])
        try:
            typed = op.typing(given, **options)
        except CompassError as error:
            wrong = wrong or error.message
            continue
        if typed.operands == given and _signed(typed.result) == _signed(e.dtype):
            return None
        wrong = wrong or f"{', '.join(map(str, typed.operands))} make {typed.result}"
    return f"S.{e.op} of {', '.join(str(a.dtype) for a in e.args)} is no {e.dtype}: {wrong}"


def _unsigned(t: Type) -> Type:
    return t.with_uint() if isinstance(t, DataType) and t.is_int else t


def _signed(t: Type) -> Type:
    return t.with_int() if isinstance(t, DataType) and t.is_uint else t


def _in_language(e: E.Call) -> str | None:
    return f"{e.op} is a builtin of C, which only legalisation introduces" if spelling.is_builtin(e.op) else None


OPERATIONS: Rules = table(rules(E.Call, _declared))

# ------------------------------------------------------------------------------------------------------------- lowered


def _plain_loop(s: S.For) -> str | None:
    return None if s.kind in ("serial", "tec") else f"a loop is still {s.kind}"


def _flat(e: E.BufferLoad | S.BufferStore) -> str | None:
    return "a buffer is accessed by several indices" if e.buffer.shape else None


def _less_only(e: E.Binary) -> str | None:
    return f"a comparison is still {e.op}" if e.op in ("gt", "ge") else None


# ---------------------------------------------------------------------------------------------------------- legalised


def _serial(s: S.For) -> str | None:
    return None if s.kind == "serial" else f"a loop is still {s.kind}"


def _register(e: E.Expr) -> str | None:
    return f"a value of type {e.dtype} fits no register" if e.dtype.is_vector and not e.dtype.is_native else None


def _no_floor(e: E.Binary) -> str | None:
    return f"{e.op} has no operator in C" if e.op in ("floordiv", "floormod") else None


def _complete(e: E.Call) -> str | None:
    if e.op in ("cast", "tag") and e.dtype.is_vector:
        return f"a vector {e.op} was not lowered"
    if e.r is None and e.dtype.is_vector and spelling.needs_r(e):
        return f"the inactive lanes of {e.op} have no source"
    return None


def _never(what: str) -> Rule:
    return lambda e: f"{what} was not lowered"


_PARSED: Rules = table(rules(E.Call, _in_language))
_LOWERED: Rules = table(
    rules(S.For, _plain_loop),
    rules(S.DeclBuffer, _never("a shaped view")),
    rules(S.BufferStore, _flat),
    rules(E.BufferLoad, _flat),
    rules(E.Binary, _less_only),
)
_LEGALISED: Rules = table(
    rules(S.For, _serial),
    rules(E.Ramp, _never("a ramp")),
    rules(E.TailMask, _never("a tail mask")),
    rules(E.Binary, _no_floor),
    rules(E.Call, _complete),
)
STAGES: dict[str, Rules] = {
    "parsed": _merged(OPERATIONS, _PARSED),
    "lowered": _merged(OPERATIONS, _PARSED, _LOWERED),
    "legalised": _merged(OPERATIONS, _LOWERED, _LEGALISED, table(*(rules(kind, _register) for kind in _EXPRS))),
}


def verify_stage(module: S.IRModule, stage: str = "") -> None:
    """Raise VerifyError when a module is not well formed, or lacks what its stage guarantees ("": of any stage)."""
    verify(module, STAGES[stage] if stage else OPERATIONS)
