"""Operators of ONNX Runtime and quantised ONNX models as programs, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from compassc import relay
from compassc.relay.visit import post_order
from tests.choosing import some
from tests.importers import test_contributed as layers
from tests.importers.networks import Net
from tests.relay.relay_values import evaluate

F32, U8, I8 = np.float32, np.uint8, np.int8
RANDOM = np.random.default_rng(7)


def reals(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(F32)


def whole(*shape: int, dtype: type = I8) -> np.ndarray:
    info = np.iinfo(dtype)
    return RANDOM.integers(info.min, info.max, shape, endpoint=True).astype(dtype)


CASES = {
    **layers.CASES,
    "QLinearConcat": (F32(0.04), [U8(100), whole(2, 3, dtype=U8), F32(0.02), U8(9), whole(2, 4, dtype=U8), F32(0.04), U8(100)], {"axis": 1}),
    "QLinearGlobalAveragePool of channels last": (whole(1, 4, 5, 3, dtype=U8), [F32(0.02), U8(9), F32(0.03), U8(2)], {"channels_last": 1}),
    "FusedConv": (reals(1, 2, 5, 5), [reals(3, 2, 3, 3), reals(3)], {"activation": "LeakyRelu", "activation_params": [0.2]}),
    "FusedGemm": (reals(3, 4), [reals(4, 5), reals(5)], {"activation": "Relu"}),
    "MatMulIntegerToFloat": (whole(3, 6, dtype=U8), [whole(6, 4) // 2, F32(0.02), F32(0.03), U8(7), I8(-2), reals(4)], {}),
    "DynamicQuantizeMatMul": (reals(3, 6), [whole(6, 4) // 2, F32(0.03), I8(-2), reals(4)], {}),
    "Attention": (reals(2, 5, 8), [reals(8, 24), reals(24)], {"num_heads": 2}),
}  # fmt: skip
"""A name's first word is the operator; its first input, the others, which are known, and attributes. Weights of products have
7 bits: ONNX Runtime limits sums of two products to 16 bits on hosts without VNNI."""


def model_of(name: str) -> tuple[ModelProto, np.ndarray]:
    x, others, attributes = CASES[name]
    operator = name.split()[0]
    names = [f"c{i}" for i in range(len(others))]
    node = helper.make_node(operator, ["x", *names], ["y"], "it", domain="com.microsoft", **attributes)
    x = np.asarray(x)
    graph = helper.make_graph(
        [node], "net", [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)],
        [helper.make_tensor_value_info("y", _kind(operator, x), None)],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in zip(names, others, strict=True)],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), x


def _kind(operator: str, x: np.ndarray) -> int:
    whole_of_reals = {"QLinearConcat": TensorProto.UINT8, "MatMulIntegerToFloat": TensorProto.FLOAT}
    return whole_of_reals.get(operator, helper.np_dtype_to_tensor_dtype(x.dtype))


OFF = {"QLinearMul": 0.2, "QLinearAdd": 0.2, "QLinearAveragePool": 0.2}
"""Operators that ONNX Runtime computes with other roundings: the share of the elements that may be a level off."""


@pytest.mark.parametrize("name", CASES)
def test_operators_give_what_onnx_runtime_gives(name):
    model, x = model_of(name)
    (want,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    (got,) = evaluate(relay.frontend.from_onnx(model)[0], x)
    assert got.dtype == want.dtype and got.shape == want.shape
    if want.dtype.kind == "f":
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)
        return
    levels = np.abs(got.astype(int) - want)
    assert levels.max() <= (1 if name in OFF else 0)
    assert (levels > 0).mean() <= OFF.get(name, 0)


def qdq(net: Net, x: str, scale: float, zero: int, kind: type = I8) -> str:
    """A tensor that is quantised and dequantised."""
    given = [net.constant(scale, F32), net.constant(zero, kind)]
    return net("DequantizeLinear", net("QuantizeLinear", x, *given), *given)


def weights(net: Net, *shape: int) -> str:
    numbers = np.random.default_rng(shape).integers(-128, 128, shape).astype(I8)
    scales = net.constant(np.linspace(0.005, 0.01, shape[0]), F32)
    return net("DequantizeLinear", net.constant(numbers, I8), scales, net.constant(np.zeros(shape[0]), I8), axis=0)


def network() -> tuple[ModelProto, np.ndarray]:
    """A small quantised network: convolutions, a sum, pooling and a classifier, in QDQ form."""
    net = Net()
    x = qdq(net, net.input("x", 1, 3, 10, 10), 0.03, 4)
    first = qdq(net, net("Relu", net("Conv", x, weights(net, 4, 3, 3, 3), pads=[1, 1, 1, 1])), 0.05, -128)
    second = qdq(net, net("Conv", first, weights(net, 4, 4, 1, 1)), 0.06, 0)
    total = qdq(net, net("Add", first, second), 0.09, -20)
    pooled = net("MaxPool", total, kernel_shape=[2, 2], strides=[2, 2])
    flat = net("Reshape", pooled, net.ints(1, 100))
    scores = net("Gemm", qdq(net, flat, 0.09, -20), weights(net, 5, 100), transB=1)
    return net.model(qdq(net, scores, 0.15, 0)), np.random.default_rng(5).standard_normal((1, 3, 10, 10)).astype(F32)


def names(module: relay.IRModule) -> set[str]:
    return {e.op.name for e in post_order(module["main"]) if isinstance(e, relay.Call)}


def test_quantised_models_have_quantised_operators_and_become_whole_numbers():
    model, x = network()
    session = onnxruntime.SessionOptions()
    session.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    (want,) = onnxruntime.InferenceSession(model.SerializeToString(), session).run(None, {"x": x})
    module = relay.frontend.from_onnx(model)[0]
    assert {"qnn.quantize", "qnn.dequantize"} <= names(module)
    (got,) = evaluate(module, x)
    np.testing.assert_allclose(got, want, atol=1e-5)
    integers = relay.transform.FakeQuantizationToInteger()(module)
    assert {"qnn.conv2d", "qnn.dense", "qnn.add"} <= names(integers)
    assert not {"nn.conv2d", "nn.dense", "nn.matmul"} & names(integers)
    (near,) = evaluate(integers, x)
    assert np.abs(near - want).max() <= 4 * 0.15, "each of the layers may be a level off"
    assert len(np.unique(want)) > 3


def test_ties_go_to_even():
    net = Net()
    y = net("QuantizeLinear", net.input("x", 6), net.constant(0.5, F32), net.constant(0, I8))
    model, x = net.model(y), np.array([0.25, 0.75, 1.25, -0.25, -0.75, 100], F32)
    module = relay.frontend.from_onnx(model)[0]
    for m in some([module, relay.qnn.transform.CanonicalizeOps()(module)]):
        assert evaluate(m, x)[0].tolist() == [0, 2, 2, 0, -2, 127]
