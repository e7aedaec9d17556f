"""Layers that move elements without computing with them. Scale and zero point go along, so one reference serves both forms."""

from __future__ import annotations

import math

import numpy as np

from compass_core.arrays import Array
from compass_core.namedtuple import NamedTuple
from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.arithmetic import quantise, requantise, requantise_floor, saturate


def _fill(layer: Layer) -> float:
    """The value that means 0."""
    return -layer.output.scalar_zero if layer.is_quantised else 0


def reshape(layer: Layer, x: Array) -> Array:
    return x.reshape(layer.output.shape)


def transpose(layer: Layer, x: Array) -> Array:
    perm = layer.integers("perm")
    if sorted(perm) != list(range(x.ndim)):
        raise LayerError(f"'perm' is {perm}, but the input has {x.ndim} dimensions")
    return x.transpose(perm)


def concat(layer: Layer, *x: Array) -> Array:
    return np.concatenate(x, layer.axis())


NEAR = 1.05
"""Scales that differ less are the same for branches that are joined."""


def branch_factors(layer: Layer) -> tuple[Array, Array]:
    """Multipliers and shifts of the branches of a Concat; branches of one scale and zero point need none."""
    tensors = (*layer.inputs, layer.output)
    scales = [t.scale for t in tensors if isinstance(t.scale, float)]
    same = len({t.zero for t in tensors}) == 1 and max(scales, default=1) <= NEAR * min(scales, default=1)
    return layer.scale_shift(needed=not same and len(scales) == len(tensors))


def quantised_concat(layer: Layer, *x: Array) -> Array:
    """Each branch is rescaled to the output's scale with its own multiplier."""
    axis, out = layer.axis(), layer.output
    scale, shift = branch_factors(layer)
    if scale.size not in (1, len(x)) or shift.size not in (1, len(x)):
        raise LayerError(f"'scale_value' has {scale.size} values, expected one for each of the {len(x)} inputs")
    branches = [
        requantise(v.astype(np.int64) + t.scalar_zero, m, s, out.scalar_zero, out.low, out.high)
        for v, t, m, s in zip(x, layer.inputs, np.resize(scale, len(x)), np.resize(shift, len(x)), strict=True)
    ]
    return np.concatenate(branches, axis)


def split(layer: Layer, x: Array) -> list[Array]:
    axis, sizes = layer.axis(), layer.integers("splits")
    if sum(sizes) != x.shape[axis]:
        raise LayerError(f"'splits' is {sizes}, but axis {axis} has {x.shape[axis]} elements")
    return np.split(x, np.cumsum(sizes)[:-1], axis)


def slice_indices(begin: int, end: int, stride: int, size: int) -> range:
    """The indices that a slice takes of an axis of `size` elements."""
    stop = min(size, end)
    if not size or (begin >= size and stop >= size) or (begin < -size and stop < -size):
        return range(0)
    first = min(max(begin + size if begin < 0 else begin, 0), size - 1)
    stop = min(max(stop + size if stop < 0 else stop, -1), size)
    step = stride or 1
    count = 0 if first == stop else (abs(stop - first) - 1) // abs(step) + 1
    # of those beyond either end none is taken
    return range(first, min(first + step * count, size) if step > 0 else max(first + step * count, -1), step)


def slices(layer: Layer, x: Array, *dynamic: Array) -> Array:
    """By attributes per axis, or by inputs: begin, end, axes, steps."""
    if dynamic:
        wide = [list(v.reshape(-1).astype(int)) for v in dynamic]
        begin, end = wide[:2]
        axes = [a % x.ndim for a in wide[2]] if len(wide) > 2 else list(range(len(begin)))
        steps = wide[3] if len(wide) > 3 else [1] * len(begin)
        rows = dict(zip(axes, zip(begin, end, steps, strict=True), strict=True))
    else:
        given = (layer.integers(key) for key in ("begin", "end", "strides"))
        rows = dict(enumerate(zip(*given, strict=True)))
    for axis, (begin_at, end_at, step) in rows.items():
        x = x.take(slice_indices(begin_at, end_at, step, x.shape[axis]), axis)
    return x


def crop(layer: Layer, x: Array) -> Array:
    crops = layer.pairs("crops")
    if len(crops) != x.ndim:
        raise LayerError(f"'crops' is {crops}, but the input has {x.ndim} dimensions")
    for axis, (begin, end) in enumerate(crops):
        n = x.shape[axis]
        first, stop = begin + n if begin < 0 else begin, min(end + n if end < 0 else end, n)
        x = x[(slice(None),) * axis + (slice(first, max(first, stop)),)]
    return x


def tile(layer: Layer, x: Array) -> Array:
    return np.tile(x, layer.integers("repeats"))


PAD_MODES = {"CONSTANT": "constant", "REFLECT": "reflect", "SYMMETRIC": "symmetric", "EDGE": "edge", "WRAP": "wrap"}


def kept_of(size: int, pads: tuple[int, int]) -> slice:
    """The slice of an axis that remains after negative pads, which remove elements."""
    before, after = max(-pads[0], 0), max(-pads[1], 0)
    if before + after > size:
        raise LayerError(f"'pads' takes {before} and {after} elements off an axis of {size}")
    return slice(before, size - after)


def pad(layer: Layer, x: Array) -> Array:
    """Quantised, the constant is a quantised value as it stands."""
    mode, pads = layer.word("mode", "CONSTANT", tuple(PAD_MODES)), layer.pairs("pads")
    if len(pads) != x.ndim:
        raise LayerError(f"'pads' is {pads}, but the input has {x.ndim} dimensions")
    kept = tuple(kept_of(n, p) for n, p in zip(x.shape, pads, strict=True))
    x, pads = x[kept], [(max(a, 0), max(b, 0)) for a, b in pads]
    if not pads:
        return x
    if mode != "CONSTANT":
        found: Array = np.pad(x, pads, PAD_MODES[mode])  # type: ignore[call-overload]
        return found
    value = layer.number("constant_value", 0)
    if layer.is_quantised:
        value = int(np.rint(value))
        if not layer.output.integer.low <= value <= layer.output.integer.high:
            raise LayerError(f"'constant_value' is {value}, which {layer.output.dtype} does not hold")
    return np.pad(x, pads, constant_values=value)


def repeat(layer: Layer, x: Array, counts: Array) -> Array:
    """Each element as often as `counts` says; behind them raw zeros up to the output's size."""
    axis = layer.axis() if layer.has("axis") else None
    taken = x.reshape(-1) if axis is None else x
    many = counts.reshape(-1).astype(int)
    at = axis or 0
    if many.size not in (1, taken.shape[at]):
        raise LayerError(f"{many.size} counts for {taken.shape[at]} elements")
    found = np.repeat(taken, many, at)
    room = layer.output.shape[at] - found.shape[at]
    if room < 0:
        raise LayerError(f"the counts make {found.shape[at]} elements, the output has {layer.output.shape[at]}")
    return np.pad(found, [(0, room if i == at else 0) for i in range(found.ndim)])


def reverse_sequence(layer: Layer, x: Array, *lengths: Array) -> Array:
    """The first elements of each sequence of a batch in reverse order."""
    batch, time = layer.integer("batch_axis", 0), layer.integer("time_axis", 1)
    wide = np.moveaxis(x, (batch, time), (0, 1))
    size = wide.shape[1]
    given = lengths[0].reshape(-1).astype(int) if lengths else np.full(len(wide), size)
    given = np.minimum(given if given.size == len(wide) else np.full(len(wide), given[0]), size)
    places = np.arange(size)
    order = np.where(places < given[:, None], given[:, None] - 1 - places, places)
    turned = wide[np.arange(len(wide))[:, None], order]
    return np.moveaxis(turned, (0, 1), (batch, time))


def meshgrid(layer: Layer, a: Array, b: Array) -> list[Array]:
    grids = np.meshgrid(a, b, indexing="ij" if layer.word("indexing", "xy", ("XY", "IJ")) == "IJ" else "xy")
    if layer.flag("sparse", False):
        first = layer.word("indexing", "xy") == "IJ"
        return [grids[0][:, :1] if first else grids[0][:1], grids[1][:1] if first else grids[1][:, :1]]
    return list(grids)


def compress(layer: Layer, x: Array, condition: Array) -> Array:
    axis = layer.axis("axis", 0)
    kept = np.flatnonzero(condition.reshape(-1)[: x.shape[axis]])
    return x.take(kept, axis)


def check_selector(layer: Layer, x: Tensor) -> None:
    """LayerError where a Filter has not one selector for each index of its axis."""
    size, given = x.shape[layer.axis("axis", 0)], layer.inputs[-1]
    if given.count != size:
        raise LayerError(f"'{given.name}' has {given.count} selectors, but 'axis' of '{x.name}' has {size} indices")


def filter_rows(layer: Layer, *x: Array) -> list[Array]:
    """Rows whose selector is not 0 at the front, raw zeros behind them; and how many."""
    axis, selector = layer.axis("axis", 0), x[-1].reshape(-1)
    kept = np.flatnonzero(selector)
    found = []
    for data, t in zip(x[:-1], layer.inputs, strict=False):
        check_selector(layer, t)
        rows = data.take(kept, axis)
        found.append(np.pad(rows, [(0, data.shape[i] - rows.shape[i]) for i in range(data.ndim)]))
    return [*found, np.asarray([len(kept)])]


class Gathered(NamedTuple):
    """Data and index of a Gather; the array is that of the constant, where one of the two is a constant."""

    data: Tensor
    places: Tensor
    table: Array | None = None
    is_index: bool = False

    def axis(self, layer: Layer) -> int:
        """The axis of the data that the index is along, not negative."""
        axis, rank = layer.integer("axis", 0), len(self.data.shape)
        if not -rank <= axis < rank:
            raise LayerError(f"'axis' is {axis}, but '{self.data.name}' has {rank} dimensions")
        return axis % rank


def gathered(layer: Layer) -> Gathered:
    """The operands of a Gather. Of one with a single input, the constant `lut` is the other one."""
    if len(layer.inputs) > 1:
        return Gathered(layer.inputs[0], layer.inputs[1])
    table, is_index = layer.constant("lut"), layer.word("method", "") == "IDX_LUT"
    if is_index and table.dtype.kind not in "iu":
        raise LayerError(f"'lut' is {table.dtype.name}, expected the integers of an index")
    constant = Tensor("lut", table.shape, table.dtype.name)
    return Gathered(layer.input, constant, table, True) if is_index else Gathered(constant, layer.input, table)


def gather(layer: Layer, x: Array, *index: Array) -> Array:
    """Along an axis; negative indices count from the end, indices equal to the size give raw zeros at the end."""
    operands = gathered(layer)
    axis = operands.axis(layer)
    if operands.table is None:
        return _gathered(layer, x, index[0], axis)
    return _gathered(layer, *((x, operands.table) if operands.is_index else (operands.table, x)), axis)


def _gathered(layer: Layer, x: Array, index: Array, axis: int) -> Array:
    batch = layer.integer("batch_dims", 0)
    if batch < 0 or batch > axis:
        raise LayerError(f"'batch_dims' is {batch}, expected 0 to the axis, {axis}")
    n, at = x.shape[axis], index.astype(np.int64)
    at = np.where(at < 0, at + n, at)
    if at.min(initial=0) < 0 or at.max(initial=0) > n:
        raise LayerError(f"an index is outside the {n} elements of axis {axis}")
    if batch:
        lead = int(np.prod(x.shape[:batch]))
        flat_x, flat_at = x.reshape(lead, *x.shape[batch:]), at.reshape(lead, *at.shape[batch:])
        parts = [_packed(a, i, axis - batch) for a, i in zip(flat_x, flat_at, strict=True)]
        return np.stack(parts).reshape(layer.output.shape)
    return _packed(x, at, axis)


def _packed(x: Array, at: Array, axis: int) -> Array:
    n = x.shape[axis]
    flat = at.reshape(-1)
    kept = flat[flat < n]
    found = x.take(kept, axis)
    found = np.pad(found, [(0, len(flat) - len(kept) if i == axis else 0) for i in range(x.ndim)])
    return found.reshape(*x.shape[:axis], *at.shape, *x.shape[axis + 1 :])


def gather_elements(layer: Layer, x: Array, index: Array) -> Array:
    axis = layer.axis("axis", 0)
    n, at = x.shape[axis], index.astype(np.int64)
    at = np.where(at >= n, n - 1, np.where(at < 0, at + n, at))
    at = np.where(at < 0, n - 1, at)
    part = x[tuple(slice(None) if i == axis else slice(0, d) for i, d in enumerate(at.shape))]
    return np.take_along_axis(part, at, axis)


def _addressed(index: Array, shape: tuple[int, ...]) -> tuple[Array, ...]:
    """Indices of leading axes from the last axis of `index`: too large ones are the last, negative ones wrap."""
    at = index.astype(np.int64)
    columns = []
    for k in range(at.shape[-1]):
        column = np.minimum(at[..., k], shape[k] - 1)
        columns.append(np.where(column < 0, column + shape[k], column))
    return tuple(columns)


def gather_nd(layer: Layer, x: Array, index: Array) -> Array:
    batch = layer.integer("batch_dims", 0)
    if not batch:
        return x[_addressed(index, x.shape)].reshape(layer.output.shape)
    lead = int(np.prod(x.shape[:batch]))
    flat_x, flat_at = x.reshape(lead, *x.shape[batch:]), index.reshape(lead, *index.shape[batch:])
    parts = [a[_addressed(i, a.shape)] for a, i in zip(flat_x, flat_at, strict=True)]
    return np.stack(parts).reshape(layer.output.shape)


REDUCTIONS = {"ADD": np.add, "MUL": np.multiply, "MAX": np.maximum, "MIN": np.minimum}


def _scatter(target: Array, at: tuple[Array, ...], updates: Array, reduction: str) -> Array:
    if reduction == "NONE":
        target[at] = updates
    else:
        REDUCTIONS[reduction].at(target, at, updates)
    return target


def _element_places(layer: Layer, x: Array, index: Array) -> tuple[Array, ...]:
    axis = layer.axis("axis", 0)
    n, at = x.shape[axis], index.astype(np.int64)
    at = np.clip(np.where(at < 0, at + n, at), 0, n - 1)
    places: list[Array] = list(np.indices(at.shape))
    places[axis] = at
    return tuple(places)


def scatter_elements(layer: Layer, x: Array, index: Array, updates: Array) -> Array:
    wide = x.astype(np.float32) if x.dtype.kind not in "iub" else x.astype(np.int64)
    reduction = layer.word("reduction", "NONE", ("NONE", *REDUCTIONS))
    return _scatter(wide, _element_places(layer, x, index), updates.astype(wide.dtype), reduction)


def scatter_nd(layer: Layer, x: Array, index: Array, updates: Array) -> Array:
    wide = x.astype(np.float32) if x.dtype.kind not in "iub" else x.astype(np.int64)
    reduction = layer.word("reduction", "NONE", ("NONE", *REDUCTIONS))
    return _scatter(wide, _addressed(index, x.shape), updates.astype(wide.dtype), reduction)


def quantised_scatter_elements(layer: Layer, x: Array, index: Array, updates: Array) -> Array:
    reduction = layer.word("reduction", "NONE", ("NONE", *REDUCTIONS))
    places = _element_places(layer, x, index)
    data, source, out = layer.inputs[0], layer.inputs[2], layer.output
    v = x.astype(np.int64) + data.scalar_zero
    u = updates.astype(np.int64) + source.scalar_zero
    scale, shift = layer.scale_shift(of=2 if reduction == "MUL" else 3)
    if reduction == "MUL":
        return _scatter_products(layer, v, u, places, np.resize(scale, 2), np.resize(shift, 2))
    own, first, second = (int(s) for s in (scale if scale.size == 3 else np.asarray([scale.reshape(-1)[0], 1, 1])))
    bits = data.integer.bits + source.integer.bits
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if out.integer.signed else (0, (1 << bits) - 1)
    target = _scatter(requantise(v, first, 0, 0, low, high), places, requantise(u, second, 0, 0, low, high), reduction)
    return requantise(target, own, shift, out.scalar_zero, out.low, out.high)


def _scatter_products(layer: Layer, v: Array, u: Array, places: tuple[Array, ...], scale: Array, shift: Array) -> Array:
    """Products in 16 bits after each update, in the order of the places along the axis; the zero point is not applied."""
    out, axis = layer.output, layer.axis("axis", 0)
    low, high = (-32768, 32767) if out.integer.signed else (0, 65535)
    if not out.integer.signed and (u < 0).any():
        raise LayerError(f"updates are negative, by which '{out.name}', which is unsigned, is not multiplied")
    target = requantise(v, scale[0], shift[0], 0, low, high)
    for k in range(u.shape[axis]):
        part = tuple(p.take(k, axis) for p in places)
        t = target[part] * u.take(k, axis)
        halvings = np.zeros_like(t)
        outside = (t < low) | (t > high)
        while outside.any():
            t, halvings = np.where(outside, t >> 1, t), halvings + outside
            outside = (t < low) | (t > high)
        move = shift[1] - halvings
        target[part] = np.where(
            move >= 0, (t * scale[1]) >> np.maximum(move, 0), (t * scale[1]) << np.maximum(-move, 0)
        )
    return saturate(target, out.low, out.high)


def quantised_scatter_nd(layer: Layer, x: Array, index: Array, updates: Array) -> Array:
    """Up to 8 bits the result is rounded, above it is rounded down."""
    reduction = layer.word("reduction", "NONE", ("NONE", *REDUCTIONS))
    out = layer.output
    v = x.astype(np.int64) + layer.inputs[0].scalar_zero
    u = updates.astype(np.int64) + layer.inputs[2].scalar_zero
    scale, shift = layer.scale_shift(of=3)
    finish = requantise if out.integer.bits <= 8 else requantise_floor
    low, high = (-(2**31), 2**31 - 1) if out.integer.signed else (0, 2**32 - 1)
    places = _addressed(index, x.shape)
    if reduction == "MUL":
        scale, shift = np.resize(scale, 3), np.resize(shift, 3)
        target = v * scale[1]
        for at in np.ndindex(*index.shape[:-1]):
            place = tuple(p[at] for p in places)
            target[place] = finish(target[place] * u[at] * scale[2], 1, shift[2], 0, low, high)
        return finish(target, 1, shift[0], out.scalar_zero, out.low, out.high)
    own, first, second = (int(s) for s in (scale if scale.size == 3 else np.asarray([scale.reshape(-1)[0], 1, 1])))
    target = v * first
    if reduction == "NONE":
        target[places] = np.clip(u * second, low, high)
    else:
        for at in np.ndindex(*index.shape[:-1]):
            place = tuple(p[at] for p in places)
            target[place] = np.clip(REDUCTIONS[reduction](target[place], u[at] * second), low, high)
    return finish(target, own, int(np.asarray(shift).reshape(-1)[0]), out.scalar_zero, out.low, out.high)


def depth_to_space(layer: Layer, x: Array) -> Array:
    by, bx = layer.integer("block_size_y"), layer.integer("block_size_x")
    n, h, w, c = x.shape
    if c % (by * bx):
        raise LayerError(f"{c} channels do not divide into blocks of {by} x {bx}")
    if layer.word("mode", "DCR", ("DCR", "CRD")) == "DCR":
        blocks = x.reshape(n, h, w, by, bx, -1).transpose(0, 1, 3, 2, 4, 5)
    else:
        blocks = x.reshape(n, h, w, -1, by, bx).transpose(0, 1, 4, 2, 5, 3)
    return blocks.reshape(n, h * by, w * bx, -1)


def space_to_depth(layer: Layer, x: Array) -> Array:
    b = layer.integer("block_size_x")
    n, h, w, c = x.shape
    if h % b or w % b:
        raise LayerError(f"an image of {h} x {w} does not divide into blocks of {b}")
    return x.reshape(n, h // b, b, w // b, b, c).transpose(0, 1, 3, 2, 4, 5).reshape(n, h // b, w // b, -1)


def batch_to_space(layer: Layer, x: Array) -> Array:
    by, bx = layer.integer("block_size_y", 2), layer.integer("block_size_x", 2)
    n, h, w, c = x.shape
    y = (
        x.reshape(by, bx, n // (by * bx), h, w, c)
        .transpose(2, 3, 0, 4, 1, 5)
        .reshape(n // (by * bx), h * by, w * bx, c)
    )
    top, bottom, left, right = (layer.integer(f"crop_{s}", 0) for s in ("top", "bottom", "left", "right"))
    return y[:, top : y.shape[1] - bottom, left : y.shape[2] - right]


def batch_to_space_nd(layer: Layer, x: Array) -> Array:
    """The batch holds the blocks of the leading spatial axes, the images of a block innermost."""
    block = layer.integers("block_size")[-(x.ndim - 2) :]
    crops = layer.pairs("crops") if layer.has("crops") else [(0, 0)] * len(block)
    images, spatial, m = x.shape[0] // int(math.prod(block)), x.shape[1:-1], len(block)
    if images * math.prod(block) != x.shape[0] or min(block) < 1:
        raise LayerError(
            f"'block_size' is {block}, but the batch of {list(x.shape)} does not divide by {math.prod(block)}"
        )
    wide = x.reshape(*block, images, *x.shape[1:])
    order = [m, *(axis for i in range(m) for axis in (m + 1 + i, i)), 2 * m + 1]
    y = wide.transpose(order).reshape(images, *(n * b for n, b in zip(spatial, block, strict=True)), x.shape[-1])
    cut = tuple(slice(a, n - b) for n, (a, b) in zip(y.shape[1:-1], crops[-m:], strict=True))
    return y[(slice(None), *cut)]


def data_stride(layer: Layer, x: Array) -> Array:
    """The windows of an image side by side."""
    rows, columns = (stride_places(layer, letter, n) for letter, n in (("y", x.shape[1]), ("x", x.shape[2])))
    return x[:, rows[:, None], columns[None, :]]


def stride_places(layer: Layer, letter: str, size: int) -> Array:
    """The index of the image for each index along an axis of the windows."""
    kernel, stride = layer.integer(f"kernel_{letter}"), layer.integer(f"stride_{letter}")
    if not 0 < kernel <= size or stride < 1:
        raise LayerError(f"'kernel_{letter}' is {kernel}, 'stride_{letter}' is {stride} for {size} elements")
    starts = np.arange((size - kernel) // stride + 1) * stride
    return (starts[:, None] + np.arange(kernel)).reshape(-1)


def space_to_batch(layer: Layer, x: Array) -> Array:
    by, bx = layer.integer("block_size_y", 2), layer.integer("block_size_x", 2)
    pads = tuple(
        (layer.integer(f"pad_{a}", 0), layer.integer(f"pad_{b}", 0)) for a, b in (("top", "bottom"), ("left", "right"))
    )
    wide = np.pad(x, ((0, 0), *pads, (0, 0)), constant_values=_fill(layer))
    n, h, w, c = wide.shape
    blocks = wide.reshape(n, h // by, by, w // bx, bx, c).transpose(2, 4, 0, 1, 3, 5)
    return blocks.reshape(by * bx * n, h // by, w // bx, c)


def channel_shuffle(layer: Layer, x: Array) -> list[Array]:
    group, many = layer.integer("group", 2), layer.integer("splits", 1)
    c = x.shape[-1]
    if c % group or c % many:
        raise LayerError(f"{c} channels do not divide into {group} groups and {many} parts")
    y = x.reshape(*x.shape[:-1], group, c // group).swapaxes(-1, -2).reshape(x.shape)
    return np.split(y, many, -1)


def batch_to_depth(layer: Layer, x: Array) -> Array:
    b = layer.integer("block_size")
    n, h, w, c = x.shape
    return x.reshape(n // b, b, h, w, c).transpose(0, 2, 3, 1, 4).reshape(n // b, h, w, b * c)


def one_hot(layer: Layer, index: Array) -> Array:
    depth, values = layer.integer("depth"), layer.numbers("values", [0, 1])
    axis = layer.integer("axis", -1)
    axis = index.ndim if axis < 0 or axis >= index.ndim else axis
    if len(values) != 2:
        raise LayerError(f"'values' is {values}, expected two numbers, elsewhere and at the index")
    hot = index.astype(np.int64)[..., None] == np.arange(depth)
    return np.moveaxis(np.where(hot, values[1], values[0]), -1, axis)


def constant(layer: Layer) -> Array:
    return layer.constant("weights").reshape(layer.output.shape)


def constant_of_shape(layer: Layer, *shape: Array) -> Array:
    return np.full(layer.output.shape, layer.number("value"))


def shape_of(layer: Layer, x: Array) -> Array:
    return np.asarray(x.shape[layer.integer("start", 0) : layer.integer("end", x.ndim)])


def no_op(layer: Layer, *x: Array) -> list[Array]:
    return [x[0]] * len(layer.outputs) if layer.type == "NoOp" else list(x)


def graph_input(layer: Layer, x: Array) -> Array:
    """Real numbers are quantised; integers are kept."""
    if x.dtype.kind in "iub" or not layer.output.is_integer:
        return x
    return quantise(x, layer.output.scalar_scale, layer.output.scalar_zero, layer.output.low, layer.output.high)
