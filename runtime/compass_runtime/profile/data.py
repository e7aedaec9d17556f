"""The profile as plain data, for `compass-run --json` and as part of the page."""

from __future__ import annotations

from compass_runtime.profile.result import WAITS, Cost, Profile


def as_data(profile: Profile) -> dict[str, object]:
    """Dictionaries, lists, numbers and texts. `Total Cycles` is spelled as the vendor's profiler spells it."""
    return {
        "Total Cycles": profile.cycles,
        "kernel": profile.name,
        "target": profile.model.target.name,
        "clock_mhz": profile.model.clock_mhz,
        "estimated_seconds": profile.seconds,
        "events_lost": profile.lost,
        "total": _cost(profile.total),
        "tecs": [{"tec": number, **_cost(cost)} for number, cost in profile.tecs.items()],
        "lines": [{"file": f, "line": n, **_cost(cost)} for (f, n), cost in profile.lines.items()],
        "launches": [
            {"kernel": run.kernel, "layers": run.layers, "types": run.types, "core": run.launch.core}
            | {"start": round(run.launch.start, 1), "end": round(run.launch.end, 1)}
            | {"dma_bytes": run.dma_bytes, "device_memory_bytes": run.external_bytes}
            for run in profile.layers
        ],
        "sections": [
            {"id": s.id, "file": s.place[0], "line": s.place[1], "runs": s.runs}
            | {"cycles": {str(tec): round(cycles, 1) for tec, cycles in s.cycles.items()}}
            for s in profile.sections
        ],
    }


def _cost(cost: Cost) -> dict[str, object]:
    return {
        "cycles": round(cost.cycles, 1),
        "work": round(cost.work, 1),
        **{name: round(cost.waits[name], 1) for name in WAITS},
        "operations": {kind: tally.count for kind, tally in sorted(cost.classes.items())},
        "arithmetic": cost.total.arithmetic,
        "lanes": cost.total.lanes,
        "active_lanes": cost.total.active,
        "load_store_bytes": cost.total.bytes,
        "dma_bytes": cost.dma_bytes,
        "device_memory_bytes": cost.external_bytes,
    }
