"""Mathematical functions. Accuracy: what the C headers of the simulator define, so both agree bit for bit."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from compass_core import vendor
from compass_core.errors import CompassError

from . import fp
from .core import LazyModule, Op, np, value_op
from .numeric import np_dtype
from .rules import FLOATS, INTS, SCALAR_FLOATS, Lanewise, Scalars

dispatch: Any = LazyModule("compassc.language.dispatch")

GROUP = "Math"
RULE = Lanewise(FLOATS, scalars=Scalars(SCALAR_FLOATS), help="write a float, such as 4.0, or convert first")


def function(params: str) -> Callable[[Callable[..., Any]], Op]:
    """Declare a function spelt NAME(...) on scalars and vNAME(...) on vectors; every lane is computed."""

    def decorate(meaning: Callable[..., Any]) -> Op:
        name, fields = meaning.__name__, ", ".join(f"{{{p.strip()}}}" for p in params.split(","))
        return value_op(GROUP, params, RULE, c=[("scalar", f"{name}({fields})"), f"v{name}({fields})"])(meaning)

    return decorate


@function("x")
def exp(x: Any, dtype: Any) -> Any:
    """Natural exponential e^x.

    The device's own algorithm, computed in float32. Results below the smallest normal float32 become 0; above about
    88.38 the result is infinite.
    """
    return fp.in_float(fp.exp, dtype, x)


@function("x")
def exp2(x: Any, dtype: Any) -> Any:
    """2 to the power x; exact for integral x within range, infinite on overflow."""
    return fp.in_double(np.exp2, dtype, x)


@function("x")
def log(x: Any, dtype: Any) -> Any:
    """Natural logarithm. Zero gives -inf, a negative number NaN."""
    return fp.in_double(np.log, dtype, x)


@function("x")
def tanh(x: Any, dtype: Any) -> Any:
    """Hyperbolic tangent; the infinities give +-1."""
    return fp.in_double(np.tanh, dtype, x)


@function("x")
def sin(x: Any, dtype: Any) -> Any:
    """Sine of an angle in radians; NaN for an infinite angle."""
    return fp.in_double(np.sin, dtype, x)


@function("x")
def cos(x: Any, dtype: Any) -> Any:
    """Cosine of an angle in radians; NaN for an infinite angle."""
    return fp.in_double(np.cos, dtype, x)


@function("x")
def erf(x: Any, dtype: Any) -> Any:
    """Gauss error function, 2/sqrt(pi) times the integral of exp(-u*u) from 0 to x."""
    return fp.in_double(np.vectorize(math.erf, otypes=[float]), dtype, x)


@function("x")
def sqrt(x: Any, dtype: Any) -> Any:
    """Square root, correctly rounded. A negative number gives NaN, -0.0 itself."""
    return fp.in_float(np.sqrt, dtype, x)


@function("x")
def rsqrt(x: Any, dtype: Any) -> Any:
    """Reciprocal square root, computed in float32 as sqrt(1/x).

    +0.0 gives inf and -0.0 gives -inf; a negative number gives NaN.
    """
    return fp.in_float(fp.rsqrt, dtype, x)


@function("x")
def floor(x: Any, dtype: Any) -> Any:
    """Largest integer value not above x, as a floating-point number; exact."""
    return fp.in_float(np.floor, dtype, x)


@function("x")
def ceil(x: Any, dtype: Any) -> Any:
    """Smallest integer value not below x, as a floating-point number; exact. Between -1 and 0 it is -0.0."""
    return fp.in_float(np.ceil, dtype, x)


@function("x, exponent")
def pow(x: Any, exponent: Any, dtype: Any) -> Any:
    """x to the power `exponent`.

    Either argument may be a scalar. x^0 and 1^y are 1, also for NaN; a negative base with a fractional exponent gives
    NaN.
    """
    return fp.in_double(_power, dtype, x, exponent)


def _power(x: Any, y: Any) -> Any:
    """C's pow. np.power takes the root for a single exponent of 0.5; a product is never a signalling NaN, of which the
    0th power would be NaN."""
    return np.float_power(x * 1.0, y * 1.0)


class ZeroDivisor(CompassError, ZeroDivisionError):
    """A division by zero in PySim, under the vendor's names."""


@value_op(GROUP, "x, y", Scalars(INTS), c="ceildiv({x}, {y})", split="none")
def ceildiv(x: Any, y: Any, dtype: Any) -> Any:
    """Quotient of two integer scalars, rounded up.

    Computed as (x + y - 1) / y in the common type of x and y, where every step wraps and the division truncates, so
    it is the ceiling only for x >= 0 and y > 0 whose sum stays in range. It is 0 where y is 0.
    """
    if y == 0:
        if vendor.names_in_use and dispatch.LOCAL.tec is not None:
            raise ZeroDivisor("ceildiv divides by zero", code="zero-division", help="the divisor must be positive")
        return np_dtype(dtype).type(0)
    total = int((np.int64(x) + np.int64(y)).astype(np_dtype(dtype)))
    numerator, divisor = int(np.int64(total - 1).astype(np_dtype(dtype))), int(y)
    quotient = abs(numerator) // abs(divisor)
    return np.int64(quotient if (numerator < 0) == (divisor < 0) else -quotient).astype(np_dtype(dtype))
