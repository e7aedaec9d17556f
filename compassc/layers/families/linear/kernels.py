"""Kernels of convolutions and fully connected layers on 8-bit integers.

The lanes of a vector are output channels, 32 at a time; weights are packed so that one vector holds four neighbouring
inputs of each of them, which a dot product takes at once. The input rows under a tile of output columns lie in LSRAM,
weights come in segments, and the sums stay in LSRAM until the last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from compassc.layers.arithmetic import Array
from compassc.layers.emit import rectify
from compassc.layers.families.linear.reference import quantised_weights, summed_biases
from compassc.layers.kernels import follow, kernel
from compassc.layers.layer import Layer, LayerError
from compassc.layers.source import LANES, Kernel, KernelSource, Value, finish
from compassc.layers.windows import Window, window_of

INPUT_BYTES, SUMS_BYTES = 12288, 8192
SEGMENT_WORDS = 64
"""Words of four inputs whose weights lie in LSRAM at once."""
PIXELS = 4
"""Output pixels that share the loaded weights."""


@dataclass(frozen=True)
class Shape:
    """The sizes of a convolution, with a group's channels padded to words of four."""

    n: int
    h: int
    w: int
    c: int
    oh: int
    ow: int
    outputs: int
    groups: int
    window: Window

    @property
    def inner(self) -> int:
        return self.c // self.groups

    @property
    def words(self) -> int:
        """Words of one pixel of a group."""
        return -(-self.inner // 4)

    @property
    def own(self) -> int:
        """Output channels of a group."""
        return self.outputs // self.groups

    @property
    def blocks(self) -> int:
        return -(-self.own // LANES)

    def columns(self, tile: int) -> int:
        """Input columns under `tile` output columns."""
        return (tile - 1) * self.window.stride[1] + self.window.reach[1]

    @property
    def tile(self) -> int:
        """Output columns worked on at once: as many as fit LSRAM, a multiple of PIXELS."""
        most = min(SUMS_BYTES // (LANES * 4), -(-self.ow // PIXELS) * PIXELS)
        row = self.window.kernel[0] * self.words * 4
        while most > PIXELS and self.columns(most) * row > INPUT_BYTES:
            most -= PIXELS
        if self.columns(most) * row > INPUT_BYTES:
            raise LayerError(f"a window of {self.window.kernel[0]} rows of {self.inner} channels does not fit LSRAM")
        return most


def _shape(layer: Layer) -> Shape:
    x, y = layer.input.shape, layer.output.shape
    if layer.type == "FullyConnected":
        outputs = y[-1]
        depth = layer.constant("weights").size // outputs
        rows = layer.input.count // depth
        return Shape(1, 1, rows, depth, 1, rows, outputs, 1, Window((1, 1), (1, 1), (1, 1), ((0, 0), (0, 0))))
    groups = layer.integer("group", x[-1] if layer.type == "DepthwiseConv" else 1)
    return Shape(x[0], x[1], x[2], x[3], y[1], y[2], y[3], groups, window_of(layer))


def packed(shape: Shape, weights: Array) -> Array:
    """Weights [O,KH,KW,I] as [group][block][ky][kx][word][output][4]."""
    kh, kw = shape.window.kernel
    wide = np.zeros((shape.groups, shape.blocks * LANES, kh, kw, shape.words * 4), weights.dtype)
    wide[:, : shape.own, :, :, : shape.inner] = weights.reshape(shape.groups, shape.own, kh, kw, shape.inner)
    parts = wide.reshape(shape.groups, shape.blocks, LANES, kh, kw, shape.words, 4)
    return np.ascontiguousarray(parts.transpose(0, 1, 3, 4, 5, 2, 6)).reshape(-1)


def _sums(layer: Layer, weights: Array, biases: Array) -> Value:
    """The variable of the sums, with the range that weights and input allow."""
    x = layer.input
    flat = weights.reshape(weights.shape[0], -1).astype(np.int64)
    positive, negative = np.maximum(flat, 0).sum(1), np.minimum(flat, 0).sum(1)
    low = (positive * min(x.low, 0) + negative * max(x.high, 0) + biases).min()
    high = (positive * max(x.high, 0) + negative * min(x.low, 0) + biases).max()
    if low < -(2**31) or high >= 2**31:
        raise LayerError("its sums do not fit 32 bits, which no kernel here computes with")
    return Value("acc", "int32", int(low), int(high))


def _padded(shape: Shape, numbers: Array) -> Array:
    """Numbers per output channel, each group padded to whole blocks."""
    wide = np.zeros((shape.groups, shape.blocks * LANES), numbers.dtype)
    wide[:, : shape.own] = numbers.reshape(shape.groups, shape.own)
    return wide.reshape(-1)


@kernel("Convolution", "FullyConnected", tail=True)
def convolution(layer: Layer, tail: Sequence[Layer] = ()) -> Kernel:
    if not layer.is_quantised or layer.input.integer.bits > 8:
        raise LayerError(f"a {layer.type} of {layer.input.dtype} has no kernel yet")
    shape = _shape(layer)
    weights = quantised_weights(layer).reshape(shape.outputs, *shape.window.kernel, shape.inner)
    if np.abs(weights).max(initial=0) > 127 and (weights.min() < -128 or weights.max() > 127):
        raise LayerError("weights plus their zero point do not fit 8 bits")
    biases = summed_biases(layer, shape.outputs)
    k = KernelSource(channel="chan", padded_channels=shape.groups * shape.blocks * LANES)
    acc = _sums(layer, weights, biases)
    x = k.tensor(layer.input)
    w, b = k.constant(packed(shape, weights.astype(np.int8))), k.constant(_padded(shape, biases.astype(np.int32)))
    scale, shift = (_per_channel(shape, v) for v in layer.scale_shift(of=shape.outputs))
    result = rectify(k, layer, layer.word("with_activation", "NONE"), acc, scale, shift)
    result, out = follow(k, layer, result, tail, "place")
    y = k.tensor(out)
    store = f'S.vstore(narrow({result.name}, "{out.dtype}"), {y} + place, mask)'
    loops = _loops(k, layer, shape, (x, w, b), store)
    return finish(k, [*k.head, *loops])


def _per_channel(shape: Shape, numbers: Array) -> Array:
    return numbers if numbers.size == 1 else _padded(shape, numbers)


def _loops(k: KernelSource, layer: Layer, s: Shape, names: tuple[str, str, str], store: str) -> list[str]:
    x, w, b = names
    (kh, kw), (sy, sx), (dy, dx) = s.window.kernel, s.window.stride, s.window.dilation
    tile, dtype = s.tile, layer.input.dtype
    columns = s.columns(tile)
    tiles = -(-s.ow // tile)
    rows = s.n * s.oh * tiles * s.groups
    parts = min(s.blocks, max(1, -(-16 // rows)))
    per = -(-s.blocks // parts)
    g = {name: k.scalar(value) for name, value in {
        "h": s.h, "w": s.w, "c": s.c, "oh": s.oh, "ow": s.ow, "sy": sy, "sx": sx, "pt": s.window.pads[0][0],
        "pl": s.window.pads[1][0], "items": rows * parts, "parts": parts, "per": per, "blocks": s.blocks, "tiles": tiles,
        "groups": s.groups, "inner": s.inner, "own": s.own, "outputs": s.outputs, "fill": -layer.input.scalar_zero,
        "dy": dy, "dx": dx, "kh": kh, "kw": kw, "words": s.words, "tile": tile, "columns": columns,
    }.items()}  # fmt: skip
    row_bytes = f"{g['columns']} * {g['words']} * 4"
    return [
        f'xt = S.alloc({INPUT_BYTES // 4}, "int32", scope="lsram")',
        f'wt = S.alloc({SEGMENT_WORDS * LANES * 4}, "int8", scope="lsram")',
        f'sums = S.alloc({SUMS_BYTES // 4}, "int32", scope="lsram")',
        f'xb = xt.as_ptr("{dtype}")',
        f"for item in range(S.get_local_id(), {g['items']}, S.get_local_size()):",
        f"    part = item % {g['parts']}",
        f"    group = item / {g['parts']} % {g['groups']}",
        f"    at = item / ({g['parts']} * {g['groups']})",
        f"    ox = at % {g['tiles']} * {g['tile']}",
        f"    oy = at / {g['tiles']} % {g['oh']}",
        f"    image = at / ({g['tiles']} * {g['oh']})",
        f"    now = S.min({g['tile']}, {g['ow']} - ox)",
        f"    left = S.max({g['pl']} - ox * {g['sx']}, 0)",
        f"    first = S.max(ox * {g['sx']} - {g['pl']}, 0)",
        f"    here = S.max(S.min({g['columns']} - left, {g['w']} - first), 0)",
        f"    for ky in range({g['kh']}):",
        f"        iy = oy * {g['sy']} + ky * {g['dy']} - {g['pt']}",
        f"        row = xb + ky * {row_bytes}",
        f"        if iy < 0 or iy >= {g['h']} or here < {g['columns']} or {g['inner']} % 4 != 0:",
        f'            S.dma_memset(row, S.cast({g["fill"]}, "{dtype}"), {row_bytes})',
        f"        if iy >= 0 and iy < {g['h']} and here > 0:",
        f"            pixel = {x} + ((image * {g['h']} + iy) * {g['w']} + first) * {g['c']} + group * {g['inner']}",
        f"            into = row + left * {g['words']} * 4",
        f"            if {g['inner']} == {g['c']} and {g['inner']} % 4 == 0:",
        f"                S.dma_copy(into, pixel, here * {g['c']})",
        "            else:",
        f"                S.dma_copy(into, pixel, {g['inner']}, {g['c']}, here, {g['words']} * 4)",
        f"    for block in range(part * {g['per']}, S.min(part * {g['per']} + {g['per']}, {g['blocks']})):",
        f"        chan = (group * {g['blocks']} + block) * {LANES}",
        f"        bias = S.vload({b} + chan, lanes={LANES})",
        f"        for p in range({g['tile']}):",
        f"            S.vstore(bias, sums + p * {LANES})",
        *(f"        {line}" for line in _segments(s, g, w)),
        "        for p in range(now):",
        f"            acc = S.vload(sums + p * {LANES}, lanes={LANES})",
        f"            mask = S.tail_mask(S.min({g['own']} - block * {LANES}, {LANES}), {LANES})",
        f"            pixels = ((image * {g['oh']} + oy) * {g['ow']} + ox + p) * {g['outputs']}",
        f"            place = pixels + group * {g['own']} + block * {LANES}",
        *(f"            {line}" for line in [*k.body, store]),
    ]


def _segments(s: Shape, g: dict[str, str], w: str) -> list[str]:
    """The loops over the window, cut so that a segment's weights fit LSRAM."""
    kh, kw = s.window.kernel
    words = s.words
    if kh * kw * words <= SEGMENT_WORDS:
        outer, inner, size = [], ["ky", "kx"], f"{g['kh']} * {g['kw']} * {g['words']}"
    elif kw * words <= SEGMENT_WORDS:
        outer, inner, size = ["ky"], ["kx"], f"{g['kw']} * {g['words']}"
    else:
        outer, inner, size = ["ky", "kx"], [], ""
    lines, indent = [f"weights = {w} + chan * {g['kh']} * {g['kw']} * {g['words']} * 4"], ""
    counts = {"ky": g["kh"], "kx": g["kw"]}
    for axis in outer:
        lines.append(f"{indent}for {axis} in range({counts[axis]}):")
        indent += "    "
    base = " + ".join({"ky": f"ky * {g['columns']}", "kx": f"kx * {g['dx']}"}[a] for a in outer) or "0"
    if not inner:
        lines.append(f"{indent}for c0 in range(0, {g['words']}, {SEGMENT_WORDS}):")
        indent += "    "
        size = f"S.min({g['words']} - c0, {SEGMENT_WORDS})"
        start = f"(ky * {g['kw']} + kx) * {g['words']} + c0"
        offset = f"({base}) * {g['words']} + c0"
    else:
        start = f"ky * {g['kw']} * {g['words']}" if outer else "0"
        offset = f"({base}) * {g['words']}"
    body = [
        f"S.dma_copy(wt, weights + ({start}) * {LANES * 4}, {size} * {LANES * 4})",
        f"for p in range(0, now, {PIXELS}):",
        *(f"    a{i} = S.vload(sums + (p + {i}) * {LANES}, lanes={LANES})" for i in range(PIXELS)),
        f"    near = xt + (p * {g['sx']} * {g['words']} + {offset})",
        *(f"    {line}" for line in _products(g, inner, size)),
        *(f"    S.vstore(a{i}, sums + (p + {i}) * {LANES})" for i in range(PIXELS)),
    ]
    return lines + [indent + line for line in body]


def _products(g: dict[str, str], inner: list[str], size: str) -> list[str]:
    """The innermost loop: one word of weights for several pixels."""
    lines, indent = [], ""
    if "ky" in inner:
        lines.append(f"for ky in range({g['kh']}):")
        indent += "    "
    if "kx" in inner:
        lines.append(f"{indent}for kx in range({g['kw']}):")
        indent += "    "
        shift = f"ky * {g['columns']} + " if "ky" in inner else ""
        chunk = f"(ky * {g['kw']} + kx)" if "ky" in inner else "kx"
        lines.append(f"{indent}word = near + ({shift}kx * {g['dx']}) * {g['words']}")
        lines.append(f"{indent}held = wt + {chunk} * {g['words']} * {LANES * 4}")
        count = g["words"]
    else:
        lines += ["word = near + 0", "held = wt + 0"]
        count = size
    lines.append(f"{indent}for c in range({count}):")
    lines.append(f"{indent}    wv = S.vload(held + c * {LANES * 4}, lanes={LANES * 4})")
    for i in range(PIXELS):
        step = f" + {i} * {g['sx']} * {g['words']}" if i else ""
        lines.append(f"{indent}    a{i} = S.vqdpa(a{i}, spread(word[c{step}], xb.dtype), wv)")
    return lines


@kernel("DepthwiseConv", tail=True)
def depthwise(layer: Layer, tail: Sequence[Layer] = ()) -> Kernel:
    """One output channel per input channel: the lanes are channels of both."""
    shape = _shape(layer)
    if not layer.is_quantised or layer.input.integer.bits > 8 or shape.groups != shape.c or shape.own != 1:
        raise LayerError("only depthwise convolutions of 8-bit integers with multiplier 1 have a kernel")
    (kh, kw), (sy, sx), (dy, dx) = shape.window.kernel, shape.window.stride, shape.window.dilation
    weights = quantised_weights(layer).reshape(shape.c, kh, kw)
    if weights.min() < -32768 or weights.max() > 32767:
        raise LayerError("weights plus their zero point do not fit 16 bits")
    biases = summed_biases(layer, shape.c)
    k = KernelSource(channel="o", padded_channels=-(-shape.c // LANES) * LANES)
    acc = _sums(layer, weights, biases)
    x, dtype = k.tensor(layer.input), layer.input.dtype
    bias = k.channels(biases.astype(np.int32))
    loads = list(k.body)
    k.body.clear()
    wide = np.zeros((kh * kw, k.padded_channels), np.int16)
    wide[:, : shape.c] = weights.transpose(1, 2, 0).reshape(kh * kw, shape.c)
    w = k.constant(wide.reshape(-1))
    result = rectify(k, layer, layer.word("with_activation", "NONE"), acc, *layer.scale_shift(of=shape.c))
    result, out = follow(k, layer, result, tail, "place")
    y = k.tensor(out)
    g = {
        name: k.scalar(value)
        for name, value in {
            "items": shape.n * shape.oh * shape.ow,
            "h": shape.h,
            "w": shape.w,
            "c": shape.c,
            "oh": shape.oh,
            "ow": shape.ow,
            "kh": kh,
            "kw": kw,
            "sy": sy,
            "sx": sx,
            "dy": dy,
            "dx": dx,
            "pt": shape.window.pads[0][0],
            "pl": shape.window.pads[1][0],
            "padded": k.padded_channels,
            "zero": layer.input.scalar_zero,
        }.items()
    }
    lines = [
        "for at in range(S.get_local_id(), {items}, S.get_local_size()):",
        "    ox = at % {ow}",
        "    oy = at / {ow} % {oh}",
        "    image = at / ({ow} * {oh})",
        f"    for o in range(0, {{c}}, {LANES}):",
        f"        mask = S.tail_mask(S.min({{c}} - o, {LANES}), {LANES})",
        *(f"        {line}" for line in loads),
        f"        acc = {bias} + 0",
        "        for ky in range({kh}):",
        "            iy = oy * {sy} + ky * {dy} - {pt}",
        "            for kx in range({kw}):",
        "                ix = ox * {sx} + kx * {dx} - {pl}",
        f'                wv = S.cast(S.vload({w} + (ky * {{kw}} + kx) * {{padded}} + o, lanes={LANES}), "int32")',
        "                if iy >= 0 and iy < {h} and ix >= 0 and ix < {w}:",
        f"                    pixel = {x} + ((image * {{h}} + iy) * {{w}} + ix) * {{c}} + o",
        f'                    acc = acc + load(pixel, mask, "{dtype}", {LANES}) * wv',
        "                else:",
        "                    acc = acc - wv * {zero}",
        "        place = at * {c} + o",
        *(f"        {line}" for line in k.body),
        f'        S.vstore(narrow({result.name}, "{out.dtype}"), {y} + place, mask)',
    ]
    return finish(k, [*k.head, *(line.format(**g) for line in lines)])
