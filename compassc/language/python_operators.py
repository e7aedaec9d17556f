"""Python's operators by their symbols, for numbers that are known."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

BINARY: dict[str, Callable[[Any, Any], object]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "@": operator.matmul,
}
PREFIX: dict[str, Callable[[Any], object]] = {
    "-": operator.neg,
    "~": operator.invert,
    "not": operator.not_,
    "+": operator.pos,
}
_METHODS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "pow": "**",
    "and": "&",
    "or": "|",
    "xor": "^",
    "lshift": "<<",
    "rshift": ">>",
}
_COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_PREFIXES = {"neg": "-", "invert": "~"}


def install(cls: type, binary: Callable[[str, Any, Any], object], unary: Callable[[str, Any], object]) -> None:
    """Give a class Python's operators, all by two functions of their symbols and operands."""
    for name, symbol in {**_METHODS, **_COMPARISONS}.items():
        setattr(cls, f"__{name}__", lambda self, other, symbol=symbol: binary(symbol, self, other))
    for name, symbol in _METHODS.items():
        setattr(cls, f"__r{name}__", lambda self, other, symbol=symbol: binary(symbol, other, self))
    for name, symbol in _PREFIXES.items():
        setattr(cls, f"__{name}__", lambda self, symbol=symbol: unary(symbol, self))
