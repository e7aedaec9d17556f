"""Passes as the vendor's programs call them: `transform.FoldConstant()(module)`."""

from __future__ import annotations

from collections.abc import Callable

from compass_core.errors import UsageError
from compassc import pass_manager
from compassc.ir import IRModule
from compassc.ir.stmts import as_kernels

from ..pass_manager.context import check_module
from . import block_passes


def __getattr__(name: str) -> Callable[[], Callable[[IRModule], IRModule]]:
    """The factory of a pass: called, it gives the function from module to module."""
    if name in block_passes.PASSES:
        return lambda: block_passes.named(name)
    try:
        found = pass_manager.pass_name(name)
    except UsageError:
        raise AttributeError(f"there is no pass {name}") from None

    def run(module: IRModule) -> IRModule:
        module = as_kernels(module)
        check_module(module, name)
        return pass_manager.run_pipeline((found,), module)

    return lambda: run


def __dir__() -> list[str]:
    return sorted(
        {found.name for found in pass_manager.describe()} | {*pass_manager.KERNELS.aliases, *block_passes.PASSES}
    )
