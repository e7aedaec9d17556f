"""`Executor`: a built kernel that runs on the simulator when it is called."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compass_core.errors import CompassError

if TYPE_CHECKING:
    from compass_runtime import Program

    from ..driver.build import Build


@dataclass(frozen=True)
class BenchmarkResult:
    """Seconds per execution: the mean of each group of executions in `results`, and their statistics."""

    results: tuple[float, ...]

    @property
    def mean(self) -> float:
        return sum(self.results) / len(self.results)

    @property
    def median(self) -> float:
        ordered, half = sorted(self.results), len(self.results) // 2
        return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2

    @property
    def min(self) -> float:
        return min(self.results)

    @property
    def max(self) -> float:
        return max(self.results)

    @property
    def std(self) -> float:
        return (sum((r - self.mean) ** 2 for r in self.results) / len(self.results)) ** 0.5


class Executor:
    """A built kernel. `ex(a, out)` takes one argument per kernel parameter, in order: a NumPy array for a pointer
    (`None` for a null pointer), a number for a scalar. Output arrays are changed in place, starting from their
    current content."""

    def __init__(self, build: Build, keep: Any = None) -> None:
        assert build.generated is not None and build.params is not None
        self.name = build.name
        self.c_code: str = build.generated.text
        self.params: list[dict[str, Any]] = build.params["params"]
        self.path: Path = build.result
        self._keep = keep
        self._program: Program | None = None

    @property
    def program(self) -> Program:
        """The loaded aipu.bin."""
        if self._program is None:
            from compass_runtime import Program

            self._program = Program.load(self.path)
        return self._program

    def __repr__(self) -> str:
        names = ", ".join(p["name"] for p in self.params)
        return f"<Executor {self.name}({names})>"

    def __call__(self, *args: Any) -> None:
        """Run the kernel once; see the class."""
        if len(args) != len(self.params):
            raise CompassError(
                f"{self.name} takes {len(self.params)} arguments, {len(args)} given",
                code="arguments",
                help="one per kernel parameter: " + ", ".join(p["name"] for p in self.params),
            )
        (self._program or self.program).call(args)

    run = __call__

    def benchmark(self, *args: Any, repeat: int = 2, number: int = 3) -> BenchmarkResult:
        """Time the kernel: one warm-up, then `repeat` groups of `number` calls. Seconds per call, host side included."""
        self(*args)
        groups = []
        for _ in range(repeat):
            start = time.perf_counter()
            for _ in range(number):
                self(*args)
            groups.append((time.perf_counter() - start) / number)
        return BenchmarkResult(tuple(groups))
