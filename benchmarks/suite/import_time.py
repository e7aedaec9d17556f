"""Importing the compiler, in a new process each time."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.core import Goal, Result, environment, median, side_by_side

GOALS = {
    "package": Goal("import compassc", "s", 0.15),
    "dsl": Goal("from compassc.dsl import BuildManager, script", "s"),
}
STATEMENTS = {"package": "import compassc", "dsl": "from compassc.dsl import BuildManager, script"}
ROUNDS = 9


def measure() -> dict[str, Result]:
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        variables = environment(Path(folder))
        samples = side_by_side([_sampler(s, variables) for s in STATEMENTS.values()], ROUNDS)
    return {key: Result(median(taken)) for key, taken in zip(STATEMENTS, samples, strict=True)}


def _sampler(statement: str, variables: dict[str, str]) -> Callable[[], float]:
    program = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"

    def sample() -> float:
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, env=variables, check=True, capture_output=True, text=True)
        return float(done.stdout)

    return sample
