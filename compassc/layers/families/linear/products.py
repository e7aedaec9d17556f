"""Kernels of convolutions and fully connected layers: output channels are the lanes.

A tile of output pixels is worked on for one block of channels after the other. The input under the tile lies in LSRAM,
weights come in segments, sums stay in LSRAM until the last one; see `tiles` and `formats`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compass_core.arrays import Array
from compassc.build import Value
from compassc.graph import Layer, LayerError
from compassc.layers.emit import rectify, rectify_float
from compassc.layers.families.linear.formats import BYTE, FLOAT, Format, float_format, integer_format
from compassc.layers.families.linear.reference import (
    ahead_shift,
    biases_ahead,
    has_ahead_shift,
    narrow_weights,
    quantised_weights,
    summed_biases,
    zero_points_apart,
)
from compassc.layers.families.linear.tiles import (
    INPUT,
    PARTS,
    SEGMENT,
    SLACK,
    SUMS,
    Planes,
    Shape,
    Tiling,
    filters_of,
    packed,
    padded,
    tiling_of,
)
from compassc.layers.kernels import follow
from compassc.layers.pairs import finish_ahead, finish_pair, held_pair, saturated_pair
from compassc.layers.source import LANES, Kernel, KernelSource, finish, named

REGISTER = LANES // PARTS


def convolution(layer: Layer, s: Shape, tail: Sequence[Layer]) -> Kernel:
    """The kernel of a Convolution, DepthwiseConv or FullyConnected."""
    k = KernelSource(channel="chan", padded_channels=s.groups * s.blocks * LANES, loads=[])
    k.arrange = lambda numbers: padded(s, numbers) if numbers.size == s.outputs else numbers
    f = format_of(layer, s)
    bytes_each = LANES * 4 * (2 if f.pair else 1)
    words = -(-s.inner // f.per_word)
    t = tiling_of(s, words, SUMS.size // bytes_each, len(f.planes))
    x, w = k.tensor(layer.input), k.constant(packed(s, t, f.planes, f.per_word))
    starts = [f.start] if not f.pair else [f.start & 0xFFFF, f.start >> 16]
    kind = np.float32 if f.staged == FLOAT else np.int32
    names = [k.constant(padded(s, start.astype(kind))) for start in starts]
    own = closing(k, layer, s, f)
    result, out = follow(k, layer, own, tail, k.at_place)
    y = k.tensor(out)
    store = f'S.vstore(narrow({result.name}, "{out.dtype}"), {y} + place, mask)'
    return finish(k, [*k.head, *_loops(k, layer, s, t, f, (x, w, names), store)])


def format_of(layer: Layer, s: Shape) -> Format:
    if layer.type == "ConvInteger":
        weights, biases, fill = whole_filters(layer)
        return integer_format(layer.input, filters_of(s, layer, weights), biases, fill if s.has_border else None)
    if not layer.is_quantised:
        biases = layer.constants.get("biases", np.zeros(s.outputs)).reshape(-1)
        if biases.size != s.outputs:
            raise LayerError(f"'biases' has {biases.size} values, but there are {s.outputs} output channels")
        return float_format(layer, filters_of(s, layer, layer.constant("weights")), biases)
    weights = filters_of(s, layer, narrow_weights(layer))
    biases = summed_biases(layer, s.outputs)
    if has_ahead_shift(layer):
        biases = np.zeros_like(biases)
    return integer_format(layer.input, weights, biases, -layer.input.scalar_zero if s.has_border else None)


def fill_of(layer: Layer) -> int:
    """The input value that means 0."""
    if layer.type == "ConvInteger" and zero_points_apart(layer):
        return layer.integer("x_zero_point", 0)
    return -layer.input.scalar_zero


def whole_filters(layer: Layer) -> tuple[Array, Array, int]:
    """(weights, biases including the input's zero point, the input value that means 0) of a ConvInteger."""
    fill, biases = fill_of(layer), summed_biases(layer, layer.constant("weights").shape[0])
    if not zero_points_apart(layer):
        return quantised_weights(layer), biases, fill
    weights = layer.constant("weights").astype(np.int64) - layer.integer("w_zero_point", 0)
    return weights, biases - fill * weights.reshape(weights.shape[0], -1).sum(1), fill


def closing(k: KernelSource, layer: Layer, s: Shape, f: Format) -> Value:
    """From the sums (`acc`, or `high` and `low`) to the layer's own output."""
    if layer.type == "ConvInteger":
        return saturated_pair(k, held_pair()) if f.pair else named("acc", "int32", f.low, f.high)
    method = layer.word("with_activation", "NONE")
    if f.staged == FLOAT:
        return rectify_float(k, layer, method, named("acc", "float32"))
    scale, shift = (v if v.size == 1 else padded(s, v) for v in layer.scale_shift(of=s.outputs))
    span = (f.low, f.high)
    if has_ahead_shift(layer):
        amount, shift = ahead_shift(layer, shift)
        biases = padded(s, biases_ahead(summed_biases(layer, s.outputs), amount))
        return finish_ahead(k, layer, span, f.pair, amount, biases, (scale, shift))
    if f.pair:
        return finish_pair(k, layer, held_pair(span), scale, shift)
    return rectify(k, layer, method, named("acc", "int32", *span), scale, shift)


def _loops(
    k: KernelSource, layer: Layer, s: Shape, t: Tiling, f: Format, names: tuple[str, str, list[str]], store: str
) -> list[str]:
    x, w, starts = names
    tiles = (-(-s.oh // t.rows), -(-s.ow // t.columns))
    rows = s.n * tiles[0] * tiles[1] * s.groups
    g = _numbers(k, s, t, tiles, rows * t.parts)
    g |= {"x": x, "kept": f"{LANES}", "per_word": str(f.per_word)}
    inner = [
        "chan = (group * {blocks} + block) * {kept}",
        *_begin(f, starts),
        "for piece in range({chunks}):",
        *(f"    {line}" for line in staging(k, layer, s, t, f)),
        *(f"    {line}" for line in _segments(t, f, w, s.window.dilation[1] > 1 and s.window.kernel[1] > 1)),
        *(k.loads or []),
        *_end(f, store, k.body),
    ]
    lines = [
        *_arrays(f, t),
        "for item in range(S.get_local_id(), {items}, S.get_local_size()):",
        "    part = item % {parts}",
        "    group = item / {parts} % {groups}",
        "    at = item / ({parts} * {groups})",
        "    ox = at % {bands} * {long}",
        "    oy = at / {bands} % {lines} * {tall}",
        "    image = at / ({bands} * {lines})",
        "    now = S.min({long}, {ow} - ox)",
        "    tall = S.min({tall}, {oh} - oy)",
        "    for block in range(part * {per}, S.min(part * {per} + {per}, {blocks})):",
        *(f"        {line}" for line in inner),
    ]
    return [line.format(**g) for line in lines]


def _numbers(k: KernelSource, s: Shape, t: Tiling, tiles: tuple[int, int], items: int) -> dict[str, str]:
    """The parameters of `_loops` by name."""
    (kh, kw), (sy, sx), (dy, dx) = s.window.kernel, s.window.stride, s.window.dilation
    numbers = {
        "h": s.h,
        "w": s.w,
        "c": s.c,
        "oh": s.oh,
        "ow": s.ow,
        "sy": sy,
        "sx": sx,
        "pt": s.window.pads[0][0],
        "pl": s.window.pads[1][0],
        "items": items,
        "parts": t.parts,
        "per": -(-s.blocks // t.parts),
        "blocks": s.blocks,
        "groups": s.groups,
        "inner": s.inner,
        "own": s.own,
        "outputs": s.outputs,
        "dx": dx,
        "kh": kh,
        "kw": kw,
        "chunk": t.chunk,
        "chunks": t.chunks,
        "tall": t.rows,
        "long": t.columns,
        "down": t.cells[0],
        "across": t.cells[1],
        "row_step": t.row_step,
        "high": t.input_rows,
        "wide": t.input_columns,
        "lines": tiles[0],
        "bands": tiles[1],
        "step_y": sy,
        "apart": dy // t.row_step,
    }
    g = {name: k.scalar(number) for name, number in numbers.items()}
    if s.spaced != (1, 1):
        g |= {"space_y": k.scalar(s.spaced[0]), "space_x": k.scalar(s.spaced[1])}
    if s.planes:
        g |= _plane_numbers(k, s.planes)
    return g


def _plane_numbers(k: KernelSource, planes: Planes) -> dict[str, str]:
    w = planes.window
    numbers = {
        "high_in": planes.sizes[1],
        "deep_in": planes.sizes[0],
        "high_out": planes.made[1],
        "high_w": w.kernel[1],
    }
    for i, a in enumerate("zy"):
        numbers |= {f"step_{a}3": w.stride[i], f"apart_{a}": w.dilation[i], f"pad_{a}": w.pads[i][0]}
        numbers[f"space_{a}3"] = planes.spaced[i]
    return {name: k.scalar(n) for name, n in numbers.items()}


def _arrays(f: Format, t: Tiling) -> list[str]:
    words = "float32" if f.staged == FLOAT else "int32"
    kind = {BYTE: "int8", FLOAT: FLOAT}.get(f.staged, "int16")
    each = {"int8": 1, "int16": 2, FLOAT: 4}[kind]
    lines = [
        f'xt = S.alloc({(INPUT.size + SLACK) // 4}, "{words}", scope="lsram")',
        f'wt = S.alloc({SEGMENT.size // each}, "{kind}", scope="lsram")',
        f'sums = S.alloc({SUMS.size // 4}, "{words}", scope="lsram")',
    ]
    return [*lines, f"highs = sums + {SUMS.size // 8}"] if f.pair else lines


def _begin(f: Format, starts: list[str]) -> list[str]:
    """The sums of all pixels as they start."""
    arrays = list(zip(("sums", "highs"), starts, strict=False))
    return [
        *(f"begin_{a} = S.vload({start} + chan, lanes={LANES})" for a, start in arrays),
        "for q in range(tall * {long}):",
        *(f"    S.vstore(begin_{a}, {a} + q * {LANES})" for a, _ in arrays),
    ]


def _end(f: Format, store: str, body: list[str]) -> list[str]:
    """The output of every pixel from its sums."""
    loads = [f"acc = S.vload(sums + q * {LANES}, lanes={LANES})"]
    if f.pair:
        loads = [
            f"low = S.vload(sums + q * {LANES}, lanes={LANES})",
            f"high = S.vload(highs + q * {LANES}, lanes={LANES}) + (low >> 16)",
            "low = low & 0xFFFF",
        ]
    return [
        f"mask = S.tail_mask(S.min({{own}} - block * {LANES}, {LANES}), {LANES})",
        "for r in range(tall):",
        f"    base = ((image * {{oh}} + oy + r) * {{ow}} + ox) * {{outputs}} + group * {{own}} + block * {LANES}",
        "    for p in range(now):",
        "        q = r * {long} + p",
        "        place = base + p * {outputs}",
        *(f"        {line}" for line in [*loads, *body, store]),
    ]


_COLUMNS = (
    "left = S.max({pl} - ox * {sx}, 0)",
    "first = S.max(ox * {sx} - {pl}, 0)",
    "here = S.max(S.min({wide} - left, {w} - first), 0)",
)
_COPY = (
    "if channels == {c} and channels == {chunk} * {per_word}:",
    "    S.dma_copy(into, pixel, here * channels)",
    "else:",
    "    S.dma_copy(into, pixel, channels, {c}, here, {chunk} * {per_word})",
)
_SPACED_COLUMNS = (
    "edge = ox - {pl}",
    "first = (S.max(edge, 0) + {space_x} - 1) / {space_x}",
    "left = first * {space_x} - edge",
    "here = S.max(S.min(({wide} - left + {space_x} - 1) / {space_x}, {w} - first), 0)",
)
_SPACED_ROW = (
    "up = oy + j * {row_step} - {pt}",
    "iy = up / {space_y}",
    "if up < 0 or up % {space_y} != 0:",
    "    iy = -1",
)
_ROW = ("iy = oy * {sy} + j * {row_step} - {pt}",)
_PLANE_ROW = (
    "far = oy / {high_out} * {step_z3} + j / {high_w} * {apart_z} - {pad_z}",
    "down_in = oy % {high_out} * {step_y3} + j % {high_w} * {apart_y} - {pad_y}",
    "iy = far / {space_z3} * {high_in} + down_in / {space_y3}",
    "if far < 0 or down_in < 0 or far / {space_z3} >= {deep_in} or down_in / {space_y3} >= {high_in}:",
    "    iy = -1",
    "if far % {space_z3} != 0 or down_in % {space_y3} != 0:",
    "    iy = -1",
)
_SPACED_COPY = ("S.dma_copy(into, pixel, channels, {c}, here, {space_x} * {chunk} * {per_word})",)


def staging(k: KernelSource, layer: Layer, s: Shape, t: Tiling, f: Format) -> list[str]:
    """The input under the tile as words in LSRAM; once for all blocks where it is one chunk."""
    dtype = layer.input.dtype
    fill = k.scalar(fill_of(layer)) if layer.is_quantised else "0.0"
    moved = {"int8": "0x80808080", "uint16": "0x80008000"}.get(dtype, "") if layer.is_quantised else ""
    if dtype == "int8" and f.staged != BYTE:
        moved = ""
    converted = dtype not in ("float32", "int16", "uint16") and f.staged != BYTE
    row = "{wide} * {chunk} * {per_word}"
    lines = [
        f'line = wt.as_ptr("{dtype}")' if converted else f'line = xt.as_ptr("{dtype}") + j * {row}',
        *(_PLANE_ROW if s.planes else _SPACED_ROW if s.spaced != (1, 1) else _ROW),
        "if iy < 0 or iy >= {h} or here < {wide} or channels < {chunk} * {per_word}:",
        f'    S.dma_memset(line, S.cast({fill}, "{dtype}"), {row})',
        "if iy >= 0 and iy < {h} and here > 0:",
        "    pixel = {x} + ((image * {h} + iy) * {w} + first) * {c} + group * {inner} + piece * {chunk} * {per_word}",
        "    into = line + left * {chunk} * {per_word}",
        *(f"    {line}" for line in (_SPACED_COPY if s.spaced != (1, 1) else _COPY)),
    ]
    if converted:
        lines += [
            f'own = xt.as_ptr("{f.staged}") + j * {row}',
            f"for e in range(0, {row}, {LANES}):",
            f'    S.vstore(S.cast(S.vload(line + e, lanes={LANES}), "{f.staged}"), own + e)',
        ]
    lines = ["for j in range(rows_here):", *(f"    {line}" for line in lines)]
    if moved:
        lines += [
            "for e in range(0, rows_here * {wide} * {chunk}, 8):",
            f"    S.vstore(S.vload(xt + e, lanes=8) ^ S.i32({int(moved, 16) - 2**32}), xt + e)",
        ]
    begin = [
        *(_SPACED_COLUMNS if s.spaced != (1, 1) else _COLUMNS),
        "rows_here = {high}",
        "channels = S.min({inner} - piece * {chunk} * {per_word}, {chunk} * {per_word})",
    ]
    return [
        "if block == part * {per} or {chunks} > 1:",
        *(f"    {line}" for line in [*begin, *lines]),
    ]


def _segments(t: Tiling, f: Format, w: str, dilated: bool) -> list[str]:
    """Every segment's weights, with which all pixels of the tile are worked on."""
    planes = len(f.planes)
    each = {BYTE: 128, FLOAT: LANES}.get(f.staged, 2 * LANES)
    """Elements of the weights of a word."""
    lines, indent = [f"part_at = (chan / {LANES} * {{chunks}} + piece) * {planes} * {{kh}} * {{kw}} * {{chunk}}"], ""
    if planes > 1:
        lines.append("for plane in range(2):")
        indent = "    "
    plane = "plane * {kh} * {kw} * {chunk} + " if planes > 1 else ""
    body = [
        "for ky0 in range(0, {kh}, {down}):",
        "    down = S.min({kh} - ky0, {down})",
        "    for kx0 in range(0, {kw}, {across}):",
        "        run = S.min({kw} - kx0, {across}) * {chunk}",
        f"        start = (part_at + {plane}(ky0 * {{kw}} + kx0) * {{chunk}}) * {each}",
        f"        S.dma_copy(wt, {w} + start, down * run * {each})",
        "        for r in range(tall):",
        f"            for p in range(0, now, {t.pixels}):",
        *(f"                {line}" for line in _pixels(t, f, each, dilated)),
    ]
    return lines + [indent + line for line in body]


def _cells(dilated: bool, inner: list[str], each: int) -> list[str]:
    """The loop over the words of a row of cells; without dilation they lie one behind the other."""
    if not dilated:
        loops = ["word = near + ky * {apart} * {wide} * {chunk}", "for c in range(run):"]
        return [*loops, *(f"    {line}" for line in inner), f"held = held + run * {each}"]
    return [
        "for kx in range(run / {chunk}):",
        "    word = near + (ky * {apart} * {wide} + kx * {dx}) * {chunk}",
        "    for c in range({chunk}):",
        *(f"        {line}" for line in inner),
        f"    held = held + {{chunk}} * {each}",
    ]


def _pixels(t: Tiling, f: Format, each: int, dilated: bool) -> list[str]:
    """The products of a segment for a few pixels next to each other, in registers."""
    cells = [(i, j) for i in range(t.pixels) for j in range(PARTS)]
    lines = [f"q = (r * {{long}} + p) * {LANES}"]
    if f.pair:
        lines += [f"a{i}_{j} = S.i32x{REGISTER}(0)" for i, j in cells]
    else:
        lines += [f"a{i}_{j} = S.vload(sums + (q + {i * LANES + j * REGISTER}), lanes={REGISTER})" for i, j in cells]
    lines += [
        "near = xt + ((r * {sy} + ky0 * {apart}) * {wide} + p * {sx} + kx0 * {dx}) * {chunk}",
        "held = wt + 0",
        "for ky in range(down):",
    ]
    apart = [f" + {i} * {{sx}} * {{chunk}}" if i else "" for i in range(t.pixels)]
    inner = []
    if f.staged == FLOAT:
        words = [f"x{i} = S.vbcast(word[c{apart[i]}], lanes={REGISTER})" for i in range(t.pixels)]
        product = "S.fma(a{i}_{j}, x{i}, w{j})"
    else:
        words = [f'x{i} = spread_word(word[c{apart[i]}], "{f.staged}")' for i in range(t.pixels)]
        product = ("S.vqdpa" if f.staged == BYTE else "S.vdpa") + "(a{i}_{j}, x{i}, w{j})"
    wide = each // PARTS
    inner += [f"w{j} = S.vload(held + c * {each} + {j * wide}, lanes={wide})" for j in range(PARTS)]
    for i in range(t.pixels):
        inner.append(words[i])
        inner += [f"a{i}_{j} = " + product.replace("{i}", str(i)).replace("{j}", str(j)) for j in range(PARTS)]
    lines += ["    " + line for line in _cells(dilated, inner, each)]
    if not f.pair:
        return lines + [f"S.vstore(a{i}_{j}, sums + (q + {i * LANES + j * REGISTER}))" for i, j in cells]
    shift = ("plane * 8", "(0xFFFF >> (plane * 8))") if len(f.planes) > 1 else ("0", "0xFFFF")
    for i, j in cells:
        to = f"(q + {i * LANES + j * REGISTER})"
        low, high = f"S.vload(sums + {to}, lanes={REGISTER})", f"S.vload(highs + {to}, lanes={REGISTER})"
        lines.append(f"S.vstore({low} + ((a{i}_{j} & {shift[1]}) << ({shift[0]})), sums + {to})")
        lines.append(f"S.vstore({high} + (a{i}_{j} >> (16 - {shift[0]})), highs + {to})")
    return lines
