"""Python's syntax trees."""

from __future__ import annotations

import ast
import threading
from typing import Any

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
_ONE_AT_A_TIME = threading.Lock()
"""CPython 3.11 keeps the depth of the tree it makes for the whole process: two threads that parse disturb each other."""


def parse(text: str, mode: str = "exec") -> Any:
    """The syntax tree of `text`, as `ast.parse` gives it, in any thread."""
    with _ONE_AT_A_TIME:
        return ast.parse(text, mode=mode)
