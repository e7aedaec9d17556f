"""Inputs and expected results."""

import numpy as np
from case import Case


def cases(rng):
    for n in (1, 3, 4, int(rng.integers(5, 200))):
        a, b = rng.integers(-(2**31), 2**31, (2, n), dtype="int32")
        yield Case({"a": a, "b": b, "c": np.zeros_like(a), "n": n}, {"c": a + b})
