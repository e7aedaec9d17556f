"""Evolution: the best candidates so far are changed and crossed."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from compassc.tuning.measure import Result
from compassc.tuning.space import Candidate, Space, key_of
from compassc.tuning.task import Task

_DRAWS = 50
"""So many known candidates one after the other mean that there are hardly any others nearby."""


class Population:
    """Candidates with their costs, the best first, and how new ones come of them."""

    def __init__(self, space: Space, rng: Random, size: int = 16, random: float = 0.1, crossed: float = 0.3) -> None:
        """`size`: how many have children. `random`, `crossed`: shares of new candidates that are drawn, or have two
        parents."""
        self.space, self.rng, self.size = space, rng, size
        self._random, self._crossed = random, crossed
        self.members: list[tuple[float, str, Candidate]] = []

    def add(self, cost: float, candidate: Candidate) -> None:
        self.members.append((cost, key_of(candidate), candidate))
        self.members.sort(key=lambda m: m[:2])
        del self.members[self.size :]

    def child(self) -> Candidate:
        """A new candidate."""
        if not self.members or self.rng.random() < self._random:
            return self.space.sample(self.rng)
        if len(self.members) > 1 and self.rng.random() < self._crossed:
            return self.space.crossover(self._chosen(), self._chosen(), self.rng)
        return self.space.mutate(self._chosen(), self.rng)

    def _chosen(self) -> Candidate:
        """One of the best: the better, the more often."""
        return self.members[min(self.rng.randrange(len(self.members)) for _ in "ab")][2]


class EvolutionarySearch:
    """Random candidates first, then children of the best."""

    generation = 16

    def __init__(self, task: Task, seed: int, first: int = 16) -> None:
        """`first`: how many are drawn at random before there are children."""
        self._task, self._rng, self._first = task, Random(seed), first
        self._population = Population(task.space, self._rng)
        self._seen: set[str] = set()

    def ask(self, count: int) -> list[Candidate]:
        asked: list[Candidate] = []
        while len(asked) < count:
            found = self._new()
            if found is None:
                break
            self._seen.add(key_of(found))
            asked.append(found)
        return asked

    def _new(self) -> Candidate | None:
        for draw in range(_DRAWS):
            random = len(self._seen) < self._first or draw > _DRAWS // 2
            found = self._task.space.sample(self._rng) if random else self._population.child()
            if key_of(found) not in self._seen:
                return found
        return None

    def tell(self, results: Sequence[tuple[Candidate, Result]]) -> None:
        for candidate, result in results:
            self._seen.add(key_of(candidate))
            if result.cost is not None:
                self._population.add(result.cost, candidate)
