"""Recursion without Python's stack: functions that `yield` what they would call, run by a loop."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

T = TypeVar("T")
Steps = Generator[Any, Any, T]
"""A call that is under way: it yields calls whose results it waits for, and returns a T."""


def run(first: Steps[T]) -> T:
    """The result of a call, with the calls that it waits for. An error leaves all of them at once: none can catch what
    another one raises."""
    waiting: list[Steps[Any]] = [first]
    value: Any = None
    while waiting:
        try:
            following = waiting[-1].send(value)
        except StopIteration as end:
            waiting.pop()
            value = end.value
        else:
            waiting.append(following)
            value = None
    result: T = value
    return result
