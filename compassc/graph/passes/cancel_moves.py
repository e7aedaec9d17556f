"""Join reshapes and transposes that follow each other, and remove what moves nothing.

Transpose(Transpose(x, p), q) -> Transpose(x, p[q])
Reshape(Reshape(x)) -> Reshape(x)
Transpose(x) -> Reshape(x)      where only axes of size 1 change places
Reshape(x), Transpose(x), NoOp(x), Slice(x), Pad(x), ... -> x      where they change nothing
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compassc.graph.edit import GraphEditor, Rule, rewrite
from compassc.graph.graph import Graph
from compassc.graph.layer import Layer
from compassc.graph.passes._layers import RESHAPES, TRANSPOSES, is_float, moves_nothing, same_type

NAME = "CancelMoves"


def nothing(edit: GraphEditor, layer: Layer) -> Sequence[Layer] | None:
    """move(x) -> x"""
    if len(layer.inputs) != 1 or len(layer.outputs) != 1:
        return None
    x, y = layer.input, layer.output
    if x.shape != y.shape or not same_type(x, y):
        return None
    if layer.type in TRANSPOSES and not moves_nothing(x.shape, layer.integers("perm")):
        return None
    if layer.type in ("Slice", "StridedSlice") and any(step != 1 for step in layer.integers("strides")):
        return None  # as large, but turned round
    if layer.type == "Concat" and not is_float(layer):
        return None  # it may requantise
    return edit.instead(layer, x)


def reshape_again(edit: GraphEditor, layer: Layer) -> Sequence[Layer] | None:
    """reshape(reshape(x)) -> reshape(x)"""
    before = edit.producer(layer.input)
    if before.type not in RESHAPES or not same_type(before.input, layer.output):
        return None
    return [_reshape(layer, before)]


def _reshape(layer: Layer, source: Layer) -> Layer:
    """A Reshape of the source's input to the layer's output."""
    shape: dict[str, list[int]] = {"shape": list(layer.output.shape)}
    kept = {k: v for k, v in layer.attributes.items() if k not in ("axis", "perm")}
    return replace(layer, type="Reshape", inputs=source.inputs, attributes={**kept, **shape})


def transpose_again(edit: GraphEditor, layer: Layer) -> Sequence[Layer] | None:
    """transpose(transpose(x)) -> transpose(x)"""
    before = edit.producer(layer.input)
    if before.type not in TRANSPOSES or not same_type(before.input, layer.output):
        return None
    inner = before.integers("perm")
    perm = [inner[p] for p in layer.integers("perm")]
    return [replace(layer, inputs=before.inputs, attributes={**layer.attributes, "perm": perm})]


def transpose_as_reshape(edit: GraphEditor, layer: Layer) -> Sequence[Layer] | None:
    """transpose(x) -> reshape(x)"""
    if not same_type(layer.input, layer.output) or not moves_nothing(layer.input.shape, layer.integers("perm")):
        return None
    return [_reshape(layer, layer)]


RULES: dict[str, Sequence[Rule]] = {
    **{kind: [nothing, reshape_again] for kind in RESHAPES},
    **{kind: [nothing, transpose_again, transpose_as_reshape] for kind in TRANSPOSES},
    **{
        kind: [nothing] for kind in ("NoOp", "Dummy", "Concat", "Split", "Slice", "StridedSlice", "Crop", "Pad", "Tile")
    },
}


def run(graph: Graph) -> Graph:
    return rewrite(graph, RULES)
