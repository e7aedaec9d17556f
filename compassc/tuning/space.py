"""Spaces of candidates. A candidate is a JSON value: a configuration of parameters, or the decisions of a schedule."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from random import Random
from typing import Any, Protocol

from compass_core.errors import UsageError

Candidate = Any
"""A JSON value."""


def key_of(candidate: Candidate) -> str:
    """What a candidate is known by: equal candidates have equal keys."""
    return json.dumps(candidate, sort_keys=True, separators=(",", ":"))


class Space(Protocol):
    """The candidates of a task. Given the same random numbers every method does the same."""

    @property
    def size(self) -> int | None:
        """How many candidates there are; None: not counted."""

    def sample(self, rng: Random) -> Candidate:
        """A random candidate."""

    def mutate(self, candidate: Candidate, rng: Random) -> Candidate:
        """A candidate near the given one."""

    def crossover(self, a: Candidate, b: Candidate, rng: Random) -> Candidate:
        """A candidate with something of each."""

    def near(self, candidate: Candidate, rng: Random) -> Candidate | None:
        """The candidate that is most like one of another space of this kind, as for other sizes; None where nothing is
        like it."""

    def grid(self) -> Iterator[Candidate]:
        """All candidates, each once; UsageError where they are not counted."""

    def __contains__(self, candidate: object) -> bool:
        """Whether it is one of the space's: records may come from another version of it."""


class ParameterSpace:
    """Named parameters with a finite list of values each, numbers, strings or truth values; a candidate has a value of each."""

    def __init__(self, parameters: Mapping[str, Sequence[object]]) -> None:
        """UsageError where a parameter has no values, one of them twice, or one that JSON does not keep."""
        self.parameters: dict[str, tuple[object, ...]] = {name: tuple(values) for name, values in parameters.items()}
        for name, values in self.parameters.items():
            wrong = [v for v in values if not is_plain(v)]
            if wrong or not values:
                what = f"the value {wrong[0]!r}" if wrong else "no values"
                raise UsageError(
                    f"parameter '{name}' of a search space has {what}",
                    code="tuning-space",
                    help="list numbers, strings or truth values: {'tile': [16, 32, 64]}",
                )
            if len({key_of(v) for v in values}) < len(values):
                raise UsageError(f"parameter '{name}' of a search space has a value twice", code="tuning-space")

    @property
    def size(self) -> int:
        return math.prod(map(len, self.parameters.values()))

    def sample(self, rng: Random) -> dict[str, object]:
        return {name: rng.choice(values) for name, values in self.parameters.items()}

    def mutate(self, candidate: Candidate, rng: Random) -> dict[str, object]:
        """Another value of one parameter: one beside it in the list more often than one far away."""
        open_ = [name for name, values in self.parameters.items() if len(values) > 1]
        changed = dict(candidate)
        if open_:
            name = rng.choice(open_)
            values = self.parameters[name]
            at = _index(values, candidate[name])
            near = [i for i in (at - 1, at + 1) if 0 <= i < len(values)]
            far = [i for i in range(len(values)) if i != at]
            changed[name] = values[rng.choice(near if rng.random() < 0.5 else far)]
        return changed

    def crossover(self, a: Candidate, b: Candidate, rng: Random) -> dict[str, object]:
        return {name: rng.choice((a, b))[name] for name in self.parameters}

    def near(self, candidate: Candidate, rng: Random) -> dict[str, object] | None:
        if not isinstance(candidate, dict) or candidate.keys() != self.parameters.keys():
            return None
        return {name: nearest(candidate[name], values) for name, values in self.parameters.items()}

    def grid(self) -> Iterator[dict[str, object]]:
        for values in product(*self.parameters.values()):
            yield dict(zip(self.parameters, values, strict=True))

    def __contains__(self, candidate: object) -> bool:
        return (
            isinstance(candidate, dict)
            and candidate.keys() == self.parameters.keys()
            and all(_index(values, candidate[name]) >= 0 for name, values in self.parameters.items())
        )


class ListSpace:
    """Candidates that were listed one by one; all are as near to each other."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        """UsageError without candidates."""
        if not candidates:
            raise UsageError("a search space has no candidates", code="tuning-space")
        self.candidates = tuple({key_of(c): c for c in candidates}.values())

    @property
    def size(self) -> int:
        return len(self.candidates)

    def sample(self, rng: Random) -> Candidate:
        return rng.choice(self.candidates)

    def mutate(self, candidate: Candidate, rng: Random) -> Candidate:
        others = [c for c in self.candidates if key_of(c) != key_of(candidate)]
        return rng.choice(others) if others else candidate

    def crossover(self, a: Candidate, b: Candidate, rng: Random) -> Candidate:
        return rng.choice((a, b))

    def near(self, candidate: Candidate, rng: Random) -> Candidate | None:
        return candidate if candidate in self else None

    def grid(self) -> Iterator[Candidate]:
        yield from self.candidates

    def __contains__(self, candidate: object) -> bool:
        return any(key_of(c) == key_of(candidate) for c in self.candidates)


def is_plain(value: object) -> bool:
    """Whether a value of a parameter is one that JSON gives back as it is."""
    return isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value))


def nearest(wanted: Any, values: Sequence[object]) -> object:
    """The value itself where it is one of them, of numbers the nearest one, else the first."""
    at = _index(values, wanted)
    numbers = [v for v in values if type(v) is type(wanted) and type(v) in (int, float)]
    if at >= 0 or not numbers:
        return values[max(at, 0)]
    return min(numbers, key=lambda v: abs(v - wanted))


def _index(values: Sequence[object], value: object) -> int:
    """The place of a value of the same type; -1 where there is none."""
    return next((i for i, v in enumerate(values) if v == value and type(v) is type(value)), -1)
