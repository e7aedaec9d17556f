"""Fusions after import: patterns of layers become fewer layers that compute the same."""

from __future__ import annotations

from compassc.graph.edit import Rule, rewrite
from compassc.graph.graph import Graph
from compassc.graph.patterns import by_type


def fused(graph: Graph) -> Graph:
    """The graph with activations, normalisations and linear layers found and joined."""
    from compassc.graph.passes import cancel_moves, fold_scaling_factors, join_activations, push_moves
    from compassc.importers.fusions import activations, normalisations

    patterns = by_type([*activations.FUSIONS, *normalisations.FUSIONS])
    # first by themselves: what other rules join, such as an addition with its rectifier, no pattern finds any more
    graph = rewrite(graph, patterns)
    rules: dict[str, list[Rule]] = {}
    for table in (
        patterns,
        normalisations.RULES,
        fold_scaling_factors.RULES,
        join_activations.RULES,
        cancel_moves.RULES,
        push_moves.rules(),
    ):
        for type, listed in table.items():
            rules.setdefault(type, []).extend(listed)
    return rewrite(graph, rules)
