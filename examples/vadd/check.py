"""Inputs and expected results."""

import numpy as np
from case import Case


def cases(rng):
    for a in (np.arange(8, dtype="int32"), rng.integers(-(2**31), 2**31, 8, dtype="int32")):
        yield Case({"a": a, "b": np.zeros_like(a)}, {"b": a + np.int32(1)})
