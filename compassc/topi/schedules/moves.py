"""Default schedules for NPUs of operators that give elements other places: `moved`."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from compassc import te
from compassc.ir.exprs import IntImm
from compassc.targets import Target
from compassc.te.errors import ScheduleError
from compassc.te.lowering import normalised
from compassc.te.machine import Machine
from compassc.te.schedule import Schedule, Stage
from compassc.te.tensor import PlaceholderOp, tensor_of
from compassc.topi.schedules.knobs import Knobs
from compassc.topi.schedules.npu import divides
from compassc.topi.schedules.rows import configuration, in_vectors
from compassc.topi.schedules.stages import (
    computed_stages,
    dividing,
    extent_of,
    inline_maps,
    reads_of,
    reduces,
    turns_within,
    uses,
)

_PIECE, _MOST = 4096, 8192
"""Bytes of the result that one turn has at most, and of what it reads."""
KEPT = ("T_resize2d_rows", "T_resize2d_low", "T_resize2d_high", "T_resize2d_part")
"""Stages that each turn of `interpolated` has for itself."""
_FEWEST = 1024
"""Bytes of the result that each TEC has at least, for which transfers are worth their start."""


def interpolated(s: Schedule, target: Target, knobs: Knobs) -> None:
    """As `moved`, where each turn computes rows of what it reads, and tables of places, before its elements."""
    _moved(s, target, knobs, True, KEPT)


def moved(s: Schedule, target: Target, knobs: Knobs) -> None:
    """Results of elements that lie in another order: what a turn reads and gives goes through the memory of a TEC, where
    loads take a quarter of their time."""
    _moved(s, target, knobs, True)


def moved_out(s: Schedule, target: Target, knobs: Knobs) -> None:
    """As `moved`, but what turns read lies too far apart to be transferred: only what they give is."""
    _moved(s, target, knobs, False)


def _moved(s: Schedule, target: Target, knobs: Knobs, transferred: bool, kept: Sequence[str] = ()) -> None:
    inline_maps(s, keep=lambda stage: stage.name in kept)
    computed = computed_stages(s)
    *first, out = computed
    shape = [extent_of(a) for a in out.axis]
    found, size = configuration(target), out.op.output(0).dtype.bytes
    if not knobs.cache or reduces(out) or len(out.body) != 1 or not all(shape):
        raise ScheduleError("not for this operator")
    if bool(first) != bool(kept) or any(x.name not in kept for x in first):
        raise ScheduleError("not for this operator")
    read = [(r, a) for x in computed for r in reads_of(x) for a in x.axis if isinstance(tensor_of(r).op, PlaceholderOp)]
    given = list(dict.fromkeys(tensor_of(r) for r, a in read if uses(r, a)))
    if not given or len(shape) < 2 or prod(shape) * size < _FEWEST * found.tecs:
        raise ScheduleError("transfers are not worth their start")
    local = s[s.cache_write(out.op.output(0), "lsram")]
    readers = {t: [x.op for x in (*first, local) if t in map(tensor_of, reads_of(x))] for t in given}
    copies = [s[s.cache_read(t, "lsram", readers[t])] for t in given if transferred]
    shared, _ = turns_within(out, max(_PIECE // size, 1), found.tecs)
    out.bind(shared, te.thread_axis("threadIdx.x"))
    for stage in (local, *first, *copies):
        stage.compute_at(out, shared)
    _fits(s, out, (*copies, *first), target.machine())
    for stage in (local, *copies):
        stage.double_buffer()
    pairs = 1 + any(divides(i) for r in reads_of(local) for i in r.indices)  # registers of elements that lie in turn
    lanes = knobs.lanes or pairs * found.vector_bytes // max(size, *(t.dtype.bytes for t in given))
    for stage in first:
        _by_columns(stage, lanes)
    in_vectors(local, local.axis[-1], shape[-1], lanes, 4 // pairs)


def _by_columns(stage: Stage, lanes: int) -> None:
    """Vectors of the last axis, and inside of the loop over these the rows, some of them together, so that what only the last
    axis changes is computed once."""
    around, inner = stage.split(stage.axis[-1], factor=lanes)
    if len(stage.axis) > 1:
        *others, last = stage.axis[:-1]
        last, some = stage.split(last, factor=dividing(extent_of(last), (4, 2)))
        stage.reorder(around, *others, last, some, inner)
        stage.unroll(some)
    stage.vectorize(inner)


def _fits(s: Schedule, out: Stage, copies: Sequence[Stage], machine: Machine) -> None:
    """ScheduleError where a turn reads more than its memory holds, or all turns much more than they give."""
    plain = normalised(s, machine)
    bounds = te.infer_bounds(plain)
    found = {x.label: x for x in plain.stages}
    extents = [bounds.extents[found[out.label]][a] for a in found[out.label].leaf_iter_vars[:1]]
    turns = prod(e.value if isinstance(e, IntImm) else 0 for e in extents)
    result = prod(extent_of(a) for a in out.axis)
    for copy in copies:
        sizes = [bounds.regions[found[copy.label]][a].extent for a in found[copy.label].axis]
        count = prod(e.value if isinstance(e, IntImm) else 0 for e in sizes)
        if not 0 < count * copy.op.output(0).dtype.bytes <= _MOST or count * turns > 2 * result:
            raise ScheduleError("what turns read are no pieces")
