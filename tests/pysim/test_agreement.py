"""PySim and the simulator give the same bytes for the same kernel and data."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from compassc.dsl import BuildManager
from tests.choosing import some

TARGETS = ("X2_1204", "X3P_1304")


def kernels():
    path = Path(__file__).with_name("agreement_kernels.py")
    spec = importlib.util.spec_from_file_location("agreement_kernels", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lanes_arguments(rng):
    a = rng.integers(-1000, 1000, 32).astype("int32")
    return [a, rng.normal(0, 100, 16).astype("float16"), np.full(256, -1, "int32"), 5]


def language_arguments(rng):
    a, b = rng.integers(-1000, 1000, 32).astype("int32"), rng.integers(-128, 128, 64).astype("int8")
    n, m = (int(v) for v in rng.integers(-1000, 1000, 2))
    return [a, b, np.full(256, -1, "int32"), n, m, float(rng.normal(0, 100))]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("name", "arguments"), [("memory_and_lanes", lanes_arguments), ("language", language_arguments)]
)
def test_same_bytes(name, arguments, target):
    kernel = getattr(kernels(), name)
    built = BuildManager(target).build(kernel)
    for seed in range(5):
        first, second = (arguments(np.random.default_rng(seed)) for _ in range(2))
        kernel(*first)
        built(*second)
        for a, b in some(zip(first, second)):
            assert np.array_equal(a, b), (seed, np.flatnonzero(a != b))
