"""A kernel that moves data: addition of halves, staged through LSRAM.

The same loop in C has the same tiles; C without them is measured too, to know what staging costs on a host that has no
LSRAM.
"""

from __future__ import annotations

import numpy as np

from benchmarks.core import Goal, Result

from ._against_c import ELEMENTS, compare

GOALS = {
    "tiled": Goal("dynamic_add, 4M elements, speed against C", "x", 0.8, at_most=False),
    "plain": Goal("the same, against C without tiles", "x"),
}


def measure() -> dict[str, Result]:
    rng = np.random.default_rng(0)
    inputs = list(rng.normal(0, 100, (2, ELEMENTS)).astype("float16"))
    return {
        "tiled": compare("dynamic_add", inputs, [ELEMENTS]),
        "plain": compare("dynamic_add", inputs, [ELEMENTS], by="dynamic_add_plain"),
    }
