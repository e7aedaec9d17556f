"""TFLite models: every operator against what TFLite computes, by its rules in NumPy."""

import numpy as np
import pytest

from compass_core.reading.budget import Budget
from compassc.importers.tflite import import_bytes
from compassc.importers.tflite.source import parse
from tests.choosing import some
from tests.importers import tflite_cases, tflite_quantised, tflite_reference

FLOATS = [pytest.param(tflite_cases, name, id=name) for name in tflite_cases.CASES]
QUANTISED = [pytest.param(tflite_quantised, name, id=f"quantised_{name}") for name in tflite_quantised.CASES]
POSITIVE = ("log", "sqrt", "rsqrt", "pow")
"""Functions that are tried on positive numbers only."""
ROUNDED_OTHERWISE = {
    "add": 0.1,
    "add_int16": 0.3,
    "average_pool": 0.15,
    "average_pool_int16": 0.1,
    "logistic_int16": 0.3,
    "leaky_relu": 0.15,
    "prelu": 0.1,
    "resize_bilinear": 0.1,
    "transpose_conv": 0.05,
    "transpose_conv_uint8": 0.05,
    "concatenation_rescaled": 0.3,
    "requantize": 0.15,
    "softmax": 0.05,
    "squared_difference": 0.05,
    "sum": 0.3,
    "div": 0.05,
    "fully_connected_int16": 0.5,
}
"""Quantised cases that may be a level off, and for which share of the elements at most; others are equal."""


def arrays_for(content, name):
    """Inputs of a model: all integers of small types, and numbers around 0."""
    random, found = np.random.default_rng(1), []
    model = parse(content, "x.tflite", Budget("x.tflite"))
    for t in (model.tensors[i] for i in model.inputs):
        if t.dtype == bool:
            found.append(random.integers(0, 2, t.shape).astype(bool))
        elif t.dtype.kind in "iu":
            kind = np.iinfo(t.dtype)
            low, high = (kind.min, kind.max + 1) if t.dtype.itemsize < 4 else (1, 4)
            found.append(random.integers(low, high, t.shape).astype(t.dtype))
        else:
            x = (random.standard_normal(t.shape) * 1.5).astype(t.dtype)
            found.append(np.abs(x) + np.float32(0.1) if name in POSITIVE else x)
    return found


def check(got, want, module, name):
    assert got.shape == want.shape
    if want.dtype.kind == "f":
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
        return
    difference = np.abs(got.astype(np.int64) - want.astype(np.int64))
    allowed = ROUNDED_OTHERWISE.get(name, 0) if module is tflite_quantised else 0
    assert difference.max() <= (1 if allowed else 0)
    assert (difference > 0).mean() <= allowed


@pytest.mark.parametrize(("module", "name"), [*FLOATS, *QUANTISED])
def test_graphs_compute_what_tflite_computes(module, name, chained):
    content = module.build(name)
    given = arrays_for(content, name)
    graph = import_bytes(content)
    for got, want in some(zip(chained(graph, *given), tflite_reference.run(content, given), strict=True)):
        check(got, want, module, name)


@pytest.mark.parametrize("name", tflite_quantised.CASES)
def test_quantised_operators_become_layers_of_integers(name):
    graph = import_bytes(tflite_quantised.build(name))
    kinds = {layer.type for layer in graph.layers}
    in_floats = bool(kinds & {"DeQuantize", "Quantize"})
    assert in_floats == (name in tflite_quantised.IN_FLOATS or name == "network"), kinds
