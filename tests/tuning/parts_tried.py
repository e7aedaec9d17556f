"""Functions for workers."""

import os
import signal
import time
from pathlib import Path


def add(shared: int, part: int) -> int:
    return shared + part


def slowly(shared: str, part: int) -> tuple[int, int]:
    """The part and the process that did it; the file `shared` says that one is at work."""
    Path(shared).touch()
    time.sleep(0.05)
    return part, os.getpid()


def fails(shared: int, part: int) -> int:
    if part == shared:
        raise ValueError(f"part {part}")
    return part


def deadly(shared: int, part: int) -> int:
    """Ends its process for one part, always."""
    if part == shared:
        os.kill(os.getpid(), signal.SIGKILL)
    return part
