"""Copies of single elements that are neither rows nor matrices, as Split and Concat of interleaved pairs have them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.layers.cases import SIZES, drawn, layer_of, same, tensor


@pytest.mark.parametrize("dtype", SIZES)
@pytest.mark.parametrize("shape", [(3, 5, 2), (2, 70, 2), (4, 3, 2, 1), (67, 2)])
def test_single_elements_of_an_axis(tmp_path, dtype, shape):
    source, axis = np.random.default_rng(9), 2 if len(shape) > 2 else 1
    halves = [(*shape[:axis], 1, *shape[axis + 1 :])] * 2
    x = tensor("x", shape, dtype)
    split = layer_of("Split", [x], dtype, {"axis": axis, "splits": [1, 1]}, halves)
    same(split, [drawn(source, x)], tmp_path)
    parts = [tensor(n, halves[0], dtype) for n in "ab"]
    joined = layer_of("Concat", parts, dtype, {"axis": axis}, [shape])
    same(joined, [drawn(source, t) for t in parts], tmp_path)
