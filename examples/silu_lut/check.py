"""Inputs and expected results: SiLU in double precision, and how far a table of 512 steps may be from it."""

import numpy as np
from case import Case


def cases(rng):
    for n in (1, 16, 45, int(rng.integers(46, 400))):
        x = rng.normal(0, 5, n).astype("float16")
        wide = x.astype("float64")
        yield Case({"x": x, "y": np.zeros_like(x), "n": n}, {"y": wide / (1 + np.exp(-wide))}, rtol=1e-3, atol=3e-3)
