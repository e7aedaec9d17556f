"""ONNX models that are run: by the references of layers, or built and on the simulator.

What must be known at import may be an input here: a graph is made for the content of such inputs when they are given,
and kept.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from compass_core.arrays import Array, NumpyDType, has_real_numbers
from compass_core.errors import CompassError
from compass_runtime import Program
from compassc.gbuilder.build import GraphOptions, build_model
from compassc.graph.dtypes import numpy_dtype
from compassc.graph.files import save
from compassc.graph.graph import Graph
from compassc.graph.run import run_graph
from compassc.importers.onnx import import_model
from compassc.importers.onnx.protobuf import array_of, numpy_type
from compassc.importers.onnx.source import checked
from compassc.importers.refusals import RefusedModel
from compassc.importers.values import unfit

if TYPE_CHECKING:
    from onnx import ModelProto

Run = Callable[[Sequence[Array]], list[Array]]
MOST_TRIES = 8
"""Rounds in which inputs are found whose content must be known."""


def by_references(graph: Graph) -> Run:
    """A function that computes a graph by the references of its layers, one after the other."""

    def run(arrays: Sequence[Array]) -> list[Array]:
        made = run_graph(graph, {t.name: a for t, a in zip(graph.inputs, arrays, strict=True)})
        return [made[t.name] for t in graph.outputs]

    return run


def on_simulator(target: str) -> Callable[[Graph], Run]:
    """What makes a function of a graph that runs on the simulator of a target; the graph is built at once."""

    def prepare(graph: Graph) -> Run:
        with tempfile.TemporaryDirectory(prefix="compassc-") as name:
            folder = Path(name)
            weights = save(graph, folder / "float.txt")
            built = folder / "aipu.bin"
            build_model(folder / "float.txt", weights, built, target, GraphOptions(work_dir=folder))
            program = Program.load(built.read_bytes(), trusted=True)
        types = {t.name: numpy_dtype(t.dtype) for t in graph.inputs}

        def run(arrays: Sequence[Array]) -> list[Array]:
            given = {n: a.astype(d) for (n, d), a in zip(types.items(), arrays, strict=True)}
            results = program.create_job().run(given)
            return [results[t.name] for t in graph.outputs]

        return run

    return prepare


class Runnable:
    """A model that is called with arrays, and gives arrays of the model's own types."""

    def __init__(self, model: ModelProto, prepare: Callable[[Graph], Run]) -> None:
        self.model = checked(model, model.graph.name or "model")
        self._prepare = prepare
        initialised = {t.name for t in model.graph.initializer}
        self.inputs = [i.name for i in model.graph.input if i.name not in initialised]
        self.outputs = [o.name for o in model.graph.output]
        self._known: list[str] = []
        self._made: dict[tuple[Any, ...], tuple[Graph, Run]] = {}

    def graph(self, inputs: Sequence[Array]) -> Graph:
        """The graph for these inputs, whose shapes, and content where it must be known, are part of it."""
        return self._for(dict(zip(self.inputs, inputs, strict=True)))[0]

    def __call__(self, inputs: Sequence[object]) -> list[Array]:
        """The outputs for arrays in the order of the model's inputs. CompassError as import and build raise it."""
        if len(inputs) != len(self.inputs):
            raise CompassError(
                f"the model has {len(self.inputs)} inputs ({', '.join(self.inputs)}), not {len(inputs)}",
                code="no-input",
            )
        given = {name: as_array(value) for name, value in zip(self.inputs, inputs, strict=True)}
        _, run = self._for(given)
        made = run([fitting(given[name]) for name in self.inputs if name not in self._known])
        return [a.astype(t) for a, t in zip(made, self._types(), strict=True)]

    def _types(self) -> list[NumpyDType]:
        return [numpy_type(o.type.tensor_type.elem_type) for o in self.model.graph.output]

    def _for(self, given: Mapping[str, Array]) -> tuple[Graph, Run]:
        for _ in range(MOST_TRIES):
            key = tuple((n, a.shape, a.tobytes() if n in self._known else b"") for n, a in given.items())
            if key in self._made:
                return self._made[key]
            try:
                graph = import_model(
                    self.model,
                    {n: a.shape for n, a in given.items() if n not in self._known},
                    {n: a for n, a in given.items() if n in self._known},
                    self.model.graph.name or "model",
                )
            except RefusedModel as error:
                if not set(error.inputs) - set(self._known):
                    raise
                self._known += [n for n in error.inputs if n not in self._known]
                continue
            self._made[key] = graph, self._prepare(graph)
            return self._made[key]
        raise CompassError("the model needs to know more and more of its inputs", code="onnx-unsupported")


def fitting(array: Array) -> Array:
    """An input. CompassError for what are no real numbers, and for whole numbers beyond those that graphs have for its type."""
    if not has_real_numbers(array):
        raise CompassError(f"an input has elements of type {array.dtype}, expected real numbers", code="tensor-dtype")
    number = unfit(array)
    if number is not None:
        raise CompassError(
            f"an input of type {array.dtype} has {number}, which does not fit 32 bits", code="tensor-dtype"
        )
    return array


def as_array(value: object) -> Array:
    """An input as an array: arrays, numbers, and tensors of ONNX. CompassError for lists of different lengths."""
    from onnx import TensorProto

    if isinstance(value, TensorProto):
        return array_of(value)
    try:
        return np.asarray(value)
    except ValueError as error:
        raise CompassError(f"an input is no array: {error}", code="tensor-shape") from None
