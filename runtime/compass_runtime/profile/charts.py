"""The two charts of the page, as SVG: what TECs and DMA channels did when, and the roofline."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape

from compass_runtime.profile.regions import Location
from compass_runtime.profile.result import Cost, Profile
from compass_runtime.profile.table import spell_place
from compass_runtime.profile.timeline import Span
from compass_runtime.profile.trace import track

WIDTH = 1180
_LEFT, _RIGHT = 90, 20
_ROW, _GAP = 22, 5
_COLUMNS = WIDTH - _LEFT - _RIGHT
STEPS = 4000
"""The smallest part of a timeline that is visible when it is zoomed."""


def svg(height: float, parts: Iterable[str], label: str) -> str:
    body = "".join(parts)
    return f'<svg class="chart" viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(label)}">{body}</svg>'


def _text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def nice_steps(top: float, most: int = 8) -> list[float]:
    """Round numbers from 0 to `top`, at most about `most` of them."""
    if top <= 0:
        return [0.0]
    raw = top / most
    power = 10 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw)
    return [step * i for i in range(int(top / step) + 1)]


def timeline(profile: Profile, steps: int = STEPS) -> str:
    """A row per TEC and DMA channel, times in percent of the whole, so that the rows can be made wider than the page.
    Spans that could not be seen even then, of `steps` along the whole, are merged with their neighbours."""
    rows: dict[int, tuple[str, list[Span]]] = {}
    for span in profile.timeline.spans:
        number, name = track(span)
        rows.setdefault(number, (name, []))[1].append(span)
    whole = profile.timeline.cycles or 1.0
    height = len(rows) * (_ROW + _GAP) + 30
    parts, names = [], []
    for cycles in nice_steps(whole, 16):
        x, anchor = _share(cycles, whole), "end" if cycles > 0.97 * whole else "middle" if cycles else "start"
        parts.append(f'<line x1="{x}" y1="4" x2="{x}" y2="{height - 22}" class="grid"/>')
        parts.append(f'<text x="{x}" y="{height - 6}" class="axis" text-anchor="{anchor}">{cycles:,.0f}</text>')
    for index, (_, (name, spans)) in enumerate(sorted(rows.items())):
        y = 4 + index * (_ROW + _GAP)
        names.append(f"<span>{escape(name)}</span>")
        parts.append(f'<rect x="0" y="{y}" width="100%" height="{_ROW}" class="row"/>')
        parts += [_bar(span, count, whole, y, steps) for span, count in _visible(spans, whole / steps)]
    drawing = (
        f'<svg style="height:{height}px" role="img" aria-label="timeline of the TECs and DMA channels, in cycles">'
    )
    return (
        f'<div class="lanes"><div class="names">{"".join(names)}</div>'
        f'<div class="scroll">{drawing}{"".join(parts)}</svg></div></div>'
    )


def _share(cycles: float, whole: float) -> str:
    return f"{100 * cycles / whole:.3f}%"


def _visible(spans: Sequence[Span], least: float) -> Iterable[tuple[Span, int]]:
    """Spans in order of time, neighbours that together are narrower than `least` as one, and how many each stands for."""
    group: list[Span] = []
    for span in sorted(spans, key=lambda span: span.start):
        if group and span.end - group[0].start > least:
            yield _merged(group), len(group)
            group = []
        group.append(span)
    if group:
        yield _merged(group), len(group)


def _merged(group: Sequence[Span]) -> Span:
    """One span for several: with the kind that took the most time."""
    longest = max(group, key=lambda span: span.cycles)
    amount = sum(span.detail for span in group) if longest.kind == "transfer" else longest.detail
    return Span(longest.tec, longest.kind, group[0].start, group[-1].end, longest.place, amount, longest.channel)


_WHAT = {"work": "work", "dma": "waits for DMA", "event": "waits for an event", "barrier": "at a barrier"}


def _bar(span: Span, count: int, whole: float, y: float, steps: int) -> str:
    x, width = _share(span.start, whole), _share(max(span.cycles, whole / steps / 2), whole)
    amounts = {"transfer": f"transfer of {span.detail:,} bytes", "section": f"section {span.detail}"}
    several = f" and {count - 1} more" if count > 1 else ""
    what = f"{amounts.get(span.kind) or _WHAT[span.kind]}, {spell_place(span.place)}{several}"
    title = f"{what}: {span.cycles:,.0f} cycles from {span.start:,.0f}"
    named = span.kind == "section" and span.cycles > whole / 20
    label = f'<text x="{x}" dx="5" y="{y + 15}" class="inside">section {span.detail}</text>' if named else ""
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{_ROW}" class="{span.kind}">'
        f"<title>{escape(title)}</title></rect>{label}"
    )


_TOP, _BOTTOM = 16, 46
_HEIGHT = 420
_LINES_SHOWN = 12


def roofline(profile: Profile) -> str:
    """Operations per cycle over operations per byte, on logarithmic axes: the roofs, the kernel and its lines."""
    model = profile.model
    peak, element = _peak(profile)
    local = model.target.vector_bytes * model.units["memory"] * model.tecs
    device = model.device_memory_bytes_per_cycle
    points = _points(profile)
    intensities = [x for _, x, _, _ in points if math.isfinite(x)]
    x_low = min([*intensities, peak / local / 4], default=0.1) / 2
    x_high = max([*intensities, peak / device * 4]) * 2
    y_low = min([y for _, _, y, _ in points] + [peak / 100]) / 2
    place = _logarithmic(x_low, x_high, y_low, peak * 2)
    parts = list(_axes(x_low, x_high, y_low, peak * 2, place))
    for bandwidth, name in ((local, "SRAM"), (device, "device memory")):
        knee = peak / bandwidth
        low = max(x_low, y_low / bandwidth)
        (x1, y1), (x2, y2), (x3, _) = place(low, low * bandwidth), place(knee, peak), place(x_high, peak)
        parts.append(f'<polyline class="roof" points="{x1:.1f},{y1:.1f} {x2:.1f},{y2:.1f} {x3:.1f},{y2:.1f}"/>')
        middle_x, middle_y = place(math.sqrt(low * knee), math.sqrt(low * knee) * bandwidth)
        angle = -math.degrees(math.atan2(y1 - y2, x2 - x1))
        parts.append(
            f'<text class="axis" text-anchor="middle" transform="translate({middle_x - 5:.1f},{middle_y - 7:.1f}) '
            f'rotate({angle:.1f})">{name}: {bandwidth:g} bytes per cycle</text>'
        )
    x3, y3 = place(x_high, peak)
    parts.append(
        _text(x3 - 4, y3 - 7, f"peak: {peak:,.0f} operations per cycle on {element}-byte elements", "axis", "end")
    )
    parts += _dots(points, place, x_high)
    return svg(_HEIGHT, parts, "roofline: operations per cycle over operations per byte")


def _peak(profile: Profile) -> tuple[float, int]:
    """The peak for the widest elements that the kernel computes with, and their size."""
    sizes = {size for task in profile.tasks for size in task.elements}
    element = max(sizes, default=4)
    return profile.model.peak(element), element


Point = tuple[str, float, float, str]
"""Name, operations per byte, operations per cycle of the device, kind of dot."""


def _points(profile: Profile) -> list[Point]:
    """The kernel against device memory, and the lines that compute against all bytes they move."""
    total, tecs = profile.total, len(profile.tecs) or 1
    out: list[Point] = []
    lines: list[tuple[Location, Cost]] = [(p, c) for p, c in profile.lines.items() if c.total.arithmetic and c.active]
    for place, cost in lines[:_LINES_SHOWN]:
        moved = cost.total.bytes + cost.dma_bytes
        intensity = cost.total.arithmetic / moved if moved else math.inf
        out.append((spell_place(place), intensity, cost.total.arithmetic / cost.active * tecs, "dot"))
    if total.total.arithmetic and profile.cycles:
        intensity = total.total.arithmetic / total.external_bytes if total.external_bytes else math.inf
        out.append((profile.name, intensity, total.total.arithmetic / profile.timeline.cycles, "kernel"))
    return out


def _logarithmic(
    x_low: float, x_high: float, y_low: float, y_high: float
) -> Callable[[float, float], tuple[float, float]]:
    def place(x: float, y: float) -> tuple[float, float]:
        across = math.log(x / x_low) / math.log(x_high / x_low)
        up = math.log(y / y_low) / math.log(y_high / y_low)
        return _LEFT + across * _COLUMNS, _HEIGHT - _BOTTOM - up * (_HEIGHT - _BOTTOM - _TOP)

    return place


def _axes(
    x_low: float, x_high: float, y_low: float, y_high: float, place: Callable[[float, float], tuple[float, float]]
) -> Iterable[str]:
    left, bottom = place(x_low, y_low)
    right, top = place(x_high, y_high)
    for power in range(math.ceil(math.log10(x_low)), math.floor(math.log10(x_high)) + 1):
        x, _ = place(10.0**power, y_low)
        yield _line(x, top, x, bottom, "grid") + _text(x, bottom + 17, f"{10.0**power:g}", "axis", "middle")
    for power in range(math.ceil(math.log10(y_low)), math.floor(math.log10(y_high)) + 1):
        _, y = place(x_low, 10.0**power)
        yield _line(left, y, right, y, "grid") + _text(left - 8, y + 4, f"{10.0**power:g}", "axis", "end")
    yield _text((left + right) / 2, bottom + 38, "operations per byte", "label", "middle")
    yield f'<text class="label" text-anchor="middle" transform="translate(24,{(top + bottom) / 2:.0f}) rotate(-90)">operations per cycle</text>'


def _dots(
    points: Sequence[Point], place: Callable[[float, float], tuple[float, float]], x_high: float
) -> Iterable[str]:
    taken: list[tuple[float, float]] = []
    for name, intensity, speed, kind in points:
        x, y = place(min(intensity, x_high), speed)
        far = "no memory" if math.isinf(intensity) else f"{intensity:.3g} operations per byte"
        title = f"{name}: {far}, {speed:.3g} operations per cycle"
        shown = y + 4
        while any(abs(shown - other_y) < 13 and abs(x - other_x) < 110 for other_x, other_y in taken):
            shown += 13
        taken.append((x, shown))
        at_edge = x > WIDTH - _RIGHT - 90
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{7 if kind == "kernel" else 5}" class="{kind}"><title>{escape(title)}</title></circle>'
        yield _text(x + (-10 if at_edge else 10), shown, name, "inside", "end" if at_edge else "start")
