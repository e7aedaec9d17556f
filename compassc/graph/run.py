"""A graph run on the host, a layer after the other: by the references of the layers, or by what else computes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from compass_core.arrays import Array
from compass_core.namedtuple import NamedTuple
from compassc import services
from compassc.graph.dtypes import numpy_dtype
from compassc.graph.graph import Graph
from compassc.graph.layer import Layer
from compassc.graph.tensor import LayerError

Compute = Callable[[Layer, Sequence["Array"]], "list[Array]"]
"""`compute(layer, inputs)`: the outputs of a layer; LayerError where it refuses it."""


class LayerRun(NamedTuple):
    """A layer that was computed: its inputs and outputs."""

    layer: Layer
    inputs: Sequence[Array]
    outputs: Sequence[Array]


def run_layers(graph: Graph, inputs: Mapping[str, Array], compute: Compute | None = None) -> Iterator[LayerRun]:
    """Each layer as it is computed, those of inputs, too, for `inputs` by name. Values are forgotten when the last layer that
    takes them is done.

    `compute`: by default the references. CompassError naming a layer that is refused.
    """
    import numpy as np

    compute = compute or services.evaluate_layer
    values: dict[str, Array] = {}
    for layer, done in zip(graph.layers, graph.forgotten(), strict=True):
        given: list[Array] = []
        if layer.type == "Input":
            made = [np.asarray(inputs[t.name]).astype(numpy_dtype(t.dtype), copy=False) for t in layer.outputs]
        else:
            given = [values[t.name] for t in layer.inputs]
            try:
                made = compute(layer, given)
            except LayerError as error:
                raise graph.error(layer, f"the layer '{layer.name}' of type {layer.type}: {error}") from error
        yield LayerRun(layer, given, made)
        for t, value in zip(layer.outputs, made, strict=True):
            values[t.name] = value
        for name in done:
            del values[name]


def run_graph(graph: Graph, inputs: Mapping[str, Array], compute: Compute | None = None) -> dict[str, Array]:
    """Every tensor of a graph by name; see `run_layers`."""
    runs = run_layers(graph, inputs, compute)
    return {t.name: array for run in runs for t, array in zip(run.layer.outputs, run.outputs, strict=True)}
