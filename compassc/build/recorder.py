"""Expressions of a kernel in the making: what Python's operators and calls of `S` give outside of the parser.

A `Recorder` takes the parser's place (`language.dispatch.Parser`): the same functions type operands and make IR, so that
a kernel means the same whether it is written as a file or made by Python. Beside its IR every value has its text.

The parser is loaded at the first expression: whoever only asks which layers there are needs none of it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, NoReturn, TypeVar, cast

import numpy as np

from compassc.build import ranges
from compassc.build.values import Pointer, Value
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import VOID, DataType
from compassc.language.dispatch import LOCAL, parsing
from compassc.language.parser.values import PointerValue
from compassc.language.parser.values import Value as Plain
from compassc.ops.core import Op

_F = TypeVar("_F", bound=Callable[..., Any])


class Recorder:
    """Makes values. Statements need a `Builder`, which is one, too."""

    functions: ClassVar[tuple[Any, ...]] = ()
    _adapt = True
    """Whether literals take the types of the values beside them, as in a kernel's own text."""

    @contextmanager
    def active(self) -> Iterator[None]:
        """Within it, operators and `S` make values of this kernel."""
        with parsing(self):
            yield

    def operation(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        from compassc.language.parser.calls import build_op

        args = tuple([plain(x) for x in args])
        kwargs = {k: plain(v) for k, v in kwargs.items()} if kwargs else kwargs
        found = build_op(self, op, args, kwargs)  # type: ignore[arg-type]
        text = call_text(f"S.{op.name}", args, kwargs)
        if isinstance(found, S.Stmt):
            return self.statement(found, text)
        if isinstance(found, Plain) and found.expr.dtype is VOID:
            return self.statement(S.Eval(found.expr), text)

        def range_of(e: E.Expr) -> tuple[int, int]:
            return ranges.of_operation(op.name, e, [*args, *(v for k, v in kwargs.items() if k in op.operands)])

        return _recorded(found, text, range_of)

    def binary(self, symbol: str, a: Any, b: Any) -> Any:
        from compassc.language.parser.operators import binary

        a, b = plain(a), plain(b)
        found = binary(symbol, a, b, adapt=self._adapt)
        if isinstance(a, Value) and getattr(found, "expr", None) is a.expr:  # a shift by nothing
            return a
        text = f"{shown(a)} {symbol} {shown(b)}"
        return _recorded(found, text, lambda e: ranges.of_operator(e, (a, b)), whole=False)

    def unary(self, symbol: str, a: Any) -> Any:
        from compassc.language.parser.operators import unary

        found = unary(symbol, a)
        return _recorded(found, f"{symbol}{shown(a)}", lambda e: ranges.of_operator(e, (a, -1)), whole=False)

    def load(self, target: Any, index: Any) -> Any:
        from compassc.language.parser.access import load

        return _recorded(load(target, index), f"{shown(target)}[{shown(index)}]", lambda e: ranges.of_type(e.data_type))

    def formula(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The value of a formula, whose text is the call."""
        outer, self._adapt = self._adapt, False  # as where the parser meets a function of Python
        try:
            found = function(*args, **kwargs)
        finally:
            self._adapt = outer
        if not isinstance(found, Value) or any(found is x for x in args):
            return found
        return Value.ranging(found.expr, call_text(function.__name__, args, kwargs), lambda: found.range)

    def statement(self, made: S.Stmt, text: str) -> None:
        """A call that has an effect."""
        raise TypeError(f"{text} is a statement, which needs a Builder")

    def store(self, target: Any, index: Any, value: Any) -> None:
        raise TypeError(f"{target}[{index}] = {value} is a statement, which needs a Builder")

    def macro(self, macro: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        raise TypeError(f"the macro {macro.__name__} is statements, which need a Builder")

    def function(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        raise TypeError(f"{func.__name__}: a kernel in the making calls no sub-functions")

    def text(self, value: Any) -> str:
        return str(value) if isinstance(value, (Value, Pointer)) else _refused(value)

    def take_address(self, variable: E.Var) -> None:
        raise TypeError(f"{variable.name}.addr: a kernel in the making takes no address of a variable")

    @property
    def machine(self) -> Any:
        raise TypeError("a kernel in the making has no tiles")


def formula(function: _F) -> _F:
    """Marks a function that makes an expression of its arguments. The text of a kernel in the making has the call, and
    whoever reads it as a kernel file calls the function again."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        recorder = LOCAL.parser
        if isinstance(recorder, Recorder):
            return recorder.formula(function, args, kwargs)
        return function(*args, **kwargs)

    return cast(_F, call)


def _refused(value: Any) -> NoReturn:
    from compassc.language.parser.texts import no_text

    raise no_text(value)


def _recorded(found: Any, text: str, range_of: Callable[[E.Expr], tuple[int, int]], whole: bool = True) -> Any:
    """What the parser's functions made, with its text and range."""
    if isinstance(found, Plain):
        e = found.expr
        return Value.ranging(e, text, lambda: range_of(e), whole)
    if isinstance(found, PointerValue):
        return Pointer(found, text, whole)
    if isinstance(found, tuple):
        return tuple(_recorded(item, f"{text}[{i}]", range_of) for i, item in enumerate(found))
    return found


_PLAIN = frozenset((Value, Pointer, int, float, bool, str, type(None)))


def plain(x: Any) -> Any:
    """An argument with the numbers of NumPy in it as those of Python."""
    if type(x) in _PLAIN:
        return x
    if isinstance(x, np.generic):
        return x.item()
    return type(x)(map(plain, x)) if type(x) in (tuple, list) else x


def shown(x: Any) -> str:
    """An operand as a kernel's text has it."""
    if isinstance(x, (Value, Pointer)):
        return x.name
    if isinstance(x, (DataType, str)):
        return f'"{x}"'
    if isinstance(x, tuple):
        return f"({', '.join(map(argument, x))}{',' * (len(x) == 1)})"
    if isinstance(x, slice):
        return f"{argument(x.start)}:{argument(x.stop)}"
    if isinstance(x, (int, float)) and not isinstance(x, bool):
        return repr(x) if x >= 0 else f"({x!r})"
    return repr(x)


def argument(x: Any) -> str:
    """An argument as a kernel's text has it: nothing follows that would need brackets."""
    if isinstance(x, (Value, Pointer)):
        return x.source
    return repr(x) if isinstance(x, (int, float)) else shown(x)


def call_text(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    given = [argument(x) for x in args]
    if kwargs:
        given += [f"{k}={argument(v)}" for k, v in kwargs.items()]
    return f"{name}({', '.join(given)})"
