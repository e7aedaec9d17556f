"""What the kernels of a file have in common."""

from __future__ import annotations


class Kernel:
    """Something that a file defines and commands build: a kernel in the language, a function that gives a schedule, a kernel
    with constants to choose."""

    __name__: str
