"""Convolutions and pooling in float32, in pieces that stay in the caches of processors."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from compassc.graph import Layer
from compassc.layers.arithmetic import Array
from compassc.layers.rectify import rectify_float
from compassc.layers.windows import Window, window_of
from compassc.quantizer.threads import spread

BLOCK = 1 << 17
"""Numbers of what windows see that are multiplied in one go."""
STRIP = 1 << 15
"""Numbers of an output that are summed up cell by cell in one go."""
PER_ELEMENT = ("PRELU",)
"""Activations that may have numbers for single elements of the whole output."""
Place = tuple[slice, slice]
"""Samples, and rows of their images."""


def activated(layer: Layer, sums: Array) -> Array:
    method = layer.word("with_activation", "NONE")
    if method == "RELU":
        return np.maximum(sums, np.float32(0), out=sums)
    if method == "RELU6":
        return np.clip(sums, np.float32(0), np.float32(6), out=sums)
    return rectify_float(layer, method, sums)


def biases_of(layer: Layer, outputs: int) -> Array:
    if "biases" not in layer.constants:
        return np.zeros(outputs, np.float32)
    return layer.constants["biases"].reshape(-1).astype(np.float32)


def slices(many: int, each: int, block: int = BLOCK) -> list[slice]:
    """`many` things in pieces of about `block` numbers, `each` of which one thing has."""
    step = max(1, block // max(each, 1))
    return [slice(i, min(i + step, many)) for i in range(0, many, step)]


def places(shape: tuple[int, ...], each: int, block: int) -> list[Place]:
    """Where to compute positions [samples, rows, ...] in pieces: several samples, or some rows of one; `each` position
    takes so many numbers."""
    samples, rows = shape[:2]
    of_row = max(1, int(np.prod(shape[2:]))) * each
    if rows * of_row <= block:
        return [(s, slice(0, rows)) for s in slices(samples, rows * of_row, block)]
    return [(slice(i, i + 1), r) for i in range(samples) for r in slices(rows, of_row, block)]


def padded(x: Array, window: Window, fill: float = 0.0) -> Array:
    if not any(p for pair in window.pads for p in pair):
        return x
    return np.pad(x, ((0, 0), *window.pads, (0, 0)), constant_values=np.float32(fill))


def patches(x: Array, window: Window, positions: tuple[int, ...]) -> Array:
    """[N, positions..., kernel..., C]: a view of what the window sees."""
    strides = x.strides
    inner = tuple(s * d for s, d in zip(strides[1:-1], window.dilation, strict=True))
    outer = tuple(s * step for s, step in zip(strides[1:-1], window.stride, strict=True))
    shape = (x.shape[0], *positions, *window.kernel, x.shape[-1])
    return np.lib.stride_tricks.as_strided(x, shape, (strides[0], *outer, *inner, strides[-1]), writeable=False)


def convolution(layer: Layer, x: Array) -> Array | None:
    weights = layer.constant("weights").astype(np.float32, copy=False)
    window = window_of(layer)
    if weights.ndim != x.ndim or x.ndim > 4 or any(p < 0 for pair in window.pads for p in pair):
        return None
    outputs, channels = weights.shape[0], x.shape[-1]
    groups = layer.integer("group", channels if layer.type == "DepthwiseConv" else 1)
    positions = window.positions(x.shape[1:-1])
    if weights.shape[1:] != (*window.kernel, channels // groups) or outputs % groups or min(positions) < 1:
        return None
    wide = np.ascontiguousarray(padded(x, window))
    made = np.empty((x.shape[0], *positions, outputs), np.float32)
    if groups == channels and weights.shape[-1] == 1:
        block, listed = _by_channel(wide, weights, window, made), places(made.shape[:-1], outputs, STRIP)
    else:
        numbers = max(outputs, weights[0].size * groups)
        block, listed = _by_group(wide, weights, window, made, groups), places(made.shape[:-1], numbers, BLOCK)
    biases, whole = biases_of(layer, outputs), layer.word("with_activation", "NONE") in PER_ELEMENT

    def piece(place: Place) -> None:
        block(place)
        own = made[place]
        own += biases
        if not whole:
            made[place] = activated(layer, own)

    spread(piece, listed)
    return activated(layer, made) if whole else made


def _by_group(x: Array, weights: Array, window: Window, made: Array, groups: int) -> Callable[[Place], None]:
    """What windows see, as a matrix for each group of channels, times the filters."""
    own = weights.shape[0] // groups
    views = patches(x, window, made.shape[1:-1])
    views = views if groups == 1 else _split(views, groups)
    columns = np.ascontiguousarray(weights.reshape(groups, own, -1).transpose(0, 2, 1))

    def block(place: Place) -> None:
        seen, sums = views[place], made[place]
        if groups == 1:
            np.matmul(np.ascontiguousarray(seen).reshape(-1, columns.shape[1]), columns[0], out=sums.reshape(-1, own))
            return
        rows = np.ascontiguousarray(np.moveaxis(seen, -2, 0)).reshape(groups, -1, columns.shape[1])
        sums[...] = np.moveaxis(rows @ columns, 0, 1).reshape(sums.shape)

    return block


def _split(views: Array, groups: int) -> Array:
    """The last axis as [groups, channels of one], without a copy."""
    inner, stride = views.shape[-1] // groups, views.strides[-1]
    shape = (*views.shape[:-1], groups, inner)
    return np.lib.stride_tricks.as_strided(views, shape, (*views.strides[:-1], inner * stride, stride), writeable=False)


def _by_channel(x: Array, weights: Array, window: Window, made: Array) -> Callable[[Place], None]:
    """Each cell of the window at a time; output channel o sees the input channel o div multiplier."""
    multiplier, columns = weights.shape[0] // x.shape[-1], made.shape[-2]
    cells = strips(np.repeat(x, multiplier, -1) if multiplier > 1 else x, window, made.shape[1:-1])
    # a factor for each number of a line of the image: one long loop, and not one per column
    filters = np.tile(weights.reshape(len(weights), -1).T, columns)

    def block(place: Place) -> None:
        own = made[place]
        sums = own.reshape(*own.shape[:-2], -1)
        product = np.empty_like(sums)
        for i, seen in enumerate(cells(place)):
            if i:
                sums += np.multiply(seen, filters[i], out=product)
            else:
                np.multiply(seen, filters[i], out=sums)

    return block


def strips(x: Array, window: Window, positions: tuple[int, ...]) -> Callable[[Place], Iterator[Array]]:
    """Of some rows of positions, for each cell of the window what it sees: [samples, rows, ..., columns * channels].

    Columns that windows step over are taken apart first, so that what a cell sees of a line is one piece.
    """
    step, stretch, many = window.stride[-1], window.dilation[-1], positions[-1]
    apart = [x if step == 1 else np.ascontiguousarray(x[..., first::step, :]) for first in range(step)]

    def cells(place: Place) -> Iterator[Array]:
        samples, rows = place
        ranges = [(rows.start, rows.stop), *((0, n) for n in positions[1:])]
        for cell in np.ndindex(*window.kernel):
            at = [
                slice(first * s + c * d, (last - 1) * s + c * d + 1, s)
                for c, d, s, (first, last) in zip(cell, window.dilation, window.stride, ranges, strict=True)
            ][:-1]
            start, which = divmod(cell[-1] * stretch, step)
            columns = slice(start, start + many) if at else slice(start + rows.start, start + rows.stop)
            seen = apart[which][(samples, *at, columns)]
            yield seen.reshape(*seen.shape[:-2], -1)

    return cells


def pooling(layer: Layer, x: Array) -> Array | None:
    """Maxima and means over whole windows, cell by cell."""
    method = layer.word("method")
    window = window_of(layer)
    positions = tuple(layer.output.shape[1:-1])
    plain = x.ndim == 4 and window.positions(x.shape[1:-1]) == positions
    whole = method == "MAX" or not any(p for pair in window.pads for p in pair)
    if not plain or not whole or method not in ("MAX", "AVG") or any(p < 0 for pair in window.pads for p in pair):
        return None
    if method == "AVG" and window.kernel == x.shape[1:-1]:
        return np.asarray(x.mean((1, 2), keepdims=True, dtype=np.float32))
    wide = np.ascontiguousarray(padded(x, window, float(np.finfo(np.float32).min)))
    made = np.empty((x.shape[0], *positions, x.shape[-1]), np.float32)
    cells, join = strips(wide, window, positions), np.maximum if method == "MAX" else np.add

    def piece(place: Place) -> None:
        own = made[place]
        found = own.reshape(*own.shape[:-2], -1)
        for i, seen in enumerate(cells(place)):
            if i:
                join(found, seen, out=found)
            else:
                found[...] = seen
        if method == "AVG":
            found /= np.float32(np.prod(window.kernel))

    spread(piece, places(made.shape[:-1], x.shape[-1], STRIP))
    return made
