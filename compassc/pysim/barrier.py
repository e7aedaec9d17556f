"""The barrier of the TECs, and the report of one that not all of them reach."""

from __future__ import annotations

import sys
import threading
from types import FrameType

from compass_core.errors import CompassError, Note

from .source_lines import user_span


class Aborted(BaseException):
    """Unwinds a TEC because another one failed."""


class TecBarrier:
    """Meeting point of the TECs.

    A TEC that has ended never arrives, as on the device: waiting for it is an error, not a hang. When a TEC fails, the
    others are released with `Aborted`.

    `in_order`: between two barriers one TEC runs after another, lowest first, as in checked runs on the simulator.
    """

    def __init__(self, parties: int, in_order: bool = False) -> None:
        self._in_order = in_order
        self._condition = threading.Condition()
        self._parties = parties
        self._waiting: dict[int, FrameType] = {}
        self._passed = [0] * parties
        self._ended: set[int] = set()
        self._generation = 0
        self._aborted = False
        self._error: CompassError | None = None

    def enter(self, tec: int) -> None:
        """A TEC begins, when its turn has come."""
        if self._in_order:
            with self._condition:
                self._wait_for_turn(tec)

    def _wait_for_turn(self, tec: int) -> None:
        while self._in_order and not self._aborted and tec != self._turn():
            self._condition.wait()
        if self._aborted:
            error, self._error = self._error, None
            raise error or Aborted

    def _turn(self) -> int:
        """The lowest TEC that neither waits nor has ended."""
        return next((t for t in range(self._parties) if t not in self._waiting and t not in self._ended), -1)

    def wait(self, tec: int) -> None:
        """Wait for all TECs. CompassError in the lowest waiting TEC when one of them has ended."""
        with self._condition:
            generation = self._generation
            self._waiting[tec] = sys._getframe(1)
            self._passed[tec] += 1
            self._proceed()
            if self._in_order:
                self._condition.notify_all()  # the next one's turn
            while self._generation == generation and not self._aborted:
                self._condition.wait()
            self._wait_for_turn(tec)

    def leave(self, tec: int) -> None:
        """A TEC has ended."""
        with self._condition:
            self._ended.add(tec)
            self._proceed()
            if self._in_order:
                self._condition.notify_all()

    def abort(self) -> None:
        with self._condition:
            self._aborted = True
            self._condition.notify_all()

    def _proceed(self) -> None:
        waiting = self._waiting
        if not waiting or len(waiting) + len(self._ended) < self._parties:
            return
        if self._ended:
            self._error = self._unreached()
            self._aborted = True
        else:
            waiting.clear()
            self._generation += 1
        self._condition.notify_all()

    def _unreached(self) -> CompassError:
        """Whether every TEC waits or has ended, and at least one waits."""
        first, *others = sorted(self._waiting)
        notes = [Note(f"TEC{tec} waits here", user_span(self._waiting[tec])) for tec in others]
        for tec in sorted(self._ended):
            count = self._passed[tec]
            notes.append(Note(f"TEC{tec} has ended after {count} barrier{'' if count == 1 else 's'}"))
        names = [f"TEC{tec}" for tec in sorted(self._waiting)]
        who = f"{names[0]} waits" if not others else f"{', '.join(names[:-1])} and {names[-1]} wait"
        return CompassError(
            f"{who} for ever at barrier {self._passed[first]}: the other TECs have ended",
            user_span(self._waiting[first]),
            code="barrier",
            notes=tuple(notes),
            help="every TEC must execute the same number of barriers",
        )
