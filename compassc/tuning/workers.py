"""Who measures: this process, or several processes and machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from compassc.tuning.artifact import Feed
from compassc.tuning.measure import MeasureOptions, Result, measure_artifacts, timed
from compassc.tuning.space import Candidate
from compassc.tuning.task import Task

Numbered = list[tuple[int, Result]]
"""Results with the numbers of their candidates."""


class Workers(Protocol):
    """Measures candidates, many at once where it can."""

    def measure(self, task: Task, candidates: Sequence[Candidate], options: MeasureOptions) -> Iterator[Numbered]:
        """The results in groups, as they come."""


class Inline:
    """This process."""

    def measure(self, task: Task, candidates: Sequence[Candidate], options: MeasureOptions) -> Iterator[Numbered]:
        feed = Feed.of(task) if candidates else None
        for first in range(0, len(candidates), options.batch):
            group = candidates[first : first + options.batch]
            assert feed is not None
            results = measure_artifacts([timed(task, c) for c in group], feed, options)
            yield list(enumerate(results, first))
