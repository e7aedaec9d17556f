"""Quantised models of one operator or a few: CASES by name, as in `tflite_cases`. IN_FLOATS: those that have no layer of
integers, and are computed between DeQuantize and Quantize."""

from __future__ import annotations

import numpy as np

from tests.importers.tflite_cases import PLAIN_CONV, POOL
from tests.importers.tflite_models import Model

CASES = {}
X = {"scale": 0.05, "zero": -3}
Y = {"scale": 0.04, "zero": 5}
IN_FLOATS = {
    "average_pool_int16",
    "softmax",
    "mean",
    "sum",
    "prelu",
    "leaky_relu",
    "resize_bilinear",
    "transpose_conv",
    "transpose_conv_uint8",
    "concatenation_rescaled",
    "abs",
    "div",
    "squared_difference",
    "logistic_int16",
    "l2_normalization",
    "quantize",
    "dequantize",
    "arg_max",
}


def case(function):
    CASES[function.__name__] = function
    return function


def weights(*shape, seed=0, dtype=np.int8):
    low, high = (-127, 128) if dtype == np.int8 else (0, 256)
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


def biases(count, dtype=np.int32):
    return np.random.default_rng(1).integers(-2000, 2000, count).astype(dtype)


def build(name):
    """The bytes of a case's model."""
    net = Model()
    made = CASES[name](net)
    return net.bytes(*(made if isinstance(made, list) else [made]))


def _convolved(
    net,
    operator,
    w,
    shape,
    x,
    out,
    along=0,
    per_channel=True,
    dtype="int8",
    zero=0,
    bias_type=np.int32,
    options=None,
    **given,
):
    """A convolution; weights with scales per channel along `along`."""
    outputs = w.shape[along]
    scale = 0.002 * (1 + np.arange(outputs) % 3) if per_channel else np.full(1, 0.003)
    source = net.input("x", (1, 7, 7, 3), dtype, **x)
    levels = {"scale": scale, "zero": np.full(len(scale), zero)}
    filters = net.constant(w, along=along if per_channel else 0, **levels)
    products = scale * np.float32(x["scale"])
    bias = net.constant(biases(outputs, bias_type), scale=products, zero=np.zeros(len(products)))
    return net(operator, [source, filters, bias], shape, dtype, options, **out, **(PLAIN_CONV | given))


@case
def conv(net):
    return _convolved(net, "CONV_2D", weights(4, 3, 3, 3), (1, 7, 7, 4), X, {"scale": 0.15, "zero": 7})


@case
def conv_relu6(net):
    out = {"scale": 0.1, "zero": -100}
    return _convolved(net, "CONV_2D", weights(4, 3, 3, 3), (1, 7, 7, 4), X, out, fused_activation_function="RELU6")


@case
def conv_relu(net):
    out = {"scale": 0.05, "zero": -128}
    return _convolved(
        net,
        "CONV_2D",
        weights(4, 3, 3, 3),
        (1, 4, 4, 4),
        X,
        out,
        stride_w=2,
        stride_h=2,
        fused_activation_function="RELU",
    )


@case
def conv_uint8(net):
    """Models of the first kind: unsigned, with a zero point of the weights."""
    w = weights(4, 3, 3, 3, dtype=np.uint8)
    x, out = {"scale": 0.05, "zero": 120}, {"scale": 0.15, "zero": 131}
    return _convolved(net, "CONV_2D", w, (1, 7, 7, 4), x, out, per_channel=False, dtype="uint8", zero=125)


@case
def conv_int16(net):
    x, out = {"scale": 0.0005, "zero": 0}, {"scale": 0.001, "zero": 0}
    return _convolved(net, "CONV_2D", weights(4, 3, 3, 3), (1, 7, 7, 4), x, out, dtype="int16", bias_type=np.int64)


@case
def depthwise_conv(net):
    return _convolved(
        net,
        "DEPTHWISE_CONV_2D",
        weights(1, 3, 3, 3),
        (1, 7, 7, 3),
        X,
        Y,
        along=3,
        depth_multiplier=1,
        options="DepthwiseConv2DOptions",
    )


@case
def depthwise_multiplied(net):
    return _convolved(
        net,
        "DEPTHWISE_CONV_2D",
        weights(1, 3, 3, 6),
        (1, 7, 7, 6),
        X,
        Y,
        along=3,
        depth_multiplier=2,
        options="DepthwiseConv2DOptions",
    )


@case
def transpose_conv(net):
    w = net.constant(weights(5, 3, 3, 3), scale=np.full(5, 0.002), zero=np.zeros(5))
    given = [net.constant([1, 8, 8, 5], np.int32), w, net.input("x", (1, 4, 4, 3), "int8", **X)]
    return net(
        "TRANSPOSE_CONV",
        given,
        (1, 8, 8, 5),
        "int8",
        "TransposeConvOptions",
        padding="SAME",
        stride_w=2,
        stride_h=2,
        scale=0.06,
        zero=2,
    )


@case
def transpose_conv_uint8(net):
    """Of weights with a zero point."""
    w = net.constant(weights(5, 3, 3, 3, dtype=np.uint8), scale=0.002, zero=9)
    given = [net.constant([1, 9, 9, 5], np.int32), w, net.input("x", (1, 4, 4, 3), "uint8", scale=0.05, zero=120)]
    return net(
        "TRANSPOSE_CONV",
        given,
        (1, 9, 9, 5),
        "uint8",
        "TransposeConvOptions",
        padding="VALID",
        stride_w=2,
        stride_h=2,
        scale=0.15,
        zero=100,
    )


@case
def fully_connected(net):
    x, w = net.input("x", (3, 8), "int8", **X), net.constant(weights(5, 8), scale=0.01, zero=0)
    bias = net.constant(biases(5), scale=0.05 * 0.01, zero=0)
    return net("FULLY_CONNECTED", [x, w, bias], (3, 5), "int8", scale=0.08, zero=-4)


@case
def fully_connected_int16(net):
    x, w = net.input("x", (3, 8), "int16", scale=0.001, zero=0), net.constant(weights(5, 8), scale=0.01, zero=0)
    bias = net.constant(biases(5, np.int64), scale=0.001 * 0.01, zero=0)
    return net("FULLY_CONNECTED", [x, w, bias], (3, 5), "int16", scale=0.002, zero=0, quantized_bias_type=4)


@case
def batch_matmul(net):
    given = [net.input("x", (2, 3, 4), "int8", **X), net.input("y", (2, 5, 4), "int8", **Y)]
    return net("BATCH_MATMUL", given, (2, 3, 5), "int8", "BatchMatMulOptions", adj_y=True, scale=0.15, zero=3)


def _binary(operator, out, options=None, **given):
    def make(net):
        x, y = net.input("x", (2, 3, 16), "int8", **X), net.input("y", (1, 3, 16), "int8", **Y)
        return net(operator, [x, y], (2, 3, 16), "int8", options, **out, **given)

    CASES[operator.lower()] = make


_binary("ADD", {"scale": 0.08, "zero": 10})
_binary("SUB", {"scale": 0.09, "zero": -10})
_binary("MUL", {"scale": 0.2, "zero": 1})
_binary("SQUARED_DIFFERENCE", {"scale": 0.5, "zero": -128})


@case
def add_int16(net):
    x, y = (net.input(n, (2, 64), "int16", scale=s, zero=0) for n, s in (("x", 0.0005), ("y", 0.0008)))
    return net("ADD", [x, y], (2, 64), "int16", scale=0.001, zero=0)


@case
def add_relu(net):
    x, y = net.input("x", (2, 48), "int8", **X), net.input("y", (2, 48), "int8", **Y)
    return net("ADD", [x, y], (2, 48), "int8", scale=0.07, zero=-40, fused_activation_function="RELU")


@case
def add_constant(net):
    x, y = net.input("x", (2, 48), "int8", **X), net.constant(weights(48), **Y)
    return net("ADD", [x, y], (2, 48), "int8", scale=0.07, zero=0)


@case
def div(net):
    x, y = net.input("x", (2, 48), "int8", **X), net.constant(np.arange(48), np.int8, scale=0.04, zero=-20)
    return net("DIV", [x, y], (2, 48), "int8", scale=0.2, zero=1)


for _name in ("MAXIMUM", "MINIMUM"):
    CASES[_name.lower()] = lambda net, name=_name: net(
        name, [net.input("x", (2, 16), "int8", **X), net.input("y", (2, 16), "int8", **X)], (2, 16), "int8", **X
    )


@case
def max_pool(net):
    return net(
        "MAX_POOL_2D",
        [net.input("x", (1, 5, 5, 3), "int8", **X)],
        (1, 5, 3, 3),
        "int8",
        "Pool2DOptions",
        padding="SAME",
        **POOL,
        **X,
    )


@case
def average_pool_int16(net):
    """Of six places, whose share has no multiplier of 8 bits."""
    levels = {"scale": 0.0005, "zero": 0}
    x, given = net.input("x", (1, 6, 6, 3), "int16", **levels), POOL | {"filter_height": 2, "filter_width": 3}
    return net(
        "AVERAGE_POOL_2D",
        [x],
        (1, 3, 2, 3),
        "int16",
        "Pool2DOptions",
        **(given | {"stride_h": 2, "stride_w": 3}),
        padding="SAME",
        **levels,
    )


@case
def average_pool(net):
    return net(
        "AVERAGE_POOL_2D",
        [net.input("x", (1, 5, 5, 3), "int8", **X)],
        (1, 5, 3, 3),
        "int8",
        "Pool2DOptions",
        padding="SAME",
        **POOL,
        **X,
    )


def _unary(operator, out, dtype="int8", options=None, shape=(4, 64), **given):
    def make(net):
        x = X if dtype == "int8" else {"scale": 0.0002, "zero": 0}
        return net(operator, [net.input("x", shape, dtype, **x)], shape, dtype, options, **out, **given)

    CASES[operator.lower() if dtype == "int8" else f"{operator.lower()}_{dtype}"] = make


_unary("RELU", {"scale": 0.03, "zero": -50})
_unary("RELU6", {"scale": 0.05, "zero": -100})
_unary("LOGISTIC", {"scale": 1 / 256, "zero": -128})
_unary("LOGISTIC", {"scale": 1 / 32768, "zero": 0}, "int16")
_unary("TANH", {"scale": 1 / 128, "zero": 0})
_unary("HARD_SWISH", {"scale": 0.03, "zero": -110})
_unary("ELU", {"scale": 0.04, "zero": -90})
_unary("GELU", {"scale": 0.04, "zero": -90}, approximate=False)
_unary("EXP", {"scale": 1.5, "zero": -128})
_unary("LEAKY_RELU", {"scale": 0.05, "zero": -60}, options="LeakyReluOptions", alpha=0.2)
_unary("ABS", {"scale": 0.05, "zero": -100})
_unary("SOFTMAX", {"scale": 1 / 256, "zero": -128}, beta=1.0)
_unary("L2_NORMALIZATION", {"scale": 1 / 128, "zero": 0}, options="L2NormOptions")


@case
def prelu(net):
    slope = net.constant(weights(1, 1, 3), scale=0.01, zero=0)
    return net("PRELU", [net.input("x", (1, 4, 4, 3), "int8", **X), slope], (1, 4, 4, 3), "int8", **Y)


@case
def mean(net):
    x, axes = net.input("x", (1, 7, 7, 4), "int8", **X), net.constant([1, 2], np.int32)
    return net("MEAN", [x, axes], (1, 4), "int8", "ReducerOptions", scale=0.02, zero=3)


@case
def sum(net):
    x, axes = net.input("x", (4, 8), "int8", **X), net.constant([1], np.int32)
    return net("SUM", [x, axes], (4,), "int8", "ReducerOptions", scale=0.4, zero=3)


@case
def reduce_max(net):
    x, axes = net.input("x", (4, 8), "int8", **X), net.constant([1], np.int32)
    return net("REDUCE_MAX", [x, axes], (4,), "int8", "ReducerOptions", **X)


@case
def arg_max(net):
    x, axis = net.input("x", (4, 8), "int8", **X), net.constant(1, np.int32)
    return net("ARG_MAX", [x, axis], (4,), "int32", output_type=2)


@case
def concatenation(net):
    given = [net.input("x", (2, 3), "int8", **X), net.input("y", (2, 4), "int8", **X)]
    return net("CONCATENATION", given, (2, 7), "int8", axis=1, **X)


@case
def concatenation_rescaled(net):
    """Only the unsigned kind may have parts in other steps than the whole."""
    given = [net.input("x", (2, 3), "uint8", scale=0.05, zero=100), net.input("y", (2, 4), "uint8", scale=0.1, zero=90)]
    return net("CONCATENATION", given, (2, 7), "uint8", axis=1, scale=0.1, zero=90)


@case
def pad(net):
    paddings = net.constant([[0, 0], [1, 1], [1, 2], [0, 0]], np.int32)
    return net("PAD", [net.input("x", (1, 3, 3, 2), "int8", **X), paddings], (1, 5, 6, 2), "int8", **X)


@case
def moves(net):
    """Integers stay what they are through operators that only move."""
    x = net.input("x", (1, 4, 6, 8), "int8", **X)
    flat = net("RESHAPE", [x, net.constant([4, 6, 8], np.int32)], (4, 6, 8), "int8", **X)
    turned = net("TRANSPOSE", [flat, net.constant([2, 0, 1], np.int32)], (8, 4, 6), "int8", **X)
    bounds = [net.constant(v, np.int32) for v in ([0, 0, 0], [8, 4, 6], [1, 2, 1])]
    return net("STRIDED_SLICE", [turned, *bounds], (8, 2, 6), "int8", begin_mask=0, **X)


@case
def resize_nearest(net):
    x, size = net.input("x", (1, 3, 3, 2), "int8", **X), net.constant([6, 6], np.int32)
    return net("RESIZE_NEAREST_NEIGHBOR", [x, size], (1, 6, 6, 2), "int8", **X)


@case
def resize_bilinear(net):
    x, size = net.input("x", (1, 3, 3, 2), "int8", **X), net.constant([6, 6], np.int32)
    return net("RESIZE_BILINEAR", [x, size], (1, 6, 6, 2), "int8", half_pixel_centers=True, **X)


@case
def quantize(net):
    return net("QUANTIZE", [net.input("x", (4, 8))], (4, 8), "int8", **X)


@case
def dequantize(net):
    return net("DEQUANTIZE", [net.input("x", (4, 8), "int8", **X)], (4, 8))


@case
def requantize(net):
    return net("QUANTIZE", [net.input("x", (4, 64), "int8", **X)], (4, 64), "int8", **Y)


@case
def network(net):
    """A residual block with a classifier."""
    x = net.input("x", (1, 8, 8, 4), "int8", **X)

    def conv(source, seed, levels, out, ending):
        w = net.constant(weights(4, 3, 3, 4, seed=seed), scale=0.004 * (1 + np.arange(4)), zero=np.zeros(4))
        bias = net.constant(biases(4), scale=levels["scale"] * 0.004 * (1 + np.arange(4)), zero=np.zeros(4))
        given = PLAIN_CONV | {"fused_activation_function": ending}
        return net("CONV_2D", [source, w, bias], (1, 8, 8, 4), "int8", **out, **given)

    relu = {"scale": 0.1, "zero": -128}
    y = conv(x, 1, X, relu, "RELU")
    z = conv(y, 2, relu, {"scale": 0.2, "zero": 4}, "NONE")
    total = net("ADD", [z, x], (1, 8, 8, 4), "int8", scale=0.2, zero=0, fused_activation_function="RELU")
    pooled = net(
        "MEAN", [total, net.constant([1, 2], np.int32)], (1, 4), "int8", "ReducerOptions", scale=0.05, zero=-128
    )
    dense = net.constant(weights(5, 4, seed=3), scale=0.02, zero=0)
    bias = net.constant(biases(5), scale=0.05 * 0.02, zero=0)
    scores = net("FULLY_CONNECTED", [pooled, dense, bias], (1, 5), "int8", scale=0.3, zero=0)
    return net("SOFTMAX", [scores], (1, 5), "int8", scale=1 / 256, zero=-128, beta=1.0)
