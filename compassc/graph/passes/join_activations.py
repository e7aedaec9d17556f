"""Let convolutions, matrix products and element-wise arithmetic of floats do the rectifier behind them.

    Activation(Convolution(x), RELU) -> Convolution(x, with_activation=RELU)

RELU, RELU6 and LEAKYRELU; other activations join the kernel later, when the graph is built.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compassc.graph.edit import GraphEditor, Rule, rewrite
from compassc.graph.graph import Graph
from compassc.graph.layer import Layer
from compassc.graph.methods import RECTIFIER_TYPES, is_activated, rectifier
from compassc.graph.passes._layers import filters_of, is_float, same_type

NAME = "JoinActivations"
_KEYS = {"RELU": (), "RELU6": (), "LEAKYRELU": ("negative_slope_type", "negative_slope_value")}


def activation(edit: GraphEditor, layer: Layer) -> Sequence[Layer] | None:
    """rectifier(linear) -> linear"""
    method = rectifier(layer)
    source = edit.sole(layer.input)
    if not method or source is None or is_activated(source):
        return None
    if filters_of(source) is None and source.type != "Eltwise":  # others have no activation of their own
        return None
    if not is_float(source) or not is_float(layer) or not same_type(source.output, layer.output):
        return None
    moved = {key: layer.attributes[key] for key in _KEYS[method] if key in layer.attributes}
    given = {**source.attributes, "with_activation": method, **moved}
    return [replace(source, outputs=layer.outputs, attributes=given)]


RULES: dict[str, Sequence[Rule]] = {kind: [activation] for kind in RECTIFIER_TYPES}


def run(graph: Graph) -> Graph:
    return rewrite(graph, RULES)
