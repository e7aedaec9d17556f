"""The default schedules for CUDA devices: tiles of products in shared memory, rows that a block reduces, and a thread for
each element; and, for any other kind, none."""

from __future__ import annotations

import math
from collections.abc import Sequence

from compassc import te
from compassc.ir.iter_vars import IterVar
from compassc.targets import Target
from compassc.te.errors import ScheduleError
from compassc.te.schedule import Schedule, Stage
from compassc.te.tensor import tensor_of
from compassc.topi.schedules.knobs import Knobs
from compassc.topi.schedules.stages import (
    along,
    computed_stages,
    dividing,
    extent_of,
    fuse_all,
    grows,
    inline_maps,
    reads_of,
    reduces,
    uses,
    widest,
)


def on_grid(s: Schedule, target: Target, knobs: Knobs) -> None:
    inline_maps(s)
    for stage in computed_stages(s):
        if not stage.axis:
            continue
        fused = fuse_all(stage, stage.axis)
        outer, inner = stage.split(fused, factor=knobs.threads)
        stage.bind(outer, te.thread_axis("blockIdx.x"))
        stage.bind(inner, te.thread_axis("threadIdx.x"))


def tiles(s: Schedule, target: Target, knobs: Knobs) -> None:
    """Sums of products: a block has a tile of the result, what a piece of the sum needs in shared memory, and each thread
    some rows and columns in registers."""
    inline_maps(s, keep=lambda stage: stage.name == "T_pad" and any(reduces(r) for r in s.readers(stage)))
    computed = computed_stages(s)
    out, sums = computed[-1], [x for x in computed if reduces(x)]
    kept = [x for x in computed if x.name == "T_pad"]
    if len(s.outputs) != 1 or len(sums) != 1 or len(sums[0].body) != 1 or set(computed) != {out, sums[0], *kept}:
        raise ScheduleError("not for this operator")
    total, shape = sums[0], [extent_of(a) for a in out.axis]
    reduced = [extent_of(a) for a in total.reduce_axis]
    if not all((*shape, *reduced)) or [extent_of(a) for a in total.axis] != shape or len(reads_of(total)) < 2:
        raise ScheduleError("not for this operator")
    row = _row(total)
    across, wide = _parts(shape[-1], 16, knobs.columns)
    down, tall = _parts(shape[row], max(knobs.threads // across, 1), knobs.rows)
    if across * down < 16:
        raise ScheduleError("too few threads")
    local = s[s.cache_write(total.op.output(0), "local")] if total is out else total
    if local is total:
        total.set_scope("local")
    tensors = list(dict.fromkeys(tensor_of(r) for r in reads_of(local)))
    copies = [
        next((x for x in kept if x.op.output(0) == t), None) or s[s.cache_read(t, "shared", [local.op])]
        for t in tensors
    ]
    others = [a for i, a in enumerate(out.axis[:-1]) if i != row]
    rows, row_tile = out.split(out.axis[row], factor=down * tall)
    columns, column_tile = out.split(out.axis[-1], factor=across * wide)
    y, inner_rows = out.split(row_tile, nparts=down)
    x, inner_columns = out.split(column_tile, nparts=across)
    out.reorder(*others, rows, columns, y, x, inner_rows, inner_columns)
    out.bind(fuse_all(out, [*others, rows, columns]), te.thread_axis("blockIdx.x"))
    out.bind(y, te.thread_axis("threadIdx.y"))
    out.bind(x, te.thread_axis("threadIdx.x"))
    local.compute_at(out, x)
    own = [local.axis[row], local.axis[-1]]
    first, *windows = local.reduce_axis
    depth = knobs.depth or dividing(extent_of(first), (16, 8, 4, 2))
    piece, inside = local.split(first, factor=min(depth, extent_of(first)))
    local.reorder(piece, inside, *windows, *[a for a in local.axis if a not in own], *own)
    for axis in own:
        local.unroll(axis)
    for copy in copies:
        copy.set_scope("shared")
        copy.compute_at(local, piece)
        _together(copy, down, across)


def _row(total: Stage) -> int:
    """The axis besides the last one that makes most of a tile: one that not all reads depend on."""
    shape = [extent_of(a) for a in total.axis]
    found = [i for i in range(len(shape) - 1) if shape[i] > 1]
    if not found:
        raise ScheduleError("there is one row")
    shared = [i for i in found if not all(uses(r, total.axis[i]) for r in reads_of(total) if uses(r, total.axis[-1]))]
    return max(shared or found, key=lambda i: min(shape[i], 64))


def _parts(extent: int, most: int, each: int) -> tuple[int, int]:
    """How many threads share an axis, and how many elements each of them has: their product divides the extent. Elements
    are four, or fewer where there would be few threads."""
    found = (0, 1)
    for own in (each,) if each and extent % each == 0 else (4, 2, 1):
        if extent % own == 0:
            found = max(n for n in range(1, most + 1) if extent // own % n == 0), own
            if found[0] >= 8:
                break
    return found


def _together(stage: Stage, down: int, across: int) -> None:
    """A stage that all threads of a block compute together, in turns."""
    fused = fuse_all(stage, stage.axis)
    turns, x = stage.split(fused, factor=across)
    _, y = stage.split(turns, factor=down)
    stage.bind(y, te.thread_axis("threadIdx.y"))
    stage.bind(x, te.thread_axis("threadIdx.x"))


def rows_in_blocks(s: Schedule, target: Target, knobs: Knobs) -> None:
    """Reductions along rows, and what is computed of them for each element of a row: a block for each row. Its threads
    reduce a part each into shared memory, and join the parts in a tree."""
    inline_maps(s)
    computed = computed_stages(s)
    out, sums = computed[-1], [x for x in computed if reduces(x)]
    rows = [math.prod(map(extent_of, x.reduce_axis)) for x in sums]
    kept = [x for x in computed if x is not out and x not in sums]
    if rows and sum(max(rows) * widest(x) for x in kept) > KEPT:
        for x in kept:
            x.compute_inline()
        kept = []
    threads = min([knobs.threads, *(row // 2 for row in rows)])
    threads = 1 << threads.bit_length() - 1 if threads > 0 else 0
    if len(s.outputs) != 1 or not sums or not out.axis or threads < WARP:
        raise ScheduleError("not for this operator")
    if any(along(x) is None or len(x.body) != 1 for x in sums):
        raise ScheduleError("not for this operator")
    if reduces(out):
        whole = s[s.cache_write(out.op.output(0), "local")]
        sums[sums.index(out)] = whole
        block = fuse_all(out, out.axis)
    else:
        block = _row_of(s, out, [*kept, *sums], threads, target)
    out.bind(block, te.thread_axis("blockIdx.x"))
    for stage in kept:
        stage.set_scope("shared")
        stage.compute_at(out, block)
        _over_threads(stage, fuse_all(stage, stage.axis), threads)
    for stage in sums:
        _, inner = stage.split(fuse_all(stage, stage.reduce_axis), factor=threads)
        parts, count = [s[s.rfactor(stage.op.output(0), inner)]], threads
        while count > knobs.joined:
            count = max(count // knobs.joined, 1)
            own, _ = stage.split(stage.reduce_axis[0], nparts=count)
            parts.append(s[s.rfactor(stage.op.output(0), own)])
        stage.compute_at(out, block)
        for part in parts:
            part.set_scope("shared")
            part.compute_at(out, block)
            part.bind(part.axis[0], te.thread_axis("threadIdx.x"))


WARP, KEPT = 32, 32 << 10
"""The threads that a block has at least, and the bytes of a row that it keeps at most."""


def _over_threads(stage: Stage, axis: IterVar, threads: int) -> None:
    _, inner = stage.split(axis, factor=threads)
    stage.bind(inner, te.thread_axis("threadIdx.x"))


def _row_of(s: Schedule, out: Stage, others: Sequence[Stage], threads: int, target: Target) -> IterVar:
    """The loop over the rows of an output, of the fewest last axes of which no other stage is computed twice."""
    for last in range(1, len(out.axis) + 1):
        made = s.replayed(s.trace)
        block, _ = _split_rows(made.stage(out.label), last)
        moved = [made.stage(x.label) for x in others]
        for stage in moved:
            stage.compute_at(made.stage(out.label), block)
        if not any(grows(made, stage, made.stage(out.label), block, target.machine()) for stage in moved):
            block, row = _split_rows(out, last)
            _over_threads(out, row, threads)
            return block
    raise ScheduleError("there are no rows")


def _split_rows(out: Stage, last: int) -> tuple[IterVar, IterVar]:
    """The loop over rows, and that over the elements of one: the last axes."""
    axes = list(out.axis)
    if len(axes) == last:
        block, first = out.split(axes[0], nparts=1)
        return block, fuse_all(out, [first, *axes[1:]])
    return fuse_all(out, axes[:-last]), fuse_all(out, axes[-last:])


def plain(s: Schedule, target: Target, knobs: Knobs) -> None:
    """Element-wise stages inside of what reads them, and nothing else."""
    inline_maps(s)
