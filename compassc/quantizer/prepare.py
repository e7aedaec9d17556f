"""The float graph that calibration and quantisation have in common: what is changed in it first."""

from __future__ import annotations

from compassc.graph import Graph
from compassc.graph.passes import run_stage
from compassc.quantizer.settings import Settings


def prepared(graph: Graph, settings: Settings) -> Graph:
    """The graph with channels equalised where the settings say so. Names stay."""
    if settings.equalise:
        return run_stage("equalise", graph)
    return graph
