"""Means of windows, whose multipliers have 8 bits: integers of 16 bits keep what they can hold, or the layer stays a float."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compassc.graph import GraphBuilder
from compassc.quantizer import quantize_model
from compassc.quantizer.compare import outputs_of

SQUARE = {f"{name}_{a}": 3 for name in ("kernel", "stride") for a in "xy"}
CUBE = SQUARE | {"kernel_z": 3, "stride_z": 3}
LAYERS: dict[str, tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "windows": ("Pooling", (1, 9, 9, 4), (1, 3, 3, 4), SQUARE),
    "all": ("GlobalPool", (1, 7, 9, 4), (1, 1, 1, 4), {}),
    "volumes": ("Pooling3D", (1, 6, 9, 9, 4), (1, 2, 3, 3, 4), CUBE),
    "adaptive": ("AdaptivePool", (1, 9, 9, 4), (1, 3, 3, 4), {"output_size": [3, 3]}),
    "adaptive, of windows that overlap": ("AdaptivePool", (1, 10, 7, 4), (1, 3, 3, 4), {"output_size": [3, 3]}),
    "adaptive, of sizes that differ": ("AdaptivePool", (1, 7, 7, 4), (1, 5, 5, 4), {"output_size": [5, 5]}),
    "random": ("FractionalPool", (1, 9, 9, 4), (1, 4, 4, 4), {"seed": 3}),
}
FLOATS = {"adaptive, of sizes that differ", "random"}
"""Layers with windows of which the multipliers of some are off by more than those of others."""


def quantised(name: str, settings: str, method: str = "AVG") -> tuple[float, str]:
    """(the decibels of a layer, the type of its output)."""
    kind, shape, out, attributes = LAYERS[name]
    g, random = GraphBuilder("one"), np.random.default_rng(0)
    made = g.layer(kind, [g.input("x", shape, "float32")], name="layer", outputs=[(out, "float32")],
                   attributes={"method": method, **attributes})  # fmt: skip
    graph = g.finish(list(made))
    data = [{"x": (random.standard_normal(shape) + 0.3).astype(np.float32)} for _ in range(4)]
    found = quantize_model(graph, data, settings).graph
    (row,) = outputs_of(graph, found, data)
    return row.sqnr, next(layer for layer in found.layers if layer.name == "layer").output.dtype


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("settings", ["int16", "w8a16"])
def test_means_keep_what_16_bits_hold(name, settings):
    sqnr, dtype = quantised(name, settings)
    assert sqnr > 70
    assert (dtype == "float32") == (name in FLOATS)


@pytest.mark.parametrize("name", LAYERS)
def test_means_of_8_bits_are_integers(name):
    sqnr, dtype = quantised(name, "int8")
    assert sqnr > 28 and dtype == "int8"


@pytest.mark.parametrize("method", ["MAX", "L1", "L2"])
def test_other_methods_of_whole_images(method):
    sqnr, dtype = quantised("all", "int8", method)
    assert sqnr > 28 and dtype == ("int8" if method == "MAX" else "uint8")
