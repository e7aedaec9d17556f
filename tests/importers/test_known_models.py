"""The networks whose graphs and results are known: imported, they compute the same in no more layers."""

from pathlib import Path

import numpy as np
import pytest

from compass_runtime import Program
from compassc.graph.text import read, write
from compassc.importers import import_model

FOLDER = Path(__file__).parents[1] / "data" / "graphs"
NETWORKS = sorted(p.parent for p in FOLDER.glob("*/model.onnx"))


@pytest.mark.parametrize("folder", NETWORKS, ids=lambda p: p.name)
def test_the_imported_graph_equals_the_known_one(folder, chained):
    graph = import_model(folder / "model.onnx")
    known = read((folder / "float.txt").read_text(), (folder / "float.bin").read_bytes())
    x = np.load(folder / "x0.npy")
    assert len(graph.layers) <= len(known.layers)
    assert [t.shape for t in graph.inputs] == [t.shape for t in known.inputs]
    assert [t.shape for t in graph.outputs] == [t.shape for t in known.outputs]
    for got, want, expected in zip(chained(graph, x), chained(known, x), [np.load(folder / "y0.npy")], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("folder", NETWORKS, ids=lambda p: p.name)
def test_it_reads_back_equal(folder):
    graph = import_model(folder / "model.onnx")
    assert read(*write(graph)) == graph


@pytest.mark.parametrize("name", ["kws", "gru"])
def test_a_built_model_gives_the_known_results_on_the_simulator(name, compassc, tmp_path):
    folder = FOLDER / name
    done = compassc("build", str(folder / "model.onnx"), "-t", "X2_1204", "-o", str(tmp_path / "aipu.bin"))
    assert (done.status, done.out) == (0, ""), done.err
    assert sorted(p.name for p in (tmp_path / "model.compass").glob("float.*")) == ["float.bin", "float.txt"]
    program = Program.load(tmp_path / "aipu.bin")
    (got,) = program.create_job().run({program.inputs[0].name: np.load(folder / "x0.npy")}).values()
    np.testing.assert_allclose(got, np.load(folder / "y0.npy"), rtol=1e-4, atol=1e-5)
