"""Kernels of layers that move elements to places known when the graph is built."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compass_core.aipubin.layout import REGION_SIZE
from compass_core.arrays import Array
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError
from compassc.graph.dtypes import numpy_dtype
from compassc.layers.element_copies import Copy, copied, copied_whole, filled, strides_of
from compassc.layers.families.movement.branches import Branch, Side, rescaled
from compassc.layers.families.movement.indexed import fill_value, sliced_at_run_time
from compassc.layers.families.movement.reference import PAD_MODES, branch_factors, kept_of, slice_indices, stride_places
from compassc.layers.families.movement.reference import batch_to_space_nd as batch_to_space_nd_reference
from compassc.layers.kernel import Kernel
from compassc.layers.kernels import kernel
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.remapping import OUTSIDE, remap_kernel, remapped
from compassc.layers.vectors import bits_of, wide_kind


def same_type(layer: Layer) -> None:
    if any(t.dtype != layer.input.dtype for t in layer.outputs):
        raise LayerError(f"its input is {layer.input.dtype}, its output {layer.output.dtype}; it keeps the type")


def _copied(layer: Layer, copies: list[Copy]) -> Kernel:
    """A copy of the input's elements for each output."""
    same_type(layer)
    return _raw(layer, copies)


def _raw(layer: Layer, copies: list[Copy]) -> Kernel:
    """A copy of the input's bits for each output."""
    k = LayerKernel()
    with k.active():
        source = k.raw(layer.input)
        for y, copy in zip(layer.outputs, copies, strict=True):
            if y.count:
                copied(k, copy, source, k.raw(y))
    return k.kernel()


@kernel("Reshape", "Squeeze", "Unsqueeze", "Flatten", "NoOp", "Dummy")
def reshape(layer: Layer) -> Kernel:
    x = layer.input
    if layer.type == "Dummy" and len(layer.inputs) > 1:
        raise LayerError("Dummy of several tensors has no kernel")
    if any(y.count != x.count for y in layer.outputs):
        raise LayerError(f"{list(x.shape)} and {list(layer.output.shape)} have different numbers of elements")
    return _copied(layer, [Copy((x.count,), 0, (1,), 0, (1,)) for _ in layer.outputs])


def same_bits(layer: Layer) -> Kernel:
    """The kernel of an output that has the bits of the input."""
    return _raw(layer, [Copy((layer.input.count,), 0, (1,), 0, (1,))])


@kernel("Transpose", "Permute")
def transpose(layer: Layer) -> Kernel:
    x, y, perm = layer.input, layer.output, layer.integers("perm")
    if sorted(perm) != list(range(len(x.shape))) or [x.shape[p] for p in perm] != list(y.shape):
        raise LayerError(f"'perm' is {perm}, which does not take {list(x.shape)} to {list(y.shape)}")
    near = strides_of(x.shape)
    return _copied(layer, [Copy(y.shape, 0, tuple(near[p] for p in perm), 0, strides_of(y.shape))])


@kernel("Split")
def split(layer: Layer) -> Kernel:
    x, axis = layer.input, layer.axis()
    sizes = [y.shape[axis] for y in layer.outputs]
    if sum(sizes) != x.shape[axis] or layer.integers("splits", sizes) != sizes:
        raise LayerError(
            f"'splits' is {layer.attributes.get('splits')}, but the outputs have {sizes} of {x.shape[axis]}"
        )
    for y, n in zip(layer.outputs, sizes, strict=True):
        made = [n if a == axis else m for a, m in enumerate(x.shape)]
        if list(y.shape) != made:
            raise LayerError(f"'{y.name}' is declared as {list(y.shape)}, but the layer gives {made}")
    near, first, copies = strides_of(x.shape), 0, []
    for y in layer.outputs:
        copies.append(Copy(y.shape, first * near[axis], near, 0, strides_of(y.shape)))
        first += y.shape[axis]
    return _copied(layer, copies)


@kernel("Concat")
def concat(layer: Layer) -> Kernel:
    """Each branch is copied to its place, after being brought to the output's scale."""
    _check_branches(layer)
    k, y, axis, first = LayerKernel(), layer.output, layer.axis(), 0
    strides, (scale, shift) = strides_of(y.shape), branch_factors(layer)
    with k.active():
        target = k.tensor(y)
        for i, x in enumerate(layer.inputs):
            place = Copy(x.shape, 0, strides_of(x.shape), first * strides[axis], strides)
            first += x.shape[axis]
            if not x.count:
                continue
            pointer = k.tensor(x)
            m, n = (v.reshape(-1)[i % v.size].reshape(()) for v in (scale, shift))
            plain = not layer.is_quantised or (
                (int(m) == 1 and not int(n)) and x.scalar_zero == y.scalar_zero and y.low <= x.low and x.high <= y.high
            )
            if plain and x.dtype == y.dtype:
                copied(k, place, *(p.as_ptr(bits_of(y.dtype)) for p in (pointer, target)))
                continue
            wide_kind(x)
            inner = x.shape[axis] * strides[axis]
            branch = Branch(x.count // inner, inner, place.target, y.shape[axis] * strides[axis])
            rescaled(k, branch, (Side(x, pointer), Side(y, target)), m, n)
    return k.kernel()


def _check_branches(layer: Layer) -> None:
    """LayerError where branches do not make the output."""
    y, axis = layer.output, layer.axis()
    for x in layer.inputs:
        if len(x.shape) != len(layer.input.shape):
            raise LayerError(f"'{x.name}' is {list(x.shape)}, but '{layer.input.name}' is {list(layer.input.shape)}")
    scale, shift = branch_factors(layer)
    made = [sum(x.shape[axis] for x in layer.inputs) if a == axis else n for a, n in enumerate(layer.input.shape)]
    shapes = [list(x.shape) for x in layer.inputs]
    if list(y.shape) != made or any(
        [m for a, m in enumerate(s) if a != axis] != made[:axis] + made[axis + 1 :] for s in shapes
    ):
        raise LayerError(f"'{y.name}' is declared as {list(y.shape)}, but {shapes} on 'axis' {axis} give {made}")
    if any(v.size not in (1, len(shapes)) for v in (scale, shift)):
        raise LayerError(
            f"'scale_value' has {scale.size} and 'shift_value' {shift.size} values, expected {len(shapes)} for the inputs"
        )


@kernel("Pad")
def pad(layer: Layer) -> Kernel:
    """A constant border first, then the input in its place; other borders are input elements too."""
    mode, pads = layer.word("mode", "CONSTANT", tuple(PAD_MODES)), layer.pairs("pads")
    x, y = layer.input, layer.output
    if len(pads) != len(x.shape) or [n + a + b for n, (a, b) in zip(x.shape, pads, strict=True)] != list(y.shape):
        raise LayerError(f"'pads' is {pads}, which does not take {list(x.shape)} to {list(y.shape)}")
    kept = [kept_of(n, p) for n, p in zip(x.shape, pads, strict=True)]
    border = [(max(a, 0), max(b, 0)) for a, b in pads]
    if mode == "CONSTANT":
        return _bordered(layer, kept, border)
    near = strides_of(x.shape)
    moved = [
        np.pad((np.arange(n) * s)[part], p, PAD_MODES[mode])  # type: ignore[call-overload]
        for n, s, part, p in zip(x.shape, near, kept, border, strict=True)
    ]
    return remap_kernel(x, y, moved)


def _bordered(layer: Layer, kept: list[slice], pads: list[tuple[int, int]]) -> Kernel:
    same_type(layer)
    k, x, y = LayerKernel(), layer.input, layer.output
    value = layer.number("constant_value", 0)
    if y.is_integer and not y.integer.low <= round(value) <= y.integer.high:
        raise LayerError(f"'constant_value' is {value:g}, which {y.dtype} does not hold")
    near, strides = strides_of(x.shape), strides_of(y.shape)
    first = sum(before * s for (before, _), s in zip(pads, strides, strict=True))
    begin = sum(p.start * s for p, s in zip(kept, near, strict=True))
    part = tuple(p.stop - p.start for p in kept)
    with k.active():
        source, target = k.raw(x), k.raw(y)
        filled(k, y, target, fill_value(round(value) if y.is_integer else value, y))
        S.barrier()
        if 0 not in part:
            copied(k, Copy(part, begin, near, first, strides), source, target)
    return k.kernel()


def _taken(layer: Layer, indices: Sequence[Sequence[int] | Array]) -> Kernel:
    """The kernel of an output whose index along each axis is one of the input's."""
    x, y = layer.input, layer.output
    if [len(i) for i in indices] != list(y.shape):
        raise LayerError(f"its attributes lead to the shape {[len(i) for i in indices]}, the output is {list(y.shape)}")
    near = strides_of(x.shape)
    return remap_kernel(x, y, [np.asarray(i, np.int64) * s for i, s in zip(indices, near, strict=True)])


@kernel("Slice", "StridedSlice")
def slices(layer: Layer) -> Kernel:
    if len(layer.inputs) > 1:
        return sliced_at_run_time(layer)
    shape, given = layer.input.shape, [layer.integers(key) for key in ("begin", "end", "strides")]
    if any(len(g) != len(shape) for g in given):
        words = ", ".join(f"'{key}' {g}" for key, g in zip(("begin", "end", "strides"), given, strict=True))
        raise LayerError(f"it has {words}, expected {len(shape)} numbers each")
    return _taken(layer, [slice_indices(b, e, s, n) for b, e, s, n in zip(*given, shape, strict=True)])


@kernel("Crop")
def crop(layer: Layer) -> Kernel:
    shape, crops = layer.input.shape, layer.pairs("crops")
    if len(crops) != len(shape):
        raise LayerError(f"'crops' is {crops}, but the input has {len(shape)} dimensions")
    indices = []
    for n, (begin, end) in zip(shape, crops, strict=True):
        indices.append(list(range(begin + n if begin < 0 else begin, min(end + n if end < 0 else end, n))))
    return _taken(layer, indices)


@kernel("Tile")
def tile(layer: Layer) -> Kernel:
    shape, repeats = layer.input.shape, layer.integers("repeats")
    if len(repeats) != len(shape):
        raise LayerError(f"'repeats' is {repeats}, but the input has {len(shape)} dimensions")
    return _taken(layer, [np.tile(np.arange(n), r) for n, r in zip(shape, repeats, strict=True)])


def _image(layer: Layer) -> tuple[int, int, int, int]:
    if len(layer.input.shape) != 4:
        raise LayerError(f"the input is {list(layer.input.shape)}, expected NHWC images")
    if (
        layer.output.count * numpy_dtype(layer.output.dtype).itemsize > REGION_SIZE
    ):  # the table of its places is as large
        raise LayerError(f"the output '{layer.output.name}' is {list(layer.output.shape)}, more than a device holds")
    n, h, w, c = layer.input.shape
    return n, h, w, c


def _remapped(layer: Layer, places: list[Array]) -> Kernel:
    """`places`: one array for each axis of the output."""
    found = [len(p) for p in places]
    if found != list(layer.output.shape):
        raise LayerError(f"its attributes lead to the shape {found}, the output is {list(layer.output.shape)}")
    return remap_kernel(layer.input, layer.output, places)


@kernel("DepthToSpace")
def depth_to_space(layer: Layer) -> Kernel:
    n, h, w, c = _image(layer)
    by, bx = layer.integer("block_size_y"), layer.integer("block_size_x")
    if c % (by * bx):
        raise LayerError(f"{c} channels do not divide into blocks of {by} x {bx}")
    depth, last = c // (by * bx), layer.word("mode", "DCR", ("DCR", "CRD")) == "CRD"
    cell, channel = (1, by * bx) if last else (depth, 1)
    rows_, columns = np.arange(h * by), np.arange(w * bx)
    return _remapped(
        layer,
        [
            np.arange(n) * h * w * c,
            rows_ // by * w * c + rows_ % by * bx * cell,
            columns // bx * c + columns % bx * cell,
            np.arange(depth) * channel,
        ],
    )


@kernel("SpaceToDepth")
def space_to_depth(layer: Layer) -> Kernel:
    n, h, w, c = _image(layer)
    b = layer.integer("block_size_x")
    if h % b or w % b:
        raise LayerError(f"an image of {h} x {w} does not divide into blocks of {b}")
    down, across, channel = np.ogrid[:b, :b, :c]
    return _remapped(
        layer,
        [
            np.arange(n) * h * w * c,
            np.arange(h // b) * b * w * c,
            np.arange(w // b) * b * c,
            (down * w * c + across * c + channel).reshape(-1),
        ],
    )


@kernel("BatchToSpace")
def batch_to_space(layer: Layer) -> Kernel:
    n, h, w, c = _image(layer)
    by, bx = layer.integer("block_size_y", 2), layer.integer("block_size_x", 2)
    if n % (by * bx):
        raise LayerError(f"{n} images do not divide into blocks of {by} x {bx}")
    top, bottom, left, right = (layer.integer(f"crop_{s}", 0) for s in ("top", "bottom", "left", "right"))
    rows_, columns = np.arange(top, h * by - bottom), np.arange(left, w * bx - right)
    images, size = n // (by * bx), h * w * c
    return _remapped(
        layer,
        [
            np.arange(images) * size,
            rows_ % by * bx * images * size + rows_ // by * w * c,
            columns % bx * images * size + columns // bx * c,
            np.arange(c),
        ],
    )


@kernel("BatchToSpaceND")
def batch_to_space_nd(layer: Layer) -> Kernel:
    """As its reference moves the places of the elements along each axis."""
    x, y = layer.input, layer.output
    if not 3 <= len(x.shape) <= 5:
        raise LayerError(f"the input is {list(x.shape)}, expected images of one to three axes")
    places = batch_to_space_nd_reference(layer, np.arange(x.count).reshape(x.shape))
    if places.shape != y.shape:
        raise LayerError(f"its attributes lead to the shape {list(places.shape)}, the output is {list(y.shape)}")
    return remap_kernel(x, y, [places[..., 0].reshape(-1), np.arange(x.shape[-1])])


@kernel("DataStride")
def data_stride(layer: Layer) -> Kernel:
    n, h, w, c = _image(layer)
    rows_, columns = stride_places(layer, "y", h), stride_places(layer, "x", w)
    return _taken(layer, [np.arange(n), rows_, columns, np.arange(c)])


@kernel("SpaceToBatch")
def space_to_batch(layer: Layer) -> Kernel:
    n, h, w, c = _image(layer)
    by, bx = layer.integer("block_size_y", 2), layer.integer("block_size_x", 2)
    top, bottom, left, right = (layer.integer(f"pad_{s}", 0) for s in ("top", "bottom", "left", "right"))
    high, wide = h + top + bottom, w + left + right
    if high % by or wide % bx:
        raise LayerError(f"an image of {high} x {wide} does not divide into blocks of {by} x {bx}")
    if layer.output.shape != (by * bx * n, high // by, wide // bx, c):
        raise LayerError(f"its attributes do not lead to the shape {list(layer.output.shape)}")
    # the pads of columns depend on the place in the block, an index of the batch: pixels have one table
    dy, dx, image, i, j = np.ogrid[:by, :bx, :n, : high // by, : wide // bx]
    y, x = i * by + dy - top, j * bx + dx - left
    inside = (0 <= y) & (y < h) & (0 <= x) & (x < w)
    pixels = np.where(inside, ((image * h + y) * w + x) * c, OUTSIDE)
    zero = -layer.output.scalar_zero if layer.is_quantised else 0
    places = [pixels.reshape(-1), np.arange(c)]
    return remap_kernel(layer.input, layer.output, places, fill_value(zero, layer.output))


@kernel("BatchToDepth")
def batch_to_depth(layer: Layer) -> Kernel:
    n, h, w, c = _image(layer)
    b = layer.integer("block_size")
    if n % b:
        raise LayerError(f"{n} images do not divide into groups of {b}")
    size = h * w * c
    channels = (np.arange(b)[:, None] * size + np.arange(c)).reshape(-1)
    return _remapped(layer, [np.arange(n // b) * b * size, np.arange(h) * w * c, np.arange(w) * c, channels])


@kernel("ChannelShuffle")
def channel_shuffle(layer: Layer) -> Kernel:
    same_type(layer)
    x, group, many = layer.input, layer.integer("group", 2), layer.integer("splits", 1)
    c = x.shape[-1]
    if c % group or c % many or many != len(layer.outputs):
        raise LayerError(f"{c} channels do not divide into {group} groups and {many} outputs")
    channels = np.arange(c).reshape(group, c // group).T.reshape(-1)
    pixels = np.arange(x.count // c) * c
    k = LayerKernel()
    with k.active():
        source = k.raw(x)
        for y, part in zip(layer.outputs, np.split(channels, many), strict=True):
            remapped(k, x, y, [pixels, part], (source, k.raw(y)))
    return k.kernel()


@kernel("Meshgrid")
def meshgrid(layer: Layer) -> Kernel:
    turned = layer.word("indexing", "xy", ("XY", "IJ")) == "XY"
    if len(layer.inputs) != 2 or len(layer.outputs) != 2:
        raise LayerError(f"it has {len(layer.inputs)} inputs and {len(layer.outputs)} outputs, expected two of each")
    sizes = [t.count for t in layer.inputs]
    for i, y in enumerate(layer.outputs):
        whole = [1 if layer.flag("sparse", False) and n != i else m for n, m in enumerate(sizes)]
        want = tuple(reversed(whole)) if turned else tuple(whole)
        if y.shape != want:
            raise LayerError(f"'{y.name}' is {list(y.shape)}, expected {list(want)}")
    k = LayerKernel()
    with k.active():
        for i, (x, y) in enumerate(zip(layer.inputs, layer.outputs, strict=True)):
            own = 1 - i if turned else i
            places = [np.arange(n) if axis == own else np.zeros(n, np.int64) for axis, n in enumerate(y.shape)]
            if len(x.shape) != 1 or len(y.shape) != 2 or y.shape[own] != x.count:
                raise LayerError(f"{list(x.shape)} does not lead to a grid of {list(y.shape)}")
            remapped(k, x, y, places, (k.raw(x), k.raw(y)))
    return k.kernel()


def _given(layer: Layer, values: Array) -> Kernel:
    """An output that is known when the graph is built."""
    k, y = LayerKernel(), layer.output
    stored = np.ascontiguousarray(values.astype(numpy_dtype(y.dtype))).reshape(-1)
    if stored.size != y.count:
        raise LayerError(f"{stored.size} values do not make the shape {list(y.shape)}")
    with k.active():
        raw = k.pointer(stored.view({1: "uint8", 2: "uint16", 4: "int32"}[stored.itemsize]))
        copied_whole(k, y.count, raw, k.raw(y))
    return k.kernel()


@kernel("Constant")
def constant(layer: Layer) -> Kernel:
    return _given(layer, layer.constant("weights"))


@kernel("Shape")
def shape_of(layer: Layer) -> Kernel:
    shape = layer.input.shape
    return _given(layer, np.asarray(shape[layer.integer("start", 0) : layer.integer("end", len(shape))]))


@kernel("ConstantOfShape")
def constant_of_shape(layer: Layer) -> Kernel:
    k, y = LayerKernel(), layer.output
    with k.active():
        filled(k, y, k.raw(y), fill_value(layer.number("value"), y))
    return k.kernel()
