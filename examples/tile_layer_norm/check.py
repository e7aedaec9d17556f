"""Inputs and expected results: layer norm in double precision."""

import numpy as np
from case import Case


def cases(rng):
    for rows, cols in ((1, 1), (4, 16), (3, 300), rng.integers(1, 60, 2).tolist()):
        x = rng.normal(1, 4, (rows, cols)).astype("float16")
        scale, shift = rng.normal(0, 1, (2, cols)).astype("float32")
        wide = x.astype("float64")
        centred = wide - wide.mean(axis=1, keepdims=True)
        y = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-3) * scale + shift
        arrays = {"src": x, "s": scale, "b": shift, "dst": np.zeros_like(x)}
        yield Case({**arrays, "rows": rows, "cols": cols, "eps": 1e-3}, {"dst": y}, rtol=2e-3, atol=2e-3)
