"""Depthwise convolutions of 8-bit integers: a word holds four neighbouring pixels of a channel, so that a dot product takes
four cells of a window's row.

While the sums of a tile are worked out, the next tile's pixels are on their way into LSRAM.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from compass_core.arrays import Array
from compassc.build import Address, Expression, Pointer, Value
from compassc.dsl import script as S
from compassc.graph import Layer
from compassc.layers.families.linear.formats import Format
from compassc.layers.families.linear.frame import Cut, DepthwiseFrame
from compassc.layers.families.linear.tiles import PIXELS, Shape, padded
from compassc.layers.kernel import Kernel
from compassc.layers.layer_kernel import tail as tail_of
from compassc.layers.machine import Share
from compassc.layers.vectors import LANES, everywhere

CELLS = 4
"""Cells of a window's row in a word."""
WORDS, RAW, WEIGHTS = Share(4), Share(5, 32), Share(1)
"""LSRAM for the words of a tile, for its pixels as they were, and for each of two windows of weights."""


def most_words() -> int:
    """Words of all channels of a pass that a window may have."""
    return WEIGHTS.size // (CELLS * LANES)


def words_of(taps: int) -> int:
    return -(-taps // CELLS)


def word_step(s: Shape) -> int:
    """Pixels from one word that is needed to the next."""
    stride, apart = s.window.stride[1], s.window.dilation[1]
    return stride if s.window.kernel[1] <= CELLS or CELLS * apart % stride == 0 else 1


def row_sizes(s: Shape, columns: int) -> tuple[int, int]:
    """(words, pixels) of a row under `columns` output pixels."""
    wide = (columns - 1) * s.window.stride[1] + s.window.reach[1]
    return -(-wide // word_step(s)), wide


def fits(s: Shape, high: int, columns: int) -> bool:
    """Whether the rows fit LSRAM; the last words reach past the last row, to cells whose weights are 0."""
    words, pixels = row_sizes(s, columns)
    past = (CELLS - 1) * s.window.dilation[1] + word_step(s)
    return high * words * CELLS * LANES <= WORDS.size and (high * pixels + past) * LANES <= RAW.size


def packed_words(s: Shape, weights: Array) -> Array:
    """Weights [C,KH,KW,1] as [block][ky][word][channel][cell]."""
    (kh, kw), many, blocks = s.window.kernel, words_of(s.window.kernel[1]), -(-s.c // LANES)
    wide = np.zeros((blocks * LANES, kh, many * CELLS), np.int8)
    wide[: s.c, :, :kw] = weights[..., 0]
    cells = wide.reshape(blocks, LANES, kh, many, CELLS)
    return np.ascontiguousarray(cells.transpose(0, 2, 3, 1, 4)).reshape(-1)


class Quads(DepthwiseFrame):
    """The kernel for words of four pixels."""

    def __init__(self, layer: Layer, s: Shape, tail: Sequence[Layer], cut: Cut, f: Format) -> None:
        super().__init__(layer, s, tail, cut, packed_words(s, f.planes[0]))
        self.f, self.dtype, (step, dx) = f, layer.input.dtype, (word_step(s), s.window.dilation[1])
        self.runs, self.many = step == dx == 1, words_of(s.window.kernel[1])
        sizes = row_sizes(s, cut.columns)[0], step, s.window.stride[1] // step, CELLS * dx // step
        self.words, self.step, self.next, self.far = map(self.k.number, sizes)

    def kernel(self) -> Kernel:
        k = self.k
        with k.active():
            S.assume_unclipped()
            self.xt, self.wt = k.alloc(WORDS.size // 4, "int32", "xt"), k.alloc(2 * WEIGHTS.size, "int8", "wt")
            self.raw, self.spill = k.alloc(RAW.size, self.dtype, "raw"), k.alloc(PIXELS * LANES, "int32", "spill")
            (self.came,) = k.events("came")
            self.turn = k.changing("turn", S.i32(0))
            with k.when(S.get_local_id() < self.items):
                self._fetch(S.get_local_id())
            with k.shared(self.items, "item") as item:
                self._item(item)
            S.free_events(self.came)
        return k.kernel()

    def _item(self, item: Value) -> None:
        k, b = self.k, self.block(item)
        k.define(k.lanes_mask, tail_of(b.channels))
        begin = k.held("begin", S.vload(k.pointer(padded(self.s, self.f.start.astype(np.int32))) + b.o, lanes=LANES))
        output = self.outputs_of(b, self._sums)
        S.wait_events(self.came)
        with k.for_range(0, self.rows_under(b.tile), name="j") as j:
            line = k.hold(self.raw + j * self.wide * LANES, "line")
            self._words(line, k.hold(self.xt + j * self.words * LANES, "word"))
        weights = k.hold(self.wt + self.turn * WEIGHTS.size, "used")
        k.assign(self.turn, 1 - self.turn)
        ahead = k.held("ahead", item + S.get_local_size())
        with k.when(ahead < self.items):
            self._fetch(ahead)
        self.store(b.tile, output, partial(self._products, begin, weights))

    def _sums(self, i: Value) -> Value:
        """The sums of a pixel."""
        return self.k.let(S.vload(self.spill + i * LANES, lanes=LANES), low=self.f.low, high=self.f.high)

    def _fetch(self, item: Expression) -> None:
        """Starts the transfers of weights and pixels of an item."""
        b = self.block(item)
        S.async_dma_copy(self.wt + self.turn * WEIGHTS.size, b.weights, self.each, event=self.came)
        with self.brought(b, lambda j: self.raw + j * self.wide * LANES, partial(S.async_dma_copy, event=self.came)):
            pass

    def _pair(self, first: Value, second: Value) -> Value:
        """Pixels in turns."""
        return self.k.held("pair", S.reinterpret(S.vzip(first, second), "int16x32"))

    def _pixel(self, place: Address) -> Value:
        """The channels of a pixel without a sign."""
        loaded = S.vload(place, lanes=LANES)
        if self.dtype == "int8":
            loaded = S.reinterpret(loaded, "uint8x32") ^ everywhere(128, "uint8")
        return self.k.held("pixel", loaded)

    def _words(self, line: Pointer, word: Pointer) -> None:
        """Words of four pixels from a row of pixels."""
        k = self.k
        if not self.runs:
            with k.for_range(0, self.words, name="e") as e:
                cells = [self._pixel(line + (e * self.step + i * self.dx) * LANES) for i in range(CELLS)]
                self._put(word, e, self._pair(*cells[:2]), self._pair(*cells[2:]))
            return
        first, second, third = (self._pixel(line + i * LANES) for i in range(CELLS - 1))
        pair, ahead = self._pair(first, second), self._pair(second, third)
        with k.for_range(0, self.words, name="e") as e:
            last = self._pixel(line + (e + (CELLS - 1)) * LANES)
            new = self._pair(third, last)
            self._put(word, e, pair, new)
            for variable, value in ((pair, ahead), (ahead, new), (third, last)):
                k.assign(variable, value)

    def _put(self, word: Pointer, e: Value, first: Value, second: Value) -> None:
        S.vstore(S.reinterpret(S.vzip(first, second), "int32x32"), word + e * LANES)

    def _products(self, begin: Value, weights: Pointer, r: Value, p: Value) -> None:
        """The sums of a few pixels next to each other, in registers, and from there in LSRAM."""
        k = self.k
        sums = [k.changing("a", begin) for _ in range(PIXELS)]
        near = k.hold(self.xt + (r * self.sy * self.words + p * self.next) * LANES, "near")
        with k.for_range(0, self.kh, name="ky") as ky:
            row = k.hold(near + ky * self.dy * self.words * LANES, "row")
            for q in range(self.many):
                held = k.held("w", S.vload(weights + (ky * self.many + q) * CELLS * LANES, lanes=CELLS * LANES))
                for i, a in enumerate(sums):
                    cells = S.vload(row + (q * self.far + i * self.next) * LANES, lanes=LANES)
                    k.assign(a, S.vqdpa(a, S.reinterpret(cells, f"uint8x{CELLS * LANES}"), held))
        for i, a in enumerate(sums):
            S.vstore(a, self.spill + i * LANES)
