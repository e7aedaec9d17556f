"""Inverse functions of angles and of hyperbolic functions: series and logarithms, for targets have no operation for them.

Beyond the domains arc sine and inverse hyperbolic tangent give numbers, the others NaN.
"""

from __future__ import annotations

import numpy as np

from compassc import te
from compassc.ir.exprs import Expr
from compassc.operators.declare import number, sample
from compassc.operators.elementwise import real

HALF_PI = 1.5707963267948966
LARGEST = 3.4028234663852886e38
_INSIDE = (sample((5, 7), low=-1.0, high=1.0),)
_ABOVE_ONE = (sample((5, 7), low=1.0, high=9.0),)


def _series(v: Expr, *factors: float) -> Expr:
    """A polynomial without a constant term, the factor of the highest power first."""
    found = number(factors[0], v.dtype)
    for factor in factors[1:]:
        found = found * v + number(factor, v.dtype)
    return found * v


def _odd(v: Expr, size: Expr) -> Expr:
    """`size` with the sign of `v`."""
    return te.Select(v < number(0, v.dtype), -size, size)


def _sine_of(part: Expr, square: Expr) -> Expr:
    """The arc sine of `part` from 0 to a half; `square` is its square."""
    more = _series(square, 4.2163199048e-2, 2.4181311049e-2, 4.5470025998e-2, 7.4953002686e-2, 1.6666752422e-1)
    return part + part * more


def _arc_sine(v: Expr) -> Expr:
    half, size = number(0.5, v.dtype), te.abs(v)
    steep = size > half
    square = te.Select(steep, (number(1, v.dtype) - size) * half, size * size)
    angle = _sine_of(te.Select(steep, te.sqrt(square), size), square)
    return _odd(v, te.Select(steep, number(HALF_PI, v.dtype) - (angle + angle), angle))


def _arc_cosine(v: Expr) -> Expr:
    half, size = number(0.5, v.dtype), te.abs(v)
    square = (number(1, v.dtype) - size) * half
    angle = _sine_of(te.sqrt(square), square)
    far = te.Select(v < number(0, v.dtype), number(2 * HALF_PI, v.dtype) - (angle + angle), angle + angle)
    return te.Select(size > half, far, number(HALF_PI, v.dtype) - _arc_sine(v))


def _arc_tangent(v: Expr) -> Expr:
    zero, one, size = number(0, v.dtype), number(1, v.dtype), te.abs(v)
    far, middle = size > number(2.414213562373095, v.dtype), size > number(0.4142135623730950, v.dtype)
    part = te.Select(far, -one / size, te.Select(middle, (size - one) / (size + one), size))
    start = te.Select(far, number(HALF_PI, v.dtype), te.Select(middle, number(HALF_PI / 2, v.dtype), zero))
    more = _series(part * part, 8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1)
    return _odd(v, start + part + part * more)


def _inverse_sine(v: Expr) -> Expr:
    # the square of a large number would overflow; its root is the number itself
    size = te.abs(v)
    near = te.log(size + te.sqrt(size * size + number(1, v.dtype)))
    return _odd(v, te.Select(_is_large(size), te.log(size) + number(0.6931471805599453, v.dtype), near))


def _inverse_cosine(v: Expr) -> Expr:
    one = number(1, v.dtype)
    near = te.log(v + te.sqrt((v - one) * (v + one)))
    found = te.Select(_is_large(v), te.log(v) + number(0.6931471805599453, v.dtype), near)
    return te.Select(v >= one, found, number(float("nan"), v.dtype))


def _is_large(v: Expr) -> Expr:
    """Whether the square of a number may be none."""
    return v > number(1e9 if v.dtype.bits > 16 else 128, v.dtype)


def _inverse_tangent(v: Expr) -> Expr:
    one, most = number(1, v.dtype), number(LARGEST if v.dtype.bits > 16 else 65504, v.dtype)
    near = number(0.5, v.dtype) * te.log((one + v) / (one - v))
    return te.Select(te.abs(v) < one, near, te.Select(v == -one, -most, most))


asin = real(
    "asin", lambda x: np.nan_to_num(np.arcsin(x), nan=2147483647.0), "The arc sine; 2^31 - 1 outside -1..1.", *_INSIDE,
    formula=lambda v: te.Select(te.abs(v) <= number(1, v.dtype), _arc_sine(v), number(2147483647.0, v.dtype)),
)  # fmt: skip
acos = real("acos", np.arccos, "The arc cosine.", *_INSIDE, formula=_arc_cosine)
atan = real("atan", np.arctan, "The arc tangent.", formula=_arc_tangent)
asinh = real("asinh", np.arcsinh, "The inverse hyperbolic sine.", formula=_inverse_sine)
acosh = real("acosh", np.arccosh, "The inverse hyperbolic cosine.", *_ABOVE_ONE, formula=_inverse_cosine)
atanh = real(
    "atanh", lambda x: np.nan_to_num(np.arctanh(x), nan=LARGEST),
    "The inverse hyperbolic tangent; the largest number at 1 and outside -1..1.",
    sample((5, 7), low=-0.9, high=0.9), formula=_inverse_tangent,
)  # fmt: skip
