"""Loops, which are functions that call themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compassc.relay.expr import Expr, Function, Let, Tuple, Var, as_expr
from compassc.relay.scope_builder import ScopeBuilder


def while_loop(
    cond: Callable[..., object], loop_vars: Sequence[Var], loop_bodies: Callable[..., Sequence[object]]
) -> Expr:
    """A function of first values of the variables. While `cond(*variables)` holds the variables become
    `loop_bodies(*variables)`; it gives the tuple of the last ones."""
    loop = Var("while_loop")
    fresh = [
        Var(v.name_hint if isinstance(v, Var) else f"arg{i}", ScopeBuilder().type_of(v))
        for i, v in enumerate(loop_vars)
    ]
    builder = ScopeBuilder()
    with builder.if_scope(as_expr(cond(*fresh))):
        builder.ret(loop(*loop_bodies(*fresh)))
    with builder.else_scope():
        builder.ret(Tuple(fresh))
    return Let(loop, Function(fresh, builder.get()), loop)
