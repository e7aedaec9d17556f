"""ONNX models as graphs: `import_file`, `import_model`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compass_core.reading.budget import Budget
from compassc.graph.dtypes import IR_DTYPES
from compassc.graph.graph import Graph
from compassc.importers.finishing import chosen_outputs, finished
from compassc.importers.onnx.apart import Apart
from compassc.importers.onnx.convert import Conversion
from compassc.importers.onnx.source import checked, dtype_of, input_dims, load_apart
from compassc.importers.refusals import UNKNOWN, Refusal, RefusedModel, quietly
from compassc.importers.sizes import input_shapes
from compassc.importers.values import Refused, Value, stored_type

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto

    from compassc.graph.tensor import Tensor

Shapes = Mapping[str, Sequence[int]]


LISTING, UNSUPPORTED = "compassc import --operators", "onnx-unsupported"


def import_file(path: Path, shapes: Shapes | None = None, outputs: Sequence[str] = ()) -> Graph:
    """The graph of the ONNX model in a file. `shapes`: of inputs by name, where the model leaves them open; `outputs`:
    tensors of its main graph, instead of its own outputs.

    CompassError when the file is damaged, a data file is missing, shapes stay open, or nodes are not supported: all of
    these are named at once.
    """
    return _imported(*load_apart(path), shapes or {}, {}, str(path), outputs)


def import_model(
    model: ModelProto,
    shapes: Shapes | None = None,
    known: Mapping[str, object] | None = None,
    path: str = "model",
    outputs: Sequence[str] = (),
) -> Graph:
    """The graph of a model in memory. `known`: inputs whose content is fixed, as arrays; the graph does not have them.
    `outputs`: as for a file."""
    return _imported(checked(model, path), {}, shapes or {}, known or {}, path, outputs)


@quietly
def _imported(
    model: ModelProto, apart: Apart, shapes: Shapes, known: Mapping[str, Any], path: str, wanted: Sequence[str]
) -> Graph:
    opsets = {("" if o.domain == "ai.onnx" else o.domain): o.version for o in model.opset_import}
    functions = {("" if f.domain == "ai.onnx" else f.domain, f.name): f for f in model.functions}
    b = Conversion(
        model.graph.name or Path(path).stem,
        opsets,
        functions,
        Budget(path, lambda: model.ByteSize() + sum(map(len, apart.values()))),
    )
    given: dict[str, Any] = {name: Value.of(array) for name, array in known.items()}
    items = {i.name: i for i in model.graph.input}
    names: dict[str, str] = {}
    dims = input_dims(model.graph, known, path)
    for name, shape in input_shapes(dims, shapes, path, code="onnx-open-shape").items():
        b.name = name
        try:
            tensor = _input(b, items[name], shape)
        except Refused as error:
            b.refusals.append(Refusal(f"the input '{name}'", "graph", str(error)))
            given[name] = UNKNOWN
            continue
        names[tensor.name] = name
        given[name] = b.value(tensor, dtype_of(items[name]))
    made = [*given, *(name for node in model.graph.node for name in node.output if name)]
    names_out = chosen_outputs([o.name for o in model.graph.output], wanted, made, path)
    outputs = b.run(model.graph, given, names_out, apart)
    if b.refusals:
        raise RefusedModel(path, b.refusals, _needed(b, names), code=UNSUPPORTED, listing=LISTING)
    return finished(b, names_out, outputs, path, UNSUPPORTED)


def _input(b: Conversion, item: ValueInfoProto, shape: Sequence[int]) -> Tensor:
    """An input as a tensor of the graph. Refused when graphs do not have its type."""
    dtype = stored_type(dtype_of(item))
    if dtype not in IR_DTYPES:
        raise Refused(f"graphs have no type for {'text' if dtype == 'object' else dtype}")
    return b.graph.input(f"{item.name}_0", shape, dtype)


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
