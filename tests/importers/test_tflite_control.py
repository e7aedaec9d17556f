"""TFLite's control flow and variables: what is known is unrolled, what is kept is a state, all else is refused."""

import numpy as np
import pytest

import compassc
from compass_core.errors import CompassError
from compass_core.errors.rendering import shown as rendered
from compassc.graph.run import run_graph
from compassc.graph.states import State, states_of
from compassc.importers.tflite import import_bytes
from compassc.importers.tflite.operators import control
from tests.importers.tflite_models import Model, Tensor


def shown(error):
    return rendered(error, "text", False)


def made(content, *arrays):
    """The outputs of a model by the references."""
    graph = import_bytes(content)
    values = run_graph(graph, {t.name: np.asarray(a) for t, a in zip(graph.inputs, arrays, strict=True)})
    return [values[t.name] for t in graph.outputs]


def scaled(factor, **levels):
    """A body that multiplies its input."""
    body = Model()
    x = body.input("x", (1, 4))
    return body, [body("MUL", [x, body.constant(np.float32(factor))], (1, 4))]


def branches(condition):
    net = Model()
    x = net.input("x", (1, 4))
    c = net.constant(np.array([condition])) if condition is not None else net.input("c", (1,), "bool")
    y = net("IF", [c, x], (1, 4), then_subgraph_index=1, else_subgraph_index=2)
    return net.bytes(y, bodies=[scaled(2), scaled(3)])


X = np.array([[1, -2, 3, 4]], np.float32)


@pytest.mark.parametrize("condition", [True, False])
def test_a_known_condition_is_its_branch(condition):
    assert np.array_equal(made(branches(condition), X)[0], X * (2 if condition else 3))
    assert [layer.type for layer in import_bytes(branches(condition)).computing()] == ["Mul"]


@pytest.mark.parametrize("condition", [True, False])
def test_of_a_computed_condition_both_branches_are(condition):
    assert np.array_equal(made(branches(None), X, [condition])[0], X * (2 if condition else 3))


def counted(limit, known=True):
    """WHILE i < limit: i += 1, x *= 2."""
    net, condition, body = Model(), Model(), Model()
    x = net.input("x", (1, 4))
    i = net.constant(np.int32(0)) if known else net.input("i", (), "int32")
    a, b = (net.add(Tensor(n, s, d)) for n, s, d in (("i1", (), "int32"), ("y", (1, 4), "float32")))
    net.node("WHILE", [i, x], [a, b], cond_subgraph_index=1, body_subgraph_index=2)
    j, _ = condition.input("j", (), "int32"), condition.input("z", (1, 4))
    going = condition("LESS", [j, condition.constant(np.int32(limit))], (), "bool")
    k, z = body.input("k", (), "int32"), body.input("z", (1, 4))
    more = body("ADD", [k, body.constant(np.int32(1))], (), "int32")
    twice = body("MUL", [z, body.constant(np.float32(2))], (1, 4))
    return net.bytes(b, bodies=[(condition, [going]), (body, [more, twice])])


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_loops_of_known_steps_are_unrolled(steps):
    assert np.array_equal(made(counted(steps), X)[0], X * 2**steps)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (counted(5, known=False), "its condition is only known at run time"),
        (counted(100_000), "more than 50 steps"),
    ],
)
def test_other_loops_are_refused(content, message, monkeypatch):
    monkeypatch.setattr(control, "MOST_STEPS", 50)
    with pytest.raises(CompassError) as error:
        import_bytes(content)
    assert message in shown(error.value)


def handle(net, name="kept"):
    at = net.add(Tensor(f"h{len(net.tensors)}", (), "resource"))
    net.node("VAR_HANDLE", [], [at], shared_name=name)
    return at


def summing(initial=None, dtype="float32", read_again=False):
    """y = kept + x, and kept = y; it begins with `initial`."""
    levels = {"scale": 0.5, "zero": 3} if dtype == "int8" else {}
    net, first, bodies = Model(), Model(), []
    x = net.input("x", (1, 4), dtype, **levels)
    if initial is not None:
        net.node("CALL_ONCE", [], [], init_subgraph_index=1)
        value = first.constant(np.broadcast_to(initial, (1, 4)).astype(dtype), **levels)
        first.node("ASSIGN_VARIABLE", [handle(first), value], [])
        bodies = [(first, [])]
    h = handle(net)
    kept = net("READ_VARIABLE", [h], (1, 4), dtype, **levels)
    y = net("ADD", [kept, x], (1, 4), dtype, **levels)
    net.node("ASSIGN_VARIABLE", [h, y], [])
    out = net("READ_VARIABLE", [h], (1, 4), dtype, **levels) if read_again else y
    return net.bytes(out, bodies=bodies)


@pytest.mark.parametrize(("initial", "begins"), [(None, 0.0), (2.5, 2.5)])
@pytest.mark.parametrize("read_again", [False, True])
def test_variables_are_states(initial, begins, read_again, tmp_path):
    content = summing(initial, read_again=read_again)
    assert states_of(import_bytes(content)) == (State(1, 1, begins),)
    (tmp_path / "m.tflite").write_bytes(content)
    model = compassc.compile(tmp_path / "m.tflite", "X2_1204")
    got = [model(X), model(X), model(X)]
    assert np.array_equal(np.concatenate(got), begins + X * [[1], [2], [3]])
    model.reset()
    assert np.array_equal(model(np.repeat(X, 3, 0)), np.concatenate(got))


def test_quantised_variables_are_states():
    model = compassc.compile(import_bytes(summing(7, "int8")), "X2_1204")  # 7 is the number 2
    assert [model(X).tolist() for _ in range(2)] == [(2 + X).tolist(), (2 + 2 * X).tolist()]


def test_a_variable_that_no_run_assigns_is_a_constant():
    net, first = Model(), Model()
    x = net.input("x", (1, 4))
    net.node("CALL_ONCE", [], [], init_subgraph_index=1)
    first.node("ASSIGN_VARIABLE", [handle(first), first.constant(X)], [])
    y = net("ADD", [net("READ_VARIABLE", [handle(net)], (1, 4)), x], (1, 4))
    graph = import_bytes(net.bytes(y, bodies=[(first, [])]))
    assert not states_of(graph)
    assert np.array_equal(made(net.bytes(y, bodies=[(first, [])]), X)[0], 2 * X)


def test_branches_may_assign():
    """kept is x where c, else 3 x."""
    bodies = []
    for factor in (1, 3):
        body = Model()
        x = body.input("x", (1, 4))
        y = body("MUL", [x, body.constant(np.float32(factor))], (1, 4))
        body.node("ASSIGN_VARIABLE", [handle(body), y], [])
        bodies.append((body, [y]))
    net = Model()
    x, c = net.input("x", (1, 4)), net.input("c", (1,), "bool")
    before = net("READ_VARIABLE", [handle(net)], (1, 4))
    y = net("IF", [c, x], (1, 4), then_subgraph_index=1, else_subgraph_index=2)
    out = net("ADD", [y, before], (1, 4))
    model = compassc.compile(import_bytes(net.bytes(out, bodies=bodies)), "X2_1204")
    got = [model(X, np.array([c])) for c in (True, False, True)]
    assert np.array_equal(np.stack(got), np.stack([X, 4 * X, 4 * X]))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (summing([[1, 2, 3, 4]]), "begins with numbers that are not all the same"),
        (summing(np.inf), "begins with inf"),
    ],
)
def test_variables_that_graphs_cannot_keep_are_refused(content, message):
    with pytest.raises(CompassError) as error:
        import_bytes(content)
    assert message in shown(error.value)


def test_what_bodies_refuse_is_told():
    body = Model()
    x = body.input("x", (1, 4))
    wrong = body("RFFT2D", [x], (1, 4))
    net = Model()
    x = net.input("x", (1, 4))
    c = net.input("c", (1,), "bool")
    y = net("IF", [c, x], (1, 4), then_subgraph_index=1, else_subgraph_index=9)
    for bodies in ([(body, [wrong])], [scaled(2)]):
        with pytest.raises(CompassError) as error:
            import_bytes(net.bytes(y, bodies=bodies))
        assert ("RFFT2D" in shown(error.value)) == (bodies[0][0] is body) or "its body is the graph 9" in str(
            error.value
        )


def svdf(rank, dtype="float32", activation="NONE", units=3, size=4, memory=5, batch=2):
    """A model of one SVDF, and what it computes: a function of inputs one after the other."""
    rng, net, filters = np.random.default_rng(rank), Model(), units * rank
    feature, time, bias = (rng.normal(size=s).astype(np.float32) for s in ((filters, size), (filters, memory), units))
    whole = dtype == "int8"
    levels = {n: {"scale": s, "zero": z} if whole else {} for n, s, z in
              (("x", 1 / 32, 3), ("f", 1 / 32, 0), ("t", 1 / 8192, 0), ("s", 1 / 2048, 0), ("y", 1 / 4, -2))}  # fmt: skip
    if whole:
        feature, time = np.clip(np.rint(feature * 32), -127, 127) / 32, np.rint(time * 8192) / 8192
        bias = np.rint(bias * 2**24) / 2**24
    x = net.input("x", (batch, size), dtype, **levels["x"])
    given = [x, *(
        net.constant(np.rint(a / n["scale"]).astype(d) if whole else a, **n) for a, d, n in
        ((feature, "int8", levels["f"]), (time, "int16", levels["t"]),
         (bias, "int32", {"scale": 2.0**-24, "zero": 0} if whole else {}))
    ), net.add(Tensor("memory", (batch, filters * memory), "int16" if whole else dtype, variable=True,
                      **({"scale": np.array([1 / 2048]), "zero": np.array([0])} if whole else {})))]  # fmt: skip
    y = net("SVDF", given, (batch, units), dtype, "SVDFOptions", rank=rank, fused_activation_function=activation,
            **levels["y"])  # fmt: skip

    def outputs(inputs):
        kept = np.zeros((batch, filters, memory))
        for x in inputs:
            kept[:, :, :-1] = kept[:, :, 1:].copy()
            kept[:, :, -1] = np.asarray(x, np.float64) @ feature.T
            if whole:
                kept = np.rint(kept * 2048) / 2048
            found = (kept * time).sum(2).reshape(batch, units, rank).sum(2) + bias
            yield np.maximum(found, 0) if activation == "RELU" else found

    return net.bytes(y), outputs


@pytest.mark.parametrize(
    ("rank", "dtype", "activation"), [(1, "float32", "RELU"), (2, "float32", "NONE"), (2, "int8", "RELU")]
)
def test_svdf_keeps_its_features_between_runs(rank, dtype, activation):
    content, outputs = svdf(rank, dtype, activation)
    graph = import_bytes(content)
    assert states_of(graph) == (State(1, 1, 0.0),)
    model = compassc.compile(graph, "X2_1204")
    inputs = np.rint(np.random.default_rng(9).normal(size=(7, 2, 4)) * 32).astype(np.float32) / 32
    for x, want in zip(inputs, outputs(inputs), strict=True):
        assert np.abs(model(x) - want).max() <= (0.125 if dtype == "int8" else 1e-4)


def test_states_of_another_size_are_refused():
    net = Model()
    x = net.input("x", (1, 4))
    weights = [net.constant(np.ones(s, np.float32)) for s in ((3, 4), (3, 5), 3)]
    state = net.add(Tensor("memory", (1, 12), "float32", variable=True))
    y = net("SVDF", [x, *weights, state], (1, 3), options="SVDFOptions", rank=1)
    with pytest.raises(CompassError) as error:
        import_bytes(net.bytes(y))
    assert r"its state 'memory' is [1, 12], not [1, 15]" in shown(error.value)
