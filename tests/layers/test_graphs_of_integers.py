"""Layers that convert data: results are exact."""

from __future__ import annotations

import numpy as np
import pytest

from tests.layers.graphs import Cases


@pytest.fixture
def source():
    return np.random.default_rng(5)


def test_casts(tmp_path, source):
    cases = Cases()
    real = source.normal(0, 150, (3, 45)).astype("float32")
    whole = source.integers(-(10**6), 10**6, 77).astype("int32")
    small = source.integers(-128, 128, 33).astype("int8")
    for to in ("int8", "uint8", "int16", "int32"):
        limits = np.iinfo(to)
        cases.add("Cast", [real], np.clip(np.trunc(real), limits.min, limits.max).astype(to), dtype=to)
        cases.add("Cast", [whole], np.clip(whole, limits.min, limits.max).astype(to), dtype=to)
        cases.add("Cast", [whole], whole.astype(to), dtype=to, clip_mode="TRUNCATION")
    for to in ("float32", "float16"):
        cases.add("Cast", [small], small.astype(to), dtype=to)
        cases.add("Cast", [real], real.astype(to), dtype=to)
    cases.check(tmp_path)
