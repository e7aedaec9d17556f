"""Python's syntax trees."""

from __future__ import annotations

import ast
import threading
from typing import Any

_ONE_AT_A_TIME = threading.Lock()
"""CPython 3.11 keeps the depth of the tree it makes for the whole process: two threads that parse disturb each other."""


def parse(text: str, mode: str = "exec") -> Any:
    """The syntax tree of `text`, as `ast.parse` gives it, in any thread."""
    with _ONE_AT_A_TIME:
        return ast.parse(text, mode=mode)
