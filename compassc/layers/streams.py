"""Tiles of contiguous elements through LSRAM, two of each tensor: transfers run while the tile between them is computed."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from compassc.graph import Tensor
from compassc.layers.machine import Share, configuration, tasks
from compassc.layers.source import LANES, last_cleared
from compassc.layers.vectors import pointee

ROOM = Share(6)
"""LSRAM for the tiles of all tensors."""
LEAST = 512
"""Elements that are worth a transfer."""


class Streams:
    """The tensors that are read and written, each by the name of its pointer.

    `here` and `there` are the names of their present tiles; `taken` bytes of that room hold something else, `tables` bytes
    of the LSRAM are tables of the kernel. There are `spare`
    elements behind a tile, and those of a vector, that loops may read and write.
    """

    def __init__(
        self,
        read: Sequence[tuple[str, Tensor]],
        written: Sequence[tuple[str, Tensor]],
        taken: int = 0,
        spare: int = 0,
        tables: int = 0,
    ) -> None:
        self._read, self._written = list(read), list(written)
        self.here = [f"here{i}" for i in range(len(read))]
        self.there = [f"there{i}" for i in range(len(written))]
        sizes = [bytes_of(t.dtype) for _, t in (*read, *written)]
        room = min(ROOM.size, configuration().lsram_bytes - tables - 2 * LANES * sum(sizes)) - taken
        self._room = max(0, (room // 2 // sum(sizes) - spare) // LANES * LANES)
        self._span = self._room + spare + LANES
        self._events = [f"came{i}" for i in range(min(len(read), configuration().events - 1))]

    def tile(self, count: int, unit: int = 1) -> int:
        """Elements of a tile, of `count` in all; a multiple of `unit`, 0 where there is no room for so many."""
        step = unit * LANES // gcd(unit, LANES)
        wanted = -(-max(-(-count // tasks()), LEAST) // step) * step
        return max(0, min(wanted, self._room // unit * unit))

    def loop(self, tile: str, body: Sequence[str], ahead: Sequence[str] = ()) -> list[str]:
        """The loop over the tiles from `first` to `last`, which are variables. In the body `at` is the tile's first element,
        `now` their number. `ahead`: transfers, by their arguments, that end before the first tile is worked on."""
        span = self._span
        arrays = [
            f'{name}_tiles = S.alloc({2 * span}, "{pointee(t.dtype)}", scope="lsram")'
            for name, (_, t) in zip((*self.here, *self.there), (*self._read, *self._written), strict=True)
        ]
        came = ", ".join(self._events)
        going = [
            f"S.async_dma_copy({pointer} + at, {name}, now, event=gone)"
            for name, (pointer, _) in zip(self.there, self._written, strict=True)
        ]
        return [
            *arrays,
            f"{', '.join([*self._events, 'gone'])} = S.alloc_events({len(self._events) + 1})",
            "turn = S.i32(0)",
            *(f"S.async_dma_copy({transfer}, event={self._events[0]})" for transfer in ahead),
            *(["if first < last:", *self._fetched("first", f"S.min(last - first, {tile})", "0")] if came else []),
            f"for at in range(first, last, {tile}):",
            f"    now = S.min(last - at, {tile})",
            *([f"    S.wait_events({came})"] if came else []),
            *([f"    if at + {tile} < last:"] if came else []),
            *(
                f"    {line}"
                for line in (
                    self._fetched(f"(at + {tile})", f"S.min(last - at - {tile}, {tile})", f"{span} - turn")
                    if came
                    else []
                )
            ),
            *(f"    {name} = {name}_tiles + turn" for name in (*self.here, *self.there)),
            *(f"    {line}" for line in body),
            "    if at > first:",
            "        S.wait_events(gone)",
            *(f"    {line}" for line in going),
            f"    turn = {span} - turn",
            f"S.free_events({', '.join([*self._events, 'gone'])})",
        ]

    def _fetched(self, at: str, count: str, turn: str) -> list[str]:
        """The lines of a block that starts the transfers of a tile; the vector in which it ends is 0 behind it."""
        lines = [f"    coming = {count}", f"    ahead = {turn}"]
        for i, (name, (pointer, tensor)) in enumerate(zip(self.here, self._read, strict=True)):
            lines.append("    " + last_cleared(f"{name}_tiles + ahead", "coming", tensor.dtype))
            event = self._events[i % len(self._events)]
            lines.append(f"    S.async_dma_copy({name}_tiles + ahead, {pointer} + {at}, coming, event={event})")
        return lines


def bytes_of(dtype: str) -> int:
    """Of an element."""
    return {"8": 1, "6": 2, "2": 4, "l": 1}[dtype[-1]]
