"""How far long work is: loops that may take long tell it, and `shown` shows it on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from compass_core.errors.rendering import for_stream

T = TypeVar("T")
QUIET = 2.0
"""Seconds that work takes before anything is shown."""
PAUSE = 0.1
"""Seconds between two lines."""
LOG_PAUSE = 10.0
"""The same of lines that stay, before the first one too."""
WIDTH = 70


class Line:
    """On a terminal a line of stderr that the next one overwrites, and that is gone when it is cleared; elsewhere lines that
    stay, one every ten seconds. Nothing is shown in the first `quiet` seconds."""

    def __init__(self, quiet: float = QUIET) -> None:
        self._terminal = sys.stderr.isatty()
        self._next = time.monotonic() + (quiet if self._terminal else LOG_PAUSE)
        self._shown = False

    def show(self, text: str) -> None:
        """Shows a text where it is time for one."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + (PAUSE if self._terminal else LOG_PAUSE)
        line = for_stream(text if len(text) <= WIDTH else text[: WIDTH - 3] + "...", sys.stderr)
        sys.stderr.write("\r\x1b[K" + line if self._terminal else line + "\n")
        sys.stderr.flush()
        self._shown = self._terminal

    def clear(self) -> None:
        """Takes the line away."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._shown = False


class _Work:
    """What is being done, and since when."""

    def __init__(self) -> None:
        self.line, self.what, self.begun, self.whole = Line(), "", 0.0, ""

    def tell(self, what: str, done: int, total: int, doing: str) -> None:
        now = time.monotonic()
        if what != self.what:
            self.what, self.begun = what, now
        left = time_left(now - self.begun, done, total)
        self.line.show(f"{self.whole}{what}: {done} of {total}{left}{doing and f' ({doing})'}")


_shown: ContextVar[_Work | None] = ContextVar("progress", default=None)


@contextmanager
def shown(log: bool = False) -> Iterator[None]:
    """What loops inside tell is shown, on a terminal, or where a `log` is asked for."""
    if _shown.get() is not None or not (log or sys.stderr.isatty()):
        yield
        return
    work = _Work()
    token = _shown.set(work)
    try:
        yield
    finally:
        _shown.reset(token)
        work.line.clear()


def clear() -> None:
    """Takes away the line that is shown, before something else is written."""
    if (work := _shown.get()) is not None:
        work.line.clear()


def tell(what: str, done: int, total: int, doing: str = "") -> None:
    """So much of the work called `what` is done; `doing`: what comes now."""
    if (work := _shown.get()) is not None:
        work.tell(what, done, total, doing)


@contextmanager
def part_of(whole: str) -> Iterator[None]:
    """What is told inside is part of larger work, which is named before it."""
    work = _shown.get()
    if work is None:
        yield
        return
    before, work.whole = work.whole, f"{whole}, "
    try:
        yield
    finally:
        work.whole = before


def told(what: str, items: Iterable[T], total: int) -> Iterator[T]:
    """The items; before each it is told how many are done."""
    for done, item in enumerate(items):
        tell(what, done, total)
        yield item


def time_left(seconds: float, done: int, total: int) -> str:
    """What to say of the time that is left after `done` of `total` took some seconds; nothing of less than two seconds, and
    where nothing is done yet."""
    left = seconds * (total - done) / done if done else 0.0
    if left < 2:
        return ""
    return f", {left:.0f} s left" if left < 100 else f", {left / 60:.0f} min left"
