"""Loops in C for tiles have the bits of those of NumPy."""

from unittest.mock import patch

import numpy as np
import pytest

from compassc.dsl import script as S
from compassc.pysim import fp, loops

SPECIAL = (0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, 88.72284, -87.33655, 1e-40, 3e38, 1 + 2.0**-23, 2.0**-75)


def numbers(seed, *shape):
    random = np.random.default_rng(seed)
    made = random.normal(0, 20, shape)
    return np.where(random.random(shape) < seed % 3 / 10, random.choice(SPECIAL, shape), made).astype("float32")


def both(work):
    """What NumPy gives, and what the library does, of which there is one."""
    with np.errstate(all="ignore"):
        with patch.object(loops, "library", lambda _: None):
            plain = work()
        with patch.object(loops, "LOADED_AFTER", 0):
            assert loops.library(0) is not None
            return plain.view("u4"), work().view("u4")


@pytest.mark.parametrize("seed", range(6))
def test_functions_and_products(seed):
    np.testing.assert_array_equal(*both(lambda: fp.exp(numbers(seed, 3, 67))))
    x, y, acc = numbers(seed, 5, 9 + seed), numbers(seed + 3, 9 + seed, 19), numbers(seed + 6, 5, 19)
    np.testing.assert_array_equal(*both(lambda: fp.fused_product(x, y, acc)))
    np.testing.assert_array_equal(*both(lambda: fp.fused_product(x, y.T.copy().T, acc)))


@S.prim_func
def joined(x: S.ptr("fp32", "global"), y: S.ptr("fp32", "global")):
    rows, out = S.match_buffer(x, (3, 100)), S.match_buffer(y, (3, 60))
    for _ in S.tec_range(1):
        at = 0
        for cols in S.meta_var((2, 8, 9, 17, 31, 33, 64, 97, 100)):
            tile = S.tile_load(rows, (0, 0), (3, cols))
            half = S.cast(tile, "fp16")
            for found in (S.tile_sum(tile), S.tile_max(tile), S.tile_min(tile)):
                S.tile_store(out, (0, at), found)
                at += 1
            for found in (S.tile_sum(half), S.cast(S.tile_max(half), "fp32"), S.cast(S.tile_min(half), "fp32")):
                S.tile_store(out, (0, at), found)
                at += 1


@pytest.mark.parametrize("seed", range(3))
def test_rows(seed):
    x = numbers(seed, 3, 100)

    def work():
        y = np.zeros((3, 60), "float32")
        joined(x, y)
        return y

    plain, fast = both(work)
    assert plain[:, :54].any()
    np.testing.assert_array_equal(plain, fast)
