"""The picture of a built graph, as SVG: launches with their layers, and the tensors between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from html import escape
from pathlib import Path

from compass_core.aipubin.graphnote import GraphNote, NotedLaunch, NotedTensor
from compass_core.dataclass import dataclass

LANE, BOX_WIDTH, LINE, GAP = 300, 268, 16, 46
"""Pixels: from lane to lane, of a box, of a line of text, between boxes (where the tensor's name stands)."""
LABELS = 4
"""Layers that a box names."""
LETTERS = 38


@dataclass(frozen=True)
class Mark:
    """What a box shows of a launch besides its layers: a place on the page that it leads to, the id of its own, a bar of 0 to
    1 with what it says, and styles of the lines of its layers by their names."""

    href: str = ""
    name: str = ""
    bar: float | None = None
    title: str = ""
    lines: Mapping[str, str] = field(default_factory=dict)


def style() -> str:
    """The CSS of pictures."""
    return Path(__file__).with_name("picture.css").read_text(encoding="utf-8")


@dataclass(frozen=True)
class _Line:
    """A line of text, and the layer that it names; a type follows the name behind a NUL."""

    text: str
    layer: str = ""


@dataclass
class _Box:
    """A launch, or an input of the graph, in the picture: its lines of text, its lane, and the top and bottom of it."""

    lines: list[_Line]
    lane: int
    top: int = 0
    mark: Mark = Mark()
    end: bool = False

    @property
    def bottom(self) -> int:
        return self.top + LINE * len(self.lines) + 10

    @property
    def middle(self) -> int:
        return 16 + self.lane * LANE + BOX_WIDTH // 2


def picture(note: GraphNote, marks: Sequence[Mark] = ()) -> str:
    """The picture; `marks`: of each launch, or none."""
    tensors = {t.name: t for t in (*note.inputs, *note.tensors, *note.outputs)}
    reads = _reads(note, tensors)
    lanes = _Lanes(note, reads)
    boxes = [_Box([_Line(_cut(t.name)), _Line("input")], lanes.place((), (t.name,)), end=True) for t in note.inputs]
    boxes += [
        _Box(_lines(run), lanes.place(reads[i], run.outputs), mark=marks[i] if marks else Mark())
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
    for i, names in enumerate(reads):
        for name in names:
            edges.append(_edge(boxes[makers[name]], boxes[first + i], lanes.of.get(name, boxes[makers[name]].lane)))
    beside: Counter[tuple[int, int]] = Counter()  # labels below one another, where values of a box lie in one lane
    for name, maker in makers.items():
        if name in tensors:
            lane = lanes.of.get(name, 0)
            is_output = any(t.name == name for t in note.outputs)
            words.append(_word(tensors[name], boxes[maker], lane, is_output, beside[maker, lane]))
            beside[maker, lane] += 1
    drawn = "".join([*edges, *map(_drawn, boxes), *words])
    size = f'width="{lanes.count * LANE + BOX_WIDTH // 2}" height="{at}"'
    return f'<div class="scroll"><svg {size} role="img">{drawn}</svg></div>'


def _reads(note: GraphNote, tensors: Mapping[str, NotedTensor]) -> list[list[str]]:
    """What each launch reads: inputs of the graph and outputs of launches; of a view, those whose bytes it shows."""
    makers = {t.name for t in note.inputs} | {name for run in note.launches for name in run.outputs}

    def sources(name: str) -> list[str]:
        return [name] if name in makers else _shown(note, tensors, name)

    return [list(dict.fromkeys(source for name in run.inputs for source in sources(name))) for run in note.launches]


def _shown(note: GraphNote, tensors: Mapping[str, NotedTensor], name: str) -> list[str]:
    """The outputs of launches whose bytes a view shows, the last one that wrote a byte counts."""
    view = tensors.get(name)
    if view is None or view.made < 0:
        return []
    left = [(view.offset, view.offset + view.nbytes)]
    found = []
    for run in reversed(note.launches[: view.made + 1]):
        for output in run.outputs:
            t = tensors.get(output)
            if t is None or t.section is None or t.section != view.section:
                continue
            begin, end = t.offset, t.offset + t.nbytes
            if any(a < end and begin < b for a, b in left):
                found.append(output)
                parts = [part for a, b in left for part in ((a, min(b, begin)), (max(a, end), b))]
                left = [(a, b) for a, b in parts if a < b]
    return found or list(note.launches[view.made].outputs[:1])


class _Lanes:
    """Columns, so that no line crosses a box: a tensor keeps its lane until its last reader."""

    def __init__(self, note: GraphNote, reads: Sequence[Sequence[str]]) -> None:
        self.of: dict[str, int] = {}
        self.count = 1
        self._busy: list[str | None] = []
        self._readers = {name: i for i, names in enumerate(reads) for name in names}
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


def _lines(run: NotedLaunch) -> list[_Line]:
    shown = [
        _Line(f"{_cut(name, LETTERS - len(kind) - 3)}\0{kind}", name)
        for name, kind in zip(run.names, run.types, strict=False)
    ]
    rest = len(shown) - LABELS
    return shown if rest <= 1 else [*shown[:LABELS], _Line(f"and {rest} more layers")]


def _cut(text: str, letters: int = LETTERS) -> str:
    letters = max(letters, 8)
    return text if len(text) <= letters else "…" + text[len(text) - letters + 1 :]


def _drawn(box: _Box) -> str:
    left, height = 16 + box.lane * LANE, box.bottom - box.top
    kind = "box end" if box.end else "box"
    mark = box.mark
    parts = [f'<rect class="{kind}" x="{left}" y="{box.top}" width="{BOX_WIDTH}" height="{height}" rx="6"/>']
    for i, line in enumerate(box.lines):
        name, _, of = line.text.partition("\0")
        y = box.top + LINE * (i + 1) + 1
        if line.layer in mark.lines:
            place = f'x="{left + 4}" y="{y - 12}" width="{BOX_WIDTH - 8}" height="{LINE}" rx="3"'
            parts.append(f'<rect class="cell" {place} style="{escape(mark.lines[line.layer])}"/>')
        parts.append(f'<text x="{left + 10}" y="{y}">{escape(name)} <tspan class="type">{escape(of)}</tspan></text>')
    if mark.bar is not None:
        width = round((BOX_WIDTH - 4) * mark.bar, 1)
        parts.append(
            f'<rect class="heat" x="{left + 2}" y="{box.bottom - 5}" width="{width}" height="3" rx="1.5">'
            f"<title>{escape(mark.title)}</title></rect>"
        )
    drawn = "".join(parts)
    return f'<a href="{escape(mark.href)}" id="{escape(mark.name)}">{drawn}</a>' if mark.href else drawn


def _edge(start: _Box, end: _Box, lane: int) -> str:
    x = 16 + lane * LANE + BOX_WIDTH // 2
    high, low = start.bottom, end.top
    down, up = high + GAP // 2 - 8, low - 10
    return (
        f'<path class="edge" d="M{start.middle} {high} C{start.middle} {high + 10} {x} {high + 4} {x} {down} '
        f'L{x} {max(up, down)} C{x} {low - 2} {end.middle} {low - 8} {end.middle} {low}"/>'
    )


def _word(tensor: NotedTensor, box: _Box, lane: int, output: bool, row: int) -> str:
    """The label of a tensor beside the line from its box, in one of the rows there; for outputs of the graph their name."""
    size = "×".join(map(str, tensor.shape))
    name = f"output {tensor.name}: " if output else ""
    x = 16 + lane * LANE + BOX_WIDTH // 2 + 6
    return (
        f'<text class="soft" x="{x}" y="{box.bottom + 19 + row * 12}">{escape(_cut(name + tensor.dtype + " " + size, LETTERS))}'
        f"<title>{escape(tensor.name)}, {tensor.nbytes:,} bytes</title></text>"
    )
