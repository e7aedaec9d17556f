"""A few random networks; `make fuzz-layers` runs many."""

from __future__ import annotations

import pytest

from tests.layers.random_networks import check, graph_text, network


@pytest.mark.parametrize("seed", [2, 5, 11])
def test_random_networks_give_what_the_references_give(seed):
    assert check(seed, most=4) == []


def test_networks_reach_30_layers_and_are_drawn_again_from_their_seed():
    sizes = [len(network(seed).layers) for seed in range(8)]
    assert max(sizes) == 30
    assert graph_text(network(3)) == graph_text(network(3))
