"""Inputs and expected results."""

import numpy as np
from case import Case


def cases(rng):
    for rows, cols, depth in ((1, 1, 1), (5, 7, 96), rng.integers(1, 70, 3).tolist()):
        a = rng.integers(-128, 128, (rows, depth), dtype="int8")
        b = rng.integers(-128, 128, (cols, depth), dtype="int8")
        c = a.astype("int32") @ b.astype("int32").T
        yield Case({"a": a, "b": b, "c": np.zeros_like(c), "rows": rows, "cols": cols, "depth": depth}, {"c": c})
