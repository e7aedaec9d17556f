"""A task whose costs are invented, so that searches can be tried without measuring anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from compassc.tuning.cost import names
from compassc.tuning.measure import MeasureOptions, Result
from compassc.tuning.space import Candidate, ParameterSpace, Space, key_of
from compassc.tuning.task import Program, Task, Tolerance, Workload

SIDES: dict[str, list[Any]] = {"tile": [1, 2, 4, 8, 16, 32, 64, 128], "unroll": [1, 2, 3, 4], "wide": [False, True]}


def cost(candidate: Candidate) -> Result:
    """A valley with one best candidate, {tile 16, unroll 3, wide}; a tile of 128 is none."""
    if candidate["tile"] == 128:
        return Result(None, "infeasible", "128 is too much")
    steps = SIDES["tile"].index(candidate["tile"]) - 4, candidate["unroll"] - 3
    return Result(100.0 + steps[0] ** 2 + 3 * steps[1] ** 2 + 5 * (not candidate["wide"]))


@dataclass(frozen=True)
class Valley:
    """A task that has a default and a space, and no programs."""

    name: str = "valley"
    tolerance: Tolerance = field(default_factory=Tolerance)
    default: Candidate = field(default_factory=lambda: {"tile": 1, "unroll": 1, "wide": False})
    space: Space = field(default_factory=lambda: ParameterSpace(SIDES))
    workload: Workload = field(default_factory=lambda: Workload("valley", "valley", ((8,),), ("int8",), "X2_1204"))

    def program(self, candidate: Candidate) -> Program:
        raise AssertionError("nothing is built")

    def features(self, candidate: Candidate) -> Any:
        """The sides of the candidate, as if they were features of a program."""
        found = np.zeros(len(names()))
        found[:3] = SIDES["tile"].index(candidate["tile"]), candidate["unroll"], candidate["wide"]
        return None if candidate["tile"] == 128 else found

    def arguments(self) -> Sequence[Any]:
        return ()

    def expected(self) -> Mapping[int, Any]:
        return {}


@dataclass
class Invented:
    """Workers who know `cost`, `at_once` results in a group; `asked`: what they were asked for."""

    at_once: int = 7
    asked: list[str] = field(default_factory=list)

    def measure(
        self, task: Task, candidates: Sequence[Candidate], options: MeasureOptions
    ) -> Iterator[list[tuple[int, Result]]]:
        for first in range(0, len(candidates), self.at_once):
            group = list(enumerate(candidates[first : first + self.at_once], first))
            self.asked += [key_of(c) for _, c in group]
            yield [(i, cost(c)) for i, c in group]

    def features(self, task: Valley, candidates: Sequence[Candidate]) -> list[Any]:
        return [task.features(c) for c in candidates]
