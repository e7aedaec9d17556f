"""The default schedule for the host: rows on threads, products in tiles of registers."""

from __future__ import annotations

from math import prod

from compassc.ir.iter_vars import IterVar
from compassc.targets import Target
from compassc.te.schedule import Schedule, Stage
from compassc.topi.schedules.knobs import Knobs
from compassc.topi.schedules.stages import (
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


def on_threads(s: Schedule, target: Target, knobs: Knobs) -> None:
    width = 64
    inline_maps(s, keep=lambda stage: stage.name == "T_pad" and any(reduces(r) for r in s.readers(stage)))
    for out in [x for x in computed_stages(s) if x.is_output]:
        others = [x for x in computed_stages(s) if not x.is_output and x.attached is None and s.reaches(x, out)]
        if not out.axis:
            continue
        if reduces(out):
            outer = _tiled(s, out, knobs, width)
        else:
            outer = _rows(out, knobs, width)
        for stage in attach_rows(s, out, outer, others, target.machine()):
            if stage.axis:
                _tiled(s, stage, knobs, width) if reduces(stage) else _rows(stage, knobs, width)
        for stage in others:
            if stage.attached is not None:
                inner_vectors(stage, knobs, width, False)


def _rows(stage: Stage, knobs: Knobs, width: int) -> IterVar:
    """Rows on threads, the last axis in vectors."""
    lanes = lanes_of(stage, knobs, width)
    outer = shared_loop(stage, knobs, 2, lanes, True)
    last_in_lanes(stage, lanes)
    if _worth_threads(stage):
        stage.parallel(outer)
    return outer


def _worth_threads(stage: Stage) -> bool:
    """Whether there is more to do than starting threads costs."""
    sizes = [extent_of(a) or 1024 for a in (*stage.axis, *stage.reduce_axis)]
    return prod(sizes) >= 1 << 15


def _tiled(s: Schedule, stage: Stage, knobs: Knobs, width: int) -> IterVar:
    """A reduction in registers: tiles of rows by vectors of columns, the reduction outside of both."""
    columns, found = stage.axis[-1], reads_of(stage)
    along = [r for r in found if uses(r, columns, last=True)]
    rows = next((a for a in reversed(stage.axis[:-1]) if along and not all(uses(r, a) for r in along)), None)
    lanes = lanes_of(stage, knobs, width)
    if not along or len(stage.body) != 1 or extent_of(columns) < 2:
        outer = fuse_all(stage, stage.axis[:-1]) if len(stage.axis) > 1 else stage.axis[0]
        if _worth_threads(stage):
            stage.parallel(outer)
        return outer
    wide = dividing(extent_of(columns), [knobs.columns * lanes] if knobs.columns else [2 * lanes, lanes, lanes // 2])
    wide = wide if wide > 1 else min(lanes, extent_of(columns))
    tall = dividing(extent_of(rows), [knobs.rows] if knobs.rows else [8, 6, 4, 7, 5, 3, 2]) if rows is not None else 1
    local = s[s.cache_write(stage.origin_op.output(0), "local")]
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
        count = -(-extent_of(axes[place]) // tall)
        blocks = knobs.blocks or dividing(count, [16, 8, 4, 2])
        if blocks > 1:
            outers[place], together = out.split(outers[place], factor=blocks)
            out.reorder(*outers, together)
            local.compute_at(out, together)
    first = (
        outers[0]
        if len(outers) == 1
        else fuse_all(out, outers[:-1])
        if prod(map(_first_extent, axes[:-1]))
        else outers[0]
    )
    if _worth_threads(local):
        out.parallel(first)
    return first


def _first_extent(axis: IterVar) -> int:
    return max(extent_of(axis), 1)
