"""A search as data: how it went, what the model expected, what the knobs matter, what the best program is.

`page` (`report_page`) draws what is here.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compassc.tuning.records import Record
from compassc.tuning.space import Candidate, key_of
from compassc.tuning.task import Infeasible, Task
from compassc.tuning.tune import Search


@dataclass(frozen=True)
class Report:
    """`costs`: of each trial in order, None where it failed. `best`: the least cost until then. `expected`: pairs of what a
    model expected of a trial and what it was. `knobs`: how much of the differences in cost goes with each knob, the most
    important first. `failures`: kind, words, how often. `source`: the text of the best program, `steps` of its schedule."""

    name: str
    target: str
    unit: str
    costs: tuple[float | None, ...]
    best: tuple[float | None, ...]
    default: float | None
    expected: tuple[tuple[float, float], ...]
    knobs: tuple[tuple[str, float], ...]
    features: tuple[tuple[str, float], ...]
    failures: tuple[tuple[str, str, int], ...]
    leaders: tuple[tuple[int, float, Mapping[str, object]], ...]
    """Trial, cost and decisions of the best few."""
    source: str
    steps: tuple[str, ...]
    seconds: float
    ended: str

    def as_data(self) -> dict[str, object]:
        """The fields as JSON values."""
        found: dict[str, object] = json.loads(json.dumps(self.__dict__))
        return found


def report_of(search: Search, features: Mapping[str, float] | None = None) -> Report:
    """What a search found. `features`: how much each feature matters to the model that the search used."""
    records = search.records
    leader = search.best
    metric = records[0].metric if records else "cycles"
    source, steps = _program(search.task, leader.candidate) if leader is not None else ("", ())
    return Report(
        name=search.task.name,
        target=search.task.workload.target,
        unit=metric,
        costs=tuple(r.cost for r in records),
        best=_so_far(records),
        default=search.default.cost if search.default is not None else None,
        expected=_expected(records, search.predicted),
        knobs=tuple(importance(records)),
        features=_most(features or {}),
        failures=_failures(records),
        leaders=_leaders(records),
        source=source,
        steps=steps,
        seconds=search.seconds,
        ended=search.ended,
    )


def knobs_of(candidate: Candidate) -> dict[str, object]:
    """The decisions of a candidate by name."""
    if not isinstance(candidate, Mapping):
        return {"candidate": candidate}
    own = candidate.get("decisions", candidate)
    return dict(own) if isinstance(own, Mapping) else {"candidate": candidate}


def importance(records: Sequence[Record]) -> list[tuple[str, float]]:
    """Knobs with the share of the variance of the costs' logarithms that goes with their values (omega squared: what
    chance alone would give to so many values is taken off), the largest first. 0 for those that had one value."""
    good = [(knobs_of(r.candidate), math.log2(r.cost)) for r in records if r.cost is not None and r.cost > 0]
    names = list(dict.fromkeys(n for knobs, _ in good for n in knobs))
    found = [(n, _share([(key_of(k.get(n)), y) for k, y in good])) for n in names]
    return sorted(found, key=lambda item: -item[1])


def _share(pairs: Sequence[tuple[str, float]]) -> float:
    groups: dict[str, list[float]] = {}
    for key, y in pairs:
        groups.setdefault(key, []).append(y)
    count, kinds = len(pairs), len(groups)
    if kinds < 2 or count <= kinds:
        return 0.0
    mean = sum(y for _, y in pairs) / count
    total = sum((y - mean) ** 2 for _, y in pairs)
    between = sum(len(g) * (sum(g) / len(g) - mean) ** 2 for g in groups.values())
    within = (total - between) / (count - kinds)
    return max((between - (kinds - 1) * within) / (total + within), 0.0) if total > 0 else 0.0


def _so_far(records: Sequence[Record]) -> tuple[float | None, ...]:
    found: list[float | None] = []
    best: float | None = None
    for r in records:
        if r.cost is not None and (best is None or r.cost < best):
            best = r.cost
        found.append(best)
    return tuple(found)


def _expected(records: Sequence[Record], predicted: Mapping[str, float]) -> tuple[tuple[float, float], ...]:
    keyed = [(key_of(r.candidate), r.cost) for r in records]
    return tuple((predicted[k], cost) for k, cost in keyed if k in predicted and cost is not None)


def _most(features: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    return tuple(sorted(((n, float(v)) for n, v in features.items() if v > 0), key=lambda item: -item[1])[:12])


def _failures(records: Sequence[Record]) -> tuple[tuple[str, str, int], ...]:
    found = Counter((r.error, r.message) for r in records if r.error)
    return tuple((kind, words, count) for (kind, words), count in found.most_common(8))


def _leaders(records: Sequence[Record]) -> tuple[tuple[int, float, Mapping[str, object]], ...]:
    numbered = [(i + 1, r.cost, knobs_of(r.candidate)) for i, r in enumerate(records) if r.cost is not None]
    return tuple(sorted(numbered, key=lambda item: item[:2][::-1])[:5])


def _program(task: Task, candidate: Candidate) -> tuple[str, tuple[str, ...]]:
    """The text of a program, and the steps of its schedule where it has one."""
    try:
        kernel = task.program(candidate).kernel
    except (Infeasible, CompassError) as error:
        return f"it could not be made again: {error}", ()
    made = getattr(task, "made", None)
    steps = tuple(str(made(candidate)[0].trace).splitlines()) if made is not None else ()
    text = kernel.script() if hasattr(kernel, "script") else _text(kernel)
    return text, steps


def _text(kernel: Any) -> str:
    """The text of a kernel by hand."""
    import inspect

    function = getattr(kernel, "py_func", kernel)
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return str(kernel)
