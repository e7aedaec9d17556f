"""Put values in the place of their names: graph normal form.

Before: any module; kernels stay as they are.
After: no `let`, but those of recursive functions (`let f = ...; f`). Values with several uses are shared.
"""

from __future__ import annotations

from compassc.relay.expr import Expr, Function, Let
from compassc.relay.module import IRModule
from compassc.relay.passes._functions import on_functions
from compassc.relay.visit import children, is_primitive, post_order, with_children

NAME = "ToGraphNormalForm"
LEVEL = 1
REQUIRED = ()


def run(module: IRModule) -> IRModule:
    return on_functions(module, lambda f, _: _function(f))


def _function(f: Function) -> Function:
    order = list(post_order(f, is_primitive))
    lets: dict[int, list[Let]] = {}
    for e in order:
        if isinstance(e, Let):
            lets.setdefault(id(e.value), []).append(e)
    made: dict[int, Expr] = {}
    for e in order:
        if isinstance(e, Let):
            made[id(e)] = made[id(e.body)]
            continue
        after = e if e is not f and is_primitive(e) else with_children(e, [made[id(c)] for c in children(e)])
        made[id(e)] = after
        for let in lets.get(id(e), ()):
            recursive = isinstance(e, Function) and any(part is let.var for part in post_order(e))
            made[id(let.var)] = Let(let.var, after, let.var) if recursive else after
    found = made[id(f)]
    assert isinstance(found, Function), "a function stays one"
    return found
