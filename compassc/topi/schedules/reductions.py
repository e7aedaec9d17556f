"""Default schedules for NPUs of reductions of what is given: `reductions`."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from compassc import te
from compassc.ir.exprs import IntImm
from compassc.targets import Target
from compassc.te.errors import ScheduleError
from compassc.te.schedule import Schedule, Stage
from compassc.te.tensor import PlaceholderOp, Tensor, tensor_of
from compassc.topi.schedules.knobs import Knobs
from compassc.topi.schedules.rows import configuration, in_rows, in_vectors, lanes_along, side_by_side, summed_axis
from compassc.topi.schedules.stages import (
    along,
    computed_stages,
    dividing,
    extent_of,
    fuse_all,
    grows,
    inline_maps,
    inner_vectors,
    lanes_of,
    last_in_lanes,
    reads_of,
    reduces,
    turns_within,
    uses,
    widest,
)

_PIECE = 4096
"""Bytes of what is reduced that are in the memory of a TEC at most, twice."""
_TOGETHER, _MOST_COLUMNS = 8, 256
"""Rows of columns that are added one after another, for loads take their time; and columns that one turn has at most."""
_FEWEST = 1024
"""Bytes that each TEC reads at least, for which transfers are worth their start."""


def reductions(s: Schedule, target: Target, knobs: Knobs) -> None:
    """Results of sums that follow each other: what some of them read goes through the memory of a TEC, beside the work."""
    inline_maps(s)
    computed = computed_stages(s)
    out, sums = computed[-1], [x for x in computed if reduces(x)]
    shape = [extent_of(a) for a in out.axis]
    found = configuration(target)
    if not knobs.cache or knobs.chunk or len(s.outputs) != 1 or not sums or not all(shape) or prod(shape) < found.tecs:
        raise ScheduleError("not for this operator")
    if any(x not in sums and x is not out or [extent_of(a) for a in x.axis] != shape for x in computed):
        raise ScheduleError("not for this operator")
    given = _given(sums)
    each = sum(_bytes(t) for t in given) // prod(shape)
    if not given or each * prod(shape) < _FEWEST * found.tecs:
        raise ScheduleError("transfers are not worth their start")
    lying = {in_rows(x, found.vector_bytes) for x in sums}
    if lying == {True}:
        _columns(s, out, sums, target, knobs)
    elif lying == {False} and all(along(x) is not None for x in sums):
        _rows(s, out, sums, given, each, target, knobs)
    else:
        raise ScheduleError("not for this operator")


def _rows(
    s: Schedule, out: Stage, sums: Sequence[Stage], given: Sequence[Tensor], each: int, target: Target, knobs: Knobs
) -> None:
    """Results of whole rows."""
    found = configuration(target)
    if each > 2 * _PIECE:
        raise ScheduleError("rows do not fit the memory of a TEC")
    shared, neighbours = turns_within(out, max(_PIECE // each, 1), found.tecs)
    out.bind(shared, te.thread_axis("threadIdx.x"))
    copies = [s[s.cache_read(t, "lsram", [x.op for x in sums if t in map(tensor_of, reads_of(x))])] for t in given]
    for stage in (*copies, *(x for x in sums if x is not out)):
        stage.compute_at(out, shared)
    if any(grows(s, x, out, shared, target.machine()) for x in (*copies, *sums) if x is not out):
        raise ScheduleError("results do not have rows of their own")
    for copy in copies:
        copy.double_buffer()
    for stage in sums:
        axis, extent = summed_axis(stage)
        assert axis is not None
        in_vectors(stage, axis, extent, lanes_along(stage, knobs, found.vector_bytes), 4)
        if neighbours % 2 == 0:
            side_by_side(stage, dividing(neighbours, (4, 2)))
    if out not in sums and out.leaf_iter_vars[-1] is not shared:
        inner_vectors(out, knobs, found.vector_bytes, False)


def _columns(s: Schedule, out: Stage, sums: Sequence[Stage], target: Target, knobs: Knobs) -> None:
    """Results side by side, of columns: some rows of these at a time."""
    found = configuration(target)
    local = s[s.cache_write(out.op.output(0), "lsram")] if out in sums else out
    spatial, last = list(out.axis[:-1]), out.axis[-1]
    parts = -(-found.tecs // prod(map(extent_of, spatial)))
    columns = -(-extent_of(last) // parts)
    if columns * parts > extent_of(last):
        columns = min(-(-columns // _TOGETHER) * _TOGETHER, extent_of(last))
    outer, inner = out.split(last, factor=min(columns, _MOST_COLUMNS))
    out.reorder(*spatial, outer, inner)
    shared = fuse_all(out, [*spatial, outer])
    out.bind(shared, te.thread_axis("threadIdx.x"))
    if local is out:
        last_in_lanes(out, lanes_of(out, knobs, found.vector_bytes))
    else:
        local.compute_at(out, shared)
    stages = [local if x is out else x for x in sums]
    for stage in stages:
        if stage is not local:
            stage.compute_at(out, shared)
    for stage in stages:
        _column(s, stage, min(columns, _MOST_COLUMNS), knobs, found.vector_bytes)


def _column(s: Schedule, stage: Stage, columns: int, knobs: Knobs, width: int) -> None:
    """A sum whose rows are transferred by the piece, in vectors of columns."""
    given, (first, *others) = _given([stage]), stage.reduce_axis
    copies = [s[s.cache_read(t, "lsram", [stage.op])] for t in given]
    row = columns * prod(map(extent_of, others)) * max(t.dtype.bytes for t in given)
    rows = min(max(_PIECE // row, 1), extent_of(first))
    outer, first = stage.split(first, factor=rows)
    for copy in copies:
        copy.compute_at(stage, outer)
        copy.double_buffer()
    lanes = lanes_of(stage, knobs, width if widest(stage) == 1 else 2 * width)
    side, inner = stage.split(stage.axis[-1], factor=min(lanes, columns))
    *around, deepest = [first, *others]
    turns, some = stage.split(
        deepest, factor=dividing(extent_of(deepest) if others else rows, (_TOGETHER, 7, 6, 5, 4, 3, 2))
    )
    stage.reorder(*stage.axis[:-1], outer, side, *around, turns, some, inner)
    stage.unroll(some)
    stage.vectorize(inner)


def _given(sums: Sequence[Stage]) -> list[Tensor]:
    """The tensors that sums read along what they reduce."""
    read = [tensor_of(r) for x in sums for r in reads_of(x) if any(uses(r, a) for a in x.reduce_axis)]
    return [t for t in dict.fromkeys(read) if isinstance(t.op, PlaceholderOp)]


def _bytes(tensor: Tensor) -> int:
    return prod(e.value if isinstance(e, IntImm) else 0 for e in tensor.shape) * tensor.dtype.bytes
