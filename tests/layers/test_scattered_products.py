"""Scattered products of integers: brought to 16 bits after each update."""

from __future__ import annotations

import numpy as np
import pytest

from compassc.graph import LayerError
from compassc.layers.kernels import kernel_of
from tests.layers.cases import drawn, layer_of, same, tensor


@pytest.mark.parametrize(("dtype", "zeros"), [("int8", (3, -7)), ("uint8", (0, 0)), ("int16", (0, 0))])
def test_products_of_repeated_places(tmp_path, dtype, zeros):
    source = np.random.default_rng(8)
    for axis in (0, 1):
        x, updates = tensor("x", (6, 40), dtype, 1.0, zeros[0]), tensor("u", (4, 33), dtype, 1.0, zeros[1])
        index = source.integers(-3, 3, (4, 33)).astype("int32")
        given = {"reduction": "MUL", "axis": axis, "scale_value": [129, 171], "shift_value": [7, 16]}
        if dtype == "int16":
            given |= {"scale_value": [129, 201], "shift_value": [9, 24]}
        layer = layer_of("ScatterElements", [x, tensor("i", index.shape, "int32"), updates], dtype, given, [x.shape])
        same(layer, [drawn(source, x), index, drawn(source, updates)], tmp_path)


def test_products_that_could_be_too_large_are_refused():
    inputs = [tensor("x", (6, 4), "int16"), tensor("i", (5, 4), "int32"), tensor("u", (5, 4), "int16")]
    given = {"reduction": "MUL", "axis": 0, "scale_value": [1, 201], "shift_value": [0, 7]}
    with pytest.raises(LayerError, match="32 bits"):
        kernel_of([layer_of("ScatterElements", inputs, "int16", given, [(6, 4)])])
