"""Inputs and expected results."""

import numpy as np
from case import Case

C = 32


def cases(rng):
    for h, w in ((1, 1), (3, 40), (5, 32), rng.integers(1, 50, 2).tolist()):
        x = rng.integers(-128, 128, (h, w, C), dtype="int8")
        weights = rng.integers(-128, 128, (9 * C, C), dtype="int8")
        padded = np.pad(x.astype("int64"), ((1, 1), (1, 1), (0, 0)))
        taps = [padded[n // 3 : n // 3 + h, n % 3 : n % 3 + w] @ weights[n * C : (n + 1) * C] for n in range(9)]
        y = np.clip(np.rint(sum(taps) / 1024), -128, 127).astype("int8")  # halves go to the even neighbour, as in S.vsr
        yield Case({"src": x, "flat": weights, "dst": np.zeros_like(y), "h": h, "w": w, "shift": 10}, {"dst": y})
