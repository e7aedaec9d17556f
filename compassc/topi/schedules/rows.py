"""Rows of operators on NPUs: `streamed`, and which rows are computed in one turn of the loop that TECs share."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod
from typing import Any

from compass_core import targets as configurations
from compassc import te
from compassc.ir.exprs import Binary, IntImm
from compassc.ir.iter_vars import IterVar
from compassc.ir.tensor_exprs import ProducerLoad
from compassc.ir.visit import walk_exprs
from compassc.targets import Target
from compassc.te.errors import ScheduleError
from compassc.te.schedule import Schedule, Stage
from compassc.te.tensor import PlaceholderOp, Tensor, tensor_of
from compassc.topi.schedules.knobs import Knobs
from compassc.topi.schedules.stages import (
    adds_bytes,
    along,
    computed_stages,
    extent_of,
    fuse_all,
    grows,
    inline_maps,
    lanes_of,
    reads_of,
    reduces,
    takes_long,
    uses,
    widest,
)

_BESIDE = 1024
"""Elements of a turn at most where the work takes longer than transfers, whose starts cost nothing then."""


def streamed(s: Schedule, target: Target, knobs: Knobs) -> None:
    """Rows, or pieces of one, that go through the memory of a TEC: transfers in and out run beside the work."""
    computed = computed_stages(s)
    out = computed[-1]
    shape = [extent_of(a) for a in out.axis]
    fits = len(s.outputs) == 1 and out.is_output and not reduces(out) and len(out.body) == 1
    if not knobs.cache or not fits or not shape or not all(shape):
        raise ScheduleError("not for this operator")
    found = configuration(target)
    tecs, width = found.tecs, found.vector_bytes
    if prod(shape) <= tecs:
        raise ScheduleError("elements for one vector need no transfers")
    local = s[s.cache_write(out.op.output(0), "lsram")]
    stages = [*computed[:-1], local]
    given = list(dict.fromkeys(tensor_of(r) for x in stages for r in reads_of(x)))
    rows = [t for t in given if _is_row(t, shape, stages)]
    several = len(shape) > 1 and prod(shape[:-1]) >= tecs
    places = [t for t in given if several and _has_places(t, shape, stages)]
    copies = [
        s[s.cache_read(t, "lsram", [x.op for x in stages if any(r.producer == t for r in reads_of(x))])]
        for t in (*rows, *places)
    ]
    inline_maps(s, keep=lambda stage: stage in copies or stage is local)
    others = [x for x in computed[:-1] if not x.inlined]
    stages = [*others, local]
    if not rows or (others and len(shape) < 2):
        raise ScheduleError("not for this operator")
    parts, several = turns_of(local, others, knobs, width), None
    whole = next((n for n, part in enumerate(reversed(parts)) if part), len(parts))
    if others:
        trailing = _trailing(local, shape, whole)
    else:
        trailing = _trailing(local, shape, max([n for n in range(1, len(shape)) if prod(shape[:-n]) >= tecs] or [1]))
        parts = [1] * (len(shape) - trailing) + [0] * trailing
    if len(shape) == 1 or (not others and prod(shape[:-1]) < tecs):
        fused = fuse_all(out, out.axis)
        share, rest = out.split(fused, nparts=tecs)
        outer, _ = out.split(rest, factor=knobs.chunk or max(min(-(-prod(shape) // tecs), 2048), 1))
    else:
        bytes_of_each = sum(2 * x.op.output(0).dtype.bytes for x in (*copies, local, *others))
        most = found.lsram_bytes * 3 // 4 // bytes_of_each
        share, several = shared_turns(
            out, parts, 2 * tecs, min(most, _BESIDE) if any(map(takes_long, stages)) else most
        )
        outer = share
    out.bind(share, te.thread_axis("threadIdx.x"))
    for stage in (*stages, *copies):
        stage.compute_at(out, outer)
    if any(grows(s, stage, out, outer, target.machine()) for stage in stages):
        raise ScheduleError("rows are not computed one by one")
    for stage in (*copies, local):
        stage.double_buffer()
    for stage in stages:
        if reduces(stage) and in_rows(stage, width):
            rows_in_lanes(stage, stage.axis[-1], knobs, width)
            continue
        axis, extent = summed_axis(stage) if reduces(stage) else (stage.axis[-1] if stage.axis else None, 0)
        extent = extent or (extent_of(axis) if axis is not None else 1)
        around = (
            local.axis[several] if stage is local and several is not None and several < len(shape) - trailing else None
        )
        if stage is local and trailing > 1:
            axis, extent = fuse_all(local, local.axis[-trailing:]), prod(shape[-trailing:])
        if axis is not None and extent > 1:
            own = max(2 * width // widest(stage), width // stage.op.output(0).dtype.bytes)
            lanes = lanes_along(stage, knobs, width) if reduces(stage) else knobs.lanes or own
            in_vectors(stage, axis, extent, lanes, 4, around)


def turns_of(stage: Stage, others: Sequence[Stage], knobs: Knobs, width: int) -> list[int]:
    """How many elements of each axis of a stage one turn of the shared loop has, 0 for all, so that each of the sums that
    it reads is of one turn."""
    sums = {t for x in others if reduces(x) for t in x.op.outputs}
    extents = [extent_of(a) for a in stage.axis]
    alike = [x for x in (*others, stage) if not reduces(x) and [extent_of(a) for a in x.axis] == extents]
    found = [0] * len(extents)
    for x in alike:
        for read in reads_of(x):
            if tensor_of(read) in sums:
                found = [gcd(n, _part(read, a)) for n, a in zip(found, x.axis)]
    if found[-1] == 1:  # results side by side have sums of their own: so many vectors of them
        found[-1] = lanes_of(stage, knobs, width) * (4 if prod(extents[:-1]) > 1 else 1)
    found = [0 if n >= e else n for n, e in zip(found, extents)] if max(extents) > 1 else found
    return found if any(found) else [1] * (len(extents) - 1) + [0]


def _part(read: ProducerLoad, axis: IterVar) -> int:
    """How many neighbours on an axis read the same element: 0 if all do."""
    nodes = [x for index in read.indices for x in walk_exprs(index)]
    quotients = [x for x in nodes if isinstance(x, Binary) and x.op == "floordiv" and x.a is axis.as_expr()]
    if sum(x is axis.as_expr() for x in nodes) != len(quotients):
        return 1
    return gcd(*(x.b.value if isinstance(x.b, IntImm) else 1 for x in quotients))


def shared_turns(out: Stage, parts: Sequence[int], fewest: int = 0, most: int = 0) -> tuple[IterVar, int | None]:
    """The loop over all turns that have so many elements of each axis; several turns of the last axis are one, as long as
    `fewest` are left and none has more than `most` elements. Gives that axis, too."""
    turns: list[IterVar] = []
    inside: list[IterVar] = []
    extents = [extent_of(a) for a in out.axis]
    counts = [-(-e // part) if part else 1 for e, part in zip(extents, parts)]
    each = prod(part or e for e, part in zip(extents, parts))
    last, times = max((d for d, part in enumerate(parts) if part), default=0), 1
    if not parts[-1]:
        divisors = [n for n in range(1, counts[last] + 1) if counts[last] % n == 0 and each * n <= most]
        times = max([n for n in divisors if prod(counts) // n >= fewest] or [1])
    for d, (axis, part) in enumerate(zip(list(out.axis), parts)):
        wanted = part * times if d == last else part
        if wanted == 1:
            turns.append(axis)
        elif not part:
            inside.append(axis)
        else:
            around, axis = out.split(axis, factor=wanted)
            turns.append(around)
            inside.append(axis)
    out.reorder(*turns, *inside)
    return fuse_all(out, turns), last if times > 1 else None


def summed_axis(stage: Stage) -> tuple[IterVar | None, int]:
    """The axis that a reduction runs along, and its extent: all the last axes of what is read, where these are reduced."""
    axis, count = along(stage), 1
    axes, found = list(stage.reduce_axis), reads_of(stage)
    if axis is not axes[-1]:
        return axis, extent_of(axis) if axis is not None else 1
    while count < len(axes) and all(_ends_in(r, axes[-count - 1 :]) for r in found if uses(r, axis)):
        if any(uses(r, axes[-count - 1]) for r in found if not uses(r, axis)):
            break
        count += 1
    extent = prod(extent_of(a) for a in axes[-count:])
    return fuse_all(stage, axes[-count:]), extent


def _ends_in(read: ProducerLoad, axes: Sequence[IterVar]) -> bool:
    """Whether the last indices of a read are these axes, which have all elements there are."""
    own, shape = read.indices[-len(axes) :], read.producer.shape[-len(axes) :]
    return len(own) == len(axes) and all(
        i is a.as_expr() and isinstance(e, IntImm) and e.value == extent_of(a) for i, a, e in zip(own, axes, shape)
    )


def _trailing(stage: Stage, shape: Sequence[int], most: int) -> int:
    """How many of the last axes are one row: those that what is read has in their places, or not at all."""
    count = 1
    while count < most and prod(shape[-count:]) < 512:
        axes = stage.axis[-count - 1 :]
        read = [r for r in reads_of(stage) if any(uses(r, a) for a in axes)]
        if not all(_ends_in(r, axes) for r in read):
            return count
        count += 1
    return count


def _is_row(tensor: Tensor, shape: Sequence[int], stages: Sequence[Stage]) -> bool:
    """Whether a tensor is given, of the shape of the output, and read along its last axis: others are no rows to transfer."""
    if not isinstance(tensor.op, PlaceholderOp):
        return False
    found = [(r, x) for x in stages for r in reads_of(x) if r.producer == tensor]
    in_order = all(any(uses(r, a, last=True) for a in (*x.axis[-1:], *x.reduce_axis)) for r, x in found)
    return in_order and [e.value if isinstance(e, IntImm) else 0 for e in tensor.shape] == list(shape)


def _has_places(tensor: Tensor, shape: Sequence[int], stages: Sequence[Stage]) -> bool:
    """Whether a given tensor has a place for each element of a row, which all rows of the output read as they lie."""
    extents = [e.value if isinstance(e, IntImm) else 0 for e in tensor.shape]
    if not isinstance(tensor.op, PlaceholderOp) or extents != [shape[-1]]:
        return False
    read = [(r, x) for x in stages for r in reads_of(x)]
    inside = {y for r, _ in read for i in r.indices for y in walk_exprs(i) if isinstance(y, ProducerLoad)}
    own = [(r, x) for r, x in read if r.producer == tensor]
    return all(r in inside and x.axis and r.indices[-1] is x.axis[-1].as_expr() for r, x in own)


def configuration(target: Target) -> Any:
    return configurations.load(target.mcpu)


def in_vectors(stage: Stage, axis: IterVar, extent: int, lanes: int, times: int, around: IterVar | None = None) -> None:
    """An axis as the innermost loop: vectors, some of them in a row where there are as many. `around`: an axis whose loop
    is inside of that over the vectors, where something is read that it does not change, and no number of its own."""
    outer, inner = stage.split(axis, factor=min(lanes, extent))
    loops = [a for a in stage.leaf_iter_vars if a is not outer and a is not inner]
    read = reads_of(stage)
    fixed = any(not uses(r, around) for r in read) if around is not None else False
    if around is not None and fixed and all(uses(r, stage.axis[-1]) for r in read if uses(r, around)):
        stage.reorder(*[a for a in loops if a is not around], outer, around, inner)
    elif extent % (lanes * times) == 0:
        outer, some = stage.split(outer, factor=times)
        stage.reorder(*loops, outer, some, inner)
        stage.unroll(some)
    else:
        stage.reorder(*loops, outer, inner)
    stage.vectorize(inner)


def lanes_along(stage: Stage, knobs: Knobs, width: int) -> int:
    """Lanes of a reduction along what it reads: two vectors of the widest type, of bytes that are added in dot products."""
    return knobs.lanes or 2 * width // (1 if adds_bytes(stage) else widest(stage))


def in_rows(stage: Stage, width: int) -> bool:
    """Whether the lanes of a reduction are results next to each other in what it reads: where it does not read along an
    axis that it reduces, or along windows of fewer elements than there are results and lanes."""
    if not stage.axis or not any(uses(r, stage.axis[-1], last=True) for r in reads_of(stage)):
        return False
    axis, last = along(stage), stage.axis[-1]
    return axis is None or 0 < extent_of(axis) < min(width // widest(stage), extent_of(last))


def rows_in_lanes(out: Stage, last: IterVar, knobs: Knobs, width: int) -> None:
    """Vectors of an axis of a reduction's results, with the reduction outside of them."""
    outer, inner = out.split(last, factor=lanes_of(out, knobs, width if widest(out) == 1 else 2 * width))
    out.reorder(outer, *[a for a in out.leaf_iter_vars if a.is_reduction], inner)
    out.vectorize(inner)
    if all(1 < extent_of(a) <= 3 for a in out.reduce_axis):
        for axis in out.reduce_axis:
            out.unroll(axis)


def side_by_side(stage: Stage, count: int) -> None:
    """So many rows at once, so that none waits for its own sum."""
    *around, lanes = stage.leaf_iter_vars
    single = [a for a in stage.axis if extent_of(a) == 1]
    at = max(n for n, a in enumerate(around) if not a.is_reduction and a not in single)
    outer, inner = stage.split(around[at], factor=count)
    stage.reorder(*around[:at], outer, *around[at + 1 :], inner, lanes)
    stage.unroll(inner)
