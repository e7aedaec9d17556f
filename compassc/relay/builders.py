"""What programs call to make calls of operators: `relay.add(a, b)`, `relay.cast(x, "int8")`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from compass_core.errors.suggest import help_for
from compassc.ir.errors import caller
from compassc.relay import declared
from compassc.relay.expr import Call, as_expr
from compassc.relay.operators import OPERATORS, OperatorError, get

F = TypeVar("F", bound=Callable[..., Any])
BUILDERS: dict[str, Callable[..., Any]] = {}
"""The functions that make calls, by dotted name: `nn.dense` is `relay.nn.dense`, `add` is `relay.add`."""


def call(name: str, *args: object, **attributes: Any) -> Call:
    """A call of an operator, with its attribute record. It knows the line of the program that is being run."""
    op = OPERATORS.get(name) or get(name)
    record = op.record
    made = Call(op, [as_expr(a) for a in args], record(**attributes) if record is not None else None)
    made._keep(made_at_=caller())
    return made


def builder(name: str) -> Callable[[F], F]:
    """Make the decorated function the builder of a dotted name."""

    def register(function: F) -> F:
        assert name not in BUILDERS, f"builder {name} is declared twice"
        BUILDERS[name] = function
        return function

    return register


def build(name: str, *args: Any, **named: Any) -> Any:
    """What the builder of a dotted name makes."""
    declared.load()
    return BUILDERS[name](*args, **named)


def namespace(prefix: str = "") -> dict[str, Callable[..., Any]]:
    """The builders below a prefix, by their last name: those of `relay.nn` for "nn", those of `relay` for ""."""
    declared.load()
    parts = ((n.rpartition("."), f) for n, f in BUILDERS.items())
    return {last: f for (first, _, last), f in parts if first == prefix}


class Builders:
    """The builders below a prefix as attributes: `Builders("nn").dense`."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> Callable[..., Any]:
        declared.load()
        found = BUILDERS.get(f"{self._prefix}.{name}")
        if found is None:
            known = list(namespace(self._prefix)) if not name.startswith("_") else []
            raise OperatorError(f"relay.{self._prefix} has no operator '{name}'", help_for(name, known, "operators"))
        return found

    def __dir__(self) -> list[str]:
        return sorted(namespace(self._prefix))


NAMESPACES: dict[str, Builders] = {n: Builders(n) for n in ("nn", "image", "vision", "random", "annotation")}
"""What `relay.nn`, ... are."""
