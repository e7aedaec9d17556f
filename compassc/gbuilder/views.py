"""Layers that only give data another shape: where possible their output is a view of their input, and nothing runs."""

from __future__ import annotations

from compassc.gbuilder.memory import nbytes
from compassc.gbuilder.nodes import Nodes

VIEWS = frozenset({"Reshape", "Squeeze", "Unsqueeze", "Flatten", "NoOp"})


def make_views(graph: Nodes) -> None:
    """Removes view layers from the graph, except those between the graph's own inputs, outputs and constants."""
    outside = {id(t) for t in (*graph.inputs, *graph.outputs)}
    kept = []
    for node in graph.nodes:
        ends = node.inputs[:1] + node.outputs
        if (
            node.type.name not in VIEWS
            or len(ends) != 2
            or any(id(t) in outside or t.is_constant for t in ends)
            or nbytes(ends[0]) != nbytes(ends[1])
        ):
            kept.append(node)
            continue
        ends[1].memory_offset().set_base_offset(ends[0].memory_offset())
    graph.nodes[:] = kept
