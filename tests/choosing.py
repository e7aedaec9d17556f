"""Which of many cases a quick run takes, and loops over cases that there have to be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar
from zlib import crc32

T = TypeVar("T")


def chosen(names: Iterable[str], every: int) -> set[str]:
    """One name of `every`, at least one where there are any: those whose hashes are least, so that a new case leaves the
    choice of the others."""
    ranked = sorted(names, key=lambda name: (crc32(name.encode()), name))
    return set(ranked[: -(-len(ranked) // every)])


def some(cases: Iterable[T]) -> Iterator[T]:
    """The cases; AssertionError where there are none, for a loop over nothing shows nothing."""
    empty = True
    for case in cases:
        empty = False
        yield case
    assert not empty, "there are no cases"
