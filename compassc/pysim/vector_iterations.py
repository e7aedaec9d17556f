"""The turns of a vectorized loop, which PySim runs one after another, while all run a statement at once on an NPU."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Protocol

from compassc.ops.assertions import failed, turns_apart

from .source_lines import user_frame

if TYPE_CHECKING:
    from compassc.pysim.memory import Storage


class Turning(Protocol):
    """A TEC, as far as it runs vectorized loops."""

    vector: VectorTurns | None


def watched_turns(turns: Iterable[int], tec: Turning) -> Iterator[int]:
    """The turns of a loop of a TEC, whose accesses are held against each other."""
    outer, tec.vector = tec.vector, VectorTurns(user_frame(sys._getframe(1)))
    try:
        for turn in turns:
            tec.vector.begin()
            yield turn
    finally:
        tec.vector = outer


class VectorTurns:
    """The accesses of a vectorized loop: a turn may not touch what a turn behind it touches in a statement before.

    The place of an access in a turn is that of its code. Loops inside and functions that are called have no vector form
    or another order: where there are any, nothing is looked at further.
    """

    def __init__(self, frame: FrameType | None) -> None:
        self._frame = frame
        self._done: set[int] = set()  # places of this turn
        self._last: dict[tuple[Storage, int, bool], int] = {}  # of storage, byte, whether written: the last place
        self._is_serial = False

    def begin(self) -> None:
        """The next turn."""
        self._done.clear()

    def access(self, storage: Storage, spans: list[tuple[int, int]], size: int, writes: bool) -> None:
        """Record an access of elements of `size` bytes; CompassError where it depends on a turn before."""
        frame = user_frame(sys._getframe(1))
        if frame is not self._frame or frame is None or frame.f_lasti in self._done or size > 4:
            self._is_serial = True
        if self._is_serial or frame is None:
            return
        place = frame.f_lasti
        self._done.add(place)
        for byte in (b for span in spans for b in range(*span)):
            for early in (True, False) if writes else (True,):
                if self._last.get((storage, byte, early), -1) > place:
                    raise failed(turns_apart(storage.name, early, writes))
            key = (storage, byte, writes)
            self._last[key] = max(place, self._last.get(key, -1))
