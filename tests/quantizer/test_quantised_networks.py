"""Networks of the usual kinds, quantised: near the float network, and the simulator computes the same integers."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")

from compass_runtime import Program
from compassc.gbuilder.build import GraphOptions, build_model
from compassc.graph import Graph, files, passes, verify
from compassc.graph.run import run_graph
from compassc.importers import import_object
from compassc.layers.real_values import to_raw
from compassc.quantizer import Settings, calibrate, quantize_model
from compassc.quantizer.compare import output_cosine, similarity
from tests.importers import networks

NAMES = ("residual", "depthwise", "transformer", "lstm", "unet", "detector")
NEAR = {"int8": 0.99, "w8a16": 0.9999, "int16": 0.9999, "fp16": 0.9999, "bf16": 0.999}


@cache
def network(name: str) -> Graph:
    return passes.optimise(
        import_object(getattr(networks, name)(), {"x": (1, 3, 16, 16)} if name == "residual" else {})
    )


def samples(graph: Graph, many: int = 16, seed: int = 0) -> list[dict[str, np.ndarray]]:
    random = np.random.default_rng(seed)
    return [{t.name: random.standard_normal(t.shape).astype(np.float32) for t in graph.inputs} for _ in range(many)]


@pytest.mark.parametrize("settings", NEAR)
@pytest.mark.parametrize("name", NAMES)
def test_outputs_are_near_those_of_the_float_network(name, settings):
    graph = network(name)
    made = quantize_model(graph, samples(graph), settings)
    verify.check(made.graph, verify.Stage.QUANTISED)
    assert not [why for why in made.floats.values() if why]
    assert output_cosine(graph, made.graph, samples(graph, 4, seed=1)) >= NEAR[settings]


@pytest.mark.parametrize(
    "given",
    [
        {"activation_mode": "asymmetric"},
        {"per_channel": False, "weight_mode": "symmetric_full_range"},
        {"activation_strategy": "mse", "equalise": True},
        {"activation_strategy": "kld", "rounding": "adaptive", "correct_biases": True},
    ],
    ids=lambda given: "-".join(map(str, given.values())),
)
@pytest.mark.parametrize("name", ["residual", "depthwise", "lstm", "unet"])
def test_every_way_to_8_bits_is_near(name, given):
    graph = network(name)
    made = quantize_model(graph, samples(graph), Settings.preset("int8").changed(**given))
    assert output_cosine(graph, made.graph, samples(graph, 4, seed=1)) >= 0.99


@pytest.mark.parametrize(
    ("name", "settings"), [("depthwise", "int8"), ("lstm", "int8"), ("transformer", "w8a16"), ("residual", "int16")]
)
def test_the_simulator_computes_the_same_integers(name, settings, tmp_path):
    graph = network(name)
    made = quantize_model(graph, samples(graph), settings).graph
    weights = files.save(made, tmp_path / "quant.txt")
    build_model(tmp_path / "quant.txt", weights, tmp_path / "aipu.bin", "X2_1204", GraphOptions(work_dir=tmp_path))
    given = samples(graph, 1, seed=2)[0]
    inputs = {t.name: to_raw(t, given[t.name]) for t in made.inputs}
    want = run_graph(made, inputs)
    got = Program.load(tmp_path / "aipu.bin").create_job().run(inputs)
    for t in made.outputs:  # a network that ends in float32 sums in another order there
        np.testing.assert_allclose(got[t.name], want[t.name], rtol=0, atol=0 if t.is_integer else 1e-6)


def test_every_tensor_is_compared():
    graph = network("depthwise")
    made = quantize_model(graph, samples(graph)).graph
    rows = similarity(graph, made, samples(graph, 2))
    assert {row.name for row in rows} == {
        t.name for layer in graph.layers if layer.type != "Constant" for t in layer.outputs
    }
    assert min(row.cosine for row in rows) > 0.98
    same = similarity(graph, graph, samples(graph, 2))
    assert all(row.mse < 1e-9 for row in same)


def test_layers_get_more_bits_until_outputs_are_near_enough():
    graph = network("transformer")
    rough = quantize_model(graph, samples(graph))
    first = output_cosine(graph, rough.graph, samples(graph))
    wanted = 1 - (1 - first) / 4
    fine = quantize_model(graph, samples(graph), min_cosine=wanted)
    assert first < wanted <= fine.cosine
    assert 0 < len(fine.raised) < len(list(graph.computing()))
    raised = {layer.name: layer for layer in fine.graph.layers}
    assert not any(raised[name].outputs[0].dtype in ("int8", "uint8") for name in fine.raised)


@pytest.mark.parametrize("settings", ["int8", "w8a16"])
@pytest.mark.parametrize("name", ["gru", "lstm", "kws", "pools", "segmentation"])
def test_known_networks_are_near_on_other_data(name, settings):
    graph = files.load(Path(__file__).parents[1] / "data" / "graphs" / name / "float.txt")
    made = quantize_model(graph, samples(graph), settings)
    assert not [why for why in made.floats.values() if why]
    assert output_cosine(graph, made.graph, samples(graph, 4, seed=1)) >= NEAR[settings] - 0.0005


def test_samples_run_together_where_constants_belong_to_each():
    """A token for the class in front of the samples' own, and the first state of a recurrent layer."""
    from compassc.quantizer.execute import Batches, at_once, together

    net = networks.Net()
    x = net("Concat", net.weights(1, 1, 8), net.input("x", 1, 5, 8), axis=1)
    steps = net("Transpose", x, perm=[1, 0, 2])
    y, _ = net("GRU", steps, net.weights(1, 12, 8), net.weights(1, 12, 4), outputs=2, hidden_size=4)
    graph = passes.optimise(import_object(net.model(net("Transpose", net("Squeeze", y, net.ints(1)), perm=[1, 0, 2]))))
    two = samples(graph, 2)
    batches, in_rows = together(graph, two)
    assert isinstance(batches, Batches) and in_rows and at_once(graph) > 2


def _never(layer, inputs):
    raise AssertionError(f"'{layer.name}' is computed")


def test_samples_are_known_to_stay_apart_without_a_run():
    from compassc.quantizer.execute import near, stacked, together

    graph = network("residual")
    two = samples(graph, 2)
    batches, in_rows = together(graph, two, _never)
    assert in_rows
    both = run_graph(batches.of(2), stacked(two))
    for i, sample in enumerate(two):
        assert all(near(values[0], both[key][i]) for key, values in run_graph(graph, sample).items())


def test_where_samples_may_mix_the_graph_is_run():
    from compassc.quantizer.execute import together

    net = networks.Net()
    graph = import_object(net.model(net("Softmax", net.input("x", 1, 4, 8), axis=0)))
    with pytest.raises(AssertionError, match="is computed"):
        together(graph, samples(graph, 2), _never)
    assert together(graph, samples(graph, 2)) == (None, False)


@pytest.mark.parametrize("given", [{}, {"activation_strategy": "kld"}, {"correct_biases": True}], ids=str)
def test_statistics_are_the_same_on_any_number_of_processors(given, monkeypatch):
    from compassc.layers import threads
    from compassc.quantizer import execute

    monkeypatch.setattr(execute, "AT_ONCE", 3)
    graph, settings = network("depthwise"), Settings.preset("int8").changed(**given)
    found = []
    for many in (1, 4):
        for module in (threads, execute):
            monkeypatch.setattr(module, "processors", lambda many=many: many)
        made = calibrate(graph, samples(graph, 11), settings)
        assert made.samples == 11
        found.append(
            [(name, vars(record) | {"counts": record.counts.tolist()}) for name, record in made.records.items()]
        )
        found[-1] += [(name, m.mean.tolist()) for name, m in made.moments.items()]
    assert found[0] == found[1]
