"""Layers that only give data another shape, or take a piece of it: where possible their outputs are views of their input,
and nothing runs."""

from __future__ import annotations

from compass_core.aipubin.dtypes import element_dtype
from compassc.gbuilder.memory import ALIGN, nbytes
from compassc.gbuilder.nodes import Node, Nodes
from compassc.graph import LayerError
from compassc.layers.declare import type_of
from compassc.layers.families.movement.parts import offset_of, parts_of
from compassc.layers.layer_checks import check

VIEWS = frozenset({"Reshape", "Squeeze", "Unsqueeze", "Flatten", "NoOp"})
PARTS = frozenset({"Split", "Slice", "StridedSlice", "Crop"})


def make_views(graph: Nodes) -> None:
    """Removes view layers from the graph, except those between the graph's own inputs, outputs and constants."""
    outside = {id(t) for t in (*graph.inputs, *graph.outputs)}
    kept = []
    for node in graph.nodes:
        ends = node.inputs[:1] + node.outputs
        offsets = None if any(id(t) in outside or t.is_constant for t in ends) else _offsets(node)
        if offsets is None:
            kept.append(node)
            continue
        for tensor, offset in zip(node.outputs, offsets, strict=True):
            tensor.memory_offset().set_base_offset(node.inputs[0].memory_offset())
            tensor.memory_offset().relative_offset = offset
    graph.nodes[:] = kept


def _in_order(node: Node) -> bool:
    """Whether the layer is as its type declares; where it is not, its kernel says why."""
    try:
        check(type_of(node.type.name), node.layer)
    except LayerError:
        return False
    return True


def _offsets(node: Node) -> list[int] | None:
    """Where each output begins in the input, in bytes; None where the layer has to run."""
    if node.type.name in VIEWS:
        same = len(node.outputs) == 1 and nbytes(node.inputs[0]) == nbytes(node.outputs[0])
        return [0] if same and str(node.inputs[0].dtype) == str(node.outputs[0].dtype) and _in_order(node) else None
    if node.type.name not in PARTS or any(not nbytes(t) for t in (*node.inputs, *node.outputs)):
        return None
    try:
        boxes = parts_of(node.layer)
    except (LayerError, ValueError):
        return None  # its kernel says why
    if boxes is None or [[size for _, size in box] for box in boxes] != [t.shape for t in node.outputs]:
        return None
    size = element_dtype(str(node.inputs[0].dtype)).size
    places = [offset_of(box, node.inputs[0].shape) for box in boxes]
    found = [place * size for place in places if place is not None]
    # where kernels may expect a tensor of its own to begin
    return found if len(found) == len(places) and all(at % ALIGN == 0 for at in found) else None
