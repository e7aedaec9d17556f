"""Kernels of convolutions and fully connected layers: output channels are the lanes.

A tile of output pixels is worked on for one block of channels after the other. The input under the tile lies in LSRAM,
weights come in segments, sums stay in LSRAM until the last one, and are outputs at once where there is but one; see `tiles`
and `formats`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from typing import TypeVar

from compass_core.namedtuple import NamedTuple
from compassc.build import Address, Expression, Pointer, Value, both, either
from compassc.dsl import script as S
from compassc.graph import Layer
from compassc.layers.families.linear.formats import BYTE, FLOAT, PRODUCTS, SHORT, WORD, Format, fill_of, format_of
from compassc.layers.families.linear.frame import Columns, Frame, Sums, Tile
from compassc.layers.families.linear.tiles import (
    INPUT,
    PARTS,
    SEGMENT,
    SLACK,
    SUMS,
    Planes,
    Shape,
    Tiling,
    packed,
    padded,
    tiling_of,
)
from compassc.layers.kernel import Kernel
from compassc.layers.layer_kernel import operands_of
from compassc.layers.layer_kernel import tail as tail_of
from compassc.layers.requantise import carried
from compassc.layers.streams import bytes_of
from compassc.layers.vectors import LANES, spread_word

T = TypeVar("T")
REGISTER = LANES // PARTS
MOVED = {("int8", BYTE): 0x80808080, ("uint16", SHORT): 0x80008000}
"""The bits in which words of a data type and what they are staged as differ."""


def convolution(layer: Layer, s: Shape, tail: Sequence[Layer]) -> Kernel:
    """The kernel of a Convolution, DepthwiseConv or FullyConnected."""
    f = format_of(layer, s)
    t = tiling_of(s, -(-s.inner // f.per_word), SUMS.size // (LANES * 4 * (2 if f.pair else 1)), len(f.planes))
    return _Products(layer, s, tail, t, f).kernel()


class _PlaneNumbers:
    """The numbers of volumes, whose planes lie behind each other; pairs are of depth and height."""

    def __init__(self, number: Callable[[int], Value], planes: Planes) -> None:
        w = planes.window
        self.sizes, self.made = [*map(number, planes.sizes)], number(planes.made[1])
        self.kernel, self.strides = number(w.kernel[1]), [*map(number, w.stride)]
        self.dilations, self.pads = [*map(number, w.dilation)], [number(before) for before, _ in w.pads]
        self.spaced = [*map(number, planes.spaced)]


class _Form(NamedTuple):
    """What the statements of the products depend on, beside the names of sizes.

    `staged`: the format of inputs and weights. `planes`: how many those of the weights are. `pair`: whether sums have two words.
    `tall`: whether the window has several rows of cells. `dilated`: whether words of a row of cells lie apart. `turns`: whether
    they take more than a turn. `turn`, `pixels`: see `Tiling`. `parts`: registers that hold the channels of a block.
    """

    dtype: str
    staged: str
    planes: int
    pair: bool
    tall: bool
    dilated: bool
    turns: bool
    turn: int
    pixels: int
    parts: int


class _Products(Frame):
    """The kernel in the making."""

    def __init__(self, layer: Layer, s: Shape, tail: Sequence[Layer], t: Tiling, f: Format) -> None:
        super().__init__(layer, s, tail, t.rows, t.columns)
        k, number, self.f, w = self.k, self.k.size, f, s.window
        dilated = w.dilation[1] > 1 and w.kernel[1] > 1
        tall, turns = w.kernel[0] > 1, t.turn < t.chunk * (1 if dilated else w.kernel[1])
        self.form = _Form(
            layer.input.dtype, f.staged, len(f.planes), f.pair, tall, dilated, turns, t.turn, t.pixels, s.registers
        )
        self.weights = k.pointer(packed(s, t, f.planes, f.per_word))
        starts = [f.start & 0xFFFF, f.start >> 16] if f.pair else [f.start]
        self.starts = [k.pointer(padded(s, a.astype("float32" if f.staged == FLOAT else "int32"))) for a in starts]
        self.parts, self.per, self.blocks = map(number, (t.parts, -(-s.blocks // t.parts), s.blocks))
        self.groups, self.inner, self.own = map(number, (s.groups, s.inner, s.own))
        self.chunk, self.chunks, self.down, self.across = map(number, (t.chunk, t.chunks, *t.cells))
        self.high, self.wide, self.row_step = map(number, (t.input_rows, t.input_columns, t.row_step))
        self.apart = number(s.window.dilation[0] // t.row_step)
        self.spaced = tuple(map(number, s.spaced)) if s.spaced != (1, 1) else None
        self.planes = _PlaneNumbers(number, s.planes) if s.planes else None
        self.items = number(self.tiles * s.groups * t.parts)
        self.fill: Expression | int = number(fill_of(layer)) if layer.input.is_integer else 0
        self.registers = range(0, s.registers * REGISTER, REGISTER)
        """The first channels of the registers of a block."""
        self.depth = self.chunk * f.per_word
        self.per_word = f.per_word * LANES
        """Elements of the weights of a word."""
        self.is_one_segment = t.chunks == len(f.planes) == 1 and t.cells == s.window.kernel and not f.pair

    def kernel(self) -> Kernel:
        k, f = self.k, self.f
        words, kind = FLOAT if f.staged == FLOAT else WORD, "int8" if f.staged == BYTE else f.staged
        with k.active():
            if f.staged != FLOAT:
                S.assume_unclipped()
            self.xt = k.alloc((INPUT.size + SLACK) // 4, words, "xt")
            self.wt = k.alloc(SEGMENT.size // bytes_of(kind), kind, "wt")
            self.sums = k.alloc(SUMS.size // 4, words, "sums")
            self.words = [self.sums, self.sums + SUMS.size // 8][: 1 + f.pair]
            if self.is_one_segment:
                self._clear_rest()
            with k.shared(self.items, "item") as item:
                group, first, *places = self._part("item", [item], lambda: self._begun(item))
                tile = Tile(*places)
                with k.for_range(first, S.min(first + self.per, self.blocks), name="block") as block:
                    self._block(tile, group, block, block == first)
        return k.kernel()

    def _clear_rest(self) -> None:
        """Sets what is loaded with the sums of a pixel, but has no channels."""
        zero = S.vbcast(S.cast(0, FLOAT if self.f.staged == FLOAT else "int32"), lanes=REGISTER)
        for i in range(self.form.pixels):
            for rest in range(self.form.parts * REGISTER, LANES, REGISTER):
                S.vstore(zero, self.sums + (i * LANES + rest))

    def _begun(self, item: Value) -> tuple[Value, ...]:
        """The group of an item, its first block of channels, and its tile."""
        k = self.k
        group = k.held("group", item / self.parts % self.groups)
        tile = self.tile(item / (self.parts * self.groups))
        return group, k.held("begin", item % self.parts * self.per), *tile

    def _block(self, tile: Tile, group: Value, block: Value, begins: Expression) -> None:
        """The outputs of a block of channels; `begins`: whether it is the first one of the tile."""
        k = self.k
        if self.is_one_segment:
            self._at_once(tile, group, block, begins)
            return
        given = [tile, group, block, begins]
        channel = self._part("sums", given, lambda: self._all_sums(tile, group, block, begins))
        k.define(k.lanes_mask, tail_of(self.own - block * LANES))
        output = self.output(tile, "rp", (channel, group * self.own + block * LANES), self._sums)
        with k.for_range(0, tile.tall, name=output.row):
            k.splice(output.per_row)
            with k.for_range(0, tile.now, name=output.columns[0]):
                k.splice(output.per_pixel)

    @cached_property
    def _own(self) -> tuple[Hashable, ...]:
        """What statements depend on of the values and addresses of the kernel, all of which it has before its first part."""
        return operands_of([*vars(self).values(), *(vars(self.planes).values() if self.planes else ())])

    def _part(self, name: str, given: Iterable[object], make: Callable[[], T]) -> T:
        """What a function gives whose statements kernels have in common; `given`: values and addresses that they have beside
        those of the kernel."""
        return self.k.part((name, self.form, self._own, operands_of(given)), make)

    def _all_sums(self, tile: Tile, group: Value, block: Value, begins: Expression) -> Value:
        """The sums of a block of channels for all pixels of a tile; gives its first channel."""
        k = self.k
        channel = k.held("chan", (group * self.blocks + block) * LANES)
        begin = [k.held("begin", S.vload(start + channel, lanes=LANES)) for start in self.starts]
        with k.for_range(0, tile.tall * self.columns, name="q") as q:
            for value, array in zip(begin, self.words, strict=True):
                S.vstore(value, array + q * LANES)
        with k.for_range(0, self.chunks, name="piece") as piece:
            with k.when(either(begins, self.chunks > 1)):
                self._stage(tile, group, piece)
            self._segments(tile, channel, piece)
        return channel

    def _at_once(self, tile: Tile, group: Value, block: Value, begins: Expression) -> None:
        """The outputs of a block where one segment has all weights: the sums of a few pixels become outputs at once."""
        k, f, (start,) = self.k, self.f, self.starts
        channel = k.held("chan", (group * self.blocks + block) * LANES)
        begin = [k.held("begin", S.vload(start + channel + part, lanes=REGISTER)) for part in self.registers]
        with k.when(begins):
            self._part("input", [tile, group], lambda: self._stage(tile, group, S.i32(0)))
        run = k.held("run", self.kw * self.chunk)
        each = self.kh * run * self.per_word
        S.dma_copy(self.wt, self.weights + channel / LANES * each, each)
        k.define(k.lanes_mask, tail_of(self.own - block * LANES))

        def products(r: Value, p: Value) -> None:
            self._part("pixels", [begin, run, r, p], lambda: self._few_pixels(begin, run, r, p))

        def made(r: Value, p: Value, i: Value) -> Value:
            value = k.let(S.vload(self.sums + i * LANES, lanes=LANES))
            return value if f.staged == FLOAT else value.within(f.low, f.high)

        output = self.output(tile, "rpi", (channel, group * self.own + block * LANES), made)
        self.store(tile, output, products, self.form.pixels)

    def _few_pixels(self, begin: Sequence[Value], run: Value, r: Value, p: Value) -> None:
        """The sums of pixels that are worked on together, which begin in registers."""
        k = self.k
        sums = [[k.changing("a", part) for part in begin] for _ in range(self.form.pixels)]
        near = k.hold(self.xt + (r * self.sy * self.wide + p * self.sx) * self.chunk, "near")
        self._cells(near, self.kh, run, sums)
        for i, own in enumerate(sums):
            for part, a in enumerate(own):
                S.vstore(a, self.sums + (i * LANES + part * REGISTER))

    def _sums(self, r: Value, p: Value) -> Sums:
        """The sums of a pixel."""
        k, f, at = self.k, self.f, self.k.held("q", (r * self.columns + p) * LANES)
        low, *high = (k.let(S.vload(array + at, lanes=LANES)) for array in self.words)
        if high:
            return carried(k, high[0], low, f.low, f.high)
        return low if f.staged == FLOAT else low.within(f.low, f.high)

    # -- the input under a tile

    def _columns(self, tile: Tile) -> Columns:
        if self.spaced is None:
            return self.under(tile, self.wide)
        k, space = self.k, self.spaced[1]
        edge = k.held("edge", tile.ox - self.pl)
        first = k.held("first", (S.max(edge, 0) + space - 1) / space)
        left = k.held("left", first * space - edge)
        here = S.max(S.min((self.wide - left + space - 1) / space, self.w - first), 0)
        return Columns(left, first, k.held("here", here))

    def _row(self, tile: Tile, j: Value) -> Value:
        """The input's row that the window sees as its row `j`; below 0 where it sees none."""
        k, oy = self.k, tile.oy
        if self.planes is not None:
            return self._row_of_planes(self.planes, oy, j)
        if self.spaced is None:
            return k.held("iy", oy * self.sy + j * self.row_step - self.pt)
        up = k.held("up", oy + j * self.row_step - self.pt)
        iy = k.changing("iy", up / self.spaced[0])
        with k.when(either(up < 0, up % self.spaced[0] != 0)):
            k.assign(iy, S.i32(-1))
        return iy

    def _row_of_planes(self, n: _PlaneNumbers, oy: Value, j: Value) -> Value:
        k, (deep, high) = self.k, n.sizes
        places = (oy / n.made, oy % n.made), (j / n.kernel, j % n.kernel)
        z, y = (
            k.held(name, o * stride + i * dilation - pad)
            for name, o, i, stride, dilation, pad in zip("zy", *places, n.strides, n.dilations, n.pads, strict=True)
        )
        plane, row = z / n.spaced[0], y / n.spaced[1]
        iy = k.changing("iy", plane * high + row)
        outside = either(either(either(z < 0, y < 0), plane >= deep), row >= high)
        for nothing in (outside, either(z % n.spaced[0] != 0, y % n.spaced[1] != 0)):
            with k.when(nothing):
                k.assign(iy, S.i32(-1))
        return iy

    def _stage(self, tile: Tile, group: Value, piece: Expression) -> None:
        """The input under the tile as words in LSRAM; once for all blocks where it is one chunk."""
        k, dtype, staged, depth = self.k, self.form.dtype, self.form.staged, self.depth
        columns = self._columns(tile)
        channels = k.held("channels", S.min(self.inner - piece * depth, depth))
        converted = dtype not in ("float32", "int16", "uint16") and staged != BYTE
        source = group * self.inner + piece * depth
        with k.for_range(0, self.high, name="j") as j:
            place = j * self.wide * depth
            line = k.hold(self.wt.as_ptr(dtype) if converted else self.xt.as_ptr(dtype) + place, "line")
            iy = self._row(tile, j)
            beyond = either(either(iy < 0, iy >= self.h), columns.here < self.wide)
            with k.when(either(beyond, channels < depth)):
                S.dma_memset(line, S.cast(self.fill, dtype), self.wide * depth)
            with k.when(both(both(iy >= 0, iy < self.h), columns.here > 0)):
                pixel = k.hold(
                    self.x + (((tile.image * self.h + iy) * self.w + columns.first) * self.c + source), "pixel"
                )
                self._copy(k.hold(line + columns.left * depth, "into"), pixel, channels, columns.here)
            if converted:
                with k.for_range(0, self.wide * depth, LANES, "e") as e:
                    words = S.cast(S.vload(line + e, lanes=LANES), staged)
                    S.vstore(words, self.xt.as_ptr(staged) + place + e)
        moved = MOVED.get((dtype, staged))
        if moved is not None:
            with k.for_range(0, self.high * self.wide * self.chunk, 8, "e") as e:
                S.vstore(S.vload(self.xt + e, lanes=8) ^ S.i32(moved - 2**32), self.xt + e)

    def _copy(self, into: Pointer, pixel: Pointer, channels: Value, here: Value) -> None:
        """Brings the channels of so many pixels of a row."""
        if self.spaced is not None:
            S.dma_copy(into, pixel, channels, self.c, here, self.spaced[1] * self.depth)
            return
        with self.k.when(both(channels == self.c, channels == self.depth)):
            S.dma_copy(into, pixel, here * channels)
        with self.k.otherwise():
            S.dma_copy(into, pixel, channels, self.c, here, self.depth)

    # -- products

    def _segments(self, tile: Tile, channel: Value, piece: Value) -> None:
        """Every segment's weights, with which all pixels of the tile are worked on."""
        k, each, planes = self.k, self.per_word, self.form.planes
        at = k.held("part_at", (channel / LANES * self.chunks + piece) * planes * self.kh * self.kw * self.chunk)
        with ExitStack() as nest:
            plane = nest.enter_context(k.for_range(0, planes, name="plane")) if planes > 1 else None
            if plane is not None:
                at = k.held("plane_at", at + plane * self.kh * self.kw * self.chunk)
            ky0 = nest.enter_context(k.for_range(0, self.kh, self.down, "ky0"))
            down = k.held("down", S.min(self.kh - ky0, self.down))
            kx0 = nest.enter_context(k.for_range(0, self.kw, self.across, "kx0"))
            run = k.held("run", S.min(self.kw - kx0, self.across) * self.chunk)
            S.dma_copy(self.wt, self.weights + (at + (ky0 * self.kw + kx0) * self.chunk) * each, down * run * each)
            r = nest.enter_context(k.for_range(0, tile.tall, name="r"))
            p = nest.enter_context(k.for_range(0, tile.now, self.form.pixels, "p"))
            near = ((r * self.sy + ky0 * self.apart) * self.wide + p * self.sx + kx0 * self.dx) * self.chunk
            self._pixels(self.xt + near, (r * self.columns + p) * LANES, down, run, plane)

    def _pixels(self, near: Address, place: Expression, down: Value, run: Value, plane: Value | None) -> None:
        """The products of a segment for a few pixels next to each other, in registers; the sums are at `place`."""
        k, places = self.k, self.registers
        q, pixels = k.held("q", place), range(self.form.pixels)

        def at(i: int, part: int) -> Expression:
            return q + (i * LANES + part)

        def begun(i: int, part: int) -> Expression:
            if self.form.pair:
                return S.vbcast(S.i32(0), lanes=REGISTER)
            return S.vload(self.sums + at(i, part), lanes=REGISTER)

        sums = [[k.changing("a", begun(i, part)) for part in places] for i in pixels]
        self._cells(k.hold(near, "near"), down, run, sums)
        for i, own in enumerate(sums):
            for part, a in zip(places, own, strict=True):
                self._add(at(i, part), a, plane)

    def _add(self, place: Expression, a: Value, plane: Value | None) -> None:
        """Adds the sums of a segment to those at a place."""
        if not self.form.pair:
            S.vstore(a, self.sums + place)
            return
        shift: Expression | int = 0 if plane is None else plane * 8
        mask = 0xFFFF if plane is None else S.i32(0xFFFF) >> plane * 8
        for array, words in zip(self.words, ((a & mask) << shift, a >> (16 - shift)), strict=True):
            S.vstore(S.vload(array + place, lanes=REGISTER) + words, array + place)

    @contextmanager
    def _words(self, near: Pointer, down: Value, run: Value) -> Iterator[tuple[Address, Address]]:
        """Statements for every turn of words of the cells of a segment, with the address of the weights and of the first pixel;
        without dilation the words of a row lie one behind the other."""
        k, form = self.k, self.form
        held, word = k.hold(self.wt + 0, "held"), near
        with ExitStack() as nest:
            if form.tall:
                ky = nest.enter_context(k.for_range(0, down, name="ky"))
                word = k.hold(near + ky * self.apart * self.wide * self.chunk, "word")
            if form.dilated:
                kx = nest.enter_context(k.for_range(0, run / self.chunk, name="kx"))
                word = k.hold(word + kx * self.dx * self.chunk, "word")
            if form.turns:
                nest.enter_context(k.for_range(0, self.chunk if form.dilated else run, form.turn, "c"))
            yield held, word
            k.move(held, held + form.turn * self.per_word)
            if form.turns:
                k.move(word, word + form.turn)

    def _cells(self, near: Pointer, down: Value, run: Value, sums: list[list[Value]]) -> None:
        """Adds the products of the words of a segment's cells."""
        k, staged, wide = self.k, self.form.staged, self.per_word // PARTS
        next_pixel = k.held("next", self.sx * self.chunk)
        with self._words(near, down, run) as (held, word):
            pixels = [k.hold(word + i * next_pixel, "xs") if i else word for i in range(len(sums))]
            for n in range(self.form.turn):
                values = [pixel[n] for pixel in pixels]
                xs = [
                    k.held("x", S.vbcast(value, lanes=REGISTER) if staged == FLOAT else spread_word(value, staged))
                    for value in values
                ]
                for part in range(self.form.parts):
                    place = held + (n * self.per_word + part * wide)
                    w = k.held("w", S.vload(place, lanes=wide))
                    for own, x in zip(sums, xs, strict=True):
                        k.assign(own[part], PRODUCTS[staged](own[part], x, w))
