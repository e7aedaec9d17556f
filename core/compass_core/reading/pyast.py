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
_WITHOUT_PARTS = frozenset((ast.Name, ast.Constant))
"""Nodes that have no other parts than contexts; half of the nodes of a text are."""
_ONE_AT_A_TIME = threading.Lock()
"""CPython 3.11 keeps the depth of the tree it makes for the whole process: two threads that parse disturb each other."""


def parse(text: str, mode: str = "exec") -> Any:
    """The syntax tree of `text`, as `ast.parse` gives it, in any thread."""
    with _ONE_AT_A_TIME:
        return ast.parse(text, mode=mode)


def walk(roots: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of some trees in the order of their text, outer ones first, without contexts (`ast.Load`). The trees must
    stay as they are meanwhile. Several times as quick as `ast.walk`."""
    stack = list(roots)[::-1]
    while stack:
        node = stack.pop()
        yield node
        if type(node) in _WITHOUT_PARTS:
            continue
        values = node.__dict__
        inner: list[ast.AST] = []
        for name in node._fields:
            value = values.get(name)
            if type(value) is list:
                inner += [part for part in value if isinstance(part, ast.AST)]
            elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
                inner.append(value)
        if inner:
            inner.reverse()
            stack += inner


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
