"""The progress of long runs: a line on a terminal, lines in a log."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from compass_core.progress import Line

if TYPE_CHECKING:
    from compass_runtime.program import Program

_QUIET = 1.0
"""Seconds that a run takes before anything is shown."""


class Progress:
    """Shows on stderr which layer runs. Nothing is shown of short runs, and the line is gone when the run is over; where
    stderr is no terminal, a line stays every ten seconds."""

    def __init__(self, program: Program) -> None:
        self._launches = program.note.launches if program.note else ()
        self._total = len(program.content.subgraphs)
        self._line = Line(_QUIET)

    @classmethod
    def wanted(cls, program: Program, verbose: bool = False) -> bool:
        """Whether there is a terminal to show it on, or it is asked for, and more than one launch."""
        return (verbose or sys.stderr.isatty()) and len(program.content.subgraphs) > 1

    def after(self, done: int) -> None:
        """`done` launches are done."""
        if done >= self._total:
            return
        running = self._launches[done].label if done < len(self._launches) else ""
        self._line.show(f"launch {done + 1} of {self._total} {running}")

    def clear(self) -> None:
        """Takes the line away."""
        self._line.clear()
