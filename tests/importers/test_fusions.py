"""Patterns: spelled out in ONNX, one layer in the graph, the same numbers as ONNX Runtime's."""

import numpy as np
import onnxruntime
import pytest

from compassc.importers.onnx import import_model
from tests.importers.networks import Net


def expected(model, x):
    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})


PLACES = ("Input", "Constant", "Transpose", "Reshape")


def gelu(net, x):
    return net.gelu(x)


def gelu_halved_first(net, x):
    half = net("Add", net.constant(1.0), net("Erf", net("Mul", x, net.constant(2**-0.5))))
    return net("Mul", net("Mul", net.constant(0.5), x), half)


def gelu_tanh(net, x):
    cube = net("Mul", net("Mul", x, x), x)
    inner = net("Mul", net("Add", x, net("Mul", cube, net.constant(0.044715))), net.constant(np.sqrt(2 / np.pi)))
    return net("Mul", net("Mul", x, net("Add", net("Tanh", inner), net.constant(1.0))), net.constant(0.5))


def gelu_tanh_by_power(net, x):
    cube = net("Pow", x, net.constant(3.0))
    inner = net("Mul", net("Add", x, net("Mul", cube, net.constant(0.044715))), net.constant(np.sqrt(2 / np.pi)))
    return net("Mul", net("Mul", net.constant(0.5), x), net("Add", net("Tanh", inner), net.constant(1.0)))


def silu(net, x):
    return net("Mul", net("Sigmoid", x), x)


def swish(net, x):
    return net("Mul", x, net("Sigmoid", net("Mul", x, net.constant(1.7))))


def mish(net, x):
    return net("Mul", x, net("Tanh", net("Softplus", x)))


def softplus(net, x):
    return net("Log", net("Add", net("Exp", x), net.constant(1.0)))


def hard_swish(net, x):
    clipped = net("Clip", net("Add", x, net.constant(3.0)), net.constant(0.0), net.constant(6.0))
    return net("Div", net("Mul", x, clipped), net.constant(6.0))


def hard_swish_by_sigmoid(net, x):
    return net("Mul", x, net("HardSigmoid", x, alpha=1 / 6, beta=0.5))


def leaky(net, x):
    return net("Sub", net("Relu", x), net("Mul", net("Relu", net("Neg", x)), net.constant(0.2)))


def layer_norm(net, x):
    return net.layer_norm(x, 6)


def rms_norm(net, x):
    mean = net("ReduceMean", net("Pow", x, net.constant(2.0)), axes=[-1])
    root = net("Sqrt", net("Add", mean, net.constant(1e-6)))
    return net("Mul", net("Mul", x, net("Reciprocal", root)), net.weights(6))


def instance_norm(net, x):
    y = net("Conv", x, net.weights(4, 4, 1, 1))
    centred = net("Sub", y, net("ReduceMean", y, axes=[2, 3]))
    variance = net("ReduceMean", net("Mul", centred, centred), axes=[2, 3])
    return net("Div", centred, net("Sqrt", net("Add", variance, net.constant(1e-5))))


def softmax(net, x):
    exponentials = net("Exp", x)
    return net("Div", exponentials, net("ReduceSum", exponentials, net.ints(-1)))


def conv_norm_relu(net, x):
    return net.conv(x, 4, 8, act="Relu")


def conv_bias_scale(net, x):
    y = net("Add", net("Conv", x, net.weights(8, 4, 3, 3)), net.weights(1, 8, 1, 1))
    return net("Mul", y, net.weights(8, 1, 1))


def transposed_norm(net, x):
    y = net("ConvTranspose", x, net.weights(4, 6, 2, 2), strides=[2, 2], group=1)
    ones = net.constant(np.ones(6))
    return net("BatchNormalization", y, net.weights(6), net.weights(6), net.weights(6), ones)


def transposed_norm_of_groups(net, x):
    y = net("ConvTranspose", x, net.weights(4, 3, 2, 2), strides=[2, 2], group=2)
    ones = net.constant(np.ones(6))
    return net("BatchNormalization", y, net.weights(6), net.weights(6), net.weights(6), ones)


def dense(net, x):
    return net("Relu", net.dense(x, 6, 5))


def scaled_product(net, x):
    return net("Div", net("MatMul", x, net("Transpose", x, perm=[0, 1, 3, 2])), net.constant(2.5))


def channel_shuffle(net, x):
    y = net("Transpose", net("Reshape", x, net.ints(1, 2, 2, 5, 6)), perm=[0, 2, 1, 3, 4])
    return net("Reshape", y, net.ints(1, 4, 5, 6))


def pixel_shuffle(net, x):
    y = net("Transpose", net("Reshape", x, net.ints(1, 1, 2, 2, 5, 6)), perm=[0, 1, 4, 2, 5, 3])
    return net("Reshape", y, net.ints(1, 1, 10, 12))


def affine(net, x):
    y = net("Conv", x, net.weights(4, 4, 1, 1))
    y = net("Sigmoid", y)
    return net("Add", net("Mul", y, net.weights(4, 1, 1)), net.weights(4, 1, 1))


ONE = {
    gelu: "Activation",
    gelu_halved_first: "Activation",
    gelu_tanh: "Activation",
    gelu_tanh_by_power: "Activation",
    silu: "Activation",
    swish: "Activation",
    mish: "Activation",
    softplus: "Activation",
    hard_swish: "Activation",
    hard_swish_by_sigmoid: "Activation",
    leaky: "Activation",
    layer_norm: "LayerNorm",
    rms_norm: "RMSNorm",
    softmax: "Softmax",
    conv_norm_relu: "Convolution",
    conv_bias_scale: "Convolution",
    transposed_norm: "ConvTranspose",
    transposed_norm_of_groups: "ConvTranspose",
    dense: "FullyConnected",
    scaled_product: "MatMul",
    channel_shuffle: "ChannelShuffle",
    pixel_shuffle: "DepthToSpace",
}
SEVERAL = {
    instance_norm: ["Convolution", "InstanceNorm"],
    affine: ["Convolution", "Activation", "BatchNorm"],
}


@pytest.mark.parametrize("pattern", [*ONE, *SEVERAL], ids=lambda p: p.__name__)
def test_it_becomes_one_layer_with_the_same_results(pattern, chained):
    net = Net(13)
    model = net.model(pattern(net, net.input("x", 1, 4, 5, 6)))
    graph = import_model(model)
    kinds = [layer.type for layer in graph.layers if layer.type not in PLACES]
    assert kinds == ([ONE[pattern]] if pattern in ONE else SEVERAL[pattern])
    x = np.random.default_rng(5).standard_normal((1, 4, 5, 6)).astype(np.float32)
    (want,) = expected(model, x)
    np.testing.assert_allclose(chained(graph, x)[0], want, rtol=1e-4, atol=1e-5)


def nearly_gelu(net, x):
    return net(
        "Mul",
        net("Mul", x, net("Add", net("Erf", net("Div", x, net.constant(1.5))), net.constant(1.0))),
        net.constant(0.5),
    )


def other_mean(net, x):
    centred = net("Sub", x, net("ReduceMean", x, axes=[1]))
    variance = net("ReduceMean", net("Mul", centred, centred), axes=[-1])
    return net("Div", centred, net("Sqrt", net("Add", variance, net.constant(1e-5))))


def used_twice(net, x):
    y = net("Conv", x, net.weights(4, 4, 1, 1))
    return net("Add", net("Relu", y), y)


def other_order(net, x):
    y = net("Transpose", net("Reshape", x, net.ints(1, 2, 2, 5, 6)), perm=[0, 2, 1, 4, 3])
    return net("Reshape", y, net.ints(1, 4, 5, 6))


@pytest.mark.parametrize("pattern", [nearly_gelu, other_mean, used_twice, other_order], ids=lambda p: p.__name__)
def test_what_only_looks_like_it_keeps_its_results(pattern, chained):
    net = Net(13)
    model = net.model(pattern(net, net.input("x", 1, 4, 5, 6)))
    x = np.random.default_rng(6).standard_normal((1, 4, 5, 6)).astype(np.float32)
    (want,) = expected(model, x)
    np.testing.assert_allclose(chained(import_model(model), x)[0], want, rtol=1e-4, atol=1e-5)


def test_a_transpose_stands_only_where_another_order_is_needed(chained):
    net = Net(13)
    x = net.conv(net.input("x", 1, 4, 5, 6), 4, 4, act="Relu")
    y = net("Concat", net("Sigmoid", x), net("Mul", x, net.weights(4, 1, 1)), axis=1)
    y = net("Add", net("ReduceMax", y, axes=[1]), net.conv(y, 8, 1))
    model = net.model(
        net("Slice", net("Pad", y, net.ints(0, 0, 1, 0, 0, 0, 0, 2)), net.ints(1), net.ints(4), net.ints(2))
    )
    graph = import_model(model)
    assert [layer.type for layer in graph.layers].count("Transpose") == 1
    given = np.random.default_rng(6).standard_normal((1, 4, 5, 6)).astype(np.float32)
    (want,) = expected(model, given)
    np.testing.assert_allclose(chained(graph, given)[0], want, rtol=1e-4, atol=1e-5)
