"""Strategies that learn: they need fewer trials than chance, and say what they expected."""

from __future__ import annotations

from statistics import median
from typing import Any

import numpy as np
import pytest

from compassc.tuning.cost import names
from compassc.tuning.measure import Result
from compassc.tuning.search import strategy_named
from compassc.tuning.search.ranked import RankedSearch
from compassc.tuning.space import Candidate, ParameterSpace, key_of

from .invented import Valley, cost

WIDE: dict[str, list[Any]] = {f"size{i}": list(range(10)) for i in range(4)}


class Plain(Valley):
    """A wide valley with one best candidate among ten thousand."""

    def features(self, candidate: Candidate) -> Any:
        found = np.zeros(len(names()))
        found[:8] = [*candidate.values(), *(v * v for v in candidate.values())]
        return found


def deep(candidate: Candidate) -> float:
    return 100.0 * 2.0 ** sum(0.1 * (v - 3 - i) ** 2 for i, v in enumerate(candidate.values()))


def best_of(name: str, seed: int, trials: int = 96) -> float:
    """The least cost that a strategy finds."""
    strategy, found = strategy_named(name, Plain(space=ParameterSpace(WIDE)), seed), [float("inf")]
    while len(found) < trials:
        asked = strategy.ask(8)
        found += map(deep, asked)
        strategy.tell([(c, Result(deep(c))) for c in asked])
    return min(found)


@pytest.mark.parametrize("name", ["evolutionary", "model"])
def test_better_ones_are_found_than_by_chance(name: str) -> None:
    own, chance = (median(best_of(n, seed) for seed in range(5)) for n in (name, "random"))
    assert own < 0.8 * chance


def test_what_was_expected_is_kept_and_comes_near() -> None:
    strategy = RankedSearch(Valley(), 0, random=0.0)
    known = {}
    for _ in range(5):
        asked = strategy.ask(6)
        known |= {key_of(c): cost(c).cost for c in asked}
        strategy.tell([(c, cost(c)) for c in asked])
    assert known.keys() == strategy.predicted.keys()
    last = list(known)[-6:]
    assert all(abs(strategy.predicted[k] / known[k] - 1) < 0.2 for k in last)
    assert sum(strategy.importance().values()) == pytest.approx(1)


def test_programs_that_are_alike_are_measured_once() -> None:
    class Twice(Valley):
        def features(self, candidate):
            return super().features({**candidate, "wide": False})

    strategy = RankedSearch(Twice(), 0)
    seen = []
    while asked := strategy.ask(8):
        seen += asked
        strategy.tell([(c, cost(c)) for c in asked])
    assert len(seen) == len({(c["tile"], c["unroll"]) for c in seen})
