"""Kernels of layers that move elements by indices, counts or conditions known only when the graph runs.

Indices are read one by one, rows are copied by DMA: where rows are single elements, so are these copies. GatherElements
picks vectors out of LSRAM where the part of the input fits there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

import numpy as np

from compass_core.arrays import Array
from compassc.build import Address, Expression, Pointer, Value, both
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError, Tensor
from compassc.graph.dtypes import numpy_dtype
from compassc.layers.declare import store
from compassc.layers.element_copies import strides_of
from compassc.layers.families.movement.reference import check_selector, gathered
from compassc.layers.kernel import Kernel
from compassc.layers.kernels import kernel
from compassc.layers.layer_kernel import LayerKernel, tail
from compassc.layers.remapping import PART
from compassc.layers.vectors import LANES, bits_of, clamp, everywhere, load, wide_kind

BY_DMA = 16
"""Elements of a row from which on it is copied by DMA."""


def indices_of(layer: Layer, tensor: Tensor) -> Tensor:
    if tensor.dtype not in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "bool"):
        raise LayerError(f"'{tensor.name}' holds indices or counts, but is {tensor.dtype}")
    return tensor


def keeps_type(layer: Layer, *tensors: Tensor) -> None:
    for t in tensors:
        if t.dtype != layer.output.dtype:
            raise LayerError(f"'{t.name}' is {t.dtype}, the output {layer.output.dtype}; it keeps the type")


def _row_copy(k: LayerKernel, to: Address, near: Address, width: Value, inner: int) -> None:
    if inner >= BY_DMA:
        S.dma_copy(to, near, width)
        return
    target, source = k.hold(to, "row_to"), k.hold(near, "row_from")
    with k.for_range(0, width, name="e") as e:
        target[e] = source[e]


Decide = Callable[[Value, Value], tuple[Value, Value]]
"""`decide(o, p)`: for element `p` of those that say so, the row, and how often it comes; `o` is the index of all axes
before."""


def _packed(
    k: LayerKernel, x: Tensor, y: Tensor, axis: int, number: int, decide: Decide, table: Array | None = None
) -> None:
    """Rows of `x`, which `table` holds where it is a constant, along an axis one behind the other, zeros behind them.

    Every TEC decides of all `number` elements, and copies the rows that are its own.
    """
    inner, outer = math.prod(x.shape[axis + 1 :]), math.prod(x.shape[:axis])
    room = y.count // (inner * outer) if inner * outer else 0
    source = k.raw(x) if table is None else k.pointer(table.view(bits_of(x.dtype)))
    target = k.raw(y)
    width, rows, size = k.number(inner), k.number(room), k.number(x.shape[axis])
    nothing = k.held("nothing", everywhere(S.i32(0), bits_of(x.dtype)))
    with k.for_range(0, k.number(outer), name="o") as o:
        w = k.held("w", S.i32(0))
        with k.for_range(0, k.number(number), name="p") as p:
            at, often = decide(o, p)
            with k.for_range(0, often, name="q"), k.when(w < rows):
                with k.when((o * rows + w) % S.get_local_size() == S.get_local_id()):
                    _row_copy(k, target + (o * rows + w) * width, source + (o * size + at) * width, width, inner)
                k.assign(w, w + 1)
        with (
            k.for_range(w, rows, name="z") as z,
            k.when(z % S.get_local_size() == S.get_local_id()),
            k.for_range(0, width, LANES, "e") as e,
        ):
            S.vstore(nothing, target + ((o * rows + z) * width + e), tail(width - e))


@kernel("Gather")
def gather(layer: Layer) -> Kernel:
    """An index equal to the size, or outside, gives no row; remaining rows at the end are 0."""
    operands, y = gathered(layer), layer.output
    x, index = operands.data, indices_of(layer, operands.places)
    axis, batch = operands.axis(layer), layer.integer("batch_dims", 0)
    if not 0 <= batch <= axis or x.shape[:batch] != index.shape[:batch]:
        raise LayerError(f"'batch_dims' is {batch}, which does not fit axis {axis} and the shapes")
    if y.shape != (*x.shape[:axis], *index.shape[batch:], *x.shape[axis + 1 :]):
        raise LayerError(f"{list(x.shape)} and {list(index.shape)} do not lead to the shape {list(y.shape)}")
    keeps_type(layer, x)
    k, number = LayerKernel(), math.prod(index.shape[batch:])
    given, table = (operands.table, None) if operands.is_index else (None, operands.table)
    with k.active():
        places, n = k.tensor(index) if given is None else k.pointer(given), k.number(x.shape[axis])
        per, many = k.number(max(1, math.prod(x.shape[batch:axis]))), k.number(number)

        def decide(o: Value, p: Value) -> tuple[Value, Value]:
            at = k.held("at", S.i32(places[o / per * many + p]))
            with k.when(at < 0):
                k.assign(at, at + n)
            return at, _once_if(k, both(at >= 0, at < n))

        _packed(k, x, y, axis, number, decide, table)
    return k.kernel()


def _once_if(k: LayerKernel, condition: Expression) -> Value:
    """1 where a condition holds, else 0."""
    often = k.held("often", S.i32(0))
    with k.when(condition):
        k.assign(often, S.i32(1))
    return often


@kernel("Repeat")
def repeat(layer: Layer) -> Kernel:
    x, counts, y = layer.inputs[0], indices_of(layer, layer.inputs[1]), layer.output
    keeps_type(layer, x)
    axis = layer.axis() if layer.has("axis") else 0
    if not layer.has("axis"):
        x = Tensor(x.name, (x.count,), x.dtype)
    n = x.shape[axis]
    if counts.count not in (1, n):
        raise LayerError(f"{counts.count} counts for {n} elements")
    kept = len(y.shape) == len(x.shape) and all(
        a == axis or m == o for a, (m, o) in enumerate(zip(x.shape, y.shape, strict=True))
    )
    if not kept or y.shape[axis] < 1:
        raise LayerError(f"'{y.name}' is {list(y.shape)}, but '{x.name}' {list(x.shape)}; axis {axis} alone is another")
    k = LayerKernel()
    with k.active():
        many = k.tensor(counts)
        _packed(k, x, y, axis, n, lambda o, p: (p, k.held("often", S.i32(many[p if counts.count == n else 0]))))
    return k.kernel()


def _where_set(k: LayerKernel, given: Pointer) -> Decide:
    return lambda o, p: (p, _once_if(k, S.i32(given[p]) != 0))


@kernel("Compress")
def compress(layer: Layer) -> Kernel:
    x, condition, axis = layer.inputs[0], indices_of(layer, layer.inputs[1]), layer.axis("axis", 0)
    keeps_type(layer, x)
    k = LayerKernel()
    with k.active():
        decide = _where_set(k, k.tensor(condition))
        _packed(k, x, layer.output, axis, min(condition.count, x.shape[axis]), decide)
    return k.kernel()


@kernel("Filter")
def filter_rows(layer: Layer) -> Kernel:
    k, axis, selector = LayerKernel(), layer.axis("axis", 0), indices_of(layer, layer.inputs[-1])
    last = indices_of(layer, layer.outputs[-1])
    with k.active():
        given = k.tensor(selector)
        for x, y in zip(layer.inputs[:-1], layer.outputs[:-1], strict=True):
            check_selector(layer, x)
            if (x.dtype, x.shape) != (y.dtype, y.shape):
                raise LayerError(
                    f"'{y.name}' is {y.dtype} {list(y.shape)}, but '{x.name}' is {x.dtype} {list(x.shape)}"
                )
            _packed(k, x, y, axis, x.shape[axis], _where_set(k, given))
        found = k.held("found", S.i32(0))
        with k.for_range(0, k.number(selector.count), name="p") as p, k.when(S.i32(given[p]) != 0):
            k.assign(found, found + 1)
        with k.when(S.get_local_id() == 0):
            k.tensor(last)[0] = S.cast(found, last.dtype)
    return k.kernel()


@kernel("ReverseSequence")
def reverse_sequence(layer: Layer) -> Kernel:
    x, batch, time = layer.input, layer.integer("batch_axis", 0), layer.integer("time_axis", 1)
    rank = len(x.shape)
    if not (-rank <= batch < rank and -rank <= time < rank) or batch % rank == time % rank:
        raise LayerError(f"'batch_axis' is {batch} and 'time_axis' is {time}, expected two of {rank} axes")
    batch, time = batch % rank, time % rank
    keeps_type(layer, x)
    k, deepest = LayerKernel(), max(batch, time)
    lead = strides_of(x.shape[: deepest + 1])
    inner, rows = math.prod(x.shape[deepest + 1 :]), math.prod(x.shape[: deepest + 1])
    with k.active():
        size, source, target, width = k.number(x.shape[time]), k.raw(x), k.raw(layer.output), k.number(inner)
        step = k.number(lead[time])
        with k.shared(k.number(rows), "r") as r:
            length: Expression = S.i32(size)
            if len(layer.inputs) > 1:
                given = indices_of(layer, layer.inputs[1])
                each = given.count == x.shape[batch]
                which = r / k.number(lead[batch]) % k.number(x.shape[batch]) if each else 0
                length = S.min(S.i32(k.tensor(given)[which]), size)
            length, t = k.held("length", length), k.held("t", r / step % size)
            move = k.held("move", S.i32(0))
            with k.when(t < length):
                k.assign(move, (length - 1 - t - t) * step)
            _row_copy(k, target + r * width, source + (r + move) * width, width, inner)
    return k.kernel()


@kernel("OneHot")
def one_hot(layer: Layer) -> Kernel:
    index, y = indices_of(layer, layer.input), layer.output
    wide_kind(index)
    depth, axis = layer.integer("depth"), layer.integer("axis", -1)
    axis = len(index.shape) if axis < 0 or axis >= len(index.shape) else axis
    if y.shape != (*index.shape[:axis], depth, *index.shape[axis:]):
        raise LayerError(f"'depth' is {depth} on axis {axis}, which does not lead to the shape {list(y.shape)}")
    values = layer.numbers("values", [0, 1])
    if len(values) != 2:
        raise LayerError(f"'values' is {values}, expected two numbers, elsewhere and at the index")
    off, on = (fill_value(v, y) for v in values)
    k = LayerKernel()
    with k.active():
        places, target, n = k.tensor(index), k.raw(y), k.number(depth)
        cold, hot = (k.held(hint, everywhere(k.number(v), bits_of(y.dtype))) for hint, v in (("off", off), ("on", on)))
        after = math.prod(index.shape[axis:])
        if after == 1:
            lane = k.held("lane", S.vload(k.pointer(np.arange(LANES, dtype=np.int32)), lanes=LANES))
            with k.shared(k.number(index.count), "r") as r:
                place = k.held("place", S.i32(places[r]))
                with k.for_range(0, n, LANES, "j") as j:
                    S.vstore(S.vsel(hot, cold, lane == place - j), target + (r * n + j), tail(n - j))
            return k.kernel()
        width = k.number(after)
        with k.shared(k.number(y.count // after), "r") as r, k.for_range(0, width, LANES, "j") as j:
            mask = k.held("mask", tail(width - j))
            found = load(places + (r / n * width + j), mask, index.dtype, LANES) == r % n
            S.vstore(S.vsel(hot, cold, found), target + (r * width + j), mask)
    return k.kernel()


def fill_value(value: float, tensor: Tensor) -> int:
    """A number as it is stored in a tensor, as an integer with the same bits."""
    stored = store(np.full(1, value), tensor.dtype, (1,))
    return int(stored.view({1: "uint8", 2: "uint16", 4: "int32"}[stored.itemsize])[0])


def _offsets(shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """Places of all elements of a block, in order."""
    total = np.zeros(1, np.int64)
    for n, s in zip(shape, strides, strict=True):
        total = (total[:, None] + np.arange(n) * s).reshape(-1)
    return total.astype(np.int32)


class IndexedAxis:
    """Elements addressed by an index along one axis: their places before and behind it in `x`."""

    def __init__(self, x: Tensor, index: Tensor, axis: int) -> None:
        if len(x.shape) != len(index.shape) or any(
            m > n for i, (m, n) in enumerate(zip(index.shape, x.shape, strict=True)) if i != axis
        ):
            raise LayerError(f"indices of {list(index.shape)} do not fit data of {list(x.shape)}")
        strides = strides_of(x.shape)
        self.size, self.step = x.shape[axis], strides[axis]
        self.before = _offsets(index.shape[:axis], strides[:axis])
        self.behind = _offsets(index.shape[axis + 1 :], strides[axis + 1 :])
        self.number = index.shape[axis]


@kernel("GatherElements")
def gather_elements(layer: Layer) -> Kernel:
    x, index, y = layer.inputs[0], indices_of(layer, layer.inputs[1]), layer.output
    keeps_type(layer, x)
    if y.shape != index.shape:
        raise LayerError(f"the output is {list(y.shape)}, the indices are {list(index.shape)}")
    wide_kind(index)
    k, a = LayerKernel(), IndexedAxis(x, index, layer.axis("axis", 0))
    bits, span = bits_of(x.dtype), a.size * a.step
    with k.active():
        source, target, places = k.raw(x), k.raw(y), k.tensor(index)
        lanes, before = k.pointer(np.tile(a.behind, a.number)), k.pointer(a.before)
        count, n, step = k.number(a.number * a.behind.size), k.number(a.size), k.number(a.step)
        if span * numpy_dtype(x.dtype).itemsize > PART.size:
            gather_apart(source, target, places, before, lanes, count, n, step, k.number(y.count))
            return k.kernel()
        part = k.alloc(PART.size // int(np.dtype(bits).itemsize), bits, "part")
        with k.for_range(0, k.number(a.before.size), name="o") as o:
            S.dma_copy(part, source + before[o], k.number(span))
            with k.shared(count, "j", LANES) as j:
                mask = k.held("mask", tail(count - j))
                at = k.held("at", S.min(load(places + (o * count + j), mask, index.dtype, LANES), n - 1))
                k.assign(at, S.vsel(at + n, at, at < 0))
                place = S.vsel(at * 0 + (n - 1), at, at < 0) * step + S.vload(lanes + j, mask, lanes=LANES)
                found = S.vload_gather(part, S.cast(k.held("place", place), "int16"), mask)
                S.vstore(found, target + (o * count + j), mask)
    return k.kernel()


@S.macro
def gather_apart(
    source: Address, target: Address, places: Address, before: Address, lanes: Address, count: Expression,
    n: Expression, step: Expression, total: Expression,
) -> None:  # fmt: skip
    """Elements one by one: an index along an axis of `n` elements, `step` from one to the next; others wrap or are the last."""
    for r in range(S.get_local_id(), total, S.get_local_size()):
        at = S.min(S.i32(places[r]), n - 1)
        if at < 0:
            at += n
        if at < 0:
            at = n - 1
        target[r] = source[before[r / count] + at * step + lanes[r % count]]


def addressed(k: LayerKernel, place: Value, r: Value, index: Tensor, places: Pointer, shape: tuple[int, ...]) -> None:
    """Adds to `place` what the indices in row `r` say: too large ones are the last, negative ones wrap."""
    many, strides = index.shape[-1], strides_of(shape)
    if not 1 <= many <= len(shape):
        raise LayerError(f"{many} indices address {len(shape)} dimensions")
    for i in range(many):
        n = k.number(shape[i])
        v = k.held("v", S.min(S.i32(places[r * k.number(many) + i]), n - 1))
        with k.when(v < 0):
            k.assign(v, S.max(v + n, 0))
        k.assign(place, place + v * k.number(strides[i]))


@kernel("GatherND")
def gather_nd(layer: Layer) -> Kernel:
    x, index, y = layer.inputs[0], indices_of(layer, layer.inputs[1]), layer.output
    keeps_type(layer, x)
    batch = layer.integer("batch_dims", 0)
    if x.shape[:batch] != index.shape[:batch] or not 0 <= batch < len(index.shape):
        raise LayerError(f"'batch_dims' is {batch}, which does not fit {list(x.shape)} and {list(index.shape)}")
    k, shape = LayerKernel(), x.shape[batch:]
    inner, rows = math.prod(shape[index.shape[-1] :]), math.prod(index.shape[:-1])
    if rows * inner != y.count:
        raise LayerError(f"{list(x.shape)} and {list(index.shape)} do not lead to the shape {list(y.shape)}")
    with k.active():
        source, target, places = k.raw(x), k.raw(y), k.tensor(index)
        per, whole = k.number(max(1, math.prod(index.shape[batch:-1]))), k.number(math.prod(shape))
        width = k.number(inner)
        with k.shared(k.number(rows), "r") as r:
            place = k.held("place", r / per * whole)
            addressed(k, place, r, index, places, shape)
            _row_copy(k, target + r * width, source + place, width, inner)
    return k.kernel()


def sliced_at_run_time(layer: Layer) -> Kernel:
    """A slice whose begin, end, axes and steps are inputs. Where they make fewer elements than the output has, 0 follows."""
    x, y, k = layer.input, layer.output, LayerKernel()
    rank, given = len(x.shape), [indices_of(layer, t) for t in layer.inputs[1:]]
    if not 2 <= len(given) <= 4 or len({t.count for t in given}) != 1 or not 1 <= given[0].count <= rank:
        raise LayerError(
            f"its further inputs are {[list(t.shape) for t in given]}, expected numbers for up to {rank} axes"
        )
    keeps_type(layer, x)
    if len(y.shape) != rank:
        raise LayerError(f"its input is {list(x.shape)}, its output {list(y.shape)}")
    last, near = rank - 1, strides_of(x.shape)
    with k.active():
        reads, sizes = [k.tensor(t) for t in given], [k.number(n) for n in x.shape]
        first = [k.held("first", S.i32(0)) for _ in sizes]
        step = [k.held("step", S.i32(1)) for _ in sizes]
        count = [k.held("count", S.i32(n)) for n in sizes]
        with k.for_range(0, k.number(given[0].count), name="j") as j:
            begin, end = (k.held(hint, S.i32(t[j])) for hint, t in zip(("begin", "end"), reads, strict=False))
            axis = k.held("axis", S.i32(reads[2][j]) if len(reads) > 2 else j + 0)
            with k.when(axis < 0):
                k.assign(axis, axis + rank)
            stride = k.held("stride", S.i32(reads[3][j]) if len(reads) > 3 else S.i32(1))
            for a, n in enumerate(sizes):
                with k.when(axis == a):
                    slice_along(first[a], step[a], count[a], begin, end, stride, n)
        source, target, width = k.raw(x), k.raw(y), k.number(y.shape[-1])
        with k.shared(k.number(math.prod(y.shape[:-1])), "r") as r:
            rest: Expression = r
            at: dict[int, Value] = {}
            for a in reversed(range(last)):
                m = k.number(y.shape[a])
                at[a], rest = k.held("i", rest % m), rest / m
            here = k.held("here", S.min(count[last], width))
            with k.for_range(0, width, name="e") as e:
                target[r * width + e] = S.cast(S.i32(0), bits_of(y.dtype))
            with k.when(reduce(both, [at[a] < count[a] for a in range(last)], here > 0)):
                places = [(first[a] + at[a] * step[a]) * k.number(near[a]) for a in range(last)]
                row = k.hold(source + sum(places, first[last]), "near")
                with k.when(step[last] == 1):
                    S.dma_copy(target + r * width, row, here)
                with k.otherwise(), k.for_range(0, here, name="e") as e:
                    target[r * width + e] = row[e * step[last]]
    return k.kernel()


@S.macro
def slice_along(
    first: Expression, step: Expression, count: Expression, begin: Expression, end: Expression, stride: Expression,
    n: Expression,
) -> None:  # fmt: skip
    """The start of a slice along an axis of `n` elements, its step, and its number of elements."""
    step = stride + 0
    if stride == 0:
        step = S.i32(1)
    stop = S.min(n, end)
    empty = (begin >= n and stop >= n) or (begin < 0 - n and stop < 0 - n)
    if begin < 0:
        begin += n
    if stop < 0:
        stop += n
    first = clamp(begin, 0, n - 1)
    stop = clamp(stop, -1, n)
    far = stop - first
    if far < 0:
        far = 0 - far
    size = step + 0
    if size < 0:
        size = 0 - size
    count = S.i32(0)
    if far > 0 and not empty:
        count = (far - 1) / size + 1
        if step > 0:
            count = S.min(count, (n - 1 - first) / size + 1)
        else:
            count = S.min(count, first / size + 1)
