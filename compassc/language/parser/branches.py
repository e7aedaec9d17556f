"""Operands that may not be computed: of `and`, `or`, chained comparisons and conditional expressions.

An operand is an expression, which C computes where Python does. Where it needs statements of its own, as a list of values
or a function of Python does, these run under an `if`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Protocol, TypeVar

from compass_core.namedtuple import NamedTuple

from ...ir import exprs as E
from ...ir import stmts as S
from ...ir.dtypes import BOOL
from ...ops.core import convert
from ..specs import AllocSpec
from .helpers import Helpers
from .operators import logical, ternary
from .values import Value, is_runtime, plain

_T = TypeVar("_T")


class Statements(Protocol):
    """The statements of a function while it is parsed."""

    helpers: Helpers

    def keep(self, value: object, name: str = "item") -> Any:
        """A value that later statements do not change."""

    def emit(self, make: Callable[..., S.Stmt], *args: object) -> None:
        """Append a statement."""

    def append(self, statement: S.Stmt) -> None:
        """Append a statement made elsewhere."""

    def unnamed(self, spec: AllocSpec) -> object:
        """Storage that an expression allocates and uses at once."""

    def apart(self, make: Callable[[], _T]) -> tuple[_T, S.Body]:
        """What `make` gives, and the statements that it makes, which are not appended."""


class Operand(NamedTuple):
    """The value of an operand, and the statements that compute it."""

    value: Any
    statements: S.Body = ()


def connected(to: Statements, symbol: str, operands: Sequence[Operand]) -> object:
    """`a and b and ...` or `a or b or ...`; the first operand has no statements."""
    if not any(x.statements for x in operands):
        return reduce(lambda a, b: logical(symbol, a, b), [x.value for x in operands])
    rest = operands[-1]
    for operand in reversed(operands[:-1]):
        if rest.statements:
            value, made = to.apart(lambda: _guarded(to, symbol, operand.value, rest))  # noqa: B023  called here
            rest = Operand(value, (*operand.statements, *made))
        else:
            rest = Operand(logical(symbol, operand.value, rest.value), operand.statements)
    _append(to, rest.statements)
    return rest.value


def _guarded(to: Statements, symbol: str, a: Any, b: Operand) -> object:
    """`a and b`, `a or b`, where b has statements."""
    a = plain(a)
    if not is_runtime(a):
        if bool(a) == (symbol == "and"):
            _append(to, b.statements)
            return b.value
        return a
    whole = logical(symbol, a, b.value)
    assert isinstance(whole.expr, E.Binary)
    found = E.Var("item", a.dtype)
    to.emit(S.Let, found, a.expr)
    end = to.apart(lambda: to.emit(S.Assign, found, whole.expr.b))[1]
    to.emit(S.IfThenElse, found if symbol == "and" else E.Unary("not", found), (*b.statements, *end), ())
    return Value(found)


def chosen(to: Statements, condition: Value, a: Operand, b: Operand) -> object:
    """`a if condition else b`, whose condition is known when the kernel runs; both are computed if it is a mask."""
    if not a.statements and not b.statements:
        return ternary(condition, a.value, b.value)
    if a.value is b.value is None and condition.dtype is BOOL:
        to.emit(S.IfThenElse, condition.expr, a.statements, b.statements)
        return None
    whole = ternary(condition, a.value, b.value)
    if type(whole.expr) is not E.Select:
        _append(to, (*a.statements, *b.statements))
        return whole
    found = E.Var("item", whole.dtype)
    to.emit(S.Let, found, convert(0, whole.dtype))
    sides = []
    for x, side in zip((a, b), (whole.expr.true_value, whole.expr.false_value)):
        sides.append((*x.statements, *to.apart(lambda: to.emit(S.Assign, found, side))[1]))  # noqa: B023  called here
    to.emit(S.IfThenElse, condition.expr, *sides)
    return Value(found)


def _append(to: Statements, statements: S.Body) -> None:
    for s in statements:
        to.append(s)
