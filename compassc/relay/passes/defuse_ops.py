"""Put the bodies of kernels back where they are called.

Before: a typed module.
After: no function literal is called: its body, with arguments for parameters, takes the place of the call.
"""

from __future__ import annotations

from compassc.ir.errors import ExpressionError
from compassc.relay.expr import Call, Expr, Function
from compassc.relay.module import IRModule
from compassc.relay.passes._functions import on_functions
from compassc.relay.visit import rewrite

NAME = "DefuseOps"
LEVEL = 3
REQUIRED = ("InferType",)


def run(module: IRModule) -> IRModule:
    return on_functions(module, lambda f, _: _function(f))


def _function(f: Function) -> Function:
    made = rewrite(f, _inlined)
    assert isinstance(made, Function), "a function stays one"
    return made


def _inlined(before: Expr, after: Expr) -> Expr:
    if not isinstance(after, Call) or not isinstance(after.op, Function):
        return after
    names = [p.name_hint for p in after.op.params]
    if len(set(names)) < len(names):
        raise ExpressionError(f"a kernel has two parameters of one name: {', '.join(names)}", "rename one")
    return with_arguments(after.op, after.args)


def with_arguments(f: Function, args: object) -> Expr:
    """The body of a function with arguments in the place of its parameters."""
    by = {id(p): a for p, a in zip(f.params, args)}  # type: ignore[call-overload]  # expressions
    return rewrite(f.body, lambda before, after: by.get(id(before), after))
