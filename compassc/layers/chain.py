"""A graph run by the references of its layers, one after the other."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from compassc.graph import Graph, LayerError
from compassc.graph.dtypes import numpy_dtype
from compassc.layers.arithmetic import Array
from compassc.layers.declare import evaluate


def run_graph(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Every tensor of a graph by name, for `inputs` by name. CompassError naming a layer that its reference refuses."""
    values = {t.name: np.asarray(inputs[t.name]).astype(numpy_dtype(t.dtype), copy=False) for t in graph.inputs}
    for layer in graph.layers:
        if layer.type == "Input":
            continue
        try:
            made = evaluate(layer, [values[t.name] for t in layer.inputs])
        except LayerError as error:
            raise graph.error(layer, f"the layer '{layer.name}' of type {layer.type}: {error}") from error
        values.update(zip([t.name for t in layer.outputs], made, strict=True))
    return values
