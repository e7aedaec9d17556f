"""Networks of the usual kinds against ONNX Runtime: by references, and built and run on the simulator."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from compassc import onnx_backend
from compassc.importers.onnx import import_model
from tests.choosing import some
from tests.importers.networks import NETWORKS, Net

LAYERS = {"residual": 13, "depthwise": 17, "transformer": 24, "lstm": 12, "unet": 16, "detector": 34}
"""How many layers they have at most."""
LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"


def expected(model, *arrays):
    """What ONNX Runtime gives."""
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return session.run(None, {i.name: a for i, a in zip(session.get_inputs(), arrays, strict=True)})


@pytest.fixture
def x(request):
    return lambda graph: np.random.default_rng(7).standard_normal(graph.inputs[0].shape).astype(np.float32)


@pytest.mark.parametrize("name", NETWORKS)
def test_references_give_what_onnx_runtime_gives(name, x, chained):
    model = NETWORKS[name]()
    graph = import_model(model)
    given = x(graph)
    for got, want in zip(chained(graph, given), expected(model, given), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    assert len(graph.layers) <= LAYERS[name], [layer.type for layer in graph.layers]


@pytest.mark.parametrize("name", NETWORKS)
def test_the_simulator_gives_what_onnx_runtime_gives(name):
    model = NETWORKS[name]()
    shape = [d.dim_value or 1 for d in model.graph.input[0].type.tensor_type.shape.dim]
    given = np.random.default_rng(8).standard_normal(shape).astype(np.float32)
    found = onnx_backend.run_model(model, [given], "X2_1204")
    for got, want in some(zip(found, expected(model, given), strict=True)):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    "name", ["squeezenet", "shufflenet", "resnet50", "densenet121", "inception_v1", "inception_v2"]
)
def test_light_networks_are_imported(name):
    """Topologies of real networks: everything is fused, and no Transpose stands inside."""
    graph = import_model(onnx.load(LIGHT / f"light_{name}.onnx"))
    kinds = [layer.type for layer in graph.layers]
    assert kinds.count("Transpose") <= 2
    assert "Constant" not in kinds
    assert name != "shufflenet" or kinds.count("ChannelShuffle") == 16
    assert name == "densenet121" or not {"BatchNorm", "Activation"} & set(kinds) or name == "shufflenet"


@pytest.mark.parametrize("name", ["squeezenet", "shufflenet"])
def test_light_networks_with_random_weights(name, x, chained):
    model = onnx.load(LIGHT / f"light_{name}.onnx")
    model.ir_version = 8  # before 4 an initialiser had to be an input
    random = np.random.default_rng(3)
    shapes = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    kept = []
    for node in model.graph.node:
        if node.op_type != "ConstantOfShape":
            kept.append(node)
            continue
        shape = shapes[node.input[0]]
        values = random.standard_normal(shape) / np.sqrt(np.prod(shape[1:])) if len(shape) > 1 else random.random(shape)
        model.graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), node.output[0]))
    del model.graph.node[:]
    model.graph.node.extend(kept)
    graph = import_model(model)
    given = x(graph)
    (got,), (want,) = chained(graph, given), expected(model, given)
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3 * np.abs(want).max())


def qdq(net, x, scale, zero=0, dtype=np.int8):
    """A tensor quantised and back."""
    levels = net.constant(scale), net.constant(zero, dtype)
    return net("DequantizeLinear", net("QuantizeLinear", x, *levels), *levels)


def quantised_network():
    net = Net(13)
    x = qdq(net, net.input("x", 1, 3, 8, 8), 0.02, 3)
    weights = np.asarray(net.random.integers(-100, 100, (8, 3, 3, 3)), np.int8)
    scales = net.constant(0.005 + 0.005 * net.random.random(8))
    w = net("DequantizeLinear", net.constant(weights, np.int8), scales, net.constant(np.zeros(8), np.int8), axis=0)
    y = net("Conv", x, w, net.weights(8, scale=0.1), kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    y = qdq(net, net("Relu", y), 0.03, -128)
    z = qdq(net, net("MaxPool", y, kernel_shape=[2, 2], strides=[2, 2]), 0.03, -128)
    z = qdq(net, net("Add", z, z), 0.06, -128)
    flat = qdq(net, net("Flatten", z), 0.06, -128)
    dense = np.asarray(net.random.integers(-100, 100, (5, 128)), np.int8)
    v = net("DequantizeLinear", net.constant(dense, np.int8), net.constant(0.004), net.constant(0, np.int8))
    return net.model(qdq(net, net("Gemm", flat, v, net.weights(5, scale=0.1), transB=1), 0.5, 5))


def test_operators_between_dequantise_and_quantise_are_quantised_layers(x, chained):
    model = quantised_network()
    graph = import_model(model)
    types = {layer.type: layer.output.dtype for layer in graph.layers}
    assert {types[t] for t in ("Convolution", "Pooling", "Eltwise", "FullyConnected")} == {"int8"}
    assert [layer.type for layer in graph.layers].count("DeQuantize") == 1
    given = x(graph)
    (got,), (want,) = chained(graph, given), expected(model, given)
    assert np.abs(got - want).max() <= 0.5 + 1e-6  # a step of the output
    assert np.abs(got - want).mean() < 0.1


def test_a_quantised_network_on_the_simulator_equals_its_references(chained):
    model = quantised_network()
    given = np.random.default_rng(2).standard_normal((1, 3, 8, 8)).astype(np.float32)
    reference = onnx_backend.run_model(model, [given], onnx_backend.REFERENCE)
    np.testing.assert_array_equal(onnx_backend.run_model(model, [given], "X2_1204")[0], reference[0])


def test_the_backend_runs_nodes_and_knows_its_devices():
    node = helper.make_node("Relu", ["x"], ["y"])
    (got,) = onnx_backend.run_node(node, [np.float32([-1, 2])], onnx_backend.REFERENCE)
    np.testing.assert_array_equal(got, [0, 2])
    assert onnx_backend.supports_device("CPU") and onnx_backend.supports_device("X2_1204")
    assert not onnx_backend.supports_device("CUDA")


def test_inputs_whose_content_must_be_known_are_taken_from_what_is_given():
    net = Net()
    net.input("x", 2, 6)
    net.input("shape", 2, kind=TensorProto.INT64)
    model = net.model(net("Reshape", "x", "shape"))
    rep = onnx_backend.prepare(model, onnx_backend.REFERENCE)
    given = np.arange(12, dtype=np.float32).reshape(2, 6)
    assert rep.run([given, np.int64([3, 4])])[0].shape == (3, 4)
    assert rep.run({"x": given, "shape": np.int64([6, 2])})[0].shape == (6, 2)
