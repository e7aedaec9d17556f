"""Memory of an interpreted kernel: pieces of bytes, addresses in them, and what is copied between them.

Every access is checked against the piece that it is in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from compass_core.arrays import Array
from compass_core.errors import CompassError
from compass_core.namedtuple import NamedTuple

from ...ir.dtypes import DataType
from ...ops.numeric import np_dtype

if TYPE_CHECKING:
    import numpy as np

else:
    from compass_core.lazy import np

UNSET = 77
"""Every byte of memory that nobody wrote."""


class OutOfBounds(CompassError):
    """A kernel touched what no buffer has."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="bounds")


class Memory:
    """One piece of memory: its bytes, seen as elements of any type."""

    def __init__(self, data: Array, name: str) -> None:
        self.data, self.name = data, name
        self._views: dict[tuple[DataType, int], Array] = {}

    @staticmethod
    def unset(size: int, name: str) -> Memory:
        """New memory of `size` bytes."""
        return Memory(np.full(size, UNSET, np.uint8), name)

    def view(self, elem: DataType, phase: int) -> Array:
        """The elements of a type that begin `phase` bytes after the first byte."""
        found = self._views.get((elem, phase))
        if found is None:
            kind = np_dtype(elem)
            count = max(self.data.size - phase, 0) // kind.itemsize
            found = self._views[elem, phase] = self.data[phase : phase + count * kind.itemsize].view(kind)
        return found


class Address(NamedTuple):
    """A place in memory: `offset` bytes from its beginning."""

    memory: Memory
    offset: int

    def moved(self, by: int) -> Address:
        """The address so many bytes further."""
        return Address(self.memory, self.offset + by)


def elements(address: Address | None, elem: DataType, first: int, last: int) -> tuple[Array, int]:
    """The elements of a piece of memory, and which of them is the one at an address. OutOfBounds where it does not have
    those from `first` to `last` behind the address, or the address is null."""
    if address is None:
        raise CompassError("a null pointer is accessed", code="null")
    base, phase = divmod(address.offset, elem.bytes)
    view = address.memory.view(elem, phase)
    if base + first < 0 or base + last >= len(view):
        raise OutOfBounds(
            f"elements {base + first} to {base + last} of {elem} in '{address.memory.name}', which has {len(view)}"
        )
    return view, base


def span(address: Address, begin: int, size: int) -> Array:
    """`size` bytes from `begin` bytes behind an address on."""
    view, base = elements(address, _BYTE, begin, begin + size - 1)
    return view[base + begin : base + begin + size]


_BYTE = DataType("uint8")


def position(shape: Sequence[int], indices: Sequence[Any], mask: Array | None) -> Any:
    """Which element of a row-major buffer of a shape some indices are; of indices of lanes those of the active lanes are
    checked. OutOfBounds names both."""
    found: Any = 0
    for extent, index in zip(shape, indices, strict=True):
        outside = (index < 0) | (index >= extent)
        if outside is not False and np.any(
            outside if mask is None else outside & mask
        ):  # False of an index of no lanes
            raise OutOfBounds(f"element {[str(i) for i in indices]} of a buffer of {tuple(shape)}")
        found = found * extent + index
    return found


def load(address: Address, kind: DataType, at: int) -> Any:
    """Element `at` of those of type `kind` behind an address: an integer, a NumPy scalar, or the lanes of a vector."""
    lanes = kind.lanes
    view, base = elements(address, kind.element_of, at * lanes, at * lanes + lanes - 1)
    if lanes > 1:
        return view[base + at * lanes : base + at * lanes + lanes].copy()
    value = view[base + at]
    return value.item() if kind.is_integer else value


def store(address: Address, kind: DataType, at: int, value: object) -> None:
    """Write what `load` reads."""
    lanes = kind.lanes
    view, base = elements(address, kind.element_of, at * lanes, at * lanes + lanes - 1)
    view[base + at * lanes : base + at * lanes + lanes] = value


def _places(kind: DataType, at: Array, mask: Array | None) -> tuple[Array, Array, int, int]:
    """Elements by lane, whether each is active, and the least and the largest that is."""
    active = np.ones(len(at), bool) if mask is None else np.asarray(mask)
    if kind.lanes > 1:
        at = (np.asarray(at)[:, None] * kind.lanes + np.arange(kind.lanes)).reshape(-1)
        active = np.repeat(active, len(at) // len(active)) if len(active) < len(at) else active
    used = at[active]
    return at, active, *((int(used.min()), int(used.max())) if used.size else (0, -1))


def load_lanes(address: Address, kind: DataType, at: Array, mask: Array | None) -> Array:
    """The elements `at`, a lane each; 0 where the mask is not active."""
    at, active, first, last = _places(kind, at, mask)
    found = np.zeros(len(at), np_dtype(kind))
    if first <= last:
        view, base = elements(address, kind.element_of, first, last)
        found[active] = view[base + at[active]]
    return found


def store_lanes(address: Address, kind: DataType, at: Array, mask: Array | None, value: Array) -> None:
    """Write what `load_lanes` reads: of equal places the last lane's value stays."""
    at, active, first, last = _places(kind, at, mask)
    if first <= last:
        view, base = elements(address, kind.element_of, first, last)
        for place, x in zip((base + at[active]).tolist(), np.broadcast_to(value, len(at))[active]):
            view[place] = x


def copy(to: Address, source: Address, width: int, source_step: int, total: int, step: int) -> None:
    """`total` bytes in rows of `width`, whose beginnings are `step` and `source_step` bytes apart."""
    rows = total // width if width > 0 else 0
    if width < 0 or total < 0 or rows * width != total:
        raise CompassError(f"a transfer of {total} bytes in rows of {width}", code="dma-size")
    for row in range(rows):
        span(to, row * step, width)[:] = span(source, row * source_step, width)


def fill(to: Address, size: int, value: int, itemsize: int) -> None:
    """`size` bytes of elements of `itemsize` bytes with the low bits of `value`."""
    if size > 0:
        pattern = np.frombuffer((value & ((1 << 8 * itemsize) - 1)).to_bytes(itemsize, "little"), np.uint8)
        span(to, 0, size)[:] = np.resize(pattern, size)


def transpose(
    source: Address, to: Address, cols: int, rows: int, source_step: int, step: int, *, itemsize: int
) -> None:
    """A matrix of `rows` x `cols` elements of `itemsize` bytes; steps are elements between its rows and those of `to`."""
    found = np.array([span(source, r * source_step * itemsize, cols * itemsize) for r in range(rows)])
    turned = found.reshape(rows, cols, itemsize).swapaxes(0, 1).reshape(cols, rows * itemsize)
    for c in range(cols):
        span(to, c * step * itemsize, rows * itemsize)[:] = turned[c]


def upsample(
    to: Address, source: Address, high: int, wide: int, size: int, pixels: int, source_step: int, step: int, row: int
) -> None:
    """`pixels` pixels of `size` bytes, `wide` times across and `high` times down; `row` are the pixels of a line of
    `to`, the other steps bytes between pixels."""
    found = [span(source, p * source_step, size).copy() for p in range(pixels)]
    for line in range(high):
        for p in range(pixels * wide):
            span(to, (line * row + p) * step, size)[:] = found[p // wide]
