"""The frames of kernels of convolutions: TECs take tiles of output pixels in turn; channels are the lanes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from compass_core.arrays import Array
from compass_core.namedtuple import NamedTuple
from compassc.build import Address, Expression, Line, Pointer, Value, both, invariant
from compassc.dsl import script as S
from compassc.graph import Layer
from compassc.ir.dtypes import INT32
from compassc.layers.emit import finish_ahead, rectify, rectify_float
from compassc.layers.families.linear.reference import (
    ahead_shift,
    biases_ahead,
    biases_around_shift,
    has_ahead_shift,
)
from compassc.layers.families.linear.tiles import PIXELS, Shape, padded
from compassc.layers.kernels import settle
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.requantise import Pair, saturated
from compassc.layers.vectors import LANES, everywhere

Sums = Value | Pair
Copy = Callable[..., None]
"""A copy by DMA, of several rows."""


class Tile(NamedTuple):
    """A tile of output pixels: its first column and row, its image, and how many rows and columns it has."""

    ox: Value
    oy: Value
    image: Value
    tall: Value
    now: Value


class Columns(NamedTuple):
    """The columns of the input under a tile: how many are left of the image, the first that is in it, and how many are."""

    left: Value
    first: Value
    here: Value


class Output(NamedTuple):
    """Variables of the loops around an output pixel; statements for every row, and for every pixel."""

    row: Value
    columns: list[Value]
    per_row: list[Line]
    per_pixel: list[Line]


class Frame:
    """A kernel in the making, with the sizes of its convolution as numbers, and of tiles of so many rows and columns."""

    def __init__(self, layer: Layer, s: Shape, tail: Sequence[Layer], rows: int, columns: int) -> None:
        self.k, self.layer, self.s, self.tail = LayerKernel(), layer, s, tail
        number, w, lines, bands = self.k.size, s.window, -(-s.oh // rows), -(-s.ow // columns)
        self.tiles = s.n * lines * bands
        self.x = self.k.tensor(layer.input)
        self.h, self.w, self.c = map(number, (s.h, s.w, s.c))
        self.oh, self.ow, self.outputs = map(number, (s.oh, s.ow, s.outputs))
        self.sy, self.sx, self.dy, self.dx, self.kh, self.kw = map(number, (*w.stride, *w.dilation, *w.kernel))
        self.pt, self.pl = (number(before) for before, _ in w.pads)
        self.lines, self.bands, self.rows, self.columns = map(number, (lines, bands, rows, columns))
        self.k.lanes_are_channels = True

    def tile(self, at: Expression) -> Tile:
        """The tile of a number."""
        k = self.k
        ox = k.held("ox", at % self.bands * self.columns)
        oy = k.held("oy", at / self.bands % self.lines * self.rows)
        image = k.held("image", at / (self.bands * self.lines))
        tall, now = k.held("tall", S.min(self.rows, self.oh - oy)), k.held("now", S.min(self.columns, self.ow - ox))
        return Tile(ox, oy, image, tall, now)

    def under(self, tile: Tile, wide: Expression) -> Columns:
        """The input's columns under a tile, of which there are at most so many."""
        k = self.k
        left = k.held("left", S.max(self.pl - tile.ox * self.sx, 0))
        first = k.held("first", S.max(tile.ox * self.sx - self.pl, 0))
        return Columns(left, first, k.held("here", S.max(S.min(wide - left, self.w - first), 0)))

    def closed(self, sums: Sums) -> Value:
        """The layer's output from its sums, to which biases are still to be added only if these come after a shift."""
        k, layer = self.k, self.layer
        if layer.type == "ConvInteger":
            return saturated(k, sums) if isinstance(sums, Pair) else sums
        if not layer.is_quantised:
            assert isinstance(sums, Value), "real numbers have one word"
            return rectify_float(k, layer, layer.word("with_activation", "NONE"), sums)
        scale, shift = layer.scale_shift(of=self.s.outputs)
        if not has_ahead_shift(layer):
            return rectify(k, layer, layer.word("with_activation", "NONE"), sums, scale, shift)
        amount, shift = ahead_shift(layer, shift)
        _, biases = biases_around_shift(layer, self.s.outputs)
        return finish_ahead(k, layer, sums, amount, biases_ahead(biases, amount), scale, shift)

    def output(
        self, tile: Tile, turns: str, channels: tuple[Expression, Expression], sums: Callable[..., Sums]
    ) -> Output:
        """How lanes of output pixels are stored, after the statements that are the same for all of them.

        `turns`: letters of the variables of the row, and of the columns that are added. `channels`: the first one among
        padded numbers, and in the output. `sums`: makes those of a pixel, of these variables.
        """
        k, (row, *columns), (channel, first) = self.k, [self.k.variable(name, INT32) for name in turns], channels
        k.lanes_of = lambda numbers: S.vload(k.pointer(padded(self.s, numbers)) + channel, lanes=LANES)
        with k.apart() as lines:
            place = ((tile.image * self.oh + tile.oy + row) * self.ow + tile.ox) * self.outputs + first
            base, column = k.held("base", place), sum(columns[1:], columns[0])
            value = self.closed(sums(row, *columns))
            settle(k, self.layer, value, self.tail, k.held("place", base + column * self.outputs))
        k.lanes_of = None
        shared, rest = invariant(lines, (row, *columns))
        k.splice(shared)
        return Output(row, columns, *invariant(rest, columns))

    def store(self, tile: Tile, output: Output, products: Callable[[Value, Value], None], pixels: int = PIXELS) -> None:
        """Stores the outputs of a tile; `products` works out the sums of so many pixels of them from a row and a column on."""
        k, (p, i) = self.k, output.columns
        with k.for_range(0, tile.tall, name=output.row):
            k.splice(output.per_row)
            with k.for_range(0, tile.now, pixels, p):
                products(output.row, p)
                with k.for_range(0, S.min(tile.now - p, pixels), name=i):
                    k.splice(output.per_pixel)


class Cut(NamedTuple):
    """Output rows and columns of a tile, and the input's under them."""

    rows: int
    columns: int
    high: int
    wide: int


class Block(NamedTuple):
    """A tile of a block of channels: the first of these, how many they are, and their weights."""

    tile: Tile
    o: Value
    channels: Value
    weights: Address


class DepthwiseFrame(Frame):
    """Tiles of blocks of `LANES` channels, which are channels of the input, too."""

    def __init__(self, layer: Layer, s: Shape, tail: Sequence[Layer], cut: Cut, weights: Array) -> None:
        """`weights`: those of every block."""
        super().__init__(layer, replace(s, groups=1), tail, cut.rows, cut.columns)
        s = self.s
        number, fill = self.k.number, -layer.input.scalar_zero if layer.is_quantised else 0
        self.weights, self.each = self.k.pointer(weights), number(weights.size // s.blocks)
        self.blocks, self.items, self.wide, self.fill = map(number, (s.blocks, self.tiles * s.blocks, cut.wide, fill))

    def block(self, item: Expression) -> Block:
        """The block of an item."""
        k, number = self.k, self.k.held("number", item)
        block, at = k.held("block", number % self.blocks), k.held("at", number / self.blocks)
        o = k.held("o", block * LANES)
        return Block(self.tile(at), o, k.held("channels", S.min(self.c - o, LANES)), self.weights + block * self.each)

    def rows_under(self, tile: Tile) -> Expression:
        """How many rows of the input are under a tile."""
        return (tile.tall - 1) * self.sy + (self.kh - 1) * self.dy + 1

    @contextmanager
    def brought(self, b: Block, place: Callable[[Value], Address], copy: Copy) -> Iterator[tuple[Value, Pointer]]:
        """Statements for every row under a tile, with where its channels lie in LSRAM, to which `copy` brings them; what is
        outside of the image is filled."""
        k, t, columns = self.k, b.tile, self.under(b.tile, self.wide)
        with k.for_range(0, self.rows_under(t), name="j") as j:
            line, iy = k.hold(place(j), "line"), k.held("iy", t.oy * self.sy + j - self.pt)
            inside = k.changing("inside", S.i32(0))
            with k.when(both(both(iy >= 0, iy < self.h), columns.here > 0)):
                k.assign(inside, columns.here)
                pixel = self.x + (((t.image * self.h + iy) * self.w + columns.first) * self.c + b.o)
                copy(line + columns.left * LANES, pixel, b.channels, self.c, columns.here, LANES)
            for first, last in ((S.i32(0), S.min(columns.left, self.wide)), (columns.left + inside, self.wide)):
                with k.for_range(first, last, name="e") as e:
                    S.vstore(everywhere(self.fill, self.layer.input.dtype), line + e * LANES)
            yield j, line

    def outputs_of(self, b: Block, sums: Callable[[Value], Sums]) -> Output:
        """Those of a block, of which `sums` gives the sums of one of the pixels that are worked on together."""
        return self.output(b.tile, "rpi", (b.o, b.o), lambda r, p, i: sums(i))
