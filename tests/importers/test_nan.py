"""NaN on a target: where it passes through, and where it ends as docs/onnx.md says."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from compassc import onnx_backend

PASSING = "Abs Neg Add Mul Sub Div Exp Log Sqrt Sigmoid Tanh Softplus LeakyRelu Floor ReduceSum Round".split()
ENDING = {
    "Relu": 0.0,
    "Clip": -1.0,
    "PRelu": 0.0,
    "HardSigmoid": 0.0,
    "Elu": 0.0,
    "Selu": 0.0,
    "Celu": 0.0,
    "Max": 1.0,
    "Min": 1.0,
}
"""What becomes of NaN in operators that are made of the device's max and min, which give the other operand."""
CONSTANTS = {"Add": "one", "Mul": "one", "Sub": "one", "Div": "one", "Max": "one", "Min": "one", "PRelu": "slopes"}
X = np.array([[np.nan, 0.5, -0.25, np.nan]], np.float32)


@pytest.fixture(scope="module")
def results():
    """What each operator gives for X, from one build."""
    known = {"one": np.ones((1, 4)), "slopes": np.full((1, 4), 0.25), "low": np.array(-1), "high": np.array(0.375)}
    nodes = []
    for name in (*PASSING, *ENDING):
        inputs = ["x", "low", "high"] if name == "Clip" else ["x", *filter(None, [CONSTANTS.get(name)])]
        nodes.append(helper.make_node(name, inputs, [name], name))
    shapes = {"ReduceSum": (1, 1)}
    ends = [helper.make_tensor_value_info(n.name, TensorProto.FLOAT, shapes.get(n.name, X.shape)) for n in nodes]
    start = [helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)]
    constants = [numpy_helper.from_array(a.astype(np.float32), n) for n, a in known.items()]
    model = helper.make_model(helper.make_graph(nodes, "net", start, ends, constants))
    found = onnx_backend.prepare(model, "X2_1204").run([X])
    return dict(zip((*PASSING, *ENDING), found, strict=True))


@pytest.mark.parametrize("name", PASSING)
def test_it_passes_through(results, name):
    made = results[name].reshape(-1)
    assert np.isnan(made[[0, -1]]).all()


@pytest.mark.parametrize("name", ENDING)
def test_it_ends_where_the_device_compares(results, name):
    made = results[name].reshape(-1)
    assert made[[0, 3]].tolist() == [ENDING[name]] * 2 and np.isfinite(made).all()
