"""Convolutions and fully connected layers as loops: their sizes, how they are cut to fit LSRAM, and packed weights.

A tile of output pixels is worked on for 32 output channels at once. Inputs come as 32-bit words of one, two or four
channels, in chunks of words; the weights of a chunk come in segments of window cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from operator import itemgetter

import numpy as np

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compass_core.namedtuple import NamedTuple
from compass_core.targets import Target
from compassc.graph import Layer, LayerError
from compassc.layers.arranged import Arranged, Packing
from compassc.layers.choices import choose
from compassc.layers.machine import Costs, Share, Tiles, configuration, costs, tasks
from compassc.layers.vectors import LANES
from compassc.layers.windows import Window, window_of

INPUT, SEGMENT, SUMS = Share(3), Share(2), Share(2)
"""LSRAM for the inputs of a tile, weights and sums."""
SLACK = 128
"""Bytes behind the input's tile that whole vectors may touch."""
WORD = 4 * LANES
"""Bytes of the weights of one word for all lanes."""
TRANSPOSED = ("ConvTranspose", "ConvTranspose3D")
VOLUMES = ("Convolution3D", "ConvTranspose3D")
PARTS = 4
"""Registers of a block of output channels."""
PIXELS = 4
"""Output pixels that are worked on together."""
TURNS = (4, 3, 7, 2, 5, 1)
"""How many words a turn of the innermost loop may have; the first of them that divides all words is taken."""
LONG_TURNS = (16, 12, 9, 8, *TURNS)
"""The same, where words are so few that what surrounds a turn counts."""
FEW = 32
"""Words of a segment which are so few that what surrounds their products counts."""
ITEM, BLOCK, TRANSFER, LOADED, PIXEL = 150, 60, 40, 220, 40
"""About the cycles of what surrounds the work: of an item, of a block of channels, of a transfer's places, of the sums that a
segment loads and stores for the pixels that share weights, of an output pixel."""


@dataclass(frozen=True)
class Planes:
    """The layout of volumes as planes of rows; pairs are of depth and height."""

    sizes: tuple[int, int]
    made: tuple[int, int]
    window: Window
    spaced: tuple[int, int]


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
    planes: Planes | None = None
    """Of volumes: the rows of all planes are one behind the other, in `h`, `oh` and in the window."""

    @property
    def inner(self) -> int:
        """Input channels of a group."""
        return self.c // self.groups

    @property
    def own(self) -> int:
        """Output channels of a group."""
        return self.outputs // self.groups

    @cached_property
    def blocks(self) -> int:
        return -(-self.own // LANES)

    @property
    def registers(self) -> int:
        """Registers that hold the channels of a block: fewer where a group has few channels."""
        return -(-min(self.own, LANES) * PARTS // LANES)

    @property
    def is_plain(self) -> bool:
        """Whether every output pixel depends on the input pixel at the same position alone."""
        w = self.window
        return w.kernel == w.stride == (1, 1) and w.pads == ((0, 0), (0, 0))

    @cached_property
    def has_border(self) -> bool:
        folded = self.planes is not None and (
            self.planes.spaced != (1, 1) or any(p > 0 for pads in self.planes.window.pads for p in pads)
        )
        return folded or self.spaced != (1, 1) or any(p > 0 for pads in self.window.pads for p in pads)


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
    if len(x) != (5 if layer.type in VOLUMES else 4):
        raise LayerError(f"a {layer.type} of {len(x)} dimensions has no kernel")
    groups = layer.integer("group", x[-1] if layer.type == "DepthwiseConv" else 1)
    if groups < 1 or x[-1] % groups or y[-1] % groups:
        raise LayerError(f"'group' is {groups}, which does not divide {x[-1]} input and {y[-1]} output channels")
    spaced = (1,) * len(window.kernel)
    if layer.type in TRANSPOSED:
        expected = (y[-1] // groups, *_stored_order(window.kernel), x[-1])
        spaced, window = window.stride, _mirrored(layer, x, y, window)
    else:
        expected = (y[-1], *_stored_order(window.kernel), x[-1] // groups)
        made = (x[0], *window.positions(x[1:-1]), y[-1])
        if made != tuple(y):
            raise LayerError(f"the window leads from {list(x)} to the shape {list(made)}, the output is {list(y)}")
    found = layer.constant("weights").shape
    line = (expected[0], *expected[2:]) if len(layer.input.shape) == 3 else expected
    if found != line:
        raise LayerError(f"'weights' is {list(found)}, expected {list(line)}")
    if len(window.kernel) == 3:
        return _folded(x, y, groups, window, spaced)
    shape = Shape(x[0], x[1], x[2], x[3], y[1], y[2], y[3], groups, window, (spaced[0], spaced[1]))
    if shape.is_plain and groups == 1 and layer.type not in TRANSPOSED:
        return _plain(x[0] * x[1] * x[2], x[3], y[3])
    return shape


def _stored_order(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Sizes along the axes as weights have them: the depth of volumes is last."""
    return sizes if len(sizes) < 3 else (*sizes[1:], sizes[0])


def _folded(x: tuple[int, ...], y: tuple[int, ...], groups: int, w: Window, spaced: tuple[int, ...]) -> Shape:
    """A convolution of volumes as one of images: what the window sees of an output row is rows of several planes."""
    planes = Planes(
        (x[1], x[2]),
        (y[1], y[2]),
        Window(w.kernel[:2], w.stride[:2], w.dilation[:2], w.pads[:2]),
        (spaced[0], spaced[1]),
    )
    kernel = (w.kernel[0] * w.kernel[1], w.kernel[2])
    rows = Window(kernel, (1, w.stride[2]), (1, w.dilation[2]), ((0, 0), w.pads[2]))
    return Shape(x[0], x[1] * x[2], x[3], x[4], y[1] * y[2], y[3], y[4], groups, rows, (1, spaced[2]), planes)


def _mirrored(layer: Layer, x: tuple[int, ...], y: tuple[int, ...], window: Window) -> Window:
    """The window of the mirrored filters over the input's elements, moved apart by the strides."""
    extra = tuple(layer.integer(f"output_padding_{a}", 0) for a in "zyx"[-len(window.kernel) :])
    made = tuple(
        (n - 1) * s + r + e - before - after
        for n, s, r, e, (before, after) in zip(x[1:-1], window.stride, window.reach, extra, window.pads, strict=True)
    )
    if (x[0], *made, y[-1]) != tuple(y):
        raise LayerError(
            f"the window leads from {list(x)} to the shape {[x[0], *made, y[-1]]}, the output is {list(y)}"
        )
    pads = tuple((r - 1 - b, r - 1 - a + e) for r, (b, a), e in zip(window.reach, window.pads, extra, strict=True))
    return Window(window.kernel, (1,) * len(pads), window.dilation, pads)


def filters_of(s: Shape, layer: Layer, weights: Array) -> Array:
    """Weights as [O,KH,KW,I/group]; those of a transposed convolution are [O/group,KH,KW,I], and are mirrored.

    Volumes have theirs as [O,KH,KW,KD,I]; here KD and KH are one axis.
    """
    weights = np.moveaxis(weights, 3, 1) if s.planes else weights
    if layer.type not in TRANSPOSED:
        return weights.reshape(s.outputs, *s.window.kernel, s.inner)
    parts = np.flip(weights, tuple(range(1, weights.ndim - 1))).reshape(s.own, *s.window.kernel, s.groups, s.inner)
    return np.ascontiguousarray(np.moveaxis(parts, 3, 0)).reshape(s.outputs, *s.window.kernel, s.inner)


def _plain(rows: int, depth: int, outputs: int) -> Shape:
    return Shape(1, 1, rows, depth, 1, rows, outputs, 1, Window((1, 1), (1, 1), (1, 1), ((0, 0), (0, 0))))


class Tiling(NamedTuple):
    """The tiling of a convolution: rows and columns of output pixels of a tile, words of a chunk, cells of a segment."""

    rows: int
    columns: int
    chunk: int
    chunks: int
    cells: tuple[int, int]
    row_step: int
    input_rows: int
    input_columns: int

    pixels: int
    """Pixels that share loaded weights: more where there are few of these."""

    turn: int
    """Words of a turn of the innermost loop."""

    parts: int = 1
    """Items that share a tile, each with blocks of output channels of its own."""


def _shared_pixels() -> int:
    """Output pixels that share many weights: with one vector unit, two are enough for loads to keep up with products."""
    return PIXELS // 2 if costs().vector_units == 1 else PIXELS


def _turn(s: Shape, chunk: int, across: int, turns: Sequence[int]) -> int:
    """Words of a turn of the innermost loop, which goes over those of several cells where these lie behind each other."""
    (_, kw), (_, apart) = s.window.kernel, s.window.dilation
    same = across if apart == 1 and kw % across == 0 else 1
    many = chunk * same
    for n in turns:
        if many % n == 0:
            return n
    return 1


def segment_words() -> int:
    """Words of a segment."""
    return SEGMENT.size // WORD


def tiling_of(s: Shape, words: int, most: int, planes: int) -> Tiling:
    """The best cut, by an estimate of cycles or on record; at most `most` pixels. LayerError where a window does not fit LSRAM."""
    options = _tilings(configuration(), (INPUT.size, segment_words()), s, words, most, planes)
    found = choose("tiling", options, lambda o: o[0], lambda o: f"{o[1].rows}x{o[1].columns}")
    if found is None:
        raise LayerError(f"a window of {list(s.window.reach)} input pixels does not fit LSRAM")
    return found[1]


@lru_cache(maxsize=256)
def _tilings(
    target: Target, room: tuple[int, int], s: Shape, words: int, most: int, planes: int
) -> tuple[tuple[float, Tiling], ...]:
    """The cuts that fit the room in LSRAM, after their cycles. `target`: the one that kernels are planned for; many layers are
    alike."""
    cost = costs()
    return tuple(_shared(s, t, planes, cost) for t in _candidates(s, words, most, *room))


def _candidates(s: Shape, words: int, most: int, size: int, most_words: int) -> Iterator[Tiling]:
    """The cuts of which the input fits `size` bytes, and a segment of the weights `most_words` words."""
    (kh, kw), (down_reach, across_reach) = s.window.kernel, s.window.reach
    step = _shared_pixels()
    widths = [1] if s.ow == 1 else range(step, min(most, -(-s.ow // step) * step) + 1, step)
    for columns in widths:
        wide = (columns - 1) * s.window.stride[1] + across_reach
        for rows in range(1, 2 if s.planes else min(s.oh, most // columns) + 1):
            row_step = s.window.dilation[0] if rows == 1 else 1
            high = kh if rows == 1 else (rows - 1) * s.window.stride[0] + down_reach
            room = min(words, size // (high * wide * 4), max(1, most_words // kw))
            if room < 1:
                break
            chunks = -(-words // room)
            chunk = -(-words // chunks)
            across = min(kw, most_words // chunk)
            down = min(kh, max(1, most_words // (kw * chunk))) if across == kw else 1
            few = across * down * chunk < FEW and columns % PIXELS == 0
            pixels = min(PIXELS if few and s.registers <= 2 else step, columns)
            turn = _turn(s, chunk, across, LONG_TURNS if few and pixels < PIXELS else TURNS)
            yield Tiling(rows, columns, chunk, chunks, (down, across), row_step, high, wide, pixels, turn)


def _shared(s: Shape, t: Tiling, planes: int, cost: Costs) -> tuple[float, Tiling]:
    """A cut whose blocks are shared by as many items as is best, after its cycles: those of the TEC with most work."""
    tiles, many = Tiles(s.n, s.oh, s.ow, t.rows, t.columns), s.blocks
    item, block = _work(s, t, planes, cost)
    most = min(many, max(1, -(-tasks() // (tiles.many * s.groups))))
    if most == 1:
        return tiles.cycles(lambda tall, long: [item + many * block(tall, long)], s.groups), t
    lines, options = tiles.lines(block), []
    for parts in sorted({-(-many // -(-many // parts)) for parts in range(1, most + 1)}):
        per = -(-many // parts)
        blocks = [min(per, many - first) for first in range(0, many, per)]
        work = [([([item + count * each for count in blocks], n) for each, n in line], times) for line, times in lines]
        options.append((tiles.longest(work, s.groups), parts))
    cycles, parts = min(options, key=itemgetter(0))
    return cycles, t._replace(parts=parts)


def _work(s: Shape, t: Tiling, planes: int, cost: Costs) -> tuple[float, Callable[[int, int], float]]:
    """About the cycles of an item, and those of each of its blocks by the rows and columns of the tile: transfers of inputs and
    weights, and products."""
    kh, kw = s.window.kernel
    segments = planes * t.chunks * -(-kh // t.cells[0]) * -(-kw // t.cells[1])
    words = planes * t.chunks * t.chunk * kh * kw
    staged = t.input_rows * (cost.transfers(t.input_columns * t.chunk * 4) + t.input_columns * t.chunk / 8 + TRANSFER)
    if s.has_border:
        staged += t.input_rows * cost.startup * min(1, 2 * t.columns / s.ow)
    begun = BLOCK + cost.transfers(words * WORD, segments) + segments * TRANSFER + (t.chunks > 1) * t.chunks * staged
    item = ITEM + (t.chunks == 1) * staged
    shared = t.pixels * words * (1 + PARTS / cost.vector_units) + segments * LOADED
    return item, lambda tall, long: begun + tall * (-(-long // t.pixels) * shared + long * PIXEL)


def packed(s: Shape, t: Tiling, planes: Array, per_word: int) -> Arranged:
    """Weights [plane,O,KH,KW,I] as the kernel takes them."""
    return Arranged(planes, Packing(LANES, s.groups, s.own, s.window.kernel, s.inner, per_word, t.chunk, t.chunks))


def padded(s: Shape, numbers: Array) -> Array:
    """Numbers per output channel, each group padded to whole blocks."""
    if numbers.size != s.outputs:
        raise LayerError(f"there are {numbers.size} numbers per channel, but {s.outputs} output channels")
    wide = np.zeros((s.groups, s.blocks * LANES), numbers.dtype)
    wide[:, : s.own] = numbers.reshape(s.groups, s.own)
    return wide.reshape(-1)
