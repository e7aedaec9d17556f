"""A search as one HTML page that needs nothing else: convergence, predicted against measured costs, knobs, the best
program."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from html import escape
from pathlib import Path

from compass_core.html_page import document, section, table
from compass_runtime.profile import page as profiles
from compass_runtime.profile.charts import nice_steps
from compassc.tuning.report import Report

_WIDE, _HIGH = 640, 300
_LEFT, _BOTTOM, _TOP, _RIGHT = 74, 38, 12, 14
_BARS = 14


def page(report: Report) -> str:
    """The text of the page."""
    css = profiles.style() + Path(__file__).with_name("report.css").read_text(encoding="utf-8")
    title = f"{report.name} on {report.target}"
    parts = (_head, _charts, _importance, _leaders, _failures, _best)
    return document(title, css, (part(report) for part in parts), {"search": report.as_data()})


def amount(value: float | None, unit: str) -> str:
    """A cost in words."""
    if value is None:
        return "none"
    if unit == "seconds":
        return f"{value * 1e3:,.3f} ms" if value >= 1e-3 else f"{value * 1e6:,.1f} µs"
    return f"{value:,.0f}"


def _head(r: Report) -> str:
    best = r.best[-1] if r.best else None
    failed = sum(c is None for c in r.costs)
    tiles = [(f"{r.unit}, the best", amount(best, r.unit)), (f"{r.unit}, the default", amount(r.default, r.unit))]
    if best and r.default:
        tiles.append(("times as fast as the default", f"{r.default / best:.2f}"))
    tiles += [("trials", f"{len(r.costs):,}"), ("failed", f"{failed:,}"), ("taken", f"{r.seconds:,.0f} s")]
    shown = "".join(f"<div><b>{escape(value)}</b><span>{escape(what)}</span></div>" for what, value in tiles)
    ends = {
        "trials": "It ended after its trials.",
        "seconds": "It ended after its time.",
        "patience": "It ended because nothing better came.",
        "exhausted": "Every candidate was tried.",
    }
    note = f"On {r.target}. {ends.get(r.ended, '')}"
    return f'<h1>{escape(r.name)}</h1><p>{escape(note)}</p><div class="tiles few">{shown}</div>\n'


# -- charts


class _Axes:
    """A plot area: costs on a logarithmic scale upwards, something along the bottom."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float], log_x: bool) -> None:
        self.x, self.y, self.log_x = x, y, log_x

    def at_x(self, value: float) -> float:
        low, high = self.x
        share = math.log(value / low) / math.log(high / low) if self.log_x else (value - low) / (high - low)
        return _LEFT + share * (_WIDE - _LEFT - _RIGHT)

    def at_y(self, value: float) -> float:
        low, high = self.y
        return _HIGH - _BOTTOM - math.log(value / low) / math.log(high / low) * (_HIGH - _BOTTOM - _TOP)

    def frame(self, along: str, up: str, marks: Sequence[float], unit: str) -> str:
        parts = []
        for value in _ticks(*self.y):
            y = self.at_y(value)
            parts.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDE - _RIGHT}" y2="{y:.1f}" class="grid"/>')
            parts.append(
                f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" class="axis" text-anchor="end">{_short(value, unit)}</text>'
            )
        for value in marks:
            x = self.at_x(value)
            words = _short(value, unit) if self.log_x else f"{value:,.0f}"
            parts.append(f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{_HIGH - _BOTTOM}" class="grid"/>')
            parts.append(
                f'<text x="{x:.1f}" y="{_HIGH - _BOTTOM + 16}" class="axis" text-anchor="middle">{words}</text>'
            )
        middle = (_LEFT + _WIDE - _RIGHT) / 2
        parts.append(f'<text x="{middle}" y="{_HIGH - 4}" class="label" text-anchor="middle">{escape(along)}</text>')
        parts.append(
            f'<text x="12" y="{(_HIGH - _BOTTOM) / 2}" class="label" text-anchor="middle" '
            f'transform="rotate(-90 12 {(_HIGH - _BOTTOM) / 2})">{escape(up)}</text>'
        )
        return "".join(parts)


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers of a logarithmic scale."""
    found: list[float] = []
    for steps in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
        first = math.floor(math.log10(low))
        found = [s * 10.0**p for p in range(first, first + 24) for s in steps if low <= s * 10.0**p <= high]
        if len(found) >= 3:
            break
    return found


def _short(value: float, unit: str) -> str:
    if unit == "seconds":
        return f"{value * 1e3:g} ms" if value >= 1e-3 else f"{value * 1e6:g} µs"
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g} {letter}"
    return f"{value:g}"


def _around(values: Sequence[float]) -> tuple[float, float]:
    """The ends of a scale for these values."""
    low, high = min(values), max(values)
    room = max((high / low) ** 0.06, 1.05)
    return low / room, high * room


def _svg(words: str, *parts: str) -> str:
    return f'<svg class="chart" viewBox="0 0 {_WIDE} {_HIGH}" role="img" aria-label="{escape(words)}">{"".join(parts)}</svg>'


def _charts(r: Report) -> str:
    good = [c for c in r.costs if c]
    if not good:
        return section("Convergence", "No trial gave a right result.")
    scatter = _scatter(r) if r.expected else ""
    return f'<div class="pair">{_convergence(r, good)}{scatter}</div>'


def _convergence(r: Report, good: Sequence[float]) -> str:
    axes = _Axes((0.0, max(len(r.costs), 2)), _around([*good, *([r.default] if r.default else [])]), False)
    dots = "".join(
        f'<circle cx="{axes.at_x(i + 1):.1f}" cy="{axes.at_y(c):.1f}" r="2.5" class="trial"><title>trial {i + 1}: '
        f"{amount(c, r.unit)}</title></circle>"
        for i, c in enumerate(r.costs)
        if c
    )
    crosses = "".join(
        f'<path d="M{axes.at_x(i + 1) - 3:.1f} {_HIGH - _BOTTOM - 6}l6 6m0 -6l-6 6" class="failed"/>'
        for i, c in enumerate(r.costs)
        if c is None
    )
    path, last = "", None
    for i, b in enumerate(r.best):
        if b and b != last:
            step = (
                f"M{axes.at_x(i + 1):.1f} {axes.at_y(b):.1f}"
                if last is None
                else f"H{axes.at_x(i + 1):.1f}V{axes.at_y(b):.1f}"
            )
            path, last = path + step, b
    path += f"H{axes.at_x(len(r.costs)):.1f}"
    line = f'<path d="{path}" class="roof"/>'
    own = ""
    if r.default:
        y = axes.at_y(r.default)
        own = f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDE - _RIGHT}" y2="{y:.1f}" class="default"/>'
    frame = axes.frame("trials", r.unit, nice_steps(len(r.costs)), r.unit)
    legend = (
        '<div class="legend"><span><i class="trial"></i>a trial</span><span><i class="best"></i>the best so far</span>'
        + ('<span><i class="default"></i>the default</span>' if own else "")
        + ('<span><i class="failed">×</i>failed</span>' if crosses else "")
        + "</div>"
    )
    note = "What each trial cost, and the best until then."
    return section("Convergence", note, legend, _svg("costs of the trials", frame, own, dots, crosses, line))


def _scatter(r: Report) -> str:
    both = _around([v for pair in r.expected for v in pair])
    axes = _Axes(both, both, True)
    dots = "".join(
        f'<circle cx="{axes.at_x(p):.1f}" cy="{axes.at_y(m):.1f}" r="3" class="trial"><title>predicted '
        f"{amount(p, r.unit)}, measured {amount(m, r.unit)}</title></circle>"
        for p, m in r.expected
    )
    a, b = both
    line = f'<line x1="{axes.at_x(a):.1f}" y1="{axes.at_y(a):.1f}" x2="{axes.at_x(b):.1f}" y2="{axes.at_y(b):.1f}" class="even"/>'
    off = sorted(abs(math.log2(p / m)) for p, m in r.expected)[len(r.expected) // 2]
    note = f"What the model expected when a trial was chosen; half of them are within {100 * (2**off - 1):.0f} %."
    marks = _ticks(*both)
    frame = axes.frame(f"predicted {r.unit}", f"measured {r.unit}", marks[:: -(-len(marks) // 7)], r.unit)
    return section("Predicted and measured", note, _svg("predicted and measured costs", frame, line, dots))


# -- tables


def _bars(rows: Sequence[tuple[str, float]]) -> str:
    return table(
        ("knob", "share", " "),
        [
            (
                f"<code>{escape(n)}</code>",
                f"{100 * v:.0f} %",
                f'<span class="bar"><i style="width:{100 * v:.1f}%"></i></span>',
            )
            for n, v in rows[:_BARS]
        ],
        ("knob", " "),
    )


def _importance(r: Report) -> str:
    shown = [k for k in r.knobs if k[1] > 0.005]
    parts = []
    if shown:
        note = (
            "The share of the differences in cost (of its logarithm) that goes with the values of a knob. Knobs that were "
            "changed together share theirs."
        )
        parts.append(section("Importance of knobs", note, _bars(shown)))
    if r.features:
        note = "What the model's predictions differ by, beside the bound."
        parts.append(section("Importance of features", note, _bars(r.features).replace(">knob<", ">feature<")))
    return f'<div class="pair">{"".join(parts)}</div>' if parts else ""


def _leaders(r: Report) -> str:
    if not r.leaders:
        return ""
    varying = [k for k in r.leaders[0][2] if len({json.dumps(d.get(k)) for _, _, d in r.leaders}) > 1]
    same = {k: v for k, v in r.leaders[0][2].items() if k not in varying}
    names = [f"trial {n}" for n, _, _ in r.leaders]
    rows = [(r.unit, *(amount(c, r.unit) for _, c, _ in r.leaders))]
    rows += [(f"<code>{escape(k)}</code>", *(_value(d.get(k)) for _, _, d in r.leaders)) for k in varying]
    words = ", ".join(f"{k} = {json.dumps(v)}" for k, v in same.items())
    kept = f"<details><summary>what they have in common</summary><p>{escape(words)}</p></details>" if same else ""
    return section("The best trials", "What they differ in.", table(("", *names), rows, ("",)), kept)


def _value(value: object) -> str:
    return "" if value is None else escape(json.dumps(value))


def _failures(r: Report) -> str:
    if not r.failures:
        return ""
    rows = [
        (escape(kind), f"{count:,}", f'<span class="words">{escape(words)}</span>') for kind, words, count in r.failures
    ]
    return section(
        "Failed trials", "By kind and reason.", table(("kind", "trials", "reason"), rows, ("kind", "reason"))
    )


def _best(r: Report) -> str:
    if not r.source:
        return ""
    parts = []
    if r.steps:
        parts.append(f"<h3>Its schedule</h3><pre>{escape(chr(10).join(r.steps))}</pre><h3>The program</h3>")
    parts.append(f"<pre>{escape(r.source)}</pre>")
    return section("The best program", "As it is built.", *parts)
