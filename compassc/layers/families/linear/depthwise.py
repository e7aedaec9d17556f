"""Kernels of depthwise convolutions with one output channel per input channel: the lanes are channels of both.

The input under a tile of output pixels lies in LSRAM as 32-bit numbers, for 32 channels at a time. 8-bit integers are
summed up in float32 as long as that is exact (sums below 2^24), 16-bit integers in int32; weights of 16 bits are cut in
two bytes where the sums would not fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import numpy as np

from compass_core.arrays import Array
from compassc.build import Address, Value
from compassc.dsl import script as S
from compassc.graph import Layer
from compassc.layers.choices import choose
from compassc.layers.families.linear import depthwise_bytes
from compassc.layers.families.linear.formats import (
    BYTE,
    FLOAT,
    WORD,
    Format,
    format_of,
    in_bytes,
    integer_format,
    signed_sums,
    sums_range,
    terms_of,
)
from compassc.layers.families.linear.frame import Block, Cut, DepthwiseFrame, Sums
from compassc.layers.families.linear.reference import has_ahead_shift
from compassc.layers.families.linear.tiles import ITEM, PIXEL, PIXELS, TRANSFER, Shape
from compassc.layers.kernel import Kernel
from compassc.layers.layer_kernel import tail as tail_of
from compassc.layers.machine import Share, Tiles, costs
from compassc.layers.requantise import carried
from compassc.layers.vectors import LANES, everywhere

INPUT, WEIGHTS, RAW = Share(4), Share(2), Share(1)
"""LSRAM for input pixels of words, for weights, and for a row of the input as it was."""

HELD = LANES // 2
"""Channels whose sums of some pixels are in registers together: two for each pixel, which leaves hosts of sixteen half of them."""
TURNS = (3, 5, 7, 2, 1)
"""How many cells of a row of the window a turn of the innermost loop may have; the first of them that divides all is taken."""

FORMS = ("quads", "pixels")
"""Of kernels for 8-bit integers: four pixels in a word, or a pixel at a time. The first one is what usually takes fewer cycles."""


def _of_words(layer: Layer, s: Shape) -> Format:
    """The format of words of one element."""
    if not layer.is_quantised:
        return format_of(layer, s)
    x, (weights, biases, fill) = layer.input, terms_of(layer, s)
    f, low, high = integer_format(x, weights, biases, fill), min(x.low, fill or 0), max(x.high, fill or 0)
    least, most = sums_range(signed_sums(weights), np.zeros_like(biases), low, high)
    largest = max(-int(least.min()), int(most.max()))
    if largest >= 1 << 31 or _beyond(biases, f.low, f.high):
        return f._replace(staged=WORD, planes=in_bytes(weights).astype(np.int32), start=biases)
    kind = FLOAT if largest < 1 << 24 else WORD
    return f._replace(staged=kind, planes=weights[None].astype(kind), start=biases)


def _beyond(biases: Array, *ends: int) -> bool:
    return max(map(abs, (*ends, int(biases.min()), int(biases.max())))) >= 1 << 31


def _cuts(s: Shape, size: int) -> Iterator[tuple[float, Cut]]:
    """Tiles that fit LSRAM, with about the cycles of the layer."""
    taps, blocks, cost = s.window.kernel[0] * s.window.kernel[1], -(-s.c // LANES), costs()
    for cut in _sizes(s):
        rows, columns, high, wide = cut
        if high * wide * LANES * 4 > INPUT.size or wide * LANES * size > RAW.size:
            continue
        row = cost.transfers(wide * LANES * size) + wide * (12 if size < 4 else 4) + TRANSFER
        weights = cost.transfers(taps * LANES * 4)

        def work(tall: int, long: int, row: float = row, weights: float = weights) -> list[float]:
            seen = (tall - 1) * s.window.stride[0] + s.window.reach[0]
            sums = tall * (-(-long // PIXELS) * (taps * 20 + 60) + long * PIXEL)
            return [ITEM + weights + seen * row + sums] * blocks

        yield Tiles(s.n, s.oh, s.ow, rows, columns).cycles(work), cut


def _sizes(s: Shape) -> Iterator[Cut]:
    for columns in range(PIXELS, -(-s.ow // PIXELS) * PIXELS + 1, PIXELS):
        for rows in range(1, s.oh + 1):
            high = (rows - 1) * s.window.stride[0] + s.window.reach[0]
            yield Cut(rows, columns, high, (columns - 1) * s.window.stride[1] + s.window.reach[1])


def _in_quads(s: Shape) -> Iterator[tuple[float, Cut]]:
    """The same for words of four pixels, with about the cycles of the layer."""
    words, blocks, cost = depthwise_bytes.words_of(s.window.kernel[1]) * s.window.kernel[0], -(-s.c // LANES), costs()
    for cut in _sizes(s):
        rows, columns, high, wide = cut
        if not depthwise_bytes.fits(s, high, columns):
            continue
        row = depthwise_bytes.row_sizes(s, columns)[0]
        moved = cost.transfers(wide * LANES)

        def work(tall: int, long: int, row: int = row, moved: float = moved) -> list[float]:
            seen = (tall - 1) * s.window.stride[0] + s.window.reach[0]
            sums = 600 + seen * (60 + row * 10) + tall * (-(-long // PIXELS) * PIXELS * words * 6 + long * 20)
            return [max(sums, seen * moved + cost.startup)] * blocks

        yield Tiles(s.n, s.oh, s.ow, rows, columns).cycles(work) + (high + 1) * moved, cut


def depthwise(layer: Layer, s: Shape, tail: Sequence[Layer]) -> Kernel | None:
    """The kernel; None where a window does not fit LSRAM."""
    found = _by_quads(layer, s, tail)
    if found is not None and choose("form", FORMS, FORMS.index, str) == "quads":
        return found
    return _by_pixels(layer, s, tail)


def _by_quads(layer: Layer, s: Shape, tail: Sequence[Layer]) -> Kernel | None:
    """The kernel for words of four pixels; None for layers that it is not for."""
    f = format_of(layer, s)
    if (
        f.staged != BYTE
        or s.window.kernel[0] * depthwise_bytes.words_of(s.window.kernel[1]) > depthwise_bytes.most_words()
    ):
        return None
    found = choose("quads", _in_quads(s), lambda f: f[0], lambda f: f"{f[1].rows}x{f[1].columns}")
    return None if found is None else depthwise_bytes.Quads(layer, s, tail, found[1], f).kernel()


def _by_pixels(layer: Layer, s: Shape, tail: Sequence[Layer]) -> Kernel | None:
    size = {"8": 1, "6": 2, "2": 4}[layer.input.dtype[-1]]
    found = choose("pixels", _cuts(s, size), lambda f: f[0], lambda f: f"{f[1].rows}x{f[1].columns}")
    f, (kh, kw) = _of_words(layer, s), s.window.kernel
    if found is None or kh * kw * len(f.planes) * LANES * 4 > WEIGHTS.size:
        return None
    return _Pixels(layer, s, tail, found[1], f).kernel()


def _packed(s: Shape, planes: Array) -> Array:
    """Weights as [block][ky][kx][plane][channel]."""
    many, taps, blocks = len(planes), s.window.kernel[0] * s.window.kernel[1], -(-s.c // LANES)
    wide = np.zeros((many, blocks * LANES, taps), planes.dtype)
    wide[:, : s.c] = planes.reshape(many, s.c, taps)
    return np.ascontiguousarray(wide.reshape(many, blocks, LANES, taps).transpose(1, 3, 0, 2)).reshape(-1)


class _Pixels(DepthwiseFrame):
    """The kernel for a pixel at a time."""

    def __init__(self, layer: Layer, s: Shape, tail: Sequence[Layer], cut: Cut, f: Format) -> None:
        super().__init__(layer, s, tail, cut, _packed(s, f.planes))
        self.f, self.kind, self.planes = f, f.staged, range(len(f.planes))
        kw, apart = s.window.kernel[1], s.window.dilation[1]
        self.turn = next(n for n in TURNS if kw % n == 0) if apart == 1 else 1

    def kernel(self) -> Kernel:
        k, kind = self.k, self.kind
        with k.active():
            self.xt, self.wt = k.alloc(INPUT.size // 4, kind, "xt"), k.alloc(WEIGHTS.size // 4, kind, "wt")
            self.raw = k.alloc(RAW.size // 4, "int32", "raw")
            with k.shared(self.items, "item") as item:
                block = self.block(item)
                k.define(k.lanes_mask, tail_of(block.channels))
                S.dma_copy(self.wt, block.weights, self.each)
                output = self.outputs_of(block, self._sums)
                self._stage(block)
                self.store(block.tile, output, self._products)
        return k.kernel()

    def _stage(self, block: Block) -> None:
        """The input under the tile, row by row."""
        k, dtype = self.k, self.layer.input.dtype
        direct, raw = dtype == self.kind, self.raw.as_ptr(dtype)

        def target(j: Value) -> Address:
            return self.xt + j * self.wide * LANES

        with self.brought(block, target if direct else lambda j: raw, S.dma_copy) as (j, line):
            if not direct:
                with k.for_range(0, self.wide * LANES, LANES, "e") as e:
                    S.vstore(S.cast(S.vload(line + e, lanes=LANES), self.kind), target(j) + e)

    def _spot(self, plane: int, pixel: int | Value) -> Address:
        """Where the sums of a pixel are kept, so that the steps behind them stand in the text once."""
        return self.raw.as_ptr(self.kind) + (pixel * LANES + plane * PIXELS * LANES)

    def _products(self, r: Value, p: Value) -> None:
        """The sums of a few pixels next to each other, in registers: of so many channels one after the other as hosts have
        registers for."""
        k = self.k
        near = k.hold(self.xt + (r * self.sy * self.wide + p * self.sx) * LANES, "near")
        with k.for_range(0, LANES, HELD, "part") as part:
            sums = [[k.changing("a", everywhere(0, self.kind, HELD)) for _ in self.planes] for _ in range(PIXELS)]
            held = k.hold(self.wt + part, "held")
            with k.for_range(0, self.kh, name="ky") as ky, ExitStack() as nest:
                place = ky * self.dy * self.wide
                if self.turn < self.s.window.kernel[1]:
                    place = place + nest.enter_context(k.for_range(0, self.kw, self.turn, "kx")) * self.dx
                cell = k.hold(near + (place * LANES + part), "cell")
                self._taps(cell, held, sums)
                k.move(held, held + self.turn * len(self.planes) * LANES)
            for i, own in enumerate(sums):
                for j in self.planes:
                    S.vstore(own[j], self._spot(j, i) + part)

    def _taps(self, cell: Address, held: Address, sums: list[list[Value]]) -> None:
        """Adds the products of the window's cells of a turn; each of the input's pixels is loaded once."""
        k, stride, weights = self.k, self.s.window.stride[1], list[list[Value]]()
        places = sorted({i * stride + n for i in range(PIXELS) for n in range(self.turn)})
        for place in places:
            x = k.held("x", S.vload(cell + place * LANES, lanes=HELD))
            for n in range(self.turn):
                i, beside = divmod(place - n, stride)
                if beside or i not in range(PIXELS):
                    continue
                if n == len(weights):
                    taps = [held + (n * len(self.planes) + j) * LANES for j in self.planes]
                    weights.append([k.held("w", S.vload(tap, lanes=HELD)) for tap in taps])
                for j, (a, w) in enumerate(zip(sums[i], weights[n], strict=True)):
                    k.assign(a, S.fma(a, x, w) if self.kind == FLOAT else a + x * w)

    def _sums(self, i: Value) -> Sums:
        """The sums of a pixel, with biases unless these come later."""
        k, f = self.k, self.f
        a, *upper = (k.let(S.vload(self._spot(j, i), lanes=LANES)) for j in self.planes)
        if not self.layer.is_quantised:
            return k.let(a + k.channels(f.start))
        if upper:
            low, high = (k.channels(part.astype(np.int32)) for part in (f.start & 0xFFFF, f.start >> 16))
            words = (a >> 16) + (upper[0] >> 8) + high, (a & 0xFFFF) + ((upper[0] & 255) << 8) + low
            return carried(k, *words, f.low, f.high)
        whole = S.cast(a, "int32") if self.kind == FLOAT else a
        none = has_ahead_shift(self.layer) and not f.start.any()
        added = whole if none else whole + k.channels(f.start.astype(np.int32))
        return k.let(added, low=f.low, high=f.high)
