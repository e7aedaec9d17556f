"""What goes into a graph: arrays of users as the tensors of its inputs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from compass_core import samples
from compass_core.arrays import Array, has_real_numbers
from compass_core.errors import CompassError, UsageError
from compassc.graph import Graph, Tensor
from compassc.graph.dtypes import numpy_dtype
from compassc.graph.states import State, shown_inputs, states_of, with_states
from compassc.layers.real_values import stands_for_itself, to_raw

Sample = dict[str, Array]
"""Inputs by the names of their tensors, in the graph's shapes."""


def is_quantised(graph: Graph) -> bool:
    """Whether a graph has tensors of integers that stand for real numbers."""
    return any(not stands_for_itself(t) for t in graph.tensors().values())


def with_real_inputs(graph: Graph) -> Graph:
    """The inputs of a graph as they are for users, who have real numbers where the graph has integers; nothing else."""
    inputs = tuple(t if stands_for_itself(t) else Tensor(t.name, t.shape, "float32") for t in graph.inputs)
    layers = [replace(graph.producer()[t.name], outputs=(t,)) for t in inputs]
    states = [State(s.input, s.input, s.initial) for s in states_of(graph)]
    bare = replace(graph, inputs=inputs, outputs=inputs, layers=tuple(layers), subgraphs={}, attributes={})
    return with_states(bare, states)


def short_name(graph: Graph, tensor: Tensor) -> str:
    """What the model calls an input, of which the tensor is NAME_0."""
    layer = graph.producer()[tensor.name].name
    return layer if layer != tensor.name else tensor.name.removesuffix("_0") or layer


def named(graph: Graph, given: Sequence[object] | Mapping[str, object]) -> dict[str, Array]:
    """Arrays by the names of the tensors of a graph's inputs; `given` in their order, or by their or the model's names.
    States may be left out, those of arrays in order all or none.

    CompassError for names that no input has, for inputs that are missing, and for what are no numbers.
    """
    needed = shown_inputs(graph)
    if not isinstance(given, Mapping):
        tensors = graph.inputs if len(given) == len(graph.inputs) else needed
        if len(given) != len(tensors):
            raise CompassError(
                f"the model takes {len(tensors)} input{'s' * (len(tensors) != 1)} ({_listed(graph)}), but {len(given)} "
                f"{'is' if len(given) == 1 else 'are'} given",
                code="no-input",
            )
        return {t.name: _numbers(value, short_name(graph, t)) for t, value in zip(tensors, given, strict=True)}
    rest = {name: _numbers(value, name) for name, value in given.items()}
    found: dict[str, Array] = {}
    for tensor in graph.inputs:
        name = tensor.name if tensor.name in rest else short_name(graph, tensor)
        if name not in rest and tensor not in needed:
            continue
        if name not in rest:
            raise CompassError(
                f"the input '{short_name(graph, tensor)}' is missing", code="no-input", help=f"inputs: {_listed(graph)}"
            )
        found[tensor.name] = rest.pop(name)
    if rest:
        wrong = ", ".join(f"'{name}'" for name in rest)
        raise CompassError(f"the model has no input {wrong}", code="no-input", help=f"its inputs are {_listed(graph)}")
    return found


def _numbers(value: object, name: str) -> Array:
    """An array, or what makes one. CompassError where it has no real numbers."""
    try:
        array: Array = np.asarray(value)
    except ValueError as error:
        raise CompassError(f"the input '{name}' makes no array: {error}", code="tensor-dtype") from None
    if not has_real_numbers(array):
        found = f"elements of type {array.dtype}" if array.dtype != object else f"objects ({type(value).__name__})"
        raise CompassError(f"the input '{name}' has {found}, expected real numbers", code="tensor-dtype")
    return array


def samples_of(graph: Graph, arrays: Mapping[str, Array]) -> Iterator[Sample]:
    """The runs that arrays are for, by the names of a graph's inputs; see `compass_core.samples`."""
    given = [t for t in graph.inputs if t.name in arrays]
    names = {t.name: short_name(graph, t) for t in given}
    return samples.samples_of({t.name: t.shape for t in given}, arrays, names.__getitem__)


def the_sample(graph: Graph, given: Sequence[object] | Mapping[str, object]) -> Sample:
    """The one run that arrays are for; see `named` and `samples_of`. CompassError where they are for another number."""
    found = list(samples_of(graph, named(graph, given)))
    if len(found) != 1:
        raise CompassError(
            f"the arrays have {len(found)} samples, but one is looked at", code="tensor-size", help="pass one of them"
        )
    return found[0]


NAN = ("refuse", "warn")
"""What becomes of NaN for tensors of integers: an error, or the element 0 and a warning."""


def elements_of(tensor: Tensor, numbers: Array, name: str, nan: str) -> Array:
    """The elements of an input for real numbers; `nan` is one of NAN. CompassError for those that it has no element for:
    NaN, and whole numbers beyond integers that stand for themselves."""
    if nan not in NAN:
        raise UsageError(f"nan is '{nan}', expected one of {', '.join(NAN)}", code="usage", help="nan='refuse'")
    if tensor.is_integer and numbers.dtype.kind == "f" and (lost := int(np.isnan(numbers).sum())):
        said = f"the input '{name}' has {lost} NaN, which no {tensor.dtype} stands for"
        if nan == "refuse":
            raise CompassError(said, code="tensor-dtype", help="give numbers, or nan='warn': NaN is then the element 0")
        warnings.warn(f"{said}: 0 is taken", stacklevel=4)
    if tensor.is_integer and numbers.dtype.kind in "iu" and stands_for_itself(tensor) and numbers.size:
        limits, low, high = np.iinfo(numpy_dtype(tensor.dtype)), int(numbers.min()), int(numbers.max())
        if low < limits.min or high > limits.max:
            beyond = low if low < limits.min else high
            raise CompassError(
                f"the input '{name}' has {beyond}, which does not fit {tensor.dtype}",
                code="tensor-dtype",
                help=f"it takes {limits.min} to {limits.max}",
            )
    return to_raw(tensor, numbers)


def _listed(graph: Graph) -> str:
    return ", ".join(
        f"{short_name(graph, t)}: {t.dtype} {'x'.join(map(str, t.shape)) or 'scalar'}" for t in graph.inputs
    )
