"""Reset the event allocator at the start of a kernel that allocates events.

Before: any module.
After: if any function calls `alloc_event`, the entry begins with the call `init_event_state`.
"""

from __future__ import annotations

from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.dtypes import VOID
from ..ir.stmts import IRModule, PrimFunc
from ..ir.visit import all_exprs

NAME = "InitializeEventState"
INIT = "init_event_state"


def run(module: IRModule) -> IRModule:
    if not any(_allocates(f) for f in module.functions):
        return module
    span = module.entry_func.span
    start = S.Evaluate(E.Call(INIT, (), VOID, span=span), span=span)
    return module.map_functions(lambda f: f.replace(body=(start, *f.body)) if f.name == module.entry else f)


def _allocates(f: PrimFunc) -> bool:
    return any(type(e) is E.Call and e.op == "alloc_event" for e in all_exprs(f.body, E.F_CALL))
