"""TFLite models as graphs: `import_file`, `import_bytes`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compass_core import files
from compass_core.reading.budget import Budget
from compassc.graph.graph import Graph
from compassc.graph.states import State, with_states
from compassc.importers.finishing import chosen_outputs, finished
from compassc.importers.onnx.operators.quantised import Quantised
from compassc.importers.refusals import Refusal, RefusedModel, quietly
from compassc.importers.sizes import input_shapes
from compassc.importers.tflite.convert import Conversion
from compassc.importers.tflite.operators.control import left_behind
from compassc.importers.tflite.source import parse
from compassc.importers.values import Refused

if TYPE_CHECKING:
    from compassc.importers.tflite.source import Model
    from compassc.importers.tflite.variables import Variable

Shapes = Mapping[str, Sequence[int]]
LISTING, UNSUPPORTED = "compassc import --framework tflite --operators", "tflite-unsupported"


def import_file(path: Path, shapes: Shapes | None = None, outputs: Sequence[str] = ()) -> Graph:
    """The graph of the TFLite model in a file. `shapes`: of inputs by name, where the model leaves them open; `outputs`:
    tensors of its main graph, instead of its own outputs.

    CompassError when the file is damaged, shapes stay open, or operators are not supported: all of these are named at
    once.
    """
    return import_bytes(files.read(path), shapes, str(path), outputs)


def import_bytes(
    content: bytes, shapes: Shapes | None = None, path: str = "model.tflite", outputs: Sequence[str] = ()
) -> Graph:
    """The graph of the model in the bytes of a file."""
    budget = Budget(path, lambda: len(content))
    return _imported(parse(content, path, budget), shapes or {}, budget, outputs)


@quietly
def _imported(model: Model, shapes: Shapes, budget: Budget, wanted: Sequence[str]) -> Graph:
    path = budget.where
    infos = [model.tensors[i] for i in model.inputs]
    sizes = input_shapes({t.name: t.shape for t in infos}, shapes, path, code="tflite-open-shape")
    b = Conversion(model, strict=not shapes, budget=budget)
    for index, info in zip(model.inputs, infos, strict=True):
        b.input(index, info, sizes[info.name])
    listed = [*model.inputs, *(i for node in model.nodes for i in node.outputs if i >= 0)]
    made = {model.tensors[i].name: i for i in listed}
    own = [model.tensors[i].name for i in model.outputs]
    names = chosen_outputs(own, wanted, [*made], path)
    indices = [made[n] for n in names] if wanted else model.outputs
    outputs: list[Any] = b.run(indices)
    if b.refusals:
        raise RefusedModel(path, b.refusals, code=UNSUPPORTED, listing=LISTING)
    try:
        variables = left_behind(b)
    except Refused as error:
        raise RefusedModel(path, [Refusal(path, "variables", str(error))], code=UNSUPPORTED, listing=LISTING) from None
    outputs += [v.left for v in variables]
    values = [o.value if isinstance(o, Quantised) else o for o in outputs]
    graph = finished(b, [*names, *(v.name for v in variables)], values, path, UNSUPPORTED)
    return with_states(graph, [_state(b, graph, i, v) for i, v in enumerate(variables, len(names))])


def _state(b: Conversion, graph: Graph, output: int, variable: Variable) -> State:
    """A variable as a state of the graph, of which it is the output of this number."""
    begun = variable.begun.value if isinstance(variable.begun, Quantised) else variable.begun
    name = b.laid(begun).name
    return State([t.name for t in graph.inputs].index(name), output, variable.initial)
