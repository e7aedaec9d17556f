"""The progress of long runs: a line on a terminal, lines in a log."""

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
_LOG_PAUSE = 10.0
"""The same of lines that stay, before the first one too."""
_WIDTH = 70


class Progress:
    """Shows on stderr which layer runs. Nothing is shown of short runs, and the line is gone when the run is over; where
    stderr is no terminal, a line stays every ten seconds."""

    def __init__(self, program: Program) -> None:
        self._launches = program.note.launches if program.note else ()
        self._total = len(program.content.subgraphs)
        self._terminal = sys.stderr.isatty()
        self._next = time.monotonic() + (_QUIET if self._terminal else _LOG_PAUSE)
        self._shown = False

    @classmethod
    def wanted(cls, program: Program, verbose: bool = False) -> bool:
        """Whether there is a terminal to show it on, or it is asked for, and more than one launch."""
        return (verbose or sys.stderr.isatty()) and len(program.content.subgraphs) > 1

    def after(self, done: int) -> None:
        """`done` launches are done."""
        now = time.monotonic()
        if done >= self._total or now < self._next:
            return
        self._next = now + (_PAUSE if self._terminal else _LOG_PAUSE)
        running = self._launches[done].label if done < len(self._launches) else ""
        line = f"launch {done + 1} of {self._total} {running}"
        line = for_stream(line if len(line) <= _WIDTH else line[: _WIDTH - 3] + "...", sys.stderr)
        sys.stderr.write("\r\x1b[K" + line if self._terminal else line + "\n")
        sys.stderr.flush()
        self._shown = self._terminal

    def clear(self) -> None:
        """Takes the line away."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._shown = False
