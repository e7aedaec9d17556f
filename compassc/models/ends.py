"""What goes into a graph: arrays of users as the tensors of its inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from compass_core.errors import CompassError
from compassc.graph import Graph, Tensor
from compassc.layers.arithmetic import Array
from compassc.layers.reals import stands_for_itself

Sample = dict[str, Array]
"""Inputs by the names of their tensors, in the graph's shapes."""


def is_quantised(graph: Graph) -> bool:
    """Whether a graph has tensors of integers that stand for real numbers."""
    return any(not stands_for_itself(t) for t in graph.tensors().values())


def with_real_inputs(graph: Graph) -> Graph:
    """The inputs of a graph as they are for users, who have real numbers where the graph has integers; nothing else."""
    inputs = tuple(t if stands_for_itself(t) else Tensor(t.name, t.shape, "float32") for t in graph.inputs)
    layers = [replace(graph.producer()[t.name], outputs=(t,)) for t in inputs]
    return replace(graph, inputs=inputs, outputs=inputs, layers=tuple(layers), subgraphs={})


def short_name(graph: Graph, tensor: Tensor) -> str:
    """What the model calls an input, of which the tensor is NAME_0."""
    layer = graph.producer()[tensor.name].name
    return layer if layer != tensor.name else tensor.name.removesuffix("_0") or layer


def named(graph: Graph, given: Sequence[Any] | Mapping[str, Any]) -> dict[str, Array]:
    """Arrays by the names of the tensors of a graph's inputs; `given` in their order, or by their or the model's names.

    CompassError for names that no input has, and for inputs that are missing.
    """
    tensors = graph.inputs
    if not isinstance(given, Mapping):
        if len(given) != len(tensors):
            raise CompassError(
                f"the model takes {len(tensors)} inputs ({_listed(graph)}), but {len(given)} are given", code="no-input"
            )
        return {t.name: np.asarray(value) for t, value in zip(tensors, given, strict=True)}
    rest = {name: np.asarray(value) for name, value in given.items()}
    found: dict[str, Array] = {}
    for tensor in tensors:
        name = tensor.name if tensor.name in rest else short_name(graph, tensor)
        if name not in rest:
            raise CompassError(
                f"the input '{short_name(graph, tensor)}' is missing", code="no-input", help=f"inputs: {_listed(graph)}"
            )
        found[tensor.name] = rest.pop(name)
    if rest:
        wrong = ", ".join(f"'{name}'" for name in rest)
        raise CompassError(f"the model has no input {wrong}", code="no-input", help=f"its inputs are {_listed(graph)}")
    return found


def samples_of(graph: Graph, arrays: Mapping[str, Array]) -> Iterator[Sample]:
    """The runs that arrays are for: one where they have the shapes of the inputs, else one for each index of the first
    axis, which the graph has 1 of, or not at all. CompassError for other shapes."""
    counts = {t.name: _count(t, arrays[t.name], short_name(graph, t)) for t in graph.inputs}
    many = {n for n in counts.values() if n is not None}
    if len(many) > 1:
        shown = ", ".join(f"'{name}' {n}" for name, n in counts.items() if n is not None)
        raise CompassError(f"the inputs have different numbers of samples: {shown}", code="tensor-size")
    if not many:
        yield {t.name: arrays[t.name] for t in graph.inputs}
        return
    for i in range(many.pop()):
        yield {
            t.name: arrays[t.name] if counts[t.name] is None else arrays[t.name][i].reshape(t.shape)
            for t in graph.inputs
        }


def _count(tensor: Tensor, array: Array, name: str) -> int | None:
    """How many samples an array has; None where it is one, as it stands."""
    if array.shape == tensor.shape:
        return None
    one_each = tensor.shape[:1] == (1,) and array.shape[1:] == tensor.shape[1:]
    if array.ndim and (one_each or array.shape[1:] == tensor.shape):
        return int(array.shape[0])
    want, have = ("x".join(map(str, shape)) or "scalar" for shape in (tensor.shape, array.shape))
    raise CompassError(
        f"the input '{name}' is {want}, but the array is {have}",
        code="tensor-size",
        help=f"pass {want}, or several of them along a first axis",
    )


def _listed(graph: Graph) -> str:
    return ", ".join(f"{short_name(graph, t)}: {t.dtype} {'x'.join(map(str, t.shape))}" for t in graph.inputs)
