"""Search with a model of costs: many candidates are predicted, the best few are measured, the model learns from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import log2
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from compass_core.dataclass import dataclass
from compassc.tuning import cost
from compassc.tuning.cost.programs import features_of
from compassc.tuning.measure import Result
from compassc.tuning.search.evolutionary import Population
from compassc.tuning.space import Candidate, key_of
from compassc.tuning.task import Task

if TYPE_CHECKING:
    from compassc.tuning.cost.features import Vector

_DRAWS = 20
_SHORT, _MOST_TIMES = 32768, 4
"""Cycles of a program that is measured in no more time than an idea takes, and how many more ideas there are at most."""
Features = Callable[[Task, Sequence[Candidate]], "list[Vector | None]"]
"""Makes the features of candidates of a task; None of those without a program."""


@dataclass(frozen=True)
class _Idea:
    candidate: Candidate
    features: Vector


class RankedSearch:
    """Candidates by predicted cost. In each round children of the best, measured or predicted, join a pool; those of
    which the model expects most are asked for, and some at random, so that the model learns of what it does not know."""

    generation = 8

    def __init__(
        self,
        task: Task,
        seed: int,
        model: str | cost.CostModel = "auto",
        fresh: int = 6,
        pool: int = 256,
        random: float = 0.1,
    ) -> None:
        """`fresh`: new ideas for each candidate that is asked for. `pool`: how many are kept. `random`: the share of
        what is asked for that the model does not choose."""
        self._task, self._rng = task, Random(seed)
        self.model = cost.create(model, seed) if isinstance(model, str) else model
        self._fresh, self._size, self._random = fresh, pool, random
        self._seen: set[str] = set()
        self._asked: dict[str, _Idea] = {}
        self._alike: set[bytes] = set()
        self._pool: dict[str, _Idea] = {}
        self._known: list[tuple[Vector, float]] = []
        self._best = Population(task.space, self._rng)
        self.features: Features = lambda task, candidates: [features_of(task, c) for c in candidates]
        """Who makes features: this process, unless workers are named here."""
        self.predicted: dict[str, float] = {}
        """What the model expected of candidates when they were asked for, by key."""

    def ask(self, count: int) -> list[Candidate]:
        found: list[_Idea] = []
        for idea in self._ranked(count):
            if len(found) < count and self._is_new(idea):
                found.append(idea)
                self._take(idea)
        for idea in found:
            self.predicted[key_of(idea.candidate)] = float(self.model.predict(idea.features[None])[0])
        return [idea.candidate for idea in found]

    def _is_new(self, idea: _Idea) -> bool:
        """Whether no program with the same features was asked for: it would be the same program, nearly always."""
        return idea.features.tobytes() not in self._alike

    def _take(self, idea: _Idea) -> None:
        key = key_of(idea.candidate)
        self._pool.pop(key, None)
        self._asked[key] = idea
        self._alike.add(idea.features.tobytes())

    def _ranked(self, count: int) -> list[_Idea]:
        """The ideas of the pool, those first that are to be measured."""
        self._grow(count * self._fresh)
        ideas = [i for i in self._pool.values() if self._is_new(i)]
        if not ideas:
            return []
        order = cost.rank(self.model, np.stack([i.features for i in ideas]))
        ranked = [ideas[i] for i in order]
        for i in range(len(ranked)):
            if i < count and self._rng.random() < self._random:
                other = self._rng.randrange(i, len(ranked))
                ranked[i], ranked[other] = ranked[other], ranked[i]
        for idea in ranked[self._size :]:
            self._pool.pop(key_of(idea.candidate))
        return ranked

    def _grow(self, count: int) -> None:
        """New ideas: children of what was measured and of what is expected to be good, in some generations. The longer
        programs take to be measured, the more of them are thought of."""
        times = self._patience()
        count, generations = count * times, 2 * times
        for generation in range(generations):
            parents = Population(self._task.space, self._rng, random=0.2 if self._known else 0.5)
            for c, _, candidate in self._best.members:
                parents.add(c, candidate)
            for idea, c in self._expected() if generation or self._known else ():
                parents.add(c, idea.candidate)
            self._draw(parents, -(-count // generations))

    def _patience(self) -> int:
        """How many times the usual number of ideas to have: 1 for short programs, up to `_MOST_TIMES`."""
        least = min((c for _, c in self._known), default=0.0)
        return max(1, min(_MOST_TIMES, int(log2(max(least, 1.0) / _SHORT)) + 1)) if least > _SHORT else 1

    def _draw(self, parents: Population, count: int) -> None:
        """Children that join the pool; their features are made together, so that several processes can."""
        draws = count + _DRAWS
        while count and draws:
            new = [parents.child() for _ in range(min(count, draws))]
            draws -= len(new)
            for idea in self._ideas({key_of(c): c for c in new if key_of(c) not in self._seen}):
                self._pool[key_of(idea.candidate)] = idea
                count -= 1

    def _expected(self) -> list[tuple[_Idea, float]]:
        ideas = list(self._pool.values())
        if not ideas:
            return []
        costs = self.model.predict(np.stack([i.features for i in ideas]))
        return list(zip(ideas, map(float, costs)))

    def _ideas(self, candidates: Mapping[str, Candidate]) -> list[_Idea]:
        """Those of candidates, by key, that have programs."""
        self._seen.update(candidates)
        listed = list(candidates.values())
        found = self.features(self._task, listed) if listed else []
        return [_Idea(c, x) for c, x in zip(listed, found, strict=True) if x is not None]

    def tell(self, results: Sequence[tuple[Candidate, Result]]) -> None:
        others = {key_of(c): c for c, _ in results if key_of(c) not in self._asked}
        self._asked |= {key_of(i.candidate): i for i in self._ideas(others)}
        for candidate, result in results:
            idea = self._asked.get(key_of(candidate))
            if idea is None or result.cost is None:
                continue
            self._alike.add(idea.features.tobytes())
            self._known.append((idea.features, result.cost))
            self._best.add(result.cost, candidate)
        if self._known:
            self.model.fit(np.stack([f for f, _ in self._known]), np.array([c for _, c in self._known]))

    def importance(self) -> dict[str, float]:
        """How much each feature matters to the model."""
        return self.model.importance()
