"""Recursion without Python's stack: functions that `yield` what they would call, run by a loop."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

T = TypeVar("T")
Steps = Generator[Any, Any, T]
"""A call that is under way: it yields calls whose results it waits for, and returns a T."""


class Unwind(Exception):
    """Leaves calls one after the other, each of which can catch it where it waits."""


def run(first: Steps[T], most: int = 0, too_deep: Callable[[], Exception] | None = None) -> T:
    """The result of a call, with the calls that it waits for. An error leaves all of them at once: none can catch what
    another one raises, but for `Unwind`. `most`: how many may wait (0: any number), else the error of `too_deep` is raised."""
    waiting: list[Steps[Any]] = [first]
    value: Any = None
    raised: Unwind | None = None
    while waiting:
        try:
            following = waiting[-1].send(value) if raised is None else waiting[-1].throw(raised)
        except StopIteration as end:
            waiting.pop()
            value, raised = end.value, None
        except Unwind as error:
            waiting.pop()
            value, raised = None, error
        else:
            waiting.append(following)
            value = raised = None
            if most and len(waiting) > most and too_deep is not None:
                raise too_deep()
    if raised is not None:
        raise raised
    result: T = value
    return result
