"""The picture of a built graph as one HTML page that needs nothing else: launches with their layers, the tensors between
them, and device memory over time."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from compass_core.aipubin import AipuBin
from compass_core.aipubin.graphnote import GraphNote, NotedLaunch, NotedTensor
from compass_core.errors import CompassError

LANE, BOX_WIDTH, LINE, GAP = 300, 268, 16, 46
"""Pixels: from lane to lane, of a box, of a line of text, between boxes (where the tensor's name stands)."""
LABELS = 4
"""Layers that a box names."""
LETTERS = 38
MEMORY_HEIGHT = 360
NARROW, WIDE, STEP = 640, 1320, 14


@dataclass
class _Box:
    """A launch, or an input of the graph, in the picture: its lines of text, its lane, and the top and bottom of it."""

    lines: list[str]
    lane: int
    top: int = 0
    cycles: float | None = None
    end: bool = False

    @property
    def bottom(self) -> int:
        return self.top + LINE * len(self.lines) + 10

    @property
    def middle(self) -> int:
        return 16 + self.lane * LANE + BOX_WIDTH // 2


def graph_page(content: AipuBin, note: GraphNote, title: str, cycles: Sequence[float] = ()) -> str:
    """The text of the page. `cycles`: of each launch, as a profile estimated them; none: not known. CompassError when
    there are not as many as launches."""
    if cycles and len(cycles) != len(note.launches):
        raise CompassError(
            f"the profile has {len(cycles)} launches, but the graph {len(note.launches)}",
            code="other-profile",
            help="profile this aipu.bin: compass-run --profile --json",
        )
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    parts = [_head(content, note, title, cycles), _picture(note, cycles), _memory(content, note), _table(note, cycles)]
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<style>\n{style}</style></head>\n<body><main>\n{''.join(parts)}</main></body></html>\n"
    )


def _head(content: AipuBin, note: GraphNote, title: str, cycles: Sequence[float]) -> str:
    layers = sum(len(run.names) for run in note.launches)
    tiles = {
        "launches": f"{len(note.launches):,}",
        "layers": f"{layers:,}",
        "kernels": f"{len({run.kernel for run in note.launches}):,}",
        "bytes of constants": f"{len(content.weights):,}",
        "bytes of intermediate tensors": f"{_shared(content, note)[1]:,}",
    }
    if cycles:
        tiles["cycles (estimated)"] = f"{round(sum(cycles)):,}"
    shown = "".join(f"<div><b>{escape(value)}</b><span>{escape(what)}</span></div>" for what, value in tiles.items())
    return f'<h1>{escape(title)}</h1><p>For {escape(content.target)}.</p><div class="tiles">{shown}</div>\n'


# ------------------------------------------------------------------------------------------------------- the picture


def _picture(note: GraphNote, cycles: Sequence[float]) -> str:
    tensors = {t.name: t for t in (*note.inputs, *note.tensors, *note.outputs)}
    lanes = _Lanes(note)
    boxes = [_Box([_cut(t.name), "input"], lanes.place((), (t.name,)), end=True) for t in note.inputs]
    boxes += [
        _Box(_lines(run), lanes.place(run.inputs, run.outputs), cycles=cycles[i] if cycles else None)
        for i, run in enumerate(note.launches)
    ]
    at = 12
    for box in boxes:
        box.top = at
        at = box.bottom + GAP
    first = len(note.inputs)
    makers = {t.name: i for i, t in enumerate(note.inputs)}
    makers |= {name: first + i for i, run in enumerate(note.launches) for name in run.outputs}
    edges, words = [], []
    for i, run in enumerate(note.launches):
        for name in dict.fromkeys(run.inputs):
            maker = _maker(name, makers, tensors, first)
            if maker is not None:
                edges.append(_edge(boxes[maker], boxes[first + i], lanes.of.get(name, boxes[maker].lane)))
    for name, maker in makers.items():
        if name in tensors:
            words.append(
                _word(tensors[name], boxes[maker], lanes.of.get(name, 0), any(t.name == name for t in note.outputs))
            )
    most = max(cycles, default=0.0) or 1.0
    drawn = "".join([*edges, *(_drawn(box, most) for box in boxes), *words])
    size = f'width="{lanes.count * LANE + BOX_WIDTH // 2}" height="{at}"'
    text = "Each box is a launch with the layers that its kernel computes, in the order they run; lines are tensors."
    return f'<h2>Launches</h2><p>{text}</p><div class="scroll"><svg {size} role="img">{drawn}</svg></div>\n'


def _maker(name: str, makers: Mapping[str, int], tensors: Mapping[str, NotedTensor], first: int) -> int | None:
    """The box a tensor comes from; of a view, which no launch names as its output, the launch that completes it."""
    if name in makers:
        return makers[name]
    tensor = tensors.get(name)
    return first + tensor.made if tensor is not None and tensor.made >= 0 else None


class _Lanes:
    """Columns, so that no line crosses a box: a tensor keeps its lane until its last reader."""

    def __init__(self, note: GraphNote) -> None:
        self.of: dict[str, int] = {}
        self.count = 1
        self._busy: list[str | None] = []
        self._readers = {name: i for i, run in enumerate(note.launches) for name in run.inputs}
        self._step = -len(note.inputs)

    def place(self, inputs: Sequence[str], outputs: Sequence[str]) -> int:
        """The lane of the next box."""
        done = [n for n in dict.fromkeys(inputs) if n in self.of and self._readers.get(n, -1) <= self._step]
        for name in done:
            if self._busy[self.of[name]] == name:
                self._busy[self.of[name]] = None
        near = [self.of[n] for n in done if self._busy[self.of[n]] is None]
        lane = min(near) if near else self._free()
        later = [n for n in outputs if self._readers.get(n, -1) > self._step]
        for i, name in enumerate(outputs):
            self.of[name] = lane if not i or name not in later else self._free()
            if name in later:
                self._busy[self.of[name]] = name
        self._step += 1
        return lane

    def _free(self) -> int:
        if None not in self._busy:
            self._busy.append(None)
        self.count = max(self.count, len(self._busy))
        return self._busy.index(None)


def _lines(run: NotedLaunch) -> list[str]:
    shown = [f"{_cut(name, LETTERS - len(kind) - 3)}\0{kind}" for name, kind in zip(run.names, run.types, strict=False)]
    rest = len(shown) - LABELS
    return shown if rest <= 1 else [*shown[:LABELS], f"and {rest} more layers"]


def _cut(text: str, letters: int = LETTERS) -> str:
    letters = max(letters, 8)
    return text if len(text) <= letters else "…" + text[len(text) - letters + 1 :]


def _drawn(box: _Box, most: float) -> str:
    left, height = 16 + box.lane * LANE, box.bottom - box.top
    kind = "box end" if box.end else "box"
    parts = [f'<rect class="{kind}" x="{left}" y="{box.top}" width="{BOX_WIDTH}" height="{height}" rx="6"/>']
    for i, line in enumerate(box.lines):
        name, _, of = line.partition("\0")
        y = box.top + LINE * (i + 1) + 1
        parts.append(f'<text x="{left + 10}" y="{y}">{escape(name)} <tspan class="type">{escape(of)}</tspan></text>')
    if box.cycles is not None:
        width = round((BOX_WIDTH - 4) * box.cycles / most, 1)
        parts.append(
            f'<rect class="heat" x="{left + 2}" y="{box.bottom - 5}" width="{width}" height="3" rx="1.5">'
            f"<title>{box.cycles:,.0f} cycles</title></rect>"
        )
    return "".join(parts)


def _edge(start: _Box, end: _Box, lane: int) -> str:
    x = 16 + lane * LANE + BOX_WIDTH // 2
    high, low = start.bottom, end.top
    down, up = high + GAP // 2 - 8, low - 10
    return (
        f'<path class="edge" d="M{start.middle} {high} C{start.middle} {high + 10} {x} {high + 4} {x} {down} '
        f'L{x} {max(up, down)} C{x} {low - 2} {end.middle} {low - 8} {end.middle} {low}"/>'
    )


def _word(tensor: NotedTensor, box: _Box, lane: int, output: bool) -> str:
    """The label of a tensor beside the line from its box; for outputs of the graph their name."""
    size = "×".join(map(str, tensor.shape))
    name = f"output {tensor.name}: " if output else ""
    x = 16 + lane * LANE + BOX_WIDTH // 2 + 6
    return (
        f'<text class="soft" x="{x}" y="{box.bottom + 19}">{escape(_cut(name + tensor.dtype + " " + size, LETTERS))}'
        f"<title>{escape(tensor.name)}, {tensor.nbytes:,} bytes</title></text>"
    )


# ------------------------------------------------------------------------------------------------------------ memory


def _shared(content: AipuBin, note: GraphNote) -> tuple[int | None, int]:
    """The section of the intermediate tensors and its size; (None, 0) without any."""
    sections = {t.section for t in note.tensors if t.section is not None}
    ends = {t.section for t in (*note.inputs, *note.outputs)}
    sizes = [section.size for bss in content.features.bss for section in bss.reuses]
    found = [s for s in sections - ends if s < len(sizes)]
    largest = max(found, key=lambda s: sizes[s], default=None)
    return largest, 0 if largest is None else sizes[largest]


def _memory(content: AipuBin, note: GraphNote) -> str:
    """Rectangles: launches to the right, addresses upwards."""
    section, size = _shared(content, note)
    if section is None or not size:
        return ""
    last: dict[str, int] = {name: i for i, run in enumerate(note.launches) for name in run.inputs}
    width = min(max(NARROW, STEP * len(note.launches)), WIDE)
    across, up = (width - 20) / max(len(note.launches), 1), (MEMORY_HEIGHT - 30) / size
    ground = MEMORY_HEIGHT - 20
    parts = []
    for t in note.tensors:
        if t.section != section or t.made < 0:
            continue
        end = max(last.get(t.name, t.made), t.made)
        hue = zlib.crc32(t.name.encode()) % 360
        height = t.nbytes * up
        parts.append(
            f'<rect class="tensor" style="--hue:{hue}" x="{10 + t.made * across:.1f}" '
            f'y="{ground - t.offset * up - height:.1f}" width="{(end + 1 - t.made) * across:.1f}" '
            f'height="{max(height, 0.5):.1f}"><title>{escape(t.name)}: {t.nbytes:,} bytes at {t.offset:,}, '
            f"launches {t.made} to {end}</title></rect>"
        )
    frame = (
        f'<path class="axis" d="M10 {ground}H{width - 10}"/><text class="soft" x="10" y="{ground + 14}">launch 0</text>'
    )
    frame += f'<text class="soft" x="{width - 10}" y="{ground + 14}" text-anchor="end">{len(note.launches) - 1}</text>'
    top = ground - size * up
    frame += f'<path class="limit" d="M10 {top:.1f}H{width - 10}"/>'
    text = (
        f"The section that intermediate tensors share: {size:,} bytes. A rectangle is a tensor: it reaches from the launch "
        "that makes it to the last one that reads it, and over its addresses. Point at it to see its name."
    )
    picture = f'<svg width="{width}" height="{MEMORY_HEIGHT}" role="img">{"".join(parts)}{frame}</svg>'
    return f'<h2>Memory over time</h2><p>{text}</p><div class="scroll">{picture}</div>\n'


# ------------------------------------------------------------------------------------------------------------- table


def _table(note: GraphNote, cycles: Sequence[float]) -> str:
    whole = sum(cycles) or 1.0
    columns = ["launch", "layers", "types", "kernel", "makes", *(("cycles", "share") if cycles else ())]
    rows: Iterable[list[str]] = (
        [str(i), run.label, ", ".join(run.types), run.kernel, ", ".join(run.outputs)]
        + ([f"{round(cycles[i]):,}", f"{100 * cycles[i] / whole:.1f}%"] if cycles else [])
        for i, run in enumerate(note.launches)
    )
    left = [' class="left"' if 0 < i < 5 else "" for i in range(len(columns))]
    head = "".join(f"<th{kind}>{escape(name)}</th>" for kind, name in zip(left, columns, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{kind}>{escape(cell)}</td>" for kind, cell in zip(left, row, strict=True)) + "</tr>\n"
        for row in rows
    )
    return f"<h2>Table</h2><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>\n"
