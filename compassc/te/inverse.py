"""Functions of values that the NPU has no operations for, made of those that it has: hyperbolic functions, their inverse
functions and those of angles, to about float32's precision, and bits of whole numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from compassc.ir import exprs as E
from compassc.ir.dtypes import FLOAT32, dtype
from compassc.ir.errors import ExpressionTypeError
from compassc.ir.exprs import Expr
from compassc.ir.operators import as_expr, binary, cast, const, kind_of, matched
from compassc.te.math import Select, abs, exp, log, sqrt


def _real(x: object, name: str, function: Callable[[Expr], Expr]) -> Expr:
    """A function of float32 for a value of float16 or float32, in its type; of float64 the host's own."""
    e = as_expr(x)
    if not e.dtype.is_float:
        raise ExpressionTypeError(
            f"te.{name} needs a float16, float32 or float64, got {e.dtype}", "cast the value first"
        )
    if e.dtype.bits == 64:
        return E.FuncCall(name, (e,), e.dtype)
    return cast(function(cast(e, FLOAT32)), e.dtype)


def _polynomial(x: Expr, factors: Sequence[float]) -> Expr:
    """The polynomial with these factors, that of the highest power first."""
    found: Expr = const(factors[0])
    for factor in factors[1:]:
        found = found * x + factor
    return found


def _odd(x: Expr, factors: Sequence[float]) -> Expr:
    """x + x**3 * polynomial of x**2."""
    square = x * x
    return _polynomial(square, factors) * square * x + x


def _signed(x: Expr, found: Expr, zero: Expr | None = None) -> Expr:
    """The value of an odd function by that of the number without its sign; `zero` where the number is 0, or none."""
    return Select(x < 0.0, -found, found if zero is None else Select(x > 0.0, found, zero))


def atan(x: object) -> Expr:
    """The angle in radians whose tangent is x, from -pi/2 to pi/2."""

    def function(v: Expr) -> Expr:
        a = abs(v)
        steep, middle = a > 2.414213562373095, a > 0.4142135623730950
        reduced = Select(steep, -(const(1.0) / a), Select(middle, (a - 1.0) / (a + 1.0), a))
        start = Select(steep, const(math.pi / 2), Select(middle, const(math.pi / 4), const(0.0)))
        factors = (8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1)
        return _signed(v, start + _odd(reduced, factors), v)

    return _real(x, "atan", function)


_ASIN = (4.2163199048e-2, 2.4181311049e-2, 4.5470025998e-2, 7.4953002686e-2, 1.6666752422e-1)


def asin(x: object) -> Expr:
    """The angle in radians whose sine is x, from -pi/2 to pi/2; no number for x beyond -1 and 1."""

    def function(v: Expr) -> Expr:
        a = abs(v)
        large = a > 0.5
        found = _odd(Select(large, sqrt((const(1.0) - a) * 0.5), v), _ASIN)
        return Select(large, _signed(v, const(math.pi / 2) - found * 2.0), found)

    return _real(x, "asin", function)


def acos(x: object) -> Expr:
    """The angle in radians whose cosine is x, from 0 to pi; no number for x beyond -1 and 1."""

    def function(v: Expr) -> Expr:
        large = abs(v) > 0.5
        found = _odd(Select(large, sqrt((const(1.0) - abs(v)) * 0.5), v), _ASIN)
        near_one = Select(v < 0.0, const(math.pi) - found * 2.0, found * 2.0)
        return Select(large, near_one, const(math.pi / 2) - found)

    return _real(x, "acos", function)


_FAR = 80.0
"""Beyond it e**x is that of less times a constant: e**x overflows where its half does not."""


def _half_exp(a: Expr) -> Expr:
    """e**a / 2."""
    far = a > _FAR
    return exp(Select(far, a - _FAR, a)) * Select(far, const(math.exp(_FAR) / 2), const(0.5))


def sinh(x: object) -> Expr:
    """Hyperbolic sine."""

    def function(v: Expr) -> Expr:
        a = abs(v)
        half = _half_exp(a)
        large = _signed(v, half - const(0.25) / half)
        return Select(a < 1.0, _odd(v, (2.03721912945e-4, 8.33028376239e-3, 1.66667160211e-1)), large)

    return _real(x, "sinh", function)


def cosh(x: object) -> Expr:
    """Hyperbolic cosine."""

    def function(v: Expr) -> Expr:
        half = _half_exp(abs(v))
        return half + const(0.25) / half

    return _real(x, "cosh", function)


def asinh(x: object) -> Expr:
    """The number whose hyperbolic sine is x."""

    def function(v: Expr) -> Expr:
        a = abs(v)
        small = _odd(v, (2.0122003309e-2, -4.2699340972e-2, 7.4847586088e-2, -1.6666288134e-1))
        large = Select(a > 1500.0, log(a) + math.log(2), log(a + sqrt(a * a + 1.0)))
        return Select(a < 0.5, Select(a > 0.0, small, v), _signed(v, large))

    return _real(x, "asinh", function)


def acosh(x: object) -> Expr:
    """The number, not negative, whose hyperbolic cosine is x; no number for x below 1."""

    def function(v: Expr) -> Expr:
        over = v - 1.0
        factors = (1.7596881071e-3, -7.5272886713e-3, 2.6454905019e-2, -1.1784741703e-1, 1.4142135263)
        small = _polynomial(over, factors) * sqrt(over)
        return Select(v > 1500.0, log(v) + math.log(2), Select(over < 0.5, small, log(v + sqrt(over * (v + 1.0)))))

    return _real(x, "acosh", function)


def atanh(x: object) -> Expr:
    """The number whose hyperbolic tangent is x; infinite for -1 and 1, no number beyond."""

    def function(v: Expr) -> Expr:
        a, factors = abs(v), (1.81740078349e-1, 8.24370301058e-2, 1.46691431730e-1, 1.99782164500e-1, 3.33337300303e-1)
        return Select(a < 0.5, _odd(v, factors), _signed(v, log((a + 1.0) / (const(1.0) - a)) * 0.5))

    return _real(x, "atanh", function)


def logaddexp(x: object, y: object) -> Expr:
    """log(exp(x) + exp(y)), without running over in between."""
    a, b = as_expr(x), as_expr(y)
    kind = matched(kind_of(a), kind_of(b), "logaddexp")

    def function(v: Expr) -> Expr:
        w = cast(b, FLOAT32)
        larger = binary("max", v, w)
        return Select(v.equal(w), v + math.log(2), larger + log(exp(-abs(v - w)) + 1.0))

    return _real(cast(a, kind), "logaddexp", function)


def fmod(x: object, y: object) -> Expr:
    """What the quotient, cut towards zero, leaves. Of reals it is exact, a function of the host's: other targets have none.
    ExpressionTypeError for two reals of different types and for those of 16 bits."""
    a, b = as_expr(x), as_expr(y)
    reals = {32: "fmodf", 64: "fmod"}
    if a.dtype.is_floating and a.dtype is b.dtype and a.dtype.bits in reals:
        return E.FuncCall(reals[a.dtype.bits], (a, b), a.dtype)
    if not (a.dtype.is_integer and b.dtype.is_integer):
        raise ExpressionTypeError(f"te.fmod has no form for {a.dtype} and {b.dtype}", "cast both to float32 or float64")
    return binary("mod", a, b)


def popcount(x: object) -> Expr:
    """How many bits of a whole number are set, in its type."""
    e = as_expr(x)
    if not e.dtype.is_integer or e.dtype.is_bool:
        raise ExpressionTypeError(f"te.popcount needs a whole number, got {e.dtype}")
    kind = dtype(f"uint{e.dtype.bits}")
    found, shift, every = cast(e, kind), 1, (1 << e.dtype.bits) - 1
    while shift < e.dtype.bits:
        mask = const(every // ((1 << shift) + 1), kind)  # of each pair of groups of bits the lower one
        found = (found & mask) + ((found >> const(shift, kind)) & mask)
        shift *= 2
    return cast(found, e.dtype)
