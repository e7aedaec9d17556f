"""What the code that PySim makes of a kernel calls: the contents of variables, the items of loops, sides of conditions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TextIO

import numpy as np

from compass_core.arrays import Array
from compass_core.errors import CompassError
from compass_core.namedtuple import NamedTuple
from compassc.ir.dtypes import FLOAT32, INT32, DataType
from compassc.ops.core import get
from compassc.ops.numeric import np_dtype
from compassc.ops.typing import fits

from ..language import api
from .impl import pysim_impl
from .memory import PyBuffer, PyPointer, Storage
from .values import PINNED, PyVar, of_numpy, python_number

_INT32: Callable[[int], Array] = np_dtype(INT32).type
_FLOAT32: Callable[[float], Array] = np_dtype(FLOAT32).type


def bound(value: object) -> object:
    """The content of a variable after `x = value`."""
    if type(value) is PyVar:
        is_pinned = PINNED and hasattr(value, "pinned")
        if value.dtype.is_scalar:
            return PyVar(value.value[()], value.dtype) if is_pinned else value
        return PyVar(value.value.copy() if is_pinned else value.value, value.dtype)
    if type(value) is int:
        if not fits(value, INT32):
            raise CompassError(f"{value} does not fit int32", code="literal", help=f"give it a type: S.u32({value})")
        return PyVar(_INT32(value), INT32)
    if type(value) is float:
        return PyVar(_FLOAT32(value), FLOAT32)
    if type(value) is tuple or type(value) is list:  # each item is what it is now
        return type(value)([bound(x) if type(x) in (PyVar, tuple, list) else x for x in value])
    if isinstance(value, np.generic):
        return bound(python_number(value)) if python_number(value) is not value else value
    if type(value) is np.ndarray:
        raw = np.ascontiguousarray(value)
        data = raw.reshape(-1).view(np.uint8).copy()
        return PyBuffer(Storage(data, "a constant table"), 0, of_numpy(raw.reshape(-1)[0]).dtype, "constant", raw.shape)
    return value


def fresh(value: object) -> object:
    """As `bound`, for a right side that computed a new value, which no other variable holds."""
    return value if type(value) is PyVar else bound(value)


def copied(value: object) -> object:
    """As `bound`, where the address of a variable is taken: two names must not be one variable, nor share its memory,
    which an operation may give as its result (`S.min`)."""
    found = bound(value)
    if type(found) is tuple or type(found) is list:
        return type(found)(map(copied, found))
    if type(found) is not PyVar:
        return found
    return PyVar(found.value[()] if found.dtype.is_scalar else found.value.copy(), found.dtype)


def assigned(old: object, new: object) -> object:
    """The content of a variable whose address is taken, after `x = new`: its pointers see the new value."""
    if type(old) is PyVar and hasattr(old, "pinned") and type(new) is PyVar and new.dtype is old.dtype:
        old.value[...] = new.value
        return old
    return new


def named(storage: object, name: str) -> object:
    """The content of `name` after `name = S.alloc...(...)`: errors call the memory by that name."""
    if isinstance(storage, PyPointer) and storage.storage is not None:
        storage.storage.name = f"{storage.scope} array {name}"
    return storage


def shown(
    *values: object, sep: str | None = " ", end: str | None = "\n", file: TextIO | None = None, flush: bool = False
) -> None:
    """Python's `print`, in one piece: TECs print at the same time."""
    text = (" " if sep is None else sep).join(map(str, values))
    print(text + ("\n" if end is None else end), end="", file=file, flush=flush)


def is_none(x: object) -> bool:
    """`x is None`, of a pointer whether it is null."""
    return x is None or (isinstance(x, PyPointer) and x.is_nullptr)


def _bound_type(bound: object) -> DataType | None:
    """The type of a loop bound; None for Python numbers."""
    found = bound.dtype if type(bound) is PyVar else None
    return found if found is not None and found.is_scalar and found.is_integer else None


def loop_dtype(bounds: Sequence[object]) -> DataType:
    """The type of a loop variable: that of a single bound; of two, the sign of the start and the wider of both."""
    types = [_bound_type(b) for b in bounds[:2]]
    start, stop = (types[0], types[0]) if len(types) == 1 else types
    if start is None:
        return INT32 if stop is None or len(types) == 2 else stop
    return start if stop is None or stop.bits <= start.bits else start.with_bits(stop.bits)


def counted(iterable: Iterable[object], bounds: Sequence[object]) -> Iterator[object]:
    """The items of a loop, Python ints as typed variables. `bounds` are the arguments of the loop constructor."""
    dtype = loop_dtype(bounds) if bounds else INT32
    each = [_bound_type(b) or INT32 for b in bounds]
    kind = np_dtype(dtype).type
    for item in iterable:
        if type(item) is int:
            yield PyVar(kind(item), dtype)
        elif type(item) is tuple and len(item) == len(each):
            yield tuple([PyVar(np_dtype(t).type(i), t) if type(i) is int else i for i, t in zip(item, each)])
        else:
            yield item


_FEW = 16
"""Loops of fewer iterations make their numbers one by one, for an array takes longer."""
_MAX_ARRAY = 1 << 14
"""Loops of more iterations make their numbers one by one."""


_COUNTING = frozenset((range, api.grid, api.vectorized, api.unroll, api.tec_range, api.pipelined))


def loop(call: Callable[..., Iterable[object]], *bounds: object, **options: object) -> Iterable[object]:
    """`call(*bounds, **options)` in the head of a loop: typed numbers of `range` and the loops of `S`; other sequences are
    constant."""
    iterable = call(*bounds, **options)
    if call not in _COUNTING:
        return iterable
    if type(iterable) is range and 0 < len(iterable) <= _MAX_ARRAY:
        dtype = loop_dtype(bounds)
        kind = np_dtype(dtype)
        low, high = dtype.range()
        if low <= iterable[0] <= high and low <= iterable[-1] <= high:
            few = len(iterable) < _FEW
            return map(PyVar, map(kind.type, iterable) if few else np.array(iterable, kind), itertools.repeat(dtype))
    return counted(iterable, bounds)


def known(value: object) -> object:
    """A number that is known while a kernel is compiled: a shape or the number of lanes may be made of it."""
    if type(value) is not PyVar:
        return value
    found = PyVar(value.value, value.dtype)
    found.known = True
    return found


class Sides(NamedTuple):
    """Both sides of a conditional expression whose condition is a mask."""

    mask: PyVar

    def __and__(self, _side: int) -> bool:
        return True


def sides(condition: object) -> Sides | int:
    """Which sides of a conditional expression are computed: 1 for the first, 2 for the second, or both."""
    if type(condition) is PyVar and condition.dtype.is_mask:
        return Sides(condition)
    return 1 if condition else 2


def chosen(which: Sides | int, a: object, b: object) -> object:
    """The value of a conditional expression."""
    if which == 1:
        return a
    return b if which == 2 else pysim_impl(get("vsel"))(a, b, which.mask)  # type: ignore[union-attr]
