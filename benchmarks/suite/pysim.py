"""PySim: kernel operations per second of wall time."""

from __future__ import annotations

import numpy as np

from benchmarks.core import Goal, Result, median, seconds
from compassc.dsl import BuildManager

from ._examples import TARGET, kernel

GOALS = {"rate": Goal("PySim on dynamic_add, vector operations", "1/s")}
VECTORS = 4000
OPERATIONS = 4 * VECTORS  # two loads, an addition and a store each
ROUNDS = 5


def measure() -> dict[str, Result]:
    function = kernel("dynamic_add")
    BuildManager(TARGET).build(function)
    n = 16 * VECTORS
    a = np.ones(n, "float16")
    out = np.zeros(n, "float16")
    times = [seconds(lambda: function(a, a, out, n)) for _ in range(ROUNDS)]
    return {"rate": Result(OPERATIONS / median(times), f"{OPERATIONS} operations in {median(times):.2f} s")}
