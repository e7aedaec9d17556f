"""Depthwise convolutions of 8-bit integers: a word holds four neighbouring pixels of a channel, so that a dot product takes
four cells of a window's row.

While the sums of a tile are worked out, the next tile's pixels are on their way into LSRAM.
"""

from __future__ import annotations

import numpy as np

from compass_core.arrays import Array
from compassc.graph import Layer
from compassc.layers.families.linear.tiles import PIXELS, Shape
from compassc.layers.machine import Share
from compassc.layers.source import LANES, KernelSource

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


def packed_words(s: Shape, weights: Array, lanes: int) -> Array:
    """Weights [C,KH,KW] as [block][ky][word][channel][cell]."""
    (kh, kw), many = s.window.kernel, words_of(s.window.kernel[1])
    wide = np.zeros((lanes, kh, many * CELLS), np.int8)
    wide[: s.c, :, :kw] = weights
    cells = wide.reshape(lanes // LANES, LANES, kh, many, CELLS)
    return np.ascontiguousarray(cells.transpose(0, 2, 3, 1, 4)).reshape(-1)


def loops(k: KernelSource, layer: Layer, s: Shape, rows: int, columns: int, names: tuple[str, str],
          body: list[str], store: str) -> list[str]:  # fmt: skip
    """The whole kernel; `body` leads from `acc`, the sums of a pixel, to what `store` stores."""
    (kh, kw), (sy, sx), (dy, dx) = s.window.kernel, s.window.stride, s.window.dilation
    lines, bands, blocks = -(-s.oh // rows), -(-s.ow // columns), -(-s.c // LANES)
    words, pixels = row_sizes(s, columns)
    step = word_step(s)
    g = {name: k.scalar(value) for name, value in {
        "h": s.h, "w": s.w, "c": s.c, "oh": s.oh, "ow": s.ow, "sy": sy, "dy": dy, "kh": kh, "sx": sx,
        "pt": s.window.pads[0][0], "pl": s.window.pads[1][0], "items": s.n * lines * bands * blocks, "lines": lines,
        "bands": bands, "blocks": blocks, "tall": rows, "long": columns, "pixels": pixels, "words": words, "step": step,
        "apart": dx, "fill": -layer.input.scalar_zero, "next": sx // step, "far": CELLS * dx // step,
        "weights": kh * words_of(kw) * CELLS * LANES,
    }.items()}  # fmt: skip
    g |= {"x": names[0], "w_": names[1], "dtype": layer.input.dtype}
    text = [
        f'xt = S.alloc({WORDS.size // 4}, "int32", scope="lsram")',
        f'wt = S.alloc({2 * WEIGHTS.size}, "int8", scope="lsram")',
        f'raw = S.alloc({RAW.size}, "{layer.input.dtype}", scope="lsram")',
        f'spill = S.alloc({PIXELS * LANES}, "int32", scope="lsram")',
        "came = S.alloc_events(1)",
        "turn = S.i32(0)",
        "if S.get_local_id() < {items}:",
        "    ahead = S.get_local_id() + 0",
        *(f"    {line}" for line in _fetched()),
        "for item in range(S.get_local_id(), {items}, S.get_local_size()):",
        *(f"    {line}" for line in _place("item", "")),
        f"    mask = S.tail_mask(S.min({{c}} - o, {LANES}), {LANES})",
        *(f"    {line}" for line in k.loads or []),
        "    now = S.min({long}, {ow} - ox)",
        "    S.wait_events(came)",
        *(f"    {line}" for line in _words(layer.input.dtype, step == 1 and dx == 1)),
        f"    used = wt + turn * {WEIGHTS.size}",
        "    turn = 1 - turn",
        "    ahead = item + S.get_local_size()",
        "    if ahead < {items}:",
        *(f"        {line}" for line in _fetched()),
        "    for r in range(tall):",
        f"        for p in range(0, now, {PIXELS}):",
        *(f"            {line}" for line in _products(kw)),
        f"            for i in range(S.min(now - p, {PIXELS})):",
        f"                acc = S.vload(spill + i * {LANES}, lanes={LANES})",
        "                place = ((image * {oh} + oy + r) * {ow} + ox + p + i) * {c} + o",
        *(f"                {line}" for line in [*body, store]),
        "S.free_events(came)",
    ]
    return [line.format(**g) for line in text]


def _place(item: str, ahead: str) -> list[str]:
    """The position of a tile: variables with `ahead` before their names."""
    return [
        f"{ahead}o = {item} % {{blocks}} * {LANES}",
        f"{ahead}at = {item} / {{blocks}}",
        f"{ahead}ox = {ahead}at % {{bands}} * {{long}}",
        f"{ahead}oy = {ahead}at / {{bands}} % {{lines}} * {{tall}}",
        f"{ahead}image = {ahead}at / ({{bands}} * {{lines}})",
        f"{ahead}tall = S.min({{tall}}, {{oh}} - {ahead}oy)",
    ]


def _fetched() -> list[str]:
    """Start the transfers of weights and pixels of the tile `ahead`; fill the elements outside the image."""
    filler = f'S.vbcast(S.cast({{fill}}, "{{dtype}}"), lanes={LANES})'
    return [
        *_place("ahead", "n_"),
        f"n_weights = wt + turn * {WEIGHTS.size}",
        "S.async_dma_copy(n_weights, {w_} + ahead % {blocks} * {weights}, {weights}, event=came)",
        "n_left = S.max({pl} - n_ox * {sx}, 0)",
        "n_first = S.max(n_ox * {sx} - {pl}, 0)",
        "n_here = S.max(S.min({pixels} - n_left, {w} - n_first), 0)",
        f"n_channels = S.min({{c}} - n_o, {LANES})",
        "for j in range((n_tall - 1) * {sy} + ({kh} - 1) * {dy} + 1):",
        f"    line = raw + j * {{pixels}} * {LANES}",
        "    iy = n_oy * {sy} + j - {pt}",
        "    inside = S.i32(0)",
        "    if iy >= 0 and iy < {h} and n_here > 0:",
        "        inside = n_here + 0",
        "        pixel = {x} + ((n_image * {h} + iy) * {w} + n_first) * {c} + n_o",
        f"        S.async_dma_copy(line + n_left * {LANES}, pixel, n_channels, {{c}}, n_here, {LANES}, event=came)",
        "    for e in range(0, S.min(n_left, {pixels})):",
        f"        S.vstore({filler}, line + e * {LANES})",
        "    for e in range(n_left + inside, {pixels}):",
        f"        S.vstore({filler}, line + e * {LANES})",
    ]


def _words(dtype: str, rolling: bool) -> list[str]:
    """Words of four pixels from rows of pixels; signed ones are moved by 128."""
    moved = " ^ S.vbcast(S.u8(128), lanes=32)" if dtype == "int8" else ""

    def pixel(place: str) -> str:
        loaded = f"S.vload({place}, lanes={LANES})"
        return f'S.reinterpret({loaded}, "uint8x32"){moved}' if moved else loaded

    def stored(first: str, second: str) -> str:
        return f'S.vstore(S.reinterpret(S.vzip({first}, {second}), "int32x32"), word + e * {LANES})'

    head = [
        "for j in range((tall - 1) * {sy} + ({kh} - 1) * {dy} + 1):",
        f"    line = raw + j * {{pixels}} * {LANES}",
        f"    word = xt + j * {{words}} * {LANES}",
    ]
    if not rolling:
        cells = [f"line + (e * {{step}} + {i} * {{apart}}) * {LANES}" for i in range(CELLS)]
        pairs = [f'S.reinterpret(S.vzip({pixel(a)}, {pixel(b)}), "int16x32")' for a, b in (cells[:2], cells[2:])]
        inner = [f"one = {pairs[0]}", f"two = {pairs[1]}", stored("one", "two")]
        return [*head, "    for e in range({words}):", *(f"        {line}" for line in inner)]
    pair = 'S.reinterpret(S.vzip({}, {}), "int16x32")'
    return [
        *head,
        f"    q0 = {pixel('line')}",
        f"    q1 = {pixel(f'line + {LANES}')}",
        f"    q2 = {pixel(f'line + {2 * LANES}')}",
        f"    one = {pair.format('q0', 'q1')}",
        f"    two = {pair.format('q1', 'q2')}",
        "    for e in range({words}):",
        f"        q3 = {pixel(f'line + (e + 3) * {LANES}')}",
        f"        three = {pair.format('q2', 'q3')}",
        f"        {stored('one', 'three')}",
        "        one = two",
        "        two = three",
        "        q2 = q3",
    ]


def _products(kw: int) -> list[str]:
    """The sums of a few pixels next to each other, in registers, and from there in LSRAM."""
    lines = [f"a{i} = begin + 0" for i in range(PIXELS)]
    lines += [
        f"near = xt + (r * {{sy}} * {{words}} + p * {{next}}) * {LANES}",
        "for ky in range({kh}):",
        f"    row = near + ky * {{dy}} * {{words}} * {LANES}",
    ]
    for q in range(words_of(kw)):
        held = f"used + (ky * {words_of(kw)} + {q}) * {CELLS * LANES}"
        lines.append(f"    weights = S.vload({held}, lanes={CELLS * LANES})")
        for i in range(PIXELS):
            cell = f"row + ({q} * {{far}} + {i} * {{next}}) * {LANES}"
            words = f'S.reinterpret(S.vload({cell}, lanes={LANES}), "uint8x{CELLS * LANES}")'
            lines.append(f"    a{i} = S.vqdpa(a{i}, {words}, weights)")
    return [*lines, *(f"S.vstore(a{i}, spill + {i * LANES})" for i in range(PIXELS))]
