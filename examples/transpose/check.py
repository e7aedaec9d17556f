"""Inputs and expected results."""

import numpy as np
from case import Case


def cases(rng):
    for h, w in ((1, 1), (8, 16), (33, 7), rng.integers(1, 40, 2).tolist()):
        x = rng.normal(size=(h, w)).astype("float32")
        yield Case({"src": x, "dst": np.zeros((w, h), "float32"), "h": h, "w": w}, {"dst": x.T.copy()})
