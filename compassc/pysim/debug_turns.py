"""Whose turn it is to talk with the user: one TEC that is debugged at a time."""

from __future__ import annotations

import threading

_TURN = threading.Lock()
_HELD = threading.local()


def take_turn() -> None:
    """The TEC of this thread talks with the user, from now until it goes on by itself; others that want to wait."""
    if not getattr(_HELD, "turn", False):
        _TURN.acquire()
        _HELD.turn = True


def give_turn() -> None:
    """The TEC of this thread goes on by itself, waits for others or has ended."""
    if getattr(_HELD, "turn", False):
        _HELD.turn = False
        _TURN.release()
