"""Move an If that is all a loop does, and does not depend on the loop, outside the loop.

Before: any module.
After: no loop body is a single If whose condition is free of the loop variable, loads, calls, changing variables and
divisions by what may be 0, unless the loop's bounds have effects.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from ..analysis.statements import fresh_copy, mutable_vars
from ..analysis.structure import is_pure, is_stable, may_be_reported, variables
from ..ir import stmts as S
from ..ir.exprs import Var
from ..ir.stmts import Body, IRModule, PrimFunc, Stmt
from ..ir.visit import walk_stmts

NAME = "HoistIfThenElse"


def run(module: IRModule) -> IRModule:
    return module.map_functions(_function)


def _function(f: PrimFunc) -> PrimFunc:
    if not any(type(s) is S.For and _sole_if(s.body) for s in walk_stmts(f.body)):
        return f
    mutable = mutable_vars(f)
    body = _hoist(f.body, mutable)
    return f if body is f.body else f.replace(body=body)


def _sole_if(body: Body) -> bool:
    return len(body) == 1 and type(body[0]) is S.IfThenElse


def _hoist(body: Body, mutable: AbstractSet[Var]) -> Body:
    new = tuple([_stmt(s, mutable) for s in body])
    return body if all(a is b for a, b in zip(new, body)) else new


def _stmt(s: Stmt, mutable: AbstractSet[Var]) -> Stmt:
    s = s.map(lambda e: e, lambda b: _hoist(b, mutable))
    if type(s) is not S.For or not _sole_if(s.body):
        return s
    inner = s.body[0]
    assert isinstance(inner, S.IfThenElse)
    bounds = is_pure(s.min) and is_pure(s.stop) and is_pure(s.step)
    cond = inner.condition
    if not bounds or s.loop_var in variables(cond) or not is_stable(cond, mutable) or may_be_reported(cond):
        return s
    then: Body = (_stmt(_around(s, inner.then_case), mutable),) if inner.then_case else ()
    orelse: Body = (_stmt(_around(s, inner.else_case), mutable),) if inner.else_case else ()
    if then and orelse:
        orelse = fresh_copy(orelse)
    return S.IfThenElse(inner.condition, then, orelse, span=inner.span)


def _around(s: S.For, body: Body) -> Stmt:
    return S.For(s.loop_var, s.kind, s.min, s.stop, s.step, body, span=s.span)
