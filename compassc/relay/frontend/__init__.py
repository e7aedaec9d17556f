"""Models of other frameworks as programs: `from_onnx`, `from_pytorch`, `from_tflite`.

Files are read, checked and walked over by `compassc.importers`, which makes graphs of layers of the same models; operators are declared as
there, by functions that make expressions (`operators`), and what ONNX defines by other operators comes of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from compass_core import files
from compass_core.errors import CompassError, UsageError
from compass_core.errors.suggest import help_for
from compass_core.reading.budget import Budget
from compass_runtime.ndarray import NDArray
from compassc.importers import tflite
from compassc.importers.onnx.source import checked, dtype_of, load
from compassc.importers.refusals import UNKNOWN, Refusal, RefusedModel, Unknown, quietly
from compassc.importers.sizes import input_shapes
from compassc.importers.tflite import source as tflite_source
from compassc.importers.torch import as_onnx
from compassc.importers.values import Refused
from compassc.relay.bind import bind
from compassc.relay.expr import Expr, Function, Tuple, Var
from compassc.relay.frontend.layers import program_of
from compassc.relay.frontend.quantised_tflite import QuantisedModel
from compassc.relay.frontend.terms import Expressions, Term
from compassc.relay.module import MAIN, IRModule
from compassc.relay.passes import infer_type
from compassc.relay.types import Open, TensorType
from compassc.relay.variables import free_vars

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto

Shapes = Mapping[str, Sequence[Any]]
Program = tuple[IRModule, dict[str, NDArray]]
__all__ = ["from_onnx", "from_pytorch", "from_tflite"]
TFLITE = "tflite-unsupported"


def from_onnx(
    model: ModelProto | str | Path,
    shape: Shapes | None = None,
    dtype: str | Mapping[str, str] = "float32",
    opset: int | None = None,
    freeze_params: bool = True,
) -> Program:
    """A typed module whose `main` computes an ONNX model, and its parameters by name.

    `shape`: of inputs by name; what neither it nor the model says, and what is below 0, is open (`Any`). `dtype`: of inputs whose type the
    model does not say. `opset`: instead of the model's. Initialisers are constants, without `freeze_params` parameters of `main`, whose
    content is used where it has to be known, too. CompassError for a damaged file; RefusedModel with each node that is no expression.
    """
    path = str(model) if isinstance(model, (str, Path)) else model.graph.name or "model"
    read = load(Path(model)) if isinstance(model, (str, Path)) else checked(model, path)
    return _imported(read, shape or {}, dtype, opset, freeze_params, path)


def from_pytorch(
    script_module: object, input_infos: Sequence[tuple[str, object]] = (), freeze_params: bool = True
) -> Program:
    """A module whose `main` computes a program of `torch.export` (an ExportedProgram, or the file of one), by way of ONNX.

    `input_infos`: names for its inputs in order, with their shapes, which must be those of the program (open ones may be given).
    """
    model = as_onnx(script_module)
    inputs = [i for i in model.graph.input if i.name not in {t.name for t in model.graph.initializer}]
    if len(input_infos) > len(inputs):
        raise UsageError(f"the program has {len(inputs)} inputs, {len(input_infos)} are named", code="no-input")
    renamed = {i.name: name for i, (name, _) in zip(inputs, input_infos, strict=False)}
    shapes = {i.name: _shape_of(info) for i, (_, info) in zip(inputs, input_infos, strict=False)}
    module, params = _imported(model, shapes, "float32", None, freeze_params, "program")
    return (_renamed(module, renamed), params) if renamed else (module, params)


def from_tflite(
    model: bytes | str | Path | object, shape_dict: Shapes | None = None, dtype_dict: Mapping[str, str] | None = None
) -> Program:
    """A typed module whose `main` computes a TFLite model (its bytes, its file, or the object of the package tflite), whose weights
    are constants.

    Of quantised models inputs and results are integers, and operators are computed on them as TFLite does (`qnn`), or of the real
    numbers that they stand for. Otherwise the importer of graphs reads the model; its layers become what they are by operators.
    `shape_dict`: of inputs that it leaves open. RefusedModel with each operator or layer that has no such definition.
    """
    content, path = _bytes_of(model)
    budget = Budget(path, lambda: len(content))
    told = tflite_source.parse(content, path, budget)
    inputs, outputs = ([told.tensors[i] for i in listed] for listed in (told.inputs, told.outputs))
    b = Expressions(path, {}, {}, budget)
    for t in (*inputs, *outputs):
        if t.dtype.name not in ("float32", "int32") and not t.scale.size:
            b.refusals.append(Refusal(f"the tensor '{t.name}'", "graph", f"graphs have no {t.dtype}"))
        elif dtype_dict and dtype_dict.get(t.name, t.dtype.name) != t.dtype.name:
            raise UsageError(f"'{t.name}' is {t.dtype} in the model, not {dtype_dict[t.name]}", code="tensor-shape")
    if b.refusals:
        raise RefusedModel(path, b.refusals, code=TFLITE)
    if any(t.scale.size for t in told.tensors):
        return _quantised(b, told, shape_dict or {})
    graph = tflite.import_bytes(content, shape_dict, path)
    variables, made = program_of(b, graph, [t.name for t in inputs])
    if len(graph.outputs) != len(outputs):
        b.refusals.append(Refusal("its variables", "graph", "programs keep nothing from run to run"))
    if b.refusals:
        raise RefusedModel(path, b.refusals, code=TFLITE)
    return _program(b, variables, made)


@quietly
def _quantised(b: Expressions, model: tflite_source.Model, shapes: Shapes) -> Program:
    """The program of a quantised TFLite model."""
    walk = QuantisedModel(b, model, strict=not shapes)
    infos = [model.tensors[i] for i in model.inputs]
    sizes = input_shapes({t.name: t.shape for t in infos}, shapes, b.budget.where, code="tflite-open-shape")
    variables = [Var(t.name, TensorType(sizes[t.name], t.dtype.name)) for t in infos]
    walk.items.update({i: b.term(v) for i, v in zip(model.inputs, variables, strict=True)})
    made = walk.run()
    if b.refusals:
        raise RefusedModel(b.budget.where, b.refusals, code=TFLITE)
    return _program(b, variables, [t.expr for t in made])


def _bytes_of(model: object) -> tuple[bytes, str]:
    """The bytes of a TFLite model, and what it is called in errors."""
    if isinstance(model, (str, Path)):
        return files.read(Path(model)), str(model)
    if isinstance(model, (bytes, bytearray)):
        return bytes(model), "model.tflite"
    table = getattr(model, "_tab", None)
    if table is None:
        raise UsageError(
            f"a {type(model).__name__} is no TFLite model", code="usage", help="give its bytes or its file"
        )
    return bytes(table.Bytes), "model.tflite"


def _shape_of(info: Any) -> Sequence[int]:
    """The shape of what names an input: a shape, or a shape and a type."""
    paired = isinstance(info, tuple) and len(info) == 2 and isinstance(info[1], str)
    found: Sequence[int] = info[0] if paired else info
    return found


def _renamed(module: IRModule, names: Mapping[str, str]) -> IRModule:
    main = module[MAIN]
    params = [Var(names.get(p.name_hint, p.name_hint), p.type_annotation) for p in main.params]
    body = bind(main.body, dict(zip(main.params, params, strict=True)))
    return infer_type.run(IRModule({MAIN: Function(params, body)}))


@quietly
def _imported(
    model: ModelProto, shapes: Shapes, dtype: str | Mapping[str, str], opset: int | None, frozen: bool, path: str
) -> Program:
    opsets = {("" if o.domain == "ai.onnx" else o.domain): o.version for o in model.opset_import}
    if opset is not None:
        opsets[""] = opset
    functions = {("" if f.domain == "ai.onnx" else f.domain, f.name): f for f in model.functions}
    b = Expressions(model.graph.name or "model", opsets, functions, Budget(path, model.ByteSize), frozen)
    initialised = {t.name for t in model.graph.initializer} | {t.values.name for t in model.graph.sparse_initializer}
    items = {i.name: i for i in model.graph.input if i.name not in initialised}
    for name in shapes:
        if name not in items and name not in initialised:
            raise UsageError(
                f"'{path}' has no input '{name}'", code="no-input", help=help_for(name, list(items), "inputs")
            )
    variables: list[Var] = []
    given: dict[str, Term | Unknown] = {}
    for name, item in items.items():
        b.name = name
        try:
            given[name] = _input(b, item, shapes.get(name), dtype, variables)
        except Refused as error:
            b.refusals.append(Refusal(f"the input '{name}'", "graph", str(error)))
            given[name] = UNKNOWN
    outputs = b.run(model.graph, given)
    if b.refusals:
        named = [name for r in b.refusals for name in r.tensors]
        known = sorted(set(named)) if all(r.tensors for r in b.refusals) and set(named) <= set(items) else ()
        raise RefusedModel(path, b.refusals, known, code="onnx-unsupported")
    return _program(
        b, variables, [_output(b, o, item.name) for o, item in zip(outputs, model.graph.output, strict=True)]
    )


def _input(
    b: Expressions,
    item: ValueInfoProto,
    shape: Sequence[object] | None,
    dtype: str | Mapping[str, str],
    variables: list[Var],
) -> Term:
    if item.type.WhichOneof("value") != "tensor_type":
        raise Refused("it is no tensor")
    tensor = item.type.tensor_type
    own = [d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else -1 for d in tensor.shape.dim]
    if shape is None and not tensor.HasField("shape"):
        raise Refused("the model does not say how many dimensions it has; give its shape")
    if shape is not None and tensor.HasField("shape"):
        fits = len(shape) == len(own) and all(
            d < 0 or not isinstance(s, int) or s in (d, -1) for d, s in zip(own, shape, strict=True)
        )
        if not fits:
            raise UsageError(f"the input '{item.name}' is {own} in the model, not {list(shape)}", code="tensor-shape")
        own = [d if d >= 0 else s for d, s in zip(own, shape, strict=True)]
    elif shape is not None:
        own = list(shape)
    named = dtype if isinstance(dtype, str) else dtype.get(item.name, "float32")
    kind = dtype_of(item) if tensor.elem_type else np.dtype(named)
    if kind.kind == "O":
        raise Refused("text is not supported")
    try:
        v = Var(item.name, TensorType([d if isinstance(d, int) and d >= 0 else Open() for d in own], kind.name))
    except (CompassError, KeyError) as error:
        raise Refused(f"programs have no tensors of {kind}: {error}") from None
    variables.append(v)
    return b.term(v)


def _output(b: Expressions, made: object, name: str) -> Expr:
    """The expression of an output: of a sequence the tuple of its tensors."""
    if isinstance(made, Term):
        return made.expr
    if isinstance(made, list):
        return Tuple([_output(b, m, name) for m in made])
    raise CompassError(f"the output '{name}' is not made", code="onnx-unsupported")


def _program(b: Expressions, variables: Sequence[Var], outputs: Sequence[Expr]) -> Program:
    body = outputs[0] if len(outputs) == 1 else Tuple(outputs)
    used = set(free_vars(body))
    params = {name: pair for name, pair in b.params.items() if pair[0] in used}
    function = Function([*variables, *(v for v, _ in params.values())], body)
    module = infer_type.run(IRModule({MAIN: function}))
    return module, {name: NDArray(np.ascontiguousarray(a)) for name, (_, a) in params.items()}
