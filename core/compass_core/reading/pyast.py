"""Python's syntax trees."""

from __future__ import annotations

import ast
import threading
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

N = TypeVar("N", bound=ast.AST)

BINARY: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.MatMult: "@",
}
COMPARISON: dict[type[ast.AST], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
SYMBOLS = {**BINARY, **COMPARISON, ast.And: "and", ast.Or: "or"}
"""How operators with two operands are written, by their classes in syntax trees."""
_PLAIN = frozenset(("ctx", "id", "attr", "arg", "module", "level", "lineno", "type_comment"))
"""Fields that hold names, numbers or contexts, which are no parts."""
_ONE_AT_A_TIME = threading.Lock()
"""CPython 3.11 keeps the depth of the tree it makes for the whole process: two threads that parse disturb each other."""


def parse(text: str, mode: str = "exec") -> Any:
    """The syntax tree of `text`, as `ast.parse` gives it, in any thread."""
    with _ONE_AT_A_TIME:
        return ast.parse(text, mode=mode)


def walk(roots: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of some trees in the order of their text, outer ones first, without contexts (`ast.Load`). The trees must
    stay as they are meanwhile. Several times as quick as `ast.walk`."""
    stack: list[object] = [*roots]
    stack.reverse()
    while stack:
        node = stack.pop()
        kind = type(node)
        fields = _FIELDS[kind] if kind in _FIELDS else _fields(kind)
        if fields is None:
            continue
        yield node  # type: ignore[misc]
        for name in fields:
            value = getattr(node, name, None)
            if type(value) is list:
                stack += value[::-1]
            elif value is not None:
                stack.append(value)


_FIELDS: dict[type[object], tuple[str, ...] | None] = {}
"""What `_fields` has found."""


def _fields(kind: type[object]) -> tuple[str, ...] | None:
    """The fields of a class of nodes that may have parts, the last one first; None for what is no node, as the name of an
    alias, or None in a list."""
    found = None
    if issubclass(kind, ast.AST):
        found = () if issubclass(kind, ast.Constant) else tuple([f for f in reversed(kind._fields) if f not in _PLAIN])
    _FIELDS[kind] = found
    return found


def dotted(node: ast.AST) -> str:
    """`a.b.c` of names and attributes, as it is written; "" for other expressions."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *names[::-1]]) if isinstance(node, ast.Name) else ""


def copied(node: N) -> N:
    """A copy of a tree, which shares only what has no parts: constants, contexts and operators."""
    new = node.__class__.__new__(node.__class__)
    made = new.__dict__
    for name, value in node.__dict__.items():
        if isinstance(value, list):
            made[name] = [copied(part) if isinstance(part, ast.AST) else part for part in value]
        elif isinstance(value, ast.AST) and value.__dict__:
            made[name] = copied(value)
        else:
            made[name] = value
    return new
