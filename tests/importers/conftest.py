"""Helpers for tests of importers: models in memory, and graphs run by the references."""

from __future__ import annotations

import numpy as np
import pytest

from compassc.graph.dtypes import numpy_dtype
from compassc.layers.declare import evaluate


def run_graph(graph, *arrays):
    """The outputs of a graph by the references of its layers, one after the other."""
    values = {t.name: np.asarray(a).astype(numpy_dtype(t.dtype)) for t, a in zip(graph.inputs, arrays, strict=True)}
    for layer in graph.layers:
        if layer.type != "Input":
            made = evaluate(layer, [values[t.name] for t in layer.inputs])
            values.update((t.name, a) for t, a in zip(layer.outputs, made, strict=True))
    return [values[t.name] for t in graph.outputs]


def count(graph, *types):
    """How many layers of some types a graph has."""
    return sum(layer.type in types for layer in graph.layers)


@pytest.fixture
def chained():
    return run_graph
