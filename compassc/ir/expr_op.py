"""Python's operators of expressions: what they make is in `operators`, which is loaded when the first one is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .errors import ExpressionError

if TYPE_CHECKING:
    from .exprs import Expr


def _operator(name: str) -> Callable[..., Expr]:
    from . import operators

    function: Callable[..., Expr] = getattr(operators, name)
    return function


def _binary(op: str, a: object, b: object) -> Expr:
    return _operator("binary")(op, a, b)


class ExprOp:
    """Python's operators, of expressions and of what stands for one: axes, elements of tensors."""

    __slots__ = ()

    def as_expr(self) -> Expr:
        """The operand as an expression."""
        raise NotImplementedError

    def __add__(self, other: object) -> Expr:
        return _binary("add", self, other)

    def __radd__(self, other: object) -> Expr:
        return _binary("add", other, self)

    def __sub__(self, other: object) -> Expr:
        return _binary("sub", self, other)

    def __rsub__(self, other: object) -> Expr:
        return _binary("sub", other, self)

    def __mul__(self, other: object) -> Expr:
        return _binary("mul", self, other)

    def __rmul__(self, other: object) -> Expr:
        return _binary("mul", other, self)

    def __truediv__(self, other: object) -> Expr:
        return _operator("divide")(self, other)

    def __rtruediv__(self, other: object) -> Expr:
        return _operator("divide")(other, self)

    def __floordiv__(self, other: object) -> Expr:
        return _binary("floordiv", self, other)

    def __rfloordiv__(self, other: object) -> Expr:
        return _binary("floordiv", other, self)

    def __mod__(self, other: object) -> Expr:
        return _binary("floormod", self, other)

    def __rmod__(self, other: object) -> Expr:
        return _binary("floormod", other, self)

    def __and__(self, other: object) -> Expr:
        return _binary("bitand", self, other)

    def __rand__(self, other: object) -> Expr:
        return _binary("bitand", other, self)

    def __or__(self, other: object) -> Expr:
        return _binary("bitor", self, other)

    def __ror__(self, other: object) -> Expr:
        return _binary("bitor", other, self)

    def __xor__(self, other: object) -> Expr:
        return _binary("bitxor", self, other)

    def __rxor__(self, other: object) -> Expr:
        return _binary("bitxor", other, self)

    def __lshift__(self, other: object) -> Expr:
        return _binary("shl", self, other)

    def __rlshift__(self, other: object) -> Expr:
        return _binary("shl", other, self)

    def __rshift__(self, other: object) -> Expr:
        return _binary("shr", self, other)

    def __rrshift__(self, other: object) -> Expr:
        return _binary("shr", other, self)

    def __neg__(self) -> Expr:
        return _operator("negative")(self)

    def __invert__(self) -> Expr:
        return _operator("inverted")(self)

    def __lt__(self, other: object) -> Expr:
        return _binary("lt", self, other)

    def __le__(self, other: object) -> Expr:
        return _binary("le", self, other)

    def __gt__(self, other: object) -> Expr:
        return _binary("gt", self, other)

    def __ge__(self, other: object) -> Expr:
        return _binary("ge", self, other)

    def __eq__(self, other: object) -> Any:
        return Equality("eq", self, other)

    def __ne__(self, other: object) -> Any:
        return Equality("ne", self, other)

    def __hash__(self) -> int:
        return hash(self.as_expr())

    def __bool__(self) -> bool:
        raise ExpressionError(
            "an expression has no truth value before it is run",
            "use te.all, te.any and te.if_then_else in place of `and`, `or` and `if`",
        )

    def astype(self, dtype: object) -> Expr:
        """The value converted to another type, as C converts it."""
        return _operator("cast")(self, dtype)

    def equal(self, other: object) -> Expr:
        """Whether two values are equal, as an expression."""
        return _binary("eq", self, other)

    def same_as(self, other: object) -> bool:
        """Whether both are the same expression (not: an equal one)."""
        return isinstance(other, ExprOp) and self.as_expr() is other.as_expr()


class Equality(ExprOp):
    """`a == b` before it is used: its truth value tells whether both are the same, as an expression it compares."""

    __slots__ = ("a", "b", "op")

    def __init__(self, op: str, a: ExprOp, b: object) -> None:
        self.op, self.a, self.b = op, a, b

    def as_expr(self) -> Expr:
        return _binary(self.op, self.a, self.b)

    asobject = as_expr

    def __bool__(self) -> bool:
        if isinstance(self.b, ExprOp):
            same = self.a.as_expr() is self.b.as_expr()
        else:  # a number is the one that an immediate holds
            held = getattr(self.a.as_expr(), "value", None)
            same = isinstance(held, (int, float)) and held == self.b
        return same == (self.op == "eq")

    def __repr__(self) -> str:
        return repr(self.as_expr())
