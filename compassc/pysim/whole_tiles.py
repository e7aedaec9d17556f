"""Tiles computed as a whole: the lanes of all rows at once, with the bits that the work row by row gives."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from compass_core.arrays import Array
from compassc.ir.dtypes import FLOAT32, INT32, DataType
from compassc.ops.numeric import convert, np_dtype

from ..language.tiles.dot import Product
from ..language.tiles.machine import op
from ..language.tiles.moves import JOINS, Reduced, identity
from ..language.tiles.storage import Shape, Storage, extents
from ..language.tiles.tile import Constant, Elementwise, Index, Known, Stored
from . import fp
from .meanings.arithmetic import tree_sum
from .meanings.compare import halved
from .memory import PyPointer
from .values import PyVar

_ACROSS: dict[str, Callable[[Array], Array]] = {
    "max": partial(halved, fp.larger),
    "min": partial(halved, fp.smaller),
}
"""What the lanes of rows of one register come to."""


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
    flat = np.resize(values, 2) if values.size == 1 else values.reshape(-1)
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
    return _lanes(values if values.shape == size else np.broadcast_to(values, size), dtype)


def _stored(tile: Stored) -> Array:
    return place(tile.storage)


def _known(tile: Known) -> Array:
    assert isinstance(tile.values, np.ndarray)
    return tile.values


def _constant(tile: Constant) -> Array:
    assert isinstance(tile.value, PyVar)
    return np.full(extents(tile.shape), tile.value.value)


def _index(tile: Index) -> Array:
    found: Array = np.indices(extents(tile.shape), np_dtype(INT32))[0 if tile.along_rows else 1]
    return found


def _elementwise(tile: Elementwise) -> Array:
    assert isinstance(tile.sample, PyVar)
    return _matrix(tile.sample, extents(tile.shape))


def _converted(values: Array, source: DataType, to: DataType) -> Array:
    if source is to:
        return values
    found: PyVar = op("cast")(_lanes(values, source), str(to))
    return _matrix(found, (values.shape[0], values.shape[1]))


def _reduced(tile: Reduced) -> Array:
    values, joined = _converted(values_of(tile.tile), tile.tile.dtype, tile.joined), tile.joined
    if tile.axis == 0 and values.shape[1] > 1:
        total = values[:1]
        for k in range(1, len(values)):
            total = _joined(tile, total, values[k : k + 1])
    else:
        total = _across(tile, values.reshape(1, -1) if tile.axis == 0 else values)
    return _converted(total, joined, tile.dtype)


def _joined(tile: Reduced, a: Array, b: Array) -> Array:
    found: PyVar = op(JOINS[tile.how][1])(_lanes(a, tile.joined), _lanes(b, tile.joined))
    return _matrix(found, (a.shape[0], a.shape[1]))


def _across(tile: Reduced, values: Array) -> Array:
    """Each row, joined in the order that `Reduced` tells."""
    native = tile.joined.native_lanes
    rows, cols = values.shape
    lanes = native * min(4, -(-cols // native))
    if rest := -cols % lanes:
        nothing = op("cast")(identity(tile.how, tile.joined), tile.joined).value
        values = np.concatenate([values, np.full((rows, rest), nothing, values.dtype)], axis=1)
    total = values[:, :lanes]
    for j in range(lanes, values.shape[1], lanes):
        total = _joined(tile, total, values[:, j : j + lanes])
    parts = [total[:, j : j + native] for j in range(0, lanes, native)]
    while len(parts) > 1:
        parts = [_joined(tile, a, b) for a, b in zip(parts[::2], parts[1::2])] + parts[len(parts) & ~1 :]
    if tile.how != "sum":
        return _ACROSS[tile.how](parts[0])
    if tile.joined.is_floating:
        return tree_sum(parts[0])[:, None]
    return np.add.reduce(parts[0], axis=1, dtype=values.dtype, keepdims=True)


def _product(tile: Product) -> Array:
    """Exact for integers; floats are fused in the order of the depth, as everywhere, but for all elements at once."""
    left, right, total = (values_of(x) for x in (tile.a, tile.b, tile.acc))
    right = right.T if tile.transposed else right
    if tile.dtype.is_integer:  # sums of products of bytes are exact in double
        sums = (left.astype(np.float64) @ right.astype(np.float64)).astype(np.int64)
        return (total + sums).astype(np_dtype(tile.dtype))
    a, b = (convert(x, part.dtype, FLOAT32) for x, part in ((left, tile.a), (right, tile.b)))
    return fp.fused_product(a, b, total)


_VALUES: dict[type, Callable[..., Array]] = {
    Stored: _stored,
    Constant: _constant,
    Index: _index,
    Elementwise: _elementwise,
    Known: _known,
    Reduced: _reduced,
    Product: _product,
}
