"""ONNX models as graphs: `import_file`, `import_model`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compass_core.errors import CompassError, together
from compassc.graph.graph import Graph

if TYPE_CHECKING:
    from onnx import ModelProto

    from compassc.importers.onnx.convert import Conversion, Refusal
    from compassc.importers.values import Value

Shapes = Mapping[str, Sequence[int]]


class RefusedModel(CompassError):
    """Nodes of a model cannot be imported. `refusals`: each of them; `inputs`: inputs of the model whose content would
    have to be known, and nothing else is wrong."""

    def __init__(self, path: str, refusals: Sequence[Refusal], inputs: Sequence[str]) -> None:
        count = len(refusals)
        super().__init__(
            f"'{path}' cannot be imported: {count} node{'s' if count > 1 else ''} that {'are' if count > 1 else 'is'} "
            "not supported",
            code="onnx-unsupported",
            notes=tuple(str(r) for r in refusals),
            help="docs/onnx.md lists what is supported",
        )
        self.refusals = tuple(refusals)
        self.inputs = tuple(inputs)


def import_file(path: Path, shapes: Shapes | None = None) -> Graph:
    """The graph of the ONNX model in a file. `shapes`: of inputs by name, where the model leaves them open.

    CompassError when the file is damaged, a data file is missing, shapes stay open, or nodes are not supported: all of
    these are named at once.
    """
    from compassc.importers.onnx.source import load

    return _imported(load(path), shapes or {}, {}, str(path))


def import_model(
    model: ModelProto, shapes: Shapes | None = None, known: Mapping[str, Any] | None = None, path: str = "model"
) -> Graph:
    """The graph of a model in memory. `known`: inputs whose content is fixed, as arrays; the graph does not have them."""
    from compassc.importers.onnx.source import checked

    return _imported(checked(model, path), shapes or {}, known or {}, path)


def _imported(model: ModelProto, shapes: Shapes, known: Mapping[str, Any], path: str) -> Graph:
    from compassc.graph.dtypes import IR_DTYPES
    from compassc.importers.onnx.convert import Conversion
    from compassc.importers.onnx.source import dtype_of, input_shapes
    from compassc.importers.values import Value, stored_type

    opsets = {("" if o.domain == "ai.onnx" else o.domain): o.version for o in model.opset_import}
    functions = {("" if f.domain == "ai.onnx" else f.domain, f.name): f for f in model.functions}
    b = Conversion(model.graph.name or Path(path).stem, opsets, functions)
    given: dict[str, Any] = {name: Value.of(array) for name, array in known.items()}
    types = {i.name: dtype_of(i) for i in model.graph.input}
    names: dict[str, str] = {}
    for name, shape in input_shapes(model.graph, shapes, known, path).items():
        b.name, dtype = name, stored_type(types[name])
        if dtype not in IR_DTYPES:
            raise CompassError(
                f"'{path}': graphs have no type for the input '{name}' of {dtype}", code="onnx-unsupported"
            )
        tensor = b.graph.input(f"{name}_0", shape, dtype)
        names[tensor.name] = name
        given[name] = b.value(tensor, types[name])
    outputs = b.run(model.graph, given)
    if b.refusals:
        raise RefusedModel(path, b.refusals, _needed(b, names))
    return _finished(b, [o.name for o in model.graph.output], outputs, path)


def _finished(b: Conversion, names: Sequence[str], outputs: Sequence[Any], path: str) -> Graph:
    """The graph with the layers that its outputs need, their axes in the model's order."""
    from compassc.importers.fusions import fused
    from compassc.importers.values import Refused

    tensors, errors = [], []
    for name, value in zip(names, outputs, strict=True):
        b.name = name
        try:
            tensors.append(_output(b, value))
        except Refused as error:
            errors.append(CompassError(f"'{path}': the output '{name}': {error}", code="onnx-unsupported"))
    if errors:
        raise together(errors)
    graph = b.graph.finish(tensors, data_format="NHWC", precision="float32", compat_quantized_model=False)
    return fused(without_unused(graph))


def _output(b: Conversion, value: Value) -> Any:
    """The tensor of an output: made by a layer of its own where the model hands an input or a constant on."""
    from compassc.importers.values import Refused, Value

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


def _needed(b: Conversion, inputs: Mapping[str, str]) -> list[str]:
    """The model's inputs from which all refused nodes want to know the content; none when other nodes are refused."""
    if any(not r.tensors for r in b.refusals):
        return []
    found: list[str] = []
    waiting = [name for r in b.refusals for name in r.tensors]
    seen: set[str] = set()
    layers = {t.name: layer for layer in b.graph.finish([]).layers for t in layer.outputs}
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in inputs:
            found.append(inputs[name])
        waiting += [t.name for t in layers[name].inputs]
    return sorted(set(found))
