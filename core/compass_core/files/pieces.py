"""Bytes in pieces: what is large is written without being joined, and without all of it being there at once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from io import FileIO

from compass_core.errors import CompassError
from compass_core.namedtuple import NamedTuple

Piece = bytes | memoryview
"""Bytes; a view is one of single bytes."""
_START, _COMPARED, _READ = 64, 1 << 16, 1 << 20
"""Bytes of a start, those that are compared at once, and those that are read."""
_TICK = 20_000_000
"""Nanoseconds within which two changes of a file may have one time."""


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

    def apart(self, at: int = 0) -> Iterator[tuple[int, Piece | Pieces]]:
        """What it is put together of, each with its place: bytes, and what a function makes. `at`: its own place."""
        if not isinstance(self._parts, Sequence):
            yield at, self
            return
        for part in self._parts:
            if isinstance(part, Pieces):
                yield from part.apart(at)
            elif part:
                yield at, part
            at += len(part)

    def __getitem__(self, at: slice) -> Pieces:
        """Some of the bytes behind each other."""
        start, stop, _ = at.indices(len(self))
        return _Slice(self, start, max(stop - start, 0))

    def _between(self, start: int, stop: int) -> Iterator[Piece]:
        at = 0
        for part in self:
            yield part[max(start - at, 0) : max(stop - at, 0)]
            at += len(part)
            if at >= stop:
                break

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


class _Slice(Pieces):
    """Some of other bytes."""

    def __init__(self, whole: Pieces, start: int, size: int) -> None:
        super().__init__(lambda: self._between(0, size), size)
        self._whole, self._first = whole, start

    def _between(self, start: int, stop: int) -> Iterator[Piece]:
        return self._whole._between(self._first + start, self._first + stop)


class Stored(Pieces):
    """Bytes that stay in a file, which is open as long as they are wanted, and are read piece by piece. CompassError where the
    file has changed since it was opened."""

    def __init__(self, file: FileIO, name: str) -> None:
        self._file, self._name = file, name
        if 0 <= time.time_ns() - os.fstat(file.fileno()).st_ctime_ns < _TICK:
            time.sleep(_TICK / 1e9)  # what is written from now on has another time
        self._state = _State.of(file)
        size = self._state.size
        super().__init__(lambda: self._between(0, size), size)

    def _between(self, start: int, stop: int) -> Iterator[Piece]:
        for at in range(start, stop, _READ):
            size = min(_READ, stop - at)
            part = os.pread(self._file.fileno(), size, at)
            state = _State.of(self._file)
            if len(part) < size or not state.follows(self._state):
                raise CompassError(f"'{self._name}' has changed while it was in use", code="unreadable")
            self._state = state
            yield part


class _State(NamedTuple):
    """What changes where a file's content does. `changed`: the time that no program sets; `about`: what else changes it."""

    size: int
    written: int
    changed: int
    about: tuple[int | str, ...]

    @classmethod
    def of(cls, file: FileIO) -> _State:
        status = os.fstat(file.fileno())
        about = status.st_nlink, status.st_mode, status.st_uid, status.st_gid, _name(file)
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, about)

    def follows(self, before: _State) -> bool:
        """Whether the content is what it was: a file that got or lost a name, or whose rights changed, has another time too."""
        return self[:2] == before[:2] and (self.changed == before.changed or self.about != before.about)


def _name(file: FileIO) -> str:
    """The path that an open file has now; empty where the system does not tell."""
    try:
        return os.readlink(f"/proc/self/fd/{file.fileno()}")
    except OSError:
        return ""


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
