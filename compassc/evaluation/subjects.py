"""What an evaluation compares: the model as its framework computes it, the float graph, the graph that was built by its
exact references, and the aipu.bin on the simulator. Each gives real numbers for a sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from compass_core.arrays import Array
from compass_core.errors import CompassError
from compassc.graph import Graph
from compassc.layers.declare import evaluate
from compassc.layers.real_values import to_real
from compassc.models.ends import short_name
from compassc.models.model import Model
from compassc.quantizer import execute

FRAMEWORK, FLOATS, INTEGERS, SIMULATOR = "framework", "float graph", "quantised graph", "simulator"

Values = Mapping[str, Array]
UNFUSED = {"session.disable_quant_qdq": "1", "session.x64quantprecision": "1"}
"""Options of ONNX Runtime that have quantised models computed as they are written: float operators between QuantizeLinear and
DequantizeLinear. Fused kernels add pairs of products in 16 bits, which saturates, on processors without VNNI."""


class Framework:
    """An ONNX model as ONNX Runtime computes it, or ONNX's reference evaluator where that is not installed."""

    def __init__(self, model: bytes, graph: Graph) -> None:
        """`model`: the file's content; `graph`: what was imported of it, whose samples are given."""
        import onnx

        self._graph = graph
        loaded = onnx.load_from_string(model)
        known = {t.name for t in loaded.graph.initializer}
        self._inputs = _by_input(graph, [i.name for i in loaded.graph.input if i.name not in known])
        self._dtypes = {
            i.name: onnx.helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type) for i in loaded.graph.input
        }
        self.title, self._run = _session(model, loaded)

    def run(self, sample: Values) -> list[Array]:
        """The outputs in the model's order."""
        given = {name: sample[tensor].astype(self._dtypes[name]) for name, tensor in self._inputs.items()}
        return [np.asarray(a) for a in self._run(None, given)]


def _by_input(graph: Graph, names: Sequence[str]) -> dict[str, str]:
    """The tensors of a graph's inputs by the names that the model has for them, which the graph writes in another way where
    they have blanks and the like: those are in the same order."""
    own = {short_name(graph, t): t.name for t in graph.inputs}
    found = {name: own.pop(name) for name in names if name in own}
    others = [name for name in names if name not in found]
    if len(others) != len(own):
        raise CompassError(
            f"the inputs of the model ({', '.join(names)}) are not those of the graph",
            code="evaluation-data",
            help="--no-reference leaves out the model's own framework",
        )
    return found | dict(zip(others, own.values(), strict=True))


def _session(model: bytes, loaded: object) -> tuple[str, Any]:
    """The name of what computes, and its `run(outputs, inputs)`."""
    try:
        import onnxruntime
    except ImportError:
        from onnx.reference import ReferenceEvaluator

        return "onnx.reference", ReferenceEvaluator(loaded).run
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    for key, value in UNFUSED.items():
        options.add_session_config_entry(key, value)
    try:
        return "ONNX Runtime", onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run
    except Exception as error:
        raise CompassError(
            f"ONNX Runtime does not take the model: {str(error)[:300]}",
            code="evaluation-reference",
            help="--no-reference leaves it out",
        ) from error


def framework_of(model: Model) -> bytes | None:
    """The content of the ONNX model that a model was made from; None where it was none, or the file is not there."""
    source = model.source
    if isinstance(source, (str, Path)):
        path = Path(source)
        if path.suffix.lower() != ".onnx" or not path.is_file():
            return None
        from compassc.importers.onnx.source import load

        source = load(path)  # data in files of their own are part of it
    return bytes(source.SerializeToString()) if type(source).__name__ == "ModelProto" else None


class Subjects:
    """All of them for a model, each made when it is first asked for."""

    def __init__(self, model: Model, framework: bytes | None) -> None:
        self.model = model
        self._framework = framework

    @property
    def names(self) -> list[str]:
        """Those that there are, in the order they are compared."""
        first = [FRAMEWORK] if self._framework is not None else []
        floats = [FLOATS] if self.model.floats is not None else []
        return [*first, *floats, *([INTEGERS] if self.model.quantised else []), SIMULATOR]

    def title(self, name: str) -> str:
        """How a subject is called in a report."""
        if name == FRAMEWORK:
            return self.framework.title
        return f"simulator, {self.model.target}" if name == SIMULATOR else name

    @cached_property
    def framework(self) -> Framework:
        assert self._framework is not None, "there is a model of the framework"
        return Framework(self._framework, self.model.graph)

    @cached_property
    def floats(self) -> execute.Rows:
        """Every tensor of the float graph."""
        assert self.model.floats is not None, "there is a float graph"
        return execute.Rows(self.model.floats)

    @cached_property
    def integers(self) -> execute.Rows:
        """Every tensor of the graph that was built, its integers, by the exact references."""
        return execute.Rows(self.model.graph, evaluate, exact=True)

    def at_once(self, samples: Sequence[Values]) -> int:
        """How many samples are computed together, found out with the first two."""
        if self.model.floats is not None:
            return self.floats.at_once(samples)
        return self.integers.at_once([self.model.raw_inputs(sample) for sample in samples[:2]])

    def real(self, values: Values) -> dict[str, Array]:
        """The numbers that the tensors of the built graph stand for."""
        known = self.model.graph.tensors()
        return {name: to_real(known[name], array) for name, array in values.items() if name in known}


def outputs_of(graph: Graph, values: Values) -> list[list[Array]]:
    """Of each sample the outputs of a graph among its tensors, as real numbers; the samples' values lie one behind the
    other."""
    apart = [values[t.name].reshape(-1, *t.shape) for t in graph.outputs]
    return [[to_real(t, row) for t, row in zip(graph.outputs, rows, strict=True)] for rows in zip(*apart, strict=True)]
