"""What the kernels of a file have in common."""

from __future__ import annotations


class Kernel:
    """Something that a file defines and commands build: a kernel in the language, a function that gives a schedule, a kernel
    with constants to choose."""

    __name__: str
    for_all_targets = False
    """Whether it is a function that gives a schedule, and so for the host and other devices, too."""
