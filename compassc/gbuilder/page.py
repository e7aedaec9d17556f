"""The picture of a built graph as one HTML page that needs nothing else: launches with their layers, the tensors between
them, and device memory over time."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from compass_core.aipubin import AipuBin
from compass_core.aipubin.graphnote import GraphNote
from compass_core.errors import CompassError
from compass_core.html_page import document, section, table, tiles
from compassc.gbuilder import picture

MEMORY_HEIGHT = 360
NARROW, WIDE, STEP = 640, 1320, 14


def graph_page(content: AipuBin, note: GraphNote, title: str, cycles: Sequence[float] = ()) -> str:
    """The text of the page. `cycles`: of each launch, as a profile estimated them; none: not known. CompassError when
    there are not as many as launches."""
    if cycles and len(cycles) != len(note.launches):
        raise CompassError(
            f"the profile has {len(cycles)} launches, but the graph {len(note.launches)}",
            code="other-profile",
            help="profile this aipu.bin: compass-run --profile --json",
        )
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8") + picture.style()
    parts = [_head(content, note, title, cycles), _launches(note, cycles), _memory(content, note), _table(note, cycles)]
    return document(title, style, parts, {})


def _head(content: AipuBin, note: GraphNote, title: str, cycles: Sequence[float]) -> str:
    layers = sum(len(run.names) for run in note.launches)
    numbers = {
        "launches": f"{len(note.launches):,}",
        "layers": f"{layers:,}",
        "kernels": f"{len({run.kernel for run in note.launches}):,}",
        "bytes of constants": f"{len(content.weights):,}",
        "bytes of intermediate tensors": f"{_shared(content, note)[1]:,}",
    }
    if cycles:
        numbers["cycles (estimated)"] = f"{round(sum(cycles)):,}"
    return f"<h1>{escape(title)}</h1><p>For {escape(content.target)}.</p>{tiles(numbers)}"


def _launches(note: GraphNote, cycles: Sequence[float]) -> str:
    most = max(cycles, default=0.0) or 1.0
    marks = [picture.Mark(bar=c / most, title=f"{c:,.0f} cycles") for c in cycles]
    text = "Each box is a launch with the layers that its kernel computes, in the order they run; lines are tensors."
    return section("Launches", text, picture.picture(note, marks))


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
    shared, size = _shared(content, note)
    if shared is None or not size:
        return ""
    last: dict[str, int] = {name: i for i, run in enumerate(note.launches) for name in run.inputs}
    width = min(max(NARROW, STEP * len(note.launches)), WIDE)
    across, up = (width - 20) / max(len(note.launches), 1), (MEMORY_HEIGHT - 30) / size
    ground = MEMORY_HEIGHT - 20
    parts = []
    for t in note.tensors:
        if t.section != shared or t.made < 0:
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
    return section("Memory over time", text, f'<div class="scroll">{picture}</div>')


# ------------------------------------------------------------------------------------------------------------- table


def _table(note: GraphNote, cycles: Sequence[float]) -> str:
    whole = sum(cycles) or 1.0
    columns = ["launch", "layers", "types", "kernel", "makes", *(("cycles", "share") if cycles else ())]
    rows: Iterable[list[str]] = (
        [str(i), run.label, ", ".join(run.types), run.kernel, ", ".join(run.outputs)]
        + ([f"{round(cycles[i]):,}", f"{100 * cycles[i] / whole:.1f}%"] if cycles else [])
        for i, run in enumerate(note.launches)
    )
    cells = ([escape(cell) for cell in row] for row in rows)
    return section("Table", "What each launch computes and makes.", table(columns, cells, columns[1:5]))
