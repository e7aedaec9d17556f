"""Sums of products under windows that slide over images, in pieces that stay in the caches of processors, on all of these.

In the type of the weights: real numbers, or whole ones whose sums that type holds exactly (`exact_type`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache, partial
from math import inf, prod

import numpy as np

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compassc.graph import LayerError
from compassc.layers.float_loops import (
    FILTERS_AT_ONCE,
    SumLoop,
    UnderWindows,
    Wanted,
    aligned,
    finish,
    side_by_side,
    sum_loop,
)
from compassc.layers.threads import at_work, in_one_piece, spread
from compassc.layers.windows import Window, padded

BLOCK = 1 << 17
"""Numbers of what windows see that are multiplied in one go."""
ROWS = 192
"""Positions that are multiplied in one go at least: the library lays the filters out anew for each product."""
MOST_FACTORS = 1 << 19
"""Of filters whose sums are made without a matrix of what windows see: with more of them BLAS takes less time."""
STRIP = 1 << 15
"""Numbers of an output that are summed up cell by cell in one go."""
Place = tuple[slice, slice]
"""Samples, and rows of their images."""
Sums = Callable[[Place, Array], None]
"""`sums(place, out)` writes the sums at a place, [samples, rows, ..., O]."""
End = Callable[[Array], Array]
"""What is made of sums [samples, rows, ..., O], which it may overwrite."""
OfImages = Callable[[Array], Sums]
"""The sums of images in the type of the weights."""


def exact_type(weights: Array, magnitude: int, axis: int = 0) -> type[np.floating]:
    """The float type whose sums of products of whole `weights`, one sum for each of `axis`, with numbers of up to
    `magnitude` are exact, whatever their order: float32 up to 2^24, else float64."""
    most, many = int(np.abs(weights).max(initial=0)), weights.size // max(weights.shape[axis], 1)
    if most * many * magnitude > 1 << 24:
        others = tuple(i for i in range(weights.ndim) if i != axis % weights.ndim)
        most, many = int(np.abs(weights).sum(others, np.int64).max(initial=0)), 1
    return np.float32 if most * many * magnitude <= 1 << 24 else np.float64


@dataclass(frozen=True)
class Filters:
    """Weights [O, kernel..., I / groups] that may be used more than once; what is added to their sums, float32 [O], and
    their limits."""

    weights: Array
    biases: Array | None = None
    limits: tuple[float, float] = (-inf, inf)

    def finish(self, sums: Array) -> None:
        """Of sums [..., positions, O]."""
        if self.biases is not None:
            # a line for each line of an image: one long loop, and not one per position
            finish(sums.reshape(*sums.shape[:-2], -1), np.tile(self.biases, sums.shape[-2]), *self.limits)

    def at(self, window: Window, channels: int, fill: float) -> UnderWindows:
        """Their sums over images of so many channels; -0.0, which changes no sum, where there are no biases."""
        outputs = len(self.weights)
        line = np.full(-(-outputs // FILTERS_AT_ONCE) * FILTERS_AT_ONCE, -0.0, np.float32)
        if self.biases is not None:
            line[:outputs] = self.biases
        return UnderWindows(np.full(channels, fill, np.float32), window, line, self.limits)

    @cached_property
    def panels(self) -> Array:
        return side_by_side(self.weights.reshape(len(self.weights), -1))

    @cached_property
    def factors(self) -> Array:
        """[cells, O], of weights that see one channel each."""
        found = self.weights.reshape(len(self.weights), -1).T
        if found.dtype != np.float32:
            return np.ascontiguousarray(found)
        made = aligned(found.size).reshape(found.shape)
        made[...] = found
        return made


class WindowSums:
    """Sums of products under a window over images of one shape: what does not depend on an image is found once."""

    def __init__(self, shape: tuple[int, ...], filters: Filters, window: Window, groups: int, fill: float) -> None:
        """Of images [n, sizes..., I], by filters [O, kernel..., I / groups]. LayerError where these do not fit."""
        weights = filters.weights
        outputs, channels = weights.shape[0], shape[-1]
        expected = (*window.kernel, channels // groups)
        if weights.shape[1:] != expected or outputs % groups or channels % groups:
            raise LayerError(
                f"'weights' is {list(weights.shape)}, but the window, {channels} input channels and "
                f"{groups} groups want {[outputs, *expected]}"
            )
        positions = window.positions(shape[1:-1])
        if min(positions) < 1:
            raise LayerError(f"the window of {list(window.reach)} is larger than the padded image")
        self._sums: OfImages
        self._loop: SumLoop | None
        self._kind, self._made = weights.dtype, (shape[0], *positions, outputs)
        made, self._count = self._made[:-1], prod(self._made)
        self._loop, self._image = None, partial(_repeated, 1)
        if groups == channels and channels > 1:
            self._image = partial(_repeated, outputs // channels)
            given = filters.at(window, outputs, fill), filters.factors
            self._loop = sum_loop("channel_sums", *given, (*shape[:-1], outputs), outputs)
            self._sums = partial(_by_channel, self._image, filters, window, positions, fill)
            self._places = places(made, outputs, BLOCK if self._loop else STRIP)
        elif groups == 1 and weights.dtype == np.float32 and len(shape) == 4 and weights.size <= MOST_FACTORS:
            self._loop = sum_loop("filter_sums", filters.at(window, channels, fill), filters.panels, shape, outputs)
            self._sums = partial(_by_filter, filters, window, positions, fill)
            self._places = places(made, max(outputs, channels), BLOCK)
        else:
            numbers = max(outputs, weights[0].size * groups)
            self._sums = partial(_of_padded, groups, filters, window, positions, fill)
            self._places = places(made, numbers, max(BLOCK, ROWS * numbers))
        if self._loop:
            self._sums = partial(_in_one_go, self._loop, self._image)

    def __call__(
        self, x: Array, end: End | None, made_type: np.dtype[np.generic] | type, wanted: Wanted | None = None
    ) -> Array:
        """As `window_sums` gives them, of images of the shape; without `end` the sums themselves. Their extremes are `wanted`: they
        may be found on the way."""
        given, own_type = x.astype(self._kind, copy=False), made_type == self._kind
        made = aligned(self._count).reshape(self._made) if self._loop and own_type else np.empty(self._made, made_type)
        if self._loop and own_type and end is None and at_work():
            # a call costs as much as thousands of numbers, and takes turns with other threads
            self._loop(self._image(given), 0, made, wanted)
            return made
        sums = self._sums(given)

        def piece(place: Place) -> None:
            own = made[place]
            room = own if own_type else np.empty(own.shape, self._kind)
            sums(place, room)
            found = end(room) if end else room
            if found is not own:
                own[...] = found

        spread(piece, self._places)
        return made


def _repeated(multiplier: int, x: Array) -> Array:
    """Without gaps, each channel so many times."""
    return np.repeat(x, multiplier, -1) if multiplier > 1 else np.ascontiguousarray(x)


def _in_one_go(loop: SumLoop, image_of: Callable[[Array], Array], x: Array) -> Sums:
    images = image_of(x)

    def sums_at(place: Place, out: Array) -> None:
        samples, rows = place
        loop(images[samples], rows.start, out)

    return sums_at


def window_sums(
    x: Array,
    weights: Array,
    window: Window,
    groups: int,
    fill: float,
    end: End,
    made_type: np.dtype[np.generic] | type,
) -> Array:
    """`end(sums)` of the sums [n, positions..., O], as `made_type`; `end` gets parts of them, which it may overwrite.

    x [n, sizes..., I], weights [O, kernel..., I / groups]. LayerError where these do not fit.
    """
    return WindowSums(x.shape, Filters(weights), window, groups, fill)(x, end, made_type)


def _of_padded(
    groups: int, filters: Filters, window: Window, positions: tuple[int, ...], fill: float, x: Array
) -> Sums:
    """By products of matrices."""
    wide = np.ascontiguousarray(padded(x, window, positions, fill))
    sums = _by_group(wide, filters.weights, window, positions, groups)

    def finished(place: Place, out: Array) -> None:
        sums(place, out)
        filters.finish(out)

    return finished


def slices(many: int, each: int, block: int = BLOCK) -> list[slice]:
    """`many` things in pieces of about `block` numbers, `each` of which one thing has."""
    step = max(1, block // max(each, 1))
    return [slice(i, min(i + step, many)) for i in range(0, many, step)]


@lru_cache(maxsize=1024)
def places(shape: tuple[int, ...], each: int, block: int) -> Sequence[Place]:
    """Where to compute positions [samples, rows, ...] in pieces: several samples, or some rows of one; `each` position
    takes so many numbers."""
    samples, rows = shape[:2]
    of_row = max(1, prod(shape[2:])) * each
    if rows * of_row <= block:
        return [(s, slice(0, rows)) for s in slices(samples, rows * of_row, block)]
    return [(slice(i, i + 1), r) for i in range(samples) for r in slices(rows, of_row, block)]


def patches(x: Array, window: Window, positions: tuple[int, ...]) -> Array:
    """[N, positions..., kernel..., C]: a view of what the window sees."""
    strides = x.strides
    inner = tuple(s * d for s, d in zip(strides[1:-1], window.dilation, strict=True))
    outer = tuple(s * step for s, step in zip(strides[1:-1], window.stride, strict=True))
    shape = (x.shape[0], *positions, *window.kernel, x.shape[-1])
    return np.lib.stride_tricks.as_strided(x, shape, (strides[0], *outer, *inner, strides[-1]), writeable=False)


def _by_group(x: Array, weights: Array, window: Window, positions: tuple[int, ...], groups: int) -> Sums:
    """What windows see, as a matrix for each group of channels, times the filters."""
    own = weights.shape[0] // groups
    columns = weights.reshape(groups, own, -1).transpose(0, 2, 1)  # BLAS takes it as it lies
    if groups == 1:
        return _of_all_channels(_runs(x, window, positions), columns[0])
    views = _split(patches(x, window, positions), groups)

    def sums_at(place: Place, sums: Array) -> None:
        rows = np.ascontiguousarray(np.moveaxis(views[place], -2, 0)).reshape(groups, -1, columns.shape[1])
        sums[...] = np.moveaxis(rows @ columns, 0, 1).reshape(sums.shape)

    return sums_at


def _of_all_channels(views: Array, columns: Array) -> Sums:
    kind, (inner, outputs) = columns.dtype, columns.shape

    def sums_at(place: Place, sums: Array) -> None:
        matrix = in_one_piece(views[place]).view(kind).reshape(-1, inner)
        np.matmul(matrix, columns, out=sums.reshape(-1, outputs))

    return sums_at


def _runs(x: Array, window: Window, positions: tuple[int, ...]) -> Array:
    """`patches` of an image without gaps. Where the cells of a line lie one behind the other they are one item, of so many
    bytes: copies of fewer and larger items take less time."""
    if window.dilation[-1] > 1 or not x.size:
        return patches(x, window, positions)
    *outer, along = zip(x.strides[1:-1], window.stride, window.dilation, positions, window.kernel, strict=True)
    shape = (x.shape[0], *positions, *(many for *_, many in outer))
    strides = (x.strides[0], *(s * step for s, step, *_ in (*outer, along)), *(s * d for s, _, d, *_ in outer))
    return np.ndarray(shape, np.dtype((np.void, window.kernel[-1] * x.strides[-2])), x, 0, strides)


def _split(views: Array, groups: int) -> Array:
    """The last axis as [groups, channels of one], without a copy."""
    inner, stride = views.shape[-1] // groups, views.strides[-1]
    shape = (*views.shape[:-1], groups, inner)
    return np.lib.stride_tricks.as_strided(views, shape, (*views.strides[:-1], inner * stride, stride), writeable=False)


def _by_channel(
    image_of: Callable[[Array], Array],
    filters: Filters,
    window: Window,
    positions: tuple[int, ...],
    fill: float,
    x: Array,
) -> Sums:
    """Each cell of the window at a time; output channel o sees the input channel o div multiplier."""
    cells = strips(np.ascontiguousarray(padded(image_of(x), window, positions, fill)), window, positions)
    # a factor for each number of a line of the image: one long loop, and not one per column
    tiled = np.tile(filters.factors, positions[-1])

    def sums_at(place: Place, own: Array) -> None:
        sums = own.reshape(*own.shape[:-2], -1)
        product = np.empty_like(sums)
        for i, seen in enumerate(cells(place)):
            if i:
                sums += np.multiply(seen, tiled[i, : sums.shape[-1]], out=product)
            else:
                np.multiply(seen, tiled[i, : sums.shape[-1]], out=sums)
        filters.finish(own)

    return sums_at


def _by_filter(filters: Filters, window: Window, positions: tuple[int, ...], fill: float, x: Array) -> Sums:
    """One product of what a cell sees in a channel at a time."""
    weights = filters.weights.reshape(len(filters.weights), -1)
    views = patches(padded(np.ascontiguousarray(x), window, positions, fill), window, positions)

    def sums_at(place: Place, own: Array) -> None:
        # positions beside each other: long loops, and not one per position
        seen = np.ascontiguousarray(views[place].reshape(-1, weights.shape[1]).T)
        sums = np.multiply(weights[:, 0, None], seen[0])
        product = np.empty_like(sums)
        for i in range(1, len(seen)):
            sums += np.multiply(weights[:, i, None], seen[i], out=product)
        own[...] = sums.T.reshape(own.shape)
        filters.finish(own)

    return sums_at


def strips(x: Array, window: Window, positions: tuple[int, ...]) -> Callable[[Place], Iterator[Array]]:
    """Of some rows of positions, for each cell of the window what it sees: [samples, rows, ..., columns * channels].

    Columns that windows step over are taken apart first, so that what a cell sees of a line is one piece.
    """
    step, stretch, many = window.stride[-1], window.dilation[-1], positions[-1]
    apart = [x if step == 1 else np.ascontiguousarray(x[..., first::step, :]) for first in range(step)]
    outer = list(zip(window.stride, window.dilation, positions, strict=True))[:-1]
    whole = []
    for cell in np.ndindex(*window.kernel):
        at = [slice(c * d, (last - 1) * s + c * d + 1, s) for c, (s, d, last) in zip(cell, outer, strict=False)]
        start, which = divmod(cell[-1] * stretch, step)
        whole.append(apart[which][(slice(None), *at, slice(start, start + many))])

    def cells(place: Place) -> Iterator[Array]:
        for seen in whole:
            part = seen[place]
            yield part.reshape(*part.shape[:-2], -1)

    return cells
