"""Inputs and expected results."""

import numpy as np
from case import Case


def cases(rng, sizes=(0, 1, 15, 16, 17, 1000, 65537)):
    for n in sizes:
        a, b = rng.normal(0, 100, (2, n)).astype("float16")
        yield Case({"a": a, "b": b, "c": np.zeros_like(a), "n": n}, {"c": a + b})
