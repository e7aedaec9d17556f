"""Call operators with known shapes where the shapes that are given to them are known.

Before: a typed module.
After: no `dyn` operator that has a static form has only constants for its shapes; types say what is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from compassc.ir.errors import ExpressionError
from compassc.relay.builders import build
from compassc.relay.expr import Call, Constant, Expr
from compassc.relay.module import IRModule
from compassc.relay.operators import op_name
from compassc.relay.passes import fold_constant, infer_type
from compassc.relay.passes._functions import rewrite_functions

NAME = "DynamicToStatic"
LEVEL = 2
REQUIRED = ()
MOST_ROUNDS = 100


def run(module: IRModule) -> IRModule:
    module = infer_type.run(module)
    for _ in range(MOST_ROUNDS):
        after = rewrite_functions(fold_constant.run(module), _static)
        if after is module:
            return module
        module = after
    raise ExpressionError(f"DynamicToStatic changes a program after {MOST_ROUNDS} rounds", "leave it out of this build")


def _static(before: Expr, after: Expr) -> Expr:
    rule = _STATIC.get(op_name(after))
    if rule is None or not isinstance(after, Call):
        return after
    shapes, make = rule
    values = [after.args[place] for place in shapes]
    if not all(isinstance(v, Constant) for v in values):
        return after
    made: Expr = make(after, [v.array.tolist() for v in values if isinstance(v, Constant)])
    return made


_STATIC: Mapping[str, tuple[tuple[int, ...], Callable[[Call, list[Any]], Any]]] = {
    "dyn.reshape": ((1,), lambda e, v: build("reshape", e.args[0], v[0])),
    "dyn.squeeze": ((1,), lambda e, v: build("squeeze", e.args[0], v[0])),
    "dyn.tile": ((1,), lambda e, v: build("tile", e.args[0], v[0])),
    "dyn.broadcast_to": ((1,), lambda e, v: build("broadcast_to", e.args[0], v[0])),
    "dyn.zeros": ((0,), lambda e, v: build("zeros", v[0], _dtype(e))),
    "dyn.ones": ((0,), lambda e, v: build("ones", v[0], _dtype(e))),
    "dyn.full": ((1,), lambda e, v: build("full", e.args[0], v[0], _dtype(e))),
}
"""The arguments that are shapes, and what makes the static call of them."""


def _dtype(e: Call) -> str:
    assert e.attrs is not None
    return str(e.attrs["dtype"])
