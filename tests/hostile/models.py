"""Importers of models: damaged files of TFLite and ONNX."""

from __future__ import annotations

import random
import warnings
from collections.abc import Container
from functools import cache
from typing import Any

from compass_core.errors import CompassError, flat
from tests.hostile.harness import Target, bytes_mutant, refused, without_numbers


def _said(error: CompassError) -> str:
    """The answer for a refusal, with the first reason of a list."""
    notes = flat(error)[0].notes
    return refused(error) + (f"; {without_numbers(notes[0].message.partition('(')[2])}" if notes else "")


def _tflite_models() -> list[bytes]:
    from tests.importers import tflite_cases, tflite_quantised

    floats = "conv depthwise_conv strided_slice split_v shape_arithmetic half_weights reshape_by_option one_hot".split()
    names = [(tflite_cases, n) for n in floats]
    names += [(tflite_quantised, n) for n in ("network", "conv_int16", "concatenation", "logistic")]
    return [module.build(name) for module, name in names]


def _tflite(data: bytes, known: Container[str], thorough: bool) -> str:
    from compassc.importers.tflite import import_bytes

    try:
        graph = import_bytes(data)
    except CompassError as error:
        return _said(error)
    return f"read: {' '.join(sorted({layer.type for layer in graph.layers}))}"


@cache
def _onnx_models() -> list[bytes]:
    from tests.importers.networks import NETWORKS

    return [make().SerializeToString() for name, make in NETWORKS.items() if name != "detector"]


def _onnx(data: bytes, known: Container[str], thorough: bool) -> str:
    import tempfile
    from pathlib import Path

    from compassc.importers.onnx import import_file

    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        file.write(data)
        file.flush()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about weights that are no numbers
                graph = import_file(Path(file.name))
        except CompassError as error:
            return _said(error)
    return f"read: {' '.join(sorted({layer.type for layer in graph.layers}))}"


def _mutant(pool: list[bytes], source: random.Random) -> bytes:
    return bytes_mutant(pool, source)


NUMBERS = (-(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 7, 2**31, 2**62)
REALS = (float("nan"), float("inf"), -1.0, 0.0, 1e-30, 3e38)


def _onnx_mutant(pool: list[bytes], source: random.Random) -> bytes:
    """Bytes changed anywhere, or a model that is none of bytes but of meaning: other attributes, names, sizes, types."""
    import onnx
    from google.protobuf.message import DecodeError

    model = onnx.ModelProto()
    if source.random() < 0.6:
        try:
            model.ParseFromString(source.choice(pool))
            for _ in range(source.choice((1, 1, 2, 3)) if model.graph.node else 0):
                _changed_meaning(model.graph, source)
            return bytes(model.SerializeToString())
        except (DecodeError, RuntimeError, ValueError):  # the one that was chosen is no message any more
            pass
    return bytes_mutant(pool, source)


def _changed_meaning(graph: Any, source: random.Random) -> None:
    node, kind = source.choice(graph.node), source.randrange(6)
    tensors = [*graph.initializer, *(a.t for n in graph.node for a in n.attribute if a.HasField("t"))]
    if kind == 0 and node.attribute:
        _changed_attribute(source.choice(node.attribute), source)
    elif kind == 1 and node.input:
        names = [*(o for n in graph.node for o in n.output), *(t.name for t in graph.initializer), ""]
        node.input[source.randrange(len(node.input))] = source.choice(names)
    elif kind == 2 and tensors:
        tensor = source.choice(tensors)
        if tensor.dims and source.random() < 0.7:
            tensor.dims[source.randrange(len(tensor.dims))] = source.choice(NUMBERS)
        else:
            tensor.data_type = source.randrange(24)
    elif kind == 3:
        node.op_type = source.choice([n.op_type for n in graph.node] + ["Reshape", "Gather", "Slice", "Concat", "Pad"])
    elif kind == 4 and graph.input:
        dims = source.choice(graph.input).type.tensor_type.shape.dim
        if dims:
            source.choice(dims).dim_value = source.choice(NUMBERS)
    elif node.input:
        del node.input[source.randrange(len(node.input))]


def _changed_attribute(attribute: Any, source: random.Random) -> None:
    for name, values in (("ints", NUMBERS), ("floats", REALS)):
        several = getattr(attribute, name)
        if several and source.random() < 0.8:
            several[source.randrange(len(several))] = source.choice(values)
            return
    if attribute.HasField("i"):
        attribute.i = source.choice(NUMBERS)
    elif attribute.HasField("f"):
        attribute.f = source.choice(REALS)
    elif attribute.HasField("s"):
        attribute.s = source.choice((b"", b"SAME_UPPER", b"linear", b"\xff", b"wrap", b"DCR"))
    else:
        attribute.type = source.randrange(15)


MODELS = (Target("tflite", _tflite_models, _tflite, _mutant), Target("onnx", _onnx_models, _onnx, _onnx_mutant))
