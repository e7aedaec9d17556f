"""Operators of ONNX Runtime (com.microsoft), which its optimiser and quantiser put into models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from compass_core.arrays import Array
from compassc.importers.building import Building
from compassc.importers.onnx.declare import Constant, operator
from compassc.importers.onnx.operators.elementwise import arithmetic, unary
from compassc.importers.onnx.operators.linear import fully_connected, gemm, multiply
from compassc.importers.onnx.operators.normalise import layer_norm, rms_norm
from compassc.importers.onnx.operators.quantised import Quantised, dequantize, plain_levels, quantize
from compassc.importers.onnx.operators.quantised_forms import combine, product
from compassc.importers.onnx.operators.windows import average_pool
from compassc.importers.onnx.window import Asked
from compassc.importers.values import Refused, Value

if TYPE_CHECKING:
    from compassc.importers.onnx.convert import Conversion

MICROSOFT = "com.microsoft"
SKIP_EPSILON = 1e-12
"""What normalisations of sums add where they do not say it."""
operator("QuantizeLinear", domain=MICROSOFT)(quantize)
operator("DequantizeLinear", domain=MICROSOFT)(dequantize)

# -- normalisations and activations


@operator("SimplifiedLayerNormalization")
def simplified_layer_norm(
    b: Building, x: Value, scale: Value, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Value:
    return rms_norm(b, x, scale, axis=axis, epsilon=epsilon)


@operator("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_simplified_layer_norm(
    b: Building, x: Value, skip: Value, scale: Value, bias: Value | None = None, *, epsilon: float = SKIP_EPSILON
) -> list[Value]:
    """The fourth output is the sum that is normalised."""
    total = _sum(b, x, skip, bias)
    unused = Value.of(np.zeros(0, np.float32))
    return [rms_norm(b, total, scale, epsilon=epsilon), unused, unused, total]


@operator("SkipLayerNormalization", domain=MICROSOFT)
def skip_layer_norm(
    b: Conversion,
    x: Value,
    skip: Value,
    scale: Value,
    shift: Value | None = None,
    bias: Value | None = None,
    *,
    epsilon: float = SKIP_EPSILON,
) -> list[Value]:
    if any(b.outputs()[1:3]):
        raise Refused("its mean and deviation are not supported as outputs")
    total = _sum(b, x, skip, bias)
    unused = Value.of(np.zeros(0, np.float32))
    return [layer_norm(b, total, scale, shift, epsilon=epsilon)[0], unused, unused, total]


def _sum(b: Building, x: Value, skip: Value, bias: Value | None) -> Value:
    total = arithmetic(b, x, skip, "Add")
    return total if bias is None else arithmetic(b, total, bias, "Add")


@operator("Gelu", "BiasGelu", "FastGelu", domain=MICROSOFT)
def gelu(b: Conversion, x: Value, bias: Value | None = None) -> Value:
    moved = x if bias is None else arithmetic(b, x, bias, "Add")
    return b.made("gelu_tanh" if b.op == "FastGelu" else "gelu", moved)


@operator("QuickGelu", domain=MICROSOFT)
def quick_gelu(b: Building, x: Value, *, alpha: float = 1.702) -> Value:
    return b.made("swish", x, alpha=alpha)


# -- products


@operator("FusedMatMul", domain=MICROSOFT)
def fused_matmul(
    b: Building,
    x: Value,
    y: Value,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    transBatchA: int = 0,
    transBatchB: int = 0,
) -> Value:
    if transBatchA or transBatchB:
        raise Refused("transposed batches are not supported")
    left, right = (
        b.transpose(v, [*range(v.rank - 2), v.rank - 1, v.rank - 2]) if flag and v.rank > 1 else v
        for v, flag in ((x, transA), (y, transB))
    )
    made = multiply(b, left, right)
    return made if alpha == 1 else arithmetic(b, made, Value.of(np.full(1, alpha, x.dtype)), "Mul")


@operator("FusedGemm", domain=MICROSOFT, partly="activations Relu and LeakyRelu")
def fused_gemm(
    b: Building,
    x: Value,
    y: Value,
    c: Value | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    activation: str = "",
    activation_alpha: float = 0.01,
) -> Value:
    made = gemm(b, x, y, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
    if activation == "LeakyRelu":
        return b.made("leaky_relu", made, alpha=activation_alpha)
    if activation not in ("", "Relu"):
        raise Refused(f"its activation is {activation}")
    return b.made("relu", made) if activation else made


@operator("MatMulNBits", domain=MICROSOFT, partly="weights of 4 and 8 bits; computed in floats")
def matmul_n_bits(
    b: Building,
    x: Value,
    w: Constant,
    scales: Constant,
    zeros: Constant | None = None,
    order: Constant | None = None,
    bias: Constant | None = None,
    *,
    K: int,
    N: int,
    bits: int = 4,
    block_size: int = 32,
    accuracy_level: int = 0,
) -> Value:
    """Weights [N, blocks, bytes] by blocks with scales of their own."""
    if order is not None and order.size:
        raise Refused("weights in an order of groups are not supported")
    weights = blocks_of_weights(w, scales, zeros, (N, K), bits, block_size)
    return fully_connected(b, x, weights.astype(x.dtype), None if bias is None else bias.reshape(-1))


def blocks_of_weights(
    w: Array, scales: Array, zeros: Array | None, shape: tuple[int, int], bits: int, block_size: int
) -> Array:
    """Weights [N, K] of 4 or 8 bits with a scale, and perhaps a zero point, for each block, as float32. Refused for other bits."""
    if bits not in (4, 8):
        raise Refused(f"weights of {bits} bits are not supported")
    n, k = shape
    blocks = -(-k // block_size)
    whole = _unpacked(w, bits).reshape(n, blocks, -1)[:, :, :block_size].astype(np.float32)
    if zeros is None:
        offset: Array = np.full((1, 1), 1 << (bits - 1), np.float32)
    elif zeros.dtype == np.uint8:
        offset = _unpacked(zeros.reshape(n, -1), bits)[:, :blocks].astype(np.float32)
    else:
        offset = zeros.reshape(n, blocks).astype(np.float32)
    real = (whole - offset[..., None]) * scales.reshape(n, blocks, 1).astype(np.float32)
    return np.asarray(real.reshape(n, -1)[:, :k])


def _unpacked(array: Array, bits: int) -> Array:
    """Numbers of 4 bits from bytes, the low half first."""
    if bits == 8:
        return array
    return np.stack([array & 15, array >> 4], -1).reshape(*array.shape[:-1], -1)


# -- quantised


def _between(b: Conversion, x: Value, levels: Sequence[Any], make: Callable[[Value], Value]) -> Value:
    """An operator in floats between integers; `levels`: scale and zero point of x and of the result."""
    x_scale, x_zero, y_scale, y_zero = levels
    real = dequantize(b, x, Value.of(x_scale), Value.of(x_zero))
    return quantize(b, make(real), Value.of(y_scale), Value.of(y_zero))


@operator("QLinearSigmoid", domain=MICROSOFT)
def qlinear_sigmoid(
    b: Conversion, x: Value, x_scale: Constant, x_zero: Constant, y_scale: Constant, y_zero: Constant
) -> Value:
    return _between(b, x, (x_scale, x_zero, y_scale, y_zero), lambda v: b.made("sigmoid", v))


@operator("QLinearLeakyRelu", domain=MICROSOFT)
def qlinear_leaky_relu(
    b: Conversion,
    x: Value,
    x_scale: Constant,
    x_zero: Constant,
    y_scale: Constant,
    y_zero: Constant,
    *,
    alpha: float = 0.01,
) -> Value:
    return _between(b, x, (x_scale, x_zero, y_scale, y_zero), lambda v: b.made("leaky_relu", v, alpha=alpha))


@operator("QLinearSoftmax", domain=MICROSOFT)
def qlinear_softmax(
    b: Conversion,
    x: Value,
    x_scale: Constant,
    x_zero: Constant,
    y_scale: Constant,
    y_zero: Constant,
    *,
    axis: int = -1,
    opset: int = 13,
) -> Value:
    if opset < 13 and x.axis(axis) != x.rank - 1:
        raise Refused("over several axes it is not supported")

    def make(v: Value) -> Value:
        return unary(b, v, "Softmax", axis=v.place(axis))

    return _between(b, x, (x_scale, x_zero, y_scale, y_zero), make)


@operator("QLinearGlobalAveragePool", domain=MICROSOFT)
def qlinear_global_average_pool(
    b: Conversion,
    x: Value,
    x_scale: Constant,
    x_zero: Constant,
    y_scale: Constant,
    y_zero: Constant,
    *,
    channels_last: int = 0,
) -> Value:
    if channels_last:
        raise Refused("channels_last is not supported")
    return _between(b, x, (x_scale, x_zero, y_scale, y_zero), lambda v: average_pool(b, v, asked=Asked(v.shape[2:])))


@operator("QLinearAveragePool", domain=MICROSOFT)
def qlinear_average_pool(
    b: Conversion,
    x: Value,
    x_scale: Constant,
    x_zero: Constant,
    y_scale: Constant,
    y_zero: Constant,
    *,
    asked: Asked,
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    channels_last: int = 0,
) -> Value:
    if channels_last:
        raise Refused("channels_last is not supported")

    def make(v: Value) -> Value:
        return average_pool(b, v, asked=asked, ceil_mode=ceil_mode, count_include_pad=count_include_pad)

    return _between(b, x, (x_scale, x_zero, y_scale, y_zero), make)


@operator("QLinearAdd", "QLinearMul", domain=MICROSOFT)
def qlinear_arithmetic(
    b: Conversion,
    x: Value,
    x_scale: Constant,
    x_zero: Constant,
    y: Value,
    y_scale: Constant,
    y_zero: Constant,
    out_scale: Constant,
    out_zero: Constant,
) -> Value:
    pair = [Quantised(x, plain_levels(x_scale, x_zero, x.dtype)), Quantised(y, plain_levels(y_scale, y_zero, y.dtype))]
    method = b.op.removeprefix("QLinear").upper()
    found = combine(b, method, pair, plain_levels(out_scale, out_zero, out_zero.dtype))
    if found is not None:
        return found
    real = dequantize(b, y, Value.of(y_scale), Value.of(y_zero))
    levels = (x_scale, x_zero, out_scale, out_zero)
    return _between(b, x, levels, lambda v: arithmetic(b, v, real, method.capitalize()))


@operator("QLinearConcat", domain=MICROSOFT)
def qlinear_concat(b: Conversion, out_scale: Constant, out_zero: Constant, *xs: Value, axis: int) -> Value:
    """Operands come with their scale and zero point; those of other levels are rescaled in floats."""
    parts = []
    for x, scale, zero in zip(xs[::3], xs[1::3], xs[2::3], strict=True):
        if scale.array is None or zero.array is None:
            raise Refused("its scales are computed")
        same = np.array_equal(scale.array, out_scale) and np.array_equal(zero.array, out_zero)
        levels = (scale.array, zero.array, out_scale, out_zero)
        parts.append(x if same else _between(b, x, levels, lambda v: v))
    return b.concat(*parts, axis=axis)


@operator("QGemm", domain=MICROSOFT)
def qgemm(
    b: Conversion,
    x: Value,
    x_scale: Constant,
    x_zero: Constant,
    w: Constant,
    w_scale: Constant,
    w_zero: Constant,
    c: Constant | None = None,
    y_scale: Constant | None = None,
    y_zero: Constant | None = None,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Value:
    if alpha != 1 or y_scale is None or y_zero is None:
        raise Refused("an alpha other than 1, and results in floats, are not supported")
    left = b.transpose(x, (1, 0)) if transA else x
    weights = w if transB else np.ascontiguousarray(w.T)
    source = Quantised(left, plain_levels(x_scale, x_zero, x.dtype))
    factors = Quantised(Value.of(weights), plain_levels(w_scale, w_zero, w.dtype, 0, 2))
    biases = np.zeros(weights.shape[0], np.int64) if c is None else np.broadcast_to(c.reshape(-1), weights.shape[0])
    return product(b, source, factors, biases.astype(np.int64), plain_levels(y_scale, y_zero, y_zero.dtype))
