"""Sketches: what is done to the stages of a graph on a host, with sizes that are still to be chosen."""

from __future__ import annotations

from collections.abc import Iterator
from math import log2
from random import Random
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compassc.ir.exprs import Expr, IntImm
from compassc.ir.iter_vars import IterVar
from compassc.ir.names import NamePool
from compassc.ir.tensor_exprs import ProducerLoad, Reduce
from compassc.ir.visit import walk_exprs
from compassc.te.tensor import ComputeOp, Operation
from compassc.tuning.templates import factors_of

from .state import Stage, State, extent_of

if TYPE_CHECKING:
    from .workload import ComputeDAG, SearchTask

_LEVELS_S, _LEVELS_R = 4, 2
"""Loops that a spatial one and one of a sum become: S S R S R S."""
_ORDER = ((0, 0), (0, 1), (1, 0), (0, 2), (1, 1), (0, 3))
_STEPS = (0, 16, 64, 512)
_INNERMOST, _VECTOR = 64, 16
FUSED, KEPT, PLAIN = "fused", "kept", "plain"


class Candidate(TypedDict):
    """A program of a sketch: the number of that, the sizes of the tiles of each axis of each stage, and the steps that are unrolled."""

    sketch: int
    tiles: dict[str, list[list[int]]]
    unroll: int


@dataclass(frozen=True)
class Sketch:
    """Which stages are inlined, and how each sum is tiled: `fused` into the stage that reads it at a level, `kept` in a stage of
    its own that is written at a level, or `plain`."""

    inlined: tuple[str, ...]
    tiled: tuple[tuple[str, str, int], ...]


def stages_by_name(dag: ComputeDAG) -> dict[str, ComputeOp]:
    """What a graph computes, each by a name of its own."""
    pool = NamePool()
    return {pool.take(op.name): op for op in dag.ops if isinstance(op, ComputeOp)}


def sketches(dag: ComputeDAG) -> list[Sketch]:
    """All sketches of a graph."""
    inlined, ways = [], list[list[tuple[str, str, int]]]([[]])
    for name, op in stages_by_name(dag).items():
        readers = _readers(dag, op)
        if not op.reduce_axis and readers:
            inlined.append(name)
        elif _reuses(op):
            ways = [[*w, (name, how, level)] for w in ways for how, level in _choices(dag, op, readers)]
    return [Sketch(tuple(inlined), tuple(w)) for w in ways]


def _readers(dag: ComputeDAG, op: Operation) -> list[Operation]:
    return [o for o in dag.ops if any(t.op is op for t in o.input_tensors)]


def _reuses(op: ComputeOp) -> bool:
    """Whether a sum reads elements that serve for several results."""
    if not op.reduce_axis or len(op.body) != 1 or not isinstance(op.body[0], Reduce):
        return False
    if any(extent_of(a) is None for a in (*op.axis, *op.reduce_axis)):
        return False
    spatial = {a.var for a in op.axis if (extent_of(a) or 0) > 1}
    loads = [e for s in op.body[0].source for e in walk_exprs(s) if isinstance(e, ProducerLoad)]
    return any(spatial - {v for i in e.indices for v in walk_exprs(i)} for e in loads)


def _choices(dag: ComputeDAG, op: ComputeOp, readers: list[Operation]) -> list[tuple[str, int]]:
    if _written_by(dag, op) is not None:
        return [(FUSED, 1), (FUSED, 2), (PLAIN, 0)]
    return [(KEPT, 1), (KEPT, 2), (PLAIN, 0)] if not readers else [(PLAIN, 0)]


def _written_by(dag: ComputeDAG, op: ComputeOp) -> ComputeOp | None:
    """The output that a sum goes into element by element, where nothing else reads it or what is inlined on the way there."""
    readers = _readers(dag, op)
    reader = readers[0] if len(readers) == 1 else None
    if not isinstance(reader, ComputeOp) or not _maps(reader, op):
        return None
    return reader if any(t.op is reader for t in dag.outputs) else _written_by(dag, reader)


def _maps(reader: ComputeOp, op: ComputeOp) -> bool:
    """Whether an element is made of the one of the same place."""
    if reader.reduce_axis or len(reader.axis) != len(op.axis):
        return False
    loads = [
        e
        for b in reader.body
        for e in walk_exprs(b)
        if isinstance(e, ProducerLoad) and getattr(e.producer, "op", None) is op
    ]
    return all(_is_at(i, a) for e in loads for i, a in zip(e.indices, reader.axis, strict=True))


def _is_at(index: Expr, axis: IterVar) -> bool:
    """Whether an index is the place along an axis, of which there may be one."""
    return index is axis.var or (extent_of(axis) == 1 and isinstance(index, IntImm) and index.value == 0)


class SketchSpace:
    """The programs of a graph's sketches as a space of `compassc.tuning`: `{"sketch": number, "tiles": {stage: sizes of each
    axis}, "unroll": steps}`."""

    size = None

    def __init__(self, task: SearchTask) -> None:
        self.dag = task.compute_dag
        self.cores = task.hardware_params.numbers()[0]
        self.sketches = sketches(self.dag)
        self._stages = stages_by_name(self.dag)
        self._ops = {name: self._stages[name] for name, _, _ in (self.sketches[0].tiled if self.sketches else ())}

    def _tiles(self, op: ComputeOp, rng: Random) -> list[list[int]]:
        made = []
        for axis, count in [*((a, _LEVELS_S) for a in op.axis), *((a, _LEVELS_R) for a in op.reduce_axis)]:
            rest, sizes = extent_of(axis) or 1, list[int]()
            for place in range(count - 1):
                most = _INNERMOST if place == 0 else rest
                sizes.insert(0, rng.choice([f for f in factors_of(rest) if f <= most]))
                rest //= sizes[0]
            made.append(sizes)
        return made

    def sample(self, rng: Random) -> Candidate:
        tiles = {name: self._tiles(op, rng) for name, op in self._ops.items()}
        return {"sketch": rng.randrange(len(self.sketches)), "tiles": tiles, "unroll": rng.choice(_STEPS)}

    def mutate(self, candidate: Candidate, rng: Random) -> Candidate:
        other = self.sample(rng)
        name = rng.choice([*self._ops, "unroll", "sketch"])
        if name == "unroll":
            return {**candidate, "unroll": other["unroll"]}
        if name == "sketch":
            return {**candidate, "sketch": other["sketch"]}
        place = rng.randrange(len(candidate["tiles"][name]))
        tiles = [list(t) for t in candidate["tiles"][name]]
        tiles[place] = other["tiles"][name][place]
        return {**candidate, "tiles": {**candidate["tiles"], name: tiles}}

    def crossover(self, a: Candidate, b: Candidate, rng: Random) -> Candidate:
        tiles = {n: [rng.choice(p) for p in zip(a["tiles"][n], b["tiles"][n])] for n in a["tiles"]}
        return {"sketch": rng.choice((a, b))["sketch"], "tiles": tiles, "unroll": rng.choice((a, b))["unroll"]}

    def near(self, candidate: Candidate, rng: Random) -> Candidate | None:
        return candidate if candidate in self else None

    def grid(self) -> Iterator[Candidate]:
        raise CompassError("the programs of sketches are not counted", code="tuning-space")

    def __contains__(self, candidate: object) -> bool:
        return isinstance(candidate, dict) and candidate.get("sketch", -1) in range(len(self.sketches))

    def features(self, candidate: Candidate) -> Array:
        """What a model learns from: the sketch, the sizes as logarithms, the steps that are unrolled."""
        sizes = [log2(n) for tiles in candidate["tiles"].values() for t in tiles for n in t]
        return np.array([float(candidate["sketch"]), log2(candidate["unroll"] + 1), *sizes])

    def state(self, candidate: Candidate) -> State:
        """The state of a candidate."""
        sketch, state = self.sketches[candidate["sketch"]], State(self.dag)
        for name in sketch.inlined:
            state.compute_inline(self._stages[name])
        tiled = [self._stages[name] for name, _, _ in sketch.tiled]
        for op, (name, how, level) in zip(tiled, sketch.tiled):
            _tiled(state, op, how, level, candidate["tiles"][name], _written_by(self.dag, op), candidate["unroll"])
        for stage in list(state.stages):
            if stage.compute_at == "root" and stage.axes and stage.op not in tiled:
                _shared_out(state, stage, len(stage.op.axis) if isinstance(stage.op, ComputeOp) else 0)
        return state


def _tiled(
    state: State, op: ComputeOp, how: str, level: int, tiles: list[list[int]], reader: Operation | None, unroll: int
) -> None:
    """Tiles the loops of a sum, and puts it into what writes its results."""
    written: Operation | None = reader if how == FUSED else None
    target: Operation = op
    if how == KEPT:
        target, written = state.cache_write(op, "local"), op
    spatial = len(op.axis)
    parts: list[list[int]] = []
    first_steps = []
    for sizes in tiles:
        at = sum(map(len, parts))
        state.split(target, at, sizes)
        first_steps.append(len(state.transform_steps) - 1)
        parts.append(list(range(at, at + len(sizes) + 1)))
    order = [p[place] for kind, place in _ORDER for i, p in enumerate(parts) if (i >= spatial) == bool(kind)]
    state.reorder(target, order)
    if written is None:
        _shared_out(state, state[target], spatial)
        _inner(state, target, unroll)
        return
    for i in range(spatial):
        state.follow_split(written, i * (level + 1), first_steps[i], level)
    state.reorder(written, [i * (level + 1) + place for place in range(level + 1) for i in range(spatial)])
    fused = _shared_out(state, state[written], spatial)
    state.compute_at(target, written, level * spatial - fused)
    _inner(state, target, unroll)
    _inner(state, written, 0)


def _inner(state: State, op: Operation, unroll: int) -> None:
    """A short innermost loop as a vector; the loops to be unrolled by steps."""
    stage = state[op]
    last = stage.axes[-1]
    length = _length(state, stage, len(stage.axes) - 1)
    if 1 < length <= _VECTOR and not last.is_reduction:
        state.vectorize(op, len(stage.axes) - 1)
    if unroll:
        state.pragma(op, 0, f"auto_unroll_max_step${unroll}")


def _length(state: State, stage: Stage, place: int) -> int:
    """The turns of the innermost loop: the factor of the split that made it."""
    axis = stage.axes[place]
    for relation in reversed(state.schedule[stage.op].relations):
        factor = getattr(relation, "factor", None)
        if factor is not None and getattr(relation, "inner", None) is axis:
            return int(getattr(factor, "value", factor))
    return extent_of(axis) or 0


def _shared_out(state: State, stage: Stage, spatial: int) -> int:
    """The outermost loops as one that threads share out; how many they were."""
    count = max(min(spatial, len(stage.axes) - 1), 1)
    if stage.compute_at != "root" or not spatial or state.schedule[stage.op].annotations:
        return 1
    place = 0
    if count > 1:
        state.fuse(stage, list(range(count)))
    state.parallel(stage, place)
    return count
