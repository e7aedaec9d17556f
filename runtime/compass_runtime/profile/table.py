"""The profile as text: totals, a table of the TECs, one of the lines, one of the sections."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from compass_runtime.profile.regions import Location
from compass_runtime.profile.result import WAITS, Cost, LayerRun, Profile
from compass_runtime.report import table

_LINES_SHOWN = 40
_WIDTH = 120
"""Columns of text where there is no terminal."""
_LEAST_OPERATIONS = 24
_LONGEST_LABEL = 48
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
    """The total and its parts."""
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


def spell_place(place: Location) -> str:
    """The place without the folders of its file."""
    return f"{Path(place[0]).name}:{place[1]}" if place[0] else "-"


def classes(cost: Cost, room: int | None = None) -> str:
    """The classes of operations, the most frequent first; of those that do not fit in `room` only how many they are."""
    ordered = sorted(cost.classes.items(), key=lambda item: (-item[1].count, item[0]))
    words = [f"{kind} {tally.count}" for kind, tally in ordered]
    shown = len(words)
    while room is not None and shown > 1 and len(_listed(words, shown)) > room:
        shown -= 1
    return _listed(words, shown)


def _listed(words: Sequence[str], shown: int) -> str:
    rest = len(words) - shown
    return ", ".join([*words[:shown], *([f"{rest} more"] if rest else [])])


def _cells(cost: Cost) -> dict[str, str]:
    vectors = sum(tally.count for tally in cost.classes.values() if tally.lanes)
    cycles = {"cycles": cost.cycles, "work": cost.work, **{name: cost.waits[name] for name in WAITS}}
    counts = (str(vectors), percent(cost.lane_use), str(cost.total.bytes), str(cost.dma_bytes))
    return {name: str(round(value)) for name, value in cycles.items()} | dict(zip(_COUNTS, counts, strict=True))


def _costs(heads: Sequence[str], rows: Sequence[tuple[Sequence[str], Cost]], texts: int) -> str:
    """A table of costs as wide as the terminal, without the kinds of waits that do not occur. Each row begins with the
    cells under `heads`, of which the first `texts` are no numbers."""
    names = [name for name in (*_COSTS, *_COUNTS) if name not in WAITS or any(cost.waits[name] for _, cost in rows)]
    lines = [[*first, *(_cells(cost)[name] for name in names)] for first, cost in rows]
    columns = (*heads, *names)
    used = max(map(len, table(columns, lines, columns).splitlines())) + 2
    room = max(shutil.get_terminal_size((_WIDTH, 0)).columns - used, _LEAST_OPERATIONS)
    full = [[*line, classes(cost, room)] for line, (_, cost) in zip(lines, rows, strict=True)]
    return table((*columns, "operations"), full, columns[texts:])


def _tecs(profile: Profile) -> str:
    return _costs(("TEC",), [([str(number)], cost) for number, cost in profile.tecs.items()], 0)


def _lines(profile: Profile, most: int) -> str:
    whole = profile.total.cycles or 1.0
    rows = [
        ([spell_place(place), percent(cost.cycles / whole)], cost) for place, cost in list(profile.lines.items())[:most]
    ]
    rest = len(profile.lines) - most
    return _costs(("line", "share"), rows, 1) + (f"\n... and {rest} more lines" if rest > 0 else "")


def _launches(profile: Profile) -> str:
    """One row per launch, and where the layers are known one per type of them."""
    names = ("layers",) if any(run.layers for run in profile.layers) else ()
    columns = ("launch", *names, "kernel", "core", "begins", "cycles", "share", "dma bytes", "device memory bytes")
    rows = [
        [str(run.launch.group), *([_short(run.layers)] if names else []), run.kernel, str(run.launch.core)]
        + [str(round(run.launch.start)), *_amounts(profile, [run])]
        for run in profile.layers
    ]
    tables = [table(columns, rows, columns[len(names) + 2 :])]
    if names:
        heads = ("type of layer", "launches", "cycles", "share", "dma bytes", "device memory bytes")
        by_type = [
            [_short(types), str(len(runs)), *_amounts(profile, runs)] for types, runs in profile.layer_types.items()
        ]
        tables.append(table(heads, by_type, heads[1:]))
    return "\n\n".join(tables)


def _amounts(profile: Profile, runs: Sequence[LayerRun]) -> list[str]:
    """Cycles, their share of the whole, and bytes of some launches."""
    cycles = sum(run.cycles for run in runs)
    moved = (sum(run.dma_bytes for run in runs), sum(run.external_bytes for run in runs))
    return [str(round(cycles)), percent(cycles / (profile.timeline.cycles or 1.0)), *map(str, moved)]


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_LABEL else text[: _LONGEST_LABEL - 3] + "..."


def _sections(profile: Profile) -> str:
    columns = ("section", "begins", "runs", "cycles", "of TECs")
    rows = [
        [str(s.id), spell_place(s.place), str(s.runs), str(round(sum(s.cycles.values()))), _by_tec(s.cycles)]
        for s in profile.sections
    ]
    return table(columns, rows, ("runs", "cycles"))


def _by_tec(cycles: Mapping[int, float]) -> str:
    return ", ".join(f"{tec}: {round(value)}" for tec, value in sorted(cycles.items()))
