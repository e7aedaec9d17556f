"""Operators of one tensor, element by element."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from compassc import te
from compassc.ir.exprs import Expr
from compassc.operators.declare import REALS, WHOLE, Sample, number, operator, sample, sizes
from compassc.operators.patterns import PatternKind
from compassc.te.tensor import Tensor

_SHAPES = (sample((5, 7)), sample((3,)))


def mapped(x: Tensor, function: Callable[[Expr], Any], name: str) -> Tensor:
    """A function of each element."""
    made: Tensor = te.compute(sizes(x), lambda *i: function(x[i]), name=name, tag="elemwise")
    return made


def _real(name: str, reference: Callable[..., Any], doc: str, *samples: Sample) -> Callable[[Tensor], Tensor]:
    function = getattr(te, name)

    def apply(x: Tensor) -> Tensor:
        return mapped(x, function, f"T_{name}")

    apply.__name__, apply.__doc__ = name, doc
    return operator(PatternKind.ELEMENTWISE, reference, *(samples or _SHAPES), types=REALS)(apply)


_POSITIVE = (sample((5, 7), low=0.1, high=4.0),)
exp = _real("exp", np.exp, "e to the power x.")
exp2 = _real("exp2", np.exp2, "2 to the power x.")
log = _real("log", np.log, "Natural logarithm.", *_POSITIVE)
log2 = _real("log2", np.log2, "Logarithm to the base 2.", *_POSITIVE)
log10 = _real("log10", np.log10, "Logarithm to the base 10.", *_POSITIVE)
sqrt = _real("sqrt", np.sqrt, "Square root.", *_POSITIVE)
rsqrt = _real("rsqrt", lambda x: 1 / np.sqrt(x), "One over the square root.", *_POSITIVE)
tanh = _real("tanh", np.tanh, "Hyperbolic tangent.")
sinh = _real("sinh", np.sinh, "Hyperbolic sine.")
cosh = _real("cosh", np.cosh, "Hyperbolic cosine.")
sin = _real("sin", np.sin, "Sine of an angle in radians.")
cos = _real("cos", np.cos, "Cosine of an angle in radians.")
tan = _real("tan", np.tan, "Tangent of an angle in radians.", sample((5, 7), low=-1.0, high=1.0))
sigmoid = _real("sigmoid", lambda x: 1 / (1 + np.exp(-x)), "1 / (1 + exp(-x)).")
floor = _real("floor", np.floor, "The largest whole number not above x.")
ceil = _real("ceil", np.ceil, "The smallest whole number not below x.")
trunc = _real("trunc", np.trunc, "x without its fraction.")
round = _real("round", np.rint, "The nearest whole number, ties to even.")


def _erf(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    import math

    return np.vectorize(math.erf)(x)


erf = _real("erf", _erf, "Gauss error function.")


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
    """1, 0 or -1."""
    one, zero, minus = (number(n, x.dtype) for n in (1, 0, -1))
    return mapped(x, lambda v: te.Select(v > zero, one, te.Select(v < zero, minus, zero)), "T_sign")


@operator(PatternKind.ELEMENTWISE, lambda x: x, *_SHAPES)
def identity(x: Tensor) -> Tensor:
    """x."""
    return mapped(x, lambda v: v, "T_identity")


@operator(PatternKind.ELEMENTWISE, lambda x, a_min, a_max: np.clip(x, a_min, a_max), sample((5, 7), -1, 2))
def clip(x: Tensor, a_min: float, a_max: float) -> Tensor:
    """x, not below `a_min` and not above `a_max`."""
    low, high = number(a_min, x.dtype), number(a_max, x.dtype)
    return mapped(x, lambda v: te.min(te.max(v, low), high), "T_clip")


@operator(
    PatternKind.ELEMENTWISE,
    lambda x, dtype: np.trunc(x).astype(dtype),
    sample((5, 7), "int32"),
    types=("float32", "int8"),
)
def cast(x: Tensor, dtype: str) -> Tensor:
    """The elements in another type; reals are cut towards zero."""
    return mapped(x, lambda v: te.cast(v, dtype), "T_cast")


@operator(PatternKind.ELEMENTWISE, np.invert, *_SHAPES, types=WHOLE)
def bitwise_not(x: Tensor) -> Tensor:
    """All bits turned round."""
    return mapped(x, lambda v: ~v, "T_bitwise_not")


@operator(PatternKind.ELEMENTWISE, lambda x: np.maximum(x, 0), *_SHAPES)
def relu(x: Tensor) -> Tensor:
    """x where it is positive, else 0."""
    return mapped(x, lambda v: te.max(v, number(0, x.dtype)), "T_relu")


@operator(PatternKind.ELEMENTWISE, lambda x, alpha: np.where(x > 0, x, x * alpha), sample((5, 7), 0.25), types=REALS)
def leaky_relu(x: Tensor, alpha: float) -> Tensor:
    """x where it is positive, else x times `alpha`."""
    zero, slope = number(0, x.dtype), number(alpha, x.dtype)
    return mapped(x, lambda v: te.Select(v > zero, v, v * slope), "T_leaky_relu")


@operator(
    PatternKind.BROADCAST,
    lambda x, slope, axis=1: np.where(x > 0, x, x * slope[None, :, None]),
    sample((2, 4, 3), (4,)),
    types=REALS,
)
def prelu(x: Tensor, slope: Tensor, axis: int = 1) -> Tensor:
    """x where it is positive, else x times the slope of its place on `axis`."""
    zero = number(0, x.dtype)
    made: Tensor = te.compute(
        sizes(x), lambda *i: te.Select(x[i] > zero, x[i], x[i] * slope[i[axis]]), name="T_prelu", tag="broadcast"
    )
    return made


@operator(PatternKind.ELEMENTWISE, lambda x: x * (1 / (1 + np.exp(-x))), *_SHAPES, types=REALS)
def silu(x: Tensor) -> Tensor:
    """x times its sigmoid."""
    return mapped(x, lambda v: v * te.sigmoid(v), "T_silu")


@operator(PatternKind.ELEMENTWISE, lambda x: 0.5 * x * (1 + _erf(x / np.sqrt(2))), *_SHAPES, types=REALS)
def gelu(x: Tensor) -> Tensor:
    """x times the share of a normal distribution below x."""
    half, one, root = (number(n, x.dtype) for n in (0.5, 1, 0.7071067811865476))
    return mapped(x, lambda v: half * v * (one + te.erf(v * root)), "T_gelu")


@operator(PatternKind.ELEMENTWISE, lambda x: x == 0, *_SHAPES)
def logical_not(x: Tensor) -> Tensor:
    """Whether x is 0."""
    return mapped(x, lambda v: ~v if v.dtype.is_bool else v == number(0, x.dtype), "T_logical_not")


isnan = _real("isnan", np.isnan, "Whether x is no number.")
isinf = _real("isinf", np.isinf, "Whether x is infinite.")
isfinite = _real("isfinite", np.isfinite, "Whether x is a number and not infinite.")


@operator(PatternKind.ELEMENTWISE, lambda x, value: np.full_like(x, value), sample((5, 7), 3))
def full_like(x: Tensor, fill_value: Any) -> Tensor:
    """A tensor of one value, of the shape and type of x."""
    return mapped(x, lambda v: number(fill_value, x.dtype), "T_full_like")


@operator(
    PatternKind.ELEMENTWISE,
    lambda shape, dtype, value: np.full(shape, value, dtype),
    sample([3, 4], "int32", 7),
    types=("int32",),
)
def full(shape: Any, dtype: str, fill_value: Any) -> Tensor:
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
