"""Kernels of layers that move elements by indices, counts or conditions known only when the graph runs.

Indices are read one by one, rows are copied by DMA: where rows are single elements, so are these copies. GatherElements
picks vectors out of LSRAM where the part of the input fits there.
"""

from __future__ import annotations

import math

import numpy as np

from compassc.graph import Layer, LayerError, Tensor
from compassc.graph.dtypes import numpy_dtype
from compassc.layers.arithmetic import Array
from compassc.layers.declare import store
from compassc.layers.emit import wide_kind
from compassc.layers.families.movement.reference import check_selector, gathered
from compassc.layers.kernels import kernel
from compassc.layers.moving import bits_of, raw_pointer, strides_of
from compassc.layers.remapping import PART
from compassc.layers.source import LANES, Kernel, KernelSource, finish

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


def _row_copy(to: str, near: str, width: str, inner: int) -> list[str]:
    if inner >= BY_DMA:
        return [f"S.dma_copy({to}, {near}, {width})"]
    return [f"row_to = {to}", f"row_from = {near}", f"for e in range({width}):", "    row_to[e] = row_from[e]"]


def _packed(
    k: KernelSource, x: Tensor, y: Tensor, axis: int, number: int, decide: list[str], table: Array | None = None
) -> list[str]:
    """Rows of `x`, which `table` holds where it is a constant, along an axis one behind the other, zeros behind them.

    `decide`: for element `p` of the `number` ones that say so, the row `at` and how `often` it comes; `o` is the index
    of all axes before. Every TEC reads them all and copies the rows that are its own.
    """
    inner, outer = math.prod(x.shape[axis + 1 :]), math.prod(x.shape[:axis])
    room = y.count // (inner * outer) if inner * outer else 0
    source = raw_pointer(k, x) if table is None else k.constant(table.view(bits_of(x.dtype)))
    target = raw_pointer(k, y)
    width, rows, size = k.scalar(inner), k.scalar(room), k.scalar(x.shape[axis])
    copy = _row_copy(f"{target} + (o * {rows} + w) * {width}", f"{source} + (o * {size} + at) * {width}", width, inner)
    return [
        f'nothing = S.vbcast(S.cast(S.i32(0), "{bits_of(x.dtype)}"), lanes={LANES})',
        f"for o in range({k.scalar(outer)}):",
        "    w = S.i32(0)",
        f"    for p in range({k.scalar(number)}):",
        *(f"        {d}" for d in decide),
        "        for q in range(often):",
        f"            if w < {rows}:",
        f"                if (o * {rows} + w) % S.get_local_size() == S.get_local_id():",
        *(f"                    {c}" for c in copy),
        "                w += 1",
        f"    for z in range(w, {rows}):",
        "        if z % S.get_local_size() == S.get_local_id():",
        f"            for e in range(0, {width}, {LANES}):",
        f"                rest = S.tail_mask(S.min({width} - e, {LANES}), {LANES})",
        f"                S.vstore(nothing, {target} + ((o * {rows} + z) * {width} + e), rest)",
    ]


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
    k, number = KernelSource(), math.prod(index.shape[batch:])
    given, table = (operands.table, None) if operands.is_index else (None, operands.table)
    places, n = k.tensor(index) if given is None else k.constant(given), k.scalar(x.shape[axis])
    per = k.scalar(max(1, math.prod(x.shape[batch:axis])))
    decide = [
        f"at = S.i32({places}[o / {per} * {k.scalar(number)} + p])",
        "if at < 0:",
        f"    at += {n}",
        "often = S.i32(0)",
        f"if at >= 0 and at < {n}:",
        "    often = S.i32(1)",
    ]
    return finish(k, _packed(k, x, y, axis, number, decide, table))


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
    k = KernelSource()
    many = f"S.i32({k.tensor(counts)}[{'p' if counts.count == n else '0'}])"
    return finish(k, _packed(k, x, y, axis, n, ["at = p + 0", f"often = {many}"]))


def _where_set(k: KernelSource, selector: Tensor) -> list[str]:
    given = k.tensor(selector)
    return ["at = p + 0", "often = S.i32(0)", f"if S.i32({given}[p]) != 0:", "    often = S.i32(1)"]


@kernel("Compress")
def compress(layer: Layer) -> Kernel:
    x, condition, axis = layer.inputs[0], indices_of(layer, layer.inputs[1]), layer.axis("axis", 0)
    keeps_type(layer, x)
    k = KernelSource()
    decide = _where_set(k, condition)
    return finish(k, _packed(k, x, layer.output, axis, min(condition.count, x.shape[axis]), decide))


@kernel("Filter")
def filter_rows(layer: Layer) -> Kernel:
    k, axis, selector = KernelSource(), layer.axis("axis", 0), indices_of(layer, layer.inputs[-1])
    lines: list[str] = []
    for x, y in zip(layer.inputs[:-1], layer.outputs[:-1], strict=True):
        check_selector(layer, x)
        if (x.dtype, x.shape) != (y.dtype, y.shape):
            raise LayerError(f"'{y.name}' is {y.dtype} {list(y.shape)}, but '{x.name}' is {x.dtype} {list(x.shape)}")
        lines += _packed(k, x, y, axis, x.shape[axis], _where_set(k, selector))
    count = k.tensor(indices_of(layer, layer.outputs[-1]))
    number = f'S.cast(found, "{layer.outputs[-1].dtype}")'
    return finish(
        k,
        [
            *lines,
            "found = S.i32(0)",
            f"for p in range({k.scalar(selector.count)}):",
            f"    if S.i32({k.tensor(selector)}[p]) != 0:",
            "        found += 1",
            "if S.get_local_id() == 0:",
            f"    {count}[0] = {number}",
        ],
    )


@kernel("ReverseSequence")
def reverse_sequence(layer: Layer) -> Kernel:
    x, batch, time = layer.input, layer.integer("batch_axis", 0), layer.integer("time_axis", 1)
    rank = len(x.shape)
    if not (-rank <= batch < rank and -rank <= time < rank) or batch % rank == time % rank:
        raise LayerError(f"'batch_axis' is {batch} and 'time_axis' is {time}, expected two of {rank} axes")
    batch, time = batch % rank, time % rank
    keeps_type(layer, x)
    k, deepest = KernelSource(), max(batch, time)
    lead = strides_of(x.shape[: deepest + 1])
    inner, size = math.prod(x.shape[deepest + 1 :]), k.scalar(x.shape[time])
    source, target, width = raw_pointer(k, x), raw_pointer(k, layer.output), k.scalar(inner)
    length = f"S.i32({size})"
    if len(layer.inputs) > 1:
        given = indices_of(layer, layer.inputs[1])
        which = f"r / {k.scalar(lead[batch])} % {k.scalar(x.shape[batch])}" if given.count == x.shape[batch] else "0"
        length = f"S.min(S.i32({k.tensor(given)}[{which}]), {size})"
    step = k.scalar(lead[time])
    return finish(
        k,
        [
            f"for r in range(S.get_local_id(), {k.scalar(math.prod(x.shape[: deepest + 1]))}, S.get_local_size()):",
            f"    length = {length}",
            f"    t = r / {step} % {size}",
            "    move = S.i32(0)",
            "    if t < length:",
            f"        move = (length - 1 - t - t) * {step}",
            *(
                f"    {c}"
                for c in _row_copy(f"{target} + r * {width}", f"{source} + (r + move) * {width}", width, inner)
            ),
        ],
    )


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
    k = KernelSource()
    places, target = k.tensor(index), raw_pointer(k, y)
    bits, n = bits_of(y.dtype), k.scalar(depth)
    after = math.prod(index.shape[axis:])
    head = [
        f'{name} = S.vbcast(S.cast({k.scalar(v)}, "{bits}"), lanes={LANES})' for name, v in (("off", off), ("on", on))
    ]
    if after == 1:
        lanes = k.constant(np.arange(LANES, dtype=np.int32))
        return finish(
            k,
            [
                *head,
                f"lane = S.vload({lanes}, lanes={LANES})",
                f"for r in range(S.get_local_id(), {k.scalar(index.count)}, S.get_local_size()):",
                f"    place = S.i32({places}[r])",
                f"    for j in range(0, {n}, {LANES}):",
                f"        mask = S.tail_mask(S.min({n} - j, {LANES}), {LANES})",
                "        hot = lane == place - j",
                f"        S.vstore(S.vsel(on, off, hot), {target} + (r * {n} + j), mask)",
            ],
        )
    width = k.scalar(after)
    return finish(
        k,
        [
            *head,
            f"for r in range(S.get_local_id(), {k.scalar(y.count // after)}, S.get_local_size()):",
            f"    for j in range(0, {width}, {LANES}):",
            f"        mask = S.tail_mask(S.min({width} - j, {LANES}), {LANES})",
            f'        hot = load({places} + (r / {n} * {width} + j), mask, "{index.dtype}", {LANES}) == r % {n}',
            f"        S.vstore(S.vsel(on, off, hot), {target} + (r * {width} + j), mask)",
        ],
    )


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

    def __init__(self, k: KernelSource, x: Tensor, index: Tensor, axis: int) -> None:
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
    k = KernelSource()
    a = IndexedAxis(k, x, index, layer.axis("axis", 0))
    source, target, places = raw_pointer(k, x), raw_pointer(k, y), k.tensor(index)
    lanes = k.constant(np.tile(a.behind, a.number))
    before, count = k.constant(a.before), k.scalar(a.number * a.behind.size)
    n, step, span = k.scalar(a.size), k.scalar(a.step), a.size * a.step
    bits = bits_of(x.dtype)
    if span * numpy_dtype(x.dtype).itemsize > PART.size:
        return finish(
            k,
            [
                f"for r in range(S.get_local_id(), {k.scalar(y.count)}, S.get_local_size()):",
                f"    at = S.min(S.i32({places}[r]), {n} - 1)",
                "    if at < 0:",
                f"        at += {n}",
                "    if at < 0:",
                f"        at = {n} - 1",
                f"    {target}[r] = {source}[{before}[r / {count}] + at * {step} + {lanes}[r % {count}]]",
            ],
        )
    return finish(
        k,
        [
            f'part = S.alloc({PART.size // int(np.dtype(bits).itemsize)}, "{bits}", scope="lsram")',
            f"for o in range({k.scalar(a.before.size)}):",
            f"    S.dma_copy(part, {source} + {before}[o], {k.scalar(span)})",
            f"    for j in range(S.get_local_id() * {LANES}, {count}, S.get_local_size() * {LANES}):",
            f"        mask = S.tail_mask(S.min({count} - j, {LANES}), {LANES})",
            f'        at = S.min(load({places} + (o * {count} + j), mask, "{index.dtype}", {LANES}), {n} - 1)',
            f"        at = S.vsel(at + {n}, at, at < 0)",
            f"        at = S.vsel(at * 0 + ({n} - 1), at, at < 0) * {step} + S.vload({lanes} + j, mask, lanes={LANES})",
            '        found = S.vload_gather(part, S.cast(at, "int16"), mask)',
            f"        S.vstore(found, {target} + (o * {count} + j), mask)",
        ],
    )


def addressed(k: KernelSource, index: Tensor, places: str, shape: tuple[int, ...]) -> list[str]:
    """Statements that add to `place` what the indices in row `r` say: too large ones are the last, negative ones wrap."""
    many, strides = index.shape[-1], strides_of(shape)
    if not 1 <= many <= len(shape):
        raise LayerError(f"{many} indices address {len(shape)} dimensions")
    lines = []
    for i in range(many):
        n = k.scalar(shape[i])
        lines += [
            f"v{i} = S.min(S.i32({places}[r * {k.scalar(many)} + {i}]), {n} - 1)",
            f"if v{i} < 0:",
            f"    v{i} = S.max(v{i} + {n}, 0)",
            f"place += v{i} * {k.scalar(strides[i])}",
        ]
    return lines


@kernel("GatherND")
def gather_nd(layer: Layer) -> Kernel:
    x, index, y = layer.inputs[0], indices_of(layer, layer.inputs[1]), layer.output
    keeps_type(layer, x)
    batch = layer.integer("batch_dims", 0)
    if x.shape[:batch] != index.shape[:batch] or not 0 <= batch < len(index.shape):
        raise LayerError(f"'batch_dims' is {batch}, which does not fit {list(x.shape)} and {list(index.shape)}")
    k, shape = KernelSource(), x.shape[batch:]
    inner, rows = math.prod(shape[index.shape[-1] :]), math.prod(index.shape[:-1])
    if rows * inner != y.count:
        raise LayerError(f"{list(x.shape)} and {list(index.shape)} do not lead to the shape {list(y.shape)}")
    source, target, places = raw_pointer(k, x), raw_pointer(k, y), k.tensor(index)
    per, whole, width = k.scalar(max(1, math.prod(index.shape[batch:-1]))), k.scalar(math.prod(shape)), k.scalar(inner)
    return finish(
        k,
        [
            f"for r in range(S.get_local_id(), {k.scalar(rows)}, S.get_local_size()):",
            f"    place = r / {per} * {whole}",
            *(f"    {a}" for a in addressed(k, index, places, shape)),
            *(f"    {c}" for c in _row_copy(f"{target} + r * {width}", f"{source} + place", width, inner)),
        ],
    )


def sliced_at_run_time(layer: Layer) -> Kernel:
    """A slice whose begin, end, axes and steps are inputs. Where they make fewer elements than the output has, 0 follows."""
    x, y, k = layer.input, layer.output, KernelSource()
    rank, given = len(x.shape), [indices_of(layer, t) for t in layer.inputs[1:]]
    if not 2 <= len(given) <= 4 or len({t.count for t in given}) != 1 or not 1 <= given[0].count <= rank:
        raise LayerError(
            f"its further inputs are {[list(t.shape) for t in given]}, expected numbers for up to {rank} axes"
        )
    keeps_type(layer, x)
    if len(y.shape) != rank:
        raise LayerError(f"its input is {list(x.shape)}, its output {list(y.shape)}")
    names = [k.tensor(t) for t in given]
    sizes, near = [k.scalar(n) for n in x.shape], strides_of(x.shape)
    lines = [f"first{a} = S.i32(0)\nstep{a} = S.i32(1)\ncount{a} = S.i32({sizes[a]})" for a in range(rank)]
    reads = [f"b = S.i32({names[0]}[j])", f"e = S.i32({names[1]}[j])"]
    reads.append(f"axis = S.i32({names[2]}[j])" if len(names) > 2 else "axis = j + 0")
    reads += [f"if axis < 0:\n    axis += {rank}", f"s = S.i32({names[3]}[j])" if len(names) > 3 else "s = S.i32(1)"]
    for a, n in enumerate(sizes):
        reads.append(SLICED.format(a=a, n=n))
    loop = "\n".join(reads).replace("\n", "\n    ")
    text = [*lines, f"for j in range({k.scalar(given[0].count)}):\n    {loop}"]
    source, target, width = raw_pointer(k, x), raw_pointer(k, y), k.scalar(y.shape[-1])
    indices, rest = [], "r"
    for a in reversed(range(rank - 1)):
        m = k.scalar(y.shape[a])
        indices.append(f"i{a} = {rest} % {m}")
        rest = f"({rest} / {m})"
    place = [f"(first{a} + i{a} * step{a}) * {k.scalar(near[a])}" for a in range(rank - 1)]
    inside = " and ".join(["here > 0", *(f"i{a} < count{a}" for a in range(rank - 1))])
    last, nothing = rank - 1, f'S.cast(S.i32(0), "{bits_of(y.dtype)}")'
    rows = k.scalar(math.prod(y.shape[:-1]))
    body = [
        f"for r in range(S.get_local_id(), {rows}, S.get_local_size()):",
        *(f"    {i}" for i in indices),
        f"    here = S.min(count{last}, {width})",
        f"    for e in range({width}):",
        f"        {target}[r * {width} + e] = {nothing}",
        f"    if {inside}:",
        f"        near = {source} + ({' + '.join([f'first{last}', *place])})",
        f"        if step{last} == 1:",
        f"            S.dma_copy({target} + r * {width}, near, here)",
        "        else:",
        "            for e in range(here):",
        f"                {target}[r * {width} + e] = near[e * step{last}]",
    ]
    return finish(k, [line for block in (*text, *body) for line in block.split("\n")])


SLICED = """\
if axis == {a}:
    step{a} = s + 0
    if s == 0:
        step{a} = S.i32(1)
    stop = S.min({n}, e)
    empty = (b >= {n} and stop >= {n}) or (b < 0 - {n} and stop < 0 - {n})
    if b < 0:
        b += {n}
    if stop < 0:
        stop += {n}
    first{a} = clamp(b, 0, {n} - 1)
    stop = clamp(stop, -1, {n})
    far = stop - first{a}
    if far < 0:
        far = 0 - far
    size = step{a} + 0
    if size < 0:
        size = 0 - size
    count{a} = S.i32(0)
    if far > 0 and not empty:
        count{a} = (far - 1) / size + 1
        if step{a} > 0:
            count{a} = S.min(count{a}, ({n} - 1 - first{a}) / size + 1)
        else:
            count{a} = S.min(count{a}, first{a} / size + 1)"""
"""The start of a slice along one axis, and its number of elements."""
