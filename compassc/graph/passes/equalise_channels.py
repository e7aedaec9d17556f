"""Channels between two linear layers get scales under which both have even weights (cross-layer equalisation).

What the first layer makes of a channel is divided by a number, and what the second makes of it multiplied: with a
rectifier of which max(0, x / s) = max(0, x) / s holds in between, the graph computes the same.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from compass_core.arrays import Array
from compassc.graph.graph import Graph
from compassc.graph.layer import Layer
from compassc.graph.methods import rectifier
from compassc.graph.passes._layers import filters_of
from compassc.operators.patterns import Filters

NAME = "EqualiseChannels"
PROPORTIONAL = ("NONE", "RELU", "LEAKYRELU")
MOST_SWEEPS = 8
LARGEST = 64.0
"""Of a scale in one step."""


def run(graph: Graph) -> Graph:
    """The graph with the weights of neighbouring linear layers evened out; names and shapes stay."""
    layers = {layer.name: layer for layer in graph.layers}
    pairs = [(a, b) for a in graph.layers if (b := follower(graph, a)) is not None]
    for _ in range(MOST_SWEEPS):
        largest = 0.0
        for first, second in pairs:
            change = _even(layers, first.name, second.name)
            largest = max(largest, change)
        if largest < 1.01:
            break
    if all(layers[layer.name] is layer for layer in graph.layers):
        return graph
    return replace(graph, layers=tuple(layers[layer.name] for layer in graph.layers))


def follower(graph: Graph, layer: Layer) -> Layer | None:
    """The linear layer that alone takes what a linear layer makes, through layers that keep channels in proportion."""
    if not is_even(layer):
        return None
    users, ends = graph.users(), {t.name for t in graph.outputs}
    current = layer
    while True:
        made = current.output.name
        after = users[made]
        if made in ends or len(after) != 1:
            return None
        current = after[0]
        if filters_of(current) is not None:
            return current if takes_channels(current, len(layer.constants["weights"])) else None
        if not passes(current):
            return None


def is_even(layer: Layer) -> bool:
    """Whether the outputs of a layer scale with its weights and biases."""
    if filters_of(layer) is not Filters.BY_OUTPUT or layer.word("with_activation", "NONE") not in PROPORTIONAL:
        return False
    return all(layer.constants[k].dtype == np.float32 for k in ("weights", "biases") if k in layer.constants)


def takes_channels(layer: Layer, channels: int) -> bool:
    """Whether the input channels of a layer are these, and its weights floats in one group or one for each channel."""
    weights = layer.constants.get("weights")
    if filters_of(layer) is not Filters.BY_OUTPUT or weights is None:
        return False
    if weights.dtype != np.float32 or layer.input.shape[-1] != channels:
        return False
    if layer.type == "DepthwiseConv":
        return len(weights) == channels
    return layer.integer("group", 1) == 1 and weights.shape[-1] == channels


def passes(layer: Layer) -> bool:
    """Whether channels go through a layer one by one, in proportion."""
    if layer.type == "Pooling":
        return layer.word("method") in ("MAX", "AVG")
    return rectifier(layer) in PROPORTIONAL


def _even(layers: dict[str, Layer], first: str, second: str) -> float:
    """Scales the channels between two layers; gives the largest scale."""
    a, b = layers[first], layers[second]
    out = np.abs(a.constants["weights"].reshape(len(a.constants["weights"]), -1)).max(1)
    into = _reach(b)
    used = (out > 0) & (into > 0)
    scale = np.where(used, np.sqrt(np.where(used, out, 1) / np.where(used, into, 1)), 1.0)
    scale = np.clip(scale, 1 / LARGEST, LARGEST).astype(np.float32)
    largest = float(np.maximum(scale, 1 / scale).max(initial=1.0))
    if largest < 1.01:
        return largest
    layers[first] = _scaled(a, 1 / scale)
    weights = b.constants["weights"]
    other = weights * (scale.reshape(-1, 1, 1, 1) if b.type == "DepthwiseConv" else scale)
    layers[second] = replace(b, constants={**b.constants, "weights": other.astype(np.float32)})
    return largest


def _reach(layer: Layer) -> Array:
    """The largest weight of each input channel."""
    weights = np.abs(layer.constants["weights"])
    if layer.type == "DepthwiseConv":
        return np.asarray(weights.reshape(len(weights), -1).max(1))
    return np.asarray(weights.reshape(-1, weights.shape[-1]).max(0))


def _scaled(layer: Layer, scale: Array) -> Layer:
    """The layer with its output channels times `scale`."""
    weights = layer.constants["weights"]
    constants = dict(layer.constants)
    constants["weights"] = (weights * scale.reshape(-1, *(1,) * (weights.ndim - 1))).astype(np.float32)
    if "biases" in constants:
        biases = constants["biases"]
        constants["biases"] = (biases.reshape(-1) * scale).reshape(biases.shape).astype(np.float32)
    return replace(layer, constants=constants)
