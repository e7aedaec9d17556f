"""Convolutions and fully connected layers as loops: their sizes, how they are cut to fit LSRAM, and packed weights.

A tile of output pixels is worked on for 32 output channels at once. Inputs come as 32-bit words of one, two or four
channels, in chunks of words; the weights of a chunk come in segments of window cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from compassc.graph import Layer, LayerError
from compassc.layers.arithmetic import Array
from compassc.layers.source import LANES
from compassc.layers.windows import Window, window_of

INPUT_BYTES, SEGMENT_BYTES, SUMS_BYTES = 12288, 8192, 8192
SLACK = 128
"""Bytes behind the input's tile that whole vectors may touch."""
WORD_BYTES = 4 * LANES
"""Bytes of the weights of one word for all lanes."""
SEGMENT_WORDS = SEGMENT_BYTES // WORD_BYTES
PIXELS = 4
"""Output pixels that share the loaded weights."""
TASKS = 16
"""Pieces that the work should have at least, for the TECs to share it evenly."""


@dataclass(frozen=True)
class Shape:
    """The sizes of a convolution."""

    n: int
    h: int
    w: int
    c: int
    oh: int
    ow: int
    outputs: int
    groups: int
    window: Window
    spaced: tuple[int, int] = (1, 1)
    """Rows and columns from one input pixel to the next: between them the window sees 0 (transposed convolutions)."""

    @property
    def inner(self) -> int:
        """Input channels of a group."""
        return self.c // self.groups

    @property
    def own(self) -> int:
        """Output channels of a group."""
        return self.outputs // self.groups

    @property
    def blocks(self) -> int:
        return -(-self.own // LANES)

    @property
    def is_plain(self) -> bool:
        """Whether every output pixel sees one input pixel, at its own place."""
        w = self.window
        return w.kernel == w.stride == (1, 1) and w.pads == ((0, 0), (0, 0))

    @property
    def has_border(self) -> bool:
        return self.spaced != (1, 1) or any(p > 0 for pads in self.window.pads for p in pads)


def shape_of(layer: Layer) -> Shape:
    x, y = layer.input.shape, layer.output.shape
    if layer.type == "FullyConnected":
        outputs = layer.constant("weights").shape[0]
        depth = layer.constant("weights").size // max(outputs, 1)
        rows = layer.input.count // max(depth, 1)
        if rows * depth != layer.input.count or rows * outputs != layer.output.count:
            raise LayerError(f"'weights' of {outputs} x {depth} do not fit the shapes {list(x)} -> {list(y)}")
        return _plain(rows, depth, outputs)
    window = window_of(layer)
    if len(x) == 3:
        window = Window((1, *window.kernel), (1, *window.stride), (1, *window.dilation), ((0, 0), *window.pads))
        x, y = (x[0], 1, *x[1:]), (y[0], 1, *y[1:])
    if len(x) != 4:
        raise LayerError(f"a {layer.type} of {len(x)} dimensions has no kernel")
    groups = layer.integer("group", x[-1] if layer.type == "DepthwiseConv" else 1)
    if groups < 1 or x[3] % groups or y[3] % groups:
        raise LayerError(f"{x[3]} input and {y[3]} output channels are not divided by {groups} groups")
    if layer.type == "ConvTranspose":
        return _transposed(layer, x, y, groups, window)
    shape = Shape(x[0], x[1], x[2], x[3], y[1], y[2], y[3], groups, window)
    expected = (y[3], *window.kernel, x[3] // groups)
    if layer.constant("weights").size != np.prod(expected):
        raise LayerError(f"'weights' is {list(layer.constant('weights').shape)}, expected {list(expected)}")
    if shape.is_plain and groups == 1:
        return _plain(x[0] * x[1] * x[2], x[3], y[3])
    return shape


def _transposed(layer: Layer, x: tuple[int, ...], y: tuple[int, ...], groups: int, window: Window) -> Shape:
    """A convolution with the mirrored filters over the input's pixels, moved apart by the strides."""
    expected = (y[3] // groups, *window.kernel, x[3])
    if layer.constant("weights").shape != expected:
        raise LayerError(f"'weights' is {list(layer.constant('weights').shape)}, expected {list(expected)}")
    extra = (layer.integer("output_padding_y", 0), layer.integer("output_padding_x", 0))
    for size, made, s, r, (before, after), e in zip(
        x[1:3], y[1:3], window.stride, window.reach, window.pads, extra, strict=True
    ):
        if (size - 1) * s + r + e - before - after != made:
            raise LayerError(f"the output's size {made} does not follow from {size} and the window")
    near, far = zip(*(((r - 1 - b), (r - 1 - a + e)) for r, (b, a), e in zip(window.reach, window.pads, extra, strict=True)),
                    strict=True)  # fmt: skip
    pads = tuple(zip(near, far, strict=True))
    moved = Window(window.kernel, (1, 1), window.dilation, pads)
    return Shape(x[0], x[1], x[2], x[3], y[1], y[2], y[3], groups, moved, (window.stride[0], window.stride[1]))


def filters_of(s: Shape, layer: Layer, weights: Array) -> Array:
    """Weights as [O,KH,KW,I/group]; those of a transposed convolution are [O/group,KH,KW,I], and are mirrored."""
    if layer.type != "ConvTranspose":
        return weights.reshape(s.outputs, *s.window.kernel, s.inner)
    parts = weights[:, ::-1, ::-1].reshape(s.own, *s.window.kernel, s.groups, s.inner)
    return np.ascontiguousarray(np.moveaxis(parts, 3, 0)).reshape(s.outputs, *s.window.kernel, s.inner)


def _plain(rows: int, depth: int, outputs: int) -> Shape:
    return Shape(1, 1, rows, depth, 1, rows, outputs, 1, Window((1, 1), (1, 1), (1, 1), ((0, 0), (0, 0))))


@dataclass(frozen=True)
class Tiling:
    """How a convolution is cut: rows and columns of output pixels of a tile, words of a chunk, cells of a segment."""

    rows: int
    columns: int
    chunk: int
    chunks: int
    cells: tuple[int, int]
    row_step: int
    input_rows: int
    input_columns: int

    @property
    def pixels(self) -> int:
        """Pixels that share loaded weights."""
        return min(PIXELS, self.columns)


def tiling_of(s: Shape, words: int, most: int) -> Tiling:
    """The best cut by an estimate of cycles; at most `most` pixels. LayerError where a window does not fit LSRAM."""
    found = min(_candidates(s, words, most), key=lambda t: _cycles(s, t), default=None)
    if found is None:
        raise LayerError(f"a window of {list(s.window.reach)} input pixels does not fit LSRAM")
    return found


def _candidates(s: Shape, words: int, most: int) -> Iterator[Tiling]:
    kh, kw = s.window.kernel
    widths = [1] if s.ow == 1 else range(PIXELS, min(most, -(-s.ow // PIXELS) * PIXELS) + 1, PIXELS)
    for columns in widths:
        for rows in range(1, min(s.oh, most // columns) + 1):
            step = s.window.dilation[0] if rows == 1 else 1
            high = kh if rows == 1 else (rows - 1) * s.window.stride[0] + s.window.reach[0]
            wide = (columns - 1) * s.window.stride[1] + s.window.reach[1]
            room = min(words, INPUT_BYTES // (high * wide * 4), max(1, SEGMENT_WORDS // kw))
            if room < 1:
                break
            chunks = -(-words // room)
            chunk = -(-words // chunks)
            across = min(kw, SEGMENT_WORDS // chunk)
            down = min(kh, max(1, SEGMENT_WORDS // (kw * chunk))) if across == kw else 1
            yield Tiling(rows, columns, chunk, chunks, (down, across), step, high, wide)


def _cycles(s: Shape, t: Tiling) -> float:
    """About the cycles of all TECs together: products, the weights' transfers, the inputs'."""
    kh, kw = s.window.kernel
    tiles = -(-s.oh // t.rows) * -(-s.ow // t.columns)
    segments = -(-kh // t.cells[0]) * -(-kw // t.cells[1]) * t.chunks
    words = kh * kw * t.chunk * t.chunks
    across = s.ow // t.columns * (t.columns // t.pixels) + -(-(s.ow % t.columns) // t.pixels)
    products = s.oh * across * s.blocks * (words * 5 * t.pixels + segments * 40)
    weights = tiles * s.blocks * (words * WORD_BYTES / 16 + 120 * segments)
    staged = s.blocks if t.chunks > 1 else min(s.blocks, max(1, TASKS // (s.n * tiles * s.groups)))
    inputs = tiles * staged * t.chunks * t.input_rows * (120 + t.input_columns * t.chunk * 4 / 16)
    return products + weights + inputs


def packed(s: Shape, t: Tiling, planes: Array, per_word: int) -> Array:
    """Weights [plane,O,KH,KW,I] as [group][block][chunk][plane][ky][kx][word][output][channel of the word]."""
    kh, kw = s.window.kernel
    many, lanes = len(planes), s.blocks * LANES
    depth = t.chunks * t.chunk * per_word
    wide = planes.reshape(many, s.groups, s.own, kh, kw, s.inner)
    if (lanes, depth) != (s.own, s.inner):
        room = ((0, 0), (0, 0), (0, lanes - s.own), (0, 0), (0, 0), (0, depth - s.inner))
        wide = np.pad(wide, room)
    parts = wide.reshape(many, s.groups, s.blocks, LANES, kh, kw, t.chunks, t.chunk, per_word)
    return np.ascontiguousarray(parts.transpose(1, 2, 6, 0, 4, 5, 7, 3, 8)).reshape(-1)


def padded(s: Shape, numbers: Array) -> Array:
    """Numbers per output channel, each group padded to whole blocks."""
    wide = np.zeros((s.groups, s.blocks * LANES), numbers.dtype)
    wide[:, : s.own] = numbers.reshape(s.groups, s.own)
    return wide.reshape(-1)
