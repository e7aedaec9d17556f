"""Which functions of a module a pass is about."""

from __future__ import annotations

from collections.abc import Callable

from compassc.analysis.statements import has_blocks
from compassc.ir.stmts import EXPRESSIONS, IRModule, PrimFunc

Step = Callable[[PrimFunc], PrimFunc]


def on_entry(module: IRModule, step: Step) -> IRModule:
    """The module with a step taken on its entry: the functions that what a schedule became calls are the user's."""
    return module.map_functions(lambda f: step(f) if f.name == module.entry else f)


def on_blocks(module: IRModule, step: Step) -> IRModule:
    """The module with a step taken on the functions that have blocks."""
    return module.map_functions(lambda f: step(f) if has_blocks(f) else f)


def on_schedules(module: IRModule, step: Step) -> IRModule:
    """The module with a step taken on the functions whose schedule is being lowered."""
    return module.map_functions(lambda f: f if f.attr(EXPRESSIONS) is None else step(f))
