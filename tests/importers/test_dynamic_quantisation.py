"""Models whose scales are found at run time, and LSTMs that are taken apart: the numbers of ONNX's reference."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from compassc import onnx_backend
from compassc.importers.onnx import import_model
from compassc.importers.refusals import RefusedModel

TARGET = "X2_1204"
FLOAT = TensorProto.FLOAT


def random(*shape, dtype="float32", seed=0):
    draw = np.random.default_rng(seed)
    return draw.normal(size=shape).astype(dtype) if dtype == "float32" else draw.integers(0, 256, shape).astype(dtype)


def model(nodes, x, y, **constants):
    made = [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "net", [value("x", FLOAT, x)], [value("y", FLOAT, y)], made)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets)


def quantised(operator, weights, zero, y, x):
    """x quantised as it comes, an operator of whole numbers, and back."""
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node(operator, ["q", "w", "z", "w_zero"], ["total"], "product"),
        helper.make_node("Cast", ["total"], ["real"], to=FLOAT),
        helper.make_node("Mul", ["s", "w_scale"], ["scale"]),
        helper.make_node("Mul", ["real", "scale"], ["y"]),
    ]
    return model(nodes, x, y, w=weights, w_zero=zero, w_scale=np.float32(0.01))


MODELS = {
    "matmul": quantised("MatMulInteger", random(16, 10, dtype="uint8"), np.uint8(120), (4, 10), (4, 16)),
    "matmul, a zero point per column": quantised(
        "MatMulInteger", random(16, 10, dtype="uint8"), random(10, dtype="uint8"), (4, 10), (4, 16)
    ),
    "conv": quantised("ConvInteger", random(4, 3, 3, 3, dtype="uint8"), np.uint8(131), (1, 4, 6, 6), (1, 3, 8, 8)),
}


@pytest.mark.parametrize("device", [onnx_backend.REFERENCE, TARGET])
@pytest.mark.parametrize("name", MODELS)
def test_results_are_those_of_onnx(name, device):
    net = MODELS[name]
    shape = [d.dim_value for d in net.graph.input[0].type.tensor_type.shape.dim]
    run = onnx_backend.prepare(net, device)
    for x in (random(*shape), random(*shape, seed=1) * 7 + 3, np.zeros(shape, np.float32)):
        (want,) = ReferenceEvaluator(net).run(None, {"x": x})
        assert np.array_equal(run.run([x])[0], want)


def test_that_scales_are_found_at_run_time_is_said():
    with pytest.warns(UserWarning, match="scales are found at run time.*quantise that: --calibrate"):
        import_model(MODELS["conv"])


def test_the_fused_operator_is_the_same():
    node = helper.make_node(
        "DynamicQuantizeMatMul", ["x", "w", "w_scale", "w_zero", "b"], ["y"], domain="com.microsoft"
    )
    weights, bias = random(16, 10, dtype="uint8"), random(10)
    given = {"w": weights, "w_scale": np.float32([0.01]), "w_zero": np.uint8([120]), "b": bias}
    x = random(4, 16)
    (plain,) = ReferenceEvaluator(MODELS["matmul"]).run(None, {"x": x})
    (got,) = onnx_backend.prepare(model([node], (4, 16), (4, 10), **given), onnx_backend.REFERENCE).run([x])
    assert np.allclose(got, plain + bias, rtol=1e-6, atol=1e-6)


def test_what_has_no_form_says_what_to_do():
    node = helper.make_node("QAttention", ["x"], ["y"], domain="com.microsoft")
    with pytest.raises(
        RefusedModel, match="give the float model that it was made from, and quantise that: --calibrate"
    ):
        import_model(model([node], (4, 16), (4, 10)))


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_peepholes(direction):
    many, size = (2 if direction == "bidirectional" else 1), 5
    constants = {
        "w": random(many, 4 * size, 3, seed=1),
        "r": random(many, 4 * size, size, seed=2),
        "b": random(many, 8 * size, seed=3),
        "h": random(many, 2, size, seed=4),
        "c": random(many, 2, size, seed=5),
        "p": random(many, 3 * size, seed=6),
    }
    names = ["x", "w", "r", "b", "", "h", "c", "p"]
    node = helper.make_node("LSTM", names, ["y"], hidden_size=size, direction=direction)
    net = model([node], (4, 2, 3), (4, many, 2, size), **constants)
    x = random(4, 2, 3)
    (got,) = onnx_backend.prepare(net, onnx_backend.REFERENCE).run([x])
    assert np.allclose(got, by_definition(x, constants, direction), atol=1e-5)


def by_definition(x, given, direction):
    """The equations of ONNX's page on LSTM, in float64."""
    found = []
    for d, backward in enumerate([False, True] if direction == "bidirectional" else [direction == "reverse"]):
        w, r, b, h, c, p = (given[k][d].astype(np.float64) for k in ("w", "r", "b", "h", "c", "p"))
        pi, po, pf = np.split(p, 3)
        steps = []
        for xt in x[::-1] if backward else x:
            i, o, f, g = np.split(xt @ w.T + h @ r.T + np.add(*np.split(b, 2)), 4, -1)
            i, f = 1 / (1 + np.exp(-(i + pi * c))), 1 / (1 + np.exp(-(f + pf * c)))
            c = f * c + i * np.tanh(g)
            h = np.tanh(c) / (1 + np.exp(-(o + po * c)))
            steps.append(h)
        found.append(np.stack(steps[::-1] if backward else steps))
    return np.stack(found, 1)
