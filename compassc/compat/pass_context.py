"""Passes under the framework's names: passes of one's own on kernels."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

from ..ir import IRModule, PrimFunc
from ..pass_manager.context import Pass, PassContext, Transform, WrongSetting, decorator

_T = TypeVar("_T", IRModule, PrimFunc)


def _given_back(function: Callable[..., object], what: _T, *more: object) -> _T:
    """What a program's function makes of a module or function. UsageError for anything else."""
    made = function(what, *more)
    if isinstance(made, type(what)):
        return made
    name = getattr(function, "__name__", type(function).__name__)
    raise WrongSetting(
        f"the pass {name} gave a {type(made).__name__}, not a {type(what).__name__}",
        code="compat-name",
        help="return what it was given, or a changed one",
    )


def _on_modules(function: Callable[..., IRModule]) -> Transform:
    return lambda module: _given_back(function, module, PassContext.current())


def _on_functions(function: Callable[..., PrimFunc]) -> Transform:
    return _on_modules(
        lambda module, context: module.map_functions(lambda f: _given_back(function, f, module, context))
    )


prim_func_pass = decorator(_on_functions, "transform_function")
prim_func_pass.__doc__ = (
    "Decorates a function of (function, module, context), or a class with `transform_function`, as a pass."
)
module_pass = decorator(_on_modules, "transform_module")
module_pass.__doc__ = "Decorates a function of (module, context), or a class with `transform_module`, as a pass."


def PrintIR(header: str = "", show_meta_data: bool = False) -> Pass:
    """The pass that prints the module that it is given, behind its name and a header, to stderr as logs are."""

    def shown(module: IRModule) -> IRModule:
        print(f"PrintIR({header}):", str(module), sep="\n", file=sys.stderr)
        return module

    return Pass(shown, "PrintIR")


def Apply(ftransform: Callable[[PrimFunc], PrimFunc]) -> Pass:
    """The pass that calls a function with each function of a module."""
    return Pass(_on_functions(lambda f, *_: ftransform(f)), "Apply")
