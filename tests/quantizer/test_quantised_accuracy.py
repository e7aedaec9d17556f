"""What quantisation costs networks that were trained: at most 1 % of the samples in 8 bits, 0.1 % in 16."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("sklearn")
sys.path.insert(0, str(Path(__file__).parent))
import training

from compassc.graph import Graph
from compassc.graph.specialise import specialise
from compassc.quantizer import quantize_model
from compassc.quantizer.compare import run_quantised


def accuracy(graph: Graph) -> float:
    """The part of all digits that a network tells right."""
    x, labels = training.digits()
    whole = specialise(graph, {"x": (len(x), 8, 8, 1)})
    return float((run_quantised(whole, {"x": x})[graph.outputs[0].name].argmax(-1) == labels).mean())


@pytest.mark.parametrize("name", ["cnn", "transformer"])
def test_trained_networks_keep_their_accuracy(name):
    graph = getattr(training, name)()
    before = accuracy(graph)
    assert before > 0.95
    x, _ = training.digits()
    for settings, loss in (("int8", 0.01), ("w8a16", 0.001), ("int16", 0.001), ("fp16", 0.001)):
        made = quantize_model(graph, x[:100], settings)
        assert accuracy(made.graph) >= before - loss, settings
