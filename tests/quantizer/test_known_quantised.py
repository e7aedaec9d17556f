"""Quantised graphs against known ones: with the known ranges, every scale, multiplier, weight and table is the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from compassc.graph import Graph, Layer, Tensor, files, verify
from compassc.quantizer import Calibration, Settings, quantize
from compassc.quantizer.statistics import Record

FOLDER = Path(__file__).parents[1] / "data" / "graphs"
SETTINGS = {
    "default": {"per_channel": False},
    "perchan": {},
    "asym": {"per_channel": False, "activation_mode": "asymmetric"},
    "int16": {"per_channel": False, "activation_bits": 16, "table_bits": 10},
    "fp16": {"float": "float16"},
}
KNOWN = [
    p
    for p in sorted(FOLDER.glob("*/*.txt"))
    if p.stem in SETTINGS and (p.parent / "float.txt").exists() and p.parent.name not in ("lstm", "gru")
]


def record(t: Tensor) -> Record:
    """A range that gives the tensor's scale and zero point."""
    scale = np.float32(t.scale)
    if t.zero:
        low, high = np.float32(t.low + t.zero) / scale, np.float32(t.high + t.zero) / scale
    else:
        reach = np.float32(t.high - t.low) / scale / np.float32(2 if t.integer.signed else 1)
        low, high = (-reach if t.integer.signed else np.float32(0)), reach
    return Record(float(low), float(high), float(low), float(high), batches=1)


def quantised_like(path: Path) -> tuple[Graph, Graph]:
    known = files.load(path)
    records = {t.name: record(t) for t in known.tensors().values() if t.is_integer}
    source = files.load(path.parent / "float.txt")
    return known, quantize(source, Calibration(records, {}, 1), Settings().changed(**SETTINGS[path.stem]))


def assert_same_layer(want: Layer, got: Layer) -> None:
    assert got.outputs == want.outputs
    for key in {*want.attributes, *got.attributes} - {"activation_quantization_axis"}:
        a, b = want.attributes.get(key), got.attributes.get(key)
        assert a == b or isinstance(a, float) and b == pytest.approx(a, rel=1e-6), f"{want.name}: {key}"
    assert want.constants.keys() == got.constants.keys(), want.name
    for key, array in want.constants.items():
        other = got.constants[key]
        assert (array.dtype, array.shape) == (other.dtype, other.shape), f"{want.name}: {key}"
        # exponentials of two libraries differ in the last bit
        loose = {"lut_exp": 1.2e-7, "lut": 1.0 if array.dtype in (np.uint32, np.uint16, np.int16) else 0}.get(key, 0)
        np.testing.assert_allclose(
            other.astype(float), array.astype(float), rtol=0, atol=loose, err_msg=f"{want.name}: {key}"
        )


@pytest.mark.parametrize("path", KNOWN, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_the_known_graph_comes_out(path):
    known, got = quantised_like(path)
    verify.check(got, verify.Stage.QUANTISED)
    made = {layer.name: layer for layer in got.layers}
    assert made.keys() == {layer.name for layer in known.layers}
    for want in known.layers:
        assert_same_layer(want, made[want.name])
