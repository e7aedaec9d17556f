"""What a benchmark is, how times are taken, and where benchmarks are found."""

from __future__ import annotations

import importlib
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUITE = Path(__file__).resolve().parent / "suite"
_REST = 3e-4
"""Seconds before each sample: the simulator's worker looks for more work for a moment when it has done some."""
_BLOCK_REST, _WARMING, _IN_A_ROW = 0.02, 3, 5
"""Seconds before a block of runs of one thing, its runs that do not count, and those that do."""


@dataclass(frozen=True)
class Goal:
    """What a value is held to. `at_most` says which side is good; a goal without a limit only informs."""

    what: str
    unit: str
    limit: float | None = None
    at_most: bool = True

    def met(self, value: float | None) -> bool | None:
        """Whether a value is good enough; None when nothing is asked of it, or when it could not be measured."""
        if self.limit is None or value is None:
            return None
        return value <= self.limit if self.at_most else value >= self.limit


@dataclass(frozen=True)
class Result:
    """A measured value (a median), and a few words on what it was made of.

    The value is None where what it is compared to is not installed; the words say so.
    """

    value: float | None
    detail: str = ""


@dataclass(frozen=True)
class Benchmark:
    """One file of `suite/`: its `GOALS`, by key, and `measure()`, which gives a Result for each key."""

    name: str
    goals: dict[str, Goal]
    measure: Callable[[], dict[str, Result]]


def benchmark_names() -> list[str]:
    """The benchmarks that exist."""
    return sorted(p.stem for p in SUITE.glob("[!_]*.py"))


def load(name: str) -> Benchmark:
    """A benchmark by name."""
    module = importlib.import_module(f"benchmarks.suite.{name}")
    return Benchmark(name, module.GOALS, module.measure)


def environment(folder: Path) -> dict[str, str]:
    """The variables for new processes that are timed: Python keeps its bytecode, as it does for an installed package.

    `folder` takes the bytecode, so that a measurement leaves nothing in the sources.
    """
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}


def seconds(action: Callable[[], object]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def side_by_side(samplers: Sequence[Callable[[], float]], rounds: int) -> list[list[float]]:
    """Samples of several things, taken in turns, so that a change of the machine's load meets all of them."""

    def rested(sample: Callable[[], float]) -> float:
        time.sleep(_REST)
        return sample()

    for sample in samplers:
        sample()
    taken = [[rested(sample) for sample in samplers] for _ in range(rounds)]
    return [list(column) for column in zip(*taken, strict=True)]


def in_a_row(sample: Callable[[], float]) -> Callable[[], float]:
    """A sampler for `side_by_side` that gives the median of several runs in a row, after a rest and runs that do not count.

    For what waits on all processors for more work when it is done, as the threads of ONNX Runtime do for milliseconds: what is
    run in that time has half the machine, and caches that are not its own. So each is measured as if it ran alone.
    """

    def block() -> float:
        time.sleep(_BLOCK_REST)
        for _ in range(_WARMING):
            sample()
        return statistics.median(sample() for _ in range(_IN_A_ROW))

    return block


def median_ratio(top: Sequence[float], bottom: Sequence[float]) -> float:
    """The median of the ratios of samples that were taken next to each other."""
    return statistics.median(t / b for t, b in zip(top, bottom, strict=True))


median = statistics.median
