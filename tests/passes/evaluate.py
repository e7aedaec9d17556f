"""A small evaluator of scalar integer expressions and statements with C semantics, for tests."""

from __future__ import annotations

from typing import Any

from compassc.analysis.arith import fold, wrap
from compassc.ir import exprs as E
from compassc.ir import stmts as S


class Undefined(Exception):
    """C leaves the value open (shift by too much)."""


def evaluate(e: E.Expr, values: dict[E.Var, Any]) -> int:
    """The value of an expression; what C leaves open raises Undefined."""
    if type(e) is E.Var:
        return values[e]
    if type(e) is E.IntImm:
        return e.value
    if type(e) is E.Cast:
        return wrap(evaluate(e.value, values), e.dtype)
    if type(e) is E.Unary:
        a = evaluate(e.a, values)
        return 1 - a if e.op == "not" else wrap(~a, e.dtype)
    if type(e) is E.Select:
        return evaluate(e.a if evaluate(e.cond, values) else e.b, values)
    if type(e) is E.Load:
        return values[e.buffer.data][evaluate(e.indices[0], values)]
    assert type(e) is E.Binary
    a = evaluate(e.a, values)
    if e.op in E.LOGICAL:
        return a if a == (e.op == "or") else evaluate(e.b, values)
    value = fold(e.op, a, evaluate(e.b, values), e.a.dtype)
    if value is None:
        raise Undefined
    return value


class Leave(Exception):
    """A break, continue or return on its way out."""


def run_body(body: S.Body, values: dict[E.Var, Any]) -> None:
    """Execute statements; `values` holds scalars and, for storage variables, lists."""
    for s in body:
        _run(s, values)


def _value(e: E.Expr, values: dict[E.Var, Any]) -> int:
    return evaluate(e, values)


def _run(s: S.Stmt, values: dict[E.Var, Any]) -> None:
    if type(s) in (S.Let, S.Assign):
        values[s.var] = _value(s.value, values)
    elif type(s) is S.Store:
        values[s.buffer.data][_value(s.indices[0], values)] = _value(s.value, values)
    elif type(s) is S.Alloc:
        values[s.buffer.data] = [None] * s.buffer.shape[0].value
    elif type(s) is S.If:
        run_body(s.then if _value(s.cond, values) else s.orelse, values)
    elif type(s) in (S.Break, S.Continue, S.Return):
        raise Leave(type(s))
    else:
        assert type(s) is S.For
        _run_loop(s, values)


def _run_loop(s: Any, values: dict[E.Var, Any]) -> None:
    values[s.var] = _value(s.start, values)
    while values[s.var] < _value(s.stop, values):
        try:
            run_body(s.body, values)
        except Leave as leave:
            if leave.args[0] is S.Return:
                raise
            if leave.args[0] is S.Break:
                return
        values[s.var] += _value(s.step, values)
