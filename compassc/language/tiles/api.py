"""The calls of the language that work on tiles: an extension of this toolchain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compassc.ir.dtypes import INT32
from compassc.ops.args import dtype_arg
from compassc.ops.typing import is_literal

from ..specs import LoopSpec, check_stages
from . import dot, moves
from .machine import machine, op
from .tile import Constant, Index, Tile, axis_arg, elementwise, error, made, shape_arg
from .values import Computed

if TYPE_CHECKING:
    from compassc.language.parser.values import BufferValue, Value
    from compassc.language.tiles.tile import Elementwise, Stored


def tile_load(tensor: BufferValue, offsets: object, shape: object, fill: object = 0) -> Tile:
    """A tile of a tensor in device memory, from the element at `offsets` on.

    `tensor` is a buffer (S.match_buffer), `offsets` has a number per dimension of it, `shape` one or two constants for
    its last ones. Elements beyond the tensor, also in front of it, are `fill`, a number.
    """
    at = machine("S.tile_load")
    size = shape_arg(shape, "S.tile_load")
    tile = at.loaded(tensor, offsets, size, fill)
    if tile is None:
        return made(moves.Loaded(at, tensor, offsets, size, fill))
    assert isinstance(tile, Tile)
    return tile


def tile_store(tensor: BufferValue, offsets: object, tile: Elementwise) -> None:
    """Write a tile to a tensor in device memory, from the element at `offsets` on, as far as the tensor goes."""
    if not isinstance(tile, Tile):
        raise error(
            "S.tile_store takes a tile, behind the tensor and the offsets",
            "write S.tile_store(tensor, offsets, tile)"
            if isinstance(tensor, Tile)
            else "make one with S.tile_load or S.tile_full",
        )
    at = machine("S.tile_store")
    if not at.stored(tensor, offsets, tile):
        moves.store(at, tensor, offsets, tile)


def tile_full(shape: object, value: object, dtype: object) -> Tile:
    """A tile with a value in every element."""
    at = machine("S.tile_full")
    return made(Constant(at, shape_arg(shape, "S.tile_full"), dtype_arg(dtype, "S.tile_full"), value))


def tile_index(shape: object, axis: int = -1) -> Tile:
    """The number of each element along an axis, an int32: what lies beyond a tensor is found by it."""
    at, checked = machine("S.tile_index"), shape_arg(shape, "S.tile_index")
    number = axis_arg(axis, len(checked), "S.tile_index")
    if checked[number] == 1:
        return made(Constant(at, checked, INT32, 0))
    return made(Index(at, checked, number))


def tile_sum(tile: Stored, axis: int = -1) -> Tile:
    """The sums along an axis, whose size becomes 1, in 32 bits of the elements' kind."""
    return moves.reduced(tile, "sum", axis)


def tile_max(tile: Stored, axis: int = -1) -> Tile:
    """The largest elements along an axis, whose size becomes 1."""
    return moves.reduced(tile, "max", axis)


def tile_min(tile: object, axis: int = -1) -> Tile:
    """The smallest elements along an axis, whose size becomes 1."""
    return moves.reduced(tile, "min", axis)


def tile_dot(a: Stored, b: Stored, acc: Elementwise | None = None, transpose_b: bool = False) -> Tile:
    """`acc + a @ b` of bytes (int32, wrapping) or floats (float32, fused in the order of the depth).

    a is rows x depth, b depth x columns, or columns x depth with `transpose_b`; acc is rows x columns.
    """
    return dot.product(a, b, acc, transpose_b)


def tile_where(condition: Elementwise, x: Stored, y: object) -> Tile:
    """x where the condition holds, y elsewhere; each is a tile or a scalar, one of x and y is a tile."""
    return elementwise(_chosen, (condition, x, y), "S.tile_where", "where")


def _chosen(condition: Computed | float, x: Computed | float, y: Computed | float) -> Computed:
    """Elements of x or y; conditions and numbers that are the same for all lanes become vectors."""
    kinds = [v.dtype for v in (x, y, condition) if not is_literal(v)]
    lanes = max(k.lanes for k in kinds)
    if is_literal(condition) or condition.dtype.is_scalar:
        condition = op("vbcast")(condition, None, lanes)
    if all(is_literal(v) or v.dtype.is_scalar for v in (x, y)):
        if is_literal(x):
            raise error("S.tile_where chooses between two numbers", "make one of them a tile: S.tile_full")
        x = op("vbcast")(x, None, lanes)
    found: Computed = op("vsel")(x, y, condition)
    return found


def parallel_tiles(*counts: Value, stages: int = 1) -> LoopSpec:
    """Loops from 0 whose turns the TECs share: `for i, j in S.parallel_tiles(rows, cols)`.

    TEC t does the turns t, t + n, t + 2n, ... of all, the last count running fastest. With `stages` from 2 on they are
    pipelined, as by S.pipelined.
    """
    if not counts:
        raise error("S.parallel_tiles needs a count", "write one per loop: for i, j in S.parallel_tiles(rows, cols)")
    if stages != 1:
        check_stages(stages)
    return machine("S.parallel_tiles").shared_loop(counts, stages)
