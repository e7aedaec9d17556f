"""Operators of ONNX Runtime (com.microsoft), which its optimiser and quantiser put into models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt

import numpy as np

from compass_core.arrays import Array
from compassc.importers.declare import Constant
from compassc.importers.onnx.maker import Maker, Tensor, operator
from compassc.importers.onnx.protobuf import elem_type
from compassc.importers.onnx.window import Asked
from compassc.importers.values import Refused

MICROSOFT = "com.microsoft"
FLOAT = 1
"""float32, by ONNX's number."""
SKIP_EPSILON = 1e-12
"""What normalisations of sums add where they do not say it."""


def number(b: Maker[Tensor], x: Tensor, value: float) -> Tensor:
    """A number of the type of a tensor."""
    return b.known(np.full((), value, x.dtype))


def added(b: Maker[Tensor], x: Tensor, more: Tensor | None) -> Tensor:
    return x if more is None else b.made("add", x, more)


def _declare(name: str, *attributes: str) -> None:
    @operator(name, domain=MICROSOFT, attributes=attributes)
    def handler(b: Maker[Tensor], x: Tensor, scale: Tensor, zero: Tensor | None = None, **given: object) -> Tensor:
        return b.onnx(name, x, scale, zero, **given)


_declare("QuantizeLinear", "axis", "saturate", "block_size", "output_dtype", "precision")
_declare("DequantizeLinear", "axis", "block_size", "output_dtype")

# -- normalisations and activations


@operator("SimplifiedLayerNormalization")
def simplified_layer_norm(
    b: Maker[Tensor], x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Tensor:
    return b.onnx("RMSNormalization", x, scale, axis=axis, epsilon=epsilon)


def _total(b: Maker[Tensor], x: Tensor, skip: Tensor, bias: Tensor | None) -> Tensor:
    """The sum that is normalised, which is the fourth output. Refused where mean and deviation are asked for."""
    if any(b.outputs()[1:3]):
        raise Refused("its mean and deviation are not supported as outputs")
    return added(b, b.made("add", x, skip), bias)


@operator("SkipLayerNormalization", domain=MICROSOFT)
def skip_layer_norm(
    b: Maker[Tensor],
    x: Tensor,
    skip: Tensor,
    scale: Tensor,
    shift: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    epsilon: float = SKIP_EPSILON,
) -> list[Tensor]:
    total = _total(b, x, skip, bias)
    return [b.onnx("LayerNormalization", total, scale, shift, epsilon=epsilon), total, total, total]


@operator("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_simplified_layer_norm(
    b: Maker[Tensor], x: Tensor, skip: Tensor, scale: Tensor, bias: Tensor | None = None, *, epsilon: float = SKIP_EPSILON
) -> list[Tensor]:  # fmt: skip
    total = _total(b, x, skip, bias)
    return [b.onnx("RMSNormalization", total, scale, epsilon=epsilon), total, total, total]


@operator("Gelu", "BiasGelu", "FastGelu", domain=MICROSOFT)
def gelu(b: Maker[Tensor], x: Tensor, bias: Tensor | None = None) -> Tensor:
    return b.made("gelu_tanh" if b.op == "FastGelu" else "gelu", added(b, x, bias))


@operator("QuickGelu", domain=MICROSOFT)
def quick_gelu(b: Maker[Tensor], x: Tensor, *, alpha: float = 1.702) -> Tensor:
    return b.made("swish", x, alpha=alpha)


# -- products


def _ended(b: Maker[Tensor], x: Tensor, activation: str, parameters: Sequence[float] = ()) -> Tensor:
    """With the activation at the end of a fused operator."""
    plain = {"Relu": "relu", "Sigmoid": "sigmoid", "Tanh": "tanh"}
    if activation in plain:
        return b.made(plain[activation], x)
    if activation == "LeakyRelu":
        return b.made("leaky_relu", x, alpha=float(parameters[0] if parameters else 0.01))
    if activation == "Clip" and len(parameters) == 2:
        return b.onnx("Clip", x, *(number(b, x, v) for v in parameters))
    if activation:
        raise Refused(f"its activation is {activation}")
    return x


@operator("FusedConv", domain=MICROSOFT)
def fused_conv(
    b: Maker[Tensor],
    x: Tensor,
    w: Tensor,
    bias: Tensor | None = None,
    more: Tensor | None = None,
    *,
    asked: Asked,
    activation: str = "",
    activation_params: Sequence[float] = (),
    group: int = 1,
) -> Tensor:
    """`more`: what is added before the activation."""
    made = b.onnx("Conv", x, w, bias, **asked._asdict(), group=group)
    return _ended(b, added(b, made, more), activation, activation_params)


@operator("FusedGemm", domain=MICROSOFT)
def fused_gemm(
    b: Maker[Tensor], x: Tensor, y: Tensor, c: Tensor | None = None, *, alpha: float = 1.0, beta: float = 1.0, transA: int = 0,
    transB: int = 0, activation: str = "", activation_alpha: float = 0.01,
) -> Tensor:  # fmt: skip
    made = b.onnx("Gemm", x, y, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
    return _ended(b, made, activation, [activation_alpha])


@operator("FusedMatMul", domain=MICROSOFT)
def fused_matmul(
    b: Maker[Tensor], x: Tensor, y: Tensor, *, alpha: float = 1.0, transA: int = 0, transB: int = 0, transBatchA: int = 0,
    transBatchB: int = 0,
) -> Tensor:  # fmt: skip
    if transBatchA or transBatchB:
        raise Refused("transposed batches are not supported")
    left, right = (
        b.transpose(v, [*range(v.rank - 2), v.rank - 1, v.rank - 2]) if flag and v.rank > 1 else v
        for v, flag in ((x, transA), (y, transB))
    )
    made = b.onnx("MatMul", left, right)
    return made if alpha == 1 else b.made("multiply", made, number(b, made, alpha))


@operator("MatMulNBits", domain=MICROSOFT, partly="weights of 4 and 8 bits; computed in floats")
def matmul_n_bits(
    b: Maker[Tensor], x: Tensor, w: Constant, scales: Constant, zeros: Constant | None = None, order: Constant | None = None,
    bias: Tensor | None = None, *, K: int, N: int, bits: int = 4, block_size: int = 32, accuracy_level: int = 0,
) -> Tensor:  # fmt: skip
    """Weights [N, blocks, bytes] by blocks with scales of their own."""
    if order is not None and order.size:
        raise Refused("weights in an order of groups are not supported")
    weights = _blocks_of_weights(w, scales, zeros, (N, K), bits, block_size).astype(x.dtype)
    return added(b, b.onnx("MatMul", x, b.known(np.ascontiguousarray(weights.T))), bias)


def _blocks_of_weights(
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


def between(
    b: Maker[Tensor],
    x: Tensor,
    own: tuple[Tensor, Tensor | None],
    out: tuple[Tensor, Tensor | None],
    make: Callable[[Tensor], Tensor],
) -> Tensor:
    """An operator of reals between integers; `own`, `out`: scale and zero point of x and of the result."""
    made = make(b.onnx("DequantizeLinear", x, *own))
    return b.onnx("QuantizeLinear", made, *out, output_dtype=0 if out[1] is not None else elem_type(x.dtype))


@operator("QLinearSigmoid", domain=MICROSOFT)
def qlinear_sigmoid(
    b: Maker[Tensor], x: Tensor, x_scale: Tensor, x_zero: Tensor | None, scale: Tensor, zero: Tensor | None = None
) -> Tensor:
    return between(b, x, (x_scale, x_zero), (scale, zero), lambda v: b.made("sigmoid", v))


@operator("QLinearLeakyRelu", domain=MICROSOFT)
def qlinear_leaky_relu(
    b: Maker[Tensor], x: Tensor, x_scale: Tensor, x_zero: Tensor | None, scale: Tensor, zero: Tensor | None = None, *, alpha: float = 0.01
) -> Tensor:  # fmt: skip
    return between(b, x, (x_scale, x_zero), (scale, zero), lambda v: b.made("leaky_relu", v, alpha=alpha))


@operator("QLinearSoftmax", domain=MICROSOFT)
def qlinear_softmax(
    b: Maker[Tensor], x: Tensor, x_scale: Tensor, x_zero: Tensor | None, scale: Tensor, zero: Tensor | None = None, *, axis: int = -1,
    opset: int = 13,
) -> Tensor:  # fmt: skip
    if opset < 13 and x.axis(axis) != x.rank - 1:
        raise Refused("over several axes it is not supported")
    return between(b, x, (x_scale, x_zero), (scale, zero), lambda v: b.onnx("Softmax", v, axis=axis))


def _channels_first(b: Maker[Tensor], x: Tensor, last: int, make: Callable[[Tensor], Tensor]) -> Tensor:
    """An operator of images with channels first, on images that may have them last."""
    if not last:
        return make(x)
    made = make(b.transpose(x, [0, x.rank - 1, *range(1, x.rank - 1)]))
    return b.transpose(made, [0, *range(2, made.rank), 1])


@operator("QLinearGlobalAveragePool", domain=MICROSOFT)
def qlinear_global_average_pool(
    b: Maker[Tensor], x: Tensor, x_scale: Tensor, x_zero: Tensor | None, scale: Tensor, zero: Tensor | None = None, *, channels_last: int = 0
) -> Tensor:  # fmt: skip
    def make(v: Tensor) -> Tensor:
        return _channels_first(b, v, channels_last, lambda image: b.onnx("GlobalAveragePool", image))

    return between(b, x, (x_scale, x_zero), (scale, zero), make)


@operator("QLinearAveragePool", domain=MICROSOFT)
def qlinear_average_pool(
    b: Maker[Tensor], x: Tensor, x_scale: Tensor, x_zero: Tensor | None, scale: Tensor, zero: Tensor | None = None, *, asked: Asked,
    ceil_mode: int = 0, count_include_pad: int = 0, channels_last: int = 0,
) -> Tensor:  # fmt: skip
    def pooled(image: Tensor) -> Tensor:
        given = {**asked._asdict(), "ceil_mode": ceil_mode, "count_include_pad": count_include_pad}
        return b.onnx("AveragePool", image, **given)

    return between(b, x, (x_scale, x_zero), (scale, zero), lambda v: _channels_first(b, v, channels_last, pooled))


@operator("QLinearConcat", domain=MICROSOFT)
def qlinear_concat(b: Maker[Tensor], scale: Tensor, zero: Tensor, *xs: Tensor, axis: int) -> Tensor:
    """Operands come with their scale and zero point; those of the result's stay as they are."""
    parts = []
    for x, own, point in zip(xs[::3], xs[1::3], xs[2::3], strict=True):
        same = all(
            v.array is not None and w.array is not None and np.array_equal(v.array, w.array)
            for v, w in ((own, scale), (point, zero))
        )
        parts.append(x if same else between(b, x, (own, point), (scale, zero), lambda v: v))
    return b.concat(*parts, axis=axis)


@operator("MatMulIntegerToFloat", domain=MICROSOFT)
def matmul_integer_to_float(
    b: Maker[Tensor], x: Tensor, y: Tensor, x_scale: Tensor, y_scale: Tensor, x_zero: Tensor | None = None, y_zero: Tensor | None = None,
    bias: Tensor | None = None,
) -> Tensor:  # fmt: skip
    sums = b.onnx("Cast", b.onnx("MatMulInteger", x, y, x_zero, y_zero), to=FLOAT)
    return added(b, b.made("multiply", sums, b.made("multiply", x_scale, y_scale)), bias)


@operator("DynamicQuantizeMatMul", domain=MICROSOFT)
def dynamic_quantize_matmul(
    b: Maker[Tensor], x: Tensor, y: Tensor, y_scale: Tensor, y_zero: Tensor | None = None, bias: Tensor | None = None
) -> Tensor:
    level, scale, zero = b.onnx_all("DynamicQuantizeLinear", x)
    return matmul_integer_to_float(b, level, y, scale, y_scale, zero, y_zero, bias)


@operator("Attention", domain=MICROSOFT, partly="of all positions to all others")
def attention(
    b: Maker[Tensor], x: Tensor, w: Tensor, bias: Tensor | None = None, mask: Tensor | None = None, past: Tensor | None = None,
    more: Tensor | None = None, *, num_heads: int, unidirectional: int = 0, qkv_hidden_sizes: Sequence[int] = (), scale: float = 0.0,
    mask_filter_value: float = -10000.0, do_rotary: int = 0,
) -> Tensor:  # fmt: skip
    """x [N, S, D], w [D, 3 H]; `more`: what is added to the scores."""
    if mask is not None or past is not None or unidirectional or qkv_hidden_sizes or do_rotary or any(b.outputs()[1:]):
        raise Refused("masks, pasts, rotations and sizes of its own for each part are not supported")
    if x.rank != 3 or not all(isinstance(d, int) for d in (*x.shape, *w.shape)):
        raise Refused("its sizes are only known at run time")
    made = added(b, b.onnx("MatMul", x, w), bias)
    n, s, wide = made.shape
    each = wide // 3 // num_heads
    q, k, v = (
        b.transpose(b.reshape(part, [n, s, num_heads, each]), [0, 2, 1, 3])
        for part in b.split(made, 2, [wide // 3] * 3)
    )
    products = b.onnx("MatMul", q, b.transpose(k, [0, 1, 3, 2]))
    scores = added(b, b.made("multiply", products, number(b, x, scale or 1 / sqrt(each))), more)
    found = b.onnx("MatMul", b.onnx("Softmax", scores), v)
    return b.reshape(b.transpose(found, [0, 2, 1, 3]), [n, s, wide // 3])
