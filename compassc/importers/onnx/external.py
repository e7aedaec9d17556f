"""Tensors whose content lies in files beside the model, as its external data.

A model says where: the name of a file, and which bytes of it. That is checked against what the tensor's type and shape ask, and
against the file, before anything is read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from io import FileIO
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from compass_core import files
from compass_core.errors import CompassError
from compass_core.files import claims
from compass_core.files.pieces import Pieces, Stored
from compass_core.reading.limits import EXTERNAL_BYTES
from compassc.importers.onnx.apart import LEAST, Apart
from compassc.importers.values import Refused

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto

CODE = "onnx-external-data"
_PACKED = {"INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "INT2": 2, "UINT2": 2, "FLOAT6E2M3": 6, "FLOAT6E3M2": 6}
"""The bits of an element, of types that share bytes."""
_NUMBER = re.compile(r"[0-9]{1,18}")
_BESIDE = "keep the model's data files beside it, under the names it has for them"


def load_external(model: ModelProto, path: Path, apart: Apart | None = None) -> None:
    """Makes the content of all tensors that lie beside the model in `path` part of it, or adds it to `apart`.

    CompassError when a file is not there, is not in the model's folder, is no file, or does not have the bytes.
    """
    beside = _Files(path)
    for i, tensor in enumerate(model.graph.initializer):
        if apart is not None and is_external(tensor):
            content = beside.content(tensor)
            if len(content) >= LEAST and may_lie_apart(tensor, len(content)):
                apart[i] = content
            else:
                tensor.raw_data = bytes(content)
    for tensor in external_tensors(model):
        tensor.raw_data = bytes(beside.content(tensor))


def may_lie_apart(tensor: TensorProto, size: int) -> bool:
    """Whether content of some bytes is that of a tensor which has no other, each element in bytes of its own."""
    from onnx import TensorProto

    try:
        packed = TensorProto.DataType.Name(tensor.data_type) in _PACKED
        return not packed and not is_external(tensor) and size_of(tensor) == size
    except (ValueError, Refused):
        return False


def refuse_external(model: ModelProto, path: str) -> None:
    """CompassError for a model in memory whose tensors lie in files: nobody knows in which folder."""
    if (tensor := next(external_tensors(model), None)) is not None:
        raise _error(
            f"'{path}' keeps the tensor {tensor.name!r} in another file",
            "onnx.load(PATH) gives a model with its tensors",
        )


def external_tensors(model: ModelProto) -> Iterator[TensorProto]:
    """All tensors of a model that lie in files, wherever they stand."""
    return (t for t in tensors_of(model) if is_external(t))


def is_external(tensor: TensorProto) -> bool:
    """Whether the content lies in a file."""
    return bool(tensor.data_location == tensor.EXTERNAL)


def tensors_of(model: ModelProto) -> Iterator[TensorProto]:
    """All tensors of a model: of graphs, of bodies in them, of functions and of what trains it; also those that sparse ones
    are made of."""
    graphs = [model.graph, *(g for t in model.training_info for g in (t.initialization, t.algorithm))]
    for function in model.functions:
        yield from _of_attributes(function.attribute_proto, graphs)
        yield from _of_nodes(function.node, graphs)
    while graphs:
        graph = graphs.pop()
        yield from graph.initializer
        yield from _of_sparse(graph.sparse_initializer)
        yield from _of_nodes(graph.node, graphs)


def _of_nodes(nodes: Iterable[NodeProto], graphs: list[GraphProto]) -> Iterator[TensorProto]:
    for node in nodes:
        yield from _of_attributes(node.attribute, graphs)


def _of_attributes(attributes: Iterable[AttributeProto], graphs: list[GraphProto]) -> Iterator[TensorProto]:
    """Those of attributes. Graphs in them are added to `graphs`."""
    for one in attributes:
        if one.HasField("t"):
            yield one.t
        yield from one.tensors
        if one.HasField("sparse_tensor"):
            yield from _of_sparse([one.sparse_tensor])
        yield from _of_sparse(one.sparse_tensors)
        if one.HasField("g"):
            graphs.append(one.g)
        graphs.extend(one.graphs)


def _of_sparse(tensors: Iterable[SparseTensorProto]) -> Iterator[TensorProto]:
    for one in tensors:
        yield from (one.values, one.indices)


class _Files:
    """The files beside a model, each opened once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._folders = {os.path.realpath(path.parent), os.path.dirname(os.path.realpath(path))}
        """The model's folder; that of the file it is a link to, where its data are links to files there."""
        self._stored: dict[str, Stored] = {}
        self._taken = 0

    def content(self, tensor: TensorProto) -> Pieces:
        """The bytes of a tensor, which then says no more where they lie. CompassError that says what is wrong."""
        try:
            found = self._found(tensor)
        except (OSError, ValueError, Refused) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise _error(f"'{self._path}' keeps the tensor {tensor.name!r} in another file: {why}", _BESIDE) from None
        tensor.ClearField("data_location")
        del tensor.external_data[:]
        return found

    def _found(self, tensor: TensorProto) -> Pieces:
        place = {entry.key: entry.value for entry in tensor.external_data}
        needed = size_of(tensor)
        start, length = (_number(place, key, other) for key, other in (("offset", 0), ("length", needed)))
        if length != needed:
            raise ValueError(f"{length} bytes of it, but its type and shape ask for {needed}")
        name = place.get("location", "")
        if name not in self._stored:
            self._stored[name] = self._opened(name)
        stored = self._stored[name]
        if start + needed > len(stored):
            raise ValueError(f"bytes {start} to {start + needed} of {name!r}, which has {len(stored)}")
        self._taken += needed
        EXTERNAL_BYTES.check(self._taken, str(self._path))
        return stored[start : start + needed]

    def _opened(self, name: str) -> Stored:
        if not name or "\0" in name or os.path.isabs(name) or ".." in Path(name).parts:
            raise ValueError(f"{name!r} is no file in the model's folder")
        if not os.path.lexists(self._path.parent / name):
            raise ValueError(f"{name!r}, which is not beside it")
        end = os.path.realpath(self._path.parent / name)
        if not any(os.path.commonpath([folder, end]) == folder for folder in self._folders):
            raise ValueError(f"{name!r}, which is a link to a file elsewhere")
        claims.reads(Path(end))
        return Stored(FileIO(files.open_regular(Path(end))), end)


def _number(place: dict[str, str], key: str, other: int) -> int:
    """A number of bytes in the description of a place; `other` where there is none."""
    text = place.get(key, "")
    if not text:
        return other
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"the {key} {text[:40]!r} is no number of bytes")
    return int(text)


def size_of(tensor: TensorProto) -> int:
    """How many bytes the content of a tensor has. ValueError for a type or shape that has none."""
    from onnx import TensorProto

    from compassc.importers.onnx.protobuf import numpy_type

    if any(dim < 0 for dim in tensor.dims):
        raise ValueError(f"its shape is {'x'.join(map(str, tensor.dims))}")
    if tensor.data_type in (TensorProto.STRING, TensorProto.UNDEFINED):
        raise ValueError("its type is none that lies in files")
    dtype = numpy_type(tensor.data_type)
    bits = _PACKED.get(TensorProto.DataType.Name(tensor.data_type), 8 * dtype.itemsize)
    found: int = -(-prod(tensor.dims) * bits // 8)
    return found


def _error(message: str, help: str) -> CompassError:
    return CompassError(message, code=CODE, help=help)
