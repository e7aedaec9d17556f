"""Remove layers whose outputs nobody uses. Inputs of the graph stay."""

from __future__ import annotations

from dataclasses import replace

from compassc.graph.edit import GraphEditor
from compassc.graph.graph import Graph

NAME = "RemoveDeadLayers"


def run(graph: Graph) -> Graph:
    inner = {name: run(sub) for name, sub in graph.subgraphs.items()}
    if any(inner[name] is not graph.subgraphs[name] for name in inner):
        graph = replace(graph, subgraphs=inner)
    edit = GraphEditor(graph)
    return edit.finish() if edit.sweep() else graph
