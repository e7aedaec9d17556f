"""Load vectors that are converted to a wider type before the statement.

Before: any module, after ReuseLoads. After: such a load of the entry is a variable, whose value several registers are made
of; else it is as ShareVectors leaves it.
"""

from __future__ import annotations

from compassc.ir.stmts import IRModule
from compassc.passes.loops._functions import on_entry
from compassc.passes.loops._shared_parts import with_parts

NAME = "ShareLoads"


def run(module: IRModule) -> IRModule:
    return on_entry(module, lambda f: with_parts(f, loads=True))
