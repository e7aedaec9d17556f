"""Blocks and loops for random steps: mostly those that a step is for."""

from __future__ import annotations

import random
from collections.abc import Callable

from compassc import tir
from compassc.analysis.structure import variables
from compassc.ir import stmts as S
from compassc.ir.exprs import FloatImm, IntImm, Select

Fits = Callable[[tir.Schedule, "S.Block"], object]


def block_of(draw: random.Random, s: tir.Schedule, fits: Fits | None = None) -> tir.BlockRV:
    """A block; mostly one that a step is for, where there is one."""
    blocks = s.tree("main").blocks
    names = list(blocks)
    if not names:
        raise tir.ScheduleError("no blocks")
    if fits is not None and draw.random() < 0.9:
        names = [n for n in names if fits(s, blocks[n])]
        if not names:
            raise tir.ScheduleError("no block that it is for")
    return s.get_block(draw.choice(names))


def reduces(s: tir.Schedule, block: S.Block) -> bool:
    return bool(block.init)


def maps_only(s: tir.Schedule, block: S.Block) -> bool:
    """One store for each point, which somebody reads."""
    return not block.init and len(block.body) == 1 and bool(s.get_consumers(block.name_hint))


def follows(s: tir.Schedule, block: S.Block) -> bool:
    """One store for each point, of what another block gives."""
    return not block.init and len(block.body) == 1 and bool(s.get_producers(block.name_hint))


def read_later(s: tir.Schedule, block: S.Block) -> bool:
    return bool(s.get_consumers(block.name_hint))


def reads_blocks(s: tir.Schedule, block: S.Block) -> bool:
    return bool(s.get_producers(block.name_hint))


def own(s: tir.Schedule, block: S.Block) -> bool:
    """What it writes first is no parameter."""
    return block.writes[0].buffer.data not in s.parameters("main")


def chooses(s: tir.Schedule, block: S.Block) -> bool:
    """A choice between a value and a constant."""
    value = getattr(block.body[0], "value", None)
    return not block.init and isinstance(value, Select) and isinstance(value.false_value, (IntImm, FloatImm))


def unscheduled(s: tir.Schedule, block: S.Block) -> bool:
    """A sum in loops of its own, each an axis."""
    around = s.tree("main").loops_around(block)
    return reduces(s, block) and [x.loop_var for x in around] == list(block.iter_values)


def loop_of(draw: random.Random, s: tir.Schedule, fits: Fits | None = None) -> tir.LoopRV:
    loops = s.get_loops(block_of(draw, s, fits))
    if not loops:
        raise tir.ScheduleError("no loops")
    return draw.choice(loops)


def reduced_loop(draw: random.Random, s: tir.Schedule) -> tir.LoopRV:
    """Mostly one that its block reduces over."""
    block = block_of(draw, s, reduces)
    found = s.get(block)
    names = {
        v.name for kind, e in zip(found.kinds, found.iter_values, strict=True) if kind == "reduce" for v in variables(e)
    }
    loops = [x for x in s.get_loops(block) if s.get(x).loop_var.name in names]
    if not loops or draw.random() < 0.1:
        return loop_of(draw, s)
    return draw.choice(loops)


def loops_of(s: tir.Schedule, block: tir.BlockRV | str) -> list[tir.LoopRV]:
    """The loops around a block, of which there is one at least."""
    loops = s.get_loops(block)
    if not loops:
        raise tir.ScheduleError("no loops")
    return loops
