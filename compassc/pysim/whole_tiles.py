"""Tiles computed as a whole: the lanes of all rows at once, with the bits that the work row by row gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, cast

import numpy as np

from compass_core.arrays import Array, NumpyDType
from compassc.ir.dtypes import FLOAT32, DataType
from compassc.ops.numeric import convert, np_dtype

from ..language.tiles.dot import Product
from ..language.tiles.machine import Machine, op
from ..language.tiles.moves import JOINS, Reduced, identity
from ..language.tiles.storage import Shape, Storage, extents
from ..language.tiles.tile import Constant, Elementwise, Index, Known, Stored
from . import fp, loops
from .checks import arithmetic_checked
from .fast_paths import Function
from .meanings.arithmetic import tree_sum
from .meanings.compare import halved
from .memory import PyPointer
from .memory import Storage as Memory
from .values import PyVar

if TYPE_CHECKING:
    from ..language.tiles.values import Pointer

_JOINS: dict[str, tuple[Function, Function]] = {
    "sum": (np.add, np.add),
    "max": (np.maximum, fp.larger),
    "min": (np.minimum, fp.smaller),
}
"""What `moves.JOINS` does to lanes of integers, and of floats."""


class Resident(Stored):
    """A tile in memory, with a view of its elements, rows by columns. It begins at element `first` of what its memory holds."""

    def __init__(
        self, at: Machine, shape: Shape, dtype: DataType, memory: Memory, first: int, pitch: int, elements: Array
    ) -> None:
        self.at, self.shape, self.dtype = at, shape, dtype
        self.memory, self.first, self.pitch, self.elements = memory, first, pitch, elements

    @property
    def storage(self) -> Storage:
        pointer = PyPointer(self.memory, self.first * self.dtype.bytes, self.dtype, "lsram")
        return Storage(cast("Pointer", pointer), self.dtype, self.shape, self.pitch, self.memory, self.first)

    def part(self, bounds: Sequence[tuple[int, int]]) -> Stored:
        (first, stop), (left, right) = bounds if len(bounds) == 2 else ((0, 1), bounds[0])
        if left:
            return super().part(bounds)
        shape = (stop - first, right) if len(bounds) == 2 else (right,)
        elements, begin = self.elements[first:stop, :right], self.first + first * self.pitch
        return Resident(self.at, shape, self.dtype, self.memory, begin, self.pitch, elements)


@lru_cache(maxsize=1024)
def _layout(shape: Shape, kind: DataType) -> tuple[tuple[int, int], int, int, NumpyDType]:
    """Rows and columns; elements from row to row, and bytes of all, of a tile as `tile.allocate` lays it; their type."""
    (rows, cols), native = extents(shape), kind.native_lanes
    pitch = 1 if cols == 1 else cols + -cols % native
    count = rows * pitch
    return (rows, cols), pitch, (count + -count % native) * kind.bytes, np_dtype(kind)


def resident(at: Machine, shape: Shape, kind: DataType) -> Resident:
    """A tile in memory of its own, for elements that are written at once: nobody looks at what lies between its rows."""
    size, pitch, count, element = _layout(shape, kind)
    data = np.empty(count, np.uint8)
    elements = np.ndarray(size, element, data, 0, (pitch * kind.bytes, kind.bytes))
    return Resident(at, shape, kind, Memory(data, "a tile"), 0, pitch, elements)


def unwatched(tile: object) -> Array | None:
    """The elements of a tile, if no check wants to see that they are read; else None."""
    if type(tile) is Known:
        return _known(tile)
    if not isinstance(tile, Stored):
        return None
    return None if memory_of(tile).watch is not None else values_of(tile)


def memory_of(tile: Stored) -> Memory:
    """What a tile lies in."""
    pointer = tile.storage.pointer
    assert isinstance(pointer, PyPointer) and pointer.storage is not None
    return pointer.storage


def computed(tile: object, to: Storage) -> bool:
    """Compute a tile into a storage; whether there is a way to that as a whole."""
    values = known(tile)
    if values is not None:
        place(to, True)[:] = values
    return values is not None


def place(s: Storage, writes: bool = False) -> Array:
    """The memory of a tile, rows by columns, for reading or writing."""
    assert isinstance(s.pointer, PyPointer)
    return s.pointer.rows("a tile", *extents(s.shape), s.pitch, writes)


def _lanes(values: Array, dtype: DataType) -> PyVar:
    """A matrix as one vector; a single element fills two lanes, for one would be a scalar."""
    flat = values.reshape(-1)
    if flat.size == 1:
        flat = np.concatenate((flat, flat))
    return PyVar(flat, dtype.with_lanes(flat.size))


def _matrix(x: PyVar, shape: tuple[int, int]) -> Array:
    """A vector as the matrix whose lanes it has; a scalar stays one."""
    if x.dtype.is_scalar:
        return np.full(shape, x.value)
    found: Array = x.value[: shape[0] * shape[1]].reshape(shape)
    return found


def values_of(tile: object) -> Array:
    """The elements of a tile, rows by columns."""
    return _VALUES[type(tile)](tile)


def known(tile: object) -> Array | None:
    """The elements of a tile that is computed; None of one that is loaded."""
    values = _VALUES.get(type(tile))
    return None if values is None else values(tile)


def lanes_of(tile: object, dtype: DataType, shape: Shape) -> PyVar:
    """The elements of a tile that is spread over a shape, as one vector."""
    values, size = values_of(tile), extents(shape)
    if values.shape != size:
        values, narrow = np.empty(size, values.dtype), values
        values[:] = narrow
    return _lanes(values, dtype)


def _stored(tile: Stored) -> Array:
    return place(tile.storage)


def _resident(tile: Resident) -> Array:
    return tile.elements if tile.memory.watch is None else place(tile.storage)


def _known(tile: Known) -> Array:
    assert isinstance(tile.values, np.ndarray)
    return tile.values


def _constant(tile: Constant) -> Array:
    assert isinstance(tile.value, PyVar)
    return np.full(extents(tile.shape), tile.value.value)


def _index(tile: Index) -> Array:
    rows, cols = extents(tile.shape)
    found = np.empty((rows, cols), np.int32)
    found[:] = np.arange(rows, dtype=np.int32)[:, None] if tile.along_rows else np.arange(cols, dtype=np.int32)
    return found


def _elementwise(tile: Elementwise) -> Array:
    assert isinstance(tile.sample, PyVar)
    return _matrix(tile.sample, extents(tile.shape))


def _reduced(tile: Reduced) -> Array:
    values, joined = convert(values_of(tile.tile), tile.tile.dtype, tile.joined), tile.joined
    if tile.axis == 0 and values.shape[1] > 1:
        total, join = values[:1], _join(tile)
        for k in range(1, len(values)):
            total = join(total, values[k : k + 1])
    else:
        total = _across(tile, values.reshape(1, -1) if tile.axis == 0 else values)
    return convert(total, joined, tile.dtype)


def _join(tile: Reduced) -> Function:
    """The function of two arrays that joins their lanes."""
    kind = tile.joined
    return arithmetic_checked(JOINS[tile.how][1], _JOINS[tile.how][kind.is_floating], kind)


def _across(tile: Reduced, values: Array) -> Array:
    """Each row, joined in the order that `Reduced` tells."""
    native = tile.joined.native_lanes
    if tile.joined.is_floating:  # the largest of halves is the largest of these as floats
        found = loops.rows(tile.how, values.astype(np.float32, copy=False), native)
        if found is not None:
            return found.astype(values.dtype, copy=False)
    join, (rows, cols) = _join(tile), values.shape
    lanes = native * min(4, -(-cols // native))
    if rest := -cols % lanes:
        nothing = op("cast")(identity(tile.how, tile.joined), tile.joined).value
        values = np.concatenate([values, np.full((rows, rest), nothing, values.dtype)], axis=1)
    total = values[:, :lanes]
    for j in range(lanes, values.shape[1], lanes):
        total = join(total, values[:, j : j + lanes])
    parts = [total[:, j : j + native] for j in range(0, lanes, native)]
    while len(parts) > 1:
        parts = [join(a, b) for a, b in zip(parts[::2], parts[1::2])] + parts[len(parts) & ~1 :]
    if tile.how != "sum":
        return halved(join, parts[0])
    if tile.joined.is_floating:
        return tree_sum(parts[0])[:, None]
    return np.add.reduce(parts[0], axis=1, dtype=values.dtype, keepdims=True)


_EXACT_DEPTH = (1 << 24) // (255 * 255)
"""So many products of bytes have sums that are exact in float32, in any order; of more they are in double."""


def _product(tile: Product) -> Array:
    """Exact for integers; floats are fused in the order of the depth, as everywhere, but for all elements at once."""
    left, right, total = values_of(tile.a), values_of(tile.b), values_of(tile.acc)
    right = right.T if tile.transposed else right
    if tile.dtype.is_integer:
        exact = np.float32 if left.shape[1] <= _EXACT_DEPTH else np.float64
        sums = left.astype(exact) @ right.astype(exact)
        if exact is np.float64:
            sums = sums.astype(np.int64)  # which wraps
        found: Array = total + sums.astype(total.dtype)
        return found
    return fp.fused_product(convert(left, tile.a.dtype, FLOAT32), convert(right, tile.b.dtype, FLOAT32), total)


_VALUES: dict[type, Callable[..., Array]] = {
    Stored: _stored,
    Resident: _resident,
    Constant: _constant,
    Index: _index,
    Elementwise: _elementwise,
    Known: _known,
    Reduced: _reduced,
    Product: _product,
}
