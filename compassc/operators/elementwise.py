"""Operators of one tensor, element by element."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from compass_core.arrays import Array
from compassc import te
from compassc.ir.dtypes import dtype as data_type
from compassc.ir.exprs import Expr
from compassc.operators import arrays
from compassc.operators.arrays import larger, limited, smaller
from compassc.operators.declare import (
    REALS,
    WHOLE,
    Sample,
    axis_of,
    check_shape,
    number,
    on_axes,
    operator,
    sample,
    sizes,
)
from compassc.operators.patterns import PatternKind
from compassc.te.tensor import Tensor

_SHAPES = (sample((5, 7)), sample((3,)))
F32 = np.float32


def mapped(x: Tensor, function: Callable[[Expr], object], name: str) -> Tensor:
    """A function of each element."""
    made: Tensor = te.compute(sizes(x), lambda *i: function(x[i]), name=name, tag="elemwise")
    return made


def real(
    name: str,
    reference: Callable[..., object],
    doc: str,
    *samples: Sample,
    formula: Callable[[Expr], object] | None = None,
) -> Callable[[Tensor], Tensor]:
    """A function of reals by `formula`, by default that of `te` with its name."""
    function = formula or getattr(te, name)

    def apply(x: Tensor) -> Tensor:
        return mapped(x, function, f"T_{name}")

    apply.__name__, apply.__doc__ = name, doc
    return operator(PatternKind.ELEMENTWISE, reference, *(samples or _SHAPES), types=REALS)(apply)


def _sigmoid(x: Array) -> Array:
    return F32(1) / (F32(1) + np.exp(-x))


def _softplus(x: Array) -> Array:
    return np.where(x > 20, x, np.log1p(np.exp(np.minimum(x, F32(20)))))


def _elu(x: Array, alpha: float = 1.0) -> Array:
    return np.where(x > 0, x, F32(alpha) * np.expm1(smaller(x, F32(0))))


def _erf(x: Array) -> Array:
    """In the element's own type."""
    return np.asarray(_ERF(x), np.float64).astype(x.dtype)


_ERF = np.frompyfunc(math.erf, 1, 1)


def _hyperbolic(x: Array, sign: int) -> Array:
    """cosh (1) or sinh (-1), which beyond 80 does not overflow before its result does."""
    a = np.abs(x)
    far = F32(np.exp(80.0) / 2) * np.exp(a - F32(80)) + sign * np.exp(-a) / F32(2)
    near = np.cosh(a) if sign > 0 else np.sinh(a)
    value = np.where(a > 80, far, near)
    return value if sign > 0 else np.copysign(value, x)


def _rsqrt(x: Array) -> Array:
    """As the NPU has it: the root of the reciprocal, but of -0.0 and -inf the reciprocal of the root."""
    one = F32(1)
    return np.where((x == 0) | np.isneginf(x), one / np.sqrt(x), np.sqrt(one / x))


_POSITIVE = (sample((5, 7), low=0.1, high=4.0),)
exp = real("exp", np.exp, "e to the power x.")
exp2 = real("exp2", np.exp2, "2 to the power x.")
log = real("log", np.log, "The natural logarithm.", *_POSITIVE)
log2 = real("log2", np.log2, "The logarithm to the base 2.", *_POSITIVE)
log10 = real("log10", np.log10, "The logarithm to the base 10.", *_POSITIVE)
sqrt = real("sqrt", np.sqrt, "The square root.", *_POSITIVE)
rsqrt = real(
    "rsqrt", _rsqrt, "One over the square root; on the NPU infinite below 2**-128, where 1 / x is.", *_POSITIVE
)
reciprocal = real("reciprocal", lambda x: F32(1) / x, "1 / x.", *_POSITIVE, formula=lambda v: number(1, v.dtype) / v)
square = real("square", lambda x: x * x, "x times x.", formula=lambda v: v * v)
tanh = real("tanh", np.tanh, "The hyperbolic tangent.")
sinh = real("sinh", lambda x: _hyperbolic(x, -1), "The hyperbolic sine.")
cosh = real("cosh", lambda x: _hyperbolic(x, 1), "The hyperbolic cosine.")
sin = real("sin", np.sin, "The sine of an angle in radians.")
cos = real("cos", np.cos, "The cosine of an angle in radians.")
tan = real("tan", np.tan, "The tangent of an angle in radians.", sample((5, 7), low=-1.0, high=1.0))
sigmoid = real("sigmoid", _sigmoid, "1 / (1 + exp(-x)).")
floor = real("floor", np.floor, "The largest whole number not above x.")
ceil = real("ceil", np.ceil, "The smallest whole number not below x.")
trunc = real("trunc", np.trunc, "x without its fraction.")
round = real("round", np.rint, "The nearest whole number, ties to even.")
erf = real("erf", _erf, "The Gauss error function.")
_INSIDE = (sample((5, 7), low=-1.0, high=1.0),)
asin = real("asin", np.arcsin, "The arc sine; no number outside -1..1.", *_INSIDE)
acos = real("acos", np.arccos, "The arc cosine; no number outside -1..1.", *_INSIDE)
atan = real("atan", np.arctan, "The arc tangent.")
asinh = real("asinh", np.arcsinh, "The inverse hyperbolic sine.")
acosh = real(
    "acosh", np.arccosh, "The inverse hyperbolic cosine; no number below 1.", sample((5, 7), low=1.0, high=9.0)
)
atanh = real(
    "atanh", np.arctanh, "The inverse hyperbolic tangent; no number outside -1..1.", sample((5, 7), low=-0.9, high=0.9)
)


@operator(PatternKind.ELEMENTWISE, np.abs, *_SHAPES)
def abs(x: Tensor) -> Tensor:
    """The absolute value; the least whole number stays what it is."""
    return mapped(x, te.abs, "T_abs")


@operator(PatternKind.ELEMENTWISE, np.negative, *_SHAPES)
def negative(x: Tensor) -> Tensor:
    """-x."""
    return mapped(x, lambda v: -v, "T_negative")


@operator(PatternKind.ELEMENTWISE, np.sign, *_SHAPES)
def sign(x: Tensor) -> Tensor:
    """1, 0 or -1; NaN of NaN."""
    one, zero, minus = (number(n, x.dtype) for n in (1, 0, -1))
    real = data_type(x.dtype).is_floating
    return mapped(
        x, lambda v: te.Select(v > zero, one, te.Select(v < zero, minus, v + zero if real else zero)), "T_sign"
    )


@operator(PatternKind.ELEMENTWISE, lambda x: x, *_SHAPES)
def identity(x: Tensor) -> Tensor:
    """x."""
    return mapped(x, lambda v: v, "T_identity")


@operator(PatternKind.ELEMENTWISE, limited, sample((5, 7), -1, 2))
def clip(x: Tensor, a_min: float, a_max: float) -> Tensor:
    """x, not below `a_min` and not above `a_max`; of NaN it is `a_min`."""
    low, high = number(a_min, x.dtype), number(a_max, x.dtype)
    return mapped(x, lambda v: te.min(te.max(v, low), high), "T_clip")


@operator(
    PatternKind.ELEMENTWISE,
    arrays.cast,
    sample((5, 7), "int32"),
    sample((5, 7), "float16"),
    types=("float32", "int8"),
)
def cast(x: Tensor, dtype: str) -> Tensor:
    """The elements in another type; reals are cut towards zero for whole numbers. What a target makes of those that no number
    of the type is near to is its own: the NPU limits them to int32, of which the low bits are left, and has 0 for NaN."""
    return mapped(x, lambda v: te.cast(v, dtype), "T_cast")


@operator(PatternKind.ELEMENTWISE, np.invert, *_SHAPES, types=WHOLE)
def bitwise_not(x: Tensor) -> Tensor:
    """All bits turned round."""
    return mapped(x, lambda v: ~v, "T_bitwise_not")


@operator(PatternKind.ELEMENTWISE, lambda x: larger(x, x.dtype.type(0)), *_SHAPES)
def relu(x: Tensor) -> Tensor:
    """x where it is positive, else 0; so it is of NaN."""
    return mapped(x, lambda v: te.max(v, number(0, x.dtype)), "T_relu")


@operator(
    PatternKind.ELEMENTWISE, lambda x, alpha: np.where(x >= 0, x, x * F32(alpha)), sample((5, 7), 0.25), types=REALS
)
def leaky_relu(x: Tensor, alpha: float) -> Tensor:
    """x where it is positive, else x times `alpha`."""
    zero, slope = number(0, x.dtype), number(alpha, x.dtype)
    return mapped(x, lambda v: te.Select(v > zero, v, v * slope), "T_leaky_relu")


@operator(
    PatternKind.BROADCAST,
    lambda x, slope, axis=1: np.where(x > 0, x, x * on_axes(x, slope, axis)),
    sample((2, 4, 3), (4,)),
    types=REALS,
)
def prelu(x: Tensor, slope: Tensor, axis: int = 1) -> Tensor:
    """x where it is positive, else x times the slope of its place on `axis`."""
    at, zero = axis_of(axis, x.ndim, "prelu"), number(0, x.dtype)
    check_shape("prelu", [sizes(x)[at]], slope)
    made: Tensor = te.compute(
        sizes(x), lambda *i: te.Select(x[i] > zero, x[i], x[i] * slope[i[at]]), name="T_prelu", tag="broadcast"
    )
    return made


def _exp_less_one(v: Expr) -> Expr:
    """e^v - 1 of what is not positive, 0 of the rest."""
    return te.exp(te.min(v, number(0, v.dtype))) - number(1, v.dtype)


def _softplus_of(v: Expr) -> Expr:
    # log(1 + e^v) = max(v, 0) + log(1 + e^-|v|), which never overflows
    found: Expr = te.max(v, number(0, v.dtype)) + te.log(number(1, v.dtype) + te.exp(-te.abs(v)))
    return found


silu = real("silu", lambda x: x * _sigmoid(x), "x times its sigmoid.", formula=lambda v: v * te.sigmoid(v))
softplus = real("softplus", _softplus, "log(1 + e^x).", formula=_softplus_of)
mish = real(
    "mish", lambda x: x * np.tanh(_softplus(x)), "x times the hyperbolic tangent of softplus.",
    formula=lambda v: v * te.tanh(_softplus_of(v)),
)  # fmt: skip
softsign = real(
    "softsign", lambda x: x / (F32(1) + np.abs(x)), "x / (1 + |x|).",
    formula=lambda v: v / (number(1, v.dtype) + te.abs(v)),
)  # fmt: skip
hard_swish = real(
    "hard_swish", lambda x: x * (limited(x + F32(3), 0, 6) / F32(6)), "x * (clip(x + 3, 0, 6) / 6).",
    formula=lambda v: v * (_within(v + number(3, v.dtype), 0, 6) / number(6, v.dtype)),
)  # fmt: skip


def _within(v: Expr, low: float, high: float) -> Expr:
    found: Expr = te.min(te.max(v, number(low, v.dtype)), number(high, v.dtype))
    return found


@operator(
    PatternKind.ELEMENTWISE,
    lambda x, alpha=1.0: x * _sigmoid(F32(alpha) * x),
    sample((5, 7)),
    sample((3,), 1.7),
    types=REALS,
)
def swish(x: Tensor, alpha: float = 1.0) -> Tensor:
    """x * sigmoid(alpha * x)."""
    return mapped(x, lambda v: v * te.sigmoid(v * number(alpha, x.dtype)), "T_swish")


@operator(
    PatternKind.ELEMENTWISE,
    lambda x, alpha=0.2, beta=0.5, clip_min=0.0, clip_max=1.0: limited(F32(alpha) * x + F32(beta), clip_min, clip_max),
    sample((5, 7)),
    types=REALS,
)
def hard_sigmoid(
    x: Tensor, alpha: float = 0.2, beta: float = 0.5, clip_min: float = 0.0, clip_max: float = 1.0
) -> Tensor:
    """alpha * x + beta, limited."""
    factor, addend = number(alpha, x.dtype), number(beta, x.dtype)
    return mapped(x, lambda v: _within(v * factor + addend, clip_min, clip_max), "T_hard_sigmoid")


@operator(PatternKind.ELEMENTWISE, _elu, sample((5, 7)), sample((3,), 0.5), types=REALS)
def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """x, or alpha * (e^x - 1) where negative."""
    zero, factor = number(0, x.dtype), number(alpha, x.dtype)
    return mapped(x, lambda v: te.Select(v > zero, v, factor * _exp_less_one(v)), "T_elu")


@operator(
    PatternKind.ELEMENTWISE,
    lambda x, alpha=1.67326319, gamma=1.05070102: F32(gamma) * _elu(x, alpha),
    sample((5, 7)),
    types=REALS,
)
def selu(x: Tensor, alpha: float = 1.67326319, gamma: float = 1.05070102) -> Tensor:
    """gamma times x, or gamma * alpha * (e^x - 1) where negative."""
    return mapped(elu(x, alpha), lambda v: number(gamma, x.dtype) * v, "T_selu")


@operator(
    PatternKind.ELEMENTWISE,
    lambda x, alpha=1.0: larger(x, F32(0)) + smaller(F32(alpha) * np.expm1(smaller(x / F32(alpha), F32(0))), F32(0)),
    sample((5, 7)),
    sample((3,), 0.5),
    types=REALS,
)
def celu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """max(0, x) + min(0, alpha * (e^(x / alpha) - 1))."""
    zero, factor = number(0, x.dtype), number(alpha, x.dtype)
    return mapped(x, lambda v: te.max(v, zero) + te.min(factor * _exp_less_one(v / factor), zero), "T_celu")


def _shrunk(x: Array, lambd: float = 0.5, bias: float = 0.0) -> Array:
    bound, less = F32(lambd), F32(bias)
    return np.where(x < -bound, x + less, np.where(x > bound, x - less, F32(0)))


@operator(PatternKind.ELEMENTWISE, _shrunk, sample((5, 7)), sample((3,), 0.25, 0.5), types=REALS)
def shrink(x: Tensor, lambd: float = 0.5, bias: float = 0.0) -> Tensor:
    """x moved toward 0 by bias, 0 within lambd."""
    zero, bound, less = (number(n, x.dtype) for n in (0, lambd, bias))
    return mapped(x, lambda v: te.Select(v < -bound, v + less, te.Select(v > bound, v - less, zero)), "T_shrink")


@operator(
    PatternKind.ELEMENTWISE, lambda x, alpha=1.0: np.where(x > F32(alpha), x, F32(0)), sample((5, 7)), types=REALS
)
def thresholded_relu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """x above alpha, else 0."""
    zero, bound = number(0, x.dtype), number(alpha, x.dtype)
    return mapped(x, lambda v: te.Select(v > bound, v, zero), "T_thresholded_relu")


@operator(
    PatternKind.ELEMENTWISE, lambda x: x * F32(0.5) * (F32(1) + _erf(x * F32(math.sqrt(0.5)))), *_SHAPES, types=REALS
)
def gelu(x: Tensor) -> Tensor:
    """x times the normal distribution's probability up to x."""
    half, one, root = (number(n, x.dtype) for n in (0.5, 1, 0.7071067811865476))
    return mapped(x, lambda v: half * v * (one + te.erf(v * root)), "T_gelu")


def _gelu_tanh(x: Array) -> Array:
    inner = F32(math.sqrt(2 / math.pi)) * (x + F32(0.044715) * x * x * x)
    found: Array = x * F32(0.5) * (F32(1) + np.tanh(inner))
    return found


@operator(PatternKind.ELEMENTWISE, _gelu_tanh, *_SHAPES, types=REALS)
def gelu_tanh(x: Tensor) -> Tensor:
    """gelu by a hyperbolic tangent: x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2."""
    half, one, root, part = (number(n, x.dtype) for n in (0.5, 1, 0.7978845608028654, 0.044715))
    return mapped(x, lambda v: half * v * (one + te.tanh(root * (v + part * v * v * v))), "T_gelu_tanh")


@operator(PatternKind.ELEMENTWISE, lambda x: x == 0, *_SHAPES)
def logical_not(x: Tensor) -> Tensor:
    """Whether x is 0."""
    return mapped(x, lambda v: ~v if v.dtype.is_bool else v == number(0, x.dtype), "T_logical_not")


isnan = real("isnan", np.isnan, "Whether x is no number.")
isinf = real("isinf", np.isinf, "Whether x is infinite.")
isfinite = real("isfinite", np.isfinite, "Whether x is a number and not infinite.")


@operator(PatternKind.ELEMENTWISE, lambda x, value: np.full_like(x, value), sample((5, 7), 3))
def full_like(x: Tensor, fill_value: object) -> Tensor:
    """A tensor of one value, of the shape and type of x."""
    return mapped(x, lambda v: number(fill_value, x.dtype), "T_full_like")


@operator(
    PatternKind.ELEMENTWISE,
    lambda shape, dtype, value: np.full(shape, value, dtype),
    sample([3, 4], "int32", 7),
    types=("int32",),
)
def full(shape: Any, dtype: str, fill_value: object) -> Tensor:
    """A tensor of one value."""
    made: Tensor = te.compute(list(shape), lambda *i: number(fill_value, dtype), name="T_full", tag="elemwise")
    return made


@operator(
    PatternKind.ELEMENTWISE,
    lambda *given: np.arange(*given[:3], dtype=given[3]),
    sample(2, 17, 3, "int32"),
    types=("int32",),
)
def arange(start: int, stop: int, step: int = 1, dtype: str = "int32") -> Tensor:
    """`start`, `start + step`, ... below `stop`."""
    count = builtins.max(-(-(stop - start) // step), 0)
    made: Tensor = te.compute([count], lambda i: te.cast(i * step + start, dtype), name="T_arange", tag="elemwise")
    return made
