"""A small evaluator of scalar integer expressions with C semantics, for tests."""

from __future__ import annotations

from collections.abc import Callable

from compassc.analysis.arith import fold, is_power_of_two, wrap
from compassc.ir import exprs as E


class Undefined(Exception):
    """C leaves the value open (division by zero, shift by too much)."""


def evaluate(e: E.Expr, values: dict[E.Var, int], is_constant: Callable[[E.Expr], bool]) -> int:
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
