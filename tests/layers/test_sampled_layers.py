"""A sample of each type that random networks seldom have, of a data type that differs from type to type: kernel and
reference agree, on the simulator and in PySim."""

from __future__ import annotations

from zlib import crc32

import numpy as np
import pytest

from compass_core import files
from compassc.graph import Tensor
from compassc.layers.declare import all_types, evaluate
from compassc.layers.kernel_cache import function_of
from compassc.layers.kernels import kernel_of
from compassc.layers.samples import SAMPLES, Draw, drawn
from compassc.layers.support import SHAPES, forms_of
from tests.layers.cases import same
from tests.layers.harness import arguments

FAMILIES = ("regions", "images", "detection", "rows", "attention", "counting", "control", "sampling")
NEAR = {"float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}


def types() -> list[str]:
    """Those of these families that have samples."""
    found = []
    for name, declared in all_types().items():
        module = (declared.float or declared.quantised).__module__ if not declared.refused else ""
        if name in SAMPLES and any(f".families.{family}." in module for family in FAMILIES):
            found.append(name)
    return found


@pytest.mark.parametrize("name", types())
def test_a_sample_agrees(name, tmp_path):
    dtypes = [form.dtype for form in forms_of(all_types()[name]) if form.kernel]
    dtype = dtypes[crc32(name.encode()) % len(dtypes)]
    for seed in range(12):
        layer = drawn(Draw(np.random.default_rng(seed)), name, Tensor("x", SHAPES[seed % len(SHAPES)], dtype))
        if layer is not None:
            break
    assert layer is not None
    draw = Draw(np.random.default_rng(7))
    ranges = [(t.low, t.high) if t.is_integer else (None, None) for t in layer.inputs]
    inputs = [draw.array(t.dtype, *t.shape, low=a, high=b) for t, (a, b) in zip(layer.inputs, ranges, strict=True)]
    same(layer, inputs, tmp_path, NEAR.get(dtype, 0))
    kernel = kernel_of([layer])
    function = function_of(kernel, files.write(tmp_path / "kernel.py", kernel.text))
    function.target = "X2_1204"
    args, outputs = arguments(kernel, layer, inputs)
    function(*args)
    for got, want in zip(outputs, evaluate(layer, inputs), strict=True):
        near = NEAR.get(got.dtype.name, 0)
        np.testing.assert_allclose(got.astype("f8"), want.astype("f8"), rtol=near, atol=near)
