"""Bytes in pieces: what is large is written without being joined, and without all of it being there at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

Piece = bytes | memoryview
"""Bytes; a view is one of single bytes."""
_START, _COMPARED = 64, 1 << 16
"""Bytes of a start, and those that are compared at once."""


class Pieces:
    """Bytes one behind the other, in pieces. Equal to the bytes.

    Where `parts` is a function, it makes `size` bytes anew whenever they are asked for, piece by piece.
    """

    def __init__(
        self, parts: Sequence[Piece | Pieces] | Callable[[], Iterable[Piece]], size: int | None = None
    ) -> None:
        self._parts = parts
        self._size = sum(map(len, parts)) if isinstance(parts, Sequence) else size or 0

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Piece]:
        size = 0
        for part in self._parts if isinstance(self._parts, Sequence) else self._parts():
            size += len(part)
            if isinstance(part, Pieces):
                yield from part
            elif part:
                yield part
        assert size == self._size, f"{size} bytes were made where there are {self._size}"

    def __bytes__(self) -> bytes:
        return b"".join(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (bytes, memoryview, Pieces)) and same(self, other)

    def __hash__(self) -> int:
        return hash(bytes(self))

    @cached_property
    def start(self) -> bytes:
        """Its first bytes."""
        start = b""
        for part in self:
            start += bytes(part[: _START - len(start)])
            if len(start) == _START:
                break
        return start


def same(a: Piece | Pieces, b: Piece | Pieces) -> bool:
    """Whether two are the same bytes. Of what is made piece by piece no more is made than shows a difference."""
    if len(a) != len(b):
        return False
    left, right = _views(a), _views(b)
    mine = yours = memoryview(b"")
    while (mine := mine or next(left, mine)) and (yours := yours or next(right, yours)):
        size = min(len(mine), len(yours), _COMPARED)
        if bytes(mine[:size]) != bytes(yours[:size]):
            return False
        mine, yours = mine[size:], yours[size:]
    return True


def start_of(data: Piece | Pieces) -> bytes:
    """The first bytes: those of different content mostly differ."""
    return data.start if isinstance(data, Pieces) else bytes(data[:_START])


def _views(data: Piece | Pieces) -> Iterator[memoryview]:
    return map(memoryview, data if isinstance(data, Pieces) else [data])
