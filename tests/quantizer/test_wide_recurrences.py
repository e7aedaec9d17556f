"""Weights of recurrent layers have as many bits as sums of 32 bits allow; layers that no integers serve are float32."""

import numpy as np
import pytest

from compassc.graph import GraphBuilder
from compassc.graph.run import run_graph
from compassc.quantizer.compare import outputs_of
from compassc.quantizer.model import quantize_model

STEPS, FEATURES = 5, 12


def recurrence(kind, cell, bias=0.1):
    random = np.random.default_rng(0)
    gates = {"BasicLSTM": 4, "GRUv1": 3, "GRUv3": 3, "RNN": 1}[kind]
    g = GraphBuilder("net")
    x = g.input("x", (1, STEPS, FEATURES), "float32")
    zeros = [g.constant(np.zeros((1, cell), np.float32), n) for n in (("h", "c") if kind == "BasicLSTM" else ("h",))]
    weights = random.normal(size=(gates * cell, FEATURES + cell)).astype(np.float32) / np.float32(np.sqrt(cell))
    biases = (random.normal(size=(gates + (kind == "GRUv1")) * cell) * bias).astype(np.float32)
    given = {"time_steps": STEPS, "input_size": FEATURES, "cell_size": cell}
    given["out_sequence"] = ["H"] if kind.startswith("GRU") else ["Y"]
    (y,) = g.layer(
        kind, [x, *zeros], name="r", outputs=[((1, STEPS, cell), "float32")], attributes=given,
        constants={"weights": weights, "biases": biases},
    )  # fmt: skip
    return g.finish([y])


def samples(many, seed=0):
    random = np.random.default_rng(seed)
    return [{"x": random.normal(size=(1, STEPS, FEATURES)).astype(np.float32)} for _ in range(many)]


def ratio(graph, form):
    made = quantize_model(graph, samples(16), form)
    (layer,) = [layer for layer in made.graph.layers if layer.name == "r"]
    (row,) = outputs_of(graph, made.graph, samples(4, 1))
    return layer, row.sqnr


@pytest.mark.parametrize("cell", [8, 150])
@pytest.mark.parametrize("kind", ["BasicLSTM", "GRUv1", "GRUv3", "RNN"])
def test_weights_of_16_bit_layers_are_wide(kind, cell):
    graph = recurrence(kind, cell)
    narrow, wide = ratio(graph, "w8a16"), ratio(graph, "int16")
    assert narrow[0].constant("weights").dtype == np.int8 and wide[0].constant("weights").dtype == np.int16
    assert wide[1] > narrow[1] + 8
    sums = np.abs(wide[0].constant("weights")[:, FEATURES:].astype(np.int64)).sum(1)
    shift = 0
    if kind == "BasicLSTM":  # by which its kernel moves sums of the state before they are 32 bits
        shift = int(wide[0].constant("shift")[0]) - wide[0].factor("lut_shift_value", 0)
        assert shift > 0
    assert wide[1] > (66 if kind == "GRUv3" else 68)
    if kind.startswith(
        "GRU"
    ):  # the candidate's sums of the state are brought to 16 bits, or are of a state that was halved
        gates, candidate = np.split(sums, [2 * cell])
        assert kind == "GRUv1" or candidate.max() << 14 < 1 << 31
        assert candidate.max() > gates.max()
        sums = gates
    assert kind == "RNN" or sums.max() << 15 >> shift < 1 << 31


def test_large_biases_leave_weights_fewer_bits():
    small, large = (ratio(recurrence("GRUv3", 8, bias), "int16")[0] for bias in (0.1, 50.0))
    of_input, of_state = (
        [int(np.abs(layer.constant("weights")[:, at]).max()).bit_length() for layer in (small, large)]
        for at in (slice(FEATURES), slice(FEATURES, None))
    )
    assert of_input[1] < of_input[0] and of_state[0] == of_state[1]


def far(distance):
    """What is left of x beside a number that is much larger."""
    g = GraphBuilder("net")
    x, c = g.input("x", (1, 64), "float32"), g.constant(np.full((1, 64), distance, np.float32), "c")
    (a,) = g.layer("Eltwise", [x, c], name="a", outputs=[(x.shape, "float32")], attributes={"method": "ADD"})
    (b,) = g.layer("Eltwise", [a, c], name="b", outputs=[(x.shape, "float32")], attributes={"method": "SUB"})
    return g.finish([b])


@pytest.mark.parametrize(("distance", "expected"), [(3000.0, "float32"), (1e6, "float32"), (0.1, "")])
def test_auto_takes_float32_where_nothing_else_is_near(distance, expected):
    graph = far(distance)
    xs = np.random.default_rng(0).normal(size=(20, 1, 64)).astype(np.float32)
    made = quantize_model(graph, xs, "auto")
    assert (expected in made.raised.values()) == bool(expected)
    (row,) = outputs_of(graph, made.graph, [{"x": x} for x in xs[:4]])
    assert row.cosine > 0.999
    assert np.isfinite(run_graph(graph, {"x": xs[0]})["b_0"]).all()
