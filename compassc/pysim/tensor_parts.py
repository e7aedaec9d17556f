"""Tiles from and to tensors in device memory, copied as a whole where no check wants to see the copy; else `moves` does it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from compass_core.arrays import Array
from compassc.ir.dtypes import INT32, STORAGE, DataType
from compassc.ops.dma import check_fill
from compassc.ops.numeric import literal

from ..language.dispatch import LOCAL
from ..language.tiles.storage import Shape
from ..language.tiles.tile import Tile
from .memory import PyBuffer, Storage
from .values import PyVar, to_element
from .whole_tiles import memory_of, resident, unwatched

if TYPE_CHECKING:
    from ..language.tiles.machine import Machine

_STORED = frozenset(STORAGE)
_LARGEST = INT32.range()[1]


_Overlap = tuple[tuple[int | slice, ...], tuple[slice, ...], bool, bool]
"""Where a tensor and a tile that lies over it have elements in common: items of both, whether these are all of the tile, and
whether there are any."""


def _overlap(tensor: object, offsets: object, shape: Shape) -> _Overlap | None:
    """None where the copy is to be seen by checks, or is refused."""
    if type(tensor) is not PyBuffer or tensor.storage is None or tensor.storage.watch is not None:
        return None
    if not tensor.scope.startswith("global") or tensor.dtype not in _STORED or "race" in LOCAL.tec.session.checks:
        return None
    given, dims = offsets if type(offsets) is tuple else (offsets,), tensor.shape
    axis = len(shape) - len(dims)
    if len(given) != len(dims) or axis > 0:
        return None
    far: list[int | slice] = []
    near, whole, some, reach = [], True, True, 0
    for offset, size in zip(given, dims):
        if type(offset) is PyVar and offset.dtype is INT32:
            offset = int(offset.value)
        if type(offset) is not int:
            return None
        reach = reach * size + abs(offset) + size
        if axis < 0:  # in front of the dimensions of the tile
            some = some and 0 <= offset < size
            far.append(offset)
        else:
            length = shape[axis]
            low = -offset if offset < 0 else 0
            behind = length if offset + length <= size else size - offset
            if low or behind != length:
                whole, some = False, some and behind > low
            far.append(slice(offset + low, offset + behind))
            near.append(slice(low, behind))
        axis += 1
    return (tuple(far), tuple(near), whole and some, some) if reach <= _LARGEST else None


def loaded(at: Machine, tensor: object, offsets: object, shape: Shape, fill: object) -> Tile | None:
    """A part of a tensor in memory of its own; None where `moves.Loaded` has to do that."""
    overlap = _overlap(tensor, offsets, shape)
    if overlap is None:
        return None
    far, near, whole, some = overlap
    if not whole and type(fill) not in (int, float):
        return None
    assert type(tensor) is PyBuffer
    tile = resident(at, shape, tensor.dtype)
    elements = tile.elements
    if not whole:
        elements[...] = _filled(fill, repr(fill), tensor.dtype)
    if some:
        (elements if len(shape) == 2 else elements[0])[near] = tensor.array()[far]
        _touched(tile.memory)
    return tile


def _touched(memory: Storage) -> None:
    """A copy touches a tile, in a turn of a pipelined loop perhaps."""
    tiles = LOCAL.tec.tiles
    if tiles is not None and memory not in tiles:
        tiles.append(memory)


@lru_cache(maxsize=256)
def _filled(value: float, _text: str, kind: DataType) -> Array:
    """The element that `S.dma_memset` fills a tile with. `_text`: of a zero its sign."""
    if kind.is_integer or not value:
        check_fill(value, kind)
        return to_element(value, kind)
    return literal(float(value), kind)


def stored(tensor: object, offsets: object, tile: object) -> bool:
    """Write a tile to a tensor; False where `moves.store` has to do that."""
    assert isinstance(tile, Tile)
    if getattr(tensor, "dtype", None) is not tile.dtype:
        return False
    overlap = _overlap(tensor, offsets, tile.shape)
    if overlap is None:
        return False
    in_turn = LOCAL.tec.tiles is not None
    values = unwatched(tile.stored() if in_turn else tile)
    if values is None:
        return False
    far, near, _, some = overlap
    if some:
        assert type(tensor) is PyBuffer
        tensor.array()[far] = (values if len(tile.shape) == 2 else values[0])[near]
        if in_turn:
            _touched(memory_of(tile.stored()))
    return True
