"""Prefix the functions a kernel calls with the kernel's name.

Before: any module.
After: every function but the entry is called `<entry>_<name>`, here and where it is called.
"""

from __future__ import annotations

from ..ir import exprs as E
from ..ir.stmts import IRModule
from ..ir.visit import Rewriter, rewrites

NAME = "MangleFunctionNames"


def run(module: IRModule) -> IRModule:
    prefix = module.entry + "_"
    names = {f.name: prefix + f.name for f in module.functions if f.name != module.entry}
    if not names:
        return module
    rename = _Mangle(names)
    functions = [rename.function(f).replace(name=names.get(f.name, f.name)) for f in module.functions]
    return module.replace(functions=tuple(functions))


class _Mangle(Rewriter):
    interest = E.F_FUNC

    def __init__(self, names: dict[str, str]) -> None:
        super().__init__()
        self.names = names

    @rewrites(E.FuncCall)
    def rewrite_func_call(self, e: E.FuncCall) -> E.Expr:
        args = tuple([self.expr(a) for a in e.args])
        return E.FuncCall(self.names.get(e.func, e.func), args, e.dtype)
