"""Put functions of other compilers back where they are called.

Before: a module after `PartitionGraph`. `global_vars`: variables of functions, or their names.
After: their bodies, and those of the composite functions in them, are part of what called them; they themselves are gone.
"""

from __future__ import annotations

from collections.abc import Sequence

from compassc.relay.expr import Call, Expr, Function, GlobalVar
from compassc.relay.module import IRModule
from compassc.relay.passes._functions import changed, rewrite_functions
from compassc.relay.passes.defuse_ops import with_arguments
from compassc.relay.visit import rewrite

NAME = "InlineCompilerFunctionsBoundTo"
LEVEL = 0
REQUIRED = ("InferType",)


def run(module: IRModule, global_vars: Sequence[GlobalVar | str] = ()) -> IRModule:
    names = {v if isinstance(v, str) else v.name_hint for v in global_vars}
    gone = {n: f for n in names if isinstance(f := module[n], Function) and f.attrs.get("Compiler")}
    if not gone:
        return module
    bodies = {n: f.replace(body=rewrite(f.body, without_composite)) for n, f in gone.items()}

    def one(before: Expr, after: Expr) -> Expr:
        if isinstance(after, Call) and isinstance(after.op, GlobalVar) and after.op.name_hint in bodies:
            return with_arguments(bodies[after.op.name_hint], after.args)
        return after

    made = rewrite_functions(module, one)
    return changed(made, {v: f for v, f in made.functions.items() if v.name_hint not in gone})


def without_composite(before: Expr, after: Expr) -> Expr:
    """The body of a composite function instead of its call; other expressions as they are."""
    if isinstance(after, Call) and isinstance(after.op, Function) and after.op.attrs.get("Composite"):
        return with_arguments(after.op, after.args)
    return after
