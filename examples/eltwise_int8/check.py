"""Inputs and expected results. NumPy rounds halves to even, as the kernel's shift does."""

import numpy as np
from case import Case


def cases(rng):
    for n in (1, 32, 77, int(rng.integers(78, 800))):
        a, b = rng.integers(-128, 128, (2, n), dtype="int8")
        zero_a, zero_b, zero_out = (int(z) for z in rng.integers(-20, 20, 3))
        scale_a, scale_b = (int(s) for s in rng.integers(1, 2**15, 2))
        shift = int(rng.integers(8, 16))
        scaled = (a.astype("int32") - zero_a) * scale_a + (b.astype("int32") - zero_b) * scale_b
        out = np.clip(np.around(scaled / 2.0**shift) + zero_out, -128, 127).astype("int8")
        scalars = {"n": n, "za": zero_a, "sa": scale_a, "zb": zero_b, "sb": scale_b, "shift": shift, "zo": zero_out}
        yield Case({"a": a, "b": b, "out": np.zeros_like(a), **scalars}, {"out": out})
