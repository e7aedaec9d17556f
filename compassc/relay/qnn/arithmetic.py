"""The arithmetic of quantised operators as expressions: what `ops.fixed_point` computes of arrays, to the bit.

Numbers are given with the scale and the zero point that they have: scalars, or one for each place of an axis.
"""

from __future__ import annotations

import numpy as np

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compassc.ir.dtypes import dtype as data_type
from compassc.ir.errors import ExpressionError
from compassc.relay.builders import call
from compassc.relay.expr import Constant, Expr
from compassc.relay.ops import fixed_point
from compassc.relay.ops.fixed_point import Requantization
from compassc.relay.passes import fold_constant
from compassc.relay.passes._functions import constant, scalar
from compassc.relay.types import TensorType, Type

WORD = 2**31


@dataclass(frozen=True)
class Parameters:
    """A scale and a zero point with the type of the latter, and the axis that they lie on where they are vectors."""

    scale: Expr
    zero: Expr
    zero_type: Type
    axis: int = -1


def value(e: Expr) -> Array | None:
    """The array that an expression is, where it needs no inputs."""
    found = e if isinstance(e, Constant) else fold_constant.fold(e)
    return found.array if isinstance(found, Constant) else None


def known(e: Expr, what: str) -> Array:
    """The array that an expression is; ExpressionError where it depends on inputs."""
    found = value(e)
    if found is None:
        raise ExpressionError(f"{what} must be a constant to be lowered", "bind parameters first: relay.build(params=)")
    return found


def is_zero(e: Expr) -> bool:
    """Whether an expression is known to be nothing but zeros."""
    found = value(e)
    return found is not None and not np.any(found)


def lying(e: Expr, t: Type, axis: int, rank: int) -> Expr:
    """A scalar as it is; a vector so that it lies on an axis."""
    found = value(e)
    if found is not None:
        return constant(fixed_point.on_axis(found, axis, max(rank, 1)))
    assert isinstance(t, TensorType)
    if not t.shape:
        return e
    vector = t.shape != (1,)
    return call("reshape", e, newshape=[-1 if vector and d == axis % rank else 1 for d in range(rank)])


def _cast(e: Expr, dtype: str) -> Expr:
    return constant(e.array.astype(dtype)) if isinstance(e, Constant) else call("cast", e, dtype=dtype)


def without(x: Expr, own: Parameters, rank: int, dtype: str = "int32") -> Expr:
    """Numbers in a type, less their zero point."""
    x = call("cast", x, dtype=dtype)
    if is_zero(own.zero):
        return x
    return call("subtract", x, _cast(lying(own.zero, own.zero_type, own.axis, rank), dtype))


def _with(x: Expr, out: Parameters, rank: int, dtype: str = "int32") -> Expr:
    if is_zero(out.zero):
        return x
    return call("add", x, _cast(lying(out.zero, out.zero_type, out.axis, rank), dtype))


def limited(x: Expr, dtype: str) -> Expr:
    """Whole numbers in a type: the nearest ones that it has."""
    low, high = data_type(dtype).range()
    return call("cast", call("clip", x, a_min=low, a_max=high), dtype=dtype)


def _within_word(x: Expr) -> Expr:
    """Reals without fractions as int64, within 32 bits."""
    return call(
        "clip", call("cast", call("clip", x, a_min=-WORD, a_max=WORD), dtype="int64"), a_min=-WORD, a_max=WORD - 1
    )


def _to_nearest(x: Expr, q: Array, e: Array) -> Expr:
    wide = call("cast", x, dtype="int64")
    if np.any(e > 0):
        wide = call("left_shift", wide, constant(np.maximum(e, 0)))
    product = call("multiply", wide, constant(q))
    shift = 31 + np.maximum(-e, 0)
    half = np.left_shift(np.int64(1), shift - 1)
    up = call("greater_equal", product, scalar(0, "int64"))
    rounded = call("add", product, call("where", up, constant(half), constant(half - 1)))
    return call("cast", call("right_shift", rounded, constant(shift)), dtype="int32")


def _twice(x: Expr, q: Array, e: Array, away: bool) -> Expr:
    """As `fixed_point` does it: the high word of the product, shifted and rounded again."""
    right, half = fixed_point.second_shift(e)
    high = _high_words(x, q, np.maximum(e, 0), np.zeros_like(e))
    if not right.any():
        return high
    wide = call("cast", high, dtype="int64")
    if away:
        below = call("less", wide, scalar(0, "int64"))
        made = call("add", wide, call("where", below, constant(half - (right > 0)), constant(half)))
    else:
        made = call("add", wide, constant(half))
    return call("cast", call("right_shift", made, constant(right)), dtype="int32")


def _high_words(x: Expr, q: Array, left: Array, right: Array) -> Expr:
    """int32 numbers times q * 2^(left - right - 31), with one rounding, halves up."""
    if q.size == 1:
        return call("fixed_point_multiply", x, multiplier=int(q.reshape(())), shift=int((left - right).reshape(())))
    vectors = [constant(v.reshape(-1).astype("int32")) for v in (q, left, right)]
    return call(
        "fixed_point_multiply_per_axis", x, *vectors, is_lshift_required=bool(left.any()),
        is_rshift_required=bool(right.any()), axes=[int(np.argmax(q.shape))],
    )  # fmt: skip


def scaled(x: Expr, factor: Array | np.float64, how: Requantization) -> Expr:
    """int32 numbers times a factor, or factors that lie on an axis, by fixed-point arithmetic."""
    q, e = fixed_point.parts(factor)
    if how.rounding == "TONEAREST":
        return _to_nearest(x, q, e)
    if how.rounding in fixed_point.TWICE:
        return _twice(x, q, e, how.rounding == "TWICE_TONEAREST")
    return _high_words(x, q, np.maximum(e, 0), np.maximum(-e, 0))


def requantized(x: Expr, own: Parameters, out: Parameters, rank: int, dtype: str, how: Requantization) -> Expr:
    """Numbers of one scale and zero point as those of another."""
    scales = known(own.scale, "the scale of the input"), known(out.scale, "the scale of the output")
    factor = fixed_point.ratio(*(fixed_point.on_axis(s, own.axis, max(rank, 1)) for s in scales))
    kind = how.compute_dtype
    if kind == "int64":
        t = without(x, own, rank)
        t = _with(t if factor is None else scaled(t, factor, how), out, rank)
        return t if dtype == "int32" else limited(t, dtype)
    t = without(x, own, rank, kind)
    t = t if factor is None else call("multiply", t, constant(factor.astype(kind)))
    t = _with(t, out, rank, kind)
    whole = call("floor", call("add", t, scalar(0.5, kind))) if how.rounding == "UPWARD" else call("round", t)
    return limited(_within_word(whole), dtype)


def to_even(x: Expr) -> Expr:
    """float32 numbers to the nearest, ties to even: the operator `round` takes them away from zero."""
    tie = call("equal", call("subtract", x, call("floor", x)), scalar(0.5, "float32"))
    even = call("multiply", call("round", call("multiply", x, scalar(0.5, "float32"))), scalar(2, "float32"))
    return call("where", tie, even, call("round", x))


def quantized(x: Expr, out: Parameters, scale_type: Type, rank: int, dtype: str, rounding: str = "None") -> Expr:
    """Reals as numbers of a scale and a zero point; what is no number as 0."""
    quotient = call("divide", x, lying(out.scale, scale_type, out.axis, rank))
    whole = to_even(quotient) if rounding == fixed_point.TIES_TO_EVEN else call("round", quotient)
    number = call("where", call("isnan", quotient), scalar(0, "float32"), whole)
    return limited(_with(_within_word(number), out, rank, "int64"), dtype)


def dequantized(x: Expr, own: Parameters, scale_type: Type, rank: int, dtype: str = "float32") -> Expr:
    """The reals that numbers of a scale and a zero point mean."""
    real = call("cast", without(x, own, rank), dtype="float32")
    made = call("multiply", real, lying(own.scale, scale_type, own.axis, rank))
    if dtype == "float16":
        return call("cast", call("clip", made, a_min=-65504.0, a_max=65504.0), dtype="float16")
    return made
