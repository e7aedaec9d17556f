"""What importers make of the layers they have: fewer layers that compute the same."""

from __future__ import annotations

from compassc.graph.graph import Graph
from compassc.importers.rewriting import Rule, by_type, rewrite


def fused(graph: Graph) -> Graph:
    """The graph with activations, normalisations and linear layers found and joined."""
    from compassc.importers.fusions import activations, linear, movement, normalisations

    patterns = by_type([*activations.FUSIONS, *normalisations.FUSIONS])
    rules: dict[str, list[Rule]] = {}
    for table in (patterns, normalisations.RULES, linear.RULES, movement.RULES):
        for type, listed in table.items():
            rules.setdefault(type, []).extend(listed)
    return rewrite(graph, rules)
