"""Binary records declared as data: one declaration per record gives its reader and its writer.

`@record(...)` makes an immutable value class out of annotated attributes and a layout (field declarations in file order);
`decode` and `encode` are derived from it. All numbers are little endian. Decoding never trusts a count: a list can only be as long as the bytes
that are left allow, and every error names the place, the field and the offset.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence, Sized
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

from compass_core.errors import CompassError
from compass_core.files.pieces import Pieces
from compass_core.namedtuple import NamedTuple

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: object) -> Callable[[T], T]:
        """For type checkers only: `record` classes have a constructor like dataclasses."""
        return lambda function: function


T = TypeVar("T")


class AipuBinError(CompassError):
    """An aipu.bin (or a structure meant to become one) breaks a rule of the format.

    `place` is the header, section or note, `field` the field in it, `offset` the byte offset inside that place, or
    None where no single offset is to blame. `code` is the driver's name of the refusal, in lower case.
    """

    def __init__(
        self,
        message: str,
        *,
        place: str = "",
        field: str = "",
        offset: int | None = None,
        code: str = "invalid-gbin",
        help: str = "",
    ) -> None:
        where = ", ".join(
            part
            for part in (place, f"field '{field}'" if field else "", f"offset {offset:#x}" if offset else "")
            if part
        )
        if offset == 0:
            where += ", offset 0"
        super().__init__(f"{where}: {message}" if where else message, code=code, help=help)
        self.place = place
        self.field = field
        self.offset = offset


@cache
def _coding(fmt: str) -> struct.Struct:
    """Of numbers one after another."""
    return struct.Struct("<" + fmt)


class Cursor:
    """A reading position in the bytes of one named place. Records can be read where these are in memory."""

    def __init__(self, source: bytes | memoryview | Pieces, place: str) -> None:
        self.source = source if isinstance(source, Pieces) else memoryview(source)
        self.data = memoryview(b"") if isinstance(self.source, Pieces) else self.source
        self.size = len(source)
        self.place = place
        self.pos = 0
        self.path: list[tuple[str, Sized | None]] = []
        """Where in the place the position is: names, with the list whose next item is being read."""

    @property
    def remaining(self) -> int:
        return self.size - self.pos

    def fail(self, field: str, message: str, offset: int | None = None) -> AipuBinError:
        """The error for `field` of the record being read; `offset` defaults to the reading position."""
        return AipuBinError(
            message,
            place=self.place,
            field=".".join([*(n if items is None else f"{n}[{len(items)}]" for n, items in self.path), field]),
            offset=self.pos if offset is None else offset,
        )

    def take(self, size: int, field: str) -> bytes:
        """The next `size` bytes."""
        return bytes(self.pass_over(size, field))

    def pass_over(self, size: int, field: str) -> memoryview | Pieces:
        """The next `size` bytes, where they are."""
        if size > self.remaining:
            raise self.fail(field, f"{size} bytes are announced, but only {self.remaining} are left")
        out = self.source[self.pos : self.pos + size]
        self.pos += size
        return out

    def number(self, fmt: str, field: str) -> Any:
        """The next value of the struct format `fmt`."""
        coding, start = _coding(fmt), self.pos
        if start + coding.size > len(self.data):
            return coding.unpack(self.take(coding.size, field))[0]
        self.pos = start + coding.size
        return coding.unpack_from(self.data, start)[0]

    def too_many(self, length: int, item_size: int, name: str) -> AipuBinError:
        """The error for the list `name` whose count says more than the bytes that are left."""
        return self.fail(
            f"{name} count",
            f"{length} items of {item_size} bytes or more are announced, but only {self.remaining} bytes are left",
        )


class Scalar(NamedTuple):
    """A number (struct code `fmt`), or `repeat` of them as a tuple; `counts` names the list whose length it stores."""

    name: str
    fmt: str
    repeat: int = 0
    counts: str = ""

    @property
    def codes(self) -> str:
        return f"{self.repeat}{self.fmt}" if self.repeat and self.fmt != "s" else self.fmt

    @property
    def size(self) -> int:
        return struct.calcsize("<" + self.codes)


_FEW = tuple(map(_coding, ("", "I", "II", "III", "IIII")))
"""For short lists of numbers, which are most."""


class Numbers(NamedTuple):
    """A list of u32; its count is stored right before it, or earlier when a `count_of` names it."""

    name: str

    def decode(self, cursor: Cursor, length: int) -> tuple[int, ...]:
        if not length:
            return ()
        start = cursor.pos
        if 4 * length > cursor.size - start:
            raise cursor.too_many(length, 4, self.name)
        cursor.pos = start + 4 * length
        coding = _FEW[length] if length < len(_FEW) else struct.Struct(f"<{length}I")
        return coding.unpack_from(cursor.data, start)

    def encode(self, value: Sequence[int]) -> bytes:
        return struct.pack(f"<{len(value)}I", *value)


class Records(NamedTuple):
    """A list of records of class `item`, counted like `Numbers`."""

    name: str
    item: type

    def decode(self, cursor: Cursor, length: int) -> tuple[Any, ...]:
        if not length:
            return ()
        layout = _LAYOUTS[self.item]
        if length * layout.min_size > cursor.size - cursor.pos:
            raise cursor.too_many(length, layout.min_size, self.name)
        items: list[Any] = []
        cursor.path.append((self.name, items))
        layout.decode(cursor, length, items)
        cursor.path.pop()
        return tuple(items)

    def encode(self, value: Sequence[object]) -> bytes:
        return b"".join(map(encode, value))


class Custom(NamedTuple):
    """A field with its own coding: `read(cursor, field name)` and `write(value)`."""

    name: str
    min_size: int
    read: Callable[[Cursor, str], Any]
    write: Callable[[Any], bytes]

    def decode(self, cursor: Cursor, length: int) -> Any:
        return self.read(cursor, self.name)

    def encode(self, value: object) -> bytes:
        return self.write(value)


Field = Scalar | Numbers | Records | Custom


def u16(name: str) -> Scalar:
    return Scalar(name, "H")


def u32(name: str) -> Scalar:
    return Scalar(name, "I")


def i32(name: str) -> Scalar:
    return Scalar(name, "i")


def f32(name: str) -> Scalar:
    return Scalar(name, "f")


def u16s(name: str, repeat: int) -> Scalar:
    return Scalar(name, "H", repeat)


def u32s(name: str, repeat: int) -> Scalar:
    return Scalar(name, "I", repeat)


def i32s(name: str, repeat: int) -> Scalar:
    return Scalar(name, "i", repeat)


def chars(name: str, size: int) -> Scalar:
    return Scalar(name, f"{size}s")


def count_of(name: str) -> Scalar:
    """A u32 that stores the length of the list `name`, which follows later in the record."""
    return Scalar(f"{name} count", "I", counts=name)


class _Run:
    """Neighbouring scalars, read and written by one struct."""

    def __init__(self, scalars: Sequence[Scalar]) -> None:
        self.scalars = tuple(scalars)
        self.struct = struct.Struct("<" + "".join(s.codes for s in scalars))
        self.unpack, self.size = self.struct.unpack_from, self.struct.size
        self.names = tuple(s.counts or s.name for s in scalars)
        picks: list[int | slice] = []
        at = 0
        for scalar in self.scalars:
            picks.append(slice(at, at + scalar.repeat) if scalar.repeat else at)
            at += scalar.repeat or 1
        self.group = itemgetter(*picks, slice(0)) if at > len(picks) else None

    def short(self, cursor: Cursor) -> AipuBinError:
        """The error for the first scalar that the remaining bytes do not hold."""
        offset = cursor.pos
        for scalar in self.scalars:
            if offset + scalar.size > len(cursor.data):
                break
            offset += scalar.size
        return cursor.fail(scalar.name, f"truncated: {len(cursor.data) - offset} bytes left of {scalar.size}", offset)

    def encode(self, obj: object) -> bytes:
        flat: list[Any] = []
        for scalar in self.scalars:
            value: Any = len(getattr(obj, scalar.counts)) if scalar.counts else getattr(obj, scalar.name)
            flat += value if scalar.repeat else [value]
        try:
            return self.struct.pack(*flat)
        except (struct.error, OverflowError) as error:
            raise self._unfit(obj) from error

    def _unfit(self, obj: object) -> AipuBinError:
        """The error for the first scalar whose value the format cannot hold."""
        for scalar in self.scalars:
            if scalar.counts:
                continue
            value = getattr(obj, scalar.name)
            try:
                struct.pack("<" + scalar.codes, *(value if scalar.repeat else [value]))
            except (struct.error, OverflowError):
                return AipuBinError(
                    f"{value!r} does not fit its {scalar.size} bytes", place=type(obj).__name__, field=scalar.name
                )
        return AipuBinError("a list is too long for its count", place=type(obj).__name__)


class Layout:
    """The fields of one record class, in file order. `min_size` is the size of a record whose lists are empty."""

    def __init__(self, cls: type, items: Sequence[Field]) -> None:
        self.cls = cls
        self.items = tuple(items)
        self.names = tuple(name for name in cls.__annotations__ if not name.startswith("_"))
        self.defaults = {name: vars(cls)[name] for name in self.names if name in vars(cls)}
        declared = {i.name for i in items if not (isinstance(i, Scalar) and i.counts)}
        if declared != set(self.names):
            raise TypeError(f"the layout of {cls.__name__} and its attributes differ")
        counted = {i.counts for i in items if isinstance(i, Scalar) and i.counts}
        self.steps: list[_Run | Numbers | Records | Custom] = []
        run: list[Scalar] = []
        for item in items:
            if isinstance(item, Scalar):
                run.append(item)
                continue
            if not isinstance(item, Custom) and item.name not in counted:
                run.append(count_of(item.name))
            if run:
                self.steps.append(_Run(run))
                run = []
            self.steps.append(item)
        if run:
            self.steps.append(_Run(run))
        self.min_size = sum(map(_least, self.steps))
        self._reading = [(s, "", None) if isinstance(s, _Run) else (None, s.name, s.decode) for s in self.steps]

    def decode(self, cursor: Cursor, length: int, items: list[Any]) -> None:
        """Adds so many records to `items`. One loop for all of them, since a file has hundreds; the length of a list has the
        name of the list until the list is there."""
        data, cls, create, give = cursor.data, self.cls, object.__new__, object.__setattr__
        for _ in range(length):
            values: dict[str, Any] = {}
            for run, name, read in self._reading:
                if run is not None:
                    try:
                        raw = run.unpack(data, cursor.pos)
                    except struct.error:
                        raise run.short(cursor) from None
                    cursor.pos += run.size
                    values.update(zip(run.names, run.group(raw) if run.group else raw))
                elif read is not None:
                    values[name] = read(cursor, values.get(name, 0))
            made: Any = create(cls)
            give(made, "__dict__", values)
            items.append(made)

    def encode(self, obj: object) -> bytes:
        parts = []
        for step in self.steps:
            if isinstance(step, _Run):
                parts.append(step.encode(obj))
                continue
            try:
                parts.append(step.encode(getattr(obj, step.name)))
            except struct.error as error:
                raise AipuBinError(
                    f"a value does not fit its field ({error})", place=type(obj).__name__, field=step.name
                ) from error
        return b"".join(parts)


def _least(step: _Run | Numbers | Records | Custom) -> int:
    """The bytes a step has at least."""
    if isinstance(step, _Run):
        return step.struct.size
    return step.min_size if isinstance(step, Custom) else 0


_LAYOUTS: dict[type, Layout] = {}


class _RecordMethods:
    """Methods of every record class. Plain methods, not generated code: importing forty classes must cost nothing."""

    def __init__(self, *args: object, **values: object) -> None:
        layout = _LAYOUTS[type(self)]
        given = {**layout.defaults, **dict(zip(layout.names, args, strict=False)), **values}
        if len(args) > len(layout.names) or given.keys() != set(layout.names):
            odd = sorted(given.keys() ^ set(layout.names))
            raise TypeError(f"{type(self).__name__}: missing, unknown or too many values: {', '.join(odd) or args}")
        self.__dict__.update(given)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; use replace()")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(tuple(self.__dict__[name] for name in _LAYOUTS[type(self)].names))

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={self.__dict__[name]!r}" for name in _LAYOUTS[type(self)].names)
        return f"{type(self).__name__}({values})"


@dataclass_transform(frozen_default=True)
def record(*items: Field) -> Callable[[type[T]], type[T]]:
    """Class decorator: an immutable value class from its annotated attributes, with the layout `items` in the file."""

    def attach(cls: type[T]) -> type[T]:
        _LAYOUTS[cls] = Layout(cls, items)
        for name in ("__init__", "__setattr__", "__eq__", "__hash__", "__repr__"):
            setattr(cls, name, vars(_RecordMethods)[name])
        return cls

    return attach


def replace(obj: T, **changes: object) -> T:
    """A copy of a record with other values for some attributes."""
    return type(obj)(**{**vars(obj), **changes})


def layout_of(cls: type) -> Layout:
    """The declared layout of a record class."""
    return _LAYOUTS[cls]


def decode(cls: type[T], cursor: Cursor) -> T:
    """Reads one record of class `cls`; AipuBinError when the bytes do not hold one."""
    made: list[T] = []
    _LAYOUTS[cls].decode(cursor, 1, made)
    return made[0]


def encode(obj: object) -> bytes:
    """The bytes of one record; AipuBinError when a value does not fit its field."""
    return _LAYOUTS[type(obj)].encode(obj)
