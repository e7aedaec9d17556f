"""Two implementations of every script call, and the choice between them.

An API has an IR side (used while a kernel is parsed) and a Python side (used while PySim runs in this thread). `LOCAL`
says which of the two a call takes: it holds the TEC that this thread plays, or the parser of the kernel that it parses.
Both are given by whoever runs or parses; nothing here knows PySim or the parser.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from compass_core.errors import CompassError
from compassc.ops import get

if TYPE_CHECKING:
    from compassc.ir.dtypes import DataType
    from compassc.ops.core import Op

    from ..ir.exprs import Var


class Parser(Protocol):
    """The parser of a kernel, as far as calls and values of the kernel need it."""

    def operation(self, op: Op, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        """The value of an operation that is called."""

    def function(self, func: Any, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        """The value of a call of a sub-function."""

    def macro(self, macro: Any, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        """Paste the body of a macro that is called."""

    def binary(self, symbol: str, a: object, b: object) -> object:
        """The value of `a symbol b`; Python's operators on values ask for it."""

    def unary(self, symbol: str, a: object) -> object:
        """The value of `symbol a`."""

    def load(self, target: object, index: object) -> Any:
        """The value of `target[index]`, of a pointer or a buffer."""

    def store(self, target: object, index: object, value: object) -> None:
        """`target[index] = value` in a function of Python."""

    def text(self, value: object) -> str:
        """The text of a value: always a CompassError, because the value is known only when the kernel runs."""

    def take_address(self, variable: Var) -> None:
        """Remember that a variable can be changed through pointers from here on."""

    @property
    def machine(self) -> Any:
        """How work on tiles becomes statements: a `tiles.machine.Machine`."""


class _Local(threading.local):
    """The state of a thread, which other threads that parse or run kernels do not see."""

    tec: Any = None
    """The TEC that the thread plays in PySim; None outside of it."""
    parser: Parser | None = None
    """The parser of the innermost kernel that the thread parses; None while it parses none."""


LOCAL = _Local()


@contextmanager
def parsing(parser: Parser) -> Iterator[None]:
    """Calls of the language build IR, by this parser."""
    outer, LOCAL.parser = LOCAL.parser, parser
    try:
        yield
    finally:
        LOCAL.parser = outer


def active_parser(what: str) -> Parser:
    """The parser of the innermost kernel. CompassError naming `what` was used where no kernel is parsed."""
    if LOCAL.parser is None:
        raise outside_kernel(what)
    return LOCAL.parser


class _Current(type):
    @property
    def current(cls) -> Any:
        """The PySim session this thread plays a TEC of; None outside PySim."""
        return None if LOCAL.tec is None else LOCAL.tec.session


class PySimInfo(metaclass=_Current):
    """Which PySim run is active: `PySimInfo.current`."""


APIS: dict[str, list[Callable[..., object] | None]] = {}
"""Script calls that are not operations: name -> [IR side, Python side]."""


def outside_kernel(what: str) -> CompassError:
    """The error of using something of the language, such as `S.vadd`, where no kernel is parsed or run."""
    return CompassError(
        f"{what} can only be used in a kernel",
        code="outside",
        help="call it inside a function decorated with @S.prim_func",
    )


def register_ir_api(func: Callable[..., object]) -> Callable[..., object]:
    """Register one side of an API by the function's name.

    `name` is the IR side and is replaced by the dispatching function; `_py_name` is the Python side and is returned
    unchanged.
    """
    text = func.__name__
    slot = 1 if text.startswith("_py_") else 0
    name = text[4:] if slot else text
    sides = APIS.setdefault(name, [None, None])
    if name.startswith("_") or sides[slot] is not None:
        raise ValueError(f"script call {name!r} is private or registered twice")
    sides[slot] = func
    if slot:
        return func

    @functools.wraps(func)
    def call(*args: object, **kwargs: object) -> object:
        if LOCAL.tec is None:
            return func(*args, **kwargs)
        python_side = sides[1]
        assert python_side is not None, "check_sides has seen it"
        return python_side(*args, **kwargs)

    return call


def check_sides() -> None:
    """ValueError naming an API that lacks one of its sides."""
    for name, sides in APIS.items():
        for what, side in zip(("an IR", "a Python"), sides):
            if side is None:
                raise ValueError(f"script call {name!r} has not {what} implementation")


def op_api(op: Op) -> Callable[..., object]:
    """The user-visible function of a declared operation."""
    python_side: Callable[..., object] | None = None

    def call(*args: object, **kwargs: object) -> object:
        nonlocal python_side
        if LOCAL.tec is None:
            parser = LOCAL.parser or active_parser(f"S.{op.name}")
            return parser.operation(op, args, kwargs)
        if python_side is None:
            python_side = LOCAL.tec.python_side(op)
        return python_side(*args, **kwargs)

    call.__name__ = call.__qualname__ = op.name
    call.__doc__ = op.doc
    call.__signature__ = op.signature  # type: ignore[attr-defined]
    call.op = op  # type: ignore[attr-defined]
    return call


def convert(value: object, to: DataType) -> object:
    """`S.int32(value)` and the like: a cast to a data type."""
    op = get("cast")
    if LOCAL.tec is not None:
        return LOCAL.tec.python_side(op)(value, to)
    return active_parser(f"S.{to}").operation(op, (value, to), {})
