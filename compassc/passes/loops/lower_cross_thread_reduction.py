"""Have each thread reduce a part where loops that are bound to threads are reduced over, and one of them join the parts.

Before: functions of innermost blocks. After, but for hosts: no block reduces over a loop that is bound to a thread; the parts
are in memory of all. LowerError where it is not known how they are joined.
"""

from __future__ import annotations

from collections.abc import Callable

from compassc.ir import stmts as S
from compassc.ir.dtypes import INT32
from compassc.ir.exprs import Buffer, IntImm, Var
from compassc.ir.stmts import Body, IRModule, PrimFunc
from compassc.passes.loops._functions import on_blocks
from compassc.te.errors import LowerError, ScheduleError
from compassc.te.machine import machine_of
from compassc.tir.blocks import axes_of, declared, loop, uses
from compassc.tir.caching import allocated
from compassc.tir.canonical import canonical
from compassc.tir.checks import is_update, why_no_reduction
from compassc.tir.decompose import reduction_loops
from compassc.tir.reductions import Factoring
from compassc.tir.tree import Tree

NAME = "LowerCrossThreadReduction"


def run(module: IRModule) -> IRModule:
    return on_blocks(module, _function) if machine_of(module).stage else module


def _function(function: PrimFunc) -> PrimFunc:
    while True:
        tree = Tree(function)
        found = next(((b, s) for b in tree.blocks.values() for s in _bound(tree, b)), None)
        if found is None:
            return function
        function = _across(function, tree, *found)


def _bound(tree: Tree, block: S.Block) -> list[S.For]:
    """The loops over threads that a block reduces over."""
    bindings = [a.binding for a in axes_of(block) if a.is_reduction]
    loops = [s for s in tree.loops_around(block) if s.kind.startswith("threadIdx")]
    return [s for s in loops if any(uses(e, (s.loop_var,)) for e in bindings)]


def _across(function: PrimFunc, tree: Tree, block: S.Block, bound: S.For) -> PrimFunc:
    try:
        made, buffers = _factored(tree, block, bound)
    except ScheduleError as error:
        raise LowerError(
            f"'{block.name_hint}' reduces over '{bound.loop_var.name}', which is bound to {bound.kind}: {error.message}",
            "rfactor the loop first, and bind that of the stage it makes",
        ) from error
    for buffer in buffers:
        made = allocated(made, buffer, None)
    return canonical(function.replace(body=made))


def _factored(tree: Tree, block: S.Block, bound: S.For) -> tuple[Body, list[Buffer]]:
    reason = "" if is_update(tree, block) else why_no_reduction(tree, block)
    if reason:
        raise ScheduleError(reason)
    loops = tree.loops_around(block)
    first = loops.index(reduction_loops(tree, block)[0])
    for above in tree.around(block):
        if above is loops[first]:
            break
        if not isinstance(above, S.For):
            raise ScheduleError("it stands in a condition inside of a loop that is reduced over")
    factoring = Factoring(tree, block, bound, 0, loops[first:])
    name = tree.free_block_name(f"{block.name_hint}_part")
    return factoring.run(name, declared(tree.function.body), "shared", _by_one(bound))


def _by_one(bound: S.For) -> Callable[[Body], Body]:
    """Statements for one of the TECs."""

    def made(body: Body) -> Body:
        return (
            loop(Var(f"{bound.loop_var.name}_one", INT32, True), IntImm(INT32, 1), body, bound.replace(annotations=())),
        )

    return made
