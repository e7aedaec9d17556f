"""Python's operators by their symbols, for numbers that are known."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

BINARY: dict[str, Callable[[Any, Any], Any]] = {
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
PREFIX: dict[str, Callable[[Any], Any]] = {
    "-": operator.neg,
    "~": operator.invert,
    "not": operator.not_,
    "+": operator.pos,
}
