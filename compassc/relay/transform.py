"""Passes on Relay modules as programs call them: `relay.transform.FoldConstant()(module)`, passes of one's own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from compass_core.errors import UsageError
from compassc.ir.errors import ExpressionTypeError
from compassc.pass_manager import describe, load_pass
from compassc.pass_manager.context import PassContext, PassInfo, Sequential, Transform, decorator
from compassc.relay.cps import to_cps, un_cps
from compassc.relay.defunctionalization import defunctionalization as Defunctionalization
from compassc.relay.expr import Expr, Function
from compassc.relay.gradient import gradient
from compassc.relay.infer import infer_local
from compassc.relay.module import IRModule
from compassc.relay.passes import FOLDER, RelayPass, fold_constant, infer_type, make, to_a_normal_form
from compassc.relay.passes._functions import on_functions
from compassc.relay.passes.convert_layout import LayoutConfig
from compassc.relay.recast import recast
from compassc.relay.types import Type

__all__ = [
    "BatchingOps",
    "Defunctionalization",
    "FoldConstantExpr",
    "FoldScaleAxis",
    "InferTypeLocal",
    "LayoutConfig",
    "PassContext",
    "PassInfo",
    "Sequential",
    "ToANormalFormExpr",
    "function_pass",
    "gradient",
    "module_pass",
    "recast",
    "to_cps",
    "un_cps",
]


T = TypeVar("T")


def __getattr__(name: str) -> Callable[..., RelayPass]:
    """The factory of a pass: called with its options, it gives the pass."""
    try:
        load_pass(name, FOLDER)
    except UsageError as error:
        raise AttributeError(f"there is no pass {name}: {error.help}") from None
    return partial(make, name)


def __dir__() -> list[str]:
    return sorted([*__all__, *(d.name for d in describe(FOLDER))])


def BatchingOps() -> Sequential:
    """Combine parallel convolutions, products with matrices and batches of them."""
    names = ("CombineParallelConv2D", "CombineParallelDense", "CombineParallelBatchMatmul")
    return Sequential([make(name) for name in names], 4, "BatchingOps")


def FoldScaleAxis() -> Sequential:
    """Put scales of channels into weights."""
    names = ("BackwardFoldScaleAxis", "ForwardFoldScaleAxis", "FoldConstant")
    return Sequential([make(name) for name in names], 3, "FoldScaleAxis")


def FoldConstantExpr(expr: Expr, mod: IRModule | None = None, fold_qnn: bool = False) -> Expr:
    """An expression with its constant parts computed."""
    return fold_constant.fold(expr, fold_qnn)


def ToANormalFormExpr(expr: Expr) -> Expr:
    """An expression in A-normal form."""
    return to_a_normal_form.expression(expr)


def InferTypeLocal(expr: Expr) -> Type:
    """The type of an expression whose parts have theirs; it is noted on it."""
    return infer_local(expr, infer_type.ModuleDefinitions(IRModule()))


def _given_back(found: object, kind: type[T], function: Callable[..., object]) -> T:
    if isinstance(found, kind):
        return found
    name = getattr(function, "__name__", type(function).__name__)
    raise ExpressionTypeError(f"the pass {name} gave a {type(found).__name__}, not a {kind.__name__}")


def _on_functions(function: Callable[..., object]) -> Transform:
    def run(module: IRModule) -> IRModule:
        typed = infer_type.run(module)
        return on_functions(typed, lambda f, m: _given_back(function(f, m, PassContext.current()), Function, function))

    return run


def _on_modules(function: Callable[..., object]) -> Transform:
    def run(module: IRModule) -> IRModule:
        made: IRModule = _given_back(function(module, PassContext.current()), IRModule, function)
        return made

    return run


function_pass = decorator(_on_functions, "transform_function")
function_pass.__doc__ = (
    "Decorates a function of (function, module, context), or a class with `transform_function`, as a pass."
)
module_pass = decorator(_on_modules, "transform_module")
module_pass.__doc__ = "Decorates a function of (module, context), or a class with `transform_module`, as a pass."
