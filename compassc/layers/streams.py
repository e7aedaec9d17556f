"""Tiles of contiguous elements through LSRAM, two of each tensor: transfers run while the tile between them is computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd, log2

from compass_core.namedtuple import NamedTuple
from compassc.build import Builder, Expression, Pointer, Value
from compassc.dsl import script as S
from compassc.ir.dtypes import INT32
from compassc.layers.choices import choose
from compassc.layers.machine import Share, configuration, tasks
from compassc.layers.vectors import LANES, pointee

ROOM = Share(6)
"""LSRAM for the tiles of all tensors."""
LEAST = 512
"""Elements that are worth a transfer."""
SIZES = (1 / 4, 1 / 2, 3 / 4, 3 / 2, 2, 4)
"""Other tiles that may be chosen, by the size of the usual one."""


class Stream(NamedTuple):
    """A tensor in device memory, by its address, and the data type of its elements."""

    pointer: Pointer
    dtype: str


class Turn(NamedTuple):
    """A tile that is computed: its first element, their number, and where it lies for each tensor that is read, and
    written."""

    at: Value
    now: Value
    here: list[Pointer]
    there: list[Pointer]


class Transfer(NamedTuple):
    """The arguments of a copy."""

    to: Pointer
    source: Pointer
    size: Value


class Streams:
    """The tensors that are read and written. `taken` bytes of that room hold something else, `tables` bytes of the LSRAM are
    tables of the kernel. There are `spare` elements behind a tile, and those of a vector, that loops may read and write.
    """

    def __init__(
        self, read: Sequence[Stream], written: Sequence[Stream], taken: int = 0, spare: int = 0, tables: int = 0
    ) -> None:
        self._read, self._written = list(read), list(written)
        sizes = [bytes_of(s.dtype) for s in (*read, *written)]
        room = min(ROOM.size, configuration().lsram_bytes - tables - 2 * LANES * sum(sizes)) - taken
        self._room = max(0, (room // 2 // sum(sizes) - spare) // LANES * LANES)
        self._span = self._room + spare + LANES

    def tile(self, count: int, unit: int = 1) -> int:
        """Elements of a tile, of `count` in all; a multiple of `unit`, 0 where there is no room for so many."""
        step, most = unit * LANES // gcd(unit, LANES), self._room // unit * unit
        wanted = min(-(-max(-(-count // tasks()), LEAST) // step) * step, most)
        if wanted <= 0:
            return 0
        others = {max(1, round(wanted * times / step)) * step for times in SIZES}
        sizes = [wanted, *sorted(size for size in others if size <= min(most, -(-count // step) * step))]
        found = choose("tile", dict.fromkeys(sizes), lambda size: abs(log2(size / wanted)), str)
        assert found is not None
        return found

    def loop(
        self,
        k: Builder,
        share: tuple[Value, Value],
        tile: Value,
        body: Callable[[Turn], None],
        ahead: Sequence[Transfer] = (),
    ) -> None:
        """The loop over the tiles of a share, from its first element to behind its last. `ahead`: transfers that end before
        the first tile is worked on."""
        (first, last), span = share, self._span
        here, there = (
            [k.alloc(2 * span, pointee(s.dtype), f"{name}{i}_tiles") for i, s in enumerate(streams)]
            for name, streams in (("here", self._read), ("there", self._written))
        )
        came = min(len(self._read), configuration().events - 1)
        *comes, gone = k.events(*(f"came{i}" for i in range(came)), "gone")
        turn = k.define(k.variable("turn", INT32), S.i32(0))
        for t in ahead:
            S.async_dma_copy(t.to, t.source, t.size, event=comes[0])
        if comes:
            with k.when(first < last):
                self._fetch(k, here, first, S.min(last - first, tile), S.i32(0), comes)
        with k.for_range(first, last, tile, "at") as at:
            now = k.define(k.variable("now", INT32), S.min(last - at, tile))
            if comes:
                S.wait_events(*comes)
                with k.when(at + tile < last):
                    self._fetch(k, here, at + tile, S.min(last - at - tile, tile), span - turn, comes)
            places = [
                [k.hold(tiles + turn, f"{name}{i}") for i, tiles in enumerate(arrays)]
                for name, arrays in (("here", here), ("there", there))
            ]
            body(Turn(at, now, *places))
            with k.when(at > first):
                S.wait_events(gone)
            for place, s in zip(places[1], self._written, strict=True):
                S.async_dma_copy(s.pointer + at, place, now, event=gone)
            k.assign(turn, span - turn)
        S.free_events(*comes, gone)

    def _fetch(
        self,
        k: Builder,
        here: Sequence[Pointer],
        at: Expression,
        count: Expression,
        turn: Expression,
        comes: Sequence[Value],
    ) -> None:
        """Starts the transfers of a tile; the vector in which it ends is 0 behind it."""
        coming, place = k.define(k.variable("coming", INT32), count), k.define(k.variable("ahead", INT32), turn)
        for i, (tiles, s) in enumerate(zip(here, self._read, strict=True)):
            zeros = S.vbcast(S.cast(0, pointee(s.dtype)), lanes=LANES)
            S.vstore(zeros, tiles + place + (coming & -LANES))
            S.async_dma_copy(tiles + place, s.pointer + at, coming, event=comes[i % len(comes)])


def bytes_of(dtype: str) -> int:
    """Of an element."""
    return {"8": 1, "6": 2, "2": 4, "l": 1}[dtype[-1]]
