"""Compute equal calls once.

Before: a typed module.
After: no two calls of an operator have equal attributes and the same arguments (or equal scalars), and no field of a tuple is
taken twice. Operators with a state and without arguments are left alone, and what `fskip` says of.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial

from compassc.relay.expr import Call, Constant, Expr, TupleGetItem
from compassc.relay.module import IRModule
from compassc.relay.operators import Op
from compassc.relay.passes._functions import on_functions, rewritten

NAME = "EliminateCommonSubexpr"
LEVEL = 3
REQUIRED = ("InferType",)


def run(module: IRModule, fskip: Callable[[Expr], bool] | None = None) -> IRModule:
    return on_functions(module, lambda f, _: rewritten(f, partial(_merge, {}, fskip)))


def _merge(known: dict[Hashable, Expr], fskip: Callable[[Expr], bool] | None, before: Expr, after: Expr) -> Expr:
    key: Hashable
    if isinstance(after, TupleGetItem):
        key = (id(after.tuple_value), after.index)
    elif isinstance(after, Call) and isinstance(after.op, Op) and after.args and not after.op.stateful:
        if fskip is not None and fskip(after):
            return after
        key = (after.op.name, after.attrs, *map(_argument, after.args))
    else:
        return after
    return known.setdefault(key, after)


def _argument(e: Expr) -> Hashable:
    """What makes two arguments the same: to be one object, or equal scalars."""
    if isinstance(e, Constant) and not e.data.shape:
        return (e.array.dtype.str, e.array.tobytes())
    return id(e)
