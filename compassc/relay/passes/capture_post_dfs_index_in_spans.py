"""Give every expression a place that says where it is in the order of its function: `index:PLACE:DOMINATOR`.

Before: any module.
After: the name of the source of each expression's place says its number in post-order, and that of the first expression that all
ways from it to the function go through; of the function itself its own. Kernels and their parts have places, too.
"""

from __future__ import annotations

from compass_core.errors import Span
from compassc.relay.dataflow_pattern.graph import Graph
from compassc.relay.expr import Constructor, Expr, Function, GlobalVar
from compassc.relay.module import IRModule
from compassc.relay.operators import Op
from compassc.relay.passes._functions import on_functions
from compassc.relay.visit import children, with_children

NAME = "CapturePostDfsIndexInSpans"
LEVEL = 0
REQUIRED = ()
_NO_PLACE = (Op, GlobalVar, Constructor)
"""What stands for the same thing everywhere."""


def run(module: IRModule) -> IRModule:
    return on_functions(module, lambda f, _: _placed(f))


def _placed(f: Function) -> Function:
    graph = Graph(f)
    made: dict[int, Expr] = {}
    for place, e in enumerate(graph.order):
        new = with_children(e, [made[id(c)] for c in children(e)])
        if not isinstance(e, _NO_PLACE):
            dominator = min(graph.next_common[place], len(graph.order) - 1)
            new = new.replace(span=Span(f"index:{place}:{dominator}", 0, 0, 0, 0))
        made[id(e)] = new
    found = made[id(f)]
    assert isinstance(found, Function), "a function stays one"
    return found
