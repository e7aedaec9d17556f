"""Write constructors and global functions that stand as values as functions that call them.

Before: a typed module.
After: with `expand_constructor` constructors are only called, with `expand_global_var` names of functions, too.
"""

from __future__ import annotations

from collections.abc import Callable

from compassc.ir.errors import ExpressionError
from compassc.relay.expr import Call, Constructor, Expr, Function, GlobalVar, Var
from compassc.relay.infer.rules import Typing
from compassc.relay.module import IRModule
from compassc.relay.passes._functions import on_functions
from compassc.relay.passes.infer_type import ModuleDefinitions
from compassc.relay.types import FuncType
from compassc.relay.visit import children, is_primitive, post_order, with_children

NAME = "EtaExpand"
LEVEL = 1
REQUIRED = ("InferType",)


def run(module: IRModule, expand_constructor: bool = False, expand_global_var: bool = False) -> IRModule:
    if not expand_constructor and not expand_global_var:
        raise ExpressionError(
            "EtaExpand is to expand nothing", "give expand_constructor=True or expand_global_var=True"
        )
    typing = Typing(ModuleDefinitions(module))

    def value(e: Expr) -> Expr:
        """What takes the place of an expression that is no callee."""
        if isinstance(e, Constructor) and expand_constructor:
            return _expanded(e, typing.constructor_type(e, e))
        if isinstance(e, GlobalVar) and expand_global_var and isinstance(e.checked_type, FuncType):
            return _expanded(e, e.checked_type)
        return e

    return on_functions(module, lambda f, _: _function(f, value))


def _function(f: Function, value: Callable[[Expr], Expr]) -> Function:
    made: dict[int, Expr] = {}
    for e in post_order(f, is_primitive):
        if e is not f and is_primitive(e):
            made[id(e)] = e
            continue
        parts = [made[id(c)] if isinstance(e, Call) and c is e.op else value(made[id(c)]) for c in children(e)]
        made[id(e)] = with_children(e, parts)
    found = made[id(f)]
    assert isinstance(found, Function), "a function stays one"
    return found


def _expanded(callee: Expr, t: FuncType) -> Function:
    params = [Var("eta_expand_param", a) for a in t.arg_types]
    return Function(params, Call(callee, params, None, t.type_params), t.ret_type, t.type_params)
