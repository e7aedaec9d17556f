"""ONNX files: read, checked, with the shapes of their inputs."""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from compass_core import files
from compass_core.arrays import NumpyDType
from compass_core.errors import CompassError
from compass_core.files.pieces import Pieces
from compassc.importers.onnx.apart import Apart, taken_apart
from compassc.importers.onnx.external import load_external, may_lie_apart, refuse_external
from compassc.importers.onnx.protobuf import numpy_type
from compassc.importers.placeholders import START, placeholder
from compassc.importers.sizes import Dims

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, TensorShapeProto, ValueInfoProto

OLDEST = 7
"""The first opset whose operators are known here; older models are converted to it."""


def onnx_package() -> ModuleType:
    """The package onnx. CompassError that says how to install it."""
    try:
        import onnx
    except ImportError:
        raise CompassError(
            "importing ONNX models needs the package onnx",
            code="missing-package",
            help='pip install "compassc[onnx]", or: pip install onnx',
        ) from None
    return onnx


def load(path: Path) -> ModelProto:
    """The model in a file, with the content of its external files, in a form that the checker of onnx accepts."""
    model, apart = load_apart(path)
    _put_in(model, apart)
    return model


def load_apart(path: Path) -> tuple[ModelProto, Apart]:
    """As `load`; what stays in files is apart."""
    onnx_package()  # that it is missing is said before anything about the file
    content = files.stored(path)
    if found := placeholder(bytes(content[:START])):
        raise _damaged(path, f"it holds {found.what}", found.help)
    try:
        model, apart = _parsed(content)
    except (ValueError, RuntimeError, _decode_error()) as error:
        raise _damaged(path, str(error)) from None
    if not model.HasField("graph") or not (model.graph.node or model.graph.output):
        raise _damaged(path, "it holds no graph")
    load_external(model, path, apart)
    return checked(model, str(path), apart), apart


def _parsed(content: bytes | Pieces) -> tuple[ModelProto, Apart]:
    """The model in the bytes of a file."""
    onnx = onnx_package()
    apart: Apart = {}
    if isinstance(content, Pieces):
        try:
            content, apart = taken_apart(content)
        except ValueError:  # it is for the package to say what that is
            content = bytes(content)
    model: ModelProto = onnx.load_model_from_string(content)
    fitting = {i: part for i, part in apart.items() if may_lie_apart(model.graph.initializer[i], len(part))}
    _put_in(model, {i: part for i, part in apart.items() if i not in fitting})
    return model, fitting


def _put_in(model: ModelProto, apart: Apart) -> None:
    """Makes what lies apart from a model part of it."""
    for i in sorted(apart):
        model.graph.initializer[i].raw_data = bytes(apart.pop(i))


def _decode_error() -> type[Exception]:
    """The exception that protobuf raises for bytes that are not a message."""
    from google.protobuf.message import DecodeError

    error: type[Exception] = DecodeError
    return error


def _damaged(path: object, why: str, help: str = "export the model again") -> CompassError:
    return CompassError(f"'{path}' is no ONNX model: {why}", code="onnx-model", help=help)


def checked(model: ModelProto, path: str, apart: Apart | None = None) -> ModelProto:
    """The model, of opset 7 or newer, with all its tensors but those `apart`. CompassError with the checker's words when it is not
    valid."""
    apart = {} if apart is None else apart
    onnx = onnx_package()
    refuse_external(model, path)
    opset = opset_of(model)
    newest = onnx.defs.onnx_opset_version()
    if opset > newest:
        raise CompassError(
            f"'{path}' has opset {opset}, the installed package onnx knows them up to {newest}",
            code="onnx-opset",
            help="pip install --upgrade onnx",
        )
    try:
        with _without_gaps(model), _as_empty(model, apart):
            onnx.checker.check_model(model)
    except (onnx.checker.ValidationError, ValueError) as error:
        first, *others = [line for line in str(error).splitlines() if line.strip()] or ["the checker does not say why"]
        raise CompassError(
            f"'{path}' is no valid ONNX model: {first.strip()}", code="onnx-model", notes=tuple(others[:3])
        ) from None
    if not 0 < opset < OLDEST:
        return model
    from onnx import version_converter

    _put_in(model, apart)
    try:
        return version_converter.convert_version(model, OLDEST)
    except RuntimeError as error:
        raise CompassError(
            f"'{path}' has opset {opset}, and onnx cannot convert it to {OLDEST}: {error}",
            code="onnx-opset",
            help=f"export the model with opset {OLDEST} or newer",
        ) from None


@contextmanager
def _without_gaps(model: ModelProto) -> Iterator[None]:
    """The model while the types of its outputs and inner tensors are complete: importing does not need them."""
    from onnx import helper

    graph = model.graph
    outputs, inner = list(graph.output), list(graph.value_info)
    complete = [
        o
        if o.type.tensor_type.HasField("shape") or o.type.WhichOneof("value") not in (None, "tensor_type")
        else helper.make_tensor_value_info(o.name, o.type.tensor_type.elem_type or 1, [])
        for o in outputs
    ]
    for field, listed in ((graph.output, complete), (graph.value_info, [])):
        del field[:]
        field.extend(listed)
    try:
        yield
    finally:
        for field, listed in ((graph.output, outputs), (graph.value_info, inner)):
            del field[:]
            field.extend(listed)


@contextmanager
def _as_empty(model: ModelProto, apart: Apart) -> Iterator[None]:
    """The model while initialisers without their content, of which it is known that it fits their shapes, are empty ones."""
    tensors = [model.graph.initializer[i] for i in apart]
    shapes = [list(t.dims) for t in tensors]
    for tensor in tensors:
        tensor.dims[:] = [0]
    try:
        yield
    finally:
        for tensor, shape in zip(tensors, shapes, strict=True):
            tensor.dims[:] = shape


def opset_of(model: ModelProto) -> int:
    """The opset of the default domain; 0 when the model names none."""
    return max((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=0)


def input_dims(graph: GraphProto, known: Container[str], path: str) -> dict[str, Dims | None]:
    """The dimensions of each input that is no initialiser; None for open ones (some write -1 for them), and for inputs
    that say nothing of them.

    `known`: inputs with fixed content, which are left out.
    """
    initialised = {t.name for t in graph.initializer} | {t.values.name for t in graph.sparse_initializer}
    found: dict[str, Dims | None] = {}
    for item in graph.input:
        if item.name in initialised or item.name in known:
            continue
        if item.type.WhichOneof("value") != "tensor_type":
            raise CompassError(f"'{path}': the input '{item.name}' is no tensor", code="onnx-model")
        tensor = item.type.tensor_type
        found[item.name] = [_dim(d) for d in tensor.shape.dim] if tensor.HasField("shape") else None
    return found


def _dim(dim: TensorShapeProto.Dimension) -> int | str | None:
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return int(dim.dim_value)
    return dim.dim_param or None


def dtype_of(item: ValueInfoProto) -> NumpyDType:
    """The type of an input's elements."""
    return numpy_type(item.type.tensor_type.elem_type)
