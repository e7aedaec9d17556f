"""The end of an import: the graph with the layers that its outputs need, and fused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from compass_core.errors import CompassError, UsageError, together
from compass_core.errors.suggest import help_for
from compassc.graph.graph import Graph
from compassc.importers.building import Building
from compassc.importers.values import Refused, Value


def chosen_outputs(own: Sequence[str], wanted: Sequence[str], tensors: Sequence[str], path: str) -> list[str]:
    """The names of the graph's outputs: the model's `own`, or those that the user wants of its `tensors`."""
    for name in wanted:
        if name not in tensors:
            raise UsageError(
                f"'{path}' has no tensor '{name}'", code="no-output", help=help_for(name, tensors, "tensors")
            )
    return list(wanted or own)


def finished(b: Building, names: Sequence[str], outputs: Sequence[Any], path: str, code: str) -> Graph:
    """The graph with the layers that its outputs need, their axes in the model's order. `code`: of what is wrong."""
    from compassc.importers.fusions import fused

    tensors, errors = [], []
    for name, value in zip(names, outputs, strict=True):
        b.name = name
        try:
            tensors.append(_output(b, value))
        except Refused as error:
            errors.append(CompassError(f"'{path}': the output '{name}': {error}", code=code))
    if errors:
        raise together(errors)
    graph = b.graph.finish(tensors, data_format="NHWC", precision="float32", compat_quantized_model=False)
    return fused(without_unused(graph))


def _output(b: Building, value: Any) -> Any:
    """The tensor of an output: made by a layer of its own where the model hands an input or a constant on."""
    if not isinstance(value, Value):
        raise Refused("it is a sequence of tensors")
    tensor = b.laid(value)
    if b.producer(tensor).type in ("Input", "Constant"):
        return b.layer("Reshape", [tensor], tensor.shape, tensor.dtype, shape=list(tensor.shape))
    return tensor


def without_unused(graph: Graph) -> Graph:
    """The graph without layers that no output needs; inputs stay."""
    needed = {t.name for t in graph.outputs}
    kept = []
    for layer in reversed(graph.layers):
        if layer.type == "Input" or any(t.name in needed for t in layer.outputs):
            needed.update(t.name for t in layer.inputs)
            kept.append(layer)
    return replace(graph, layers=tuple(reversed(kept)))
