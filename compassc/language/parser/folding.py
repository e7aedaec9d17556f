"""Variables that the parser made to keep values: those that turn out not to be needed are removed again.

`t = (a, x[0])` keeps what a and x[0] are now. Where nothing can change a, its name does as well.
"""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Set as AbstractSet

from ...ir import exprs as E
from ...ir import stmts as S
from ...ir.dtypes import PointerType
from ...ir.visit import rename_vars, substitute, substitute_body, walk_exprs, walk_stmts
from ...ops import core


def without_needless(body: S.Body, made: AbstractSet[E.Var], addressed: AbstractSet[E.Var]) -> S.Body:
    """The body with the values of variables in `made` in their place, where these are the same there."""
    if not made:
        return body
    changed = {s.var for s in walk_stmts(body) if isinstance(s, (S.Assign, S.SetElement))} | set(addressed)
    values: dict[E.Var, E.Expr] = {}
    names: dict[E.Var, E.Var] = {}
    for s in walk_stmts(body):
        if type(s) is not S.Let or s.var not in made or s.var in changed or not is_stable(s.value, changed):
            continue
        if not isinstance(s.var.dtype, PointerType):
            values[s.var] = substitute(s.value, values)
        elif (base := _whole(s.value)) is not None and base.dtype is s.var.dtype:
            names[s.var] = names.get(base, base)
    gone = values.keys() | names.keys()
    body = rename_vars(substitute_body(_without(body, gone), values), names) if gone else body
    used = {x for s in walk_stmts(body) for e in s.exprs() for x in walk_exprs(e) if type(x) is E.Var}
    unused = {v for v in made if v not in used and v not in changed}
    return _without(body, unused) if unused else body


def is_stable(e: E.Expr, changed: Collection[E.Var]) -> bool:
    """Whether an expression has the same value wherever its variables are defined."""
    if e.flags & (E.F_LOAD | E.F_FUNC):
        return False
    return not any((type(x) is E.Var and x in changed) or (type(x) is E.Call and not _pure(x)) for x in walk_exprs(e))


def _pure(e: E.Call) -> bool:
    return core.get(e.op).effect == "pure"


def _whole(e: E.Expr) -> E.Var | None:
    """The variable that a pointer expression is."""
    whole = type(e) is E.Pointer and type(e.offset) is E.IntImm and e.offset.value == 0
    return e.base if whole and isinstance(e, E.Pointer) and isinstance(e.base, E.Var) else None


def _without(body: S.Body, gone: AbstractSet[E.Var]) -> S.Body:
    """The body without the definitions of variables; what they call is still called."""
    kept: list[S.Stmt] = []
    for s in body:
        if type(s) is not S.Let or s.var not in gone:
            kept.append(s.map(lambda e: e, lambda inner: _without(inner, gone)))
        elif not is_idle(s.value):
            kept.append(S.Evaluate(s.value, span=s.span))
    return tuple(kept)


def is_idle(e: E.Expr) -> bool:
    """Whether computing an expression changes nothing."""
    if not e.flags & (E.F_CALL | E.F_FUNC):
        return True

    calls = (x for x in walk_exprs(e) if type(x) is E.Call)
    return not e.flags & E.F_FUNC and all(core.get(x.op).effect in ("pure", "read") for x in calls)
