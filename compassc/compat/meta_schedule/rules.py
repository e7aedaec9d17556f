"""Rules: what may be done with a block. Each gives one schedule or several, with choices that are drawn at random."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from compass_core.dataclass import dataclass
from compass_core.hostcc.host import num_threads
from compass_runtime import get_global_func
from compassc.ir import stmts as S
from compassc.ir.visit import walk_stmts
from compassc.targets import Target
from compassc.tir import BlockRV, LoopRV, Schedule, ScheduleError

from . import blocks

if TYPE_CHECKING:
    from typing_extensions import Self

    from .tune import TuneContext

_log = logging.getLogger("tvm.meta_schedule")
CORES = "num-cores"


def cores_of(target: Target | None) -> int:
    """How many processors a target has."""
    said = int(target.attrs.get(CORES, 0)) if target is not None else 0
    return said or num_threads()


class ScheduleRule:
    """The base of rules."""

    target: Target | None = None

    def initialize(self, context: TuneContext) -> None:
        """Takes what a rule has to know of the context."""
        self.target = context.target

    _initialize_with_tune_context = initialize

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """The schedules that it makes of one."""
        raise NotImplementedError

    def clone(self) -> Self:
        """Another one like it."""
        import copy

        return copy.copy(self)

    @staticmethod
    def create(kind: str) -> list[ScheduleRule]:
        """The rules of a kind of target. ValueError for others."""
        from .defaults import rules_for

        return rules_for(kind)


PyScheduleRule = ScheduleRule


class ApplyCustomRule(ScheduleRule):
    """The global function `meta_schedule.KEY.NAME` for blocks that are annotated `schedule_rule: NAME`."""

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        name = blocks.note_of(blocks.block_of(sch, block), "schedule_rule")
        if name in (None, "None"):
            return [sch]
        if self.target is None:
            raise ValueError("ApplyCustomRule: there is no target in the context")
        tried = [f"meta_schedule.{key}.{name}" for key in (*self.target.keys, self.target.kind.name)]
        found = next((f for f in (get_global_func(n, allow_missing=True) for n in tried) if f is not None), None)
        if found is None:
            _log.warning("Unknown schedule rule %s; tried %s", name, ", ".join(tried))
            sch.unannotate(block, "schedule_rule")
            return [sch]
        return list(found.body(sch, block))


class InlineConstantScalars(ScheduleRule):
    """Puts blocks that give one constant into what reads them."""

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        found = blocks.block_of(sch, block)
        spatial, _ = blocks.lengths(found)
        if not found.reads and spatial == 1 and blocks.is_spatial(found) and len(found.writes) == 1:
            _tried(sch, lambda: sch.compute_inline(block))
        return [sch]


def _tried(sch: Schedule, step: Callable[[], object]) -> bool:
    """Whether a step was legal, and is taken."""
    try:
        step()
    except ScheduleError:
        return False
    return True


@dataclass
class AutoInline(ScheduleRule):
    """Puts blocks that map elements into what reads them, or into what they read."""

    into_producer: bool
    into_consumer: bool
    inline_const_tensor: bool
    disallow_if_then_else: bool
    require_injective: bool
    require_ordered: bool
    disallow_op: Sequence[str] | None = None

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        found = blocks.block_of(sch, block)
        if len(found.writes) != 1 or not blocks.is_spatial(found):
            return [sch]
        if not found.reads:
            if self.inline_const_tensor and sch.get_consumers(block):
                _tried(sch, lambda: sch.compute_inline(block))
            return [sch]
        pure = all(blocks.is_spatial(b) for b in _all(sch))
        refused = (self.disallow_if_then_else and blocks.chooses(found)) or blocks.calls(
            found, tuple(self.disallow_op or ())
        )
        if refused and not pure:
            return [sch]
        if self.into_consumer and sch.get_consumers(block) and _tried(sch, lambda: sch.compute_inline(block)):
            return [sch]
        if self.into_producer and len(sch.get_producers(block)) == 1:
            _tried(sch, lambda: sch.reverse_compute_inline(block))
        return [sch]


def _all(sch: Schedule) -> list[S.Block]:
    return [s for f in sch.mod.functions for s in walk_stmts(f.body) if isinstance(s, S.Block)]


@dataclass
class AddRFactor(ScheduleRule):
    """Shares a sum out: parts of it are elements of a block of their own."""

    max_jobs_per_core: int = 16
    max_innermost_factor: int | None = None

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        found = blocks.block_of(sch, block)
        if not blocks.is_reduction(found) or not blocks.has_plain_bindings(found) or blocks.note_of(found, TILED):
            return [sch]
        spatial, turns = blocks.lengths(found)
        if blocks.reuses_data(found) and not (
            spatial < turns and spatial <= cores_of(self.target) * self.max_jobs_per_core
        ):
            return [sch]
        if turns <= 1 or len(sch.get_loops(block)) != len(found.kinds):
            return [sch]
        made = []
        for which in (0, 1):
            one = sch.copy()
            loops = one.get_loops(block)
            sums = [loop for loop, kind in zip(loops, found.kinds) if kind == "reduce"]
            rest = [loop for loop, kind in zip(loops, found.kinds) if kind != "reduce"]
            if _tried(one, partial(self._factored, one, block, rest, sums, which)):
                made.append(one)
        return [*made, sch]

    def _factored(self, sch: Schedule, block: BlockRV, rest: list[LoopRV], sums: list[LoopRV], which: int) -> None:
        if rest:
            sch.reorder(*rest, *sums)
        fused = sch.fuse(*sums)
        sizes = sch.sample_perfect_tile(fused, 2, self.max_innermost_factor or 1 << 30)
        parts = sch.split(fused, factors=list(sizes))
        made = sch.rfactor(parts[which], len(rest))
        sch.annotate(made, "meta_schedule.random_compute_producer", 1)


TILED = "meta_schedule.tiling_structure"


@dataclass(frozen=True)
class ReuseType:
    """Whether results or inputs of tiles are kept in a buffer of their own (`no`, `may`, `must`), at which levels, in which
    memory."""

    req: str = "no"
    levels: Sequence[int] = ()
    scope: str = "global"

    @classmethod
    def of(cls, given: Reuse) -> ReuseType:
        """What an argument says: itself, a table with these keys, or None for none."""
        if given is None:
            return cls()
        return given if isinstance(given, ReuseType) else cls(**given)


Reuse = ReuseType | Mapping[str, Any] | None
"""What says how tiles are kept: that, or its fields by name; None for not at all."""


@dataclass
class MultiLevelTiling(ScheduleRule):
    """Cuts the loops of a block that reuses data into tiles of tiles: `S` in `structure` are levels of the spatial loops, `R` of
    sums."""

    structure: str
    tile_binds: Sequence[str] | None = None
    max_innermost_factor: int | None = None
    vector_load_lens: Sequence[int] | None = None
    reuse_read: Reuse = None
    reuse_write: Reuse = None
    filter_fn: Callable[..., bool] | None = None

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        found = blocks.block_of(sch, block)
        if blocks.note_of(found, TILED):
            return [sch]
        if not (self.filter_fn(sch, sch.get_sref(block)) if self.filter_fn else blocks.reuses_data(found)):
            return [sch]
        sch.annotate(block, TILED, self.structure)
        tiles = self._tiled(sch, block, list(found.kinds))
        return [made for one in self._writes(sch, block, tiles) for made in self._reads(one, block, tiles)]

    def _tiled(self, sch: Schedule, block: BlockRV, kinds: list[str]) -> list[list[LoopRV]]:
        tiles: list[list[LoopRV]] = [[] for _ in self.structure]
        for loop, kind in zip(sch.get_loops(block), kinds):
            places = [i for i, letter in enumerate(self.structure) if letter == ("R" if kind == "reduce" else "S")]
            if len(places) == 1:
                tiles[places[0]].append(loop)
                continue
            sizes = sch.sample_perfect_tile(loop, len(places), self.max_innermost_factor or 64)
            for place, part in zip(places, sch.split(loop, factors=list(sizes))):
                tiles[place].append(part)
        sch.reorder(*(loop for tile in tiles for loop in tile))
        for tag, place in zip(self.tile_binds or (), range(len(tiles))):
            fused = sch.fuse(*tiles[place])
            sch.bind(fused, tag)
            tiles[place] = [fused]
        return tiles

    def _writes(self, sch: Schedule, block: BlockRV, tiles: list[list[LoopRV]]) -> list[Schedule]:
        reuse = ReuseType.of(self.reuse_write)
        if reuse.req == "no":
            return [sch]
        consumers = sch.get_consumers(block)
        made = []
        joined = reuse.req == "may" and len(consumers) == 1 and blocks.is_spatial(blocks.block_of(sch, consumers[0]))
        if not joined and reuse.req == "may":
            made.append(sch.copy())
        for level in reuse.levels:
            one = sch.copy()
            place = tiles[level - 1][-1]

            def moved(one: Schedule = one, place: LoopRV = place) -> None:
                target = consumers[0] if joined else one.cache_write(block, 0, reuse.scope)
                one.reverse_compute_at(target, place, preserve_unit_loops=True)

            if _tried(one, moved):
                made.append(one)
        return [*made, sch] if joined or not made else made

    def _reads(self, sch: Schedule, block: BlockRV, tiles: list[list[LoopRV]]) -> list[Schedule]:
        reuse = ReuseType.of(self.reuse_read)
        if reuse.req == "no":
            return [sch]
        made = []
        for level in reuse.levels:
            one = sch.copy()
            found = blocks.block_of(one, block)
            inputs = [i for i, r in enumerate(found.reads) if r in blocks.reads_of_others(found)]
            for i in inputs:
                copied = one.cache_read(block, i, reuse.scope)
                one.compute_at(copied, tiles[level - 1][-1], preserve_unit_loops=True)
                rank = len(blocks.block_of(one, copied).kinds)
                one.fuse(*one.get_loops(copied)[-rank:])
            made.append(one)
        return made


@dataclass
class ParallelizeVectorizeUnroll(ScheduleRule):
    """Says how many loops may be shared out, be vectors and be unrolled, which `RewriteParallelVectorizeUnroll` does."""

    max_jobs_per_core: int = 16
    max_vectorize_extent: int = 16
    unroll_max_steps: Sequence[int] = ()
    unroll_explicit: bool = True
    PARALLEL: ClassVar[str] = "meta_schedule.parallel"
    VECTORIZE: ClassVar[str] = "meta_schedule.vectorize"
    UNROLL: ClassVar[tuple[str, str]] = ("meta_schedule.unroll_implicit", "meta_schedule.unroll_explicit")

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        if blocks.note_of(blocks.block_of(sch, block), self.PARALLEL) is not None:
            return [sch]
        if self.max_jobs_per_core != -1:
            sch.annotate(block, self.PARALLEL, self.max_jobs_per_core * cores_of(self.target))
        if self.max_vectorize_extent != -1:
            sch.annotate(block, self.VECTORIZE, self.max_vectorize_extent)
        if self.unroll_max_steps and blocks.is_reduction(blocks.block_of(sch, block)):
            count = len(self.unroll_max_steps)
            steps = sch.sample_categorical(list(self.unroll_max_steps), [1.0 / count] * count)
            sch.annotate(block, self.UNROLL[self.unroll_explicit], steps)
        return [sch]


class RandomComputeLocation(ScheduleRule):
    """Computes a block that is read elsewhere at a random loop around what reads it."""

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        found = blocks.block_of(sch, block)
        if blocks.note_of(found, TILED) or not sch.get_consumers(block) or not found.kinds:
            return [sch]
        one = sch.copy()

        def moved() -> None:
            one.compute_at(block, one.sample_compute_location(block), preserve_unit_loops=True)

        return [one] if _tried(one, moved) else [sch]
