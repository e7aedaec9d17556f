"""Operators of ONNX Runtime against ONNX Runtime."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from compassc.graph.run import run_graph
from compassc.importers.onnx import import_model
from tests.importers.networks import Net

F32, U8, I8 = np.float32, np.uint8, np.int8
random = np.random.default_rng(11)


def some(*shape):
    return random.standard_normal(shape).astype(F32)


def integers(*shape, dtype=U8):
    info = np.iinfo(dtype)
    return random.integers(info.min, info.max, shape, endpoint=True).astype(dtype)


S, Z = F32(0.02), U8(120)
T, Y = F32(0.03), U8(7)
CASES = {
    "SkipSimplifiedLayerNormalization": (some(2, 3, 8), [some(2, 3, 8), some(8)], {}),
    "SkipLayerNormalization": (some(2, 3, 8), [some(2, 3, 8), some(8), some(8), some(8)], {"epsilon": 1e-4}),
    "Gelu": (some(2, 5), [], {}),
    "BiasGelu": (some(2, 5), [some(5)], {}),
    "FastGelu": (some(2, 5), [some(5)], {}),
    "QuickGelu": (some(2, 5), [], {"alpha": 1.5}),
    "FusedMatMul": (some(2, 3, 4), [some(2, 5, 4)], {"transB": 1, "alpha": 0.5}),
    "MatMulNBits": (
        some(3, 40),
        [integers(6, 3, 8), np.abs(some(18)), integers(6 * 2)],
        {"K": 40, "N": 6, "bits": 4, "block_size": 16},
    ),
    "QLinearSigmoid": (integers(2, 9), [S, Z, F32(1 / 256), U8(0)], {}),
    "QLinearLeakyRelu": (integers(2, 9), [S, Z, T, Y], {"alpha": 0.1}),
    "QLinearSoftmax": (integers(2, 9), [S, Z, F32(1 / 256), U8(0)], {"axis": -1, "opset": 13}),
    "QLinearGlobalAveragePool": (integers(1, 3, 4, 5), [S, Z, S, Z], {}),
    "QLinearAveragePool": (integers(1, 3, 4, 6), [S, Z, S, Z], {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "QLinearAdd": (integers(2, 9), [S, Z, integers(2, 9), T, Y, F32(0.04), U8(100)], {}),
    "QLinearMul": (integers(2, 9), [S, Z, integers(2, 9), T, Y, F32(0.1), U8(100)], {}),
    "QGemm": (
        integers(3, 6),
        [S, Z, integers(6, 4, dtype=I8) // 2, F32(0.01), I8(3), np.int32([10, -20, 30, 5]), F32(0.2), U8(90)],
        {"transB": 0},
    ),
}
"""Weights with signs have 7 bits: ONNX Runtime limits sums of two products to 16 bits on hosts without VNNI."""


@pytest.mark.parametrize("name", CASES)
def test_it_gives_what_onnx_runtime_gives(name, chained):
    x, others, attributes = CASES[name]
    names = [f"c{i}" for i in range(len(others))]
    node = helper.make_node(name, ["x", *names], ["y"], "it", domain="com.microsoft", **attributes)
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    graph = helper.make_graph(
        [node],
        "net",
        [helper.make_tensor_value_info("x", kind, x.shape)],
        [helper.make_tensor_value_info("y", kind, None)],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in zip(names, others, strict=True)],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    (want,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    (got,) = chained(import_model(model), x)
    assert got.dtype == want.dtype
    # integers: a step, where the last bits of a factor decide
    np.testing.assert_allclose(got.astype(float), want.astype(float), rtol=1e-4, atol=1 if want.dtype == U8 else 1e-5)


AFTER = {
    "Concat": lambda net, x: net("Concat", x, x, axis=1),
    "Pad": lambda net, x: net("Pad", x, net.ints(0, 0, 1, 0, 0, 0, 0, 2), net.constant(3, np.int8)),
    "Slice": lambda net, x: net("Slice", x, net.ints(1), net.ints(4), net.ints(2)),
    "Transpose": lambda net, x: net("Transpose", x, perm=[0, 2, 3, 1]),
    "MaxPool": lambda net, x: net("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]),
    "Gather": lambda net, x: net("Gather", x, net.ints(2, 0), axis=2),
    "Split": lambda net, x: net("Split", x, net.ints(1, 3), outputs=2, axis=1)[1],
    "Where": lambda net, x: net("Where", net("Less", x, net.constant(5, np.int8)), x, net.constant(-7, np.int8)),
    "Max": lambda net, x: net("Max", x, net.constant(11, np.int8)),
    "Cast": lambda net, x: net("Cast", x, to=TensorProto.FLOAT),
}
"""Operators on whole numbers, which know nothing of the scale that the operator before them gave these."""


@pytest.mark.parametrize("name", AFTER)
def test_whole_numbers_behind_a_quantised_operator_are_what_they_look_like(name):
    net = Net()
    x = net.input("x", 1, 4, 6, 6, kind=TensorProto.INT8)
    scales = [net.constant(v, t) for v, t in ((0.02, np.float32), (-128, np.int8), (0.03, np.float32), (17, np.int8))]
    w = net.constant(np.random.default_rng(0).integers(-9, 9, (4, 4, 1, 1)), np.int8)
    ws, wz = net.constant(0.05, np.float32), net.constant(0, np.int8)
    made = AFTER[name](net, net("QLinearConv", x, scales[0], scales[1], w, ws, wz, scales[2], scales[3]))
    model, data = net.model(made), np.random.default_rng(1).integers(-128, 128, (1, 4, 6, 6)).astype(np.int8)
    (want,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": data})
    graph = import_model(model)
    got = run_graph(graph, {graph.inputs[0].name: data})[graph.outputs[0].name]
    assert got.shape == want.shape and np.abs(got.astype(float) - want.astype(float)).max() <= 1


def test_operands_of_a_quantised_concat_are_brought_to_its_scale():
    net = Net()
    parts: list[str] = []
    for name, scale, zero in (("a", 0.02, -128), ("b", 0.01, 5)):
        parts += [net.input(name, 1, 3, 4, kind=TensorProto.INT8), net.constant(scale), net.constant(zero, np.int8)]
    y = net("QLinearConcat", net.constant(0.025), net.constant(-128, np.int8), *parts, axis=1, domain="com.microsoft")
    model = net.model(y)
    data = [np.random.default_rng(s).integers(-128, 128, (1, 3, 4)).astype(np.int8) for s in range(2)]
    (want,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, dict(zip("ab", data, strict=True)))
    graph = import_model(model)
    got = run_graph(graph, {t.name: d for t, d in zip(graph.inputs, data, strict=True)})[graph.outputs[0].name]
    assert np.abs(got.astype(int) - want).max() <= 1


@pytest.mark.parametrize("coarse", [0.04, 3.0, 100.0, 1000.0])
def test_operands_whose_scales_are_far_apart_are_added_in_floats(coarse):
    net = Net()
    ends = [net.input(n, 1, 40, kind=TensorProto.INT8) for n in "ab"]
    given = [net.constant(v, t) for s in (0.01, coarse, 0.02) for v, t in ((s, np.float32), (3, np.int8))]
    y = net("QLinearAdd", ends[0], *given[:2], ends[1], *given[2:4], *given[4:], domain="com.microsoft")
    model, source = net.model(y), np.random.default_rng(0)
    data = [source.integers(-128, 128, (1, 40)).astype(np.int8), source.integers(2, 5, (1, 40)).astype(np.int8)]
    (want,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, dict(zip("ab", data, strict=True)))
    graph = import_model(model)
    assert any(layer.type == "DeQuantize" for layer in graph.layers) is (coarse > 500)
    got = run_graph(graph, {t.name: d for t, d in zip(graph.inputs, data, strict=True)})[graph.outputs[0].name]
    assert np.abs(got.astype(int) - want).max() <= 1
