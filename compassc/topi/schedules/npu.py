"""Default schedules for NPUs: `copied`, `product_tiles`, `sums_of_products` and, for anything, `shared_out`."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from compass_core import targets as configurations
from compassc import te
from compassc.ir.exprs import Binary, Expr, IntImm
from compassc.ir.iter_vars import IterVar
from compassc.ir.tensor_exprs import ProducerLoad
from compassc.ir.visit import walk_exprs
from compassc.targets import Target
from compassc.te.access_order import in_order
from compassc.te.errors import ScheduleError
from compassc.te.schedule import Schedule, Stage
from compassc.te.tensor import PlaceholderOp, Tensor, tensor_of
from compassc.topi.schedules.knobs import Knobs
from compassc.topi.schedules.rows import (
    configuration,
    in_rows,
    in_vectors,
    lanes_along,
    rows_in_lanes,
    shared_turns,
    side_by_side,
    summed_axis,
    turns_of,
)
from compassc.topi.schedules.stages import (
    adds_bytes,
    adds_halves,
    along,
    attach_rows,
    computed_stages,
    dividing,
    extent_of,
    fuse_all,
    grows,
    in_lanes,
    inline_maps,
    inner_vectors,
    lanes_of,
    last_in_lanes,
    reads_of,
    reduces,
    shared_loop,
    uses,
)

KEPT = ("T_pad", "T_scatter_places")
"""Stages that the sums that read them have for themselves."""
SHARED = ("T_scatter_places",)
"""Those of them that all turns read whole: TECs compute them together."""
COMPARED = ("T_codes",)
"""Stages whose elements are compared again and again, and are for that computed once."""
_WRITTEN_OUT = 8
"""How many turns of the loops over what is compared, of several rows at once, are written out."""
BYTES_TOGETHER, TOGETHER = 36, 9
"""How many products are added one after another at most, of bytes and of others: more are more code."""


def shared_out(s: Schedule, target: Target, knobs: Knobs) -> None:
    found = configurations.load(target.mcpu)
    width = found.vector_bytes
    inline_maps(s, keep=lambda stage: stage.name in COMPARED and len(s.readers(stage)) > 1)
    for out in [x for x in computed_stages(s) if x.is_output]:
        others = [x for x in computed_stages(s) if not x.is_output and x.attached is None and s.reaches(x, out)]
        few = [x for x in (*others, out) if reduces(x) and prod(max(extent_of(a), 1) for a in x.axis) < found.tecs]
        if not out.axis or (few and prod(max(extent_of(a), 1) for a in out.axis) < found.tecs):
            for stage in few:
                _few(s, stage, knobs, width, found.tecs)
            for stage in (x for x in others if x.name in COMPARED):
                last_in_lanes(stage, lanes_of(stage, knobs, 2 * width))
            continue
        lanes, together = lanes_of(out, knobs, width), 1
        if any(map(reduces, others)) and not reduces(out) and len(out.axis) > 1 and not knobs.chunk:
            parts, turns = turns_of(out, others, knobs, width), prod(map(extent_of, out.axis[:-1]))
            if any(x.name in COMPARED for x in others) and parts == [*[1] * (len(parts) - 1), 0]:
                rows = extent_of(out.axis[-2])
                together = max((n for n in (2, 4) if rows % n == 0 and turns >= n * found.tecs), default=1)
                parts[-2] = together
            outer, _ = shared_turns(out, parts)
        else:
            outer = shared_loop(out, knobs, found.tecs, _in_a_piece(out, knobs, width), True)
        out.bind(outer, te.thread_axis("threadIdx.x"))
        if reduces(out):
            _reduction(out, knobs, width)
        else:
            last_in_lanes(out, lanes)
        for stage in attach_rows(s, out, outer, others, target.machine()):
            _root(stage, knobs, found.tecs, width)
        attached = [x for x in others if x.attached is not None]
        near = knobs.cache and _given_once(s, out, outer, attached, target)
        for stage in attached:
            if reduces(stage) and in_rows(stage, width):
                rows_in_lanes(stage, stage.axis[-1], knobs, width)
            elif near and reduces(stage) and along(stage) is not None:
                axis, extent = summed_axis(stage)
                assert axis is not None
                in_vectors(stage, axis, extent, lanes_along(stage, knobs, width), 4)
            else:
                inner_vectors(stage, knobs, 2 * width, True)
                if together > 1 and reduces(stage) and along(stage) is not None:
                    side_by_side(stage, together)
                    around = next(a for a in stage.leaf_iter_vars if a.is_reduction)
                    stage.unroll(stage.split(around, factor=_WRITTEN_OUT)[1])
                elif together > 1 and stage.name in COMPARED:
                    stage.unroll(stage.split(stage.leaf_iter_vars[-2], factor=_WRITTEN_OUT)[1])


def _given_once(s: Schedule, out: Stage, outer: IterVar, stages: Sequence[Stage], target: Target) -> bool:
    """Has what an output and sums of the same turn read go through the memory of a TEC; whether there is any. ScheduleError
    where turns share it."""
    readers = [x for x in (*stages, out) if reduces(x) or x is out]
    shape = [extent_of(a) for a in out.axis]
    found = False
    for tensor in dict.fromkeys(map(tensor_of, reads_of(out))):
        own = [x for x in readers if any(r.producer == tensor for r in reads_of(x))]
        extents = [e.value if isinstance(e, IntImm) else 0 for e in tensor.shape]
        if len(own) < 2 or not isinstance(tensor.op, PlaceholderOp) or extents != shape or not all(shape):
            continue
        copy = s[s.cache_read(tensor, "lsram", [x.op for x in own])]
        copy.compute_at(out, outer)
        found = True
        if grows(s, copy, out, outer, target.machine()):
            raise ScheduleError("turns share what they read")
    return found


def copied(s: Schedule, target: Target, knobs: Knobs) -> None:
    """Elements that only get another shape: transfers of several rows at once."""
    inline_maps(s)
    computed = computed_stages(s)
    out = computed[-1]
    if not knobs.cache or len(computed) != 1 or len(out.body) != 1 or not _in_shape(out):
        raise ScheduleError("not for this operator")
    tecs, size = configuration(target).tecs, out.op.output(0).dtype.bytes
    local = s[s.cache_write(out.op.output(0), "lsram")]
    axes, each = list(out.axis), 1
    inner = axes.pop()
    each = extent_of(inner)
    while axes and each * extent_of(axes[-1]) * size <= 8192 and prod(map(extent_of, axes[:-1])) >= tecs:
        each *= extent_of(axes.pop())
    if axes:
        last = extent_of(axes[-1])
        fits = [n for n in range(1, last + 1) if last % n == 0 and n * each * size <= 8192]
        spread = [n for n in fits if prod(map(extent_of, axes)) // n >= tecs]
        axes[-1], _ = out.split(axes[-1], factor=(spread or fits or [1])[-1])
    else:
        outer, _ = out.split(inner, factor=min(max(-(-each // tecs), 1), 8192 // size))
        axes = [outer]
    shared = fuse_all(out, axes)
    out.bind(shared, te.thread_axis("threadIdx.x"))
    local.compute_at(out, shared)
    local.double_buffer()


def _in_shape(out: Stage) -> bool:
    """Whether a stage only reads the elements of one tensor, in their order."""
    read, shape = out.body[0], [extent_of(a) for a in out.axis]
    return isinstance(read, ProducerLoad) and bool(shape) and all(shape) and in_order(read, out.axis, shape)


def product_tiles(s: Schedule, target: Target, knobs: Knobs) -> None:
    """Products of matrices whose rows are both read along the sum: tiles in the memory of a TEC, and of accumulators."""
    inline_maps(s)
    out, total = sum_and_result(s)
    found, depth = reads_of(total), along(total)
    if depth is None or not extent_of(depth) or len(total.reduce_axis) != 1 or len(found) != 2:
        raise ScheduleError("not for this operator")
    first, second = total.axis[-2:]
    a = [tensor_of(r) for r in found if uses(r, first) and not uses(r, second)]
    b = [tensor_of(r) for r in found if uses(r, second) and not uses(r, first)]
    if len(a) != 1 or len(b) != 1 or a[0] == b[0]:
        raise ScheduleError("not for this operator")
    local = s[s.cache_write(out.op.output(0), "lsram")] if total is out else total
    rows_a, rows_b = (s[s.cache_read(t, "lsram", [local.op])] for t in (a[0], b[0]))
    turns, found_target = prod(map(extent_of, out.axis[:-1])), configuration(target)
    width, tecs = found_target.vector_bytes, found_target.tecs
    tile = max(min(16, extent_of(first), -(-turns // tecs)), 1), min(16, extent_of(second))
    lanes = knobs.lanes or width // a[0].dtype.bytes
    chunk = _depth(tile, extent_of(depth), lanes, a[0].dtype.bytes, found_target.lsram_bytes)
    *others, rows, columns = out.axis
    io, jo, _, inner = out.tile(rows, columns, *tile)
    if turns < tecs * tile[0]:  # few rows: pieces of them are shared out
        shared = jo = fuse_all(out, [*others, io, jo])
    else:
        shared = fuse_all(out, [*others, io])
    out.bind(shared, te.thread_axis("threadIdx.x"))
    if local is total:
        out.vectorize(out.split(inner, factor=min(lanes_of(out, knobs, width), tile[1]))[1])
    local.compute_at(out, jo)
    summed = local.reduce_axis[0]
    pieces: list[IterVar] = []
    if chunk < extent_of(depth):
        piece, summed = local.split(summed, factor=chunk)
        pieces = [piece]
        rows_a.compute_at(local, piece)
        rows_b.compute_at(local, piece)
    else:
        rows_a.compute_at(out, shared)
        rows_b.compute_at(out, jo)
    if pieces or jo is not shared:
        rows_b.double_buffer()
    tall = knobs.rows or dividing(tile[0], (4, 3, 2))
    wide = knobs.columns or dividing(tile[1], (4, 3, 2))
    i_out, i_in = local.split(local.axis[-2], factor=tall)
    j_out, j_in = local.split(local.axis[-1], factor=wide)
    k_out, k_in = local.split(summed, factor=min(lanes, chunk))
    local.reorder(*pieces, i_out, j_out, k_out, i_in, j_in, k_in)
    local.unroll(i_in)
    local.unroll(j_in)
    local.vectorize(k_in)


def _depth(tile: tuple[int, int], depth: int, lanes: int, size: int, room: int) -> int:
    """How much of a sum the rows of a tile can have in the memory of a TEC, those of the second matrix twice."""
    each = size * (tile[0] + 2 * tile[1])
    most = (room - room // 8 - 4 * tile[0] * tile[1]) // each
    if depth <= most:
        return depth
    whole = [n for n in range(lanes, most + 1, lanes) if depth % n == 0]
    return whole[-1] if whole else max(most // lanes * lanes, lanes)


def sum_and_result(s: Schedule) -> tuple[Stage, Stage]:
    """The output, and the one stage that reduces: itself, or one of its shape that it is computed of element by element."""
    computed = [x for x in computed_stages(s) if x.is_output or x.name not in KEPT]
    out, sums = computed[-1], [x for x in computed if reduces(x)]
    shape = [extent_of(a) for a in out.axis]
    if len(s.outputs) != 1 or len(sums) != 1 or not all(shape) or len(shape) < 2 or len(sums[0].body) != 1:
        raise ScheduleError("not for this operator")
    total = sums[0]
    if [extent_of(a) for a in total.axis] != shape or len(computed) != len({out, total}):
        raise ScheduleError("not for this operator")
    own = [r for r in reads_of(out) if r.producer == total.op.output(0)] if total is not out else []
    if any(list(r.indices) != [a.as_expr() for a in out.axis] for r in own):
        raise ScheduleError("not for this operator")
    return out, total


def sums_of_products(s: Schedule, target: Target, knobs: Knobs) -> None:
    """Sums of products, such as convolutions, in tiles of accumulators: vectors of the last axis by rows that share what
    these read. What is padded goes through the memory of a TEC."""
    inline_maps(s, keep=lambda stage: stage.name in KEPT and any(reduces(r) for r in s.readers(stage)))
    out, total = sum_and_result(s)
    found, shape = reads_of(total), [extent_of(a) for a in out.axis]
    vectors = [r for r in found if uses(r, total.axis[-1], last=True)]
    alike = [_alike(vectors, total.axis[i], shape[i]) for i in range(len(shape) - 1)]
    row = next((i for whole in (True, False) for i in reversed(range(len(alike)))
                if alike[i] > 1 and (alike[i] == shape[i]) is whole), None)  # fmt: skip
    if row is None or not found or all(divides(r.indices[-1]) for r in vectors):
        raise ScheduleError("not for this operator")
    width = configuration(target).vector_bytes
    bytes_only = adds_bytes(total)
    size = total.op.output(0).dtype.bytes
    halves = adds_halves(total) and shape[-1] >= width // 2 == _side_by_side(total, width // 2)
    most = width // 2 if halves else width // size
    lanes = knobs.lanes or (byte_lanes(shape[-1], _side_by_side(total, width), width) if bytes_only else most)
    tall = knobs.rows or dividing(alike[row], (4, 5, 7, 6, 3, 2))
    wide = knobs.columns or (
        1 if bytes_only else dividing(-(-shape[-1] // lanes), (4, 2, 3) if tall <= 4 and not halves else (2,))
    )
    rows = out.axis[row]
    others = [a for i, a in enumerate(out.axis[:-1]) if i != row]
    tecs = configuration(target).tecs
    if prod(map(extent_of, others)) < tecs:
        around, rows = out.split(rows, factor=tall * max(shape[row] // (tall * tecs), 1))
        others.append(around)
    out.reorder(*others, rows, out.axis[-1])
    shared = fuse_all(out, others)
    out.bind(shared, te.thread_axis("threadIdx.x"))
    for stage in (x for x in computed_stages(s) if x is not out):
        stage.compute_at(out, shared)
        if stage.name in SHARED:
            stage.compute_root()
            _root(stage, knobs, tecs, 4 * width)  # words that become one vector of bytes
        elif stage is not total and not as_transfers(stage):
            last_in_lanes(stage, lanes_of(stage, knobs, width))
    if total is not out:
        last_in_lanes(out, lanes_of(out, knobs, width))
        rows = total.axis[row]
    copies = []
    if knobs.cache and not bytes_only:
        copies = [s[s.cache_read(t, "lsram", [total.op])] for t in _shared_scalars(total, tall)]
    turn = _accumulators(total, rows, (tall, wide, lanes), BYTES_TOGETHER if bytes_only else TOGETHER)
    for copy in copies:
        copy.compute_at(total, turn)
        copy.double_buffer()


def _accumulators(total: Stage, rows: IterVar, tile: tuple[int, int, int], most: int) -> IterVar:
    """A sum in tiles of rows, vectors side by side and lanes, with at most so many of its products one after another; gives
    the loop over the rows of tiles."""
    tall, wide, lanes = tile
    spatial = [a for a in total.leaf_iter_vars if not a.is_reduction and a is not rows and a is not total.axis[-1]]
    rows_out, rows_in = total.split(rows, factor=tall)
    columns_out, columns = total.split(total.axis[-1], factor=wide * lanes)
    side, inner = total.split(columns, factor=lanes)
    turns, together = summed_together(total, most)
    total.reorder(*spatial, rows_out, columns_out, *turns, *together, rows_in, side, inner)
    for axis in (*together, rows_in, side):
        total.unroll(axis)
    total.vectorize(inner)
    return rows_out


def _shared_scalars(total: Stage, tall: int) -> list[Tensor]:
    """Given tensors whose elements all lanes share, where those of a tile fit the memory of a TEC beside the rest."""
    shared = [r for r in reads_of(total) if not uses(r, total.axis[-1]) and isinstance(tensor_of(r).op, PlaceholderOp)]
    size = tall * prod(map(extent_of, total.reduce_axis))
    return [tensor_of(r) for r in shared if size * r.producer.dtype.bytes <= 4096]


def byte_lanes(extent: int, most: int, width: int) -> int:
    """Lanes of vectors of bytes: as many as waste the fewest."""
    return min((n for n in (width, width // 2, width // 4) if n <= most), key=lambda n: -(-extent // n) * n)


def _side_by_side(total: Stage, width: int) -> int:
    """How many elements of the last axis are vectors in all that is read: those of a group of channels, where there are."""
    last = total.axis[-1].as_expr()
    nodes = [x for r in reads_of(total) for index in r.indices for x in walk_exprs(index)]
    groups = [
        x.b.value
        for x in nodes
        if isinstance(x, Binary) and x.op == "floordiv" and x.a is last and isinstance(x.b, IntImm)
    ]
    return next(n for n in (width, width // 2, width // 4) if all(g % n == 0 for g in groups) or 4 * n == width)


def summed_together(total: Stage, most: int) -> tuple[list[IterVar], list[IterVar]]:
    """The loops of a sum: those around, and those whose products are added one after another, four by four. Bytes that all
    lanes share are words where they follow each other in memory, so the loops stop where they no longer do."""
    around, count = list(total.reduce_axis), 1
    together: list[IterVar] = []
    shared = [r for r in reads_of(total) if not uses(r, total.axis[-1])]

    def fits(extent: int) -> bool:
        follow = all(_follows(r, around[-1], together) for r in shared)
        return count * extent <= most and (count < 4 or follow)

    while around and fits(extent_of(around[-1])):
        together.insert(0, around.pop())
        count *= max(extent_of(together[0]), 1)  # of no products there is nothing to share out
    parts = [n for n in range(2, most // count + 1) if around and extent_of(around[-1]) % n == 0 and fits(n)]
    best = min([1, *parts], key=lambda n: (-(-n * count // 4) / (n * count), -n))
    if best > 1:
        outer, inner = total.split(around.pop(), factor=best)
        around.append(outer)
        together.insert(0, inner)
    return around, together


def _follows(read: ProducerLoad, axis: IterVar, inner: Sequence[IterVar]) -> bool:
    """Whether what a read gets for the next value of an axis follows what it gets for all values of the inner ones."""
    own = [axis, *inner]
    last = list(read.indices[-len(own) :])
    extents = [e.value if isinstance(e, IntImm) else 0 for e in read.producer.shape[-len(inner) :]] if inner else []
    return last == [a.as_expr() for a in own] and extents == [extent_of(a) for a in inner]


def as_transfers(stage: Stage) -> bool:
    """Whether a padded stage is better filled by DMA: its rows follow each other in what it reads."""
    read, *others = reads_of(stage)
    extents = [extent_of(a) for a in stage.axis]
    plain = not others and len(extents) > 2 and read.indices[-1] is stage.axis[-1].as_expr()
    plain = plain and isinstance(tensor_of(read).op, PlaceholderOp)
    return plain and extents[-1] * extents[-2] * read.producer.dtype.bytes >= 512


def _alike(vectors: Sequence[ProducerLoad], axis: IterVar, extent: int) -> int:
    """How many neighbours on an axis read the same elements in one of these reads: all of them, those of a group, or 1."""
    found = 1
    for read in vectors:
        nodes = [x for index in read.indices for x in walk_exprs(index)]
        quotients = [x for x in nodes if isinstance(x, Binary) and x.op == "floordiv" and x.a is axis.as_expr()]
        count = sum(x is axis.as_expr() for x in nodes)
        if not count:
            return extent
        if count == len(quotients) and all(isinstance(x.b, IntImm) for x in quotients):
            found = max(found, min(x.b.value for x in quotients if isinstance(x.b, IntImm)))
    return found


def divides(index: Expr) -> bool:
    return any(isinstance(x, Binary) and x.op in ("floordiv", "floormod", "div", "mod") for x in walk_exprs(index))


def _reduction(out: Stage, knobs: Knobs, width: int) -> None:
    """The loops of a reduction inside of the shared one: along what is read, or vectors of the last axis with the
    reduction outside of them."""
    axis = along(out)
    spatial = [a for a in out.leaf_iter_vars if not a.is_reduction]
    if axis is not None and (len(spatial) < 2 or not in_rows(out, width)):
        in_lanes(out, axis, extent_of(axis), lanes_of(out, knobs, 2 * width))
    elif len(spatial) >= 2 and in_rows(out, width):
        rows_in_lanes(out, spatial[-1], knobs, width)


def _in_a_piece(stage: Stage, knobs: Knobs, width: int) -> int:
    """How many results that follow each other one TEC has at least: a vector, but where vectors lie along a sum."""
    return 1 if reduces(stage) and not in_rows(stage, width) else lanes_of(stage, knobs, width)


def _few(s: Schedule, out: Stage, knobs: Knobs, width: int, tecs: int) -> None:
    """A reduction to a few elements: each TEC reduces a part, one puts these together."""
    axis = next((a for a in out.reduce_axis if extent_of(a) >= 4 * tecs), None)
    if axis is None:
        return
    outer, _ = out.split(axis, nparts=tecs)
    factored = s.rfactor(out.op.output(0), outer)
    stage = s[factored[0] if isinstance(factored, (list, tuple)) else factored]
    stage.bind(stage.origin_op.axis[0], te.thread_axis("threadIdx.x"))  # type: ignore[attr-defined]
    inside = along(stage)
    if inside is None:
        return
    tensors = list(dict.fromkeys(tensor_of(r) for r in reads_of(stage) if uses(r, inside, last=True)))
    row = extent_of(inside) * max(t.dtype.bytes for t in tensors)
    around = [a for a in stage.reduce_axis if a is not inside]
    if knobs.cache and len(around) == 1 and 256 <= row <= 4096:
        copies = [s[s.cache_read(t, "lsram", [stage.origin_op])] for t in tensors]
        pieces, rows = stage.split(around[0], factor=4096 // row)
        stage.reorder(pieces, rows, inside)
        for copy in copies:
            copy.compute_at(stage, pieces)
            copy.double_buffer()
        in_vectors(stage, inside, extent_of(inside), lanes_along(stage, knobs, width), 4)
    elif knobs.cache and len(stage.reduce_axis) == 1 and extent_of(inside) >= 4096:
        copies = [s[s.cache_read(t, "lsram", [stage.origin_op])] for t in tensors]
        sums = [x for x in computed_stages(s) if reduces(x)]  # this one, and that which puts the parts together
        alone = len(sums) == 2 and len({tensor_of(r) for r in reads_of(stage)}) == 1
        outer, piece = stage.split(inside, factor=4096 if alone else 2048)
        for copy in copies:
            copy.compute_at(stage, outer)
            copy.double_buffer()
        turns, lanes = stage.split(piece, factor=4 * lanes_of(stage, knobs, width))
        stage.unroll(stage.split(turns, factor=4)[1])
        stage.vectorize(lanes)
    else:
        in_lanes(stage, inside, extent_of(inside), lanes_of(stage, knobs, 2 * width))


def _root(stage: Stage, knobs: Knobs, tecs: int, width: int) -> None:
    """A stage of the outermost level that is no output: shared out, in the memory of all TECs."""
    if not stage.axis:
        return
    lanes = lanes_of(stage, knobs, width)
    outer = shared_loop(stage, knobs, tecs, _in_a_piece(stage, knobs, width), True)
    stage.bind(outer, te.thread_axis("threadIdx.x"))
    if reduces(stage):
        _reduction(stage, knobs, width)
    else:
        last_in_lanes(stage, lanes)
