"""The profile as text: totals, a table of the TECs, one of the lines, one of the sections."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from compass_runtime.profile.regions import Place
from compass_runtime.profile.result import WAITS, Cost, Profile
from compass_runtime.report import table

_LINES_SHOWN = 40
_COSTS = ("cycles", "work", *WAITS)
_COUNTS = ("vector", "lanes", "ld/st bytes", "dma bytes")


def text(profile: Profile, lines: int = _LINES_SHOWN) -> str:
    """All tables; of the lines only the most expensive."""
    parts = [headline(profile), _tecs(profile), _lines(profile, lines)]
    if len(profile.launches) > 1:
        parts.append(_launches(profile))
    if profile.sections:
        parts.append(_sections(profile))
    if note := incomplete(profile):
        parts.append(note)
    return "\n\n".join(parts)


def headline(profile: Profile) -> str:
    """The total and what it is made of."""
    model, total = profile.model, profile.total
    return (
        f"{profile.name}: {profile.cycles} cycles, {profile.seconds * 1e6:.1f} us at {model.clock_mhz:g} MHz\n"
        f"{total.dma_bytes} bytes by DMA, {total.external_bytes} bytes to and from device memory; "
        f"lanes used: {percent(total.lane_use)}\n"
        f"cycles are estimates (cost model of {model.target.version}); counts and bytes are exact"
    )


def incomplete(profile: Profile) -> str:
    """A note when the engine had no room for all events."""
    if not profile.lost:
        return ""
    return f"note: {profile.lost} events found no room: waits, transfers and the total are too small, counts are right"


def percent(part: float | None) -> str:
    return "-" if part is None else f"{100 * part:.1f}%"


def spell_place(place: Place) -> str:
    """The place without the folders of its file."""
    return f"{Path(place[0]).name}:{place[1]}" if place[0] else "-"


def classes(cost: Cost) -> str:
    """The classes of operations, the most frequent first."""
    ordered = sorted(cost.classes.items(), key=lambda item: (-item[1].count, item[0]))
    return ", ".join(f"{kind} {tally.count}" for kind, tally in ordered)


def _cells(cost: Cost) -> list[str]:
    vectors = sum(tally.count for tally in cost.classes.values() if tally.lanes)
    cycles = [cost.cycles, cost.work, *(cost.waits[name] for name in WAITS)]
    counts = [str(vectors), percent(cost.lane_use), str(cost.total.bytes), str(cost.dma_bytes)]
    return [str(round(value)) for value in cycles] + counts


def _tecs(profile: Profile) -> str:
    columns = ("TEC", *_COSTS, *_COUNTS, "operations")
    rows = [[str(number), *_cells(cost), classes(cost)] for number, cost in profile.tecs.items()]
    return table(columns, rows, columns[:-1])


def _lines(profile: Profile, most: int) -> str:
    columns = ("line", "share", *_COSTS, *_COUNTS, "operations")
    whole = profile.total.cycles or 1.0
    rows = [
        [spell_place(place), percent(cost.cycles / whole), *_cells(cost), classes(cost)]
        for place, cost in list(profile.lines.items())[:most]
    ]
    rest = len(profile.lines) - most
    return table(columns, rows, columns[1:-1]) + (f"\n... and {rest} more lines" if rest > 0 else "")


def _launches(profile: Profile) -> str:
    columns = ("launch", "kernel", "core", "begins", "cycles", "share")
    rows = [
        [str(run.group), kernel, str(run.core), str(round(run.start)), str(round(run.end - run.start))]
        + [percent((run.end - run.start) / profile.timeline.cycles)]
        for kernel, run in profile.launches
    ]
    return table(columns, rows, columns[2:])


def _sections(profile: Profile) -> str:
    columns = ("section", "begins", "runs", "cycles", "of TECs")
    rows = [
        [str(s.id), spell_place(s.place), str(s.runs), str(round(sum(s.cycles.values()))), _by_tec(s.cycles)]
        for s in profile.sections
    ]
    return table(columns, rows, ("runs", "cycles"))


def _by_tec(cycles: Mapping[int, float]) -> str:
    return ", ".join(f"{tec}: {round(value)}" for tec, value in sorted(cycles.items()))
