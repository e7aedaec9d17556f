"""Regions of the NPU in integers: they are calibrated by what the host gives them, and run as the graphs that were quantised."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from compass_core.errors import CompassError
from compass_runtime.devices import cpu
from compass_runtime.graph_executor import GraphModule
from compassc import relay
from compassc.graph import files
from compassc.graph.run import run_graph
from compassc.relay.backend.build import build, partitioned
from compassc.relay.backend.calibration import observe, quantize_regions
from compassc.relay.backend.regions import PREBUILT, has_regions
from compassc.relay.module import IRModule
from tests.choosing import some
from tests.relay.relay_values import evaluate

RNG = np.random.default_rng(5)
WEIGHT = (RNG.standard_normal((4, 3, 3, 3)) / 4).astype("float32")
SAMPLES = [{"x": RNG.standard_normal((1, 3, 8, 8)).astype("float32")} for _ in range(6)]


def network() -> IRModule:
    """A region, a function of the host, and a region; the results of both regions."""
    x = relay.var("x", shape=(1, 3, 8, 8))
    hidden = relay.nn.relu(relay.nn.conv2d(x, relay.const(WEIGHT), padding=1))
    second = relay.nn.max_pool2d(relay.log2(hidden + relay.const(np.float32(1))), (2, 2), (2, 2))
    return relay.IRModule({"main": relay.Function([x], relay.Tuple([hidden, second]))})


def test_regions_are_given_what_the_host_computes() -> None:
    first, last = observe(partitioned(network()), SAMPLES[:2])
    assert all((arrays[0] == sample["x"]).all() for arrays, sample in some(zip(first.given, SAMPLES)))
    for (second,), sample in some(zip(last.given, SAMPLES)):
        hidden, _ = evaluate(network(), sample["x"])
        np.testing.assert_allclose(second, np.log2(hidden + 1), rtol=1e-5, atol=1e-6)


def test_they_run_as_the_graphs_that_were_quantised(tmp_path: Path) -> None:
    before = partitioned(network())
    observed = observe(before, SAMPLES)
    module, made = quantize_regions(before, observed, lambda graph: "int8", lambda name: tmp_path / name / "graph.txt")
    assert [region.name for region in made] == [one.name for one in observed] and len(made) == 2
    assert not any(region.outcome.floats for region in made)
    graph = GraphModule(build(module, "X2_1204")["default"](cpu()))
    quantised = files.load(tmp_path / made[0].name / "graph.txt")
    (taken,), outputs = quantised.inputs, {t.name: t for t in quantised.outputs}
    for sample in SAMPLES:
        graph.run(**sample)
        numbers = np.round(sample["x"] / np.float32(1 / taken.scalar_scale)) - taken.scalar_zero
        low, high = np.iinfo(taken.dtype).min, np.iinfo(taken.dtype).max
        results = run_graph(quantised, {taken.name: np.clip(numbers, low, high).astype(taken.dtype)})
        own = [
            (results[n].astype("float32") + t.scalar_zero) * np.float32(1 / t.scalar_scale) for n, t in outputs.items()
        ]
        assert any((graph.get_output(0).numpy() == values).all() for values in own if values.shape == (1, 4, 8, 8))
        for got, exact in zip((graph.get_output(i).numpy() for i in range(2)), evaluate(network(), sample["x"])):
            assert (got * exact).sum() / np.sqrt((got**2).sum() * (exact**2).sum()) > 0.999


def test_what_is_partitioned_stays_so() -> None:
    module = partitioned(network())
    assert has_regions(module["main"])
    assert relay.structural_equal(partitioned(module), module)


def test_without_samples_there_are_no_integers(tmp_path: Path) -> None:
    module = partitioned(network())
    with pytest.raises(CompassError, match="no calibration samples"):
        quantize_regions(module, observe(module, []), lambda graph: "int8", lambda name: tmp_path / name)
    assert PREBUILT not in str(module)
