"""Who measures: this process, several, or machines of a cluster.

Other processes make the C text of candidates, too, of tasks that can go there (`portable`). Where a task cannot, candidates
become C text here, and that text, the arguments and the right outputs go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from compass_core.dataclass import dataclass
from compassc.cluster import Cluster, Here, Lost
from compassc.tuning.artifact import Artifact, Feed, Refused
from compassc.tuning.cost.programs import features_of
from compassc.tuning.measure import MeasureOptions, Result, measure_artifacts, timed
from compassc.tuning.portable import packed, unpacked
from compassc.tuning.space import Candidate
from compassc.tuning.task import Task

if TYPE_CHECKING:
    from compassc.tuning.cost.features import Vector

Numbered = list[tuple[int, Result]]
"""Results with the numbers of their candidates."""
Made = list[tuple[Artifact | Refused, float]]
"""C texts, and the seconds that each took."""


Part = Made | list[Candidate]
"""What one worker does at once: C texts, or candidates whose task it knows."""


class Workers(Protocol):
    """Measures candidates, many at once where it can."""

    def measure(self, task: Task, candidates: Sequence[Candidate], options: MeasureOptions) -> Iterator[Numbered]:
        """The results in groups, as they come."""

    def features(self, task: Task, candidates: Sequence[Candidate]) -> list[Vector | None]:
        """The features of candidates for a model of costs; None of those without a program."""


@dataclass(frozen=True)
class _Shared:
    """What all parts need. `task`: packed; None where parts are C texts."""

    feed: Feed
    options: MeasureOptions
    task: bytes | None


class ClusterWorkers:
    """The workers of a cluster. `trusted`: they are processes of this machine, so the C text is this user's own."""

    def __init__(self, cluster: Cluster | None = None, trusted: bool = True) -> None:
        self._cluster: Cluster = cluster or Here()
        self._trusted = trusted
        self._last: tuple[Task, MeasureOptions, _Shared] | None = None

    def measure(self, task: Task, candidates: Sequence[Candidate], options: MeasureOptions) -> Iterator[Numbered]:
        if not candidates:
            return
        each = min(options.batch, -(-len(candidates) // self._cluster.jobs))
        firsts = range(0, len(candidates), each)
        shared = self._shared(task, options)
        given: list[Part] = []

        def groups() -> Iterator[Part]:
            for first in firsts:
                part = candidates[first : first + each]
                given.append([timed(task, c) for c in part] if shared.task is None else list(part))
                yield given[-1]

        for number, results in self._cluster.run(_measured, shared, groups()):
            if isinstance(results, Lost):
                yield self._one_by_one(given[number], firsts[number], shared)
            else:
                yield list(enumerate(results, firsts[number]))

    def _shared(self, task: Task, options: MeasureOptions) -> _Shared:
        """The same object for the same search, so that workers get it once."""
        if self._last is None or self._last[0] is not task or self._last[1] != options:
            own = replace(options, trusted=self._trusted)
            self._last = task, options, _Shared(Feed.of(task), own, self._packed(task))
        return self._last[2]

    def _packed(self, task: Task) -> bytes | None:
        return None if isinstance(self._cluster, Here) else packed(task, self._trusted)

    def _one_by_one(self, part: Part, first: int, shared: _Shared) -> Numbered:
        """The results of a group that ends its workers: of each candidate on its own."""
        if len(part) == 1:
            return [(first, Result(None, "crash", "it ends every process that measures it"))]
        found: Numbered = []
        for number, results in self._cluster.run(_measured, shared, [[one] for one in part]):
            if isinstance(results, Lost):
                found.append((first + number, Result(None, "crash", f"it ends its worker: {results.message}"[:500])))
            else:
                found.append((first + number, results[0]))
        return found

    def features(self, task: Task, candidates: Sequence[Candidate]) -> list[Vector | None]:
        each = -(-len(candidates) // (2 * self._cluster.jobs)) or 1
        data = self._packed(task) if len(candidates) > 1 else None
        if data is None:
            return [features_of(task, c) for c in candidates]
        parts = [list(candidates[i : i + each]) for i in range(0, len(candidates), each)]
        done = sorted(self._cluster.run(_features, data, parts), key=lambda one: one[0])
        return [x for n, found in done for x in (_features(data, parts[n]) if isinstance(found, Lost) else found)]


def _measured(shared: _Shared, part: Part) -> list[Result]:
    if shared.task is not None:
        task = unpacked(shared.task)
        return measure_artifacts([timed(task, c) for c in part], shared.feed, shared.options)
    return measure_artifacts(part, shared.feed, shared.options)


def _features(data: bytes, candidates: list[Candidate]) -> list[Vector | None]:
    task = unpacked(data)
    return [features_of(task, c) for c in candidates]
