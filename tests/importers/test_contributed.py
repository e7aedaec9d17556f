"""Operators of ONNX Runtime against ONNX Runtime."""

import numpy as np
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from compassc.importers.onnx import import_model

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
        [S, Z, integers(6, 4, dtype=I8), F32(0.01), I8(3), np.int32([10, -20, 30, 5]), F32(0.2), U8(90)],
        {"transB": 0},
    ),
}


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
