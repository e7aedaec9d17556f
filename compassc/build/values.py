"""Values of a kernel in the making: IR expressions with the range of their integers and their text in the DSL."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from compassc.ir import exprs as E
from compassc.ir.dtypes import DataType, pointer_type
from compassc.language.parser import values as language
from compassc.language.parser.values import ZERO, PointerValue, element_index

if TYPE_CHECKING:
    from compassc.dsl.script import Pointer as Address
    from compassc.dsl.script import Value as Expression
else:
    Expression, Address = language.Value, PointerValue
"""What operators and `S` give, as checkers of types know it. In a kernel in the making each is a `Value` or `Pointer`."""


class Value(Expression):
    """A scalar, vector or mask of the kernel. Python's operators and `S` make others of it, by the language's typing
    rules.

    `source`: the expression as a kernel would write it. `low`, `high`: what integers in it can be at least and at most; 0
    for floats and masks. `whole`: whether the text needs no brackets among operators.
    """

    __slots__ = ("_range", "source", "whole")
    if TYPE_CHECKING:
        expr: E.Expr

    def __init__(self, expr: E.Expr, source: str, low: int = 0, high: int = 0, whole: bool = True) -> None:
        self.expr, self.source, self.whole = expr, source, whole
        self._range: tuple[int, int] | Callable[[], tuple[int, int]] = (low, high)

    @classmethod
    def ranging(cls, expr: E.Expr, source: str, found: Callable[[], tuple[int, int]], whole: bool = True) -> Value:
        """A value whose range is found when somebody asks for it."""
        made = cls(expr, source, whole=whole)
        made._range = found
        return made

    @property
    def range(self) -> tuple[int, int]:
        """The smallest and the largest that integers in it can be."""
        found = self._range
        if not isinstance(found, tuple):
            self._range = found = found()
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
        return Value(
            self.expr, self.source, self.low if low is None else low, self.high if high is None else high, self.whole
        )

    def __getitem__(self, index: Any) -> Value:
        return Value.ranging(
            E.GetElement(self.expr, element_index(self.dtype, index)), f"{self}[{index}]", lambda: self.range
        )

    def __str__(self) -> str:
        return self.name

    def __format__(self, spec: str) -> str:
        return self.name


class Pointer(Address):
    """An address in the kernel; `p + i` and `p[i]` as in the language."""

    __slots__ = ("source", "whole")
    if TYPE_CHECKING:
        elem: DataType

    def __init__(self, found: PointerValue, source: str, whole: bool = True) -> None:
        PointerValue.__init__(self, found.elem, found.base, found.offset, found.blocked)  # type: ignore[arg-type]
        self.source, self.whole = source, whole

    @property
    def name(self) -> str:
        return self.source if self.whole else f"({self.source})"

    def as_ptr(self, dtype: Any) -> Pointer:
        """The same address as a pointer to another type."""
        found = PointerValue.as_ptr(self, dtype)  # type: ignore[arg-type]
        return Pointer(found, f'{self}.as_ptr("{dtype}")')

    def __str__(self) -> str:
        return self.name

    def __format__(self, spec: str) -> str:
        return self.name


def variable(name: str, dtype: DataType, low: int | None = None, high: int | None = None) -> Value:
    """A variable of the kernel that is defined elsewhere; of integers, without a range, all that the type holds."""
    least, most = dtype.range() if dtype.is_integer and not dtype.is_bool else (0, 0)
    return Value(E.Var(name, dtype), name, int(least) if low is None else low, int(most) if high is None else high)


def pointer(name: str, elem: DataType, scope: str) -> Pointer:
    """A pointer variable of the kernel that is defined elsewhere."""
    return pointer_of(E.Var(name, pointer_type(elem, scope)))


def pointer_of(var: E.Var) -> Pointer:
    """A pointer variable as a value."""
    return Pointer(PointerValue(var.pointer_type.elem, var, ZERO), var.name)


def recorded(expression: Expression) -> Value:
    """An expression with what is known of it."""
    assert isinstance(expression, Value), "made by the parser, not by a kernel in the making"
    return expression
