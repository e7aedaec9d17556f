"""What programs call to make calls of operators: `relay.add(a, b)`, `relay.cast(x, "int8")`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from compassc.relay.expr import Call, Expr, as_expr
from compassc.relay.operators import get


def call(name: str, *args: object, **attributes: Any) -> Call:
    """A call of an operator, with its attribute record."""
    op = get(name)
    record = op.record
    return Call(op, [as_expr(a) for a in args], record(**attributes) if record is not None else None)


def _plain(name: str) -> Callable[..., Expr]:
    def build(*args: object) -> Expr:
        return call(name, *args)

    build.__name__ = build.__qualname__ = name.rpartition(".")[2]
    return build


def plain(names: Iterable[str]) -> dict[str, Callable[..., Expr]]:
    """Builders of operators without attributes, by name."""
    return {name.rpartition(".")[2]: _plain(name) for name in names}
