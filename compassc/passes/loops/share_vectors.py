"""Compute vectors that a statement needs more than once before it.

Before: any module. After: a part of a statement of the entry that occurs in it more than once is a variable, and so is what
is converted to a wider type: that takes several registers, each of which would be made of the whole part. Loads are left to
ReuseLoads.
"""

from __future__ import annotations

from compassc.ir.stmts import IRModule
from compassc.passes.loops._functions import on_entry
from compassc.passes.loops._shared_parts import with_parts

NAME = "ShareVectors"


def run(module: IRModule) -> IRModule:
    return on_entry(module, lambda f: with_parts(f, loads=False))
