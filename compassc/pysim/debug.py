"""`breakpoint()` in a kernel: one TEC at a time, its name in the prompt, steps that stay in the user's code."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator


def stop(*_args: object, **_kwargs: object) -> None:
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
