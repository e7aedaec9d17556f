"""Rewriting a function from its inputs to its result, where values carry what is known of them until plain ones are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, Union

from compassc.relay.expr import Call, Expr, Function, Tuple
from compassc.relay.operators import Op
from compassc.relay.visit import children, is_primitive, post_order, with_children


class Held(Protocol):
    """A value with what is known of it."""

    def realize(self) -> Expr:
        """The plain value."""


Value = Union[Expr, Held, "list[Value]"]
"""A plain value, one with knowledge, or the fields of a tuple."""
Rule = Callable[[Call, Sequence[Value]], "Value | None"]
"""What takes the place of a call of an operator on values; None for the call of plain ones."""


def plain(value: Value) -> Expr:
    """A value as an expression without knowledge."""
    if isinstance(value, list):
        return Tuple([plain(v) for v in value])
    return value if isinstance(value, Expr) else value.realize()


def applied(call: Call, args: Sequence[Expr]) -> Call:
    """The call on other arguments."""
    made = with_children(call, [call.op, *args])
    assert isinstance(made, Call)
    return made


def forward(function: Function, rule: Rule, result: Callable[[Value], Expr] = plain) -> Function:
    """The function after `rule` on each call of an operator, inputs first. `result`: the expression that its value becomes."""
    made: dict[int, Value] = {}
    for e in post_order(function.body, is_primitive):
        made[id(e)] = _one(e, made, rule)
    return function.replace(body=result(made[id(function.body)]))


def _one(e: Expr, made: dict[int, Value], rule: Rule) -> Value:
    if isinstance(e, Tuple):
        return [made[id(f)] for f in e.fields]
    if isinstance(e, Call) and isinstance(e.op, Op):
        given = [made[id(a)] for a in e.args]
        found = rule(e, given)
        return applied(e, [plain(a) for a in given]) if found is None else found
    return e if is_primitive(e) else with_children(e, [plain(made[id(c)]) for c in children(e)])
