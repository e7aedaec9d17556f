"""A few random networks; `make fuzz-layers` runs many."""

from __future__ import annotations

import numpy as np
import pytest

from compassc.graph import Layer, Tensor
from tests.layers.random_networks import Network, check, differences, graph_text, network


@pytest.mark.parametrize("seed", [2, 5, 11])
def test_random_networks_give_what_the_references_give(seed):
    assert check(seed, most=4) == []


def test_networks_reach_30_layers_and_are_drawn_again_from_their_seed():
    sizes = [len(network(seed).layers) for seed in range(8)]
    assert max(sizes) == 30
    assert graph_text(network(3)) == graph_text(network(3))


def test_a_tensor_that_is_used_under_another_shape_is_made(tmp_path):
    """Two layers use it, one of them a view of it, so that it must not vanish inside a kernel."""
    x, a, b = (Tensor(n, (4, 6), "float32") for n in "xab")
    flat, c = (Tensor(n, (24,), "float32") for n in ("flat", "c"))
    layers = [
        Layer("first", "Abs", [x], [a]),
        Layer("shaped", "Reshape", [a], [flat], {"shape": [24]}),
        Layer("second", "Negative", [a], [b]),
        Layer("third", "Sigmoid", [flat], [c]),
    ]
    assert not list(differences(Network(layers, [x]), tmp_path, True, np.random.default_rng(1)))
