"""A progress line on a terminal for long runs."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from compass_core.errors.rendering import for_stream

if TYPE_CHECKING:
    from compass_runtime.program import Program

_QUIET = 1.0
"""Seconds that a run takes before anything is shown."""
_PAUSE = 0.1
"""Seconds between two lines."""
_WIDTH = 70


class Progress:
    """Shows on stderr which layer runs. Nothing is shown of short runs, and the line is gone when the run is over."""

    def __init__(self, program: Program) -> None:
        self._launches = program.note.launches if program.note else ()
        self._total = len(program.content.subgraphs)
        self._next = time.monotonic() + _QUIET
        self._shown = False

    @classmethod
    def wanted(cls, program: Program) -> bool:
        """Whether there is a terminal to show it on, and more than one launch."""
        return sys.stderr.isatty() and len(program.content.subgraphs) > 1

    def after(self, done: int) -> None:
        """`done` launches are done."""
        now = time.monotonic()
        if done >= self._total or now < self._next:
            return
        self._next, self._shown = now + _PAUSE, True
        running = self._launches[done].label if done < len(self._launches) else ""
        line = f"launch {done + 1} of {self._total} {running}"
        sys.stderr.write(
            "\r\x1b[K" + for_stream(line if len(line) <= _WIDTH else line[: _WIDTH - 3] + "...", sys.stderr)
        )
        sys.stderr.flush()

    def clear(self) -> None:
        """Takes the line away."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._shown = False
