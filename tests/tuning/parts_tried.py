"""Functions for workers."""

import atexit
import os
import signal


def add(shared: int, part: int) -> int:
    return shared + part


def fails(shared: int, part: int) -> int:
    if part == shared:
        raise ValueError(f"part {part}")
    return part


def deadly(shared: int, part: int) -> int:
    """Ends its process for one part, always."""
    if part == shared:
        os.kill(os.getpid(), signal.SIGKILL)
    return part


def hears_interrupts(shared: None, part: int) -> bool:
    """Whether Ctrl-C ends the process."""
    return signal.getsignal(signal.SIGINT) is not signal.SIG_IGN


def is_told_to_end_while_it_ends(shared: None, part: int) -> int:
    atexit.register(signal.raise_signal, signal.SIGTERM)
    return part
