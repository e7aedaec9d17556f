"""The search loop: a strategy asks, workers measure, records keep, until the budget is spent.

Candidates are asked for in generations of a fixed size, however many workers there are, and what is on record already is
not measured again. So a seed gives the same search on any number of workers, and a search that was ended goes on where
it was when it is started again with the same records.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from itertools import islice, takewhile
from math import log2
from pathlib import Path
from random import Random

from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compassc.tuning import records
from compassc.tuning.history import History, known_records
from compassc.tuning.measure import MeasureOptions, Result
from compassc.tuning.records import Record
from compassc.tuning.search import Strategy, strategy_named
from compassc.tuning.space import Candidate, key_of
from compassc.tuning.task import Task, Workload
from compassc.tuning.workers import ClusterWorkers, Workers


@dataclass(frozen=True)
class TuneOptions:
    """When a search ends: after `trials`, after `seconds` (those under way are finished), or when `patience` trials one
    after the other have brought nothing better. `strategy` and `seed`: how it goes. `warm`: begin with what is best on record
    for these sizes and for others."""

    trials: int = 500
    seconds: float | None = None
    patience: int | None = None
    strategy: str = "random"
    seed: int = 0
    measure: MeasureOptions = field(default_factory=MeasureOptions)
    warm: bool = True


@dataclass
class Search:
    """A search as it stands: every record in the order of the trials, and how many were known already."""

    task: Task
    options: TuneOptions
    records: list[Record] = field(default_factory=list)
    known: int = 0
    seconds: float = 0.0
    ended: str = ""
    """Why it ended: trials, seconds, patience, or exhausted: there are no more candidates."""
    predicted: dict[str, float] = field(default_factory=dict)
    """By the key of the candidate, the cost that a strategy's model had foretold."""
    importance: Mapping[str, float] | None = None
    """What a strategy's model says of its features, where it has one."""

    @property
    def best(self) -> Record | None:
        """The record of least cost, the first one of several."""
        good = [r for r in self.records if r.cost is not None]
        return min(good, key=lambda r: r.cost or 0.0, default=None)

    @property
    def default(self) -> Record | None:
        """The record of the task's default candidate."""
        if self.task.default is None:
            return None
        key = key_of(self.task.default)
        return next((r for r in self.records if key_of(r.candidate) == key), None)

    @property
    def errors(self) -> Counter[str]:
        """How many trials failed in which way."""
        return Counter(r.error for r in self.records if r.error)

    def foretold(self, candidate: Candidate) -> float | None:
        """What a strategy's model had foretold of a candidate's cost."""
        return self.predicted.get(key_of(candidate))

    @property
    def stale(self) -> int:
        """Trials since the best one."""
        best = self.best
        return len(self.records) - 1 - self.records.index(best) if best is not None else len(self.records)


Listener = Callable[[Search], object]
"""Called after each group of results."""


def tune(
    task: Task,
    options: TuneOptions | None = None,
    store: Path | None = None,
    workers: Workers | None = None,
    listener: Listener = lambda search: None,
) -> Search:
    """Searches the space of a task. The default candidate is the first trial. `store`: the file that results are appended
    to as they come, and known ones are taken from; None keeps them here alone.

    CompassError when nothing can be measured here, or the file cannot be written.
    """
    given = options or TuneOptions()
    return _Loop(task, given, store, workers or ClusterWorkers(), listener).run()


class _Loop:
    def __init__(
        self, task: Task, options: TuneOptions, store: Path | None, workers: Workers, listener: Listener
    ) -> None:
        self._task, self._options, self._store = task, options, store
        self._workers, self._listener = workers, listener
        self._workload = task.workload
        self._search = Search(task, options)
        self._known, self._starts = self._on_record()
        self._start = time.monotonic()

    def _on_record(self) -> tuple[dict[str, Record], list[Candidate]]:
        """The records of this task by candidate, and the candidates that others let hope."""
        stored = records.read(self._store).records if self._store is not None and self._store.exists() else ()
        about = self._workload.key, self._workload.version, self._options.measure.metric
        known = {key_of(r.candidate): r for r in stored if r.identity[:3] == about}
        # what others have put there since is left out, so that a search goes on as it began
        before = takewhile(lambda r: r.identity[:3] != about, stored)
        return known, starts(self._task, self._options, before, self._store)

    def run(self) -> Search:
        strategy = strategy_named(self._options.strategy, self._task, self._options.seed)
        if hasattr(strategy, "features"):
            strategy.features = self._workers.features
        search = self._search
        first = [] if self._task.default is None else [self._task.default]
        if first := [*first, *self._starts][: self._options.trials]:
            strategy.tell(self._trials(first, strategy))
        while not (ended := self._spent()):
            candidates = strategy.ask(min(strategy.generation, self._options.trials - len(search.records)))
            if not candidates:
                ended = "exhausted"
                break
            strategy.tell(self._trials(candidates, strategy))
        if (importance := getattr(strategy, "importance", None)) is not None:
            search.importance = importance()
        search.ended = ended
        search.seconds = time.monotonic() - self._start
        return search

    def _spent(self) -> str:
        options, search = self._options, self._search
        if len(search.records) >= options.trials:
            return "trials"
        if options.seconds is not None and time.monotonic() - self._start >= options.seconds:
            return "seconds"
        return "patience" if options.patience is not None and search.stale >= options.patience else ""

    def _trials(self, candidates: Sequence[Candidate], strategy: Strategy) -> list[tuple[Candidate, Result]]:
        """The results of candidates in order, measured where they are not on record."""
        foretold = getattr(strategy, "predicted", {})
        self._search.predicted.update({key_of(c): foretold[key_of(c)] for c in candidates if key_of(c) in foretold})
        new = [c for c in candidates if key_of(c) not in self._known]
        found = {key_of(c): self._known[key_of(c)] for c in candidates if key_of(c) in self._known}
        self._search.known += len(found)
        first = len(self._search.records)
        for group in self._workers.measure(self._task, new, self._options.measure):
            fresh = [Record.of(self._workload, new[i], self._options.measure.metric, result) for i, result in group]
            if self._store is not None:
                records.append(self._store, fresh)
            found.update((key_of(r.candidate), r) for r in fresh)
            self._search.records[first:] = [found[key_of(c)] for c in candidates if key_of(c) in found]
            self._search.seconds = time.monotonic() - self._start
            self._listener(self._search)
        self._search.records[first:] = [found[key_of(c)] for c in candidates]
        self._listener(self._search)
        return [(c, found[key_of(c)].result) for c in candidates]


STARTS = 4
"""Candidates that a search takes from records of other searches."""


def starts(task: Task, options: TuneOptions, stored: Iterable[Record], store: Path | None) -> list[Candidate]:
    """The best candidates on record of the same workload, then those most like the best of other sizes, the nearest sizes
    first. `stored`: records of the search's own file `store`; others are those that builds take."""
    if not options.warm:
        return []
    known = History([*stored, *known_records(besides=store)])
    own = (r.candidate for r in known.ranked(task.workload, options.measure.metric) if r.candidate in task.space)
    others = [r for r in known.family(task.workload, options.measure.metric) if r.workload.key != task.workload.key]
    others.sort(key=lambda r: (_distance(r.workload, task.workload), key_of(r.candidate)))
    rng = Random(options.seed)
    found = [*islice(own, STARTS // 2), *(task.space.near(r.candidate, rng) for r in others[:STARTS])]
    default = key_of(task.default)
    distinct = {key_of(c): c for c in found if c is not None and key_of(c) != default}
    return list(distinct.values())[:STARTS]


def _distance(one: Workload, other: Workload) -> float:
    """How much the sizes of workloads differ: the sum of the logarithms of their factors."""
    sizes = [[*(n for shape in w.shapes for n in shape), *_numbers(w.values.values())] for w in (one, other)]
    return sum(abs(log2(max(a, 1) / max(b, 1))) for a, b in zip(*sizes))


def _numbers(values: Iterable[object]) -> list[float]:
    return [float(v) for v in values if isinstance(v, (int, float))]


def check(search: Search) -> Record:
    """The best record of a search. CompassError with the most frequent reason where every trial failed."""
    if search.best is not None:
        return search.best
    reasons = Counter((r.error, r.message) for r in search.records)
    notes = tuple(f"{count} times {kind}: {message}" for (kind, message), count in reasons.most_common(3))
    raise CompassError(
        f"none of {len(search.records)} trials of {search.task.name} gave a right result",
        code="tuning-failed",
        notes=notes,
    )
