"""Tables of functions by the class of what they take. Each is checked against its class, which the type of a dict cannot say:

RULES: dict[type, Callable[[Writer, Expr], str]] = table(method(Var, Writer.var), method(Call, Writer.call))
RULES[type(e)](writer, e)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from typing import Concatenate, ParamSpec

    P = ParamSpec("P")

N = TypeVar("N")
O = TypeVar("O")
R = TypeVar("R")


def rule(kind: type[N], function: Callable[Concatenate[N, P], R]) -> tuple[type, Callable[Concatenate[object, P], R]]:
    """An entry of a table whose functions take first what they are chosen by."""
    return kind, cast("Callable[Concatenate[object, P], R]", function)


def rules(kind: type[N], *functions: Callable[[N], R]) -> tuple[type, tuple[Callable[[object], R], ...]]:
    """An entry of a table that has several functions for a class."""
    return kind, cast("tuple[Callable[[object], R], ...]", functions)


def method(
    kind: type[N], function: Callable[Concatenate[O, N, P], R]
) -> tuple[type, Callable[Concatenate[O, object, P], R]]:
    """An entry of a table whose functions are methods, which are chosen by their first argument behind `self`."""
    return kind, cast("Callable[Concatenate[O, object, P], R]", function)


def table(*entries: tuple[type, R]) -> dict[type, R]:
    """The table of entries, of which later ones replace earlier ones."""
    return dict(entries)
