"""Windows over images that lie in LSRAM, tile by tile: the lanes are channels, and the next tile comes while one is worked on.

Elements outside of an image are stored there like others, so that no cell of a window is asked for its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

from compass_core.namedtuple import NamedTuple
from compassc.build import Address, Expression, Pointer, Value, both
from compassc.dsl import script as S
from compassc.graph import Tensor
from compassc.layers.choices import choose
from compassc.layers.layer_kernel import LayerKernel, tail
from compassc.layers.machine import Share, configuration, costs
from compassc.layers.sliding import WindowLoop
from compassc.layers.streams import bytes_of
from compassc.layers.vectors import LANES, everywhere, pointee
from compassc.layers.windows import Window

ROOM = Share(3)
"""LSRAM for the pixels under a tile, of which there are two."""
UNROLLED, ROW = 9, 7
"""Cells of a window, and of one row of it, that may stand one by one in the text."""


class Images(NamedTuple):
    """Sizes of images and of what a window makes of them."""

    images: int
    high: int
    wide: int
    channels: int
    rows: int
    columns: int


class Tile(NamedTuple):
    """Rows and columns of output pixels, and the input's under them; `whole`: one transfer brings all."""

    rows: int
    columns: int
    high: int
    wide: int
    whole: bool


class Plan(NamedTuple):
    """How a window goes over images in tiles; `bordered`: it sees elements outside of an image."""

    x: Tensor
    window: Window
    sizes: Images
    tile: Tile
    bordered: bool


def plan_of(x: Tensor, window: Window, made: Sequence[int]) -> Plan | None:
    """Tiles of the images `x` for a window with `made` positions; None where it has more than two axes, where no tile fits
    LSRAM or one may have no pixel of the image."""
    if len(window.kernel) > 2 or 0 in x.shape:
        return None
    window, s = _in_two_axes(window), _images(x, made)
    over = _outside(window, s)
    if any(end >= reach for ends, reach in zip(over, window.reach, strict=True) for end in ends):
        return None
    found = choose(
        "tiling", _tiles(window, s, bytes_of(x.dtype), over), lambda o: o, lambda o: f"{o[1].rows}x{o[1].columns}"
    )
    return None if found is None else Plan(x, window, s, found[1], any(end > 0 for ends in over for end in ends))


class _Place(NamedTuple):
    """A tile's position: its first channel, column and row, its image, and its rows."""

    channel: Value
    column: Value
    row: Value
    image: Value
    tall: Value


class TiledWindows(WindowLoop):
    """The loop over all positions of a window.

    `fill`: what counts for elements outside, as the input stores it. Lanes of cells that are not channels may hold
    anything.
    """

    def __init__(self, k: LayerKernel, plan: Plan, fill: float) -> None:
        super().__init__(k, plan.x)
        _, self.window, s, self.tile, self.bordered = plan
        tile, lines, bands = self.tile, -(-s.rows // plan.tile.rows), -(-s.columns // plan.tile.columns)
        blocks = -(-s.channels // LANES)
        self.lines, self.bands, self.blocks = (k.number(n) for n in (lines, bands, blocks))
        self.items = k.number(s.images * lines * bands * blocks)
        self.high, self.wide, self.channels = (k.number(n) for n in (s.high, s.wide, s.channels))
        self.rows, self.columns = k.number(s.rows), k.number(s.columns)
        self.tall, self.long, self.line = (k.number(n) for n in (tile.rows, tile.columns, tile.wide * LANES))
        self.across = k.number(tile.wide)
        self.stride, self.reach = (
            [k.number(n) for n in numbers] for numbers in (self.window.stride, self.window.reach)
        )
        self.pads = [k.number(before) for before, _ in self.window.pads]
        down, across = self.window.dilation
        self.steps = k.number(tile.wide * LANES * down), k.number(across * LANES)
        self.fill, self.kind = k.number(fill), pointee(plan.x.dtype)

    @contextmanager
    def positions(self) -> Iterator[None]:
        k, room = self.k, ROOM.size // bytes_of(self.x.dtype)
        tiles = k.alloc(2 * room, self.kind, "tiles")
        (self._came,) = k.events("came")
        turn, first, step = k.changing("turn", S.i32(0)), k.held("first", S.get_local_id()), S.get_local_size()
        with k.when(first < self.items):
            self._fetch(first, tiles)
        with k.for_range(first, self.items, step, "item") as item:
            at = self._place(item)
            now = k.held("now", S.min(self.long, self.columns - at.column))
            k.define(k.lanes_mask, tail(self.channels - at.channel))
            S.wait_events(self._came)
            near = k.hold(tiles + turn, "near")
            k.assign(turn, room - turn)
            following = k.held("following", item + step)
            with k.when(following < self.items):
                self._fetch(following, k.hold(tiles + turn, "next_tile"))
            with k.for_range(0, at.tall, name="r") as r:
                begin = k.held("begin", (at.row + r) * self.columns + at.column)
                row = k.hold(near + r * self.stride[0] * self.line, "row")
                with k.for_range(0, now, name="p") as p:
                    self.image, self.spot = at.image, k.held("spot", begin + p)
                    self._first = k.hold(row + p * self.stride[1] * LANES, "at")
                    self.place = (at.image * (self.rows * self.columns) + self.spot) * self.channels + at.channel
                    yield
        S.free_events(self._came)
        k.renew_mask()

    def cells(self) -> Iterator[Expression]:
        high, wide = self.window.kernel
        down, _ = self.steps
        if high * wide > UNROLLED:
            with self.k.for_range(0, self.k.number(high), name="ky") as ky:
                yield from self._row(self.k.hold(self._first + ky * down, "cells"))
        else:
            for y in range(high):
                yield from self._row(self._first + y * down if y else self._first)

    def _row(self, first: Address) -> Iterator[Expression]:
        """The cells of a row of the window."""
        wide, across = self.window.kernel[1], self.steps[1]
        if wide > ROW:
            with self.k.for_range(0, self.k.number(wide), name="kx") as kx:
                yield self._channels(first + kx * across)
        else:
            for x in range(wide):
                yield self._channels(first + x * across if x else first)

    def _channels(self, pixel: Address) -> Expression:
        return S.vload(self.k.hold(pixel, "pixel"), lanes=LANES)

    def _place(self, item: Value) -> _Place:
        """The position of the tile of a number."""
        k = self.k
        part = k.held("part", item / self.blocks)
        row = k.held("oy", part / self.bands % self.lines * self.tall)
        return _Place(
            k.held("o", item % self.blocks * LANES),
            k.held("ox", part % self.bands * self.long),
            row,
            k.held("image", part / (self.bands * self.lines)),
            k.held("tall", S.min(self.tall, self.rows - row)),
        )

    def _fetch(self, item: Value, near: Pointer) -> None:
        """Starts the transfers of a tile, and fills what it has outside of the image."""
        k, at = self.k, self._place(item)
        high = k.held("high", (at.tall - 1) * self.stride[0] + self.reach[0])
        first = k.held("first_row", at.row * self.stride[0] - self.pads[0])
        if self.tile.whole:
            above, rows = self._inside(first, high, self.high)
            begin = (at.image * self.high + first + above) * self.across
            self._bring(at, near, begin, above * self.across, rows * self.across, high * self.across)
            return
        column = k.held("first_column", at.column * self.stride[1] - self.pads[1])
        wide = k.held("width", (S.min(self.long, self.columns - at.column) - 1) * self.stride[1] + self.reach[1])
        left, here = self._inside(column, wide, self.wide)
        with k.for_range(0, high, name="j") as j:
            line, row = k.hold(near + j * self.line, "line"), k.held("iy", first + j)
            begin = (at.image * self.high + row) * self.wide + column + left
            with k.when(both(row >= 0, row < self.high)) if self.bordered else nullcontext():
                self._bring(at, line, begin, left, here, wide)
            if self.bordered:
                with k.otherwise():
                    self._fill(line, 0, wide)

    def _inside(self, first: Value, many: Value, size: Value) -> tuple[Expression, Expression]:
        """Of so many elements along an axis from a first one on: how many are before the image, and in it."""
        if not self.bordered:
            return S.i32(0), many
        before = self.k.held("before", S.max(-first, 0))
        return before, self.k.held("there", S.min(many, size - first) - before)

    def _bring(
        self, at: _Place, strip: Pointer, pixel: Expression, begin: Expression, count: Expression, end: Expression
    ) -> None:
        """Starts the transfer of pixels, which are those of a strip from `begin` on, and fills the others up to `end`."""
        source, width = self.source + pixel * self.channels + at.channel, S.min(self.channels - at.channel, LANES)
        S.async_dma_copy(strip + begin * LANES, source, width, self.channels, count, LANES, event=self._came)
        if self.bordered:
            self._fill(strip, 0, begin)
            self._fill(strip, begin + count, end)

    def _fill(self, strip: Pointer, first: int | Expression, end: Expression) -> None:
        with self.k.for_range(first, end, name="e") as e:
            S.vstore(everywhere(self.fill, self.kind), strip + e * LANES)


def _in_two_axes(window: Window) -> Window:
    """A window along one axis as one of height 1."""
    if len(window.kernel) == 2:
        return window
    kernel, stride, dilation = ((1, *given) for given in (window.kernel, window.stride, window.dilation))
    return Window(kernel, stride, dilation, ((0, 0), *window.pads))


def _images(x: Tensor, made: Sequence[int]) -> Images:
    n, *sizes, c = x.shape
    high, wide = (1, *sizes)[-2:]
    rows, columns = (1, *made)[-2:]
    return Images(n, high, wide, c, rows, columns)


def _outside(window: Window, s: Images) -> list[tuple[int, int]]:
    """Elements before and behind the image that the window sees, of both axes; negative ones are not seen of it."""
    return [
        (before, (many - 1) * stride + reach - before - size)
        for size, many, stride, reach, (before, _) in zip(
            (s.high, s.wide), (s.rows, s.columns), window.stride, window.reach, window.pads, strict=True
        )
    ]


def _tiles(window: Window, s: Images, size: int, over: Sequence[tuple[int, int]]) -> Iterator[tuple[float, Tile]]:
    """Tiles that fit LSRAM, with about the cycles of the layer."""
    registers = -(-LANES * size // configuration().vector_bytes)
    work = (window.kernel[0] * window.kernel[1] + 4) * registers + 8
    blocks = -(-s.channels // LANES)
    for bands in range(1, s.columns + 1):
        columns = -(-s.columns // bands)
        if -(-s.columns // columns) != bands:
            continue
        # whole rows of the image lie behind each other
        whole = bands == 1 and over[1][0] == 0 and over[1][1] <= 0
        wide = s.wide if whole else (columns - 1) * window.stride[1] + window.reach[1]
        for rows in range(1, s.rows + 1):
            high = (rows - 1) * window.stride[0] + window.reach[0]
            if high * wide * LANES * size > ROOM.size:
                break
            moved = costs().transfers(high * wide * LANES * size, 1 if whole else high)
            many = s.images * blocks * -(-s.rows // rows) * bands
            each = max(moved, rows * columns * work + 60)
            yield -(-many // configuration().tecs) * each + moved, Tile(rows, columns, high, wide, whole)
