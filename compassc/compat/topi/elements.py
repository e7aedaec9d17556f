"""`tvm.topi`: operators of elements, which take tensors, expressions and numbers: of expressions alone they make expressions."""

from __future__ import annotations

from collections.abc import Callable

from ... import te
from ...ir.exprs import Expr
from ...ir.operators import as_expr
from ...operators import broadcast, elementwise
from ...operators.declare import number
from ...relay.ops.broadcast import remainder_of_reals
from ...te.tensor import Tensor

Operand = Tensor | Expr | int | float
Binary = Callable[[Operand, Operand], Tensor | Expr]


def _quotient(a: Expr, b: Expr) -> Expr:
    return te.floor(a / b) if a.dtype.is_floating else te.floordiv(a, b)


def _left(rounding: str) -> Callable[[Expr, Expr], Expr]:
    whole = {"floor": te.floormod, "trunc": te.truncmod}[rounding]
    return lambda a, b: remainder_of_reals(a, b, rounding) if a.dtype.is_floating else whole(a, b)


FUNCTIONS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b, "divide": te.div,
    "floor_divide": _quotient, "floor_mod": _left("floor"), "mod": _left("trunc"), "maximum": te.max, "minimum": te.min, "power": te.power,
    "left_shift": broadcast.shifted(left=True), "right_shift": broadcast.shifted(left=False), "greater": lambda a, b: a > b, "less": lambda a, b: a < b,
    "equal": lambda a, b: a == b, "not_equal": lambda a, b: a != b, "greater_equal": lambda a, b: a >= b, "less_equal": lambda a, b: a <= b,
    "logical_and": te.all, "logical_or": te.any, "logical_xor": lambda a, b: a ^ b, "bitwise_and": lambda a, b: a & b,
    "bitwise_or": lambda a, b: a | b, "bitwise_xor": lambda a, b: a ^ b,
}  # fmt: skip
"""What operators of two operands make of elements."""


def _binary(name: str, function: Callable[[Expr, Expr], Expr]) -> Binary:
    def apply(lhs: Operand, rhs: Operand) -> Tensor | Expr:
        if isinstance(lhs, Tensor) or isinstance(rhs, Tensor):
            made: Tensor = broadcast.joined(function, name, lhs, rhs)
            return made
        return function(as_expr(lhs), as_expr(rhs))

    apply.__name__ = name
    apply.__doc__ = f"`{name}` of elements, stretched to each other's shapes; of two expressions an expression."
    return apply


OPERATORS: dict[str, Binary] = {name: _binary(name, function) for name, function in FUNCTIONS.items()}


def clip(x: Tensor, a_min: Operand, a_max: Operand) -> Tensor:
    """x, not below `a_min` and not above `a_max`, which may be expressions."""
    low, high = (te.cast(v, x.dtype) if isinstance(v, Expr) else number(v, x.dtype) for v in (a_min, a_max))
    made: Tensor = te.compute(x.shape, lambda *i: te.max(te.min(x[i], high), low), name="T_clip", tag="elemwise")
    return made


def cast(x: Operand, dtype: str) -> Tensor | Expr:
    """x in another type."""
    return elementwise.cast(x, dtype) if isinstance(x, Tensor) else te.cast(x, dtype)


def __getattr__(name: str) -> Binary:
    if name in OPERATORS:
        return OPERATORS[name]
    raise AttributeError(f"module {__name__} has no attribute {name}")


__all__ = ["cast", "clip", *FUNCTIONS]  # noqa: PLE0604  # names of functions
