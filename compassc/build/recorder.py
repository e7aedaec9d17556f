"""Expressions of a kernel in the making: what Python's operators and calls of `S` give outside of the parser.

A `Recorder` takes the parser's place (`language.dispatch.Parser`): the same functions type operands and make IR, so that
a kernel means the same whether it is written as a file or made by Python. Beside its IR every value has its text.

The parser is loaded at the first expression: whoever only asks which layers there are needs none of it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar, cast

import numpy as np

from compass_core.bounded import Bounded
from compassc.build import ranges
from compassc.build.values import EFFECT, Expression, Pointer, Range, Value, recorded, whole_range
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import BOOL, VOID, DataType
from compassc.language.dispatch import LOCAL, parsing
from compassc.language.parser.texts import no_text
from compassc.language.parser.values import PointerValue
from compassc.language.parser.values import Value as Plain
from compassc.ops.core import Op

if TYPE_CHECKING:
    from compassc.language.functions import Macro, PyPrimFunc

_F = TypeVar("_F", bound=Callable[..., object])
_T = TypeVar("_T")


class Recorder:
    """Makes values. Statements need a `Builder`, which is one, too."""

    functions: ClassVar[tuple[object, ...]] = ()
    _adapt = True
    """Whether literals take the types of the values beside them, as in a kernel's own text."""

    def __init__(self) -> None:
        self.called: dict[str, str] = {}
        """Functions and macros that the text calls: the module of each."""

    @contextmanager
    def active(self) -> Iterator[None]:
        """Within it, operators and `S` make values of this kernel."""
        with parsing(self):
            yield

    def operation(self, op: Op, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        args = tuple([x if type(x) in _PLAIN else plain(x) for x in args])
        variables: list[E.Var] = [] if op.effect in ("pure", "read") else [EFFECT]
        key: tuple[object, ...] = (op.name, types_of(args, variables))
        if kwargs:
            kwargs = {k: plain(v) for k, v in kwargs.items()}
            key = (*key, tuple(kwargs), types_of(kwargs.values(), variables))
        text, range_of = call_text(f"S.{op.name}", args, kwargs), partial(_range_of_operation, op, args, kwargs)
        return self._result(key, partial(_operation, op, args, kwargs), text, variables, range_of)

    def _result(
        self,
        key: tuple[object, ...],
        made: Callable[[], Any],
        text: str,
        variables: Sequence[E.Var],
        range_of: Callable[[Value], Range],
    ) -> Any:
        """What the parser's functions make of operands of these types; the first time that is made, and checked, at once."""
        form = _FORMS.get(key)
        if form is None:
            made = once(made)
            form = _form(made())
            if form is OTHER:
                return Pointer(made(), text) if isinstance(made(), PointerValue) else made()
            _FORMS[key] = form
        if form is VOID:
            return self.statement(text, lambda: _statement(made()), variables)
        if type(form) is tuple:
            parts = once(made)
            return tuple(
                Value.lazy(t, lambda i=i: parts()[i].expr, f"{text}[{i}]", variables, range_of)  # type: ignore[misc]
                for i, t in enumerate(form)
            )
        return Value.lazy(form, made, text, variables, range_of)

    def binary(self, symbol: str, a: Any, b: Any) -> Any:
        a, b = a if type(a) in _PLAIN else plain(a), b if type(b) in _PLAIN else plain(b)
        adapt = self._adapt
        variables: list[E.Var] = []
        key = (symbol, adapt, *types_of((a, b), variables))
        form: Any = _FORMS.get(key)
        if form is None:
            found = _binary(symbol, a, b, adapt)
            if isinstance(a, Value) and getattr(found, "expr", None) is a.expr:
                form = SAME
            else:
                form = OTHER if isinstance(found, PointerValue) else found.dtype
            _FORMS[key] = form
        if form is SAME:  # a shift by nothing
            return a
        text = f"{shown(a)} {symbol} {shown(b)}"
        if form is OTHER:
            base = a if isinstance(a, Pointer) else b
            return base.moved_by(lambda: _binary(symbol, a, b, adapt).offset, text, variables)

        range_of = partial(_range_of_operator, (a, b))
        return Value.lazy(form, partial(_binary, symbol, a, b, adapt), text, variables, range_of, False)

    def unary(self, symbol: str, a: Any) -> Value:
        from compassc.language.parser.operators import unary

        e = unary(symbol, a).expr
        text = f"{symbol}{shown(a)}"
        return Value.lazy(e.data_type, e, text, a.variables, lambda _: ranges.of_operator(e, (a, -1)), False)

    def load(self, target: object, index: object) -> Any:
        variables: list[E.Var] = []
        key = ("[]", *types_of((target, index), variables))

        def made() -> Any:
            from compassc.language.parser.access import load

            return load(target, index)

        return self._result(
            key, made, f"{shown(target)}[{argument(index)}]", variables, lambda value: whole_range(value.dtype)
        )

    def formula(self, function: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        """The value of a formula, whose text is the call."""
        outer, self._adapt = self._adapt, False  # as where the parser meets a function of Python
        try:
            found = function(*args, **kwargs)
        finally:
            self._adapt = outer
        if not isinstance(found, Value) or any(found is x for x in args):
            return found
        if outer:
            self.called[function.__name__] = function.__module__
        return found.named(call_text(function.__name__, args, kwargs))

    def statement(self, text: str, made: Callable[[], S.Stmt], variables: Sequence[E.Var]) -> None:
        """A call that has an effect."""
        raise TypeError(f"{text} is a statement, which needs a Builder")

    def store(self, target: object, index: object, value: object) -> None:
        raise TypeError(f"{target}[{index}] = {value} is a statement, which needs a Builder")

    def macro(self, macro: Macro, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        raise TypeError(f"the macro {macro.__name__} is statements, which need a Builder")

    def function(self, func: PyPrimFunc, args: tuple[object, ...], kwargs: dict[str, object]) -> NoReturn:
        raise TypeError(f"{func.__name__}: a kernel in the making calls no sub-functions")

    def text(self, value: object) -> str:
        return str(value) if isinstance(value, (Value, Pointer)) else _refused(value)

    def take_address(self, variable: E.Var) -> None:
        raise TypeError(f"{variable.name}.addr: a kernel in the making takes no address of a variable")

    @property
    def machine(self) -> NoReturn:
        raise TypeError("a kernel in the making has no tiles")


def either(first: Expression, *others: Expression) -> Expression:
    """`a or b` of conditions."""
    return functools.reduce(lambda a, b: _logical("or", a, b), others, first)


def both(first: Expression, *others: Expression) -> Expression:
    """`a and b` of conditions."""
    return functools.reduce(lambda a, b: _logical("and", a, b), others, first)


def _logical(symbol: str, a: Expression, b: Expression) -> Value:
    from compassc.language.parser.operators import logical

    variables = (*recorded(a).variables, *recorded(b).variables)
    text = f"{shown(a)} {symbol} {shown(b)}"
    return Value.lazy(BOOL, lambda: logical(symbol, a, b).expr, text, variables, (0, 0), False)


def formula(function: _F) -> _F:
    """Marks a function that makes an expression of its arguments. The text of a kernel in the making has the call, and
    whoever reads it as a kernel file calls the function again."""

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> object:
        recorder = LOCAL.parser
        if isinstance(recorder, Recorder):
            return recorder.formula(function, args, kwargs)
        return function(*args, **kwargs)

    return cast(_F, call)


def _refused(value: object) -> NoReturn:
    raise no_text(value)


_NO_MODULE: Any = None
"""What is made here calls no sub-functions."""
_FORMS: Bounded[tuple[object, ...], Any] = Bounded(1 << 14)
"""What operations and operators give, by the types of their operands (literals by themselves): a type, a tuple of types, VOID
for a statement."""
SAME, OTHER = object(), object()
"""Forms: the first operand; what is no value."""


def _form(found: object) -> Any:
    """The form of what the parser's functions made."""
    if isinstance(found, S.Stmt):
        return VOID
    if isinstance(found, Plain):
        return found.dtype
    return tuple(x.dtype for x in found) if isinstance(found, tuple) else OTHER


def _statement(found: Any) -> S.Stmt:
    return found if isinstance(found, S.Stmt) else S.Evaluate(found.expr)


def _operation(op: Op, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
    from compassc.language.parser.calls import build_op

    return build_op(_NO_MODULE, op, args, kwargs)


def _range_of_operation(op: Op, args: tuple[object, ...], kwargs: dict[str, object], value: Value) -> Range:
    operands = [*args, *(v for k, v in kwargs.items() if k in op.operands)]
    return ranges.of_operation(op.name, value.dtype, operands)


def _range_of_operator(operands: tuple[object, object], value: Value) -> Range:
    return ranges.of_operator(value.expr, operands)


def _binary(symbol: str, a: object, b: object, adapt: bool) -> Any:
    from compassc.language.parser.operators import binary

    return binary(symbol, a, b, adapt=adapt)


def once(make: Callable[[], _T]) -> Callable[[], _T]:
    """The same function, which does its work once."""
    held: list[_T] = []

    def made() -> _T:
        if not held:
            held.append(make())
        return held[0]

    return made


def types_of(operands: Iterable[object], variables: list[E.Var]) -> tuple[object, ...]:
    """What counts of operands for the type of what is made of them. Their variables are added to others."""
    found: list[object] = []
    for x in operands:
        if type(x) is Value:
            found.append(x.dtype)
            variables += x.variables
        elif type(x) is Pointer:
            found.append((x.elem, x.scope, x.blocked))
            variables += x.variables
        elif type(x) is tuple or type(x) is list:
            found.append((type(x), types_of(x, variables)))
        elif type(x) is slice:
            found.append((type(x), types_of((x.start, x.stop, x.step), variables)))
        else:
            found.append((type(x), x))
    return tuple(found)


_PLAIN = frozenset((Value, Pointer, int, float, bool, str, type(None)))


def plain(x: object) -> object:
    """An argument with the numbers of NumPy in it as those of Python."""
    if type(x) in _PLAIN:
        return x
    if isinstance(x, np.generic):
        return x.item()
    return type(x)(map(plain, x)) if type(x) is tuple or type(x) is list else x


def shown(x: object) -> str:
    """An operand as a kernel's text has it."""
    if type(x) is Value or type(x) is Pointer:
        return x.source if x.whole else f"({x.source})"
    if isinstance(x, (DataType, str)):
        return f'"{x}"'
    if isinstance(x, tuple):
        return f"({', '.join(map(argument, x))}{',' * (len(x) == 1)})"
    if isinstance(x, slice):
        return f"{argument(x.start)}:{argument(x.stop)}"
    if isinstance(x, (int, float)) and not isinstance(x, bool):
        return repr(x) if x >= 0 else f"({x!r})"
    return repr(x)


def argument(x: object) -> str:
    """An argument as a kernel's text has it: nothing follows that would need brackets."""
    if type(x) is Value or type(x) is Pointer:
        return x.source
    return repr(x) if isinstance(x, (int, float)) else shown(x)


def call_text(name: str, args: tuple[object, ...], kwargs: dict[str, object]) -> str:
    given = [x.source if type(x) is Value or type(x) is Pointer else argument(x) for x in args]
    if kwargs:
        given += [f"{k}={argument(v)}" for k, v in kwargs.items()]
    return f"{name}({', '.join(given)})"
