"""`breakpoint()` in a kernel: one TEC at a time, its name in the prompt, steps that stay in the user's code."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any


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


def stop(*_args: Any, **_kwargs: Any) -> None:
    """Debug the caller from here on."""
    from .debugger import TecPdb  # most runs need none

    TecPdb().set_trace(sys._getframe(1))


@contextlib.contextmanager
def breakpoints() -> Iterator[None]:
    """While this is active, `breakpoint()` stops in the TEC that reached it, unless the user chose a debugger."""
    if sys.breakpointhook is not sys.__breakpointhook__ or os.environ.get("PYTHONBREAKPOINT"):
        yield
        return
    sys.breakpointhook = stop
    try:
        yield
    finally:
        sys.breakpointhook = sys.__breakpointhook__
