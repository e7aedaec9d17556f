"""Put the bodies of kernels back where they are called.

Before: a typed module.
After: no function literal is called: its body, with arguments for parameters, takes the place of the call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compassc.ir.errors import ExpressionError
from compassc.relay.expr import (
    Call,
    Constant,
    Expr,
    Function,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
)
from compassc.relay.module import IRModule
from compassc.relay.passes._functions import on_functions
from compassc.relay.passes._scopes import ATOMS
from compassc.relay.variables import bound_vars
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


def with_arguments(f: Function, args: Sequence[Expr]) -> Expr:
    """The body of a function with arguments in the place of its parameters: a copy, whose variables and effects are its own.
    A polymorphic function is called as it is."""
    if f.type_params:
        return Call(f, args)
    by: dict[int, Expr] = {id(v): v.replace() for v in bound_vars(f.body)}
    by |= {id(p): a for p, a in zip(f.params, args)}

    def copied(before: Expr, after: Expr) -> Expr:
        if id(before) in by:
            return by[id(before)]
        if isinstance(after, Match):
            return after.replace(clauses=[c.replace(lhs=renamed(c.lhs, by)) for c in after.clauses])
        return after.replace() if after is before and not isinstance(after, (*ATOMS, Constant)) else after

    return rewrite(f.body, copied)


def renamed(p: Pattern, by: Mapping[int, Expr]) -> Pattern:
    if isinstance(p, PatternVar):
        return p.replace(var=by[id(p.var)])
    if isinstance(p, (PatternConstructor, PatternTuple)):
        return p.replace(patterns=[renamed(inner, by) for inner in p.patterns])
    return p
