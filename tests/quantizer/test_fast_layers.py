"""Layers that calibration computes faster than by their references give the same but for the last bits."""

from __future__ import annotations

import numpy as np
import pytest

from compassc.graph import Tensor
from compassc.layers.declare import evaluate
from compassc.layers.samples.draw import Draw, drawn
from compassc.quantizer.execute import compute
from compassc.quantizer.fast import FAST, erf, product

SHAPES = [(2, 9, 7, 8), (1, 16), (3, 5, 24)]


@pytest.mark.parametrize("kind", FAST)
def test_fast_layers_are_their_references(kind):
    taken = 0
    for seed in range(12):
        layer = drawn(Draw(np.random.default_rng(seed), "layer"), kind, Tensor("x", SHAPES[seed % 3], "float32"))
        if layer is None:
            continue
        inputs = [np.random.default_rng(seed).standard_normal(t.shape).astype(np.float32) for t in layer.inputs]
        want, got = evaluate(layer, inputs)[0], compute(layer, inputs)[0]
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5 * max(1.0, float(np.abs(want).max())))
        taken += 1
    assert taken


@pytest.mark.parametrize("shape", [(1, 1, 1), (500, 144, 16), (70, 3000, 40), (33, 9, 4000), (0, 4, 4)])
def test_products_in_pieces_are_products(shape):
    many, inner, outputs = shape
    random = np.random.default_rng(0)
    rows, filters = (random.standard_normal((n, inner)).astype(np.float32) for n in (many, outputs))
    np.testing.assert_allclose(product(rows, filters), rows @ filters.T, rtol=1e-4, atol=1e-3)


def test_the_error_function_is_one():
    import math

    x = np.linspace(-6, 6, 1001, dtype=np.float32)
    np.testing.assert_allclose(erf(x), [math.erf(v) for v in x], atol=1e-6)
