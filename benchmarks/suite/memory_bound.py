"""A kernel that moves data: addition of halves, staged through LSRAM."""

from __future__ import annotations

import numpy as np

from benchmarks.core import Goal, Result

from ._against_c import ELEMENTS, compare

GOALS = {"speed": Goal("dynamic_add, 4M elements, speed against C", "x", 0.8, at_most=False)}


def measure() -> dict[str, Result]:
    rng = np.random.default_rng(0)
    inputs = list(rng.normal(0, 100, (2, ELEMENTS)).astype("float16"))
    return {"speed": compare("dynamic_add", inputs, [ELEMENTS])}
