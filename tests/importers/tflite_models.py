"""TFLite models for tests, built with the package tflite."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module

import flatbuffers
import ml_dtypes  # noqa: F401 (names of types)
import numpy as np

from compassc.importers.tflite.source import fields_of, names_of

TYPES = {"bool": "BOOL", "bfloat16": "BFLOAT16"}
ENDINGS = {"NONE": 0, "RELU": 1, "RELU_N1_TO_1": 2, "RELU6": 3, "TANH": 4}
PADDING = {"SAME": 0, "VALID": 1}
VERSIONS = {"BROADCAST_TO": 2}
"""Of operators that have no first version in runtimes."""


def number(enumeration, name):
    return {v: k for k, v in names_of(enumeration).items()}[name]


@dataclass
class Tensor:
    """A tensor of a test model; `scale` and `zero` as TFLite has them: real = (q - zero) * scale."""

    name: str
    shape: tuple
    dtype: str
    array: np.ndarray | None = None
    scale: tuple = ()
    zero: tuple = ()
    along: int = 0
    signature: tuple | None = None
    variable: bool = False


@dataclass
class Model:
    """A model under construction: `net.input(...)`, `net("CONV_2D", [x, w], (1, 4, 4, 8), stride_w=1, ...)`."""

    tensors: list[Tensor] = field(default_factory=list)
    nodes: list = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)

    def add(self, tensor):
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def input(self, name, shape, dtype="float32", **levels):
        self.inputs.append(self.add(Tensor(name, tuple(shape), dtype, **_levels(levels))))
        return self.inputs[-1]

    def constant(self, array, dtype=None, **levels):
        array = np.asarray(array, dtype) if dtype else np.asarray(array)
        return self.add(Tensor(f"c{len(self.tensors)}", array.shape, array.dtype.name, array=array, **_levels(levels)))

    def __call__(self, operator, inputs, shape, dtype="float32", options=None, *, many=None, **given):
        """Adds an operator with one output, or `many` of the same shape; gives the output's index, or theirs.

        `given`: fields of its options table (named `options`; by default after the operator), scale, zero, along.
        """
        levels = _levels({k: given.pop(k) for k in ("scale", "zero", "along") if k in given})
        made = [self.add(Tensor(f"t{len(self.tensors)}", tuple(shape), dtype, **levels)) for _ in range(many or 1)]
        return self.node(operator, inputs, made, options, **given)

    def node(self, operator, inputs, outputs, options=None, **given):
        self.nodes.append((operator, list(inputs), list(outputs), options, given))
        return outputs[0] if len(outputs) == 1 else outputs

    def bytes(self, *outputs, bodies=()):
        """The file, with these outputs; `bodies`: further graphs, each with a list of its outputs."""
        b = flatbuffers.Builder(1024)
        every = [(self, outputs), *bodies]
        codes = sorted({n[0] for model, _ in every for n in model.nodes})
        buffers = [_table(b, "Buffer")]
        graphs = [model._graph(b, codes, buffers, wanted) for model, wanted in every]
        listed = [self._code(b, name) for name in codes]
        model = _table(
            b,
            "Model",
            version=3,
            operator_codes=_offsets(b, "Model", "OperatorCodes", listed),
            subgraphs=_offsets(b, "Model", "Subgraphs", graphs),
            buffers=_offsets(b, "Model", "Buffers", buffers),
        )
        b.Finish(model, b"TFL3")
        return bytes(b.Output())

    def _graph(self, b, codes, buffers, outputs):
        tensors = [self._tensor(b, t, buffers) for t in self.tensors]
        nodes = [self._node(b, codes, *n) for n in self.nodes]
        return _table(
            b,
            "SubGraph",
            tensors=_offsets(b, "SubGraph", "Tensors", tensors),
            inputs=_ints(b, "SubGraph", "Inputs", self.inputs),
            outputs=_ints(b, "SubGraph", "Outputs", outputs),
            operators=_offsets(b, "SubGraph", "Operators", nodes),
        )

    def _code(self, b, name):
        known = name in names_of("BuiltinOperator").values()
        code = number("BuiltinOperator", name if known else "CUSTOM")
        custom = {} if known else {"custom_code": b.CreateString(name)}
        first = {"builtin_code": code, "deprecated_builtin_code": min(code, 127), "version": VERSIONS.get(name, 1)}
        return _table(b, "OperatorCode", **first, **custom)

    def _tensor(self, b, t, buffers):
        at = 0
        if t.array is not None:
            at = len(buffers)
            data = b.CreateByteVector(np.ascontiguousarray(t.array).tobytes())
            buffers.append(_table(b, "Buffer", data=data))
        given = {}
        if t.scale:
            given["quantization"] = _table(
                b,
                "QuantizationParameters",
                scale=_floats(b, t.scale),
                zero_point=_longs(b, t.zero),
                quantized_dimension=t.along,
            )
        if t.signature is not None:
            given["shape_signature"] = _ints(b, "Tensor", "ShapeSignature", t.signature)
        kind = number("TensorType", TYPES.get(t.dtype, t.dtype.upper()))
        shape = _ints(b, "Tensor", "Shape", t.shape)
        return _table(
            b, "Tensor", shape=shape, type=kind, buffer=at, name=b.CreateString(t.name), is_variable=t.variable, **given
        )

    def _node(self, b, codes, operator, inputs, outputs, options, given):
        fields = {}
        if given or options:
            kind = options or "".join(w.capitalize() for w in operator.split("_")).replace("2d", "2D") + "Options"
            vectors = {n: m for n, m, vector in fields_of(kind) if vector}
            values = {k: _ints(b, kind, vectors[k], v) if k in vectors else _option(b, k, v) for k, v in given.items()}
            fields = {"builtin_options": _table(b, kind, **values)}
            fields["builtin_options_type"] = number("BuiltinOptions", kind)
        lists = {k: _ints(b, "Operator", k.capitalize(), v) for k, v in (("inputs", inputs), ("outputs", outputs))}
        return _table(b, "Operator", opcode_index=codes.index(operator), **lists, **fields)


def _levels(given):
    return {k: v if k == "along" else tuple(np.atleast_1d(v).tolist()) for k, v in given.items()}


def _option(b, name, value):
    words = {"padding": PADDING, "fused_activation_function": ENDINGS}
    if isinstance(value, str):
        return words[name][value] if name in words else b.CreateString(value)
    return value


def _table(b, kind, **fields):
    """A table with some of its fields."""
    module = import_module(f"tflite.{kind}")
    methods = {n: m for n, m, _ in fields_of(kind)}
    getattr(module, f"{kind}Start")(b)
    for name, value in fields.items():
        getattr(module, f"{kind}Add{methods[name]}")(b, value)
    return getattr(module, f"{kind}End")(b)


def _vector(b, start, values, prepend):
    start(b, len(values))
    for v in reversed(values):
        prepend(v)
    return b.EndVector()


def _start(kind, name):
    return getattr(import_module(f"tflite.{kind}"), f"{kind}Start{name}Vector")


def _ints(b, kind, name, values):
    return _vector(b, _start(kind, name), [int(v) for v in values], b.PrependInt32)


def _offsets(b, kind, name, values):
    return _vector(b, _start(kind, name), values, b.PrependUOffsetTRelative)


def _floats(b, values):
    return _vector(b, _start("QuantizationParameters", "Scale"), values, b.PrependFloat32)


def _longs(b, values):
    return _vector(b, _start("QuantizationParameters", "ZeroPoint"), [int(v) for v in values], b.PrependInt64)
