"""Bind what several scopes use.

Before: any module; kernels stay as they are.
After: a value that a branch, an arm or a function uses, and that is used outside of it too, is bound by `let` in the
innermost scope that has all its uses. Within a scope values are shared as before.
"""

from __future__ import annotations

from compassc.relay.expr import Expr, Function, Var
from compassc.relay.module import IRModule
from compassc.relay.passes._functions import on_functions
from compassc.relay.passes._scopes import ATOMS, Scopes, rebuilt
from compassc.relay.visit import children, is_primitive

NAME = "ToBasicBlockNormalForm"
LEVEL = 1
REQUIRED = ()


def run(module: IRModule) -> IRModule:
    return on_functions(module, lambda f, _: _function(f))


def _function(f: Function) -> Function:
    scopes = Scopes(f, is_primitive, lets=True)
    if not any(id(e) in scopes.lifted and not isinstance(e, ATOMS) for e in scopes.order):
        return f
    made: dict[int, Expr] = {}
    names = 0
    for e in scopes.order:
        closed = e is not f and is_primitive(e)
        made[id(e)] = e if closed else rebuilt(e, [made[id(c)] for c in children(e)], scopes)
        if id(e) in scopes.lifted and not isinstance(e, ATOMS):
            v, names = Var(f"x{names}"), names + 1
            scopes.of[id(e)].bindings.append((v, made[id(e)]))
            made[id(e)] = v
    found = made[id(f)]
    assert isinstance(found, Function), "a function stays one"
    return found
