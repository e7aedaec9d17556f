"""Tiles in PySim: their work done, in memory that checks watch."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator

from compassc.ir.dtypes import INT32, DataType

from ..language.dispatch import LOCAL
from ..language.python_operators import BINARY, PREFIX
from ..language.tiles.machine import Work, op
from ..language.tiles.tile import error
from ..language.tiles.values import Number
from .memory import PyBuffer, PyPointer, Storage, index_of
from .tensor_parts import loaded, stored
from .tile_plans import elementwise
from .values import PyVar, number, python_number
from .whole_tiles import computed, known, lanes_of

_OPERATORS: dict[str, Callable[..., object]] = {
    **BINARY,
    "and": lambda a, b: bool(a) and bool(b),
    "or": lambda a, b: bool(a) or bool(b),
}


class _Held:
    """A vector variable."""

    def __init__(self, value: object) -> None:
        self.value = value

    def get(self) -> object:
        return self.value

    def set(self, value: object) -> None:
        self.value = value


class PyMachine:
    """Work on tiles, done where it stands: a tile is in memory as soon as it is made."""

    eager = True
    elementwise = elementwise
    loaded = loaded
    stored = staticmethod(stored)
    computed = staticmethod(computed)
    values = staticmethod(known)
    sample = staticmethod(lanes_of)

    @staticmethod
    def width(columns: int) -> int:
        return columns if columns > 1 else 8

    @staticmethod
    def loop(start: int, stop: int, step: int, body: Callable[[object], None]) -> None:
        for i in range(start, stop, step):
            body(i)

    @staticmethod
    def when(condition: object, body: Callable[[], None]) -> None:
        if condition:
            body()

    @staticmethod
    def do(name: str, *args: object) -> None:
        op(name)(*args)

    @staticmethod
    def let(name: str, value: object) -> object:
        return value

    @staticmethod
    def variable(name: str, value: object) -> _Held:
        return _Held(value)

    @staticmethod
    def allocate(dtype: DataType, count: int, name: str) -> PyPointer:
        storage = Storage.fresh(count * dtype.bytes, f"the tile {name!r}" if name else "a tile")
        return PyPointer(LOCAL.tec.session.watched(storage, True, False), 0, dtype, "lsram")

    @staticmethod
    def retyped(pointer: PyPointer, kind: str) -> PyPointer:
        return pointer.as_ptr(kind)

    @staticmethod
    def store(pointer: PyPointer, value: object) -> None:
        pointer[0] = value

    @staticmethod
    def binary(symbol: str, a: object, b: object) -> object:
        return _OPERATORS[symbol](a, b)

    @staticmethod
    def missing(condition: object) -> bool:
        return not condition

    @staticmethod
    def unary(symbol: str, a: object) -> object:
        return PREFIX[symbol](a)

    @staticmethod
    def constant(x: object) -> int | None:
        if type(x) is PyVar and x.dtype is INT32:
            return int(x.value)
        return operator.index(x) if hasattr(x, "__index__") else None

    @staticmethod
    def operand(x: object, what: str) -> object:
        x = python_number(x)
        if type(x) in (int, float, bool) or (type(x) is PyVar and x.dtype.is_scalar):
            return x
        raise error(f"{what} with {x!r}", "tiles go together with tiles, scalars and numbers")

    @staticmethod
    def offsets(offsets: tuple[Number, ...], sizes: tuple[Number, ...]) -> tuple[Number, ...]:
        reach, found = 0, []
        for offset, size in zip(offsets, sizes):
            number = int(offset.value) if isinstance(offset, PyVar) and offset.dtype is INT32 else offset
            if type(number) is not int or type(size) is not int:
                return offsets
            reach = reach * size + abs(number) + size
            found.append(number)
        return tuple(found) if reach <= INT32.range()[1] else offsets

    @staticmethod
    def tensor(x: object) -> tuple[PyPointer, tuple[int, ...]]:
        if not isinstance(x, PyBuffer) or not x.scope.startswith("global"):
            raise error(
                f"a tensor is a buffer in device memory, this is {x!r}",
                "give the parameter a shape: t = S.match_buffer(p, (rows, cols))",
            )
        return x.addr_of(0), x.shape

    @staticmethod
    def pack(packed: Work) -> None:
        packed.work()

    @staticmethod
    def add_up(sums: Work) -> None:
        sums.work()

    @staticmethod
    def shared_loop(counts: tuple[object, ...], stages: int) -> Iterator[object]:
        sizes = [index_of(c, "a count of S.parallel_tiles") for c in counts]
        tec = LOCAL.tec
        for turn in range(tec.id, math.prod(sizes), tec.session.local_size):
            places: list[int] = []
            rest = turn
            for size in reversed(sizes[1:]):
                rest, place = divmod(rest, size)
                places.append(place)
            found = tuple([number(p, INT32) for p in (rest, *reversed(places))])
            yield found if len(found) > 1 else found[0]
            if stages > 1:
                tec.forget_tiles()
