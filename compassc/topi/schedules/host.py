"""The default schedule for the host: rows on threads, products in tiles of registers."""

from __future__ import annotations

from math import prod

from compass_core.hostcc import host
from compassc.ir.iter_vars import IterVar
from compassc.operators.packed import PACKED, PRODUCTS, TOGETHER
from compassc.targets import Target
from compassc.te.schedule import Schedule, Stage
from compassc.topi.schedules.knobs import Knobs
from compassc.topi.schedules.stages import (
    along,
    attach_rows,
    computed_stages,
    dividing,
    extent_of,
    fuse_all,
    inline_maps,
    inner_vectors,
    lanes_of,
    last_in_lanes,
    reads_of,
    reduces,
    shared_loop,
    uses,
)

WIDTH = 64
"""Bytes of a vector; clang makes several of one that is wider than the processor's."""
MANY = 64
"""Turns that are enough to share out."""
TALL = (8, 6, 4, 7, 5, 3, 2, 1)
"""How many rows a tile may have, the best first."""


def on_threads(s: Schedule, target: Target, knobs: Knobs) -> None:
    packed = [x for x in computed_stages(s) if x.origin_op.tag in (PACKED, PRODUCTS)]
    inline_maps(s, keep=lambda x: x in packed or (x.name == "T_pad" and any(reduces(r) for r in s.readers(x))))
    sums = _sums(target)
    for out in [x for x in computed_stages(s) if x.is_output and x.axis]:
        others = [x for x in computed_stages(s) if not x.is_output and x.attached is None and s.reaches(x, out)]
        planes = [x for x in others if x in packed and _of_one_channel(s, x)]
        planes = planes if len(out.axis) > 2 and not reduces(out) else []
        outer = _planes(out, knobs) if planes else _inner(s, out, knobs, sums)
        alone = [x for x in others if x in packed and x not in planes]
        alone += attach_rows(s, out, outer, [x for x in others if x not in alone], target.machine())
        for stage in others:
            inside = stage in planes or _lane_axis(stage, knobs) is not None
            if stage.axis and (stage in alone or inside and reduces(stage)):
                _inner(s, stage, knobs, sums)
            elif stage in planes and _in_phases(stage):
                _spread(stage)
            elif stage.attached is not None:
                inner_vectors(stage, knobs, WIDTH, False)


def _sums(target: Target) -> int:
    """How many vectors of sums fit the registers, with what they are computed of."""
    native = target.attrs["mcpu"] == "native"
    wide = "avx512f" in host.code_features() if native else target.attrs["mcpu"] == "x86-64-v4"
    return 24 if wide else 6


def _inner(s: Schedule, stage: Stage, knobs: Knobs, sums: int) -> IterVar:
    if (found := _lane_axis(stage, knobs)) is not None:
        return _by_lanes(s, stage, *found)
    if reduces(stage):
        return _tiled(s, stage, knobs, sums)
    if _in_phases(stage):
        return _spread(stage)
    turned = stage.origin_op.tag == PACKED and all(uses(r, stage.axis[-2], last=True) for r in reads_of(stage))
    return _turned(stage) if turned else _rows(stage, knobs)


def _lane_axis(stage: Stage, knobs: Knobs) -> tuple[IterVar, int] | None:
    """The axis of a sum of reals whose elements lie together for all that is read, and the lanes that it is cut to: whole vectors,
    several of them. None where columns lie together, too, and for whole numbers, which clang takes apart itself."""
    if not reduces(stage) or len(stage.body) != 1 or not stage.axis or not stage.origin_op.output(0).dtype.is_floating:
        return None
    axis, wide = along(stage), lanes_of(stage, knobs, WIDTH)
    if axis is None or any(uses(r, stage.axis[-1], last=True) for r in reads_of(stage)):
        return None
    extent = extent_of(axis)
    lanes = next((n for n in (wide, wide // 2) if extent % n == 0 and extent >= 2 * n), 0)
    return (axis, lanes) if lanes else None


def _by_lanes(s: Schedule, stage: Stage, axis: IterVar, lanes: int) -> IterVar:
    """A reduction along the lanes of vectors, several results at a time, which are joined when it is done."""
    axes, attached = list(stage.axis), stage.attached
    _, lane = stage.split(axis, factor=lanes)
    parts = s[s.rfactor(stage.origin_op.output(0), lane, factor_axis=len(axes))]
    inner: list[IterVar] = []
    for place in range(len(axes))[-2:] if attached is None else ():
        if (several := dividing(extent_of(axes[place]), [4, 3, 2])) > 1:
            axes[place], one = stage.split(axes[place], factor=several)
            inner.append(one)
    stage.reorder(*axes, *inner, *stage.reduce_axis)
    outer = fuse_all(stage, axes)
    parts.compute_at(stage, outer)
    *around, last = parts.axis
    parts.reorder(*parts.reduce_axis, *around, last)
    for one in around:
        parts.unroll(one)
    parts.vectorize(last)
    if attached is None and _worth_threads(parts):
        stage.parallel(outer)
    return outer


def _in_phases(stage: Stage) -> bool:
    """Whether planes have a phase for each of several columns, whose elements lie apart in the data."""
    return stage.origin_op.tag == PACKED and len(stage.axis) == 6 and extent_of(stage.axis[3]) > 1


def _spread(stage: Stage) -> IterVar:
    """Data in its own order, element by element, to where its phases are."""
    *around, phase, row, column = stage.axis
    stage.reorder(*around, row, column, phase)
    if stage.attached is not None:
        return row
    shared = fuse_all(stage, around)
    if _worth_threads(stage):
        stage.parallel(shared)
    return shared


def _turned(stage: Stage) -> IterVar:
    """What is copied is turned round on its way, in squares: what is read together stays in the cache."""
    *around, along, last = stage.axis
    outer, inner = stage.split(along, factor=WIDTH // 4)
    stage.reorder(*around, outer, last, inner)
    shared = fuse_all(stage, around)
    if _worth_threads(stage):
        stage.parallel(shared)
    return shared


def _rows(stage: Stage, knobs: Knobs) -> IterVar:
    """Rows on threads, the last axis in vectors."""
    lanes = lanes_of(stage, knobs, WIDTH)
    outer = shared_loop(stage, knobs, 2, lanes, True)
    last_in_lanes(stage, lanes)
    if _worth_threads(stage):
        stage.parallel(outer)
    return outer


def _of_one_channel(s: Schedule, stage: Stage) -> bool:
    """Whether sums are of one channel each, as are the planes that they read."""
    of = [stage] if reduces(stage) else s.readers(stage)
    return all(prod(map(extent_of, (*x.axis[2:-1], x.reduce_axis[0]))) == 1 for x in of if reduces(x))


def _planes(out: Stage, knobs: Knobs) -> IterVar:
    """Planes on threads, the rows of each in vectors."""
    outer = fuse_all(out, out.axis[:2])
    last_in_lanes(out, lanes_of(out, knobs, WIDTH))
    if _worth_threads(out):
        out.parallel(outer)
    return outer


def _worth_threads(stage: Stage) -> bool:
    """Whether there is more to do than starting threads costs."""
    sizes = [extent_of(a) or 1024 for a in (*stage.axis, *stage.reduce_axis)]
    return prod(sizes) >= 1 << 15


def _tile(rows: int, columns: int, apart: int, lanes: int, sums: int, knobs: Knobs) -> tuple[int, int]:
    """Rows and columns of a tile: such that they divide what there is (columns also those that lie `apart`), that sums stay in registers and are enough to wait
    for each other, and that little is read for each."""
    talls = [knobs.rows] if knobs.rows else TALL
    wides = [knobs.columns] if knobs.columns else range(1, 13)
    found = [
        (tall, wide)
        for tall in talls
        for wide in wides
        if rows % tall == 0
        and columns % (wide * lanes) == apart % (wide * lanes) == 0
        and (tall * wide <= sums or knobs.rows or knobs.columns)
    ]
    if not found:
        wide = dividing(columns, [lanes // 2])
        return dividing(rows, talls), wide if wide > 1 else min(lanes, columns)
    tall, wide = max(found, key=lambda t: (min(t[0] * t[1], 8), t[0] * t[1] / (t[0] + 2 * t[1])))
    return tall, wide * lanes


def _tiled(s: Schedule, stage: Stage, knobs: Knobs, sums: int) -> IterVar:
    """A reduction in registers: tiles of rows by vectors of columns, the reduction outside of both."""
    columns, found = stage.axis[-1], reads_of(stage)
    wide_reads = [r for r in found if uses(r, columns, last=True)]
    rows = next((a for a in reversed(stage.axis[:-1]) if wide_reads and not all(uses(r, a) for r in wide_reads)), None)
    lanes = lanes_of(stage, knobs, WIDTH)
    if not wide_reads or len(stage.body) != 1 or extent_of(columns) < 2:
        outer = fuse_all(stage, stage.axis[:-1]) if len(stage.axis) > 1 else stage.axis[0]
        if _worth_threads(stage):
            stage.parallel(outer)
        return outer
    height = (extent_of(rows) if rows is not None else 1) or 1
    apart = stage.origin_op.attrs.get(TOGETHER, extent_of(columns))
    tall, wide = _tile(height, extent_of(columns), apart, lanes, sums, knobs)
    attached = stage.attached
    local = s[s.cache_write(stage.origin_op.output(0), "local")]
    axes = list(stage.axis)
    columns_out, inner_column = stage.split(axes[-1], factor=wide)
    inner: list[IterVar] = [inner_column]
    outers = [*axes[:-1], columns_out]
    if rows is not None and tall > 1:
        place = next(i for i, a in enumerate(axes) if a.name == rows.name)
        outers[place], inner_row = stage.split(axes[place], factor=tall)
        inner.insert(0, inner_row)
    stage.reorder(*outers, *inner)
    _in_registers(stage, inner, wide, lanes)
    own = [local.axis[next(i for i, a in enumerate(axes) if a.name == rows.name)]] if rows is not None else []
    others = [a for a in local.axis[:-1] if a not in own]
    # Tiles of one column of tiles follow each other, so that what they share stays in the cache.
    together: list[IterVar] = []
    if rows is not None and tall > 1:
        place = outers.index(next(o for o in outers if o.name.startswith(rows.name)))
        blocks = knobs.blocks or dividing(-(-height // tall), [16, 8, 4, 2])
        if blocks > 1:
            outers[place], one = stage.split(outers[place], factor=blocks)
            together.append(one)
            stage.reorder(*outers, one)
    if not together and prod(map(extent_of, axes[:-1])) > MANY * tall:
        together.append(outers.pop())
    first = fuse_all(stage, outers)
    local.compute_at(stage, (first, *together)[-1])
    local.reorder(*others, *local.reduce_axis, *own, local.axis[-1])
    _in_registers(local, [*own, local.axis[-1]], wide, lanes)
    if _worth_threads(local) and attached is None:
        stage.parallel(first)
    return first


def _in_registers(stage: Stage, axes: list[IterVar], wide: int, lanes: int) -> None:
    """The innermost axes as vectors of powers of two, all of them written out."""
    *rows, last = axes
    if wide & (wide - 1):
        outer, last = stage.split(last, factor=lanes)
        rows.append(outer)
    for axis in rows:
        stage.unroll(axis)
    stage.vectorize(last)
