"""A small evaluator of scalar integer expressions and statements with C semantics, for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compassc.analysis.arith import fold, is_power_of_two, wrap
from compassc.ir import exprs as E
from compassc.ir import stmts as S


class Undefined(Exception):
    """C leaves the value open (shift by too much)."""


def evaluate(e: E.Expr, values: dict[E.Var, Any], is_constant: Callable[[E.Expr], bool]) -> int:
    """The value of an expression; what C leaves open raises Undefined.

    Floor division truncates but for constant powers of two, and between operands that fold to constants.
    """
    if type(e) is E.Var:
        return values[e]
    if type(e) is E.IntImm:
        return e.value
    if type(e) is E.Cast:
        return wrap(evaluate(e.value, values, is_constant), e.dtype)
    if type(e) is E.Unary:
        a = evaluate(e.a, values, is_constant)
        return 1 - a if e.op == "not" else wrap(~a, e.dtype)
    if type(e) is E.Select:
        return evaluate(e.a if evaluate(e.cond, values, is_constant) else e.b, values, is_constant)
    if type(e) is E.Load:
        return values[e.buffer.data][evaluate(e.indices[0], values, is_constant)]
    assert type(e) is E.Binary
    a = evaluate(e.a, values, is_constant)
    if e.op in E.LOGICAL:
        return a if a == (e.op == "or") else evaluate(e.b, values, is_constant)
    b, op = evaluate(e.b, values, is_constant), e.op
    constant_power = type(e.b) is E.IntImm and is_power_of_two(b)
    floors = constant_power or (is_constant(e.a) and is_constant(e.b))
    if op in ("floordiv", "floormod") and not floors:
        op = op.removeprefix("floor")
    value = fold(op, a, b, e.a.dtype)
    if value is None:
        raise Undefined
    return value


class Leave(Exception):
    """A break or return on its way out."""


def run_body(body: S.Body, values: dict[E.Var, Any]) -> None:
    """Execute statements; `values` holds scalars and, for storage variables, lists."""
    for s in body:
        _run(s, values)


def _value(e: E.Expr, values: dict[E.Var, Any]) -> int:
    return evaluate(e, values, lambda _: False)


def _run(s: S.Stmt, values: dict[E.Var, Any]) -> None:
    if type(s) in (S.Let, S.Assign):
        values[s.var] = _value(s.value, values)
    elif type(s) is S.Store:
        values[s.buffer.data][_value(s.indices[0], values)] = _value(s.value, values)
    elif type(s) is S.Alloc:
        values[s.buffer.data] = [None] * s.buffer.shape[0].value
    elif type(s) is S.If:
        run_body(s.then if _value(s.cond, values) else s.orelse, values)
    elif type(s) in (S.Break, S.Return):
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
            return
        values[s.var] += _value(s.step, values)
