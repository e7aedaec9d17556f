"""Kernels that compute: softmax, with its exponentials, and quantised int8 addition."""

from __future__ import annotations

import numpy as np

from benchmarks.core import Goal, Result

from ._against_c import ELEMENTS, compare

GOALS = {
    "softmax": Goal("softmax, 4M elements, speed against C", "x", 0.8, at_most=False),
    "eltwise": Goal("eltwise_int8, 4M elements, speed against C", "x", 0.8, at_most=False),
}
COLS = 1024


def measure() -> dict[str, Result]:
    rng = np.random.default_rng(0)
    rows = ELEMENTS // COLS
    halves = rng.normal(0, 4, (rows, COLS)).astype("float16")
    bytes_ = list(rng.integers(-128, 128, (2, ELEMENTS), dtype="int8"))
    return {
        "softmax": compare("softmax", [halves], [rows, COLS]),
        "eltwise": compare("eltwise_int8", bytes_, [ELEMENTS, 3, 20000, -5, 15000, 15, 1]),
    }
