"""A sample of whole networks in forms of numbers; `make test-networks` runs all of them in all forms."""

from __future__ import annotations

import pytest

from compassc.graph.run import run_graph
from compassc.layers.real_values import to_raw
from tests.choosing import chosen
from tests.networks.catalogue import NETWORKS
from tests.networks.whole import FORMS, drawn, faults, in_form, layer_faults, network

SAMPLE = [
    *(("key_words", "mixed"), ("super_resolution", "uint8"), ("volumes", "int8_asymmetric"), ("recommender", "int16")),
    *(("translation_gru", "int16_whole"), ("small_transformer", "int8_asymmetric_weights")),
]


@pytest.mark.parametrize(("name", "form"), SAMPLE, ids=lambda v: v)
def test_every_layer_of_a_network_gives_what_its_reference_gives(name, form):
    assert faults(name, form) == []


@pytest.mark.parametrize("name", sorted(chosen(NETWORKS, 2)))
def test_networks_are_imported_and_quantised_as_a_whole(name):
    graph, reasons = in_form(name, "int8_per_tensor")
    assert reasons == []
    assert len(graph.layers) >= len(network(name).layers)


def test_forms_are_of_the_types_they_are_called():
    assert {t.dtype for layer in in_form("squeezenet", "uint8")[0].layers for t in layer.outputs} >= {"uint8"}
    assert {t.dtype for layer in in_form("squeezenet", "uint16")[0].layers for t in layer.outputs} >= {"uint16"}
    assert len({t.dtype for layer in in_form("squeezenet", "mixed")[0].layers for t in layer.outputs}) > 3
    assert len(FORMS) > 12


def test_a_wrong_element_is_found():
    graph, _ = in_form("key_words", "int8")
    given = drawn(network("key_words"), 3, False)
    values = run_graph(graph, {t.name: to_raw(t, given[t.name]) for t in graph.inputs})
    assert list(layer_faults(graph, values)) == []
    wrong = next(layer for layer in graph.layers if layer.type == "DepthwiseConv").output
    values[wrong.name] = values[wrong.name].copy()
    values[wrong.name].flat[5] ^= 1
    assert any(f"{wrong.name}: 1 of {wrong.count} differ, at 5" in fault for fault in layer_faults(graph, values))
