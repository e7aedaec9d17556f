"""Drop functions that the entries do not use.

Before: any module.
After: every function is an entry (`main` by default), or one of them mentions it, directly or through others.
"""

from __future__ import annotations

from collections.abc import Sequence

from compassc.relay.expr import Function, GlobalVar
from compassc.relay.module import BaseFunc, IRModule
from compassc.relay.passes._functions import changed
from compassc.relay.visit import post_order

NAME = "RemoveUnusedFunctions"
LEVEL = 1
REQUIRED = ()


def run(module: IRModule, entry_functions: Sequence[str] | None = None) -> IRModule:
    used = reached(module, entry_functions or ("main",))
    if len(used) == len(module.functions):
        return module
    return changed(module, {v: f for v, f in module.functions.items() if v.name_hint in used})


def reached(module: IRModule, entries: Sequence[str]) -> set[str]:
    """The names of the functions that entries use, and theirs."""
    known = {v.name_hint: f for v, f in module.functions.items()}
    waiting = [name for name in entries if name in known]
    used = set(waiting)
    while waiting:
        f: BaseFunc = known[waiting.pop()]
        if isinstance(f, Function):
            for e in post_order(f):
                if isinstance(e, GlobalVar) and e.name_hint in known and e.name_hint not in used:
                    used.add(e.name_hint)
                    waiting.append(e.name_hint)
    return used
