"""Work on the elements of tiles: which vectors it takes and gives is found out once for operands of each shape and type."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import cast

import numpy as np

from compass_core.arrays import Array
from compass_core.namedtuple import NamedTuple
from compassc.ir.dtypes import DataType

from ..language.tiles.machine import Machine
from ..language.tiles.storage import Shape, extents
from ..language.tiles.tile import Known, Tile, element_by_element
from ..language.tiles.values import Computed
from .values import PyVar
from .whole_tiles import values_of


class _Plan(NamedTuple):
    """The result, a vector with a lane per element, and the vectors that operands are; None of scalars."""

    shape: Shape
    size: tuple[int, int]
    lanes: DataType
    element: DataType
    operands: tuple[DataType | None, ...]


_MOST = 4096
_plans: dict[object, _Plan] = {}


def elementwise(
    at: Machine, function: Callable[..., Computed], operands: tuple[object, ...], what: str, key: Hashable
) -> Tile:
    """`function` of elements. Functions of one key do the same with values of one type; None has no function but this one."""
    known = None if key is None else _key(key, operands)
    plan = _plans.get(known)
    if plan is not None:
        size, given = plan.size, []
        for x, kind in zip(operands, plan.operands):
            if kind is not None:
                values = cast("Array", x.values) if type(x) is Known else values_of(x)
                x = PyVar((values if values.shape == size != (1, 1) else _spread(values, size)).reshape(-1), kind)
            given.append(x)
        found = function(*given)
        if isinstance(found, PyVar) and found.dtype is plan.lanes:
            values = found.value if size != (1, 1) else found.value[:1]
            return Known(at, plan.shape, plan.element, values.reshape(size))
    tile = element_by_element(at, function, operands, what)
    if known is not None:
        if len(_plans) >= _MOST:
            _plans.clear()
        _plans[known] = _planned(tile, operands)
    return tile


def _key(key: Hashable, operands: tuple[object, ...]) -> object:
    """What decides about the types of a result; None where an operand is none or hides more."""
    found: list[object] = [key]
    for x in operands:
        if type(x) is PyVar:
            found.append(x.dtype)
        elif type(x) in (int, float, bool):
            found.append(type(x))
        elif isinstance(x, Tile):
            found += x.shape, x.dtype
        else:
            return None
    return tuple(found)


def _planned(tile: Tile, operands: tuple[object, ...]) -> _Plan:
    size = extents(tile.shape)
    lanes = max(2, size[0] * size[1])
    vectors = [x.dtype.with_lanes(lanes) if isinstance(x, Tile) else None for x in operands]
    return _Plan(tile.shape, size, tile.dtype.with_lanes(lanes), tile.dtype, tuple(vectors))


def _spread(values: Array, size: tuple[int, int]) -> Array:
    """Elements in all rows and columns; a single one twice, for in one lane it would be a scalar."""
    if size == (1, 1):
        return np.concatenate((values, values))
    wide = np.empty(size, values.dtype)
    wide[:] = values
    return wide
