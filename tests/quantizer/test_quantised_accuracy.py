"""What quantisation costs networks that were trained, measured against the float graph: distances, and answers that change."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
import training

from compassc.graph import Graph
from compassc.graph.specialise import specialise
from compassc.quantizer import quantize_model
from compassc.quantizer.compare import run_quantised
from tests.digits import needs_digits

pytestmark = needs_digits

COSTS = {"int8": (24, 0.01), "w8a16": (36, 0.006), "int16": (70, 0.0), "fp16": (58, 0.002)}
"""Settings -> the least ratio of signal to noise in dB, and the most answers that change."""


def scores(graph: Graph) -> np.ndarray:
    """What a network says about all digits [N, 10]."""
    x, _ = training.digits()
    whole = specialise(graph, {"x": (len(x), 8, 8, 1)})
    return run_quantised(whole, {"x": x})[graph.outputs[0].name]


@pytest.mark.parametrize("name", ["cnn", "transformer"])
def test_trained_networks_say_what_they_said(name):
    graph = getattr(training, name)()
    before = scores(graph)
    x, labels = training.digits()
    assert (before.argmax(-1) == labels).mean() > 0.95
    for settings, (ratio, changed) in COSTS.items():
        after = scores(quantize_model(graph, x[:100], settings).graph)
        assert 10 * np.log10((before**2).sum() / ((after - before) ** 2).sum()) > ratio, settings
        assert (after.argmax(-1) != before.argmax(-1)).mean() <= changed, settings
