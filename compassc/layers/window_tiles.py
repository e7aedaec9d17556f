"""Windows over images that lie in LSRAM, tile by tile: the lanes are channels, and the next tile comes while one is worked on.

Elements outside of an image are stored there like others, so that no cell of a window is asked for its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from compassc.graph import Tensor
from compassc.layers.machine import Share, configuration, costs
from compassc.layers.source import LANES, KernelSource
from compassc.layers.streams import bytes_of
from compassc.layers.vectors import pointee
from compassc.layers.windows import Window

ROOM = Share(3)
"""LSRAM for the pixels under a tile, of which there are two."""
UNROLLED, ROW = 9, 7
"""Cells of a window, and of one row of it, that may stand one by one in the text."""
TILE_CELL = f"S.vload(pixel, lanes={LANES})"
"""The expression of a cell's channels, as they are stored."""


class Images(NamedTuple):
    """Sizes of images and of what a window makes of them."""

    images: int
    high: int
    wide: int
    channels: int
    rows: int
    columns: int


class Tile(NamedTuple):
    """Rows and columns of output pixels, and the input's under them; `whole`: one transfer brings all."""

    rows: int
    columns: int
    high: int
    wide: int
    whole: bool


class Plan(NamedTuple):
    """How a window goes over images in tiles; `bordered`: it sees elements outside of an image."""

    x: Tensor
    window: Window
    sizes: Images
    tile: Tile
    bordered: bool


def plan_of(x: Tensor, window: Window, made: Sequence[int]) -> Plan | None:
    """Tiles of the images `x` for a window with `made` positions; None where it has more than two axes, where no tile fits
    LSRAM or one may have no pixel of the image."""
    if len(window.kernel) > 2 or 0 in x.shape:
        return None
    window, s = _in_two_axes(window), _images(x, made)
    over = _outside(window, s)
    if any(end >= reach for ends, reach in zip(over, window.reach, strict=True) for end in ends):
        return None
    tile = min(_tiles(window, s, bytes_of(x.dtype), over), default=(0, None))[1]
    return None if tile is None else Plan(x, window, s, tile, any(end > 0 for ends in over for end in ends))


def tiled_loops(
    k: KernelSource, plan: Plan, fill: float, begin: Sequence[str], step: Sequence[str], end: Sequence[str]
) -> list[str]:
    """The loops over all positions of a window, as `sliding.window_loops` has them.

    `fill` is what counts for elements outside, as the input stores it. In `step` the cell is `TILE_CELL`, of which lanes that
    are not stored may hold anything; `begin` and `end` know `spot`, `image` and `place`.
    """
    x, window, s, tile, bordered = plan
    (kh, kw), (sy, sx), (dy, dx) = window.kernel, window.stride, window.dilation
    lines, bands, blocks = -(-s.rows // tile.rows), -(-s.columns // tile.columns), -(-s.channels // LANES)
    g = {name: k.scalar(value) for name, value in {
        "h": s.high, "w": s.wide, "c": s.channels, "oh": s.rows, "ow": s.columns, "sy": sy, "sx": sx,
        "ey": (kh - 1) * dy + 1, "ex": (kw - 1) * dx + 1, "step": sx, "pt": window.pads[0][0], "pl": window.pads[1][0],
        "items": s.images * lines * bands * blocks, "lines": lines, "bands": bands, "blocks": blocks, "tall": tile.rows,
        "long": tile.columns, "wide": tile.wide, "line": tile.wide * LANES, "far": tile.wide * LANES * dy,
        "apart": dx * LANES, "fill": fill, "kh": kh, "kw": kw,
    }.items()}  # fmt: skip
    g |= {"x": k.tensor(x), "dtype": pointee(x.dtype)}
    room = ROOM.size // bytes_of(x.dtype)
    fetched = [*_place("n_"), *(_whole(bordered) if tile.whole else _by_rows(bordered))]
    text = [
        f'tiles = S.alloc({2 * room}, "{pointee(x.dtype)}", scope="lsram")',
        "came = S.alloc_events(1)",
        "turn = S.i32(0)",
        "n_item = S.get_local_id() + 0",
        "n_near = tiles + 0",
        "if n_item < {items}:",
        *(f"    {line}" for line in fetched),
        "for item in range(S.get_local_id(), {items}, S.get_local_size()):",
        *(f"    {line}" for line in _place("")),
        "    now = S.min({long}, {ow} - ox)",
        f"    mask = S.tail_mask(S.min({{c}} - o, {LANES}), {LANES})",
        "    S.wait_events(came)",
        "    near = tiles + turn",
        f"    turn = {room} - turn",
        "    n_item = item + S.get_local_size()",
        "    if n_item < {items}:",
        "        n_near = tiles + turn",
        *(f"        {line}" for line in fetched),
        "    for r in range(tall):",
        "        first_spot = (oy + r) * {ow} + ox",
        "        row = near + r * {sy} * {line}",
        "        for p in range(now):",
        "            spot = first_spot + p",
        f"            at = row + p * {{sx}} * {LANES}",
        *(f"            {line}" for line in [*_own(begin), *_cells(kh, kw, _own(step))]),
        "            place = (image * ({oh} * {ow}) + spot) * {c} + o",
        *(f"            {line}" for line in _own(end)),
        "S.free_events(came)",
    ]
    return [line.format(**g) for line in text]


def _own(lines: Sequence[str]) -> list[str]:
    """Lines that are not to be filled in."""
    return [line.replace("{", "{{").replace("}", "}}") for line in lines]


def _in_two_axes(window: Window) -> Window:
    """A window along one axis as one of height 1."""
    if len(window.kernel) == 2:
        return window
    kernel, stride, dilation = ((1, *given) for given in (window.kernel, window.stride, window.dilation))
    return Window(kernel, stride, dilation, ((0, 0), *window.pads))


def _images(x: Tensor, made: Sequence[int]) -> Images:
    n, *sizes, c = x.shape
    high, wide = (1, *sizes)[-2:]
    rows, columns = (1, *made)[-2:]
    return Images(n, high, wide, c, rows, columns)


def _outside(window: Window, s: Images) -> list[tuple[int, int]]:
    """Elements before and behind the image that the window sees, of both axes; negative ones are not seen of it."""
    return [
        (before, (many - 1) * stride + reach - before - size)
        for size, many, stride, reach, (before, _) in zip(
            (s.high, s.wide), (s.rows, s.columns), window.stride, window.reach, window.pads, strict=True
        )
    ]


def _tiles(window: Window, s: Images, size: int, over: Sequence[tuple[int, int]]) -> Iterator[tuple[float, Tile]]:
    """Tiles that fit LSRAM, with about the cycles of the layer."""
    registers = -(-LANES * size // configuration().vector_bytes)
    work = (window.kernel[0] * window.kernel[1] + 4) * registers + 8
    blocks = -(-s.channels // LANES)
    for bands in range(1, s.columns + 1):
        columns = -(-s.columns // bands)
        if -(-s.columns // columns) != bands:
            continue
        # whole rows of the image lie behind each other
        whole = bands == 1 and over[1][0] == 0 and over[1][1] <= 0
        wide = s.wide if whole else (columns - 1) * window.stride[1] + window.reach[1]
        for rows in range(1, s.rows + 1):
            high = (rows - 1) * window.stride[0] + window.reach[0]
            if high * wide * LANES * size > ROOM.size:
                break
            moved = costs().transfers(high * wide * LANES * size, 1 if whole else high)
            many = s.images * blocks * -(-s.rows // rows) * bands
            each = max(moved, rows * columns * work + 60)
            yield -(-many // configuration().tecs) * each + moved, Tile(rows, columns, high, wide, whole)


def _place(ahead: str) -> list[str]:
    """The position of a tile, whose number is `item`: variables with `ahead` before their names."""
    return [
        f"{ahead}o = {ahead}item % {{blocks}} * {LANES}",
        f"{ahead}part = {ahead}item / {{blocks}}",
        f"{ahead}ox = {ahead}part % {{bands}} * {{long}}",
        f"{ahead}oy = {ahead}part / {{bands}} % {{lines}} * {{tall}}",
        f"{ahead}image = {ahead}part / ({{bands}} * {{lines}})",
        f"{ahead}tall = S.min({{tall}}, {{oh}} - {ahead}oy)",
    ]


_FILLER = f'S.vbcast(S.cast({{fill}}, "{{dtype}}"), lanes={LANES})'


def _filling(first: str, last: str, place: str) -> list[str]:
    return [f"for e in range({first}, {last}):", f"    S.vstore({_FILLER}, {place} + e * {LANES})"]


def _whole(bordered: bool) -> list[str]:
    """Start the one transfer of a tile's rows; fill the rows outside of the image."""
    lines = [
        "n_channels = S.min({c} - n_o, " + str(LANES) + ")",
        "n_high = (n_tall - 1) * {sy} + {ey}",
        "n_iy = n_oy * {sy} - {pt}",
    ]
    if not bordered:
        pixel = "{x} + (n_image * {h} + n_iy) * {wide} * {c} + n_o"
        return [*lines, f"S.async_dma_copy(n_near, {pixel}, n_channels, {{c}}, n_high * {{wide}}, {LANES}, event=came)"]
    pixel = "{x} + (n_image * {h} + n_iy + n_above) * {wide} * {c} + n_o"
    inside = "n_near + n_above * {line}"
    return [
        *lines,
        "n_above = S.max(-n_iy, 0)",
        "n_rows = S.min(n_high, {h} - n_iy) - n_above",
        f"S.async_dma_copy({inside}, {pixel}, n_channels, {{c}}, n_rows * {{wide}}, {LANES}, event=came)",
        *_filling("0", "n_above * {wide}", "n_near"),
        *_filling("(n_above + n_rows) * {wide}", "n_high * {wide}", "n_near"),
    ]


def _by_rows(bordered: bool) -> list[str]:
    """Start the transfers of a tile's rows; fill the elements outside of the image."""
    head = [
        "n_channels = S.min({c} - n_o, " + str(LANES) + ")",
        "n_ix = n_ox * {sx} - {pl}",
        "n_wide = (S.min({long}, {ow} - n_ox) - 1) * {sx} + {ex}",
    ]
    rows = "for j in range((n_tall - 1) * {sy} + {ey}):"
    line = "line = n_near + j * {line}"
    if not bordered:
        pixel = "{x} + ((n_image * {h} + n_oy * {sy} - {pt} + j) * {w} + n_ix) * {c} + n_o"
        return [
            *head,
            rows,
            f"    {line}",
            f"    S.async_dma_copy(line, {pixel}, n_channels, {{c}}, n_wide, {LANES}, event=came)",
        ]
    pixel = "{x} + ((n_image * {h} + iy) * {w} + n_ix + n_left) * {c} + n_o"
    return [
        *head,
        "n_left = S.max(-n_ix, 0)",
        "n_here = S.min(n_wide, {w} - n_ix) - n_left",
        rows,
        f"    {line}",
        "    iy = n_oy * {sy} - {pt} + j",
        "    if iy >= 0 and iy < {h}:",
        f"        S.async_dma_copy(line + n_left * {LANES}, {pixel}, n_channels, {{c}}, n_here, {LANES}, event=came)",
        *("        " + fill for fill in _filling("0", "n_left", "line")),
        *("        " + fill for fill in _filling("n_left + n_here", "n_wide", "line")),
        "    else:",
        *("        " + fill for fill in _filling("0", "n_wide", "line")),
    ]


def _cells(kh: int, kw: int, step: Sequence[str]) -> list[str]:
    """`step` for every cell of a window, row by row; `pixel` is its place."""

    def along(start: str) -> list[str]:
        if kw > ROW:
            inner = [f"pixel = {start} + kx * {{apart}}", *step]
            return ["for kx in range({kw}):", *("    " + line for line in inner)]
        return [
            line
            for kx in range(kw)
            for line in (f"pixel = {start} + {kx} * {{apart}}" if kx else f"pixel = {start} + 0", *step)
        ]

    if kh * kw > UNROLLED:
        inner = ["cells = at + ky * {far}", *along("cells")]
        return ["for ky in range({kh}):", *("    " + line for line in inner)]
    return [line for ky in range(kh) for line in along(f"at + {ky} * {{far}}" if ky else "at")]
