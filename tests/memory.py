"""How much memory something takes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def peak_of_memory() -> Iterator[Callable[[], int]]:
    """A function that tells the most bytes of Python and NumPy inside, there and behind it."""
    most = 0
    tracemalloc.start()
    try:
        yield lambda: most or tracemalloc.get_traced_memory()[1]
    finally:
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
