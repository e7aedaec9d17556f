"""What rules ask of blocks of a schedule."""

from __future__ import annotations

from math import prod
from typing import Any

from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.exprs import IntImm, Var
from compassc.ir.visit import all_exprs, walk_exprs, walk_stmts
from compassc.tir import BlockRV, Schedule

Kinds = list[str]


def all_blocks(sch: Schedule) -> list[tuple[str, str]]:
    """The names of all blocks with their functions: inner ones before those around them."""
    found = []
    for function in sch.mod.functions:
        below: list[str] = []
        for s in walk_stmts(function.body):
            if isinstance(s, S.Block):
                below.append(s.name_hint)
        found += [(function.name, name) for name in below]
    return found


def block_of(sch: Schedule, rv: BlockRV) -> S.Block:
    """The block that a symbol stands for."""
    found = sch.get(rv)
    assert isinstance(found, S.Block)
    return found


def extents_of(block: S.Block) -> list[int] | None:
    """The extents of the axes; None where one is open."""
    return (
        [e.value for e in block.extents if isinstance(e, IntImm)]
        if all(isinstance(e, IntImm) for e in block.extents)
        else None
    )


def is_spatial(block: S.Block) -> bool:
    """Whether all axes are those of elements."""
    return {*block.kinds} <= {"spatial"}


def is_reduction(block: S.Block) -> bool:
    """Whether it sums up."""
    return "reduce" in block.kinds and bool(block.init)


def has_plain_bindings(block: S.Block) -> bool:
    """Whether each axis is a loop of its own."""
    return all(isinstance(b, Var) for b in block.iter_values) and len({*block.iter_values}) == len(block.iter_values)


def variables_of(region: E.BufferRegion) -> set[Var]:
    """The variables in a region."""
    return {e for part in (*region.starts, *region.extents) for e in walk_exprs(part) if isinstance(e, Var)}


def reads_of_others(block: S.Block) -> list[E.BufferRegion]:
    """What it reads but its own results."""
    own = {r.buffer.data for r in block.writes if isinstance(r, E.BufferRegion)}
    return [r for r in block.reads if isinstance(r, E.BufferRegion) and r.buffer.data not in own]


def reuses_data(block: S.Block) -> bool:
    """Whether elements that are read serve for several results, so that tiles pay."""
    reads, extents = reads_of_others(block), extents_of(block)
    if len(block.writes) != 1 or not reads or extents is None or is_spatial(block) or not has_plain_bindings(block):
        return False
    if len({r.buffer.data for r in reads}) != len(reads):
        return False
    spatial = {v for v, kind, n in zip(block.vars, block.kinds, extents) if kind == "spatial" and n > 1}
    return sum(len(spatial - variables_of(r)) for r in reads) >= 1


def lengths(block: S.Block) -> tuple[int, int]:
    """The number of elements, and of the turns of a sum."""
    extents = extents_of(block) or []
    spatial = prod(n for n, kind in zip(extents, block.kinds) if kind == "spatial")
    return spatial, prod(n for n, kind in zip(extents, block.kinds) if kind == "reduce")


def calls(block: S.Block, names: tuple[str, ...]) -> bool:
    """Whether its values are of operations of these names (`tir.exp`)."""
    wanted = {name.removeprefix("tir.") for name in names}
    return any(isinstance(e, E.Call) and e.op in wanted for e in all_exprs(block.body))


def chooses(block: S.Block) -> bool:
    """Whether its values depend on conditions."""
    return any(isinstance(e, E.Select) for e in all_exprs(block.body)) or any(
        isinstance(s, S.IfThenElse) for s in walk_stmts(block.body)
    )


def note_of(s: S.Block | S.For, key: str) -> Any:
    """An annotation; None without it."""
    found = dict(s.annotations).get(key)
    return found.value if isinstance(found, IntImm) else found


def kind_of_loop(loop: S.For) -> str:
    """What the axes of all blocks inside make of a loop: `spatial`, `reduce`, or `mixed`."""
    kinds = set()
    for s in walk_stmts(loop.body):
        if isinstance(s, S.Block):
            for kind, binding in zip(s.kinds, s.iter_values):
                if any(e is loop.loop_var for e in walk_exprs(binding)):
                    kinds.add(kind)
    return kinds.pop() if len(kinds) == 1 else "spatial" if not kinds else "mixed"
