"""Shape rules of layers that move elements, by their attributes alone: nothing is computed, whatever sizes they name."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from compass_core.lazy import LazyModule
from compassc.graph import Layer, LayerError
from compassc.layers.families.movement.reference import PAD_MODES, kept_of, slice_indices

if TYPE_CHECKING:
    from compassc.layers.families.normalise import reference as norms
else:
    norms = LazyModule("compassc.layers.families.normalise.reference")

Shape = tuple[int, ...]


def concat(layer: Layer) -> list[Shape]:
    axis, shapes = layer.axis(), [t.shape for t in layer.inputs]
    rest = {(*s[:axis], *s[axis + 1 :]) for s in shapes}
    if len(rest) != 1 or len({len(s) for s in shapes}) != 1:
        raise LayerError(f"the shapes {', '.join(str(list(s)) for s in shapes)} differ in more than axis {axis}")
    return [(*shapes[0][:axis], sum(s[axis] for s in shapes), *shapes[0][axis + 1 :])]


def tile(layer: Layer) -> list[Shape]:
    repeats, shape = layer.integers("repeats"), layer.input.shape
    if min(repeats, default=0) < 0:
        raise LayerError(f"'repeats' is {repeats}, expected numbers that are not negative")
    rank = max(len(repeats), len(shape))
    repeats, shape = [1] * (rank - len(repeats)) + repeats, (1,) * (rank - len(shape)) + tuple(shape)
    return [tuple(n * r for n, r in zip(shape, repeats, strict=True))]


def pad(layer: Layer) -> list[Shape]:
    pads, shape = layer.pairs("pads"), layer.input.shape
    layer.word("mode", "CONSTANT", tuple(PAD_MODES))
    if len(pads) != len(shape):
        raise LayerError(f"'pads' is {pads}, but the input has {len(shape)} dimensions")
    for size, pair in zip(shape, pads, strict=True):
        kept_of(size, pair)
    return [tuple(n + a + b for n, (a, b) in zip(shape, pads, strict=True))]


def sliced(layer: Layer) -> list[Shape] | None:
    """By attributes; what inputs say is only known at run time."""
    if len(layer.inputs) > 1:
        return None
    given = list(zip(*(layer.integers(key) for key in ("begin", "end", "strides")), strict=True))
    shape = layer.input.shape
    if len(given) > len(shape):
        raise LayerError(f"'begin' has {len(given)} numbers, but the input has {len(shape)} dimensions")
    sizes = (len(slice_indices(b, e, s, n)) for (b, e, s), n in zip(given, shape, strict=False))
    return [(*sizes, *shape[len(given) :])]


def cropped(layer: Layer) -> list[Shape]:
    crops, shape = layer.pairs("crops"), layer.input.shape
    if len(crops) != len(shape):
        raise LayerError(f"'crops' is {crops}, but the input has {len(shape)} dimensions")
    found = []
    for n, (begin, end) in zip(shape, crops, strict=True):
        first = begin + n if begin < 0 else begin
        found.append(len(range(n)[slice(first, max(first, min(end + n if end < 0 else end, n)))]))
    return [tuple(found)]


def one_hot(layer: Layer) -> list[Shape]:
    shape, depth, axis = layer.input.shape, layer.integer("depth"), layer.integer("axis", -1)
    if depth < 0 or len(layer.numbers("values", [0, 1])) != 2:
        raise LayerError(f"'depth' is {depth}, and 'values' {layer.attributes.get('values')}, expected two numbers")
    at = len(shape) if axis < 0 or axis >= len(shape) else axis
    return [(*shape[:at], depth, *shape[at:])]


def dimensions(layer: Layer) -> list[Shape]:
    rank = len(layer.input.shape)
    return [(len(range(rank)[layer.integer("start", 0) : layer.integer("end", rank)]),)]


def meshgrid(layer: Layer) -> list[Shape]:
    rows, columns = (t.count for t in layer.inputs)
    first, sparse = layer.word("indexing", "xy", ("XY", "IJ")) == "IJ", layer.flag("sparse", False)
    whole = (rows, columns) if first else (columns, rows)
    if not sparse:
        return [whole, whole]
    return [(rows, 1), (1, columns)] if first else [(1, rows), (columns, 1)]


def picked(layer: Layer) -> list[Shape]:
    """Of the index."""
    return [tuple(layer.inputs[1].shape)]


def kept(layer: Layer) -> list[Shape]:
    """The reduced axes have the size 1."""
    axes = layer.axes()
    return [tuple(1 if i in axes else n for i, n in enumerate(layer.input.shape))] * len(layer.outputs)


def normalised(layer: Layer) -> list[Shape]:
    """As the input; then what the elements were normalised by, the axes of size 1."""
    for key in ("weights", "biases"):
        norms.affine(layer, key)
    axes, shape = norms.norm_axes(layer), tuple(layer.input.shape)
    small = tuple(1 if i in axes else n for i, n in enumerate(shape))
    return [shape, small, small][: len(layer.outputs)]


def batch_to_space(layer: Layer) -> list[Shape]:
    (n, h, w, c), by, bx = layer.input.shape, layer.integer("block_size_y", 2), layer.integer("block_size_x", 2)
    top, bottom, left, right = (layer.integer(f"crop_{s}", 0) for s in ("top", "bottom", "left", "right"))
    if by < 1 or bx < 1 or n % (by * bx) or min(top, bottom, left, right) < 0:
        raise LayerError(f"a batch of {n} images does not divide into blocks of {by} x {bx}")
    return [(n // (by * bx), max(0, h * by - top - bottom), max(0, w * bx - left - right), c)]


def batch_to_space_nd(layer: Layer) -> list[Shape]:
    batch, *spatial, channels = layer.input.shape
    block = layer.integers("block_size")[-len(spatial) :]
    crops = layer.pairs("crops") if layer.has("crops") else [(0, 0)] * len(block)
    if len(block) != len(spatial) or min(block) < 1 or batch % prod(block):
        raise LayerError(f"'block_size' is {block}, but the batch of {list(layer.input.shape)} does not divide by it")
    sizes = (
        len(range(n * b)[a : n * b - z]) for n, b, (a, z) in zip(spatial, block, crops[-len(block) :], strict=True)
    )
    return [(batch // prod(block), *sizes, channels)]


def space_to_batch(layer: Layer) -> list[Shape]:
    (n, h, w, c), by, bx = layer.input.shape, layer.integer("block_size_y", 2), layer.integer("block_size_x", 2)
    top, bottom, left, right = (layer.integer(f"pad_{s}", 0) for s in ("top", "bottom", "left", "right"))
    high, wide = h + top + bottom, w + left + right
    if by < 1 or bx < 1 or high % by or wide % bx or min(top, bottom, left, right) < 0:
        raise LayerError(f"an image of {high} x {wide} with its pads does not divide into blocks of {by} x {bx}")
    return [(by * bx * n, high // by, wide // bx, c)]


def batch_to_depth(layer: Layer) -> list[Shape]:
    (n, h, w, c), block = layer.input.shape, layer.integer("block_size")
    if block < 1 or n % block:
        raise LayerError(f"'block_size' is {block}, but there are {n} images")
    return [(n // block, h, w, block * c)]


def side_by_side(layer: Layer) -> list[Shape]:
    """The windows of an image one beside the other."""
    n, h, w, c = layer.input.shape
    found = []
    for letter, size in (("y", h), ("x", w)):
        kernel, stride = layer.integer(f"kernel_{letter}"), layer.integer(f"stride_{letter}")
        if not 0 < kernel <= size or stride < 1:
            raise LayerError(f"'kernel_{letter}' is {kernel}, 'stride_{letter}' is {stride} for {size} elements")
        found.append(((size - kernel) // stride + 1) * kernel)
    return [(n, *found, c)]
