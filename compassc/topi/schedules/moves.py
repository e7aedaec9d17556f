"""Default schedules for NPUs of operators that give elements other places: `moved`."""

from __future__ import annotations

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
    extent_of,
    inline_maps,
    reads_of,
    reduces,
    turns_within,
    uses,
)

_PIECE, _MOST = 4096, 8192
"""Bytes of the result that one turn has at most, and of what it reads."""
_FEWEST = 1024
"""Bytes of the result that each TEC has at least, for which transfers are worth their start."""


def moved(s: Schedule, target: Target, knobs: Knobs) -> None:
    """Results of elements that lie in another order: what a turn reads and gives goes through the memory of a TEC, where
    loads take a quarter of their time."""
    _moved(s, target, knobs, True)


def moved_out(s: Schedule, target: Target, knobs: Knobs) -> None:
    """As `moved`, but what turns read lies too far apart to be transferred: only what they give is."""
    _moved(s, target, knobs, False)


def _moved(s: Schedule, target: Target, knobs: Knobs, transferred: bool) -> None:
    inline_maps(s)
    computed = computed_stages(s)
    out, shape = computed[-1], [extent_of(a) for a in computed[-1].axis]
    found, size = configuration(target), out.op.output(0).dtype.bytes
    if not knobs.cache or len(computed) != 1 or reduces(out) or len(out.body) != 1 or not all(shape):
        raise ScheduleError("not for this operator")
    given = [t for t in dict.fromkeys(map(tensor_of, reads_of(out))) if isinstance(t.op, PlaceholderOp)]
    given = [t for t in given if any(uses(r, a) for r in reads_of(out) if tensor_of(r) == t for a in out.axis)]
    if not given or len(shape) < 2 or prod(shape) * size < _FEWEST * found.tecs:
        raise ScheduleError("transfers are not worth their start")
    local = s[s.cache_write(out.op.output(0), "lsram")]
    copies = [s[s.cache_read(t, "lsram", [local.op])] for t in given if transferred]
    shared, _ = turns_within(out, max(_PIECE // size, 1), found.tecs)
    out.bind(shared, te.thread_axis("threadIdx.x"))
    for stage in (local, *copies):
        stage.compute_at(out, shared)
    _fits(s, out, copies, target.machine())
    for stage in (local, *copies):
        stage.double_buffer()
    pairs = 1 + any(divides(i) for r in reads_of(local) for i in r.indices)  # registers of elements that lie in turn
    lanes = knobs.lanes or pairs * found.vector_bytes // max(size, *(t.dtype.bytes for t in given))
    in_vectors(local, local.axis[-1], shape[-1], lanes, 4 // pairs)


def _fits(s: Schedule, out: Stage, copies: list[Stage], machine: Machine) -> None:
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
