"""Columns of more elements than LSRAM holds: they come, and go, in tiles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from compassc.graph import Layer
from compassc.layers.kernels import kernel_of
from tests.layers.cases import check, tensor

SHAPE = (2, 19, 23, 37)
"""Its columns are 437 long: tiles of any type do not divide them, nor do fours."""


def columns() -> Iterator[Layer]:
    source = np.random.default_rng(3)
    for i, dtype in enumerate(("int8", "uint8", "int16", "float32", "float16")):
        whole, bits = "int" in dtype, 16 if dtype == "int16" else 8
        zero = 3 if whole else 0
        x, y = (tensor(n, SHAPE, dtype, 1.0, zero) for n in "xy")
        small = tensor("y", (2, 1, 1, 37), dtype, 1.0, zero)
        weights = source.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), 37).astype(f"int{bits}")
        biases = source.integers(-1000, 1000, 37).astype("int32")
        constants = {"weights": weights, "biases": biases}
        given: dict[str, Any] = {"var_shift_value": 4, "norm_scale_value": 90, "norm_shift_value": 7}
        given |= {"scale_value": 120, "shift_value": 14}
        if not whole:
            constants = {key: a.astype("float32") for key, a in constants.items()}
        yield Layer("n", "InstanceNorm", [x], [y], given, constants)
        method = ("SUM", "MEAN", "MAX", "VARIANCE", "MIN")[i]
        reduced = {"method": method, "axis": [1, 2], "scale_value": 3, "shift_value": 9}
        yield Layer("r", "Reduce", [x], [small], reduced)
    x, y = tensor("x", SHAPE, "int16", 1.0, -5), tensor("y", (2, 1, 1, 37), "int16", 1.0, 7)
    window = {"kernel_y": 19, "kernel_x": 23, "count_include_pad": False}
    yield Layer("p", "Pooling", [x], [y], {"method": "AVG"} | window)


@pytest.mark.parametrize("layer", list(columns()), ids=lambda n: f"{n.type}-{n.input.dtype}")
def test_long_columns_are_as_defined(tmp_path, layer):
    assert "S.wait_events(came)" in kernel_of([layer]).text
    check(layer, np.random.default_rng(5), tmp_path)
