"""Inputs and expected results."""

import numpy as np
from case import Case


def cases(rng):
    for n in (1, 8, 37, int(rng.integers(38, 250))):
        x = rng.integers(-(2**31), 2**31, n, dtype="int32")
        yield Case({"src": x, "dst": np.zeros_like(x), "n": n}, {"dst": np.sort(x)})
