"""Reductions along no axis: each element by itself, on both roads, layers and expressions."""

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
