"""Let reductions begin before their loops.

Before: functions of innermost blocks. After: what begins a reduction is a block of its own before the loops that it reduces
over, where that is possible; elsewhere it stays a condition inside of them.
"""

from __future__ import annotations

from compassc.ir import stmts as S
from compassc.ir.stmts import IRModule, PrimFunc
from compassc.passes.loops._functions import on_blocks
from compassc.te.errors import LowerError, ScheduleError
from compassc.tir.canonical import canonical
from compassc.tir.decompose import decomposed, reduction_loops
from compassc.tir.reduction_init import begins_first
from compassc.tir.tree import Tree

NAME = "LowerInitBlock"


def run(module: IRModule) -> IRModule:
    return on_blocks(module, _function)


def _function(function: PrimFunc) -> PrimFunc:
    before, tree = function.body, Tree(function)
    for name in list(tree.blocks):
        block = tree.blocks[name]
        loops = reduction_loops(tree, block)
        if not block.init or not loops or any(s.kind.startswith("threadIdx") for s in loops):
            continue
        try:
            body = decomposed(tree, block, loops[0], (f"{name}#init", name))
        except ScheduleError:
            check_begins_first(tree, block)
            continue
        tree = Tree(function.replace(body=body))
    return canonical(tree.function, before)


def check_begins_first(tree: Tree, block: S.Block) -> None:
    """LowerError where the init of a reduction, which stays a condition inside of its loops, is not known to come
    before what is joined to it."""
    if not begins_first(tree, block):
        raise LowerError(
            f"'{block.name_hint}' begins its sums where its reduced axes do, which is not the first turn in this order of loops",
            "decompose_reduction it first, or keep the order of the loops that were made of a fused one",
        )
