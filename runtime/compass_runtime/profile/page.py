"""The profile as one HTML page that needs nothing else: timeline, TECs, roofline, and the source with the cost of each
line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path

from compass_core.errors.excerpts import source_lines
from compass_core.hostcc import origins
from compass_core.html_page import document, section, table, tiles
from compass_runtime.profile import charts, roofline
from compass_runtime.profile.data import as_data
from compass_runtime.profile.result import WAITS, Cost, Profile
from compass_runtime.profile.table import classes, incomplete, percent, spell_place

_KINDS = {
    "work": "work",
    "dma": "waits for DMA",
    "event": "waits for an event",
    "barrier": "at a barrier",
    "transfer": "transfer",
    "section": "section",
}
_ZOOM = (
    '<label class="zoom">zoom <input type="range" min="1" max="20" step="0.5" value="1" '
    "oninput=\"this.closest('section').style.setProperty('--zoom', this.value)\"></label>"
)
_CONTEXT = 2
"""Lines shown around those that cost something."""


def page(profile: Profile) -> str:
    """The text of the page."""
    makers = (_head, timeline, _launches, _tecs, _roofline, source, _model)
    parts = [make(profile) for make in makers]
    title = f"{profile.name} on {profile.model.target.name}"
    return document(title, style(), parts, {"profile": as_data(profile)}, charts.patterns())


def style() -> str:
    """The CSS of the page and its sections."""
    return Path(__file__).with_name("style.css").read_text(encoding="utf-8")


def _head(profile: Profile) -> str:
    total = profile.total
    numbers = {
        "cycles (estimated)": f"{profile.cycles:,}",
        f"at {profile.model.clock_mhz:g} MHz": f"{profile.seconds * 1e6:,.1f} µs",
        "bytes by DMA": f"{total.dma_bytes:,}",
        "bytes to and from device memory": f"{total.external_bytes:,}",
        "of vector lanes used": percent(total.lane_use),
        "operations on vector lanes": f"{total.total.arithmetic:,}",
    }
    note = incomplete(profile)
    return (
        f"<h1>{escape(profile.name)}</h1><p>Profile of a simulated run on {escape(profile.model.target.name)}. Counts and "
        "bytes are exact. Cycles are estimates of the cost model below: good for comparing, not for predicting."
        f"</p>{f'<p><b>{escape(note)}</b></p>' if note else ''}{tiles(numbers)}"
    )


def _legend(kinds: Iterable[str]) -> str:
    items = "".join(f'<span><i class="{kind}"></i>{escape(_KINDS[kind])}</span>' for kind in kinds)
    return f'<div class="legend">{items}</div>'


def timeline(profile: Profile, steps: int = charts.STEPS) -> str:
    """The section with the timeline, in which `steps` can be told apart."""
    seen = {span.kind for span in profile.timeline.spans}
    note = "What each TEC and DMA channel does, in cycles from the start. Point at a bar to see its line."
    legend = _legend(kind for kind in _KINDS if kind in seen)
    return section("Timeline", note, _ZOOM, legend, charts.timeline(profile, steps))


def _launches(profile: Profile) -> str:
    """The sub-graphs, where there are several."""
    if len(profile.launches) < 2:
        return ""
    whole = profile.timeline.cycles
    columns = ("launch", "layers", "kernel", "core", "begins", "cycles", "share", "DMA bytes", "time")
    rows = []
    for layer in profile.layers:
        run = layer.launch
        numbers = [f"{run.start:,.0f}", f"{run.end - run.start:,.0f}", percent((run.end - run.start) / whole)]
        left, width = 100 * run.start / whole, 100 * (run.end - run.start) / whole
        bar = f'<i class="work" style="margin-left:{left:.2f}%;width:{width:.2f}%"></i>'
        named = (escape(layer.layers), escape(layer.kernel))
        rows.append(
            [
                str(run.group),
                *named,
                str(run.core),
                *numbers,
                f"{layer.dma_bytes:,}",
                f'<span class="stack">{bar}</span>',
            ]
        )
    note = "The sub-graphs of the file, one per layer or fused layers, and when they run."
    return section("Launches", note, table(columns, rows, ("layers", "kernel", "time")))


def _stack(cost: Cost, whole: float) -> str:
    """A bar of the cycles by class."""
    parts = {"work": cost.work, **cost.waits}
    bars = "".join(
        f'<i class="{kind}" style="width:{100 * cycles / whole:.2f}%" title="{_KINDS[kind]}: {cycles:,.0f} cycles"></i>'
        for kind, cycles in parts.items()
        if cycles
    )
    return f'<span class="stack">{bars}</span>'


def _tecs(profile: Profile) -> str:
    columns = ("TEC", "time", "cycles", "work", *WAITS, "lanes used", "load/store bytes", "DMA bytes", "operations")
    rows = [
        [str(number), _stack(cost, profile.timeline.cycles or 1.0), *_numbers(cost), _words(classes(cost))]
        for number, cost in profile.tecs.items()
    ]
    parts = [table(columns, rows, ("time", "operations"), "tecs")]
    if profile.sections:
        rows = [
            [str(s.id), escape(spell_place(s.place)), str(s.runs), f"{sum(s.cycles.values()):,.0f}", _each(s.cycles)]
            for s in profile.sections
        ]
        parts.append("<h2 style='margin-top:18px'>Sections</h2>")
        parts.append(
            table(("section", "begins at", "runs", "cycles", "of each TEC"), rows, ("begins at", "of each TEC"))
        )
    note = "Waits: dma for transfers during which the TEC stands still, event for asynchronous ones, barrier for other TECs."
    return section("TECs", f"{_together(profile)} {note}", *parts)


def _together(profile: Profile) -> str:
    """How the cycles of the run and those of its TECs belong together."""
    cycles = [cost.cycles for cost in profile.tecs.values()]
    if not cycles:
        return ""
    low, high, whole = min(cycles), max(cycles), sum(cycles)
    own = f"{low:,.0f}" if round(low) == round(high) else f"{low:,.0f} to {high:,.0f}"
    return (
        f"The run takes {profile.cycles:,} cycles, from the start of the job to the end of the last TEC. TECs run at the same "
        f"time: each has {own} cycles of its own, which do not count the time before it starts and after its end. The "
        f"{len(cycles)} together have {whole:,.0f}; of these are the cycles and shares of lines and sections."
    )


def _each(cycles: Mapping[int, float]) -> str:
    return ", ".join(f"{tec}: {value:,.0f}" for tec, value in sorted(cycles.items()))


def _words(text: str) -> str:
    return f'<span class="words">{escape(text)}</span>'


def _numbers(cost: Cost) -> list[str]:
    cycles = [cost.cycles, cost.work, *(cost.waits[name] for name in WAITS)]
    return [
        *(f"{round(value):,}" if value else "" for value in cycles),
        percent(cost.lane_use) if cost.lane_use is not None else "",
        f"{cost.total.bytes:,}" if cost.total.bytes else "",
        f"{cost.dma_bytes:,}" if cost.dma_bytes else "",
    ]


def _roofline(profile: Profile) -> str:
    note = (
        "The large dot: the kernel, against the bytes that cross the port of the device memory. Small dots: lines that "
        "compute, against all bytes that they load, store and transfer themselves; a line that moves none stands at the "
        "right edge. Dots that lie close together share a label; the table has each."
    )
    found = roofline.points(profile)
    rows = [
        [
            escape(point.name),
            "" if math.isinf(point.intensity) else f"{point.intensity:.3g}",
            f"{point.speed:.3g}",
        ]
        for point in found[::-1]
    ]
    shown = table(("point", "operations per byte", "operations per cycle"), rows, ("point",))
    details = f"<details><summary>{len(found)} points</summary>{shown}</details>" if found else ""
    return section("Roofline", note, roofline.roofline(profile), details)


def source(profile: Profile) -> str:
    """The section with the source and what its lines cost."""
    files: dict[str, dict[int, Cost]] = {}
    for (file, line), cost in profile.lines.items():
        if file:
            files.setdefault(file, {})[line] = cost
    ordered = sorted(files.items(), key=lambda item: -max(cost.cycles for cost in item[1].values()))
    parts = [_file(profile, file, costs) for file, costs in ordered]
    note = "Cycles of a line are its share of the work it takes part in, and its waits, of all TECs together."
    return section("Source", note, *parts)


def _file(profile: Profile, file: str, costs: dict[int, Cost]) -> str:
    whole = profile.total.cycles or 1.0
    most = max(cost.cycles for cost in profile.lines.values()) or 1.0
    columns = ("line", "share", "time", "cycles", "lanes used", "source", "operations")
    rows, last = [], 0
    lines = source_lines(file, origins.read(profile.program.code.elf))
    shown = sorted({n for line in costs for n in range(line - _CONTEXT, line + _CONTEXT + 1) if n > 0})
    for line in shown:
        if lines and line > len(lines):
            break
        if last and line > last + 1:
            rows.append(["", "", "", "", "", '<span class="number">…</span>', ""])
        last = line
        words = lines[line - 1] if lines else profile.texts.get((file, line), "")
        rows.append(_row(line, costs.get(line), words, whole, most))
    missing = "" if lines else " (not found here; this is the C text of each line)"
    head = f"<h2 style='margin-top:14px'>{escape(Path(file).name + missing)}</h2>"
    return head + table(columns, rows, ("time", "source", "operations"), "source")


def _row(line: int, cost: Cost | None, words: str, whole: float, most: float) -> list[str]:
    number = f'<span class="number">{line}</span>'
    code = f'<span class="code" title="{escape(words.strip())}"><code>{escape(words)}</code></span>'
    if cost is None:
        return [number, "", "", "", "", code, ""]
    heat = code.replace("<span ", f'<span style="background:rgba(var(--heat),{0.75 * cost.cycles / most:.2f})" ', 1)
    lanes = percent(cost.lane_use) if cost.lane_use is not None else ""
    moved = [f"{cost.dma_bytes:,} bytes by DMA"] if cost.dma_bytes else []
    moved += [f"{cost.total.bytes:,} bytes loaded and stored"] if cost.total.bytes else []
    what = _words("; ".join([classes(cost), *moved]))
    return [number, percent(cost.cycles / whole), _stack(cost, most), f"{cost.cycles:,.0f}", lanes, heat, what]


def _model(profile: Profile) -> str:
    model, used = profile.model, profile.total.classes
    columns = ("class", "count", "active lanes", "latency", "interval")
    rows = [
        [
            escape(kind),
            f"{tally.count:,}",
            f"{tally.active:,}" if tally.lanes else "",
            str(model.latency(kind, False)),
            str(model.interval(kind, False)),
        ]
        for kind, tally in sorted(used.items(), key=lambda item: -item[1].count)
    ]
    note = (
        f"Estimates for {model.target.version}: {model.issue_width} operations start per cycle; units: "
        + ", ".join(f"{count} {unit}" for unit, count in model.units.items())
        + f". A transfer takes {model.dma['startup']} cycles and then {model.dma['bytes_per_cycle']} bytes per cycle; all "
        f"together {model.device_memory_bytes_per_cycle} bytes per cycle of device memory. Latency: cycles until a result "
        "can be used; interval: until the unit takes the next operation; accesses to device memory take "
        f"{model.device_memory['latency']} and {model.device_memory['interval']} more."
    )
    return section("Cost model", note, table(columns, rows, ("class",)))
