"""`compassc optimize`, and graphs for inputs of other shapes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc.graph import GraphBuilder, read
from compassc.graph.files import load, save
from compassc.graph.graph import SOURCES
from compassc.graph.passes import optimise
from compassc.graph.run import run_graph
from compassc.graph.specialise import specialise
from compassc.graph.verify import Stage, check
from tests.memory import peak_of_memory

FOLDER = Path(__file__).parents[1] / "data" / "graphs"
FLOATS = sorted(FOLDER.glob("*/float.txt"))
QUANTISED = [p for p in sorted(FOLDER.glob("*/*.txt")) if p.stem in ("default", "asym")]


@pytest.mark.parametrize("path", [*FLOATS, *QUANTISED], ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_known_graphs_are_in_order_and_keep_their_results(path):
    graph = load(path)
    check(graph, Stage.QUANTISED if path.stem != "float" else Stage.IMPORTED)
    after = optimise(graph)
    check(after, Stage.QUANTISED if path.stem != "float" else Stage.OPTIMISED)
    assert len(after.layers) <= len(graph.layers)
    x = np.load(path.parent / "x0.npy")
    draw = np.random.default_rng(0)
    inputs = {t.name: x if path.stem == "float" else draw.integers(-100, 100, t.shape) for t in graph.inputs}
    before, now = run_graph(graph, inputs), run_graph(after, inputs)
    for t in graph.outputs:
        np.testing.assert_allclose(now[t.name], before[t.name], rtol=0, atol=1e-5 if path.stem == "float" else 0)


@pytest.mark.parametrize(
    "path", [p for p in FLOATS if p.parent.name not in ("gru", "lstm")], ids=lambda p: p.parent.name
)
def test_a_graph_for_more_at_once_gives_each_its_result(path):
    graph = load(path)
    (x,) = graph.inputs
    three = specialise(graph, {x.name: (3, *x.shape[1:])})
    check(three, Stage.IMPORTED)
    arrays = np.random.default_rng(0).normal(0, 1, three.inputs[0].shape).astype("float32")
    together = run_graph(three, {x.name: arrays})
    for i in range(3):
        alone = run_graph(graph, {x.name: arrays[i : i + 1]})
        for t in graph.outputs:
            np.testing.assert_allclose(together[t.name][i : i + 1], alone[t.name], rtol=0, atol=1e-5)


def test_all_layers_that_do_not_follow_are_named():
    graph = load(FOLDER / "lenet" / "float.txt")
    with pytest.raises(CompassError, match="FullyConnected"):
        specialise(graph, {"x_0": (1, 1, 40, 40)})
    with pytest.raises(CompassError, match="no input 'y'"):
        specialise(graph, {"y": (1, 1, 40, 40)})
    with pytest.raises(CompassError, match="4 dimensions"):
        specialise(graph, {"x": (1, 40, 40)})
    assert specialise(graph, {"x": graph.inputs[0].shape}) is graph


def test_the_command_writes_a_graph_with_fewer_layers(compassc, tmp_path):
    build = GraphBuilder("net")
    x = build.input("x", (1, 2, 3, 4), "float32")
    (t,) = build.layer(
        "Transpose", [x], name="t", outputs=[((1, 4, 2, 3), "float32")], attributes={"perm": [0, 3, 1, 2]}
    )
    (e,) = build.layer("Exp", [t], name="e", outputs=[(t.shape, "float32")])
    (y,) = build.layer("Transpose", [e], name="y", outputs=[(x.shape, "float32")], attributes={"perm": [0, 2, 3, 1]})
    build.constant(np.zeros(3, "float32"), "unused")
    path = tmp_path / "net.txt"
    save(build.finish([y]), path)
    done = compassc(
        "optimize",
        str(path),
        "-o",
        str(tmp_path / "opt.txt"),
        "--print-after",
        "RemoveDeadLayers",
        "--time-passes",
        "--shape",
        "x=2x2x3x4",
    )
    assert (done.status, done.out) == (0, ""), done.err
    assert "*** IR after RemoveDeadLayers ***" in done.err
    after = load(tmp_path / "opt.txt")
    assert [n.type for n in after.layers if n.type not in SOURCES] == ["Transpose", "Exp", "Transpose"]
    assert after.inputs[0].shape == after.outputs[0].shape == (2, 2, 3, 4)
    assert not (tmp_path / "net.opt.txt").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--disable-pass", "Nothing"], "unknown pass 'Nothing'"),
        (["--passes", "FoldConstant,FlattenBuffer"], "unknown pass 'FlattenBuffer'"),
        (["--shape", "z=1x2"], "no input 'z'"),
    ],
)
def test_what_the_command_refuses(compassc, tmp_path, arguments, message):
    done = compassc("optimize", str(FLOATS[0]), "-o", str(tmp_path / "opt.txt"), *arguments)
    assert done.status in (1, 2)
    assert message in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_graph_with_several_faults_names_all():
    lines = [
        "model_name=m",
        "",
        "layer_name=x",
        "layer_type=Input",
        "layer_bottom=[]",
        "layer_top=[x_0]",
        "layer_top_shape=[[1,3]]",
        "layer_top_type=[int8]",
        "layer_top_scale=[-1.0]",
        "",
        "layer_name=x",
        "layer_type=Transpose",
        "layer_bottom=[x_0]",
        "layer_top=[y]",
        "layer_top_shape=[[1,3]]",
        "layer_top_type=[int8]",
        "perm=[1,0]",
    ]
    with pytest.raises(CompassError) as caught:
        check(read("\n".join(lines), path="m.txt"))
    messages = [str(e) for e in caught.value.errors]
    assert len(messages) == 3
    for wanted in (
        "m.txt:3: .*scale -1.0",
        "m.txt:11: the name 'x' is taken",
        "m.txt:11: .*make .3, 1., but it has 'y' .1, 3.",
    ):
        assert any(re.search(wanted, m) for m in messages), (wanted, messages)


def test_constants_are_not_copied_on_their_way_through(tmp_path):
    """From file to file: those that no pass changes are there once."""
    g = GraphBuilder("net")
    x = g.input("x", (1, 1024), "float32")
    given = {"weights": np.ones((2048, 1024), "float32"), "biases": np.zeros(2048, "float32")}
    named = {"num_output": 2048, "with_activation": "NONE"}
    (y,) = g.layer("FullyConnected", [x], name="y", outputs=[((1, 2048), "float32")], attributes=named, constants=given)
    save(g.finish([y]), tmp_path / "a.txt")
    for _ in range(2):  # what is imported counts the first time alone
        with peak_of_memory() as peak:
            save(optimise(load(tmp_path / "a.txt")), tmp_path / "b.txt")
    assert peak() < 0.2 * given["weights"].nbytes
    assert (tmp_path / "b.bin").read_bytes() == (tmp_path / "a.bin").read_bytes()
