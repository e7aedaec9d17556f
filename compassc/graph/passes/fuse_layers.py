"""Layers that a model spells out become fewer: operators that more than one layer makes, factors and addends of
normalisations and of linear layers, activations, moves.

The rules of these passes work together until none applies, for one may find what another one leaves:
FuseOperators, FoldScalingFactors, JoinActivations, CancelMoves, PushMoves.

    layer_norm(x) * weights + biases     ->  LayerNorm with these weights and biases
"""

from __future__ import annotations

from compassc.graph.edit import Rule, rewrite
from compassc.graph.graph import Graph
from compassc.graph.passes import _normalisations as normalisations
from compassc.graph.passes import cancel_moves, fold_scaling_factors, join_activations, push_moves
from compassc.graph.passes._fusions import PATTERNS

NAME = "FuseLayers"


def run(graph: Graph) -> Graph:
    """The graph in which no rule applies any more."""
    tables = (PATTERNS, normalisations.RULES, fold_scaling_factors.rules(), join_activations.RULES)
    rules: dict[str, list[Rule]] = {}
    for table in (*tables, cancel_moves.RULES, push_moves.rules()):
        for type, listed in table.items():
            rules.setdefault(type, []).extend(listed)
    return rewrite(graph, rules)
