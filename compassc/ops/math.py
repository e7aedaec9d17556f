"""Mathematical functions. The C headers of the simulator give them within one unit in the last place of a float32;
PySim gives the same bits."""

from __future__ import annotations

import math
from collections.abc import Callable

from compass_core.arrays import Array
from compass_core.lazy import np

from ..ir.dtypes import DataType
from .core import Cost, Definition, Op, Spelling, value_op
from .exact import double, quotient, rounded, wide, wrapped
from .example import Example, binary, unary
from .rules import FLOATS, INTS, SCALAR_FLOATS, Lanewise, Scalars

GROUP = "Math"

RULE = Lanewise(FLOATS, scalars=Scalars(SCALAR_FLOATS), help="write a float, such as 4.0, or convert first")


ULPS = 1
CURVE = Cost("math", scalar="scalar_math")
ROOT = Cost("div", scalar="scalar_div")
ROUNDING = Cost("convert")


def function(parameters: str, example: Example, *, cost: Cost = CURVE, ulps: int = 0) -> Callable[[Definition], Op]:
    """Declare a function spelt NAME(...) on scalars and vNAME(...) on vectors; every lane is computed."""

    def decorate(definition: Definition) -> Op:
        name, fields = definition.__name__, ", ".join(f"{{{p.strip()}}}" for p in parameters.split(","))
        spelling: Spelling = [("scalar", f"{name}({fields})"), f"v{name}({fields})"]
        declared = value_op(
            group=GROUP, parameters=parameters, typing=RULE, c=spelling, cost=cost, ulps=ulps, example=example
        )
        return declared(definition)

    return decorate


@function("x", unary("fp32"), ulps=ULPS)
def exp(x: Array, to: DataType) -> Array:
    """Natural exponential e^x.

    The device's own algorithm, computed in float32. Results below the smallest normal float32 become 0; above about
    88.38 the result is infinite.
    """
    return rounded(np.exp(double(x)), to)


@function("x", unary("fp32"), ulps=ULPS)
def exp2(x: Array, to: DataType) -> Array:
    """2 to the power x; exact for integral x within range, infinite on overflow."""
    return rounded(np.exp2(double(x)), to)


@function("x", unary("fp32", (1, 2, 4, 0.25, 100, 0.5, 0, -1)), ulps=ULPS)
def log(x: Array, to: DataType) -> Array:
    """Natural logarithm. Zero gives -inf, a negative number NaN."""
    return rounded(np.log(double(x)), to)


@function("x", unary("fp32"), ulps=ULPS)
def tanh(x: Array, to: DataType) -> Array:
    """Hyperbolic tangent; the infinities give +-1."""
    return rounded(np.tanh(double(x)), to)


@function("x", unary("fp32"), ulps=ULPS)
def sin(x: Array, to: DataType) -> Array:
    """Sine of an angle in radians; NaN for an infinite angle."""
    return rounded(np.sin(double(x)), to)


@function("x", unary("fp32"), ulps=ULPS)
def cos(x: Array, to: DataType) -> Array:
    """Cosine of an angle in radians; NaN for an infinite angle."""
    return rounded(np.cos(double(x)), to)


@function("x", unary("fp32"), ulps=ULPS)
def erf(x: Array, to: DataType) -> Array:
    """Gauss error function, 2/sqrt(pi) times the integral of exp(-u*u) from 0 to x."""
    return rounded(np.vectorize(math.erf, otypes=[float])(double(x)), to)


@function("x", unary("fp32", (1, 2, 4, 0.25, 100, 0.5, 0, -1)), cost=ROOT)
def sqrt(x: Array, to: DataType) -> Array:
    """Square root, correctly rounded. A negative number gives NaN, -0.0 itself."""
    return rounded(np.sqrt(double(x)), to)


@function("x", unary("fp32", (1, 2, 4, 0.25, 100, 0.5, 0, -1)), cost=ROOT, ulps=ULPS)
def rsqrt(x: Array, to: DataType) -> Array:
    """Reciprocal square root, computed in float32 as sqrt(1/x).

    +0.0 gives inf and -0.0 gives -inf; a negative number gives NaN.
    """
    return rounded(1 / np.sqrt(double(x)), to)


@function("x", unary("fp32"), cost=ROUNDING)
def floor(x: Array, to: DataType) -> Array:
    """Largest integer value not above x, as a floating-point number; exact."""
    return rounded(np.floor(double(x)), to)


@function("x", unary("fp32"), cost=ROUNDING)
def ceil(x: Array, to: DataType) -> Array:
    """Smallest integer value not below x, as a floating-point number; exact. Between -1 and 0 it is -0.0."""
    return rounded(np.ceil(double(x)), to)


@function("x, exponent", binary("fp32", ys=(2, 2, 3, 0, 0.5, 3, 9, -1)), ulps=ULPS)
def pow(x: Array, exponent: Array, to: DataType) -> Array:
    """x to the power `exponent`.

    Either argument may be a scalar. x^0 and 1^y are 1, also for NaN; a negative base with a fractional exponent gives
    NaN.
    """
    return rounded(np.power(double(x), double(exponent)), to)


@value_op(
    group=GROUP,
    parameters="x, y",
    typing=Scalars(INTS),
    c="ceildiv({x}, {y})",
    split="none",
    cost=Cost("scalar"),
    example=Example("out[0] = S.ceildiv(x[0], 2)", lanes=1),
)
def ceildiv(x: Array, y: Array, to: DataType) -> Array:
    """Quotient of two integer scalars, rounded up.

    Computed as (x + y - 1) / y in the common type of x and y, where every step wraps and the division truncates, so
    it is the ceiling only for x >= 0 and y > 0 whose sum stays in range. It is 0 where y is 0.
    """
    above = wrapped(wide(wrapped(wide(x) + wide(y), to)) - 1, to)
    return wrapped(quotient(above, y), to)
