"""What loops over TECs must not do: reduce together into one element."""

from __future__ import annotations

from compassc.ir import stmts as S
from compassc.ir.exprs import Var
from compassc.ir.stmts import PrimFunc
from compassc.te.errors import LowerError
from compassc.tir.blocks import Axis, axes_of, constant, uses
from compassc.tir.itermap import separates
from compassc.tir.lower.memory import OWN
from compassc.tir.tree import Tree


def check_races(function: PrimFunc) -> None:
    """LowerError where TECs would join values into one element that they share."""
    tree = Tree(function)
    for block in tree.blocks.values():
        written = {r.buffer.data for r in block.writes}  # type: ignore[attr-defined]
        joins = block.init or any(r.buffer.data in written for r in block.reads)  # type: ignore[attr-defined]
        shared = any(w.pointer_type.scope not in OWN for w in written)
        if not joins or not shared:
            continue
        loops = tree.loops_around(block, all_of_them=True)
        for s in loops:
            if s.kind.startswith("threadIdx"):
                _check(block, s, loops, tree.implied_axes(block))


def _check(block: S.Block, bound: S.For, loops: list[S.For], implied: list[Axis]) -> None:
    axes = [*axes_of(block), *implied]
    for a in axes:
        if a.is_reduction and uses(a.binding, (bound.loop_var,)):
            raise LowerError(
                f"'{block.name_hint}' reduces over '{bound.loop_var.name}', which is bound to {bound.kind}: the TECs would join "
                "into one element",
                "rfactor the loop first, and bind that of the stage it makes",
            )
    extents: dict[Var, int] = {}
    for s in loops:
        extent = constant(s.stop)
        if extent is None:
            return  # sizes that are not known: the loops are as they were written
        extents[s.loop_var] = extent
    if not separates([a.binding for a in axes if not a.is_reduction], extents, bound.loop_var):
        raise LowerError(
            f"'{block.name_hint}' joins into the same elements in several turns of '{bound.loop_var.name}', which is bound to "
            f"{bound.kind}",
            "give it memory of the TEC (set_scope 'lsram'), or bind another loop",
        )
