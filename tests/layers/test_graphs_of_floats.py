"""Layers on floats agree with NumPy, for generated shapes and parameters."""

from __future__ import annotations

import numpy as np
import pytest

from tests.layers.graphs import Cases
from tests.layers.references import (
    ACTIVATIONS,
    gelu_tanh,
    window_keys,
    windows,
)

FLOATS = ("float32", "float16")
BINARY = {"ADD": np.add, "SUB": np.subtract, "MUL": np.multiply, "MAX": np.maximum, "MIN": np.minimum}
SHAPES = ((1,), (7, 33), (2, 3, 5, 40))


@pytest.fixture(params=FLOATS)
def dtype(request):
    return request.param


@pytest.fixture
def draw(dtype):
    """Draws arrays of the data type; gives them and the same values in double precision."""
    source = np.random.default_rng(11)

    def normal(*shape, scale=1.0):
        array = source.normal(0, scale, shape).astype(dtype)
        return array, array.astype("float64")

    return normal


def test_activations(tmp_path, draw):
    cases = Cases()
    for i, (method, (function, given)) in enumerate(ACTIVATIONS.items()):
        x, wide = draw(*SHAPES[i % len(SHAPES)], scale=3)
        cases.add("Activation", [x], function(wide), method=method, **given)
    x, wide = draw(70)
    cases.add("Activation", [x], gelu_tanh(wide), method="GELU", approximate="TANH")
    cases.add("Sigmoid", [x], ACTIVATIONS["SIGMOID"][0](wide))
    cases.check(tmp_path)


def test_binary_layers_and_broadcasting(tmp_path, draw):
    cases = Cases()
    for shape, method in zip(SHAPES * 2, BINARY, strict=False):
        (a, wide_a), (b, wide_b) = draw(*shape), draw(*shape)
        cases.add("Eltwise", [a, b], BINARY[method](wide_a, wide_b), method=method, with_activation="NONE")
        cases.add(
            "Eltwise", [a, b], np.maximum(BINARY[method](wide_a, wide_b), 0), method=method, with_activation="RELU"
        )
    for full, part in (
        ((4, 5, 33), (33,)),
        ((4, 5, 33), (5, 1)),
        ((2, 6, 9), (2, 1, 1)),
        ((3, 8), (1,)),
        ((3, 4, 5), (4, 5)),
    ):
        (a, wide_a), (b, wide_b) = draw(*full), draw(*part)
        cases.add("Sub", [a, b], wide_a - wide_b)
        cases.add("Sub", [b, a], wide_b - wide_a)
        cases.add("Div", [b, abs(a) + 1], wide_b / (abs(a) + 1).astype("float64"))
    cases.check(tmp_path)


def test_pooling(tmp_path, draw):
    cases = Cases()
    for kernel, stride, pad in (((2, 2), 2, 0), ((3, 3), 1, 1), ((3, 2), 2, 1)):
        x, wide = draw(2, 7, 6, 19)
        keys = window_keys(kernel, stride, pad)
        seen = windows(wide, kernel, stride, pad, 1, 0.0)
        cells = windows(np.ones_like(wide), kernel, stride, pad, 1, 0.0).sum((-1, -2))
        lowest = windows(wide, kernel, stride, pad, 1, -np.inf)
        cases.add("Pooling", [x], lowest.max((-1, -2)), method="MAX", **keys)
        cases.add("Pooling", [x], seen.sum((-1, -2)) / cells, method="AVG", count_include_pad=False, **keys)
        cases.add("Pooling", [x], seen.mean((-1, -2)), method="AVG", count_include_pad=True, **keys)
        cases.add("Pooling", [x], np.sqrt((seen**2).sum((-1, -2))), method="L2", **keys)
    cases.check(tmp_path)
