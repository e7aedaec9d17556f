"""What all kinds of targets need: looking at stages, and the steps that they share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from compassc import te
from compassc.ir.exprs import Binary, Call, Expr, IntImm, Var
from compassc.ir.iter_vars import IterVar
from compassc.ir.tensor_exprs import ProducerLoad, Reduce, reads
from compassc.ir.visit import rewrite, walk_exprs
from compassc.ops.core import load
from compassc.te.errors import LowerError, ScheduleError
from compassc.te.lowering import inlined, normalised
from compassc.te.machine import Machine
from compassc.te.schedule import Schedule, Stage
from compassc.te.tensor import ComputeOp
from compassc.topi.schedules.knobs import Knobs

_LONG = ("math", "div")
"""Classes of operations in the tables of costs."""
_MANY_READS = 16
"""So many elements that one is computed of are more than the place in memory for it costs."""


def extent_of(axis: IterVar) -> int:
    """The extent of an axis; 0 where it is open."""
    assert axis.dom is not None
    return axis.dom.extent.value if isinstance(axis.dom.extent, IntImm) else 0


def reduces(stage: Stage) -> bool:
    return bool(stage.body) and isinstance(stage.body[0], Reduce)


def computed_stages(s: Schedule) -> list[Stage]:
    return [stage for stage in s.stages if isinstance(stage.origin_op, ComputeOp) and not stage.inlined]


def reads_of(stage: Stage) -> list[ProducerLoad]:
    return _reads(stage.body)


def _reads(body: Sequence[Expr]) -> list[ProducerLoad]:
    sources = [x for e in body for x in (e.source if isinstance(e, Reduce) else (e,))]
    return [r for e in sources for r in reads(e)]


def whole(stage: Stage) -> tuple[Expr, ...]:
    """What a stage computes, with what inlined stages do where it reads them."""
    bodies: dict[object, tuple[Stage, Expr]] = {}
    for x in stage.schedule.stages:
        if x.inlined:
            bodies[x.origin_op] = x, rewrite(x.body[0], lambda e: inlined(e, bodies))
    return tuple(rewrite(e, lambda x: inlined(x, bodies)) for e in stage.body) if bodies else stage.body


def uses(read: ProducerLoad, axis: IterVar, last: bool = False) -> bool:
    """Whether an axis is in the (last) indices of a read."""
    indices = read.indices[-1:] if last else read.indices
    return any(x is axis.as_expr() for e in indices for x in walk_exprs(e) if isinstance(x, Var))


def along(stage: Stage) -> IterVar | None:
    """The axis of a reduction that its reads run along, if there is one: those that it moves at all."""
    found = reads_of(stage)
    for axis in reversed(stage.reduce_axis):
        varying = [r for r in found if uses(r, axis)]
        if varying and all(uses(r, axis, last=True) for r in varying):
            return axis
    return None


def inline_maps(s: Schedule, keep: Callable[[Stage], bool] = lambda stage: False) -> None:
    """Element-wise stages into what reads them; but those whose elements are expensive and read by more than one."""
    for stage in list(s.stages):
        mapped = isinstance(stage.origin_op, ComputeOp) and not stage.is_output and not reduces(stage)
        mapped = mapped and all(isinstance(r.origin_op, ComputeOp) for r in s.readers(stage))  # others read memory
        if mapped and len(stage.body) == 1 and not _is_expensive(s, stage) and not keep(stage):
            stage.compute_inline()


def takes_long(stage: Stage) -> bool:
    """Whether elements are computed by quotients, or by functions whose unit takes as long."""
    nodes = [x for e in stage.body for x in walk_exprs(e)]
    calls = [load()[x.op].cost for x in nodes if isinstance(x, Call) and x.op in load()]
    return any(isinstance(x, Binary) and x.op == "div" for x in nodes) or any(c and c.kind in _LONG for c in calls)


def _is_expensive(s: Schedule, stage: Stage) -> bool:
    """Whether elements are computed by functions of reals and read by more than one stage, or of many others and read by a
    reduction, which takes each again and again."""
    readers = s.readers(stage)
    if len(reads_of(stage)) >= _MANY_READS and any(reduces(r) for r in readers):
        return True
    return len(readers) > 1 and any(isinstance(x, Call) for e in whole(stage) for x in walk_exprs(e))


def fuse_all(stage: Stage, axes: Sequence[IterVar]) -> IterVar:
    fused = axes[0]
    for axis in axes[1:]:
        fused = stage.fuse(fused, axis)
    return fused


def lanes_of(stage: Stage, knobs: Knobs, width: int) -> int:
    """Lanes of a vector of `width` bytes, for the widest type that is read (but for what all lanes have) or made."""
    varying = (*stage.axis[-1:], *stage.reduce_axis)
    read = [r for r in _reads(whole(stage)) if any(uses(r, a) for a in varying)]
    sizes = [r.producer.dtype.bytes for r in read] + [t.dtype.bytes for t in stage.origin_op.outputs]
    return knobs.lanes or max(width // max(sizes), 2)


def in_lanes(stage: Stage, axis: IterVar, extent: int, lanes: int) -> None:
    """An axis as the innermost loop, in vectors."""
    if extent > 1 or not extent:
        outer, inner = stage.split(axis, factor=lanes if not extent else min(lanes, extent))
        rest = [a for a in stage.leaf_iter_vars if a is not outer and a is not inner]
        stage.reorder(*rest, outer, inner)
        stage.vectorize(inner)


def inner_vectors(stage: Stage, knobs: Knobs, width: int, reductions: bool) -> None:
    """Vectors for a stage inside of another, or for what the shared loop leaves."""
    axis = along(stage) if reductions and reduces(stage) else None
    spatial = [a for a in stage.leaf_iter_vars if not a.is_reduction and a in stage.axis]
    if axis is None and spatial:
        axis = spatial[-1]
        if reduces(stage) and not any(uses(r, axis, last=True) for r in reads_of(stage)):
            return
    if axis is not None:
        in_lanes(stage, axis, extent_of(axis), lanes_of(stage, knobs, width))


def attach_rows(s: Schedule, out: Stage, axis: IterVar, stages: Sequence[Stage], machine: Machine) -> list[Stage]:
    """Has stages computed at the shared loop of an output where nothing is computed twice; gives the others."""
    left = []
    for stage in reversed(stages):
        stage.attached = None
        try:
            stage.compute_at(out, axis)
            if grows(s, stage, out, axis, machine):
                raise ScheduleError("")
        except (LowerError, ScheduleError):
            if stage.attached is not None:
                stage.compute_root()
            left.append(stage)
    return left


def grows(s: Schedule, stage: Stage, out: Stage, axis: IterVar, machine: Machine) -> bool:
    """Whether a stage computes more elements at a loop than it has."""
    plain = normalised(s, machine)
    bounds = te.infer_bounds(plain)
    found = {x.label: x for x in plain.stages}
    own, around = found[stage.label], found[out.label]
    regions = bounds.regions[own]
    turns = 1
    for leaf in around.leaf_iter_vars:
        extent = bounds.extents[around][leaf]
        turns *= extent.value if isinstance(extent, IntImm) else 1
        if leaf.name == axis.name:
            break
    sizes = [regions[a].extent for a in own.axis]
    if not all(isinstance(e, IntImm) for e in sizes):
        return True
    needed = prod(e.value for e in sizes if isinstance(e, IntImm)) * turns
    return needed > 1.25 * prod(extent_of(a) for a in stage.axis)


def shared_loop(out: Stage, knobs: Knobs, tecs: int, lanes: int, keep_last: bool) -> IterVar:
    """One loop of all that can be shared out: the axes but the last, and pieces of the last where there are few rows."""
    spatial = list(out.axis)
    rows = prod(max(extent_of(a), 1) for a in spatial[:-1])
    last = spatial[-1]
    if keep_last and len(spatial) > 1 and rows >= tecs and not knobs.chunk:
        return fuse_all(out, spatial[:-1])
    extent = extent_of(last)
    each = knobs.chunk or max(min(-(-extent // tecs), 2048), 1)
    each = max(-(-each // lanes) * lanes, lanes)
    outer, inner = out.split(last, factor=each)
    out.reorder(*[a for a in out.leaf_iter_vars if a is not inner and not a.is_reduction], inner)
    return fuse_all(out, [*spatial[:-1], outer])


def turns_within(out: Stage, most: int, tecs: int) -> tuple[IterVar, int]:
    """The loop over turns of at most so many results that follow each other, so that all TECs have some, and how many
    neighbours a turn has on the last axis that has several."""
    axes, inside = list(out.axis), list[IterVar]()
    count, each = prod(map(extent_of, axes)), 1
    while len(axes) > 1 and each * extent_of(axes[-1]) <= most and count // (each * extent_of(axes[-1])) >= tecs:
        each *= extent_of(axes[-1])
        inside.insert(0, axes.pop())
    last = extent_of(axes[-1])
    fits = [n for n in range(1, last + 1) if last % n == 0 and n * each <= most and count // (n * each) >= tecs]
    if (fits or [1])[-1] > 1:
        axes[-1], within = out.split(axes[-1], factor=fits[-1])
        inside.insert(0, within)
    out.reorder(*axes, *inside)
    whole = next((extent_of(a) for a in reversed(out.axis) if a in inside and extent_of(a) > 1), 0)
    return fuse_all(out, axes), whole or (fits or [1])[-1]


def last_in_lanes(stage: Stage, lanes: int) -> None:
    """The innermost loop in vectors."""
    last = stage.leaf_iter_vars[-1]
    if last in stage.annotations:
        return
    _, inner = stage.split(last, factor=lanes)
    stage.vectorize(inner)


def dividing(extent: int, most: Sequence[int]) -> int:
    return next((n for n in most if extent and extent % n == 0), 1)


def widest(stage: Stage) -> int:
    return max([r.producer.dtype.bytes for r in reads_of(stage)] + [t.dtype.bytes for t in stage.origin_op.outputs])


def adds_bytes(total: Stage) -> bool:
    """Whether what is added are products of bytes, for which there are dot products."""
    return total.op.output(0).dtype.bytes == 4 and all(r.producer.dtype.bytes == 1 for r in reads_of(total))


def adds_halves(total: Stage) -> bool:
    """Whether what is added in float32 are products of halves, which are added to even and odd lanes as they are."""
    read = reads_of(total)
    kinds = {r.producer.dtype for r in read}
    alike = len(read) > 1 and len(kinds) == 1 and total.op.output(0).dtype.bytes == 4
    return alike and str(kinds.pop()) == "float16"
