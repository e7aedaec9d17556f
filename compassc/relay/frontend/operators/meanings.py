"""Operators of the registry (`compassc.operators`) as expressions, with their own parameters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compassc.relay.frontend.terms import MEANINGS, Expressions, Made, Operand, Term


def _alike(operands: Sequence[Operand]) -> Sequence[Operand]:
    """The operands, those of no tensor first where a tensor says their type."""
    first = next((o for o in operands if isinstance(o, Term)), None)
    return [o if isinstance(o, Term) or first is None else np.asarray(o, first.dtype) for o in operands]


def _plain(name: str) -> Made:
    return lambda b, *xs: b.call(name, *_alike(xs))


def _where(b: Expressions, condition: Term, x: Operand, y: Operand) -> Term:
    return b.call("where", condition, *_alike([x, y]))


def _power(b: Expressions, x: Operand, y: Operand) -> Term:
    """Of the type of x; the exponent may have another one."""
    if not (isinstance(x, Term) and isinstance(y, Term)) or x.dtype == y.dtype:
        return b.call("power", *_alike([x, y]))
    kind = x.dtype if x.is_float or not y.is_float else y.dtype
    return b.cast(b.call("power", b.cast(x, kind), b.cast(y, kind)), x.dtype)


def rounded(b: Expressions, x: Term) -> Term:
    """To the nearest, ties to even: the operator of Relay takes them away from zero."""
    tie = b.call("equal", b.call("subtract", x, b.call("floor", x)), 0.5)
    even = b.call("multiply", b.call("round", b.call("multiply", x, 0.5)), 2.0)
    return b.call("where", tie, even, b.call("round", x))


def _slice(
    b: Expressions, x: Term, begin: Sequence[int], end: Sequence[int], strides: Sequence[int] | None = None, axes: Sequence[int] | None = None
) -> Term:  # fmt: skip
    return b.call(
        "strided_slice",
        x,
        begin=list(begin),
        end=list(end),
        strides=strides and list(strides),
        axes=axes and list(axes),
    )


def _pad(b: Expressions, x: Term, before: Sequence[int], after: Sequence[int] | None = None, value: float = 0) -> Term:
    widths = list(zip(before, before if after is None else after, strict=True))
    return b.call("nn.pad", x, pad_width=widths, pad_value=np.asarray(value, x.dtype))


def _conv(
    b: Expressions, x: Term, w: Term, stride: object, padding: object, dilation: object = 1, groups: int = 1
) -> Term:
    return b.call(
        "nn.conv2d", x, w, strides=stride, padding=padding, dilation=dilation, groups=groups, channels=w.shape[3],
        kernel_size=list(w.shape[:2]), data_layout="NHWC", kernel_layout="HWIO",
    )  # fmt: skip


def _depthwise(b: Expressions, x: Term, w: Term, stride: object, padding: object, dilation: object = 1) -> Term:
    h, k, channels, many = w.shape
    filters = b.call("reshape", w, newshape=[h, k, 1, channels * many])
    return _conv(b, x, filters, stride, padding, dilation, channels)


def _pool(
    b: Expressions, x: Term, kernel: object, stride: object, dilation: object, padding: object, kind: str, ceil_mode: bool = False,
    layout: str = "NCHW", count_include_pad: bool = True,
) -> Term:  # fmt: skip
    counted = {"count_include_pad": count_include_pad} if kind == "avg" else {}
    return b.call(
        f"nn.{kind}_pool2d", x, pool_size=kernel, strides=stride, dilation=dilation, padding=padding, ceil_mode=ceil_mode,
        layout=layout, **counted,
    )  # fmt: skip


def _elu(b: Expressions, x: Term, alpha: float = 1.0) -> Term:
    below = b.call("multiply", b.call("subtract", b.call("exp", b.call("minimum", x, 0)), 1), alpha)
    return b.call("where", b.call("greater", x, 0), x, below)


def _selu(b: Expressions, x: Term, alpha: float = 1.67326319, gamma: float = 1.05070102) -> Term:
    return b.call("multiply", _elu(b, x, alpha), gamma)


def _celu(b: Expressions, x: Term, alpha: float = 1.0) -> Term:
    return b.call("multiply", _elu(b, b.call("divide", x, alpha)), alpha)


def _hard_sigmoid(
    b: Expressions, x: Term, alpha: float = 0.2, beta: float = 0.5, clip_min: float = 0.0, clip_max: float = 1.0
) -> Term:
    return b.call("clip", b.call("add", b.call("multiply", x, alpha), beta), a_min=clip_min, a_max=clip_max)


def _shrink(b: Expressions, x: Term, lambd: float = 0.5, bias: float = 0.0) -> Term:
    above = b.call("where", b.call("greater", x, lambd), b.call("subtract", x, bias), b.call("zeros_like", x))
    return b.call("where", b.call("less", x, -lambd), b.call("add", x, bias), above)


def _softplus(b: Expressions, x: Term) -> Term:
    """The logarithm is of 2 at most, so that nothing overflows."""
    rest = b.call("log", b.call("add", b.call("exp", b.call("negative", b.call("abs", x))), 1))
    return b.call("add", b.call("maximum", x, 0), rest)


def _swish(b: Expressions, x: Term, alpha: float = 1.0) -> Term:
    return b.call("multiply", x, b.call("sigmoid", x if alpha == 1 else b.call("multiply", x, alpha)))


def _thresholded_relu(b: Expressions, x: Term, alpha: float = 1.0) -> Term:
    return b.call("where", b.call("greater", x, alpha), x, b.call("zeros_like", x))


def _hard_swish(b: Expressions, x: Term) -> Term:
    part = b.call("clip", b.call("add", x, 3), a_min=0.0, a_max=6.0)
    return b.call("divide", b.call("multiply", x, part), 6)


def _half_of(b: Expressions, x: Term, share: Term) -> Term:
    return b.call("multiply", b.call("multiply", x, 0.5), b.call("add", share, 1))


def _gelu(b: Expressions, x: Term) -> Term:
    return _half_of(b, x, b.call("erf", b.call("multiply", x, 0.5**0.5)))


def _gelu_tanh(b: Expressions, x: Term) -> Term:
    cube = b.call("multiply", b.call("multiply", b.call("multiply", x, x), x), 0.044715)
    return _half_of(b, x, b.call("tanh", b.call("multiply", b.call("add", x, cube), (2 / np.pi) ** 0.5)))


def _reduction(name: str) -> Made:
    return lambda b, x, axis=None, keepdims=False: b.call(name, x, axis=axis, keepdims=keepdims)


MEANINGS.update(
    {
        **{
            n: _plain(n)
            for n in (
                "abs acos acosh add asin asinh atan atanh bitwise_and bitwise_not bitwise_or bitwise_xor ceil cos cosh divide equal erf exp "
                "floor greater greater_equal isnan less less_equal log logical_and logical_not logical_or logical_xor maximum minimum multiply "
                "negative not_equal rsqrt sigmoid sign sin sinh sqrt subtract tan tanh trunc"
            ).split()
        },
        **{n: _reduction(n) for n in ("sum", "mean", "max", "min", "prod", "all", "any")},
        "batch_matmul": lambda b, x, y, turn_x=False, turn_y=True: b.call(
            "nn.batch_matmul", x, y, transpose_a=turn_x, transpose_b=turn_y
        ),
        "celu": _celu,
        "clip": lambda b, x, low, high: b.call("clip", x, a_min=float(low), a_max=float(high)),
        "concatenate": lambda b, xs, axis=0: b.call("concatenate", list(xs), axis=axis),
        "conv2d_nhwc": _conv,
        "dense": lambda b, x, w: b.call("nn.dense", x, w),
        "depthwise_conv2d_nhwc": _depthwise,
        "elu": _elu,
        "gelu": _gelu,
        "gelu_tanh": _gelu_tanh,
        "group_conv2d_nhwc": _conv,
        "hard_sigmoid": _hard_sigmoid,
        "hard_swish": _hard_swish,
        "identity": lambda b, x: x,
        "leaky_relu": lambda b, x, alpha: b.call("nn.leaky_relu", x, alpha=float(alpha)),
        "log_softmax": lambda b, x, axis=-1: b.call("nn.log_softmax", x, axis=axis),
        "matmul": lambda b, x, y, turn_x=False, turn_y=False: b.call(
            "nn.matmul", x, y, transpose_a=turn_x, transpose_b=turn_y
        ),
        "max_pool2d": _pool,
        "mish": lambda b, x: b.call("multiply", x, b.call("tanh", _softplus(b, x))),
        "pad": _pad,
        "power": _power,
        "reciprocal": lambda b, x: b.call("divide", b.of(1, x), x),
        "relu": _plain("nn.relu"),
        "reshape": lambda b, x, shape: b.call("reshape", x, newshape=[int(d) for d in shape]),
        "round": rounded,
        "selu": _selu,
        "shrink": _shrink,
        "silu": _swish,
        "softmax": lambda b, x, axis=-1: b.call("nn.softmax", x, axis=axis),
        "softplus": _softplus,
        "softsign": lambda b, x: b.call("divide", x, b.call("add", b.call("abs", x), 1)),
        "split": lambda b, x, parts, axis=0: b.calls(
            "split", x, indices_or_sections=parts if isinstance(parts, int) else tuple(parts), axis=axis
        ),
        "square": lambda b, x: b.call("multiply", x, x),
        "strided_slice": _slice,
        "swish": _swish,
        "thresholded_relu": _thresholded_relu,
        "take": lambda b, x, places, axis: b.call("take", x, places, axis=axis),
        "tile": lambda b, x, reps: b.call("tile", x, reps=list(reps)),
        "transpose": lambda b, x, axes=None: b.call("transpose", x, axes=axes and list(axes)),
        "where": _where,
    }
)
