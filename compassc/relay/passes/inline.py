"""Put functions that are marked `Inline` where they are called.

Before: any module.
After: no function marked `Inline`, whose callees can all be inlined and which is not recursive, is mentioned; those of them
that are no entries are gone. Functions of other compilers are inserted as they are.
"""

from __future__ import annotations

from collections.abc import Mapping

from compassc.relay.expr import Call, Expr, Function, GlobalVar
from compassc.relay.module import BaseFunc, IRModule
from compassc.relay.passes._functions import changed
from compassc.relay.passes.defuse_ops import with_arguments
from compassc.relay.visit import post_order, rewrite

NAME = "Inline"
LEVEL = 1
REQUIRED = ()


def run(module: IRModule) -> IRModule:
    known = {v.name_hint: f for v, f in module.functions.items() if isinstance(f, Function)}
    callees = {name: _mentioned(f, known) for name, f in known.items()}
    marked = {name for name, f in known.items() if f.attrs.get("Inline")}
    while True:  # what calls a function that stays, stays
        stays = {name for name in marked if not callees[name] <= marked or _recursive(name, callees)}
        if not stays:
            break
        marked -= stays
    if not marked:
        return module
    made: dict[str, Function] = {}
    for name in _callees_first(known, callees):
        made[name] = _inlined(known[name], {n: made[n] for n in marked & callees[name]})
    gone = marked & set().union(*callees.values())
    functions: dict[GlobalVar, BaseFunc] = {
        v: made.get(v.name_hint) or f for v, f in module.functions.items() if v.name_hint not in gone
    }
    return changed(module, functions)


def _mentioned(f: Function, known: Mapping[str, Function]) -> set[str]:
    return {e.name_hint for e in post_order(f) if isinstance(e, GlobalVar) and e.name_hint in known}


def _recursive(name: str, callees: Mapping[str, set[str]]) -> bool:
    seen: set[str] = set()
    waiting = list(callees[name])
    while waiting:
        at = waiting.pop()
        if at == name:
            return True
        if at not in seen:
            seen.add(at)
            waiting += callees[at]
    return False


def _callees_first(known: Mapping[str, Function], callees: Mapping[str, set[str]]) -> list[str]:
    order: list[str] = []
    done: set[str] = set()
    for root in known:
        stack = [(root, False)]
        while stack:
            name, leave = stack.pop()
            if leave:
                order.append(name)
            elif name not in done:
                done.add(name)
                stack.append((name, True))
                stack += [(n, False) for n in callees[name] if n not in done]
    return order


def _inlined(f: Function, by: Mapping[str, Function]) -> Function:
    def one(before: Expr, after: Expr) -> Expr:
        if isinstance(after, GlobalVar) and after.name_hint in by:
            return by[after.name_hint]
        if isinstance(after, Call) and isinstance(before, Call) and isinstance(before.op, GlobalVar):
            callee = by.get(before.op.name_hint)
            if callee is not None and not callee.attrs.get("Compiler") and not callee.attrs.get("Extern"):
                return with_arguments(callee, after.args)
        return after

    made = rewrite(f, one)
    assert isinstance(made, Function), "a function stays one"
    return made
