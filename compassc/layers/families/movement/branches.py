"""Branches that are rescaled on their way to their place: tiles of rows through LSRAM."""

from __future__ import annotations

from compass_core.arrays import Array
from compass_core.namedtuple import NamedTuple
from compassc.build import Pointer
from compassc.dsl import script as S
from compassc.graph import Tensor
from compassc.layers.layer_kernel import Lanes, LayerKernel
from compassc.layers.machine import Share, tasks
from compassc.layers.requantise import requantise_rounded
from compassc.layers.streams import bytes_of
from compassc.layers.vectors import LANES, everywhere, pointee

TILE = Share(2)
"""LSRAM for a tile of each side."""


class Branch(NamedTuple):
    """Consecutive rows of a tensor and their destination: its first element, and the distance between rows."""

    rows: int
    width: int
    first: int
    step: int


class Side(NamedTuple):
    """A tensor and its address."""

    tensor: Tensor
    pointer: Pointer


def rescaled(k: LayerKernel, b: Branch, sides: tuple[Side, Side], scale: Array, shift: Array) -> None:
    """Brings the elements of a branch, from one side to the other, to the output's scale."""
    (x, source), (y, target) = sides
    elements = TILE.size // max(bytes_of(t.dtype) for t in (x, y))
    wide = min(b.width, elements)
    tall = 1 if wide < b.width else max(1, min(elements // wide, -(-b.rows // tasks())))
    across = -(-b.width // wide)
    here, there = (
        k.scratch(TILE.size // 4 + LANES, "int32", hint).as_ptr(pointee(t.dtype))
        for hint, t in (("from_tile", x), ("to_tile", y))
    )
    lanes = Lanes(k, "x", x.dtype)
    with k.apart() as steps:
        value = k.shifted(lanes.value.within(x.low, x.high), x.scalar_zero)
        stored = k.stored(requantise_rounded(k, value, scale, shift, y), y.dtype)
    many, columns, high, width = (k.number(n) for n in (-(-b.rows // tall) * across, across, tall, wide))
    rows, length, first, step = (k.number(n) for n in (b.rows, b.width, b.first, b.step))
    with k.shared(many, "item") as item:
        row, at = k.held("row", item / columns * high), k.held("at", item % columns * width)
        some, now = k.held("high", S.min(high, rows - row)), k.held("now", S.min(width, length - at))
        S.vstore(everywhere(0, pointee(x.dtype)), here + (some * now & -LANES))
        S.dma_copy(here, source + row * length + at, now, length, some, now)
        with k.for_range(0, some * now, LANES, "e") as e:
            lanes.load(k, here + e)
            k.splice(steps)
            S.vstore(stored, there + e)
        S.dma_copy(target + first + row * step + at, there, now, now, some, step)
