"""A kernel that computes: quantised int8 addition."""

from __future__ import annotations

import numpy as np

from benchmarks.core import Goal, Result

from ._against_c import ELEMENTS, compare

GOALS = {"speed": Goal("eltwise_int8, 4M elements, speed against C", "x", 0.8, at_most=False)}


def measure() -> dict[str, Result]:
    rng = np.random.default_rng(0)
    inputs = list(rng.integers(-128, 128, (2, ELEMENTS), dtype="int8"))
    return {"speed": compare("eltwise_int8", inputs, [ELEMENTS, 3, 20000, -5, 15000, 15, 1])}
