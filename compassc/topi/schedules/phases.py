"""The default schedule for NPUs of transposed convolutions, whose results are sums of several phases: `phases`."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from compassc import te
from compassc.ir.exprs import IntImm
from compassc.ir.iter_vars import IterVar
from compassc.targets import Target
from compassc.te.errors import ScheduleError
from compassc.te.schedule import Schedule, Stage
from compassc.te.schedule.relations import leaf_extents
from compassc.topi.schedules.knobs import Knobs
from compassc.topi.schedules.npu import BYTES_TOGETHER, TOGETHER, as_transfers, summed_together
from compassc.topi.schedules.rows import configuration
from compassc.topi.schedules.stages import (
    adds_bytes,
    computed_stages,
    dividing,
    extent_of,
    fuse_all,
    inline_maps,
    lanes_of,
    last_in_lanes,
    reduces,
    widest,
)

_ROOM, _ROWS = 8192, 4
"""Bytes that a turn has in the memory of a TEC at most, of its sums and of what these read, and rows of a phase."""


def phases(s: Schedule, target: Target, knobs: Knobs) -> None:
    """Weights in the order of phases, in the memory of all TECs where they fit it; some rows of results of each phase as sums
    in tiles of accumulators, of outputs that share data by rows that share weights; and these with the phases in turn."""
    inline_maps(s, keep=lambda stage: stage.name in ("T_pad", "T_phases"))
    *given, out = computed_stages(s)
    found = {x.name: x for x in given}
    weights, total = found.get("T_phases"), next((x for x in given if reduces(x)), None)
    if weights is None or total is None or len(given) != len(found) or len(given) != 2 + ("T_pad" in found):
        raise ScheduleError("not for this operator")
    if len(s.outputs) != 1 or len(out.axis) < 3 or not all(map(extent_of, out.axis)):
        raise ScheduleError("not for this operator")
    machine, rank = configuration(target), len(out.axis) - 2
    width, size = machine.vector_bytes, total.op.output(0).dtype.bytes
    lanes = knobs.lanes or width // size
    strides = [extent_of(a) for a in total.axis[2 : 2 + rank]]
    (outputs, rows), shared = _turns(out, strides, size, machine.tecs)
    out.bind(shared, te.thread_axis("threadIdx.x"))
    last_in_lanes(out, _in_turn(extent_of(out.axis[-1]), strides[-1], lanes))
    total.compute_at(out, shared)
    tile = knobs.rows or dividing(outputs, (4, 5, 7, 6, 3, 2)), dividing(rows, (2,))
    tiles, pieces = _tiles(total, strides, rows, tile, lanes)
    if (pad := found.get("T_pad")) is not None:
        pad.compute_at(*((total, pieces[0]) if pieces else (out, shared)))
        if not as_transfers(pad):
            last_in_lanes(pad, lanes_of(pad, knobs, width))
    own = lanes_of(weights, knobs, width)
    if prod(map(extent_of, weights.axis)) * widest(weights) > machine.gsram_bytes // 2:
        weights.compute_at(total, tiles)
        _turned(weights, weights.axis[1 + rank], own)
        return
    weights.bind(_turned(weights, weights.axis[0], own), te.thread_axis("threadIdx.x"))
    if knobs.cache and not adds_bytes(total):
        copy = s[s.cache_read(weights.op.output(0), "lsram", [total.op])]
        copy.compute_at(total, tiles)
        vectors, inner = copy.split(fuse_all(copy, copy.axis[1 + rank :]), factor=lanes)
        copy.unroll(copy.split(vectors, factor=4)[1])
        copy.vectorize(inner)


def _turns(out: Stage, strides: Sequence[int], size: int, tecs: int) -> tuple[tuple[int, int], IterVar]:
    """How many outputs, and rows of each phase, a turn has, so that all TECs have some; and the loop over all turns."""
    batch, channel, *space, last = out.axis
    turns, inside, each = [batch, *space], [channel, last], extent_of(last) * size
    count, extent, rows = prod(map(extent_of, turns)), extent_of(channel), 1
    if space and extent_of(space[-1]) % strides[-2] == 0:
        parts, count = extent_of(space[-1]) // strides[-2], count // strides[-2]
        rows = max(
            n for n in range(1, _ROWS + 1) if parts % n == 0 and (n == 1 or count // n * max(extent // 8, 1) >= tecs)
        )
        turns[-1], row = out.split(turns[-1], factor=rows * strides[-2])
        out.unroll(row)
        inside.insert(1, row)
        each *= rows * strides[-2]
    most = max(min(_ROOM // each, extent * count // rows // tecs), 1)
    outputs = max(n for n in range(1, extent + 1) if extent % n == 0 and n <= most)
    if outputs < extent:
        around, inside[0] = out.split(channel, factor=outputs)
        turns.append(around)
    out.reorder(*turns, *inside)
    return (outputs, rows), fuse_all(out, turns)


def _in_turn(extent: int, stride: int, lanes: int) -> int:
    """Lanes of results that lie in turn: with as many of each phase vectors are interleaved, so one result is left of odd ones."""
    if stride not in (2, 4):
        return lanes
    whole = extent // stride * stride
    found = [n for n in range(stride, 8 * lanes + 1, stride) if whole % n == 0] if extent % stride else []
    return found[-1] if found and found[-1] >= lanes // 2 else stride * lanes


def _tiles(
    total: Stage, strides: Sequence[int], rows: int, tile: tuple[int, int], lanes: int
) -> tuple[IterVar, list[IterVar]]:
    """The sums in tiles of outputs by rows; gives the loop over tiles of outputs, and that over pieces of the channels, where
    these are so many that what is read of them has to be in memory piece by piece."""
    channels, *taps = map(extent_of, total.reduce_axis)
    others = [a for a in total.axis if a is not total.axis[1]]
    data = (rows + ([1, *taps])[-2]) * (extent_of(others[-1]) + taps[-1])
    room = max(data, tile[0] * prod(taps) * prod(strides)) * total.op.output(0).dtype.bytes * channels // _ROOM
    outer, output = total.split(total.axis[1], factor=tile[0])
    others[-2], row = total.split(others[-2], factor=tile[1])
    others[-1], inner = total.split(others[-1], factor=lanes)
    turns, together = summed_together(total, BYTES_TOGETHER if adds_bytes(total) else TOGETHER)
    pieces = list[IterVar]()
    if room and turns and isinstance(count := leaf_extents(total)[turns[0]], IntImm):
        parts = next(n for n in range(1, count.value + 1) if count.value % n == 0 and (n > room or n == count.value))
        piece, turns[0] = total.split(turns[0], nparts=parts)
        pieces = [piece]
    total.reorder(*pieces, outer, *others, *turns, *together, output, row, inner)
    for axis in (*together, output, row):
        total.unroll(axis)
    total.vectorize(inner)
    return outer, pieces


def _turned(weights: Stage, axis: IterVar, lanes: int) -> IterVar:
    """Weights in the order of phases: of each tap those of outputs, or channels, side by side; gives the loop over these."""
    rank = (len(weights.axis) - 2) // 2
    output, *strides, channel = weights.axis[: 2 + rank]
    outer, inner = weights.split(axis, factor=lanes)
    taps = [*strides, *weights.axis[2 + rank :]]
    around = [outer, channel] if axis is output else [output, outer]
    weights.reorder(*around, *taps, inner)
    for tap in taps:
        weights.unroll(tap)
    weights.vectorize(inner)
    return fuse_all(weights, around)
