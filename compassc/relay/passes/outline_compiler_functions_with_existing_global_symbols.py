"""Make functions of the module of literals for other compilers.

Before: a typed module. `compiler_filter`: the one compiler that is meant; all without it.
After: function literals, also those that `let` binds, with the attributes `Compiler` and `global_symbol` are functions of the
module by that name.
"""

from __future__ import annotations

from compassc.relay.expr import Call, Expr, Function, GlobalVar, Let, Var
from compassc.relay.module import BaseFunc, IRModule
from compassc.relay.passes import infer_type
from compassc.relay.passes._functions import changed
from compassc.relay.visit import rewrite

NAME = "OutlineCompilerFunctionsWithExistingGlobalSymbols"
LEVEL = 0
REQUIRED = ("InferType",)


def run(module: IRModule, compiler_filter: str = "") -> IRModule:
    found: dict[str, tuple[GlobalVar, Function]] = {}

    def outlined(f: Function) -> GlobalVar:
        name = str(f.attrs["global_symbol"])
        return found.setdefault(name, (GlobalVar(name), f))[0]

    def is_meant(e: Expr) -> bool:
        if not isinstance(e, Function):
            return False
        compiler = e.attrs.get("Compiler")
        return bool(compiler and compiler_filter in ("", compiler) and e.attrs.get("global_symbol"))

    def of(f: BaseFunc) -> BaseFunc:
        if not isinstance(f, Function) or is_meant(f):
            return f
        bound: dict[Var, GlobalVar] = {}

        def one(before: Expr, after: Expr) -> Expr:
            if (
                isinstance(after, Let)
                and isinstance(before, Let)
                and isinstance(before.value, Function)
                and is_meant(before.value)
            ):
                bound[after.var] = outlined(before.value)
                return after.body
            if isinstance(after, Call) and isinstance(after.op, Function) and is_meant(after.op):
                return after.replace(op=outlined(after.op))
            return after

        made = rewrite(f, one)
        if bound:
            made = rewrite(made, lambda _, e: bound.get(e, e) if isinstance(e, Var) else e)
        assert isinstance(made, Function), "a function stays one"
        return made

    made: dict[GlobalVar, BaseFunc] = {v: of(f) for v, f in module.functions.items()}
    if not found:
        return module
    return infer_type.run(changed(module, made | dict(found.values())))
