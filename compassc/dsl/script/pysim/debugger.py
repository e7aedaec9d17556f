"""The debugger that `breakpoint()` starts in a kernel."""

from __future__ import annotations

import pdb  # noqa: T100  this is the debugger
import threading
from types import FrameType
from typing import Any

from .where import is_user_code

_TURN = threading.RLock()


class TecPdb(pdb.Pdb):
    """The debugger of one TEC. While it talks to the user, the debuggers of other TECs wait."""

    def __init__(self, tec: str) -> None:
        super().__init__()
        self.prompt = f"({tec}) "

    def interaction(self, *args: Any, **kwargs: Any) -> Any:
        with _TURN:
            return super().interaction(*args, **kwargs)

    def stop_here(self, frame: FrameType) -> bool:
        """`step` goes into kernels and helpers of the user, not into PySim, NumPy or Python's own modules."""
        return bool(super().stop_here(frame)) and is_user_code(frame.f_code)
