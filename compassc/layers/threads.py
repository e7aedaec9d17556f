"""NumPy on several processors: pieces of an array each on a thread of its own, and the BLAS library on one thread.

That library's own threads wait for each other in loops: for products of the size that layers have they cost more than
they gain, and very much where other programs run, too.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TypeVar

import numpy as np

from compass_core.arrays import Array

Piece = TypeVar("Piece")
Result = TypeVar("Result")
NAMES = ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads", "openblas_{}_num_threads64_",
         "openblas_{}_num_threads")  # fmt: skip
"""Functions of OpenBLAS that get and set the number of its threads, as builds of it name them."""


def processors() -> int:
    """That this process may run on."""
    return len(os.sched_getaffinity(0))


def spread(work: Callable[[Piece], object], pieces: Sequence[Piece]) -> None:
    """`work(piece)` for each piece, on all processors; the work must be NumPy's, which lets others run meanwhile.

    The calling thread works, too: where other programs have the processors it does not wait for a thread to be woken. Work
    on one of several pieces that spreads pieces itself does these on its own thread, for the others have theirs.
    """
    rest = iter(pieces)
    if _own.busy:
        for piece in rest:
            work(piece)
        return
    with blas_on_one_thread():
        many = len(pieces) > 1
        helpers = [
            _pool(os.getpid()).submit(_work, work, rest, many) for _ in range(min(len(pieces), processors()) - 1)
        ]
        _work(work, rest, many)
        for helper in helpers:
            if not helper.cancel():
                helper.result()


def at_work() -> bool:
    """Whether this thread is at work on one of several pieces, so that it has one processor."""
    return _own.busy


def results(work: Callable[[Piece], Result], pieces: Sequence[Piece]) -> list[Result]:
    """What `work` gives of each piece, on all processors. Where some fail the error of the first of them, however many
    processors there are."""
    made: dict[int, Result] = {}
    failed: dict[int, Exception] = {}

    def one(numbered: tuple[int, Piece]) -> None:
        number, piece = numbered
        try:
            made[number] = work(piece)
        except Exception as error:  # noqa: BLE001 (raised below)
            failed[number] = error

    spread(one, list(enumerate(pieces)))
    if failed:
        raise failed[min(failed)]
    return [made[number] for number in range(len(pieces))]


def _work(work: Callable[[Piece], object], rest: Iterator[Piece], busy: bool) -> None:
    _own.busy = busy
    try:
        with np.errstate(all="ignore"):  # of each thread its own
            for piece in rest:
                work(piece)
    finally:
        _own.busy = False


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """Of a process: threads do not outlive a fork."""
    return ThreadPoolExecutor(processors(), thread_name_prefix="compassc-numpy")


class _Own(threading.local):
    """Memory that a thread works in, and whether it is at work on a piece."""

    room = np.empty(0, np.uint8)
    busy = False


_own = _Own()
_KEPT = 1 << 22
"""Bytes that a thread keeps at most."""
_SEEN = 31 << 20
"""The most bytes that the C library of Linux learns from."""


def in_one_piece(array: Array) -> Array:
    """The array without gaps; a copy is there until the thread asks for another one. New memory would cost more than the copy."""
    if array.flags.c_contiguous or array.nbytes > _KEPT:
        return np.ascontiguousarray(array)
    if _own.room.size < array.nbytes:
        _own.room = np.empty(array.nbytes, np.uint8)
    made = _own.room[: array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


def keep_memory() -> None:
    """Has the process keep what arrays of some megabytes give back, for others to take: the C library does so where it has
    seen memory of that size go."""
    np.empty(_SEEN, np.uint8)


class _Library:
    """The OpenBLAS that NumPy has loaded, if it has one; how many of its users want it on one thread."""

    def __init__(self) -> None:
        self.get, self.set = _functions()
        self.lock = threading.Lock()
        self.users, self.before = 0, 1


@cache
def _library() -> _Library:
    return _Library()


def _functions() -> tuple[Callable[[], int], Callable[[int], None]]:
    """How many threads the library has, and the function that says how many; of other libraries nothing is changed."""
    maps = Path("/proc/self/maps")
    lines = maps.read_text().splitlines() if maps.exists() else []
    for path in sorted({line.split(maxsplit=5)[5] for line in lines if "openblas" in line.rpartition("/")[2]}):
        if "numpy" not in path and "site-packages" in path:
            continue  # another package's own
        found = ctypes.CDLL(path)
        for name in NAMES:
            if hasattr(found, name.format("get")) and hasattr(found, name.format("set")):
                return getattr(found, name.format("get")), getattr(found, name.format("set"))
    return lambda: 1, lambda _: None


@contextmanager
def blas_on_one_thread() -> Iterator[None]:
    """The BLAS library computes each product on the thread that asks for it."""
    library = _library()
    with library.lock:
        library.users += 1
        if library.users == 1:
            library.before = library.get()
            library.set(1)
    try:
        yield
    finally:
        with library.lock:
            library.users -= 1
            if not library.users:
                library.set(library.before)
