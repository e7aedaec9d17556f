"""Make loops, memory and the work of each TEC of the blocks of a schedule.

Before: any module; a schedule's functions consist of blocks.
After: no function has blocks, regions, loops with annotations or loops that are bound to threads; memory lies at the
beginning of its function, in a memory of the target. A kernel without blocks is as it was. The steps of it are in
`compassc.tir.lower`.
"""

from __future__ import annotations

from ..ir import stmts as S
from ..ir.stmts import IRModule
from ..ir.visit import walk_stmts

NAME = "LowerBlocks"


def run(module: IRModule) -> IRModule:
    if not any(f.attrs or isinstance(s, S.Block) for f in module.functions for s in walk_stmts(f.body)):
        return module
    from compassc.tir.lower import lower

    return lower(module)
