"""Warn of expressions without places in a text.

Before: any module.
After: the module itself; a warning says how many calls have no place, and names one.
"""

from __future__ import annotations

from compassc.ir.errors import warn
from compassc.relay.expr import Call, Expr, Function
from compassc.relay.module import IRModule
from compassc.relay.visit import post_order

NAME = "SpanCheck"
LEVEL = 0
REQUIRED = ()


def run(module: IRModule) -> IRModule:
    found: list[Expr] = []
    for f in module.functions.values():
        if isinstance(f, Function):
            found += [e for e in post_order(f) if isinstance(e, Call) and e.span is None]
    if found:
        first = str(found[0]).splitlines()[-1]
        warn(f"{len(found)} calls have no place in a text, such as {first}; AnnotateSpans gives them one")
    return module
