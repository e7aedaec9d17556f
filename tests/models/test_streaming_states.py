"""States between runs: a network called sample by sample is the network called on the sequence."""

import numpy as np
import pytest
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh
from onnx.reference import ReferenceEvaluator

import compassc
from compass_core.aipubin.graphnote import GraphNote, NotedState, NotedTensor, read_ends
from compass_core.errors import CompassError
from compass_runtime.cli import main as compass_run
from compassc.evaluation import evaluate
from compassc.graph.files import load, save
from compassc.graph.states import State, recurrent_states, states_of, with_states

CELLS, FEATURES, STEPS = 6, 4, 9


def info(name, *shape):
    return h.make_tensor_value_info(name, T.FLOAT, shape)


def network(layers=2, joined=None):
    """GRUs above each other, whose states are parts of one tensor: one step (`joined`: their order in the output)."""
    random = np.random.default_rng(1)
    nodes, weights = [h.make_node("Split", ["h0"], [f"h{i}" for i in range(1, layers + 1)], axis=0)], []
    before = "x"
    for i in range(layers):
        for name, columns in (("W", FEATURES if i == 0 else CELLS), ("R", CELLS)):
            array = random.normal(size=(1, 3 * CELLS, columns)).astype(np.float32) / 2
            weights.append(nh.from_array(array, f"{name}{i}"))
        nodes.append(
            h.make_node("GRU", [before, f"W{i}", f"R{i}", "", "", f"h{i + 1}"], [f"Y{i}", f"n{i}"], hidden_size=CELLS)
        )
        nodes.append(h.make_node("Squeeze", [f"Y{i}", "one"], [f"s{i}"]))
        before = f"s{i}"
    weights.append(nh.from_array(np.array([1]), "one"))
    order = joined or range(layers)
    nodes.append(h.make_node("Concat", [f"n{i}" for i in order], ["hn"], axis=0))
    nodes.append(h.make_node("Sigmoid", [before], ["y"]))
    graph = h.make_graph(
        nodes, "net", [info("x", 1, 1, FEATURES), info("h0", layers, 1, CELLS)],
        [info("y", 1, 1, CELLS), info("hn", layers, 1, CELLS)], weights,
    )  # fmt: skip
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 13)], ir_version=8)


@pytest.fixture(scope="module")
def samples():
    return np.random.default_rng(0).normal(size=(STEPS, 1, 1, FEATURES)).astype(np.float32)


@pytest.fixture(scope="module")
def wanted(samples):
    """What ONNX's reference makes of the samples, and the last state."""
    run = ReferenceEvaluator(network()).run
    state, found = np.zeros((2, 1, CELLS), np.float32), []
    for x in samples:
        y, state = run(None, {"x": x, "h0": state})
        found.append(y)
    return np.concatenate(found), state


@pytest.fixture(scope="module", params=[{"hn": "h0"}, "auto"], ids=["named", "auto"])
def model(request):
    return compassc.compile(network(), "X2_1204", states=request.param)


def test_samples_follow_each_other_in_one_call_or_in_several(model, samples, wanted):
    model.reset()
    whole = model(samples)
    assert np.abs(whole - wanted[0]).max() < 1e-5
    assert np.abs(model.states.kept["h0_0"] - wanted[1]).max() < 1e-5
    model.reset()
    assert np.array_equal(np.concatenate([model(samples[:4]), *(model(x) for x in samples[4:])]), whole)


def test_a_state_may_be_given(model, samples):
    model.reset()
    whole = model(samples)
    model.reset()
    model(samples[:3])
    state = model.states.kept["h0_0"]
    model.reset()
    assert np.array_equal(model(x=samples[3:], h0=state), whole[3:])
    model(samples[:1])
    first = np.repeat(np.zeros((1, 2, 1, CELLS), np.float32), 3, 0)
    assert np.array_equal(model(np.repeat(samples[:1], 3, 0), first), np.repeat(whole[:1], 3, 0))


def test_the_order_of_parts_is_looked_at():
    assert recurrent_states(compassc.compile(network(), "X2_1204").graph) == [State(1, 1)]
    assert not recurrent_states(compassc.compile(network(joined=[1, 0]), "X2_1204").graph)


def test_all_forms_keep_states(samples, wanted, tmp_path):
    made = compassc.compile(network(), "X2_1204", states="auto", calibrate=samples, quantize="int8", folder=tmp_path)
    loaded = compassc.Model.load(tmp_path)
    assert np.array_equal(made(samples), loaded(samples)) and np.abs(made(samples[:1]) - wanted[0][:1]).max() < 0.1
    found = evaluate(made, samples)
    assert found.part.agreement.same == found.part.agreement.total > 0
    assert {round(s.cosine, 2) for s in found.part.outputs.values()} == {1.0}


def test_graphs_keep_states(tmp_path):
    graph = compassc.compile(network(), "X2_1204", states="auto").graph
    assert states_of(load(save(graph, tmp_path / "g.txt") and tmp_path / "g.txt")) == (State(1, 1),)


@pytest.mark.parametrize(
    ("states", "options", "message"),
    [
        ({"hn": "x0"}, {}, "no input 'x0'"),
        ({"yn": "h0"}, {}, "no output 'yn'"),
        ({"y": "h0"}, {}, "not alike"),
        ({"hn": "h0"}, {"batch": 2}, "samples follow each other"),
    ],
)
def test_what_cannot_be_kept_is_refused(states, options, message):
    with pytest.raises(CompassError, match=message):
        compassc.compile(network(1) if options else network(), "X2_1204", states=states, **options)


def test_an_input_is_one_state():
    graph = compassc.compile(network(), "X2_1204").graph
    with pytest.raises(CompassError, match="given two states"):
        with_states(graph, [State(1, 1), State(1, 1)])
    with pytest.raises(CompassError, match="no input of the graph is the state"):
        compassc.compile(network(joined=[1, 0]), "X2_1204", states="auto")


def test_commands_keep_states(model, samples, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", samples[:8]), np.save("half.npy", samples[4:8])
    model.reset()
    whole = model(samples[:8])

    def run(*words):
        with pytest.raises(SystemExit) as left:
            compass_run([str(model.path), "-o", "y.npy,h.npy", *words])
        assert left.value.code == 0, capsys.readouterr().err
        return np.load("y.npy")

    assert np.array_equal(run("--inputs", "x.npy"), whole)
    again = run("--inputs", "x.npy", "--reset-every", "4")
    assert np.array_equal(again[:4], whole[:4]) and not np.array_equal(again[4:], whole[4:])
    np.save("x.npy", samples[:4])
    assert np.array_equal(run("--inputs", "x.npy", "--state-file", "s.npz"), whole[:4])
    assert np.array_equal(run("--inputs", "half.npy", "--state-file", "s.npz"), whole[4:8])


def test_notes_with_states_that_cannot_be_are_not_believed():
    ends = (NotedTensor("x", "float32", (2,)),), (NotedTensor("y", "float32", (2,)), NotedTensor("z", "float32", (3,)))
    good = GraphNote(*ends, states=(NotedState("x", "y", 0.5),))
    assert read_ends(good.to_bytes()) == good
    for wrong in (NotedState("x", "z"), NotedState("y", "x"), NotedState("x", "y", float("nan"))):
        assert read_ends(GraphNote(*ends, states=(wrong,)).to_bytes()) is None
