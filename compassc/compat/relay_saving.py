"""Types, patterns and places of Relay as JSON: rows of a class and its fields, each object once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from enum import IntEnum
from typing import Any

import compass_core.errors as core
from compass_core.errors import UsageError
from compassc.relay import expr, types
from compassc.relay.attributes import RECORDS, Attrs
from compassc.relay.expr import Clause, Expr, Pattern
from compassc.relay.parser import parse_expr
from compassc.relay.types import Type, TypeKind

from .relay_nodes import EnvFunc, Span

_PARTS = (Type, Pattern, Clause, expr.Var, expr.GlobalVar, expr.Constructor)
"""What is saved by its fields; other expressions are saved as their text."""
SAVED = (Type, Pattern, Clause, EnvFunc, core.Span)
"""What these functions are for."""


class Packed:
    """Objects as rows, which name other rows by their numbers."""

    def __init__(self) -> None:
        self.rows: list[list[object]] = []
        self._known: dict[int, int] = {}

    def value(self, given: object) -> object:
        """A value as JSON has it: what is no number, text or None is a list of its kind and parts. UsageError for what has no
        such form."""
        if given is None or (isinstance(given, (bool, int, float, str)) and not isinstance(given, IntEnum)):
            return given
        if isinstance(given, types.Open):
            return ["any"]
        if isinstance(given, TypeKind):
            return ["kind", int(given)]
        if isinstance(given, (tuple, list)):
            return ["tuple", *map(self.value, given)]
        if isinstance(given, EnvFunc):
            return ["function", given.name]
        if isinstance(given, Attrs):
            return ["attributes", given.record.key, [[k, self.value(v)] for k, v in given.items()]]
        if isinstance(given, core.Span):
            return ["span", given.file, given.line, given.end_line, given.col, given.end_col]
        if isinstance(given, _PARTS):
            return ["row", self._row(given)]
        if isinstance(given, Expr):
            return ["text", given.astext()]
        raise UsageError(f"a {type(given).__name__} cannot be saved", code="compat-name")

    def _row(self, given: Any) -> int:
        if id(given) not in self._known:
            own = {f.name: getattr(given, f.name) for f in fields(given) if f.init and f.name != "vid"}
            row: list[object] = [type(given).__name__, {name: self.value(v) for name, v in own.items()}]
            self._known[id(given)] = len(self.rows)
            self.rows.append(row)
        return self._known[id(given)]


def unpacked(root: object, rows: Sequence[tuple[str, Mapping[str, object]]]) -> object:
    """What rows say. UsageError for classes that there are not."""
    made: list[object] = []

    def value(given: object) -> object:
        if not isinstance(given, list):
            return given
        kind, *parts = given
        if kind == "row":
            return made[parts[0]]
        if kind == "tuple":
            return tuple(map(value, parts))
        if kind == "attributes":
            return RECORDS[parts[0]](**{k: value(v) for k, v in parts[1]})
        return _READERS[kind](*parts)

    for name, own in rows:
        found = (getattr(module, name, None) for module in (expr, types))
        cls: Callable[..., object] | None = next(
            (c for c in found if isinstance(c, type) and issubclass(c, _PARTS)), None
        )
        if cls is None:
            raise UsageError(f"there is no node of the type '{name}'", code="compat-name")
        made.append(cls(**{k: value(v) for k, v in own.items()}))
    return value(root)


_READERS: Mapping[str, Callable[..., object]] = {
    "any": types.Open,
    "kind": TypeKind,
    "function": EnvFunc.get,
    "span": lambda file, *numbers: Span(file or None, *numbers),
    "text": lambda text: parse_expr(text),
}
