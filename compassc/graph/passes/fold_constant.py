"""Compute layers of constant inputs, by their references.

    Add(Constant 1, Constant 2) -> Constant 3

Layers whose reference refuses them stay, and those whose outputs would be large.
"""

from __future__ import annotations

from collections.abc import Sequence

from compassc.graph.edit import GraphEditor, Rule, rewrite
from compassc.graph.graph import SOURCES, Graph
from compassc.graph.layer import Layer
from compassc.graph.passes._layers import MOST_ELEMENTS
from compassc.graph.tensor import LayerError
from compassc.graph.values import IRDType

NAME = "FoldConstant"


def folded(edit: GraphEditor, layer: Layer) -> Sequence[Layer] | None:
    """f(constants) -> constants"""
    from compassc.layers.declare import evaluate

    arrays = [array for t in layer.inputs if (array := edit.constant(t)) is not None]
    if not arrays or len(arrays) != len(layer.inputs) or any(not 0 <= t.count <= MOST_ELEMENTS for t in layer.outputs):
        return None
    try:
        results = evaluate(layer, arrays)
    except LayerError:
        return None
    made = []
    for i, (tensor, array) in enumerate(zip(layer.outputs, results, strict=True)):
        kind = {} if tensor.dtype == array.dtype.name else {"weights_type": IRDType(tensor.dtype)}
        name = f"{layer.name}_{i}" if i else layer.name
        made.append(Layer(name, "Constant", (), (tensor,), kind, {"weights": array}, layer.span))
    return made


def run(graph: Graph) -> Graph:
    kinds = {layer.type for layer in graph.layers} - set(SOURCES)
    rules: dict[str, Sequence[Rule]] = {kind: [folded] for kind in kinds}
    return rewrite(graph, rules)
