"""Strategies that learn nothing: random candidates, and all of them in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from random import Random

from compassc.tuning.measure import Result
from compassc.tuning.space import Candidate, key_of
from compassc.tuning.task import Task

_DRAWS = 200
"""So many known candidates one after the other mean that there are hardly any others."""
_LISTED = 4096
"""Spaces up to this size are shuffled as a whole, so that the last ones are found as soon as the first."""


class RandomSearch:
    """Candidates at random, each once."""

    generation = 64

    def __init__(self, task: Task, seed: int) -> None:
        self._space, self._rng = task.space, Random(seed)
        self._seen: set[str] = set()
        self._shuffled: list[Candidate] | None = None
        if self._space.size is not None and self._space.size <= _LISTED:
            self._shuffled = list(self._space.grid())
            self._rng.shuffle(self._shuffled)

    def ask(self, count: int) -> list[Candidate]:
        asked: list[Candidate] = []
        while len(asked) < count and (new := self._new()) is not None:
            self._seen.add(key_of(new[0]))
            asked.append(new[0])
        return asked

    def _new(self) -> tuple[Candidate] | None:
        if self._shuffled is not None:
            while self._shuffled:
                candidate = self._shuffled.pop()
                if key_of(candidate) not in self._seen:
                    return (candidate,)
            return None
        for _ in range(_DRAWS):
            candidate = self._space.sample(self._rng)
            if key_of(candidate) not in self._seen:
                return (candidate,)
        return None

    def tell(self, results: Sequence[tuple[Candidate, Result]]) -> None:
        self._seen.update(key_of(candidate) for candidate, _ in results)


class GridSearch:
    """All candidates of a space in order, each once."""

    generation = 64

    def __init__(self, task: Task, seed: int) -> None:
        """`seed` changes nothing. UsageError where the candidates are not counted."""
        self._rest: Iterator[Candidate] = iter(task.space.grid())
        self._seen: set[str] = set()

    def ask(self, count: int) -> list[Candidate]:
        asked = list(islice((c for c in self._rest if key_of(c) not in self._seen), count))
        self._seen.update(map(key_of, asked))
        return asked

    def tell(self, results: Sequence[tuple[Candidate, Result]]) -> None:
        self._seen.update(key_of(candidate) for candidate, _ in results)
