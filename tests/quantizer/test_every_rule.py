"""Every rule: sampled layers of its type, quantised, give nearly what the float layers give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compassc.graph import Graph, GraphBuilder, Layer, Tensor, verify
from compassc.graph.dtypes import numpy_dtype
from compassc.layers.declare import all_types
from compassc.layers.samples.draw import Draw, drawn
from compassc.quantizer import Settings, quantize_model
from compassc.quantizer.compare import similarity
from compassc.quantizer.rules import NO_RULE, all_rules

SHAPES = [(1, 6, 7, 8), (2, 5, 16), (3, 24), (1, 4, 4, 4, 8)]
POSITIVE = ("Sqrt", "Rsqrt", "Log", "Reciprocal", "Acosh")
INSIDE_ONE = ("Asin", "Acos", "Atanh")
STEEP = {"Tan": -1.0, "Div": 0.0, "Mod": 0.9, "Hardmax": 0.9, "Floor": 0.98, "Ceil": 0.98, "Trunc": 0.98, "Round": 0.98,
         "Sign": 0.98, "THRESHOLDEDRELU": 0.98}  # fmt: skip
"""Functions with poles and steps, where a step of the input is a leap of the output: how near they are nonetheless."""
LEAPS = (
    "NMS", "DecodeBox", "FilterBoxes", "MaxRoiPool", "RoiAlign", "ZeroFraction", "CropAndResize", "ROIPooling",
    "PyramidROIAlign", "GenerateProposals",
    "Proposal", "DetectionOutput", "BoundingBox", "Region", "RegionFuse",
)  # fmt: skip
"""Types that choose, which random numbers make anything of: tests of their own have data that are apart."""
NOT_SAMPLED_AS_FLOAT = {
    "Compress", "SpaceToDepth", "SpaceToBatch", "Meshgrid", "NonZero", "OneHot", "Gemm",
}  # fmt: skip
"""Types of which the samples are of whole numbers, or none of these shapes."""
STAY_FLOAT = {"Count", "GroupNorm", "LRN"}
"""Types whose sampled forms have no kernel in integers, or an inexact one."""


def graph_of(layer: Layer) -> Graph:
    g = GraphBuilder("one")
    inputs: dict[str, Tensor] = {}
    for t in layer.inputs:
        if t.name not in inputs:
            inputs[t.name] = g.input(t.name, t.shape, t.dtype)
    outputs = g.layer(layer.type, [inputs[t.name] for t in layer.inputs], name="layer",
                      outputs=[(t.shape, t.dtype) for t in layer.outputs], attributes=layer.attributes,
                      constants=layer.constants)  # fmt: skip
    return g.finish(list(outputs))


def values(layer: Layer, t: Tensor, random: np.random.Generator) -> np.ndarray[Any, Any]:
    if t.dtype != "float32":
        most = int(t.limits[1]) if t.limits else 3
        return random.integers(0, most + 1, t.shape).astype(numpy_dtype(t.dtype))
    made = random.standard_normal(t.shape).astype(np.float32)
    name = {"LOG": "Log", "ACOSH": "Acosh"}.get(str(layer.attributes.get("method")), layer.type)
    if name in POSITIVE:
        return np.abs(made) + np.float32(1.2)
    return np.clip(made / 4, -0.9, 0.9) if name in INSIDE_ONE else made


def cosines(kind: str, seed: int, settings: Settings) -> tuple[list[float], list[str]]:
    """Of the outputs of one sampled layer; and why it stays a float."""
    layer = drawn(Draw(np.random.default_rng(seed), "layer"), kind, Tensor("x", SHAPES[seed % 4], "float32"))
    if layer is None or not any(t.dtype == "float32" for t in layer.inputs):
        return [], []
    if kind == "Repeat" or any(t.dtype != "float32" and t.limits is None for t in layer.inputs[1:]):
        return [], []  # what such inputs may hold depends on the layer
    graph, random = graph_of(layer), np.random.default_rng(seed + 100)
    data = [{t.name: values(layer, t, random) for t in graph.inputs} for _ in range(4)]
    made = quantize_model(graph, data, settings)
    verify.check(made.graph, verify.Stage.QUANTISED)
    why = [text for name, text in made.floats.items() if name == "layer"]
    return [row.cosine for row in similarity(graph, made.graph, data) if row.layer == "layer"], why


@pytest.mark.parametrize("settings", ["int8", "asymmetric"])
@pytest.mark.parametrize("kind", sorted(set(all_rules()) - {"Pad", "Quantize", "DeQuantize", *LEAPS}))
def test_sampled_layers_are_near(kind, settings):
    wanted = Settings().changed(activation_mode="asymmetric" if settings == "asymmetric" else "symmetric_full_range")
    found = [cosines(kind, seed, wanted) for seed in range(4)]
    near = [c for each, _ in found for c in each]
    floats = {w for _, why in found for w in why}
    assert not floats or kind in STAY_FLOAT or "DMA" in next(iter(floats)), floats
    assert all(c >= STEEP.get(kind, 0.99) for c in near), near


def test_every_type_that_is_computed_in_integers_has_a_rule_or_stays_a_float():
    without = {
        name
        for name, declared in all_types().items()
        if declared.quantised and not declared.refused and not declared.no_integers and name not in all_rules()
    }
    sources = {"Constant", "ConstantOfShape", "Input"}
    assert without - sources <= set(NO_RULE)
    assert not set(NO_RULE) & set(all_rules())
