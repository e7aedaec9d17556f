"""Kernels of depthwise convolutions with one output channel per input channel: the lanes are channels of both.

The input under a tile of output pixels lies in LSRAM as 32-bit numbers, for 32 channels at a time. 8-bit integers are
summed up in float32 as long as that is exact (sums below 2^24), 16-bit integers in int32; weights of 16 bits are cut in
two bytes where the sums would not fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from compass_core.arrays import Array
from compassc.build import Value
from compassc.graph import Layer, LayerError
from compassc.layers.choices import choose
from compassc.layers.emit import rectify, rectify_float
from compassc.layers.families.linear import quads
from compassc.layers.families.linear.formats import BYTE, float_format, integer_format, sums_range
from compassc.layers.families.linear.reference import (
    ahead_shift,
    biases_ahead,
    has_ahead_shift,
    narrow_weights,
    summed_biases,
)
from compassc.layers.families.linear.tiles import ITEM, PIXEL, PIXELS, TRANSFER, Shape
from compassc.layers.kernels import follow
from compassc.layers.machine import Share, Tiles, costs
from compassc.layers.pairs import finish_ahead, finish_pair, held_pair
from compassc.layers.source import LANES, Kernel, KernelSource, finish, named

INPUT, WEIGHTS, RAW = Share(4), Share(2), Share(1)
"""LSRAM for input pixels of words, for weights, and for a row of the input as it was."""

FORMS = ("quads", "pixels")
"""Of kernels for 8-bit integers: four pixels in a word, or a pixel at a time. The first one is what usually takes fewer cycles."""


@dataclass(frozen=True)
class Sums:
    """`planes`: weights [plane,C,KH,KW], plane i counts 256^i; `kind`: the type of inputs, weights and sums."""

    kind: str
    planes: Array
    biases: Array
    low: int = 0
    high: int = 0


@dataclass(frozen=True)
class Tile:
    """Output rows and columns, and the input's under them."""

    rows: int
    columns: int
    high: int
    wide: int


def _sums(layer: Layer, s: Shape) -> Sums:
    shape = (s.c, *s.window.kernel)
    if not layer.is_quantised:
        biases = layer.constants.get("biases", np.zeros(s.c)).reshape(-1)
        if biases.size != s.c:
            raise LayerError(f"'biases' has {biases.size} values, but there are {s.c} output channels")
        f = float_format(layer, layer.constant("weights").reshape(shape), biases)
        return Sums("float32", f.planes, f.start)
    x, weights = layer.input, narrow_weights(layer).reshape(shape)
    biases = np.zeros(s.c, np.int64) if has_ahead_shift(layer) else summed_biases(layer, s.c)
    fill = -x.scalar_zero if s.has_border else None
    f = integer_format(x, weights, biases, fill)
    lows, highs = min(x.low, fill or 0), max(x.high, fill or 0)
    low, high = sums_range(weights, np.zeros_like(biases), lows, highs)
    largest = max(-int(low.min()), int(high.max()))
    if largest < 1 << 24 and not _beyond(biases, f.low, f.high):
        return Sums("float32", weights[None].astype(np.float32), biases, f.low, f.high)
    if largest < 1 << 31 and not _beyond(biases, f.low, f.high):
        return Sums("int32", weights[None].astype(np.int32), biases, f.low, f.high)
    return Sums("int32", np.stack([weights & 255, weights >> 8]).astype(np.int32), biases, f.low, f.high)


def _beyond(biases: Array, *ends: int) -> bool:
    return max(map(abs, (*ends, int(biases.min()), int(biases.max())))) >= 1 << 31


def _tiles(s: Shape, size: int) -> Iterator[tuple[float, Tile]]:
    """Tiles that fit LSRAM, with about the cycles of the layer."""
    taps, blocks, cost = s.window.kernel[0] * s.window.kernel[1], -(-s.c // LANES), costs()
    for rows, columns, high, wide in _sizes(s):
        if high * wide * LANES * 4 > INPUT.size or wide * LANES * size > RAW.size:
            continue
        row = cost.transfers(wide * LANES * size) + wide * (12 if size < 4 else 4) + TRANSFER
        weights = cost.transfers(taps * LANES * 4)

        def work(tall: int, long: int, row: float = row, weights: float = weights) -> list[float]:
            seen = (tall - 1) * s.window.stride[0] + s.window.reach[0]
            sums = tall * (-(-long // PIXELS) * (taps * 20 + 60) + long * PIXEL)
            return [ITEM + weights + seen * row + sums] * blocks

        yield Tiles(s.n, s.oh, s.ow, rows, columns).cycles(work), Tile(rows, columns, high, wide)


def _sizes(s: Shape) -> Iterator[tuple[int, int, int, int]]:
    """Rows and columns of tiles, and of the input under them."""
    for columns in range(PIXELS, -(-s.ow // PIXELS) * PIXELS + 1, PIXELS):
        for rows in range(1, s.oh + 1):
            high = (rows - 1) * s.window.stride[0] + s.window.reach[0]
            yield rows, columns, high, (columns - 1) * s.window.stride[1] + s.window.reach[1]


def _in_quads(s: Shape) -> Iterator[tuple[float, tuple[int, int]]]:
    """Rows and columns of tiles for words of four pixels, with about the cycles of the layer."""
    words, blocks, cost = quads.words_of(s.window.kernel[1]) * s.window.kernel[0], -(-s.c // LANES), costs()
    for rows, columns, high, wide in _sizes(s):
        if not quads.fits(s, high, columns):
            continue
        row = quads.row_sizes(s, columns)[0]
        moved = cost.transfers(wide * LANES)

        def work(tall: int, long: int, row: int = row, moved: float = moved) -> list[float]:
            seen = (tall - 1) * s.window.stride[0] + s.window.reach[0]
            sums = 600 + seen * (60 + row * 10) + tall * (-(-long // PIXELS) * PIXELS * words * 6 + long * 20)
            return [max(sums, seen * moved + cost.startup)] * blocks

        yield Tiles(s.n, s.oh, s.ow, rows, columns).cycles(work) + (high + 1) * moved, (rows, columns)


def _by_quads(layer: Layer, s: Shape, tail: Sequence[Layer], padded: int) -> Kernel | None:
    """The kernel for 8-bit integers; None where sums or the window do not fit it."""
    if not layer.is_quantised or layer.input.integer.bits > 8:
        return None
    weights = narrow_weights(layer).reshape(s.c, *s.window.kernel)
    ahead = has_ahead_shift(layer)
    biases = np.zeros(s.c, np.int64) if ahead else summed_biases(layer, s.c)
    f = integer_format(layer.input, weights, biases, -layer.input.scalar_zero if s.has_border else None)
    fits = s.window.kernel[0] * quads.words_of(s.window.kernel[1]) <= quads.most_words()
    if f.staged != BYTE or not fits:
        return None
    found = choose("quads", _in_quads(s), lambda f: f, lambda f: f"{f[1][0]}x{f[1][1]}")
    if found is None:
        return None
    tile = found[1]
    k = KernelSource(channel="o", padded_channels=padded, loads=[])
    x, w = k.tensor(layer.input), k.constant(quads.packed_words(s, f.planes[0].reshape(weights.shape), padded))
    begin = k.channels(f.start.astype(np.int32))
    result = _rectified(k, layer, s, (f.low, f.high), False)
    result, out = follow(k, layer, result, tail, k.at_place)
    store = f'S.vstore(narrow({result.name}, "{out.dtype}"), {k.tensor(out)} + place, mask)'
    k.loads = [*(k.loads or []), f"begin = {begin}"]
    return finish(k, [*k.head, *quads.loops(k, layer, s, *tile, (x, w), k.body, store)])


def depthwise(layer: Layer, s: Shape, tail: Sequence[Layer]) -> Kernel | None:
    """The kernel; None where a window does not fit LSRAM."""
    padded = -(-s.c // LANES) * LANES
    found = _by_quads(layer, s, tail, padded)
    if found is not None and choose("form", FORMS, FORMS.index, str) == "quads":
        return found
    return _by_pixels(layer, s, tail, padded)


def _by_pixels(layer: Layer, s: Shape, tail: Sequence[Layer], padded: int) -> Kernel | None:
    size = {"8": 1, "6": 2, "2": 4}[layer.input.dtype[-1]]
    found = choose("pixels", _tiles(s, size), lambda f: f[0], lambda f: f"{f[1].rows}x{f[1].columns}")
    tile = None if found is None else found[1]
    sums = _sums(layer, s)
    taps = s.window.kernel[0] * s.window.kernel[1]
    if tile is None or taps * len(sums.planes) * LANES * 4 > WEIGHTS.size:
        return None
    k = KernelSource(channel="o", padded_channels=padded, loads=[])
    x = k.tensor(layer.input)
    w = k.constant(_packed(s, sums, padded))
    result = _closing(k, layer, s, sums)
    result, out = follow(k, layer, result, tail, k.at_place)
    y = k.tensor(out)
    store = f'S.vstore(narrow({result.name}, "{out.dtype}"), {y} + place, mask)'
    return finish(k, [*k.head, *_loops(k, layer, s, tile, sums, (x, w), store)])


def _packed(s: Shape, sums: Sums, padded: int) -> Array:
    """Weights as [block][ky][kx][plane][channel]."""
    many, taps = len(sums.planes), s.window.kernel[0] * s.window.kernel[1]
    wide = np.zeros((many, padded, taps), sums.planes.dtype)
    wide[:, : s.c] = sums.planes.reshape(many, s.c, taps)
    return np.ascontiguousarray(wide.reshape(many, padded // LANES, LANES, taps).transpose(1, 3, 0, 2)).reshape(-1)


def _closing(k: KernelSource, layer: Layer, s: Shape, sums: Sums) -> Value:
    """From the sums of products (`a`, or the two planes' `a` and `b`) to the layer's own output."""
    method = layer.word("with_activation", "NONE")
    if not layer.is_quantised:
        bias = k.channels(sums.biases)
        return rectify_float(k, layer, method, k.let(f"a + {bias}", "float32"))
    pair = len(sums.planes) > 1
    if pair:
        low, high = (k.channels(part.astype(np.int32)) for part in (sums.biases & 0xFFFF, sums.biases >> 16))
        k.do(f"low = (a & 0xFFFF) + ((b & 255) << 8) + {low}")
        k.do(f"high = (a >> 16) + (b >> 8) + {high} + (low >> 16)")
        k.do("low = low & 0xFFFF")
    else:
        whole = 'S.cast(a, "int32")' if sums.kind == "float32" else "a"
        added = "" if has_ahead_shift(layer) else f" + {k.channels(sums.biases.astype(np.int32))}"
        k.do(f"acc = {whole}{added}")
    return _rectified(k, layer, s, (sums.low, sums.high), pair)


def _rectified(k: KernelSource, layer: Layer, s: Shape, span: tuple[int, int], pair: bool) -> Value:
    """From integer sums (`acc`, or `high` and `low`) to the layer's own output."""
    method, (scale, shift) = layer.word("with_activation", "NONE"), layer.scale_shift(of=s.c)
    if has_ahead_shift(layer):
        amount, shift = ahead_shift(layer, shift)
        biases = biases_ahead(summed_biases(layer, s.c), amount)
        return finish_ahead(k, layer, span, pair, amount, biases, (scale, shift))
    if pair:
        return finish_pair(k, layer, held_pair(span), scale, shift)
    return rectify(k, layer, method, named("acc", "int32", *span), scale, shift)


def _loops(
    k: KernelSource, layer: Layer, s: Shape, tile: Tile, sums: Sums, names: tuple[str, str], store: str
) -> list[str]:
    (kh, kw), (sy, sx), (dy, dx) = s.window.kernel, s.window.stride, s.window.dilation
    lines, bands, blocks = -(-s.oh // tile.rows), -(-s.ow // tile.columns), -(-s.c // LANES)
    fill = -layer.input.scalar_zero if layer.is_quantised else 0
    g = {
        name: k.scalar(value)
        for name, value in {
            "h": s.h,
            "w": s.w,
            "c": s.c,
            "oh": s.oh,
            "ow": s.ow,
            "sy": sy,
            "sx": sx,
            "dy": dy,
            "dx": dx,
            "kh": kh,
            "kw": kw,
            "pt": s.window.pads[0][0],
            "pl": s.window.pads[1][0],
            "items": s.n * lines * bands * blocks,
            "lines": lines,
            "bands": bands,
            "blocks": blocks,
            "tall": tile.rows,
            "long": tile.columns,
            "high": tile.high,
            "wide": tile.wide,
            "fill": fill,
            "weights": kh * kw * len(sums.planes) * LANES,
        }.items()
    }
    g |= {"x": names[0]}
    text = [
        f'xt = S.alloc({INPUT.size // 4}, "{sums.kind}", scope="lsram")',
        f'wt = S.alloc({WEIGHTS.size // 4}, "{sums.kind}", scope="lsram")',
        f'raw = S.alloc({RAW.size // 4}, "int32", scope="lsram")',
        "for item in range(S.get_local_id(), {items}, S.get_local_size()):",
        f"    o = item % {{blocks}} * {LANES}",
        "    at = item / {blocks}",
        "    ox = at % {bands} * {long}",
        "    oy = at / {bands} % {lines} * {tall}",
        "    image = at / ({bands} * {lines})",
        "    now = S.min({long}, {ow} - ox)",
        "    tall = S.min({tall}, {oh} - oy)",
        f"    channels = S.min({{c}} - o, {LANES})",
        f"    mask = S.tail_mask(channels, {LANES})",
        f"    S.dma_copy(wt, {names[1]} + item % {{blocks}} * {{weights}}, {{weights}})",
        *(f"    {line}" for line in [*(k.loads or []), *_staging(layer, sums)]),
        "    for r in range(tall):",
        f"        for p in range(0, now, {PIXELS}):",
        *(f"            {line}" for line in _products(sums)),
        *(f"            {line}" for line in _outputs(sums, k.body, store)),
    ]
    return [line.format(**g) for line in text]


def _staging(layer: Layer, sums: Sums) -> list[str]:
    """The input under the tile, row by row."""
    dtype = layer.input.dtype
    direct = dtype == sums.kind
    target = f"xt + j * {{wide}} * {LANES}"
    lines = [
        f"line = {target}" if direct else f'line = raw.as_ptr("{dtype}")',
        "iy = oy * {sy} + j - {pt}",
        "inside = S.i32(0)",
        "if iy >= 0 and iy < {h} and here > 0:",
        "    inside = here + 0",
        "    pixel = {x} + ((image * {h} + iy) * {w} + first) * {c} + o",
        f"    S.dma_copy(line + left * {LANES}, pixel, channels, {{c}}, here, {LANES})",
    ]
    filler = f'S.vbcast(S.cast({{fill}}, "{dtype}"), lanes={LANES})'
    for part in ("0, S.min(left, {wide})", "left + inside, {wide}"):
        lines += [f"for e in range({part}):", f"    S.vstore({filler}, line + e * {LANES})"]
    if not direct:
        value = f"S.vload(line + e, lanes={LANES})"
        lines.append(f"for e in range(0, {{wide}} * {LANES}, {LANES}):")
        lines.append(f'    S.vstore(S.cast({value}, "{sums.kind}"), {target} + e)')
    return [
        "left = S.max({pl} - ox * {sx}, 0)",
        "first = S.max(ox * {sx} - {pl}, 0)",
        "here = S.max(S.min({wide} - left, {w} - first), 0)",
        "for j in range((tall - 1) * {sy} + ({kh} - 1) * {dy} + 1):",
        *(f"    {line}" for line in lines),
    ]


def _products(sums: Sums) -> list[str]:
    """The sums of a few pixels next to each other, in registers."""
    planes = "ab"[: len(sums.planes)]
    kind = "S.fp32" if sums.kind == "float32" else "S.i32"
    zero = f"S.vbcast({kind}(0), lanes={LANES})"
    lines = [f"{name}{i} = {zero}" for i in range(PIXELS) for name in planes]
    lines += [
        f"near = xt + (r * {{sy}} * {{wide}} + p * {{sx}}) * {LANES}",
        "held = wt + 0",
        "for ky in range({kh}):",
        "    for kx in range({kw}):",
        f"        cell = near + (ky * {{dy}} * {{wide}} + kx * {{dx}}) * {LANES}",
        *(f"        w{name} = S.vload(held + {i * LANES}, lanes={LANES})" for i, name in enumerate(planes)),
    ]
    for i in range(PIXELS):
        lines.append(f"        x{i} = S.vload(cell + {i} * {{sx}} * {LANES}, lanes={LANES})")
        for name in planes:
            product = f"S.fma({name}{i}, x{i}, w{name})" if kind == "S.fp32" else f"{name}{i} + x{i} * w{name}"
            lines.append(f"        {name}{i} = {product}")
    lines.append(f"        held = held + {len(planes) * LANES}")
    return lines


def _outputs(sums: Sums, body: list[str], store: str) -> list[str]:
    """The output of these pixels; their sums go through LSRAM, so that the steps stand in the text once."""
    planes = "ab"[: len(sums.planes)]
    lines = [f'spill = raw.as_ptr("{sums.kind}")']
    for j, name in enumerate(planes):
        lines += [f"S.vstore({name}{i}, spill + {(j * PIXELS + i) * LANES})" for i in range(PIXELS)]
    return [
        *lines,
        f"for i in range(S.min(now - p, {PIXELS})):",
        *(
            f"    {name} = S.vload(spill + i * {LANES} + {j * PIXELS * LANES}, lanes={LANES})"
            for j, name in enumerate(planes)
        ),
        "    place = ((image * {oh} + oy + r) * {ow} + ox + p + i) * {c} + o",
        *(f"    {line}" for line in [*body, store]),
    ]
