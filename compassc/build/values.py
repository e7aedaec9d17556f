"""Values of a kernel in the making: IR expressions with the range of their integers and their text in the DSL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from compassc.ir import exprs as E
from compassc.ir.dtypes import INT32, DataType, pointer_type
from compassc.ir.visit import walk_exprs
from compassc.language.parser import values as language
from compassc.language.parser.values import ZERO, PointerValue, element_index

if TYPE_CHECKING:
    from compassc.dsl import script

    Address = script.Pointer
    Expression = script.Value
else:
    Expression, Address = language.Value, PointerValue
"""What operators and `S` give, as checkers of types know it. In a kernel in the making each is a `Value` or `Pointer`."""


EFFECT = E.Var("effect", INT32)
"""Stands among the variables of an expression whose computation changes something."""
Range = tuple[int, int]


class Value(Expression):
    """A scalar, vector or mask of the kernel. Python's operators and `S` make others of it, by the language's typing
    rules.

    `source`: the expression as a kernel would write it. `low`, `high`: what integers in it can be at least and at most; 0
    for floats and masks. `whole`: whether the text needs no brackets among operators. `variables`: those in it. The IR is
    made when somebody asks for it, which nobody does of a kernel that was compiled before.
    """

    __slots__ = ("_expr", "_range", "dtype", "source", "variables", "whole")
    dtype: DataType

    def __init__(self, expr: E.Expr, source: str, low: int = 0, high: int = 0, whole: bool = True) -> None:
        self._expr: E.Expr | Callable[[], Any] = expr
        self.dtype, self.source, self.whole = expr.data_type, source, whole
        self._range: Range | Callable[[Value], Range] = (low, high)
        self.variables: tuple[E.Var, ...] = (
            (expr,) if type(expr) is E.Var else tuple(x for x in walk_exprs(expr) if type(x) is E.Var)
        )

    @classmethod
    def lazy(
        cls,
        dtype: DataType,
        expr: E.Expr | Callable[[], object],
        source: str,
        variables: Sequence[E.Var],
        found: Range | Callable[[Value], Range],
        whole: bool = True,
    ) -> Value:
        """A value whose IR and range are found when somebody asks for them; the IR is given, or a value that has it."""
        made = object.__new__(cls)
        made._expr, made.dtype, made.source, made.whole = expr, dtype, source, whole
        made._range, made.variables = found, tuple(variables)
        return made

    @property
    def expr(self) -> E.Expr:
        found = self._expr
        if not isinstance(found, E.Expr):
            given = found()
            self._expr = found = given if isinstance(given, E.Expr) else given.expr
        return found

    @property
    def range(self) -> Range:
        """The smallest and the largest that integers in it can be."""
        found = self._range
        if not isinstance(found, tuple):
            self._range = found = found(self)
        return found

    @property
    def low(self) -> int:
        return self.range[0]

    @property
    def high(self) -> int:
        return self.range[1]

    @property
    def name(self) -> str:
        """Its text; of a variable that is the name."""
        return self.source if self.whole else f"({self.source})"

    @property
    def kind(self) -> str:
        """The data type of its elements."""
        return str(self.dtype.element_of)

    @property
    def magnitude(self) -> int:
        return max(abs(self.low), abs(self.high))

    def within(self, low: int | None = None, high: int | None = None) -> Value:
        """The same value, of which more is known."""
        if low is None and high is None:
            return self
        found = (self.low if low is None else low, self.high if high is None else high)
        return Value.lazy(self.dtype, lambda: self.expr, self.source, self.variables, found, self.whole)

    def forget(self) -> None:
        """From here on it may be all that its type holds."""
        self._range = whole_range(self.dtype)

    def named(self, source: str) -> Value:
        """The same value under another text, which is a call."""
        return Value.lazy(self.dtype, lambda: self.expr, source, self.variables, lambda _: self.range)

    def __getitem__(self, index: object) -> Value:
        e = E.GetElement(self.expr, element_index(self.dtype, index))
        variables = (*self.variables, *(index.variables if isinstance(index, Value) else ()))
        return Value.lazy(e.data_type, e, f"{self}[{index}]", variables, lambda _: self.range)

    def __str__(self) -> str:
        return self.name

    def __format__(self, spec: str) -> str:
        return self.name


class Pointer(Address):
    """An address in the kernel; `p + i` and `p[i]` as in the language."""

    __slots__ = ("_offset", "source", "variables", "whole")

    def __init__(self, found: PointerValue, source: str, whole: bool = True) -> None:
        self.elem, self.base, self.blocked = found.elem, found.base, found.blocked
        self._offset: E.Expr | Callable[[], E.Expr] = found.offset
        self.source, self.whole = source, whole
        self.variables: tuple[E.Var, ...] = tuple(x for x in walk_exprs(found.expr) if type(x) is E.Var)

    def moved_by(self, offset: Callable[[], E.Expr], source: str, variables: Sequence[E.Var]) -> Pointer:
        """An address whose distance from the base is found when somebody asks for it."""
        made = object.__new__(Pointer)
        made.elem, made.base, made.blocked = self.elem, self.base, self.blocked
        made._offset, made.source, made.whole, made.variables = offset, source, False, tuple(variables)
        return made

    @property
    def offset(self) -> E.Expr:
        found = self._offset
        if not isinstance(found, E.Expr):
            self._offset = found = found()
        return found

    @property
    def name(self) -> str:
        return self.source if self.whole else f"({self.source})"

    def as_ptr(self, dtype: object) -> Pointer:
        """The same address as a pointer to another type."""
        found = PointerValue.as_ptr(self, dtype)  # type: ignore[arg-type]
        return Pointer(found, f'{self}.as_ptr("{dtype}")')

    def __str__(self) -> str:
        return self.name

    def __format__(self, spec: str) -> str:
        return self.name


@cache
def whole_range(t: DataType) -> Range:
    """All that a type holds; (0, 0) for floats and masks."""
    if not t.is_integer or t.is_bool:
        return 0, 0
    low, high = t.range()
    return int(low), int(high)


def variable(name: str, dtype: DataType, low: int | None = None, high: int | None = None) -> Value:
    """A variable of the kernel that is defined elsewhere; of integers, without a range, all that the type holds."""
    least, most = whole_range(dtype)
    return variable_within(E.Var(name, dtype), (least if low is None else low, most if high is None else high))


def variable_within(var: E.Var, found: Range | Callable[[Value], Range]) -> Value:
    """A variable as a value, with a range that may be found when somebody asks for it."""
    return Value.lazy(var.data_type, var, var.name, (var,), found)


def pointer(name: str, elem: DataType, scope: str) -> Pointer:
    """A pointer variable of the kernel that is defined elsewhere."""
    return pointer_of(E.Var(name, pointer_type(elem, scope)))


def pointer_of(var: E.Var) -> Pointer:
    """A pointer variable as a value."""
    made = object.__new__(Pointer)
    made.elem, made.base, made.blocked, made._offset = var.pointer_type.elem, var, "", ZERO
    made.source, made.whole, made.variables = var.name, True, (var,)
    return made


def recorded(expression: Expression) -> Value:
    """An expression with what is known of it."""
    assert isinstance(expression, Value), "made by the parser, not by a kernel in the making"
    return expression
