"""Large initialisers of models, which stay in their file until they are wanted.

A message of protobuf is fields one behind the other: a number that says which one and of what kind, then a number or bytes, whose
count stands before them. The bytes of a field may be a message.
"""

from __future__ import annotations

from collections.abc import Iterator

from compass_core.files.pieces import Pieces
from compass_core.namedtuple import NamedTuple

Apart = dict[int, Pieces]
"""The content of large initialisers of a model's main graph that stays where it is, by their places."""
_PLACE = (7, 5, 9)
"""The graph of a model, an initialiser of it, and its bytes: the numbers of the fields."""
LEAST = 1 << 16
"""Bytes of an initialiser that stays in the file."""
_READ = 1 << 12
"""Bytes that are looked at together."""
_NUMBER, _EIGHT, _SOME, _FOUR = 0, 1, 2, 5
"""Kinds of fields."""


def taken_apart(content: Pieces) -> tuple[bytes, Apart]:
    """A model without the bytes of its large initialisers, and these. ValueError for what is no message, as far as it is looked at."""
    model = _Model(content)
    return model.rest(0, len(content), _PLACE), model.large


class _Field(NamedTuple):
    """A field of a message: where it begins, and where what it holds begins and ends."""

    number: int
    kind: int
    start: int
    begin: int
    end: int


class _Model:
    """A model as it is looked at from its beginning to its end."""

    def __init__(self, content: Pieces) -> None:
        self.large: Apart = {}
        self._content = content
        self._initialisers = 0
        self._at, self._seen = 0, b""

    def rest(self, start: int, stop: int, place: tuple[int, ...]) -> bytes:
        """The message in some bytes without what is large at `place` in it."""
        parts, done = [], start
        for field in self._fields(start, stop):
            if field.number != place[0] or field.kind != _SOME:
                continue
            if len(place) == 1:
                if not self._is_large(field):
                    continue
                inner = None
            else:
                inner = self.rest(field.begin, field.end, place[1:])
                self._initialisers += len(place) == 2
            parts.append(self._bytes(done, field.start))
            done = field.end
            if inner is not None:
                parts += [_number(field.number << 3 | _SOME), _number(len(inner)), inner]
        return b"".join([*parts, self._bytes(done, stop)])

    def _is_large(self, field: _Field) -> bool:
        """Whether the bytes of the initialiser at hand stay in the file. Where there are several the last are meant."""
        self.large.pop(self._initialisers, None)
        if field.end - field.begin < LEAST:
            return False
        self.large[self._initialisers] = self._content[field.begin : field.end]
        return True

    def _fields(self, start: int, stop: int) -> Iterator[_Field]:
        while start < stop:
            key, begin = self._number_at(start)
            kind = key & 7
            if kind == _NUMBER:
                end = self._number_at(begin)[1]
            elif kind == _SOME:
                size, begin = self._number_at(begin)
                end = begin + size
            elif kind in (_FOUR, _EIGHT):
                end = begin + (4 if kind == _FOUR else 8)
            else:
                raise ValueError(f"a field of kind {kind}")
            if end > stop:
                raise ValueError("a field that does not end")
            yield _Field(key >> 3, kind, start, begin, end)
            start = end

    def _number_at(self, at: int) -> tuple[int, int]:
        """A number, seven bits a byte from the lowest on, and where it ends."""
        found = 0
        for shift in range(0, 70, 7):
            byte = self._byte(at)
            at += 1
            found |= (byte & 127) << shift
            if byte < 128:
                return found, at
        raise ValueError("a number that does not end")

    def _byte(self, at: int) -> int:
        if not 0 <= at - self._at < len(self._seen):
            self._at, self._seen = at, self._bytes(at, at + _READ)
            if not self._seen:
                raise ValueError("a number behind the end")
        return self._seen[at - self._at]

    def _bytes(self, start: int, stop: int) -> bytes:
        return bytes(self._content[start:stop])


def _number(value: int) -> bytes:
    """A number as a message has it."""
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    return bytes([*made, value])
