"""The frame of kernels in which a window slides over images of any number of axes; the lanes are channels.

    w = Windows(k, x, axes_of(k, window, layer))
    with w.positions():
        most = k.changing("most", lowest)
        for cell in w.cells():
            k.assign(most, S.max(most, cell))
        w.finish(layer, tail, most)

Here cells come from device memory one by one; `window_tiles` has the frame whose cells come in tiles through LSRAM.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from math import prod

import numpy as np

from compass_core.arrays import Array
from compass_core.namedtuple import NamedTuple
from compassc.build import Expression, Value, both
from compassc.dsl import script as S
from compassc.graph import Layer, Tensor
from compassc.layers.kernels import settle
from compassc.layers.layer_kernel import LayerKernel, tail
from compassc.layers.vectors import LANES, wide, wide_kind
from compassc.layers.windows import Window

SHARED_POSITIONS = 64
"""Positions below which TECs share the channels of each, too."""


class ChannelLoop:
    """A loop over positions of images, in which `k.mask` has the lanes that are channels.

    `spot`: the position's number within the image. `image`: that of the image. `place`: where the output's first channel
    is.
    """

    spot: Value
    image: Value
    place: Expression

    def __init__(self, k: LayerKernel, x: Tensor) -> None:
        wide_kind(x)
        self.k, self.x, self.source = k, x, k.tensor(x)

    def widened(self, stored: Expression, zero: int = 0) -> Value:
        """Channels of `x` in their wide form, plus a zero point."""
        x, lanes = self.x, wide(stored, self.x.dtype)
        if not x.is_integer:
            return self.k.let(lanes)
        return self.k.let(lanes + self.k.number(zero) if zero else lanes, x.low + zero, x.high + zero)

    def finish(self, layer: Layer, tail: Sequence[Layer], value: Value) -> None:
        """Stores the value of a position, after the element-wise layers of the tail."""
        settle(self.k, layer, value, tail, self.k.held("place", self.place))


class WindowLoop(ChannelLoop, ABC):
    """A loop over positions of a window."""

    @abstractmethod
    def positions(self) -> AbstractContextManager[None]:
        """Statements for every position of every image and block of channels."""

    @abstractmethod
    def cells(self) -> Iterator[Expression]:
        """Statements for every cell of the window, made once or several times: its channels as they are stored."""


class Positions(ChannelLoop):
    """The loop over positions of which images have so many along each axis, and over blocks of channels.

    `indices`: the position's along each axis. `channel`: the first of the block.
    """

    indices: list[Value]
    channel: Value

    def __init__(self, k: LayerKernel, x: Tensor, made: Sequence[int]) -> None:
        super().__init__(k, x)
        self.count, self.images = prod(made), prod(x.shape[: len(x.shape) - 1 - len(made)])
        self.channels, self.made = k.number(x.shape[-1]), [k.number(n) for n in made]
        self.blocks = -(-x.shape[-1] // LANES)
        self._shared = self.images * self.count < SHARED_POSITIONS and self.blocks > 1

    @contextmanager
    def spots(self) -> Iterator[None]:
        """Statements for every position; those for its channels are within `blocks_of_channels`."""
        k, total, many = self.k, self.k.number(self.images * self.count), self.k.number(self.blocks)
        with k.shared(total * many if self._shared else total, "item") as item:
            self._at = k.held("at", item / many) if self._shared else item
            self._first = k.held("first", item % many * LANES) if self._shared else None
            self.spot = k.held("spot", self._at % k.number(self.count))
            rest, indices = self._at, list[Value]()
            for size in reversed(self.made):
                indices.append(k.held("o", rest % size))
                rest = k.held("rest", rest / size)
            self.indices, self.image = indices[::-1], rest
            yield

    @contextmanager
    def blocks_of_channels(self) -> Iterator[None]:
        k = self.k
        with ExitStack() as loop:
            first = self._first
            self.channel = loop.enter_context(k.for_range(0, self.channels, LANES, "o")) if first is None else first
            k.define(k.lanes_mask, tail(self.channels - self.channel))
            self.place = self._at * self.channels + self.channel
            yield
        k.renew_mask()

    @contextmanager
    def positions(self) -> Iterator[None]:
        """Statements for every position and block of channels."""
        with self.spots(), self.blocks_of_channels():
            yield


class WindowAxis(NamedTuple):
    """A window along one axis: the sizes of input and output, and the loop over the window's cells in the image, which gives
    their indices in the input by the output's index."""

    size: int
    made: int
    cells: Callable[[Value], AbstractContextManager[Value]]


def strided_axis(k: LayerKernel, size: int, made: int, cells: int, stride: int, apart: int, before: int) -> WindowAxis:
    """A window of so many cells that moves by strides, cut at the borders."""
    n, s, d, p, high = (k.number(v) for v in (cells, stride, apart, before, size))

    @contextmanager
    def loop(at: Value) -> Iterator[Value]:
        with k.for_range(0, n, name="c") as cell:
            index = k.held("i", at * s + cell * d - p)
            with k.when(both(index >= 0, index < high)):
                yield index

    return WindowAxis(size, made, loop)


def bounded_axis(k: LayerKernel, size: int, first: Array, last: Array) -> WindowAxis:
    """Windows from first elements to behind last ones, which lie in the image."""
    ends = [k.pointer(v.astype(np.int32)) for v in (first, last)]

    def loop(at: Value) -> AbstractContextManager[Value]:
        begin, end = (k.held("end", numbers[at]) for numbers in ends)
        return k.for_range(begin, end, name="i")

    return WindowAxis(size, len(first), loop)


def axes_of(k: LayerKernel, window: Window, layer: Layer) -> list[WindowAxis]:
    """A window that moves by strides over the images of a layer."""
    x, y, w = layer.input.shape[1:-1], layer.output.shape[1:-1], window
    rows = zip(x, y, w.kernel, w.stride, w.dilation, w.pads, strict=True)
    return [
        strided_axis(k, size, made, cells, stride, apart, before)
        for size, made, cells, stride, apart, (before, _) in rows
    ]


class Windows(Positions, WindowLoop):
    """The loop over the positions of a window. `sizes`: those of the input. `inner`: the indices of a cell in it."""

    inner: list[Value]

    def __init__(self, k: LayerKernel, x: Tensor, axes: Sequence[WindowAxis]) -> None:
        super().__init__(k, x, [axis.made for axis in axes])
        self.axes, self.sizes = axes, [k.number(axis.size) for axis in axes]

    def cells(self) -> Iterator[Expression]:
        with ExitStack() as nest:
            self.inner = [nest.enter_context(loop) for loop in self.loops()]
            yield self.channels_of(self.inner)

    def loops(self) -> list[AbstractContextManager[Value]]:
        """The loops over the cells of a position along each axis, which give their indices in the input."""
        return [axis.cells(at) for axis, at in zip(self.axes, self.indices, strict=True)]

    def channels_of(self, inner: Sequence[Value]) -> Expression:
        """The channels of a cell, as they are stored; those that the mask leaves out are 0."""
        place: Expression = self.image
        for size, index in zip(self.sizes, inner, strict=True):
            place = place * size + index
        pixel = self.k.hold(self.source + place * self.channels + self.channel, "pixel")
        return S.vload(pixel, self.k.mask, lanes=LANES)
