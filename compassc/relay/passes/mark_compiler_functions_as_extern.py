"""Say of functions of other compilers that they are defined elsewhere.

Before: a module. `compiler_filter`: the one compiler that is meant; all without it.
After: their functions have the one attribute `Extern`.
"""

from __future__ import annotations

from compassc.relay.attributes import DictAttrs
from compassc.relay.expr import Function
from compassc.relay.module import BaseFunc, IRModule
from compassc.relay.passes._functions import changed

NAME = "MarkCompilerFunctionsAsExtern"
LEVEL = 0
REQUIRED = ()


def run(module: IRModule, compiler_filter: str = "") -> IRModule:
    def one(f: BaseFunc) -> BaseFunc:
        compiler = f.attrs.get("Compiler") if isinstance(f, Function) else None
        return f.replace(attrs=DictAttrs({"Extern": 1})) if compiler and compiler_filter in ("", compiler) else f

    return changed(module, {v: one(f) for v, f in module.functions.items()})
