"""What programs call to make calls of operators: `relay.add(a, b)`, `relay.cast(x, "int8")`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from compass_core.errors.suggest import help_for
from compassc.ir.errors import caller
from compassc.relay import declared
from compassc.relay.expr import Call, Expr, TupleWrapper, as_expr
from compassc.relay.operators import OPERATORS, OperatorError, get

Builder = Callable[..., Expr | TupleWrapper]
"""A function that makes calls: one of an operator with several results gives them to be unpacked."""
F = TypeVar("F", bound=Builder)
BUILDERS: dict[str, Builder] = {}
"""The functions that make calls, by dotted name: `nn.dense` is `relay.nn.dense`, `add` is `relay.add`."""


def call(name: str, *args: object, **attributes: object) -> Call:
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


def results(name: str, *args: object, **named: object) -> Expr | TupleWrapper:
    """What the builder of a dotted name makes, as programs get it: several results can be unpacked."""
    declared.load()
    return BUILDERS[name](*args, **named)


def build(name: str, *args: object, **named: object) -> Expr:
    """The expression that the builder of a dotted name makes; several results are their tuple."""
    return as_expr(results(name, *args, **named))


def namespace(prefix: str = "") -> dict[str, Builder]:
    """The builders below a prefix, by their last name: those of `relay.nn` for "nn", those of `relay` for ""."""
    declared.load()
    parts = ((n.rpartition("."), f) for n, f in BUILDERS.items())
    return {last: f for (first, _, last), f in parts if first == prefix}


class Builders:
    """The builders below a prefix as attributes: `Builders("nn").dense`."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> Builder:
        return self.find(name)

    def find(self, name: str) -> Builder:
        """The builder of a name. OperatorError (an AttributeError) with close names where there is none."""
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
