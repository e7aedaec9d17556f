"""The rules that make sketches: what is computed inside of what, in which memory, in which loops.

A sketch is a function of a schedule and of `Choices`, which takes steps on the schedule. `RULES` has them by name, each
with the question whether it applies to a graph. They know the memories of an NPU: device memory, the LSRAM of a TEC, registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import cached_property
from math import prod

from compass_core.dataclass import dataclass
from compass_core.targets import Target
from compassc import te
from compassc.ir.exprs import FloatImm, IntImm, Select
from compassc.ir.iter_vars import IterVar
from compassc.ir.tensor_exprs import ProducerLoad
from compassc.te.schedule import Schedule, Stage
from compassc.te.tensor import Operation, PlaceholderOp, Tensor, tensor_of
from compassc.topi.schedules.stages import computed_stages, extent_of, fuse_all, inline_maps, reads_of, reduces, uses
from compassc.tuning.sketches.choices import Choices
from compassc.tuning.sketches.loops import inner_loops, reduction_loops

_TILE = 8192
"""Elements of the tile of an output that a TEC has in its memory, at most."""


@dataclass
class Graph:
    """A schedule on which a sketch takes its steps, the target, and the decisions."""

    s: Schedule
    target: Target
    """`compass_core.targets.Target`."""
    choices: Choices
    copies: list[Stage] = field(default_factory=list)

    @cached_property
    def out(self) -> Stage:
        return next(stage for stage in reversed(self.s.stages) if stage.is_output)

    def readers(self, tensor: Tensor) -> list[Stage]:
        return [x for x in self.s.stages if any(r.producer == tensor for r in reads_of(x))]


Sketch = Callable[[Graph], None]


@dataclass(frozen=True)
class Rule:
    """A sketch by name, and whether there is one for a schedule without steps."""

    name: str
    applies: Callable[[Schedule, Target], bool]
    make: Sketch


# ------------------------------------------------------------------------------------------------------------- inlining


def inline(graph: Graph) -> None:
    """Maps into what reads them; those that several read and that are expensive, or that a reduction reads, may stay."""
    s, kept = graph.s, list(graph.copies)
    for stage in s.stages:
        is_map = len(stage.body) == 1 and bool(stage.axis) and not reduces(stage)
        if not is_map or stage.is_output or stage.scope or stage in kept:
            continue
        readers = s.readers(stage)
        several = len(readers) > 1 or any(reduces(r) or len(r.axis) > len(stage.axis) for r in readers)
        if several and not graph.choices.one_of(f"{stage.label}.inline", [False, True]):
            kept.append(stage)
    inline_maps(s, keep=lambda x: x in kept or x.scope != "")


# -------------------------------------------------------------------------------------------------- tiles in the LSRAM


def tiles_apply(s: Schedule, target: Target) -> bool:
    out = next((x for x in reversed(s.stages) if x.is_output), None)
    return (
        len(s.outputs) == 1
        and out is not None
        and len(out.body) == 1
        and bool(out.axis)
        and all(extent_of(a) for x in computed_stages(s) for a in (*x.axis, *x.reduce_axis))
        and prod(extent_of(a) for a in out.axis) >= target.tecs
    )


def tiles(graph: Graph) -> None:
    """Multi-level tiling: the loops of the output are shared out over the TECs, a tile of it is computed in the LSRAM,
    inputs are brought there by transfers, and what is computed before is computed for the tile."""
    s, choices, out = graph.s, graph.choices, graph.out
    local = _cached_output(graph)
    given = graph.copies = [*_paddings(graph), *_cached_inputs(graph)]
    inline(graph)
    stages = [x for x in computed_stages(s) if x is not out and x not in graph.copies]
    loops, sizes = _tiled(graph, stages)
    inner = loops[-1]
    for stage in stages:
        stage.compute_at(out, inner)
    core = next((x for x in reversed(stages) if reduces(x)), None)
    deep = _loops_of_stages(graph, stages, core, sizes)
    for copy in given:
        _placed(graph, copy, loops, core, deep)
    if local is not None and choices.one_of(f"{local.label}.double", [True, False]):
        local.double_buffer()
    if local is None:
        inner_loops(out, choices, graph.target, [a for a in out.leaf_iter_vars if a not in loops])


def _cached_output(graph: Graph) -> Stage | None:
    """The stage that computes the output in the memory of a TEC; None where it is computed in its place."""
    out = graph.out
    if not reduces(out) and not graph.choices.one_of(f"{out.label}.local", [True, False], [4, 1]):
        return None
    return graph.s[graph.s.cache_write(out.op.output(0), "lsram")]


def _paddings(graph: Graph) -> list[Stage]:
    """Copies of inputs with something around them, which transfers bring into the memory of a TEC as they are."""
    found = []
    for stage in graph.s.stages:
        if not stage.is_output and _is_padding(stage):
            if graph.choices.one_of(f"{stage.label}.inline", [False, True], [6, 1]):
                continue
            found.append(stage)
    for stage in found:
        stage.set_scope("lsram")
    return found


def _is_padding(stage: Stage) -> bool:
    """Whether elements are those of an input, or a number."""
    if len(stage.body) != 1 or reduces(stage) or not stage.axis:
        return False
    parts = stage.body[0]
    if not isinstance(parts, Select):
        return False
    reads = [
        x
        for x in (parts.true_value, parts.false_value)
        if isinstance(x, ProducerLoad) and isinstance(tensor_of(x).op, PlaceholderOp)
    ]
    return len(reads) == 1 and any(isinstance(x, (IntImm, FloatImm)) for x in (parts.true_value, parts.false_value))


def _cached_inputs(graph: Graph) -> list[Stage]:
    """Copies of inputs in the memory of a TEC."""
    found = []
    for stage in list(graph.s.stages):
        if not isinstance(stage.origin_op, PlaceholderOp):
            continue
        tensor = stage.origin_op.output(0)
        readers = [x for x in graph.readers(tensor) if not (_is_padding(x) and x.scope)]
        if readers and graph.choices.one_of(f"{stage.label}.local", [True, False], [6, 1]):
            found.append(graph.s[graph.s.cache_read(tensor, "lsram", readers)])
    return found


def _tiled(graph: Graph, stages: Sequence[Stage]) -> tuple[list[IterVar], dict[str, int]]:
    """Splits the loops of the output: those that are shared out (one), those of tiles, and the tile's own. Gives the
    loops outside of the tile, and the size of the tile by the name of the axis."""
    out = graph.out
    cuts = _Cuts(graph, _whole_axes(graph, stages))
    shares, middles, inside, sizes = [], [], [], {}
    for axis in out.axis:
        parts, _, size = cuts.of(axis)
        outer, rest = out.split(axis, nparts=parts)
        middle, tile = out.split(rest, factor=size)
        shares.append(outer)
        middles.append(middle)
        inside.append(tile)
        sizes[axis.name] = size
    if len(middles) > 1 and graph.choices.one_of(f"{out.label}.order", ["rows", "columns"]) == "columns":
        middles = [*middles[1:], middles[0]]
    out.reorder(*shares, *middles, *inside)
    share = fuse_all(out, shares)
    out.bind(share, te.thread_axis("threadIdx.x"))
    return [share, *middles], sizes


class _Cuts:
    """How the axes of an output are cut, one after the other: parts that are shared out, tiles of a part, elements of a
    tile. At random, cuts are drawn that give every TEC a part, registers full vectors, and tiles that are not too big."""

    def __init__(self, graph: Graph, whole: Sequence[IterVar]) -> None:
        self.graph, self.whole = graph, whole
        self.room, self.parts = _TILE, 1
        self.left = prod(extent_of(a) for a in graph.out.axis if a not in whole)

    def of(self, axis: IterVar) -> list[int]:
        out, extent = self.graph.out, extent_of(axis)
        if axis in self.whole:
            sizes = [1, 1, extent]
        else:
            self.left //= extent
            kind = out.op.output(0).dtype
            native = self.graph.target.vector_bytes // kind.bytes if axis is out.axis[-1] else 1
            sizes = self.graph.choices.tile(
                f"{out.label}.{axis.name}", extent, 3, extent, lambda s: self._likely(s, min(native, extent))
            )
        self.room = max(self.room // sizes[2], 1)
        self.parts *= sizes[0]
        return sizes

    def _likely(self, sizes: Sequence[int], native: int) -> float:
        tecs, parts = self.graph.target.tecs, self.parts * sizes[0]
        shared = 4.0 if parts == tecs else 1.0 if parts % tecs == 0 or self.left >= tecs else 0.01
        return shared * (1.0 if sizes[2] % native == 0 else 0.1) * (1.0 if sizes[2] <= self.room else 0.001)


def _whole_axes(graph: Graph, stages: Sequence[Stage]) -> list[IterVar]:
    """Axes that a tile has all of, for a sum that is computed for it does not depend on them."""
    sums: set[Operation] = set()
    for stage in graph.s.stages:  # what is read stands before what reads it
        if stage is not graph.out and (reduces(stage) or any(tensor_of(r).op in sums for r in reads_of(stage))):
            sums.add(stage.origin_op)
    found = []
    for place, axis in enumerate(graph.out.axis):
        for reader in (graph.out, *stages):
            mine = axis if reader is graph.out else _same_axis(reader, graph.out, place)
            reads = [r for r in reads_of(reader) if tensor_of(r).op in sums]
            if mine is not None and any(not uses(r, mine) for r in reads):
                found.append(axis)
    return list(dict.fromkeys(found))


def _same_axis(stage: Stage, out: Stage, place: int) -> IterVar | None:
    """The axis of a stage of the output's shape that stands for an axis of the output."""
    shape = [extent_of(a) for a in out.axis]
    return stage.axis[place] if [extent_of(a) for a in stage.axis] == shape else None


def _loops_of_stages(
    graph: Graph, stages: Sequence[Stage], core: Stage | None, sizes: dict[str, int]
) -> IterVar | None:
    """The loops of what is computed for a tile. Gives the outermost loop of the core's reduction."""
    deep = None
    for stage in stages:
        if reduces(stage):
            found = reduction_loops(stage, graph.choices, graph.target, sizes if stage is core else {})
            deep = found if stage is core else deep
        else:
            inner_loops(stage, graph.choices, graph.target, list(stage.axis))
    return deep


def _placed(graph: Graph, copy: Stage, loops: list[IterVar], core: Stage | None, deep: IterVar | None) -> None:
    """Where an input is brought into the memory of a TEC, and whether a turn ahead."""
    choices, out = graph.choices, graph.out
    places: list[tuple[str, Stage, IterVar]] = [(f"{i}", out, loop) for i, loop in enumerate(loops)]
    own = [x for x in graph.s.readers(copy) if not x.inlined]
    if core is not None and deep is not None and own == [core]:
        places.append(("deep", core, deep))
    chosen = choices.one_of(f"{copy.label}.at", [name for name, _, _ in places])
    _, stage, loop = next(p for p in places if p[0] == chosen)
    copy.compute_at(stage, loop)
    if choices.one_of(f"{copy.label}.double", [True, False]):
        copy.double_buffer()


# ----------------------------------------------------------------------------------------------------------- rfactor


def rfactor_applies(s: Schedule, target: Target) -> bool:
    out = next((x for x in reversed(s.stages) if x.is_output), None)
    if out is None or len(s.outputs) != 1 or len(out.body) != 1 or not reduces(out):
        return False
    few = prod(extent_of(a) for a in out.axis) < 4 * target.tecs
    return few and max((extent_of(a) for a in out.reduce_axis), default=0) >= 4 * target.tecs


def rfactor(graph: Graph) -> None:
    """A reduction to a few elements: each TEC reduces a part, in lanes; one puts the parts together."""
    s, choices, out = graph.s, graph.choices, graph.out
    inline(graph)
    axis = max(out.reduce_axis, key=extent_of)
    share, _ = out.split(axis, nparts=graph.target.tecs)
    part = s[s.rfactor(out.op.output(0), share)]
    part.set_scope("shared")
    part.bind(part.axis[0], te.thread_axis("threadIdx.x"))
    own = max(part.reduce_axis, key=lambda a: 0 if a.dom is None else extent_of(a))
    sizes = [x for x in (512, 1024, 2048, 4096, 8192) if x < extent_of(own)] or [extent_of(own)]
    outer, inner = part.split(own, factor=choices.one_of(f"{part.label}.piece", sizes))
    tensors = list(dict.fromkeys(tensor_of(r) for r in reads_of(part)))
    for tensor in tensors:
        name = f"{s[tensor].label}.local"
        if isinstance(tensor.op, PlaceholderOp) and choices.one_of(name, [True, False], [6, 1]):
            copy = s[s.cache_read(tensor, "lsram", [part])]
            copy.compute_at(part, outer)
            if choices.one_of(f"{copy.label}.double", [True, False]):
                copy.double_buffer()
    inner_loops(part, choices, graph.target, [inner])


RULES = (
    Rule("tiles", tiles_apply, tiles),
    Rule("rfactor", rfactor_applies, rfactor),
)
