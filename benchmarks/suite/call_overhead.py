"""What a call of an executor costs when the kernel itself has next to nothing to do."""

from __future__ import annotations

import numpy as np

from benchmarks.core import Goal, Result, median, seconds
from compassc.dsl import BuildManager

from ._examples import TARGET, kernel

GOALS = {"call": Goal("ex(a, out) of vadd, 8 elements", "us", 300)}
ROUNDS = 2000


def measure() -> dict[str, Result]:
    executor = BuildManager(TARGET).build(kernel("vadd"))
    a, out = np.arange(8, dtype="int32"), np.zeros(8, "int32")
    for _ in range(ROUNDS // 10):
        executor(a, out)
    return {"call": Result(1e6 * median(seconds(lambda: executor(a, out)) for _ in range(ROUNDS)))}
