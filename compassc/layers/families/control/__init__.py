"""Layers that choose or repeat parts of a graph: known, and refused with the reason."""

from __future__ import annotations

from compassc.layers.declare import layer_type
from compassc.layers.families.control.reference import first_with_elements
from compassc.operators.patterns import PatternKind

SUBGRAPHS = "a program is one list of launches without branches; build the branches or the body as graphs of their own"
for _name, _inputs, _summary in (
    ("If", "condition, x...", "One of two subgraphs."),
    ("Loop", "count, condition, x...", "A subgraph while a condition holds."),
):
    layer_type(
        _name,
        summary=_summary,
        use="rare",
        pattern=PatternKind.OPAQUE,
        inputs=_inputs,
        outputs="y...",
        refused=SUBGRAPHS,
    )
layer_type(
    "Switch",
    summary="The first input that has elements.",
    use="rare",
    inputs="x...",
    outputs="y",
    float=first_with_elements,
    quantised=first_with_elements,
    notes="Which input that is, is known when the graph is built: shapes are.",
)
