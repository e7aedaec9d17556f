"""The timeline as a trace that Perfetto (ui.perfetto.dev) and chrome://tracing open: one track per TEC and DMA channel."""

from __future__ import annotations

from compass_runtime.profile.result import Profile
from compass_runtime.profile.table import spell_place
from compass_runtime.profile.timeline import Span

_PROCESS = 1
_TRACKS = 64
"""Track numbers of a TEC: itself, its sections, its DMA channels."""


def track(span: Span) -> tuple[int, str]:
    """The track of a span, by number and name; numbers put those of a TEC next to each other."""
    tec, first = f"TEC {span.tec}", span.tec * _TRACKS
    if span.kind == "section":
        return first + 1, f"{tec} sections"
    if span.kind != "transfer":
        return first, tec
    if span.channel is None:
        return first + 2, f"{tec} DMA"
    return first + 3 + span.channel, f"{tec} DMA event {span.channel}"


def as_trace(profile: Profile) -> dict[str, object]:
    """Chrome's trace format, times in microseconds of the device."""
    names: dict[int, str] = {}
    events: list[dict[str, object]] = []
    for span in sorted(profile.timeline.spans, key=lambda span: (span.start, span.tec)):
        number, label = track(span)
        names[number] = label
        scale = 1 / profile.model.clock_mhz
        about: dict[str, object] = {"cycles": round(span.cycles, 1), "line": spell_place(span.place)}
        if span.kind == "transfer":
            about["bytes"] = span.detail
        name = f"section {span.detail}" if span.kind == "section" else f"{span.kind} {spell_place(span.place)}"
        events.append(
            {
                "ph": "X",
                "pid": _PROCESS,
                "tid": number,
                "name": name,
                "cat": span.kind,
                "args": about,
                "ts": round(span.start * scale, 4),
                "dur": round(span.cycles * scale, 4),
            }
        )
    labels: list[dict[str, object]] = [
        {"ph": "M", "pid": _PROCESS, "name": "process_name", "args": {"name": f"{profile.name} (estimated)"}}
    ]
    for number, name in sorted(names.items()):
        where = {"ph": "M", "pid": _PROCESS, "tid": number}
        labels.append({**where, "name": "thread_name", "args": {"name": name}})
        labels.append({**where, "name": "thread_sort_index", "args": {"sort_index": number}})
    return {"displayTimeUnit": "ns", "traceEvents": [*labels, *events]}
