"""Logarithms of powers: what reaches over more than integers hold stays a float back to the products, and nothing else does."""

from __future__ import annotations

import numpy as np
import pytest

from compassc.graph import Graph, GraphBuilder
from compassc.quantizer import quantize_model
from compassc.quantizer.compare import run_quantised

SHAPE = (1, 8, 32)


def powers(offset: float, function: str = "Log") -> Graph:
    """The logarithm of x * x + offset, of a linear layer's results, as spectra have it."""
    g = GraphBuilder("powers")
    x = g.input("x", SHAPE, "float32")
    of = [(SHAPE, "float32")]
    (rows,) = g.layer("Reshape", [x], name="rows", outputs=[((8, 32), "float32")], attributes={"shape": [8, 32]})
    weights = np.random.default_rng(0).normal(0, 0.2, (32, 32)).astype(np.float32)
    (z,) = g.layer("FullyConnected", [rows], name="linear", outputs=[((8, 32), "float32")], attributes={"num_output": 32},
                   constants={"weights": weights, "biases": np.zeros(32, np.float32)})  # fmt: skip
    (z,) = g.layer("Reshape", [z], name="back", outputs=of, attributes={"shape": list(SHAPE)})
    (square,) = g.layer("Mul", [z, z], name="square", outputs=of)
    (least,) = g.layer("Constant", [], name="least", outputs=[((1, 1, 1), "float32")], constants={"weights": np.full((1, 1, 1), offset, np.float32)})  # fmt: skip
    (added,) = g.layer("Add", [square, least], name="added", outputs=of)
    (y,) = g.layer(function, [added], name="function", outputs=of)
    return g.finish([y])


def samples() -> np.ndarray:
    random = np.random.default_rng(1)
    return (random.normal(size=(16, 8, 32)) * 10 ** random.uniform(-1.5, 0.5, (16, 8, 1))).astype(np.float32)


def ratio(graph: Graph, quantised: Graph) -> float:
    from compassc.quantizer.compare import outputs_of

    (row,) = outputs_of(graph, quantised, [{graph.inputs[0].name: x[None]} for x in samples()])
    return row.sqnr


@pytest.mark.parametrize(("settings", "least"), [("int8", 14), ("w8a16", 38), ("int16", 58)])
def test_what_a_logarithm_takes_stays_a_float_back_to_the_products(settings, least):
    graph = powers(1e-3)
    made = quantize_model(graph, samples(), settings)
    types = {layer.name: layer.output.dtype for layer in made.graph.layers}
    assert [types[name] for name in ("square", "added", "function")] == ["float32"] * 3
    assert types["linear"].startswith("int") and ratio(graph, made.graph) > least
    (value,) = run_quantised(made.graph, {graph.inputs[0].name: np.zeros(SHAPE, np.float32)})[graph.outputs[0].name][
        0, :1, 0
    ]
    assert np.isfinite(value)


@pytest.mark.parametrize("function", ["Log", "Rsqrt", "Reciprocal"])
def test_what_integers_hold_is_integers(function):
    made = quantize_model(powers(20.0, function), samples(), "int8")
    assert not made.floats and all(layer.output.is_integer for layer in made.graph.computing())
