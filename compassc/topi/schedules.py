"""Default schedules: what to do with the loops of any operator, for each kind of target, by a few named numbers.

All kinds put element-wise stages into what reads them. Then the outermost loop of each output is shared out (TECs of an NPU,
threads of the host, the grid of a CUDA device), stages of a row are computed inside of it where that computes nothing
twice, and the innermost loop becomes vectors: the last axis, or the reduction where all that is read lies along it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from compassc import te
from compassc.ir.exprs import IntImm, Var
from compassc.ir.visit import walk_exprs
from compassc.targets import Target
from compassc.te.axes import IterVar
from compassc.te.errors import LowerError, ScheduleError
from compassc.te.lowering import normalised
from compassc.te.machine import Machine
from compassc.te.nodes import Reduce, TensorRead, reads
from compassc.te.schedule import Schedule, Stage
from compassc.te.tensor import ComputeOp, PlaceholderOp, Tensor


@dataclass(frozen=True)
class Knobs:
    """The numbers of a schedule; 0 chooses one.

    `lanes`: of a vector. `chunk`: elements of the last axis that one turn of the shared loop computes where there are few
    rows. `rows`: how many rows of a product are computed together, in registers. `columns`: vectors of lanes side by side
    there. `blocks`: tiles of rows that one turn of the shared loop has. `cache`: whether operands and results of
    element-wise operators go through the local memory of an NPU's TEC. `threads`: of a block on CUDA devices.
    """

    lanes: int = 0
    chunk: int = 0
    rows: int = 0
    columns: int = 0
    blocks: int = 0
    cache: bool = True
    threads: int = 128


def schedule(outs: Any, target: Any = None, knobs: Knobs | None = None, **named: Any) -> Schedule:
    """A schedule of the operators that give `outs`. `named`: knobs by name. LowerError where the target has no program for
    any schedule that is known: intermediate tensors that do not fit its memory."""
    outputs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
    chosen = Target.of(target)
    wanted = replace(knobs or Knobs(), **named)
    args = [*inputs_of(outputs), *outputs]
    first: LowerError | None = None
    for attempt in _ATTEMPTS.get(chosen.kind.name, (_plain,)):
        made = te.create_schedule(outputs)
        try:
            attempt(made, chosen, wanted)
            te.lower(made, args, target=chosen)
        except (LowerError, ScheduleError) as error:
            first = first or (error if isinstance(error, LowerError) else None)
            continue
        return made
    assert first is not None, "a schedule without steps is legal"
    raise first


def inputs_of(outputs: Sequence[Tensor]) -> list[Tensor]:
    """The tensors that outputs are computed of, in order of appearance."""
    from compassc.te.tensor import post_order

    return [op.output(0) for op in post_order([t.op for t in outputs]) if isinstance(op, PlaceholderOp)]


# ----------------------------------------------------------------------------------------------------- looking at stages


def _extent(axis: IterVar) -> int:
    """The extent of an axis; 0 where it is open."""
    assert axis.dom is not None
    return axis.dom.extent.value if isinstance(axis.dom.extent, IntImm) else 0


def _reduces(stage: Stage) -> bool:
    return bool(stage.body) and isinstance(stage.body[0], Reduce)


def _computed(s: Schedule) -> list[Stage]:
    return [stage for stage in s.stages if isinstance(stage.op, ComputeOp) and not stage.inlined]


def _reads(stage: Stage) -> list[TensorRead]:
    sources = [x for e in stage.body for x in (e.sources if isinstance(e, Reduce) else (e,))]
    return [r for e in sources for r in reads(e)]


def _uses(read: TensorRead, axis: IterVar, last: bool = False) -> bool:
    """Whether an axis is in the (last) indices of a read."""
    indices = read.indices[-1:] if last else read.indices
    return any(x is axis.as_expr() for e in indices for x in walk_exprs(e) if isinstance(x, Var))


def _along(stage: Stage) -> IterVar | None:
    """The axis of a reduction that all of its reads run along, if there is one."""
    found = _reads(stage)
    for axis in reversed(stage.reduce_axis):
        varying = [r for r in found if _uses(r, axis)]
        if varying and all(_uses(r, axis, last=True) for r in varying) and len(varying) == len(found):
            return axis
    return None


def _inline(s: Schedule, keep: Callable[[Stage], bool] = lambda stage: False) -> None:
    """Element-wise stages into what reads them; but those whose elements are dear and read by more than one."""
    for stage in list(s.stages):
        mapped = isinstance(stage.op, ComputeOp) and not stage.is_output and not _reduces(stage)
        if mapped and len(stage.body) == 1 and stage.op.tag != "row" and not keep(stage):
            stage.compute_inline()


def _fuse(stage: Stage, axes: Sequence[IterVar]) -> IterVar:
    fused = axes[0]
    for axis in axes[1:]:
        fused = stage.fuse(fused, axis)
    return fused


def _lanes(stage: Stage, knobs: Knobs, width: int) -> int:
    """Lanes of a vector of `width` bytes, for the widest type that is read or made."""
    sizes = [r.tensor.dtype.bytes for r in _reads(stage)] + [t.dtype.bytes for t in stage.op.outputs]
    return knobs.lanes or max(width // max(sizes), 2)


def _vector(stage: Stage, axis: IterVar, extent: int, lanes: int) -> None:
    """An axis as the innermost loop, in vectors."""
    if extent > 1 or not extent:
        outer, inner = stage.split(axis, factor=lanes if not extent else min(lanes, extent))
        rest = [a for a in stage.leaf_iter_vars if a is not outer and a is not inner]
        stage.reorder(*rest, outer, inner)
        stage.vectorize(inner)


def _inner(stage: Stage, knobs: Knobs, width: int, along: bool) -> None:
    """Vectors for a stage inside of another, or for what the shared loop leaves."""
    axis = _along(stage) if along and _reduces(stage) else None
    spatial = [a for a in stage.leaf_iter_vars if not a.is_reduction and a in stage.axis]
    if axis is None and spatial:
        axis = spatial[-1]
        if _reduces(stage) and not any(_uses(r, axis, last=True) for r in _reads(stage)):
            return
    if axis is not None:
        _vector(stage, axis, _extent(axis), _lanes(stage, knobs, width))


def _attach(s: Schedule, out: Stage, axis: IterVar, stages: Sequence[Stage], machine: Machine) -> list[Stage]:
    """Has stages computed at the shared loop of an output where nothing is computed twice; gives the others."""
    left = []
    for stage in reversed(stages):
        stage.attached = None
        try:
            stage.compute_at(out, axis)
            if _grows(s, stage, out, axis, machine):
                raise ScheduleError("")
        except (LowerError, ScheduleError):
            if stage.attached is not None:
                stage.compute_root()
            left.append(stage)
    return left


def _grows(s: Schedule, stage: Stage, out: Stage, axis: IterVar, machine: Machine) -> bool:
    """Whether a stage computes more elements at a loop than it has."""
    plain = normalised(s, machine)
    bounds = te.infer_bounds(plain)
    by_op = {x.op: x for x in plain.stages}
    regions = bounds.regions[by_op[stage.op]]
    turns = 1
    for leaf in by_op[out.op].leaf_iter_vars:
        extent = bounds.extents[by_op[out.op]][leaf]
        turns *= extent.value if isinstance(extent, IntImm) else 1
        if leaf.name == axis.name:
            break
    sizes = [regions[a].extent for a in by_op[stage.op].axis]
    if not all(isinstance(e, IntImm) for e in sizes):
        return True
    needed = prod(e.value for e in sizes if isinstance(e, IntImm)) * turns
    return needed > 1.25 * prod(_extent(a) for a in stage.axis)


# ------------------------------------------------------------------------------------------------------------ the NPU


def _shared_loop(out: Stage, knobs: Knobs, tecs: int, lanes: int, keep_last: bool) -> IterVar:
    """One loop of all that can be shared out: the axes but the last, and pieces of the last where there are few rows."""
    spatial = list(out.axis)
    rows = prod(max(_extent(a), 1) for a in spatial[:-1])
    last = spatial[-1]
    if keep_last and len(spatial) > 1 and rows >= tecs and not knobs.chunk:
        return _fuse(out, spatial[:-1])
    extent = _extent(last)
    each = knobs.chunk or max(min(-(-extent // tecs), 2048), 1)
    each = max(-(-each // lanes) * lanes, lanes)
    outer, inner = out.split(last, factor=each)
    out.reorder(*[a for a in out.leaf_iter_vars if a is not inner and not a.is_reduction], inner)
    return _fuse(out, [*spatial[:-1], outer])


def _npu(s: Schedule, target: Target, knobs: Knobs) -> None:
    from compass_core import targets as configurations

    found = configurations.load(target.mcpu)
    width = found.vector_bytes
    _inline(s)
    for out in [x for x in _computed(s) if x.is_output]:
        others = [x for x in _computed(s) if not x.is_output and x.attached is None and s.reaches(x, out)]
        if not out.axis or (_reduces(out) and prod(max(_extent(a), 1) for a in out.axis) < found.tecs):
            _few(s, out, knobs, width, found.tecs)
            continue
        lanes = _lanes(out, knobs, width)
        copy = _cached(s, out, knobs) if not others else None
        outer = _shared_loop(out, knobs, found.tecs, lanes, True)
        out.bind(outer, te.thread_axis("threadIdx.x"))
        if copy is not None:
            for stage in copy:
                stage.compute_at(out, outer)
            _vector(copy[-1], copy[-1].axis[-1], 0, lanes)
        elif _reduces(out):
            _reduction(out, knobs, width)
        else:
            _last_leaf(out, lanes)
        for stage in _attach(s, out, outer, others, target.machine()):
            _root(stage, knobs, found.tecs, width)
        for stage in others:
            if stage.attached is not None:
                _inner(stage, knobs, width, True)


def _last_leaf(stage: Stage, lanes: int) -> None:
    """The innermost loop in vectors."""
    last = stage.leaf_iter_vars[-1]
    if last in stage.annotations:
        return
    _, inner = stage.split(last, factor=lanes)
    stage.vectorize(inner)


def _cached(s: Schedule, out: Stage, knobs: Knobs) -> list[Stage] | None:
    """Copies in local memory of what an element-wise output reads and makes: the reads' stages, then the one that
    computes. None where its operands are not read at its own place."""
    if not knobs.cache or _reduces(out) or len(out.body) != 1 or not out.axis or not all(map(_extent, out.axis)):
        return None
    found = _reads(out)
    here = [a.as_expr() for a in out.axis]
    if not found or any(len(r.indices) != len(here) or any(i is not v for i, v in zip(r.indices, here)) for r in found):
        return None
    tensors = list(dict.fromkeys(r.tensor for r in found))
    local = s.cache_write(out.op.output(0), "lsram")
    copies = [s[s.cache_read(t, "lsram", [local.op])] for t in tensors]
    return [*copies, s[local]]


def _reduction(out: Stage, knobs: Knobs, width: int) -> None:
    """The loops of a reduction inside of the shared one: along what is read, or vectors of the last axis with the
    reduction outside of them."""
    axis = _along(out)
    if axis is not None:
        _vector(out, axis, _extent(axis), _lanes(out, knobs, width))
        return
    spatial = [a for a in out.leaf_iter_vars if not a.is_reduction]
    last = spatial[-1]
    if len(spatial) < 2 or not any(_uses(r, out.axis[-1], last=True) for r in _reads(out)):
        return
    outer, inner = out.split(last, factor=_lanes(out, knobs, width))
    out.reorder(outer, *[a for a in out.leaf_iter_vars if a.is_reduction], inner)
    out.vectorize(inner)


def _few(s: Schedule, out: Stage, knobs: Knobs, width: int, tecs: int) -> None:
    """A reduction to a few elements: each TEC reduces a part, one puts these together."""
    axis = max(out.reduce_axis, key=_extent)
    if _extent(axis) < 4 * tecs:
        return
    outer, _ = out.split(axis, nparts=tecs)
    factored = s.rfactor(out.op.output(0), outer)
    stage = s[factored[0] if isinstance(factored, (list, tuple)) else factored]
    stage.bind(stage.op.axis[0], te.thread_axis("threadIdx.x"))  # type: ignore[attr-defined]
    inside = _along(stage)
    if inside is not None:
        _vector(stage, inside, _extent(inside), _lanes(stage, knobs, width))


def _root(stage: Stage, knobs: Knobs, tecs: int, width: int) -> None:
    """A stage of the outermost level that is no output: shared out, in the memory of all TECs."""
    if not stage.axis:
        return
    lanes = _lanes(stage, knobs, width)
    outer = _shared_loop(stage, knobs, tecs, lanes, True)
    stage.bind(outer, te.thread_axis("threadIdx.x"))
    if _reduces(stage):
        _reduction(stage, knobs, width)
    else:
        _last_leaf(stage, lanes)


# ----------------------------------------------------------------------------------------------------------- the host


def _host(s: Schedule, target: Target, knobs: Knobs) -> None:
    width = 64
    _inline(s, keep=lambda stage: stage.name == "T_pad" and any(_reduces(r) for r in s.readers(stage)))
    for out in [x for x in _computed(s) if x.is_output]:
        others = [x for x in _computed(s) if not x.is_output and x.attached is None and s.reaches(x, out)]
        if not out.axis:
            continue
        if _reduces(out):
            outer = _tiled(s, out, knobs, width)
        else:
            outer = _rows(out, knobs, width)
        for stage in _attach(s, out, outer, others, target.machine()):
            if stage.axis:
                _tiled(s, stage, knobs, width) if _reduces(stage) else _rows(stage, knobs, width)
        for stage in others:
            if stage.attached is not None:
                _inner(stage, knobs, width, False)


def _rows(stage: Stage, knobs: Knobs, width: int) -> IterVar:
    """Rows on threads, the last axis in vectors."""
    lanes = _lanes(stage, knobs, width)
    outer = _shared_loop(stage, knobs, 2, lanes, True)
    _last_leaf(stage, lanes)
    if _worth_threads(stage):
        stage.parallel(outer)
    return outer


def _worth_threads(stage: Stage) -> bool:
    """Whether there is more to do than starting threads costs."""
    sizes = [_extent(a) or 1024 for a in (*stage.axis, *stage.reduce_axis)]
    return prod(sizes) >= 1 << 15


def _dividing(extent: int, most: Sequence[int]) -> int:
    return next((n for n in most if extent and extent % n == 0), 1)


def _tiled(s: Schedule, stage: Stage, knobs: Knobs, width: int) -> IterVar:
    """A reduction in registers: tiles of rows by vectors of columns, the reduction outside of both."""
    columns, found = stage.axis[-1], _reads(stage)
    along = [r for r in found if _uses(r, columns, last=True)]
    rows = next((a for a in reversed(stage.axis[:-1]) if along and not all(_uses(r, a) for r in along)), None)
    lanes = _lanes(stage, knobs, width)
    if not along or len(stage.body) != 1 or _extent(columns) < 2:
        outer = _fuse(stage, stage.axis[:-1]) if len(stage.axis) > 1 else stage.axis[0]
        if _worth_threads(stage):
            stage.parallel(outer)
        return outer
    wide = _dividing(_extent(columns), [knobs.columns * lanes] if knobs.columns else [2 * lanes, lanes, lanes // 2])
    wide = wide if wide > 1 else min(lanes, _extent(columns))
    tall = _dividing(_extent(rows), [knobs.rows] if knobs.rows else [8, 6, 4, 7, 5, 3, 2]) if rows is not None else 1
    local = s[s.cache_write(stage.op.output(0), "local")]
    out = stage
    axes = list(out.axis)
    columns_out, inner_column = out.split(axes[-1], factor=wide)
    inner: list[IterVar] = [inner_column]
    outers = [*axes[:-1], columns_out]
    if rows is not None and tall > 1:
        place = next(i for i, a in enumerate(axes) if a.name == rows.name)
        outers[place], inner_row = out.split(axes[place], factor=tall)
        inner.insert(0, inner_row)
    out.reorder(*outers, *inner)
    out.vectorize(inner_column)
    for axis in inner[:-1]:
        out.unroll(axis)
    local.compute_at(out, outers[-1])
    own = [local.axis[next(i for i, a in enumerate(axes) if a.name == rows.name)]] if rows is not None else []
    local.reorder(
        *[a for a in local.axis if a is not local.axis[-1] and a not in own], *local.reduce_axis, *own, local.axis[-1]
    )
    local.vectorize(local.axis[-1])
    for axis in own:
        local.unroll(axis)
    # Tiles of one column of tiles follow each other, so that what they share stays in the cache.
    if rows is not None and tall > 1:
        place = outers.index(next(o for o in outers if o.name.startswith(rows.name)))
        count = -(-_extent(axes[place]) // tall)
        blocks = knobs.blocks or _dividing(count, [16, 8, 4, 2])
        if blocks > 1:
            outers[place], together = out.split(outers[place], factor=blocks)
            out.reorder(*outers, together)
            local.compute_at(out, together)
    first = (
        outers[0] if len(outers) == 1 else _fuse(out, outers[:-1]) if prod(map(_first_extent, axes[:-1])) else outers[0]
    )
    if _worth_threads(local):
        out.parallel(first)
    return first


def _first_extent(axis: IterVar) -> int:
    return max(_extent(axis), 1)


# -------------------------------------------------------------------------------------------------------- CUDA and others


def _cuda(s: Schedule, target: Target, knobs: Knobs) -> None:
    _inline(s)
    for stage in _computed(s):
        if not stage.axis:
            continue
        fused = _fuse(stage, stage.axis)
        outer, inner = stage.split(fused, factor=knobs.threads)
        stage.bind(outer, te.thread_axis("blockIdx.x"))
        stage.bind(inner, te.thread_axis("threadIdx.x"))


def _plain(s: Schedule, target: Target, knobs: Knobs) -> None:
    """Element-wise stages inside of what reads them, and nothing else."""
    _inline(s)


_ATTEMPTS: dict[str, tuple[Callable[[Schedule, Target, Knobs], None], ...]] = {
    "compass": (_npu, lambda s, target, knobs: _npu(s, target, replace(knobs, cache=False)), _plain),
    "llvm": (_host, _plain),
    "c": (_host, _plain),
    "cuda": (_cuda, _plain),
}
"""For each kind what is tried, the best first: a schedule that has no program is left for the next."""
