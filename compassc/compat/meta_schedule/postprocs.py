"""Postprocessors: what is done to a schedule when all choices are made; False refuses it."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from compassc.ir import stmts as S
from compassc.ir.exprs import IntImm, Var
from compassc.ir.visit import walk_stmts
from compassc.tir import BlockRV, LoopRV, Schedule, ScheduleError

from . import blocks
from .rules import ParallelizeVectorizeUnroll

if TYPE_CHECKING:
    from typing_extensions import Self

    from .tune import TuneContext


class Postproc:
    """The base of postprocessors."""

    def initialize(self, context: TuneContext) -> None:
        """Takes what it has to know of the context."""
        self.target = context.target

    _initialize_with_tune_context = initialize

    def apply(self, sch: Schedule) -> bool:
        """Changes the schedule; whether it may be measured."""
        raise NotImplementedError

    def clone(self) -> Self:
        """Another one like it."""
        return copy.copy(self)

    @staticmethod
    def create(kind: str) -> list[Postproc]:
        """Those of a kind of target. ValueError for others."""
        from .defaults import postprocs_for

        return postprocs_for(kind)


PyPostproc = Postproc


class DisallowDynamicLoop(Postproc):
    """Refuses loops of open extents."""

    def apply(self, sch: Schedule) -> bool:
        loops = (s for f in sch.mod.functions for s in walk_stmts(f.body) if isinstance(s, S.For))
        return all(isinstance(s.stop, IntImm) and isinstance(s.min, IntImm) for s in loops)


class RewriteReductionBlock(Postproc):
    """Has sums begin in a nest of their own, above their outermost loop."""

    def apply(self, sch: Schedule) -> bool:
        for function, name in blocks.all_blocks(sch):
            block = sch.get_block(name, function)
            if not blocks.is_reduction(blocks.block_of(sch, block)):
                continue
            for loop in sch.get_loops(block):
                if blocks.kind_of_loop(_loop(sch, loop)) != "spatial":
                    try:
                        sch.decompose_reduction(block, loop)
                    except ScheduleError:
                        return False
                    break
        return True


def _loop(sch: Schedule, rv: LoopRV) -> S.For:
    found = sch.get(rv)
    assert isinstance(found, S.For)
    return found


class RewriteParallelVectorizeUnroll(Postproc):
    """Does what `ParallelizeVectorizeUnroll` has said, and takes its notes away."""

    def apply(self, sch: Schedule) -> bool:
        started: set[Var] = set()
        for function, name in blocks.all_blocks(sch):
            block = sch.get_block(name, function)
            found = blocks.block_of(sch, block)
            rule = ParallelizeVectorizeUnroll
            notes = {key: blocks.note_of(found, key) for key in (rule.PARALLEL, rule.VECTORIZE, *rule.UNROLL)}
            for key, value in notes.items():
                if value is not None:
                    sch.unannotate(block, key)
            if not any(v is not None for v in notes.values()):
                continue
            self._vectors(sch, block, int(notes[rule.VECTORIZE] or 0))
            self._threads(sch, block, int(notes[rule.PARALLEL] or 0), started)
            for key, explicit in zip(rule.UNROLL, (0, 1)):
                if notes[key]:
                    self._unrolled(sch, block, int(notes[key]), explicit)
        return True

    def _alone(self, sch: Schedule, block: BlockRV, loops: list[LoopRV]) -> list[LoopRV]:
        """The innermost loops around a block that are around it alone, and plain."""
        kept: list[LoopRV] = []
        for rv in reversed(loops):
            loop = _loop(sch, rv)
            inner = [s for s in walk_stmts(loop.body) if isinstance(s, S.Block)]
            if len(inner) != 1 or loop.kind != "serial" or loop.annotations:
                break
            kept.insert(0, rv)
        return kept

    def _vectors(self, sch: Schedule, block: BlockRV, most: int) -> None:
        loops = self._alone(sch, block, sch.get_loops(block))
        if most < 2 or not loops:
            return
        last = _loop(sch, loops[-1])
        extent = last.stop.value if isinstance(last.stop, IntImm) else 0
        if blocks.kind_of_loop(last) != "spatial" or not 1 < extent <= most:
            return
        saved = sch.copy()
        try:
            sch.vectorize(loops[-1])
        except ScheduleError:
            assert saved.mod is not None  # a step that is not legal has changed nothing

    def _threads(self, sch: Schedule, block: BlockRV, most: int, started: set[Var]) -> None:
        loops = sch.get_loops(block)
        if most < 2 or not loops or _loop(sch, loops[0]).loop_var in started:
            return
        chosen: list[LoopRV] = []
        turns = 1
        for rv in loops:
            loop = _loop(sch, rv)
            extent = loop.stop.value if isinstance(loop.stop, IntImm) else 0
            plain = loop.kind == "serial" and not loop.annotations and blocks.kind_of_loop(loop) == "spatial"
            if not plain or not extent or turns * extent > most:
                break
            turns *= extent
            chosen.append(rv)
            if len(loop.body) != 1 or not isinstance(loop.body[0], S.For):
                break
        if turns < 2:
            return
        try:
            fused = sch.fuse(*chosen) if len(chosen) > 1 else chosen[0]
            sch.parallel(fused)
            started.add(_loop(sch, fused).loop_var)
        except ScheduleError:
            started.add(_loop(sch, sch.get_loops(block)[0]).loop_var)

    def _unrolled(self, sch: Schedule, block: BlockRV, steps: int, explicit: int) -> None:
        loops = sch.get_loops(block)
        if loops:
            sch.annotate(loops[0], "pragma_auto_unroll_max_step", steps)
            sch.annotate(loops[0], "pragma_unroll_explicit", explicit)


class RewriteLayout(Postproc):
    """Weights stay as they are: nothing changes."""

    def apply(self, sch: Schedule) -> bool:
        return True


class RewriteTensorize(Postproc):
    """Puts intrinsics into blocks that are annotated `meta_schedule.auto_tensorize`."""

    def __init__(self, vectorize_init_loop: bool = False) -> None:
        self.vectorize_init_loop = vectorize_init_loop

    def apply(self, sch: Schedule) -> bool:
        key = "meta_schedule.auto_tensorize"
        for function, name in blocks.all_blocks(sch):
            block = sch.get_block(name, function)
            intrin = blocks.note_of(blocks.block_of(sch, block), key)
            if intrin is None:
                continue
            sch.unannotate(block, key)
            try:
                sch.tensorize(block, str(intrin))
            except ScheduleError:
                return False
        return True
