"""Where the calls of a program run, as one HTML page that needs nothing else: regions and calls with the values between them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from compass_core.aipubin.dtypes import BY_NAME
from compass_core.aipubin.graphnote import GraphNote, NotedLaunch, NotedTensor
from compass_core.html_page import document, section, table, tiles
from compassc.gbuilder import picture
from compassc.relay.backend.placement import HOST, NPU, Placed, Placement
from compassc.relay.types import TensorType, TupleType, Type, is_dynamic
from compassc.relay.visit import depth_first

COLUMNS = ("call", "operator", "result", "runs on", "region, or why not", "line")


def lines_of(rows: Sequence[Placed]) -> list[tuple[str, ...]]:
    """A line of texts for each call, by `COLUMNS`."""
    return [
        (
            str(r.number),
            r.operator,
            str(r.type),
            r.place,
            r.region or r.why,
            f"{r.span.file}:{r.span.line}" if r.span else "",
        )
        for r in rows
    ]


def placement_page(placement: Placement, title: str) -> str:
    """The text of the page."""
    rows = placement.rows
    numbers = {
        "calls on the NPU": f"{sum(r.place == NPU for r in rows):,}",
        "calls on the host": f"{sum(r.place == HOST for r in rows):,}",
        "regions of the NPU": f"{len({r.region for r in rows if r.region}):,}",
    }
    note, marks = _drawn(placement)
    about = (
        "Each box is a region of the NPU (with a bar) or a call on the host, by the numbers of the table; lines are values, "
        "which are copied where one end is on the NPU and the other is not."
    )
    cells = ([escape(cell) for cell in row] for row in lines_of(rows))
    parts = [
        f"<h1>{escape(title)}</h1>{tiles(numbers)}",
        section("Regions", about, picture.picture(note, marks)),
        section("Calls", "Where each call runs, and why.", table(COLUMNS, cells, COLUMNS[1:])),
    ]
    return document(title, picture.style(), parts, {})


def _tensor(name: str, t: Type) -> NotedTensor:
    """A value by its first tensor. Open extents are left out."""
    while isinstance(t, TupleType) and t.fields:
        t = t.fields[0]
    if not isinstance(t, TensorType) or t.dtype not in BY_NAME or is_dynamic(t):
        return NotedTensor(name, "uint8", ())
    return NotedTensor(name, t.dtype, t.concrete_shape)


def _drawn(placement: Placement) -> tuple[GraphNote, list[picture.Mark]]:
    """The picture's boxes: regions and calls on the host, in an order in which they can run."""
    group = {r.number: r.region or str(r.number) for r in placement.rows}
    inside: dict[str, list[Placed]] = {}
    for r in placement.rows:
        inside.setdefault(group[r.number], []).append(r)
    takes = {name: [n for r in rows for n in r.takes if group[n] != name] for name, rows in inside.items()}
    one = {name: name for name in inside}
    order = list(depth_first(one.values(), lambda name: [one[group[n]] for n in takes[name]]))
    asked = {n for numbers in takes.values() for n in numbers} | set(placement.results)
    launches, marks = [], []
    for name in order:
        rows = inside[name]
        inputs = dict.fromkeys([p for r in rows for p in r.params] + [f"value {n}" for n in takes[name]])
        outputs = tuple(f"value {r.number}" for r in rows if r.number in asked)
        labels, on_npu = tuple(f"{r.number} {r.operator}" for r in rows), rows[0].place == NPU
        launches.append(NotedLaunch(labels, (rows[0].place,) * len(rows), name, tuple(inputs), outputs))
        marks.append(picture.Mark(bar=1.0 if on_npu else None, title=name if on_npu else rows[0].why))
    values = {r.number: _tensor(f"value {r.number}", r.type) for r in placement.rows if r.number in asked}
    ends = tuple(values.pop(n) for n in dict.fromkeys(placement.results) if n in values)
    given = tuple(_tensor(name, t) for name, t in placement.params.items())
    return GraphNote(given, ends, tuple(values.values()), tuple(launches)), marks
