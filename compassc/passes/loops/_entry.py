"""Passes on the function that a schedule became: those that it calls are the user's."""

from __future__ import annotations

from collections.abc import Callable

from compassc.ir.stmts import IRModule, PrimFunc


def on_entry(module: IRModule, step: Callable[[PrimFunc], PrimFunc]) -> IRModule:
    """The module with a step taken on its entry."""
    return module.map_functions(lambda f: step(f) if f.name == module.entry else f)
