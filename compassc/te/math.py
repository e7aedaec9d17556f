"""Functions of values, element by element. Those that the NPU has become its operations; the others are made of these."""

from __future__ import annotations

from collections.abc import Callable

from compassc.ir import exprs as E
from compassc.ir.dtypes import BOOL, FLOAT32
from compassc.ir.errors import ExpressionTypeError
from compassc.ir.exprs import Expr
from compassc.ir.operators import as_expr, binary, cast, const, data_type, immediate, kind_of, matched


def _float(value: object, name: str) -> E.Expr:
    e = as_expr(value)
    if not e.dtype.is_float:
        raise ExpressionTypeError(
            f"te.{name} needs a float16, float32 or float64, got {e.dtype}", "cast the value first"
        )
    return e


def _operation(name: str, value: object) -> Expr:
    e = _float(value, name)
    return E.Call(name, (e,), e.dtype)


def exp(x: object) -> Expr:
    """e to the power x."""
    return _operation("exp", x)


def exp2(x: object) -> Expr:
    """2 to the power x."""
    return _operation("exp2", x)


def log(x: object) -> Expr:
    """Natural logarithm."""
    return _operation("log", x)


def log2(x: object) -> Expr:
    """Logarithm to the base 2: the natural one over log(2)."""
    return _scaled_log(x, 1.4426950408889634)


def log10(x: object) -> Expr:
    """Logarithm to the base 10: the natural one over log(10)."""
    return _scaled_log(x, 0.4342944819032518)


def _scaled_log(x: object, factor: float) -> Expr:
    found = log(x)
    return binary("mul", found, immediate(factor, kind_of(found)))


def sqrt(x: object) -> Expr:
    """Square root."""
    return _operation("sqrt", x)


def rsqrt(x: object) -> Expr:
    """One over the square root."""
    return _operation("rsqrt", x)


def tanh(x: object) -> Expr:
    """Hyperbolic tangent."""
    return _operation("tanh", x)


def sin(x: object) -> Expr:
    """Sine of an angle in radians."""
    return _operation("sin", x)


def cos(x: object) -> Expr:
    """Cosine of an angle in radians."""
    return _operation("cos", x)


def tan(x: object) -> Expr:
    """Tangent of an angle in radians: the sine over the cosine."""
    return binary_quotient(sin(x), cos(x))


def erf(x: object) -> Expr:
    """Gauss error function."""
    return _operation("erf", x)


def floor(x: object) -> Expr:
    """The largest whole number not above x, as a float."""
    return _operation("floor", x)


def ceil(x: object) -> Expr:
    """The smallest whole number not below x, as a float."""
    return _operation("ceil", x)


def trunc(x: object) -> Expr:
    """x without its fraction."""
    e = _float(x, "trunc")
    return Select(binary("lt", e, immediate(0, kind_of(e))), ceil(x), floor(x))


def nearbyint(x: object) -> Expr:
    """The nearest whole number, ties to even."""
    return _operation("rint", x)


round = nearbyint


def sigmoid(x: object) -> Expr:
    """1 / (1 + exp(-x))."""
    e = _float(x, "sigmoid")
    one = immediate(1, kind_of(e))
    return binary_quotient(one, binary("add", one, exp(-e)))


def binary_quotient(a: Expr, b: Expr) -> Expr:
    """The quotient of two reals of one type."""
    return E.Binary("div", a, b)


def power(x: object, exponent: object) -> Expr:
    """x to the power `exponent`, of floats of one type."""
    a, b = as_expr(x), as_expr(exponent)
    kind = matched(kind_of(a), kind_of(b), "power")
    a, b = _float(cast(a, kind), "power"), cast(b, kind)
    return E.Call("pow", (a, b), kind)


def abs(x: object) -> Expr:
    """The absolute value; the least integer stays what it is."""
    e = as_expr(x)
    if e.dtype.is_uint or e.dtype.is_bool:
        return e
    zero = immediate(0, kind_of(e))
    if e.dtype.is_integer:
        return Select(binary("ge", e, zero), e, binary("sub", zero, e))
    return E.Call("abs", (e,), e.dtype, attrs=(("saturate", False),))


def isnan(x: object) -> Expr:
    """Whether x is not a number."""
    e = as_expr(x)
    return const(False) if e.dtype.is_integer else E.Binary("ne", e, e)


def isinf(x: object) -> Expr:
    """Whether x is plus or minus infinity."""
    e = as_expr(x)
    if e.dtype.is_integer:
        return const(False)
    wide = cast(e, FLOAT32)
    return binary("gt", abs(wide), immediate(3.4028234663852886e38, FLOAT32))


def isfinite(x: object) -> Expr:
    """Whether x is a number and not infinite."""
    bad = E.Binary("or", isnan(x), isinf(x))
    return E.Unary("not", bad)


def if_then_else(condition: object, a: object, b: object) -> Expr:
    """`a` where the condition holds, else `b`; only the chosen one is evaluated, so it may guard what it reads."""
    return Select(condition, a, b)


def Select(condition: object, a: object, b: object) -> Expr:
    """`a` where the condition holds, else `b`."""
    test = as_expr(condition)
    if test.dtype is not BOOL:
        raise ExpressionTypeError(f"the condition is a bool, got {test.dtype}")
    kind = matched(kind_of(as_expr(a)), kind_of(as_expr(b)), "a choice")
    return E.Select(test, cast(a, kind), cast(b, kind))


def _named(op: str, doc: str) -> Callable[[object, object], Expr]:
    def apply(a: object, b: object) -> Expr:
        return binary(op, a, b)

    apply.__name__, apply.__doc__ = op, doc
    return apply


add = _named("add", "a + b")
subtract = _named("sub", "a - b")
multiply = _named("mul", "a * b")
floordiv = indexdiv = _named("floordiv", "The quotient of whole numbers, rounded down.")
floormod = indexmod = _named("floormod", "What floordiv leaves; it has the sign of the divisor.")
truncdiv = _named("div", "The quotient of whole numbers, cut towards zero.")
truncmod = _named("mod", "What truncdiv leaves; it has the sign of the dividend.")


def ceildiv(a: object, b: object) -> Expr:
    """The quotient of whole numbers, rounded up."""
    return binary("floordiv", binary("sub", binary("add", a, b), 1), b)


def reinterpret(dtype: object, value: object) -> Expr:
    """The same bits as a number of another type. ExpressionTypeError where these are of other sizes."""
    e, kind = as_expr(value), data_type(dtype)
    if kind_of(e).bits * kind_of(e).lanes != kind.bits * kind.lanes:
        raise ExpressionTypeError(f"{e.dtype} and {kind} have different numbers of bits")
    return e if e.dtype is kind else E.Reinterpret(kind, e)


def infinity(dtype: object) -> Expr:
    """The infinity of a type of reals. ExpressionTypeError for others."""
    kind = data_type(dtype)
    if not kind.is_floating or not kind.is_scalar:
        raise ExpressionTypeError(f"{kind} has no infinity")
    return E.FloatImm(kind, float("inf"))


def div(a: object, b: object) -> Expr:
    """The quotient: of reals as it is, of whole numbers cut towards zero."""
    left, right = as_expr(a), as_expr(b)
    whole = left.dtype.is_integer and right.dtype.is_integer
    return binary("div", left, right) if whole else left / right
