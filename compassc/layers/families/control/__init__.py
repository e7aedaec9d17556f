"""Layers that choose or repeat parts of a graph: known, and refused with the reason."""

from __future__ import annotations

from compassc.layers.declare import Fusion, layer_type

SUBGRAPHS = "a program is one list of launches without branches; build the branches or the body as graphs of their own"
for _name, _inputs, _summary in (
    ("If", "condition, x...", "One of two subgraphs."),
    ("Loop", "count, condition, x...", "A subgraph while a condition holds."),
    ("Switch", "x...", "The first input that has elements."),
):
    layer_type(
        _name, summary=_summary, use="rare", fusion=Fusion.OPAQUE, inputs=_inputs, outputs="y...", refused=SUBGRAPHS
    )
