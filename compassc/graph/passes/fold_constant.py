"""Compute layers of constant inputs, by their references.

    Add(Constant 1, Constant 2) -> Constant 3

Layers whose reference refuses them stay, and those whose outputs would be large, or take much to compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from compass_core.reading.budget import Budget
from compass_core.reading.limits import COMPUTED_BYTES, COMPUTED_ELEMENTS
from compassc import services
from compassc.graph.edit import GraphEditor, Rule, rewrite
from compassc.graph.graph import SOURCES, Graph
from compassc.graph.layer import Layer
from compassc.graph.passes._layers import MOST_ELEMENTS
from compassc.graph.tensor import LayerError
from compassc.graph.values import IRDType

NAME = "FoldConstant"


def folded(budget: Budget, edit: GraphEditor, layer: Layer) -> Sequence[Layer] | None:
    """f(constants) -> constants"""
    arrays = [array for t in layer.inputs if (array := edit.constant(t)) is not None]
    if not arrays or len(arrays) != len(layer.inputs) or any(not 0 <= t.count <= MOST_ELEMENTS for t in layer.outputs):
        return None
    if not _affordable(budget, layer):
        return None
    try:
        results = services.evaluate_layer(layer, arrays)
    except LayerError:
        return None
    made = []
    for i, (tensor, array) in enumerate(zip(layer.outputs, results, strict=True)):
        kind = {} if tensor.dtype == array.dtype.name else {"weights_type": IRDType(tensor.dtype)}
        name = f"{layer.name}_{i}" if i else layer.name
        made.append(Layer(name, "Constant", (), (tensor,), kind, {"weights": array}, layer.span))
    return made


def _affordable(budget: Budget, layer: Layer) -> bool:
    """Whether the budget has room for what the reference holds and does."""
    try:
        cost = services.layer_cost(layer)
    except LayerError:
        return False
    return budget.grants(COMPUTED_ELEMENTS, cost.operations) and budget.grants(COMPUTED_BYTES, 8 * cost.held)


def run(graph: Graph) -> Graph:
    kinds = {layer.type for layer in graph.layers} - set(SOURCES)
    budget = Budget(graph.name, lambda: sum(a.nbytes for layer in graph.layers for a in layer.constants.values()))
    rules: dict[str, Sequence[Rule]] = {kind: [partial(folded, budget)] for kind in kinds}
    return rewrite(graph, rules)
