"""Who measures: this process, several, or machines of a cluster.

Candidates become C text here, where the task is; what goes to workers is that text, the arguments and the right outputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from compassc.cluster import Cluster, Here, Lost
from compassc.tuning.artifact import Artifact, Feed, Refused
from compassc.tuning.measure import MeasureOptions, Result, measure_artifacts, timed
from compassc.tuning.space import Candidate
from compassc.tuning.task import Task

Numbered = list[tuple[int, Result]]
"""Results with the numbers of their candidates."""
Made = list[tuple[Artifact | Refused, float]]
"""C texts, and the seconds that each took."""


class Workers(Protocol):
    """Measures candidates, many at once where it can."""

    def measure(self, task: Task, candidates: Sequence[Candidate], options: MeasureOptions) -> Iterator[Numbered]:
        """The results in groups, as they come."""


class ClusterWorkers:
    """The workers of a cluster. `trusted`: they are processes of this machine, so the C text is this user's own."""

    def __init__(self, cluster: Cluster | None = None, trusted: bool = True) -> None:
        self._cluster: Cluster = cluster or Here()
        self._trusted = trusted

    def measure(self, task: Task, candidates: Sequence[Candidate], options: MeasureOptions) -> Iterator[Numbered]:
        if not candidates:
            return
        each = min(options.batch, -(-len(candidates) // self._cluster.jobs))
        firsts = range(0, len(candidates), each)
        made: list[Made] = []

        def groups() -> Iterator[Made]:
            for first in firsts:
                made.append([timed(task, c) for c in candidates[first : first + each]])
                yield made[-1]

        shared = Feed.of(task), replace(options, trusted=self._trusted)
        for number, results in self._cluster.run(_measured, shared, groups()):
            if isinstance(results, Lost):
                yield self._one_by_one(made[number], firsts[number], shared)
            else:
                yield list(enumerate(results, firsts[number]))

    def _one_by_one(self, made: Made, first: int, shared: tuple[Feed, MeasureOptions]) -> Numbered:
        """The results of a group that ends its workers: of each candidate on its own."""
        if len(made) == 1:
            return [(first, Result(None, "crash", "it ends every process that measures it"))]
        found: Numbered = []
        for number, results in self._cluster.run(_measured, shared, [[one] for one in made]):
            if isinstance(results, Lost):
                found.append((first + number, Result(None, "crash", f"it ends its worker: {results.message}"[:500])))
            else:
                found.append((first + number, results[0]))
        return found


def _measured(shared: tuple[Feed, MeasureOptions], made: Made) -> list[Result]:
    return measure_artifacts(made, *shared)
