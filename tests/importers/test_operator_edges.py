"""Operators where something is missing or boundless: axes of reductions, finite numbers, dimensions."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from compassc import onnx_backend, relay
from compassc.importers.onnx.versions import REDUCTIONS
from compassc.relay import frontend

AXES = numpy_helper.from_array(np.zeros(0, np.int64), "axes")


@pytest.mark.parametrize("shape", [(), (2, 3)])
@pytest.mark.parametrize("name", ["Sum", *REDUCTIONS])
def test_a_reduction_along_no_axis_does_what_is_left(name, shape):
    start, end = (helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in "xy")
    node = helper.make_node(f"Reduce{name}", ["x", "axes"], ["y"], noop_with_empty_axes=1)
    graph = helper.make_graph([node], "g", [start], [end], [AXES])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    x = np.resize(np.float32([-1.5, 2, 0.25]), shape)
    (wanted,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    (by_layers,) = onnx_backend.prepare(model, "REFERENCE").run([x])
    module, params = frontend.from_onnx(model)
    by_program = relay.create_executor("debug", mod=module).evaluate()(x, **params).numpy()
    np.testing.assert_allclose(by_layers, wanted, rtol=1e-6)
    np.testing.assert_allclose(by_program, wanted, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_sums_of_exponentials_have_the_infinities_of_their_largest_numbers(dtype):
    x = np.asarray([[np.inf, 1], [-np.inf, 2], [-np.inf, -np.inf], [-np.inf, np.inf]], dtype)
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    start, end = (helper.make_tensor_value_info(n, kind, s) for n, s in (("x", (4, 2)), ("y", (4, 1))))
    graph = helper.make_graph([helper.make_node("ReduceLogSumExp", ["x"], ["y"], axes=[1])], "g", [start], [end])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    (found,) = onnx_backend.prepare(model, "REFERENCE").run([x])
    assert found.reshape(-1).tolist() == [np.inf, 2, -np.inf, np.inf]


@pytest.mark.parametrize("operator", ["QuantizeLinear", "DequantizeLinear"])
def test_a_scalar_stays_one_where_its_scale_is_computed(operator):
    dtypes = ("f4", "u1") if operator == "QuantizeLinear" else ("u1", "f4")
    given, made = (helper.np_dtype_to_tensor_dtype(np.dtype(d)) for d in dtypes)
    start = [helper.make_tensor_value_info("x", given, ()), helper.make_tensor_value_info("s", TensorProto.FLOAT, (1,))]
    end = helper.make_tensor_value_info("y", made, ())
    graph = helper.make_graph([helper.make_node(operator, ["x", "s"], ["y"])], "g", start, [end])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    (found,) = onnx_backend.prepare(model, "REFERENCE").run([np.asarray(6, dtypes[0]), np.float32([2])])
    assert found.shape == () and found == (3 if operator == "QuantizeLinear" else 12)
