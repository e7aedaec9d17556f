"""The executor of graphs on the host."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc.graph import GraphBuilder, LayerError, Tensor
from compassc.graph.run import run_graph, run_layers
from tests.choosing import some


@pytest.fixture
def graph():
    build = GraphBuilder("net")
    made = build.input("x", (2, 3), "float32")
    for k in range(4):
        (made,) = build.layer("Negative", [made], name=f"n{k}", outputs=[Tensor(f"t{k}", (2, 3), "float32")])
    return build.finish([made])


def test_values_are_those_of_references_or_of_what_computes_instead(graph):
    x = np.arange(6).reshape(2, 3)
    found = run_graph(graph, {"x": x})
    assert list(found) == ["x", "t0", "t1", "t2", "t3"] and found["x"].dtype == np.float32
    np.testing.assert_array_equal(found["t2"], -x)
    twice = run_graph(graph, {"x": x}, lambda layer, inputs: [2 * inputs[0]])
    np.testing.assert_array_equal(twice["t3"], 16 * x)


def test_values_are_forgotten_when_nobody_needs_them(graph):
    kept = []
    for run in some(run_layers(graph, {"x": np.ones((2, 3), np.float32)})):
        kept += [weakref.ref(a) for a in run.outputs]
        del run
        assert sum(ref() is not None for ref in kept) <= 3, (
            "the input, which the caller has, an operand and what is made of it"
        )


def test_a_layer_that_is_refused_is_named(graph):
    def refuse(layer, inputs):
        if layer.name == "n2":
            raise LayerError("too deep")
        return [inputs[0]]

    with pytest.raises(CompassError, match="the layer 'n2' of type Negative: too deep"):
        run_graph(graph, {"x": np.zeros((2, 3))}, refuse)
