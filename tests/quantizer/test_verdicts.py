"""The verdict on a quantised graph, and the mixture of forms that keeps what was asked for."""

from __future__ import annotations

import numpy as np
import pytest
from test_quantised_networks import network, samples

from compass_core.errors import CompassError
from compassc.graph import Graph
from compassc.layers.kernels import kernel_of
from compassc.quantizer import Settings, calibrate, convert, precision, quantize_model
from compassc.quantizer.compare import MEASURED, output_cosine
from compassc.quantizer.data import Samples
from compassc.quantizer.precision import FORMS, Wanted, raised
from compassc.quantizer.verdict import HELD_BACK, judge, own_losses, parted


@pytest.mark.parametrize("count", [1, 4, 5, 9, 30, 101])
def test_samples_to_measure_on_are_none_of_calibration(count):
    given, measured, held_back = parted(Samples(count, lambda i: {"x": np.full(1, i)}))
    own, others = ({int(sample["x"][0]) for sample in part} for part in (given, measured))
    assert held_back == (count >= HELD_BACK) and 0 < len(others) <= MEASURED
    if held_back:
        assert not own & others and len(own) == count - count // HELD_BACK
    else:
        assert own == set(range(count)) >= others


def test_a_network_that_8_bits_are_enough_for_stays_so():
    graph = network("depthwise")
    whole = quantize_model(graph, samples(graph), "int8")
    least = output_cosine(graph, whole.graph, samples(graph))
    made = quantize_model(graph, samples(graph), "auto", min_cosine=least - 1e-9)
    assert not made.raised and "int8 keeps" in made.why
    assert [layer.outputs for layer in made.graph.layers] == [layer.outputs for layer in whole.graph.layers]


@pytest.fixture(scope="module")
def mixture():
    """(the float graph, the cosine of int8, what was asked for, the outcome, cycles of what was compared)."""
    graph, seen = network("transformer"), dict[str, float]()
    settings = Settings.preset("int8")
    data = Samples(len(samples(graph)), samples(graph).__getitem__)
    calibration = calibrate(graph, data, settings)
    first = output_cosine(graph, quantize_model(graph, calibration=calibration).graph, data)
    wanted = Wanted(1 - (1 - first) / 4)

    def cycles(quantised: Graph) -> float:
        forms = [t.dtype for layer in quantised.computing() for t in layer.outputs]
        form = "float16" if "float16" in forms else "w8a16" if "float32" in forms or "int16" in forms else "int8"
        seen[form] = {"float16": 1.0, "w8a16": 3.0, "int8": 9.0}[form]
        return seen[form]

    return graph, first, wanted, raised(graph, data, calibration, settings, wanted, cycles), seen


def test_a_mixture_keeps_what_was_asked_for_with_part_of_the_layers(mixture):
    graph, first, wanted, made, _ = mixture
    assert first < wanted.cosine <= output_cosine(graph, made.graph, samples(graph))
    assert 0 < len(made.raised) < len(list(graph.computing()))


def test_of_mixtures_that_keep_it_the_one_with_the_fewest_cycles_is_taken(mixture):
    _, _, _, made, seen = mixture
    assert len(seen) > 1 and set(made.raised.values()) <= set(FORMS)
    assert {"float16": "float16"}.get(min(seen, key=lambda form: seen[form]), "w8a16") in set(made.raised.values())
    assert len(made.why.splitlines()) > 2


def test_a_search_that_is_late_ends_with_what_holds(monkeypatch):
    graph = network("depthwise")
    first = output_cosine(graph, quantize_model(graph, samples(graph), "int8").graph, samples(graph))
    monkeypatch.setattr(precision, "SECONDS", -1.0)
    made = quantize_model(graph, samples(graph), "auto", min_cosine=1 - (1 - first) / 4, cycles=lambda graph: 1 / 0)
    assert set(made.raised.values()) == {FORMS[-1]} and "the search ended after" in made.why
    assert output_cosine(graph, made.graph, samples(graph)) > first


def test_a_mixture_is_measured_as_its_verdict_is():
    graph = network("depthwise")
    data = samples(graph, 60)
    least = quantize_model(graph, data, "int8", judged=True).verdict.cosine + 1e-6
    made = quantize_model(graph, data, "auto", min_cosine=least, judged=True)
    assert made.raised and made.verdict.samples == 12 and made.verdict.cosine >= least
    assert made.cosine == pytest.approx(made.verdict.cosine, abs=1e-12)


def test_layers_that_were_quantised_alike_before_need_no_kernel_again(monkeypatch):
    graph, made = network("depthwise"), []
    monkeypatch.setattr(convert, "_with_kernel", set())
    monkeypatch.setattr(convert, "kernel_of", lambda layers: made.append(layers[0].name) or kernel_of(layers))
    calibration = quantize_model(graph, samples(graph), "int8").calibration
    first = len(made)
    bad = next(layer.name for layer in graph.layers if layer.type == "Convolution")
    other = Settings.preset("int8").overridden({bad: {"weight_bits": 4}})
    for settings in ("int8", other):
        quantize_model(graph, None, settings, calibration=calibration)
    assert first > 5 and made[first:] == [bad]


def test_what_no_form_keeps_is_an_error_only_where_it_was_asked_for():
    graph = network("depthwise")
    with pytest.raises(CompassError, match="no choice of bits"):
        quantize_model(graph, samples(graph, 2), "auto", min_cosine=1.0)
    assert quantize_model(graph, samples(graph, 6), "int8", judged=True).verdict is not None
    with pytest.raises(CompassError, match="less than 200 dB"):
        quantize_model(graph, samples(graph, 6), "w8a16", min_sqnr=200.0, judged=True)


def test_the_layer_that_loses_most_is_named_with_what_to_do():
    graph = network("depthwise")
    bad = next(layer.name for layer in graph.layers if layer.type == "Convolution")
    settings = Settings.preset("int8").overridden({bad: {"activation_strategy": "5percentile"}})
    made = quantize_model(graph, samples(graph), settings, judged=True)
    assert made.verdict is not None and made.verdict.held_back and made.verdict.cosine < 0.999
    loss, advice = made.verdict.worst[0]
    assert loss.layer.name == bad and bad in advice and "activation_bits: 16" in advice
    assert any(bad in line for line in made.verdict.lines())
    good = judge(
        graph,
        quantize_model(graph, samples(graph), "int16").graph,
        Settings(),
        Samples(1, samples(graph).__getitem__),
        True,
    )
    assert not good.is_far and all(advice == "good enough" for _, advice in good.worst)


def test_layers_are_judged_by_what_they_lose_themselves():
    graph = network("depthwise")
    data = Samples(2, samples(graph).__getitem__)
    first = next(layer.name for layer in graph.layers if layer.type == "Convolution")
    coarse = Settings.preset("int16").overridden({first: {"activation_bits": 8}})
    made = quantize_model(graph, samples(graph), coarse)
    losses = {loss.layer.name: loss.sqnr for loss in own_losses(graph, made.graph, data)}
    assert min(losses, key=lambda name: losses[name]) == first
