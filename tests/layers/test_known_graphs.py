"""The references of layers against networks whose every tensor is known."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from compass_runtime import Program
from compassc.gbuilder.build import GraphOptions, build_model
from compassc.graph import Graph
from compassc.graph import read as read_graph
from compassc.layers.declare import evaluate
from tests.choosing import some

FOLDER = Path(__file__).parents[1] / "data" / "graphs"
GRAPHS = sorted(FOLDER.glob("*/*.txt"))
TOLERANCE = {2: 2e-3, 4: 1e-5}
"""Relative to a tensor's largest element, by bytes of a float."""


def read(path: Path) -> tuple[Graph, dict[str, np.ndarray]]:
    """A graph and the known tensors of its run."""
    graph = read_graph(path.read_text(), path.with_suffix(".bin").read_bytes(), str(path))
    names = json.loads(path.with_suffix(".names.json").read_text())
    with np.load(path.with_suffix(".npz")) as arrays:
        return graph, {name: arrays[f"arr_{i}"] for i, name in enumerate(names)}


def assert_same(got: np.ndarray, want: np.ndarray, label: str) -> None:
    assert got.shape == want.shape, label
    if got.dtype.kind in "iub":
        np.testing.assert_array_equal(got.astype("int64"), want.astype("int64"), label)
    else:
        wide = want.astype("float64")
        limit = TOLERANCE[got.dtype.itemsize] * max(1e-3, np.abs(wide).max())
        np.testing.assert_allclose(got.astype("float64"), wide, rtol=0, atol=limit, err_msg=label)


@pytest.mark.parametrize("path", GRAPHS, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_every_layer_gives_the_known_tensors(path):
    graph, known = read(path)
    known |= {n.output.name: n.constants["weights"] for n in graph.layers if n.type == "Constant"}
    for layer in some(graph.computing()):
        inputs = [known[t.name] for t in layer.inputs]
        for got, tensor in some(zip(evaluate(layer, inputs), layer.outputs, strict=True)):
            assert_same(got, known[tensor.name], f"{layer.type} {layer.name}: {tensor.name}")


RUNS = [
    p
    for p in GRAPHS
    if f"{p.parent.name}/{p.stem}"
    in ("lenet/default", "kws/asym", "mlp/perchan", "pools/float", "lstm/perchan", "gru/asym", "gru/fp16")
]


@pytest.mark.parametrize("fuse", [True, False], ids=["joined", "apart"])
@pytest.mark.parametrize("path", RUNS, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_the_simulator_gives_the_known_outputs(path, fuse, tmp_path):
    graph, known = read(path)
    options = GraphOptions(work_dir=tmp_path, fuse=fuse)
    build_model(path, path.with_suffix(".bin"), tmp_path / "aipu.bin", "X2_1204", options)
    job = Program.load(tmp_path / "aipu.bin").create_job()
    outputs = job.run({t.name: known[t.name] for t in graph.inputs})
    for tensor in graph.outputs:
        assert_same(outputs[tensor.name], known[tensor.name], tensor.name)


@pytest.mark.parametrize("path", GRAPHS, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_whole_graphs_give_the_known_outputs(path):
    graph, known = read(path)
    values = {t.name: known[t.name] for t in graph.inputs}
    values |= {n.output.name: n.constants["weights"] for n in graph.layers if n.type == "Constant"}
    for layer in graph.computing():
        inputs = [values[t.name] for t in layer.inputs]
        values |= zip([t.name for t in layer.outputs], evaluate(layer, inputs), strict=True)
    for tensor in some(graph.outputs):
        assert_same(values[tensor.name], known[tensor.name], tensor.name)
