"""TFLite files: read into plain values, with every offset that leads out of the file refused.

A .tflite file is a flatbuffer, which nothing verifies: offsets lead anywhere, and vectors claim any length. So all of it
is read here, once, and what does not fit is a damaged file.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from compass_core.arrays import Array, NumpyDType
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compass_core.reading.budget import Budget
from compass_core.reading.limits import COMPUTED_BYTES, COMPUTED_ELEMENTS, MODEL_NODES
from compassc.importers.placeholders import placeholder

IDENTIFIER = b"TFL3"
LARGEST_RANK = 32
NOT_PLAIN = ("STRING", "RESOURCE", "VARIANT", "COMPLEX64", "COMPLEX128")
"""Types of tensors that are no numbers of a graph."""
NUMPY_TYPES = {"BOOL": "bool", "INT4": "int4", "BFLOAT16": "bfloat16"}
"""Types whose name in NumPy is not theirs in small letters."""
FAULTS = (struct.error, ValueError, TypeError, IndexError, KeyError, OverflowError, AttributeError, MemoryError)
"""What reading a flatbuffer raises where it is damaged."""


@dataclass(frozen=True)
class TensorInfo:
    """A tensor of a model. `shape` None: it has no dimensions that are known; a dimension is None where it is open.

    `array`: its content, of constants. `scale`, `zero`: per tensor, or along `axis`; empty when it is not quantised.
    """

    name: str
    type: str
    shape: tuple[int | None, ...]
    array: Array | None
    scale: Array
    zero: Array
    axis: int
    variable: bool

    @property
    def no_numbers(self) -> str:
        """Why its elements are none of a graph; "" for numbers."""
        if self.type.startswith("sparse"):
            return f"'{self.name}' is stored without its zeros, which is not supported"
        return f"'{self.name}' is of {self.type}, which graphs do not have" if self.type in NOT_PLAIN else ""

    def called(self, name: str) -> TensorInfo:
        """The same under another name."""
        return replace(self, name=name)

    @property
    def dtype(self) -> NumpyDType:
        import ml_dtypes  # noqa: F401 (makes the names of its types known)

        return np.dtype(NUMPY_TYPES.get(self.type, self.type.lower()))


@dataclass(frozen=True)
class Node:
    """An operator: `inputs` and `outputs` are indices of tensors, -1 is none. `options`: by their names in the schema."""

    index: int
    operator: str
    version: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Model:
    """A graph of a model. `graphs`: of the main one, all by number, itself as it is without them first."""

    name: str
    tensors: tuple[TensorInfo, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    nodes: tuple[Node, ...]
    graphs: tuple[Model, ...] = ()


def package() -> Any:
    """The package tflite. CompassError that says how to install it."""
    try:
        import tflite
    except ImportError:
        raise CompassError(
            "importing TFLite models needs the packages tflite and flatbuffers",
            code="missing-package",
            help='pip install "compassc[tflite]", or: pip install tflite flatbuffers',
        ) from None
    return tflite


def parse(content: bytes, path: str, budget: Budget) -> Model:
    """The model in the bytes of a file. CompassError when it is damaged; `path` is named there. Its tables may share
    their parts, so that what is read is asked of the budget."""
    package()
    if found := placeholder(content):
        raise damaged(path, f"it holds {found.what}", found.help)
    if content[4:8] != IDENTIFIER:
        raise damaged(path, "it does not have the mark TFL3 of these files")
    from tflite.Model import Model as Table

    try:
        return _Reader(content, budget).model(Table.GetRootAs(content, 0), Path(path).stem)
    except FAULTS as error:
        raise damaged(path, f"{type(error).__name__}: {error}" if str(error) else type(error).__name__) from None


def damaged(path: object, why: str, help: str = "export the model again") -> CompassError:
    return CompassError(f"'{path}' is no TFLite model: {why}", code="tflite-model", help=help)


@cache
def names_of(enumeration: str) -> dict[int, str]:
    """The names of an enumeration of the schema by number."""
    kind = getattr(import_module(f"tflite.{enumeration}"), enumeration)
    return {value: name for name, value in vars(kind).items() if isinstance(value, int)}


@cache
def fields_of(options: str) -> tuple[tuple[str, str, bool], ...]:
    """The fields of an options table: (name as Python has it, name of its method, whether it is a vector)."""
    methods = [m for m in vars(getattr(import_module(f"tflite.{options}"), options)) if not m.startswith("_")]
    skipped = re.compile(r"(Length|AsNumpy|IsNone|BufferHasIdentifier)$")
    found = []
    for name in methods:
        if name == "Init" or name.startswith("GetRootAs") or skipped.search(name):
            continue
        found.append(
            (
                re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower(),
                name,
                f"{name}Length" in methods,
            )
        )
    return tuple(found)


class _Reader:
    """Reads the tables of one file."""

    def __init__(self, content: bytes, budget: Budget) -> None:
        self.content = content
        self.budget = budget

    def count(self, table: object, name: str) -> int:
        """The length of a vector, which cannot have more elements than the file has bytes."""
        many = int(getattr(table, f"{name}Length")())
        if not 0 <= many <= len(self.content):
            raise ValueError(f"a list has {many} elements, the file has {len(self.content)} bytes")
        self.budget.take(COMPUTED_ELEMENTS, many)
        return many

    def each(self, table: object, name: str) -> Iterator[Any]:
        """The tables of a vector."""
        many = self.count(table, name)
        self.budget.take(MODEL_NODES, many)
        for i in range(many):
            found = getattr(table, name)(i)
            if found is None:
                raise ValueError(f"an element of {name} is missing")
            yield found

    def numbers(self, table: object, name: str) -> Array:
        """A vector of numbers; empty when it is not there."""
        if not self.count(table, name):
            return np.zeros(0, np.int64)
        return np.asarray(getattr(table, f"{name}AsNumpy")())

    def model(self, table: object, stem: str) -> Model:
        if not self.count(table, "Subgraphs"):
            raise ValueError("it holds no graph")
        buffers = [self.buffer(b) for b in self.each(table, "Buffers")]
        codes = [self.code(c) for c in self.each(table, "OperatorCodes")]
        graphs = tuple(self.graph(g, stem, buffers, codes) for g in self.each(table, "Subgraphs"))
        return replace(graphs[0], graphs=graphs)

    def graph(self, graph: Any, stem: str, buffers: Sequence[Array | None], codes: Sequence[tuple[str, int]]) -> Model:
        tensors = tuple(self.tensor(t, buffers) for t in self.each(graph, "Tensors"))
        nodes = []
        for i, operator in enumerate(self.each(graph, "Operators")):
            at = int(operator.OpcodeIndex())
            if at >= len(codes):
                raise ValueError(f"the operator {i} has the code {at}, there are {len(codes)}")
            inputs, outputs = (self.indices(operator, name, len(tensors)) for name in ("Inputs", "Outputs"))
            nodes.append(Node(i, *codes[at], inputs, outputs, self.options(operator)))
        inputs, outputs = (self.indices(graph, name, len(tensors)) for name in ("Inputs", "Outputs"))
        if min((*inputs, *outputs), default=0) < 0:
            raise ValueError("an input or output of the model is missing")
        return Model(self.text(graph.Name()) or stem, tensors, inputs, outputs, tuple(nodes))

    def indices(self, table: object, name: str, many: int) -> tuple[int, ...]:
        listed = tuple(int(i) for i in self.numbers(table, name))
        for i in listed:
            if not -1 <= i < many:
                raise ValueError(f"it names the tensor {i}, there are {many}")
        return listed

    def text(self, value: bytes | None) -> str:
        self.budget.take(COMPUTED_BYTES, len(value or b""))
        return "" if value is None else value.decode("utf-8", "replace")

    def code(self, table: Any) -> tuple[str, int]:
        """The name and version of an operator: of those beyond 127 the number stands in another field."""
        number = max(int(table.BuiltinCode()), int(table.DeprecatedBuiltinCode()))
        name = names_of("BuiltinOperator").get(number, f"operator {number}")
        if name == "CUSTOM":
            name = self.text(table.CustomCode()) or name
        return name, int(table.Version())

    def buffer(self, table: Any) -> Array | None:
        """The bytes of a buffer: in the table, or of large files behind it."""
        if self.count(table, "Data"):
            return self.numbers(table, "Data")
        start, size = int(table.Offset()), int(table.Size())
        if start <= 1:
            return None
        if start + size > len(self.content):
            raise ValueError(f"a buffer lies at {start} to {start + size}, the file has {len(self.content)} bytes")
        return np.frombuffer(self.content, np.uint8, size, start)

    def tensor(self, table: Any, buffers: Sequence[Array | None]) -> TensorInfo:
        name, kind = self.text(table.Name()), names_of("TensorType").get(int(table.Type()), "")
        if not kind:
            raise ValueError(f"the tensor '{name}' has the type {table.Type()}, which is not known")
        shape: list[int | None] = [int(d) for d in self.numbers(table, "Shape")]
        signature = [int(d) for d in self.numbers(table, "ShapeSignature")]
        if len(shape) > LARGEST_RANK or any(d is not None and d < -1 for d in shape):
            raise ValueError(f"the tensor '{name}' has the shape {shape}")
        if len(signature) == len(shape):
            shape = [None if s == -1 else d for s, d in zip(signature, shape, strict=True)]
        shape = [None if d == -1 else d for d in shape]
        if not 0 <= table.Buffer() < max(len(buffers), 1):
            raise ValueError(f"the tensor '{name}' has the buffer {table.Buffer()}, there are {len(buffers)}")
        if table.Sparsity() is not None:
            kind = f"sparse {kind}"
        scale, zero, axis = self.levels(table, name, len(shape))
        found = TensorInfo(name, kind, tuple(shape), None, scale, zero, axis, bool(table.IsVariable()))
        data = buffers[table.Buffer()] if buffers else None
        if data is None or kind.startswith("sparse") or kind in NOT_PLAIN:
            return found
        self.budget.take(COMPUTED_BYTES, data.size * (2 if kind == "INT4" else 1), f"the tensor '{name}'")
        return TensorInfo(name, kind, found.shape, content_of(found, data), scale, zero, axis, found.variable)

    def levels(self, table: Any, name: str, rank: int) -> tuple[Array, Array, int]:
        """Scales, zero points and the axis they go along."""
        given = table.Quantization()
        if given is None:
            return np.zeros(0), np.zeros(0, np.int64), 0
        scale = self.numbers(given, "Scale").astype(np.float64)
        zero = self.numbers(given, "ZeroPoint").astype(np.int64)
        axis = int(given.QuantizedDimension())
        if scale.size and not (np.isfinite(scale).all() and (scale > 0).all()):
            raise ValueError(f"the tensor '{name}' has a scale that is no positive number")
        if zero.size not in (0, 1, scale.size) or (scale.size > 1 and not 0 <= axis < rank):
            raise ValueError(
                f"the tensor '{name}' has {scale.size} scales and {zero.size} zero points along the axis {axis}"
            )
        return scale, np.resize(zero, scale.size) if zero.size else np.zeros(scale.size, np.int64), axis

    def options(self, operator: object) -> dict[str, Any]:
        """The options of an operator, by their names in small letters."""
        found: dict[str, Any] = {}
        for union in ("BuiltinOptions", "BuiltinOptions2"):
            kind = names_of(union).get(int(getattr(operator, f"{union}Type")()), "")
            held = getattr(operator, union)()
            if not kind or kind == "NONE" or held is None:
                continue
            table = getattr(import_module(f"tflite.{kind}"), kind)()
            table.Init(held.Bytes, held.Pos)
            for name, method, vector in fields_of(kind):
                if vector:
                    found[name] = [v.item() for v in self.numbers(table, method)]
                else:
                    value = getattr(table, method)()
                    found[name] = self.text(value) if isinstance(value, bytes) else value
        return found


def content_of(tensor: TensorInfo, data: Array) -> Array:
    """The elements of a constant. ValueError when there are not as many bytes as its shape says."""
    shape = tuple(1 if d is None else d for d in tensor.shape)
    many = int(np.prod(shape, dtype=object)) if shape else 1
    dtype = tensor.dtype
    if tensor.type == "INT4":
        if data.size != (many + 1) // 2:
            raise ValueError(f"the tensor '{tensor.name}' of {many} elements has {data.size} bytes")
        nibbles = np.stack([data & 15, data >> 4], -1).reshape(-1)[:many].astype(np.int8)
        return ((nibbles ^ 8) - 8).reshape(shape).astype(dtype)
    if data.size != many * dtype.itemsize:
        raise ValueError(f"the tensor '{tensor.name}' of {many} elements of {dtype} has {data.size} bytes")
    return np.frombuffer(data.tobytes(), dtype).reshape(shape)
