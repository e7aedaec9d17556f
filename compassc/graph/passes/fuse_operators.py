"""Activations and normalisations that a model spells out in arithmetic become one layer.

    x * sigmoid(x)                       ->  Activation SILU
    (x - mean(x)) / sqrt(var(x) + e)     ->  LayerNorm, InstanceNorm or MVN, by the axes

It comes first: what other passes join, such as an addition with its rectifier, no pattern finds any more.
"""

from __future__ import annotations

from compassc.graph.edit import rewrite
from compassc.graph.graph import Graph
from compassc.graph.passes._fusions import PATTERNS

NAME = "FuseOperators"


def run(graph: Graph) -> Graph:
    """The graph with these layers found."""
    return rewrite(graph, PATTERNS)
