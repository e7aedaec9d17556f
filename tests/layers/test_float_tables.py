"""Layers of floats that are tables over an interval: kernels against references, and both near the functions."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pytest

from compassc.graph import Layer, LayerError
from compassc.layers.arithmetic import exp2_table_float, float24
from compassc.layers.declare import evaluate
from compassc.layers.kernels import kernel_of
from tests.layers.cases import check, tensor


class Approximation(NamedTuple):
    """The function that is in the table, its interval, the offset of its values, the mode, and the layer's function."""

    table: Any
    ends: tuple[float, float]
    offset: float
    mode: str
    function: Any


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


APPROXIMATIONS = {
    "SIGMOID": Approximation(sigmoid, (0, 10), -0.5, "MIRROR", sigmoid),
    "TANH": Approximation(np.tanh, (0, 3), 0.0, "MIRROR", np.tanh),
    "SILU": Approximation(sigmoid, (0, 10), -0.5, "MIRROR", lambda x: x * sigmoid(x)),
    "SOFTPLUS": Approximation(lambda x: np.log1p(np.exp(x)), (-6, 20), 0.0, "NORMAL", lambda x: np.log1p(np.exp(x))),
    "SINE": Approximation(np.sin, (0, 2 * math.pi), 0.0, "MIRROR", np.sin),
    "COSINE": Approximation(np.sin, (0, 2 * math.pi), 0.0, "MIRROR", np.cos),
}
SHAPE = (5, 33)


def approximated(method: str, dtype: str = "float32") -> Layer:
    a = APPROXIMATIONS[method]
    scale = 511 / (a.ends[1] - a.ends[0])
    start = float(np.clip(np.rint(a.ends[0] * scale), -255, 255))
    lut = float24((a.table((np.arange(512) + start) / scale) + a.offset).astype("float32"))
    given = {
        "is_perf_mode": True,
        "lut_mode": a.mode,
        "index_scale_value": scale,
        "index_offset_value": start,
        "value_offset_value": a.offset,
    }
    kind, more = (method.capitalize(), {}) if method in ("SINE", "COSINE") else ("Activation", {"method": method})
    return Layer("a", kind, [tensor("x", SHAPE, dtype)], [tensor("y", SHAPE, dtype)], given | more, {"lut": lut})


@pytest.mark.parametrize("method", APPROXIMATIONS)
def test_tables_are_near_their_functions_on_both_sides_of_0(method, tmp_path):
    layer = approximated(method)
    x = np.linspace(-2.9, 2.9, 165, dtype="float32").reshape(SHAPE)
    np.testing.assert_allclose(evaluate(layer, [x])[0], APPROXIMATIONS[method].function(x), rtol=0, atol=1e-3)
    check(layer, np.random.default_rng(3), tmp_path)


@pytest.mark.parametrize("kind", ["Exp", "Softmax"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_powers_of_two(kind, dtype, tmp_path):
    given: dict[str, Any] = {"is_perf_mode": True, "lut_mode": "EXP", "axis": -1}
    x, y = tensor("x", SHAPE, dtype), tensor("y", SHAPE, dtype)
    layer = Layer("p", kind, [x], [y], given, {"lut": exp2_table_float()})
    values = np.random.default_rng(2).normal(size=SHAPE).astype(dtype)
    want = np.exp(values.astype("float64"))
    want = want / want.sum(-1, keepdims=True) if kind == "Softmax" else want
    np.testing.assert_allclose(evaluate(layer, [values])[0].astype("float64"), want, rtol=2e-3)
    check(layer, np.random.default_rng(3), tmp_path)


def test_tables_that_a_function_does_not_follow_from_are_refused():
    layer = approximated("TANH")
    for method, lut, message in (("COSH", "lut", "COSH"), ("EXP", "lut", "513")):
        given = {**layer.attributes, "method": method, "lut_mode": "EXP"}
        wrong = Layer("a", "Activation", layer.inputs, layer.outputs, given, {lut: layer.constants["lut"]})
        with pytest.raises(LayerError, match=message):
            kernel_of([wrong])
        with pytest.raises(LayerError, match=message):
            evaluate(wrong, [np.zeros(SHAPE, "float32")])
