"""Importers of models: damaged files of TFLite and ONNX."""

from __future__ import annotations

import random
from collections.abc import Container
from functools import cache

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
            graph = import_file(Path(file.name))
        except CompassError as error:
            return _said(error)
    return f"read: {' '.join(sorted({layer.type for layer in graph.layers}))}"


def _mutant(pool: list[bytes], source: random.Random) -> bytes:
    return bytes_mutant(pool, source)


MODELS = (Target("tflite", _tflite_models, _tflite, _mutant), Target("onnx", _onnx_models, _onnx, _mutant))
