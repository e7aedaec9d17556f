"""What the quantiser changes in float graphs first, ranges that tensors share, and layers that stay floats."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc.graph import Graph, GraphBuilder, Tensor, verify
from compassc.graph.passes import run_stage
from compassc.graph.run import run_graph
from compassc.quantizer import Settings, calibrate, quantize, quantize_model
from compassc.quantizer.compare import output_cosine, similarity
from compassc.quantizer.convert import _Walk

WINDOW = {f"{k}_{a}": v for k, v in (("kernel", 3), ("stride", 1), ("dilation", 1)) for a in "xy"}
PADS = {f"pad_{side}": 1 for side in ("left", "right", "top", "bottom")}


def conv(g: GraphBuilder, name: str, x: Tensor, weights: np.ndarray, act: str, type: str = "Convolution") -> Tensor:
    outputs = len(weights)
    (y,) = g.layer(type, [x], name=name, outputs=[((*x.shape[:-1], outputs), "float32")],
                   attributes={"num_output": outputs, "group": outputs if type != "Convolution" else 1,
                               "with_activation": act, **WINDOW, **PADS},
                   constants={"weights": weights.astype(np.float32),
                              "biases": np.linspace(-1, 1, outputs, dtype=np.float32)})  # fmt: skip
    return y


def uneven(act: str) -> Graph:
    """Three convolutions whose channels have very different weights."""
    random = np.random.default_rng(0)
    g = GraphBuilder("uneven")
    x = g.input("x", (1, 6, 6, 3), "float32")
    spread = np.logspace(-2, 1, 8).reshape(8, 1, 1, 1)
    x = conv(g, "first", x, random.standard_normal((8, 3, 3, 3)) * spread, act)
    x = conv(g, "each", x, random.standard_normal((8, 3, 3, 1)) * spread[::-1], act, "DepthwiseConv")
    x = conv(g, "last", x, random.standard_normal((4, 3, 3, 8)), "NONE")
    return g.finish([x])


def data(graph: Graph, many: int = 8) -> list[dict[str, Any]]:
    random = np.random.default_rng(1)
    return [{t.name: random.standard_normal(t.shape).astype(np.float32) for t in graph.inputs} for _ in range(many)]


@pytest.mark.parametrize("act", ["NONE", "RELU", "RELU6"])
def test_equalised_graphs_compute_the_same(act):
    graph = uneven(act)
    even = run_stage("equalise", graph)
    verify.check(even)
    assert (even is graph) == (act == "RELU6"), "a limit does not move with the channels"
    for sample in data(graph, 2):
        want, got = (run_graph(g, sample)[g.outputs[0].name] for g in (graph, even))
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3 * np.abs(want).max())


def test_equalised_graphs_lose_less_with_one_scale_for_all_channels():
    graph = uneven("RELU")
    one = Settings().changed(per_channel=False)
    plain, even = (quantize_model(graph, data(graph), one.changed(equalise=e)).graph for e in (False, True))
    assert output_cosine(graph, even, data(graph)) > output_cosine(graph, plain, data(graph)) > 0.9


def test_corrected_biases_take_the_mean_error_away():
    graph = uneven("RELU")
    rough = Settings().changed(weight_bits=4)
    errors = {}
    for correct in (False, True):
        made = quantize_model(graph, data(graph, 32), rough.changed(correct_biases=correct)).graph
        errors[correct] = {row.layer: row.mse for row in similarity(graph, made, data(graph, 32), None)}
    assert errors[True]["first"] < errors[False]["first"]


def joined(scale: float) -> Graph:
    g = GraphBuilder("joined")
    x = g.input("x", (1, 4, 4, 2), "float32")
    weights = np.ones((2, 3, 3, 2))
    a, b = conv(g, "a", x, weights, "NONE"), conv(g, "b", x, weights * scale, "NONE")
    (moved,) = g.layer(
        "Transpose", [b], name="moved", outputs=[((1, 4, 4, 2), "float32")], attributes={"perm": [0, 2, 1, 3]}
    )
    (y,) = g.layer("Concat", [a, moved], name="joined", outputs=[((1, 4, 4, 4), "float32")], attributes={"axis": 3})
    return g.finish([y])


@pytest.mark.parametrize(("scale", "shared"), [(1.2, True), (8.0, False)])
def test_tensors_that_meet_take_one_scale_where_ranges_are_near(scale, shared):
    graph = joined(scale)
    made = quantize_model(graph, data(graph), Settings().changed(unify=1.5)).graph
    layers = {layer.name: layer for layer in made.layers}
    scales = {layers[name].output.scale for name in ("a", "b", "moved", "joined")}
    assert (len(scales) == 1) == shared
    assert ("scale_value" in layers["joined"].attributes) != shared
    assert output_cosine(graph, made, data(graph)) > 0.999


def test_operands_of_sums_take_one_scale_where_ranges_are_near():
    g = GraphBuilder("sum")
    x = g.input("x", (1, 4, 4, 2), "float32")
    a, b = (conv(g, name, x, np.full((2, 3, 3, 2), size), "NONE") for name, size in (("a", 1.0), ("b", 1.2)))
    (y,) = g.layer("Eltwise", [a, b], name="sum", outputs=[(a.shape, "float32")],
                   attributes={"method": "ADD", "with_activation": "NONE"})  # fmt: skip
    graph = g.finish([y])
    for unify, one in ((1.5, True), (1.0, False)):
        made = quantize_model(graph, data(graph), Settings().changed(unify=unify)).graph
        scales = next(layer.attributes["scale_value"] for layer in made.layers if layer.name == "sum")
        assert (scales[1:] == [1, 1]) == one
        assert output_cosine(graph, made, data(graph)) > 0.999


def test_statistics_that_lack_what_settings_look_at_are_told():
    graph = uneven("RELU")
    plain = calibrate(graph, data(graph))
    for given in ({"activation_strategy": "mse"}, {"activation_strategy": "3std"}, {"rounding": "adaptive"},
                  {"correct_biases": True}):  # fmt: skip
        with pytest.raises(CompassError, match="statistics"):
            quantize(graph, plain, Settings().changed(**given))


def chain(*types: str) -> Graph:
    g = GraphBuilder("chain")
    x = g.input("x", (1, 8), "float32")
    for i, type in enumerate(types):
        attributes = {"ELU": {"alpha": 1.0}}.get(type, {})
        (x,) = g.layer(type, [x], name=f"{type.lower()}{i}", outputs=[(x.shape, "float32")], attributes=attributes)
    return g.finish([x])


def test_floats_among_integers_are_converted_once_on_each_side():
    graph = chain("Sigmoid", "Tanh", "ELU", "Exp")
    settings = Settings().overridden({"tanh1": {"float": "float16"}, "elu2": {"float": "bfloat16"}})
    made = quantize_model(graph, data(graph), settings)
    verify.check(made.graph, verify.Stage.QUANTISED)
    types = [layer.type for layer in made.graph.layers]
    assert types == ["Input", "Sigmoid", "DeQuantize", "Tanh", "Cast", "ELU", "Quantize", "Exp"]
    assert made.floats == {"tanh1": "", "elu2": ""}
    assert output_cosine(graph, made.graph, data(graph)) > 0.999


def test_values_beyond_half_floats_stay_float32():
    graph = chain("Exp", "Square")
    samples = [{"x": np.full((1, 8), 9.0, np.float32)}, {"x": np.zeros((1, 8), np.float32)}]
    calibration = calibrate(graph, samples)
    walk = _Walk(graph, calibration, Settings())
    layers = {layer.name: layer for layer in graph.layers}
    assert [walk.fallback_of(layers[name]) for name in ("exp0", "square1")] == ["float16", "float32"]


def test_constants_beyond_half_floats_are_a_warning():
    g = GraphBuilder("mask")
    x = g.input("x", (1, 4), "float32")
    mask = g.constant(np.array([[0, -1e9, 0, 0]], np.float32), "mask")
    (y,) = g.layer("Eltwise", [x, mask], name="sum", outputs=[((1, 4), "float32")],
                   attributes={"method": "ADD", "with_activation": "NONE"})  # fmt: skip
    with pytest.warns(UserWarning, match=r"'weights' of the layer 'mask' goes to 1e\+09"):
        quantize_model(g.finish([y]), None, "fp16")


def annotated(zero: int) -> Graph:
    """tanh, its output in given steps, sigmoid."""
    g = GraphBuilder("annotated")
    x = g.input("x", (1, 8), "float32")
    (x,) = g.layer("Tanh", [x], name="tanh", outputs=[((1, 8), "float32")])
    (q,) = g.layer("Quantize", [x], name="to", outputs=[Tensor("q", (1, 8), "int8", 50.0, zero)],
                   attributes={"round_mode": "ROUND_TO_EVEN"})  # fmt: skip
    (x,) = g.layer("DeQuantize", [q], name="fro", outputs=[((1, 8), "float32")])
    (x,) = g.layer("Sigmoid", [x], name="sigmoid", outputs=[((1, 8), "float32")])
    return g.finish([x])


@pytest.mark.parametrize("zero", [0, 20])
def test_scales_that_a_graph_brings_along_are_taken(zero):
    graph = annotated(zero)
    mode = "asymmetric" if zero else "symmetric_full_range"
    made = quantize_model(graph, data(graph), Settings().changed(activation_mode=mode))
    verify.check(made.graph, verify.Stage.QUANTISED)
    layers = {layer.name: layer for layer in made.graph.layers}
    assert [layer.type for layer in made.graph.layers] == ["Input", "Tanh", "Sigmoid"]
    assert layers["tanh"].output.scale == pytest.approx(50.0, rel=1e-6)
    assert layers["tanh"].output.zero == zero
    assert output_cosine(graph, made.graph, data(graph)) > 0.999


def test_given_scales_that_do_not_fit_the_mode_are_rescaled():
    graph = annotated(20)
    made = quantize_model(graph, data(graph)).graph
    verify.check(made, verify.Stage.QUANTISED)
    assert [layer.type for layer in made.layers] == ["Input", "Tanh", "Cast", "Sigmoid"]
    assert output_cosine(graph, made, data(graph)) > 0.999
