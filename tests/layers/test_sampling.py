"""Sampling kernels give what the references give."""

from __future__ import annotations

import numpy as np
import pytest

from tests.choosing import some
from tests.layers.cases import drawn, layer_of, same, tensor


@pytest.fixture
def source() -> np.random.Generator:
    return np.random.default_rng(3)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint8"])
def test_grid_sample(tmp_path, source, dtype):
    cases = [(m, p, a) for m in ("BILINEAR", "NEAREST") for p in ("ZEROS", "BORDER") for a in (False, True)]
    floats = dtype.startswith("float")
    for i, (method, padding, corners) in some(enumerate(cases)):
        shape, out = (((2, 5, 7, 3), (2, 4, 6, 3)), ((1, 3, 4, 40), (1, 5, 2, 40)))[i % 2]
        x = tensor("x", shape, dtype, 1.0, 0 if floats else 9)
        grid = tensor("grid", (*out[:3], 2), dtype if floats else "int16", 1.0)
        attributes = {"method": method, "padding_mode": padding, "align_corners": corners}
        if not floats:
            attributes |= {"coordinate_x_shift": 10, "coordinate_y_shift": 11}
            attributes |= {"scale_value": [25000, 31000], "shift_value": [17, 18]}
        points = source.uniform(-1.4, 1.4, grid.shape).astype(dtype) if floats else drawn(source, grid)
        layer = layer_of("GridSample", [x, grid], dtype, attributes, [out], x.scalar_zero)
        same(layer, [drawn(source, x), points], tmp_path, {"float32": 4e-6, "float16": 4e-3}.get(dtype, 0))


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_volumes(tmp_path, source, dtype):
    floats = dtype.startswith("float")
    for method, padding in (("BILINEAR", "ZEROS"), ("NEAREST", "BORDER")):
        x = tensor("x", (2, 3, 4, 5, 6), dtype, 1.0, 0 if floats else 9)
        grid = tensor("grid", (2, 2, 3, 2, 3), dtype if floats else "int16")
        attributes = {
            "method": method,
            "padding_mode": padding,
            "coordinate_x_shift": 10,
            "coordinate_y_shift": 11,
            "coordinate_z_shift": 12,
            "scale_value": [25000, 31000, 28000],
            "shift_value": [17, 18, 18],
        }
        points = source.uniform(-1.4, 1.4, grid.shape).astype(dtype) if floats else drawn(source, grid)
        layer = layer_of("GridSample", [x, grid], dtype, attributes, [(2, 2, 3, 2, 6)], x.scalar_zero)
        same(layer, [drawn(source, x), points], tmp_path, 1e-5 if floats else 0)
