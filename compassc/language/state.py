"""What is going on right now in this thread: the module parsers that are active (innermost last)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class _Parsers(threading.local):
    """A thread's parsers: threads that build at the same time do not see each other's."""

    def __init__(self) -> None:
        self.stack: list[Any] = []


_HERE = _Parsers()


@contextmanager
def active(parser: Any) -> Iterator[None]:
    """Makes a module parser the innermost one."""
    _HERE.stack.append(parser)
    try:
        yield
    finally:
        _HERE.stack.pop()


def current() -> Any:
    """The innermost module parser of this thread."""
    return _HERE.stack[-1]


def parsing() -> bool:
    """Whether a kernel is being parsed, so that calls build IR."""
    return bool(_HERE.stack)
