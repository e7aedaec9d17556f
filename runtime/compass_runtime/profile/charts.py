"""The timeline of the page, as SVG: what TECs and DMA channels did when; and what charts share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

from compass_runtime.profile.result import Profile
from compass_runtime.profile.table import spell_place
from compass_runtime.profile.timeline import Span
from compass_runtime.profile.trace import track

_ROW, _GAP = 22, 5
STEPS = 4000
"""The smallest part of a timeline that is visible when it is zoomed."""
_TICKS = 16
_STRIPES = {
    "dma": "M-2,2 l4,-4 M0,8 l8,-8 M6,10 l4,-4",
    "event": "M0,2 h8 M0,6 h8",
    "barrier": "M2,0 v8 M6,0 v8 M0,4 h8",
}
"""What waits look like besides their colours, by which not everybody can tell them apart: lines in 8 x 8 units."""


def patterns() -> str:
    """The fillings of waits, which `style.css` names; once in a page."""
    tiles = "".join(
        f'<pattern id="waits-{kind}" width="8" height="8" patternUnits="userSpaceOnUse">'
        f'<rect width="8" height="8" class="plain {kind}"/><path d="{lines}" class="stripe"/></pattern>'
        for kind, lines in _STRIPES.items()
    )
    return f'<svg class="hidden" aria-hidden="true"><defs>{tiles}</defs></svg>'


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
    for number, cycles in enumerate(nice_steps(whole, _TICKS)):
        rank = "axis" if number % 4 == 0 else "axis often"
        x, anchor = _share(cycles, whole), "end" if cycles > 0.97 * whole else "middle" if cycles else "start"
        parts.append(f'<line x1="{x}" y1="4" x2="{x}" y2="{height - 22}" class="grid"/>')
        parts.append(f'<text x="{x}" y="{height - 6}" class="{rank}" text-anchor="{anchor}">{cycles:,.0f}</text>')
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
    label = (
        f'<svg x="{x}" y="{y}" width="{width}" height="{_ROW}"><text x="5" y="15">section {span.detail}</text></svg>'
        if named
        else ""
    )
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{_ROW}" class="{span.kind}">'
        f"<title>{escape(title)}</title></rect>{label}"
    )
