"""Operators of ONNX Runtime (com.microsoft), which its optimiser and quantiser put into models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import pi, sqrt

import numpy as np

from compassc.importers.declare import Constant
from compassc.importers.onnx.operators.contributed import MICROSOFT, SKIP_EPSILON, blocks_of_weights
from compassc.importers.onnx.window import Asked
from compassc.importers.values import Refused
from compassc.relay.frontend.operators.elementwise import clip
from compassc.relay.frontend.operators.linear import gemm, matmul, matmul_of_integers
from compassc.relay.frontend.operators.meanings import rounded
from compassc.relay.frontend.operators.quantised import dequantize, limited, quantize, requantised
from compassc.relay.frontend.operators.windows import average_pool, conv, global_average
from compassc.relay.frontend.terms import Expressions, Term, operator

Ints = Sequence[int]
operator("QuantizeLinear", domain=MICROSOFT)(quantize)
operator("DequantizeLinear", domain=MICROSOFT)(dequantize)


# ------------------------------------------------------------------------------------------ activations, normalisations


def _gelu(b: Expressions, x: Term, fast: bool) -> Term:
    if fast:
        cube = b.call("multiply", b.call("multiply", b.call("multiply", x, x), x), 0.044715)
        share = b.call("tanh", b.call("multiply", b.call("add", x, cube), sqrt(2 / pi)))
    else:
        share = b.call("erf", b.call("multiply", x, sqrt(0.5)))
    return b.call("multiply", b.call("multiply", x, 0.5), b.call("add", share, 1.0))


@operator("Gelu", "BiasGelu", "FastGelu", domain=MICROSOFT)
def gelu(b: Expressions, x: Term, bias: Term | None = None) -> Term:
    return _gelu(b, x if bias is None else b.call("add", x, bias), b.op == "FastGelu")


@operator("QuickGelu", domain=MICROSOFT)
def quick_gelu(b: Expressions, x: Term, *, alpha: float = 1.702) -> Term:
    return b.call("multiply", x, b.call("sigmoid", b.call("multiply", x, alpha)))


def _normal(b: Expressions, x: Term, scale: Term, shift: Term | None, epsilon: float, centred: bool) -> Term:
    """Over the last axis."""
    apart = b.call("subtract", x, b.call("mean", x, axis=[-1], keepdims=True)) if centred else x
    spread = b.call("mean", b.call("multiply", apart, apart), axis=[-1], keepdims=True)
    made = b.call("multiply", b.call("divide", apart, b.call("sqrt", b.call("add", spread, epsilon))), scale)
    return made if shift is None else b.call("add", made, shift)


def _total(b: Expressions, x: Term, skip: Term, bias: Term | None) -> Term:
    """The sum that is normalised, which is the fourth output. Refused where mean and deviation are asked for."""
    if any(b.outputs()[1:3]):
        raise Refused("its mean and deviation are not supported as outputs")
    total = b.call("add", x, skip)
    return total if bias is None else b.call("add", total, bias)


@operator("SkipLayerNormalization", domain=MICROSOFT)
def skip_layer_norm(
    b: Expressions, x: Term, skip: Term, scale: Term, shift: Term | None = None, bias: Term | None = None, *, epsilon: float = SKIP_EPSILON,
) -> list[Term]:  # fmt: skip
    total = _total(b, x, skip, bias)
    return [_normal(b, total, scale, shift, epsilon, centred=True), total, total, total]


@operator("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_simplified_layer_norm(
    b: Expressions, x: Term, skip: Term, scale: Term, bias: Term | None = None, *, epsilon: float = SKIP_EPSILON
) -> list[Term]:
    total = _total(b, x, skip, bias)
    return [_normal(b, total, scale, None, epsilon, centred=False), total, total, total]


# ------------------------------------------------------------------------------------------------------------- products


def _ended(b: Expressions, x: Term, activation: str, parameters: Sequence[float] = ()) -> Term:
    """With the activation at the end of a fused operator."""
    plain = {"Relu": "nn.relu", "Sigmoid": "sigmoid", "Tanh": "tanh"}
    if activation in plain:
        return b.call(plain[activation], x)
    if activation == "LeakyRelu":
        return b.call("nn.leaky_relu", x, alpha=float(parameters[0] if parameters else 0.01))
    if activation == "Clip" and len(parameters) == 2:
        return clip(b, x, *(b.of(v, x) for v in parameters))
    if activation:
        raise Refused(f"its activation is {activation}")
    return x


@operator("FusedConv", domain=MICROSOFT)
def fused_conv(
    b: Expressions,
    x: Term,
    w: Term,
    bias: Term | None = None,
    added: Term | None = None,
    *,
    asked: Asked,
    activation: str = "",
    activation_params: Sequence[float] = (),
    group: int = 1,
) -> Term:
    """`added`: to the convolution, before the activation."""
    made = conv(b, x, w, bias, asked=asked, group=group)
    return _ended(b, made if added is None else b.call("add", made, added), activation, activation_params)


@operator("FusedGemm", domain=MICROSOFT)
def fused_gemm(
    b: Expressions, x: Term, y: Term, c: Term | None = None, *, alpha: float = 1.0, beta: float = 1.0, transA: int = 0,
    transB: int = 0, activation: str = "", activation_alpha: float = 0.01,
) -> Term:  # fmt: skip
    made = gemm(b, x, y, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
    return _ended(b, made, activation, [activation_alpha])


@operator("FusedMatMul", domain=MICROSOFT)
def fused_matmul(
    b: Expressions, x: Term, y: Term, *, alpha: float = 1.0, transA: int = 0, transB: int = 0, transBatchA: int = 0,
    transBatchB: int = 0,
) -> Term:  # fmt: skip
    if transBatchA or transBatchB:
        raise Refused("transposed batches are not supported")
    left, right = (
        b.transpose(v, [*range(v.rank - 2), v.rank - 1, v.rank - 2]) if flag and v.rank > 1 else v
        for v, flag in ((x, transA), (y, transB))
    )
    made = matmul(b, left, right)
    return made if alpha == 1 else b.call("multiply", made, alpha)


@operator("MatMulNBits", domain=MICROSOFT)
def matmul_n_bits(
    b: Expressions, x: Term, w: Constant, scales: Constant, zeros: Constant | None = None, order: Constant | None = None,
    bias: Term | None = None, *, K: int, N: int, bits: int = 4, block_size: int = 32, accuracy_level: int = 0,
) -> Term:  # fmt: skip
    if order is not None and order.size:
        raise Refused("weights in an order of groups are not supported")
    weights = blocks_of_weights(w, scales, zeros, (N, K), bits, block_size).astype(x.dtype)
    made = matmul(b, x, b.known(np.ascontiguousarray(weights.T)))
    return made if bias is None else b.call("add", made, bias)


# ------------------------------------------------------------------------------------------------------------ quantised


def _between(
    b: Expressions, x: Term, own: Sequence[Term | None], out: Sequence[Term | None], make: Callable[[Term], Term]
) -> Term:
    """An operator of reals between integers; `own`, `out`: scale and zero point of x and of the result."""
    (scale, zero), (out_scale, out_zero) = own, out
    assert scale is not None and out_scale is not None
    return quantize(
        b,
        make(dequantize(b, x, scale, zero)),
        out_scale,
        out_zero,
        output_dtype=0 if out_zero is not None else _code(x),
    )


def _code(x: Term) -> int:
    """The type of a tensor of bytes by ONNX's number."""
    return {"uint8": 2, "int8": 3}[x.kind]


@operator("QLinearSigmoid", domain=MICROSOFT)
def qlinear_sigmoid(
    b: Expressions, x: Term, x_scale: Term, x_zero: Term | None, y_scale: Term, y_zero: Term | None = None
) -> Term:
    return _between(b, x, (x_scale, x_zero), (y_scale, y_zero), lambda v: b.call("sigmoid", v))


@operator("QLinearLeakyRelu", domain=MICROSOFT)
def qlinear_leaky_relu(
    b: Expressions, x: Term, x_scale: Term, x_zero: Term | None, y_scale: Term, y_zero: Term | None = None, *, alpha: float = 0.01
) -> Term:  # fmt: skip
    return _between(b, x, (x_scale, x_zero), (y_scale, y_zero), lambda v: b.call("nn.leaky_relu", v, alpha=alpha))


@operator("QLinearSoftmax", domain=MICROSOFT)
def qlinear_softmax(
    b: Expressions, x: Term, x_scale: Term, x_zero: Term | None, y_scale: Term, y_zero: Term | None = None, *, axis: int = -1,
    opset: int = 13,
) -> Term:  # fmt: skip
    if opset < 13 and x.axis(axis) != x.rank - 1:
        raise Refused("over several axes it is not supported")
    return _between(b, x, (x_scale, x_zero), (y_scale, y_zero), lambda v: b.call("nn.softmax", v, axis=v.axis(axis)))


def _channels_first(b: Expressions, x: Term, last: int, make: Callable[[Term], Term]) -> Term:
    """An operator of images with channels first, on images that may have them last."""
    if not last:
        return make(x)
    made = make(b.transpose(x, [0, x.rank - 1, *range(1, x.rank - 1)]))
    return b.transpose(made, [0, *range(2, made.rank), 1])


@operator("QLinearGlobalAveragePool", domain=MICROSOFT)
def qlinear_global_average_pool(
    b: Expressions, x: Term, x_scale: Term, x_zero: Term | None, y_scale: Term, y_zero: Term | None = None, *, channels_last: int = 0
) -> Term:  # fmt: skip
    def make(v: Term) -> Term:
        return _channels_first(b, v, channels_last, lambda image: global_average(b, image))

    return _between(b, x, (x_scale, x_zero), (y_scale, y_zero), make)


@operator("QLinearAveragePool", domain=MICROSOFT)
def qlinear_average_pool(
    b: Expressions, x: Term, x_scale: Term, x_zero: Term | None, y_scale: Term, y_zero: Term | None = None, *, asked: Asked,
    ceil_mode: int = 0, count_include_pad: int = 0, channels_last: int = 0,
) -> Term:  # fmt: skip
    def pooled(image: Term) -> Term:
        return average_pool(b, image, asked=asked, ceil_mode=ceil_mode, count_include_pad=count_include_pad)

    return _between(b, x, (x_scale, x_zero), (y_scale, y_zero), lambda v: _channels_first(b, v, channels_last, pooled))


@operator("QLinearAdd", "QLinearMul", domain=MICROSOFT)
def qlinear_arithmetic(
    b: Expressions, x: Term, x_scale: Term, x_zero: Term | None, y: Term, y_scale: Term, y_zero: Term | None, scale: Term,
    zero: Term | None = None,
) -> Term:  # fmt: skip
    name = {"QLinearAdd": "add", "QLinearMul": "multiply"}[b.op]
    real = dequantize(b, y, y_scale, y_zero)
    return _between(b, x, (x_scale, x_zero), (scale, zero), lambda v: b.call(name, v, real))


@operator("QLinearConcat", domain=MICROSOFT)
def qlinear_concat(b: Expressions, scale: Term, zero: Term, *xs: Term, axis: int) -> Term:
    """Operands come with their scale and zero point; those of the result's stay as they are."""
    parts = []
    for x, own, point in zip(xs[::3], xs[1::3], xs[2::3], strict=True):
        same = all(
            v.array is not None and w.array is not None and np.array_equal(v.array, w.array)
            for v, w in ((own, scale), (point, zero))
        )
        parts.append(x if same else _between(b, x, (own, point), (scale, zero), lambda v: v))
    return b.call("concatenate", parts, axis=axis)


@operator("QGemm", domain=MICROSOFT)
def qgemm(
    b: Expressions, x: Term, x_scale: Term, x_zero: Term, w: Term, w_scale: Term, w_zero: Term, c: Term | None = None,
    scale: Term | None = None, zero: Term | None = None, *, alpha: float = 1.0, transA: int = 0, transB: int = 0,
) -> Term:  # fmt: skip
    """`c`: in whole numbers, by the product of the scales. Without a scale the result is of real numbers."""
    left, right = b.transpose(x, [1, 0]) if transA else x, b.transpose(w, [1, 0]) if transB else w
    sums = matmul_of_integers(b, left, right, x_zero, w_zero)
    sums = sums if c is None else b.call("add", sums, c)
    own = x_scale if alpha == 1 else b.call("multiply", x_scale, alpha)
    if scale is not None and zero is not None:
        return requantised(b, sums, own, w_scale, scale, zero, 1)
    return b.call("multiply", b.cast(sums, "float32"), b.call("multiply", own, w_scale))


@operator("MatMulIntegerToFloat", domain=MICROSOFT)
def matmul_integer_to_float(
    b: Expressions, x: Term, y: Term, x_scale: Term, y_scale: Term, x_zero: Term | None = None, y_zero: Term | None = None,
    bias: Term | None = None,
) -> Term:  # fmt: skip
    sums = b.cast(matmul_of_integers(b, x, y, x_zero, y_zero), "float32")
    made = b.call("multiply", sums, b.call("multiply", x_scale, y_scale))
    return made if bias is None else b.call("add", made, bias)


@operator("DynamicQuantizeMatMul", domain=MICROSOFT)
def dynamic_quantize_matmul(
    b: Expressions, x: Term, y: Term, y_scale: Term, y_zero: Term | None = None, bias: Term | None = None
) -> Term:
    """The data by 8 bits between its extremes."""
    zero = b.of(np.zeros((), np.float32))
    low = b.call("minimum", b.call("min", x), zero)
    high = b.call("maximum", b.call("max", x), zero)
    scale = b.call("divide", b.call("subtract", high, low), 255)
    point = limited(b, rounded(b, b.call("divide", b.call("negative", low), scale)), np.uint8)
    return matmul_integer_to_float(b, quantize(b, x, scale, point), y, scale, y_scale, point, y_zero, bias)


@operator("Attention", domain=MICROSOFT)
def attention(
    b: Expressions, x: Term, w: Term, bias: Term | None = None, mask: Term | None = None, past: Term | None = None,
    added: Term | None = None, *, num_heads: int, unidirectional: int = 0, qkv_hidden_sizes: Ints = (), scale: float = 0.0,
    mask_filter_value: float = -10000.0, do_rotary: int = 0,
) -> Term:  # fmt: skip
    """Of all positions to all others: x [N, S, D], w [D, 3 H]; `added`: to the scores."""
    if mask is not None or past is not None or unidirectional or qkv_hidden_sizes or do_rotary or b.uses(1):
        raise Refused("masks, pasts, rotations and sizes of its own for each part are not supported")
    if x.rank != 3 or not all(isinstance(d, int) for d in (*x.shape, *w.shape)):
        raise Refused("its sizes are only known at run time")
    made = matmul(b, x, w) if bias is None else b.call("add", matmul(b, x, w), bias)
    n, s, wide = made.shape
    each = wide // 3 // num_heads
    q, k, v = (
        b.transpose(b.reshape(part, [n, s, num_heads, each]), [0, 2, 1, 3])
        for part in b.calls("split", made, indices_or_sections=3, axis=2)
    )
    scores = b.call("multiply", matmul(b, q, b.transpose(k, [0, 1, 3, 2])), scale or 1 / sqrt(each))
    scores = scores if added is None else b.call("add", scores, added)
    return b.reshape(b.transpose(matmul(b, b.call("nn.softmax", scores, axis=-1), v), [0, 2, 1, 3]), [n, s, wide // 3])
