"""Inputs and expected results."""

import numpy as np
from case import Case


def cases(rng):
    a, b = rng.normal(0, 100, (2, 2048)).astype("float16")
    yield Case({"a": a, "b": b, "c": np.zeros_like(a)}, {"c": a + b})
