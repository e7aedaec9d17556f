"""compassc.dsl.testing: random arrays, comparison."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from compassc.dsl import testing
from compassc.dsl.testing import DTYPES, assert_allclose, clear_traceback, rand


@pytest.mark.parametrize("dtype", DTYPES)
def test_rand_covers_the_range_with_its_corners(dtype):
    a = rand((40, 5), dtype)
    assert (a.dtype.name, a.shape) == (dtype, (40, 5))
    if dtype.startswith(("int", "uint")):
        limits = np.iinfo(dtype)
        assert {limits.min, limits.max} <= set(a.reshape(-1).tolist())
    elif dtype != "bool":
        assert np.isfinite(a.astype(np.float64)).all() and 0 in a


def test_rand_stays_in_the_given_range():
    for dtype, low, high in (("int8", -3, 4), ("float32", 0.5, 1.5), ("uint32", 2**32 - 4, 2**32), ("float16", -1, 1)):
        a = rand(1000, dtype, low, high).astype(np.float64)
        assert a.min() >= low and (a.max() < high or dtype == "float16")  # which rounds to the end
    assert rand(3, "int8", 5, 6).tolist() == [5, 5, 5]
    assert type(rand(1, "int32", return_python_type=True)) is int
    with pytest.raises(AssertionError, match="empty"):
        rand(3, "int8", 5, 5)
    with pytest.raises(AssertionError, match="float64"):
        rand(3, "float64")


def test_the_seed_comes_from_the_environment(monkeypatch):
    monkeypatch.setenv("CPS_DSL", "random_seed=11")
    runs = []
    for _ in range(2):
        monkeypatch.setattr(testing, "_source", [])
        runs.append(rand(20, "int32").tolist())
    assert runs[0] == runs[1]


def test_what_is_close():
    one = np.array([1.0], np.float32)
    near = np.nextafter(one, np.float32(2))
    assert_allclose(one * 1e8, near * np.float32(1e8))
    assert_allclose(np.array([np.nan, np.inf]), np.array([np.nan, np.inf]))
    assert_allclose(np.array([1.0]), np.array([1.1]), atol=0.2)
    for a, b, options, message in (
        (one, one.astype(np.float64), {}, "dtypes differ"),
        (one, near, {"rtol": 0, "atol": 0}, "mismatching elements"),
        (one, one * 2, {}, "mismatching elements"),
        (np.array([1]), np.array([2]), {}, "mismatching elements"),
        (np.zeros(2), np.zeros(3), {}, "shape"),
        (np.array([np.inf]), np.array([-np.inf]), {}, "mismatching"),
    ):
        with pytest.raises(AssertionError, match=message):
            assert_allclose(a, b, **options)


def test_clear_traceback_lets_go_of_locals():
    class Big:
        pass

    kept = []

    @clear_traceback
    def outer():
        big = Big()
        kept.append(sys.getrefcount(big))
        inner(big)

    def inner(big):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        outer()
