"""Hyperbolic functions, inverse ones and those of angles of floats, and their exact remainder."""

from __future__ import annotations

import numpy as np
import pytest

from compassc.layers.declare import evaluate
from compassc.layers.kernels import kernel_of
from tests.layers.cases import layer_of, same, tensor
from tests.layers.harness import run

SPECIAL = [0.0, 1.0, 0.5, 0.4142135, 2.4142137, 1e-30, 1e-45, 3e9, 1e25, 3.4e38, np.inf, np.nan]
NAMES = ("Sinh", "Cosh", "Asin", "Acos", "Atan", "Asinh", "Acosh", "Atanh")
NEAR_OVERFLOW = [-11.7, 11.7, -88.5, 89.0, 89.41]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_inverse_functions(tmp_path, dtype):
    source = np.random.default_rng(2)
    drawn = [source.uniform(-1, 1, 400), source.normal(0, 30, 200), 1 + source.uniform(0, 1e-3, 40), SPECIAL]
    values = np.concatenate([*drawn, NEAR_OVERFLOW, -np.asarray(SPECIAL)]).astype(dtype)
    for name in NAMES:
        layer = layer_of(name, [tensor("x", values.shape, dtype)], dtype, {}, [values.shape])
        same(layer, [values], tmp_path, 4e-6 if dtype == "float32" else 4e-3)


def test_remainders_are_exact(tmp_path):
    source = np.random.default_rng(3)
    wide = source.normal(0, 1, 500) * np.exp2(source.integers(-140, 127, 500).astype(float))
    near = wide * np.exp2(source.integers(-20, 20, 500).astype(float))
    special = np.asarray([*SPECIAL, *(-s for s in SPECIAL), 5.3, -7.0, 3.0])
    a, b = (g.reshape(-1) for g in np.meshgrid(special, special))
    left = np.concatenate([wide, near, wide, a]).astype("float32")
    right = np.concatenate([near, wide, source.permutation(wide), b]).astype("float32")
    inputs = [tensor(n, left.shape, "float32") for n in "ab"]
    layer = layer_of("Mod", inputs, "float32", {"fmod": True}, [left.shape])
    (got,), (want,) = run(kernel_of([layer]), layer, [left, right], tmp_path), evaluate(layer, [left, right])
    np.testing.assert_array_equal(got, want)
    number = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(want[number]))
