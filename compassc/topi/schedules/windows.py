"""Default schedules for NPUs of operators that reduce windows of their own input: depthwise convolutions, pooling."""

from __future__ import annotations

from math import prod

from compassc import te
from compassc.ir.exprs import IntImm, Var
from compassc.ir.iter_vars import IterVar
from compassc.ir.tensor_exprs import ProducerLoad
from compassc.ir.visit import walk_exprs
from compassc.targets import Target
from compassc.te.errors import ScheduleError
from compassc.te.schedule import Schedule, Stage
from compassc.te.tensor import PlaceholderOp, tensor_of
from compassc.topi.schedules.knobs import Knobs
from compassc.topi.schedules.npu import (
    BYTES_TOGETHER,
    byte_lanes,
    divides,
    sum_and_result,
    summed_together,
)
from compassc.topi.schedules.rows import configuration
from compassc.topi.schedules.stages import (
    adds_bytes,
    adds_halves,
    computed_stages,
    dividing,
    extent_of,
    fuse_all,
    inline_maps,
    lanes_of,
    last_in_lanes,
    reads_of,
    reduces,
)

_ROOM = 20 * 1024
"""Bytes of an input that one turn has in the memory of a TEC at most."""


def windows(s: Schedule, target: Target, knobs: Knobs) -> None:
    """Windows that only their own results read: rows of the input go through the memory of a TEC, some rows of results are
    reduced together, so that what their windows share is read once."""
    inline_maps(s, keep=lambda stage: stage.name == "T_pad" and any(reduces(r) for r in s.readers(stage)))
    out, total = sum_and_result(s)
    read, top = _windowed(total)
    if not knobs.cache or len(out.axis) < 3 or extent_of(out.axis[-1]) < 8:
        raise ScheduleError("not for this operator")
    found = configuration(target)
    if top == len(out.axis) - 1:
        raise ScheduleError("not for this operator")
    others = list(out.axis[:top])
    block, size = _block(read, total, top, prod(map(extent_of, others)), found.tecs)
    around, within = out.split(out.axis[top], factor=block)
    rest = list(out.axis[top + 1 :])
    out.reorder(*others, around, within, *rest)
    shared = fuse_all(out, [*others, around])
    out.bind(shared, te.thread_axis("threadIdx.x"))
    pads = [x for x in computed_stages(s) if x is not out and x is not total]
    if not pads:
        pads = [s[s.cache_read(tensor_of(read), "lsram", [total.op])]]
    given = [tensor_of(r) for r in reads_of(total) if r is not read and isinstance(tensor_of(r).op, PlaceholderOp)]
    weights = [s[s.cache_read(w, "lsram", [total.op])] for w in given]
    for stage in weights:
        stage.compute_at(out, shared)
        if extent_of(stage.axis[-1]) > 1:
            last_in_lanes(stage, extent_of(stage.axis[-1]))
    for stage in (*pads, *([] if total is out else [total])):
        stage.compute_at(out, shared)
    for stage in pads if 2 * size <= _ROOM else ():
        stage.double_buffer()
    rows = within if top == len(out.axis) - 2 else out.axis[-2]
    if total is not out:
        last_in_lanes(out, lanes_of(out, knobs, found.vector_bytes))
        rows = total.axis[-2]
    count = block if top == len(out.axis) - 2 else extent_of(out.axis[-2])
    _tiles(total, rows, count, knobs, found.vector_bytes)


def _tiles(total: Stage, rows: IterVar, count: int, knobs: Knobs, width: int) -> None:
    """Rows of vectors of results, and the window inside of them."""
    last = total.axis[-1]
    if adds_bytes(total):
        lanes = byte_lanes(extent_of(last), width, width)
    else:
        lanes = min(width // (2 if adds_halves(total) else total.op.output(0).dtype.bytes), extent_of(last))
    lanes = knobs.lanes or lanes
    spatial = [a for a in total.leaf_iter_vars if not a.is_reduction and a is not rows and a is not last]
    rows_out, rows_in = total.split(rows, factor=knobs.rows or dividing(count, (4, 5, 3, 2)))
    columns, inner = total.split(last, factor=lanes)
    window, together = summed_together(total, BYTES_TOGETHER)
    total.reorder(*spatial, rows_out, columns, *window, *together, rows_in, inner)
    for axis in (*together, rows_in):
        total.unroll(axis)
    total.vectorize(inner)


def _windowed(total: Stage) -> tuple[ProducerLoad, int]:
    """The read whose indices are moved by results and by the reduction, and the first axis of results that does."""
    found: list[tuple[ProducerLoad, int]] = []
    for read in reads_of(total):
        for index in read.indices:
            inside = {x for x in walk_exprs(index) if isinstance(x, Var)}
            own = [n for n, a in enumerate(total.axis) if a.as_expr() in inside]
            if own and any(a.as_expr() in inside for a in total.reduce_axis):
                if divides(index):
                    raise ScheduleError("not for this operator")
                found.append((read, own[0]))
    if not found or len({id(read) for read, _ in found}) > 1 or divides(found[0][0].indices[-1]):
        raise ScheduleError("not for this operator")
    return min(found, key=lambda f: f[1])


def _block(read: ProducerLoad, total: Stage, top: int, turns: int, tecs: int) -> tuple[int, int]:
    """How many rows of results a turn has, as many as fit so that all TECs have some; and the bytes that they read."""
    axis = total.axis[top]
    shape = [e.value if isinstance(e, IntImm) else 0 for e in read.producer.shape]
    place = next(n for n, e in enumerate(read.indices) if axis.as_expr() in set(walk_exprs(e)))
    row, extent = prod(shape[place + 1 :]) * read.producer.dtype.bytes, extent_of(axis)
    step = max(shape[place] // extent, 1)
    more = max(shape[place] - extent * step, 0)
    parts = [n for n in range(1, extent + 1) if extent % n == 0 and (n * step + more) * row <= _ROOM]
    spread = [n for n in parts if turns * (extent // n) >= tecs]
    if not parts:
        raise ScheduleError("rows do not fit the memory of a TEC")
    rows = spread[-1] if spread else parts[0]
    return rows, (rows * step + more) * row
