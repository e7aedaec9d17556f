"""The right side of a product of tiles, in the order in which its loops read it."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

from .machine import Machine, op
from .storage import Storage, extents
from .tile import Mask, allocate, columns, masked
from .values import Number, Pointer

GROUP = 4
"""Bytes that a lane of the dot-product instruction adds up."""


class Packed:
    """The right side as it lies in memory: a row per k."""

    pointer: Pointer
    """Where it lies, once it is made."""

    def __init__(self, at: Machine, b: Storage, transposed: bool) -> None:
        self.at, self.b, self.transposed = at, b, transposed
        rows, cols = extents(b.shape)
        self.depth, self.cols = (cols, rows) if transposed else (rows, cols)
        self.pointer, self.pitch = b.pointer, b.pitch
        self.whole: object = b.base
        """What it is a part of."""

    @property
    def bytes(self) -> int:
        """How much memory of its own it takes."""
        return 0

    def work(self) -> None:
        """Make it."""

    def joined(self, other: Packed) -> Packed | None:
        """One of which both are parts, where there is one."""
        same = (self.b.base, self.b.first, self.b.shape) == (other.b.base, other.b.first, other.b.shape)
        return self if same and type(self) is type(other) and self.transposed is other.transposed else None

    def take(self, whole: Packed) -> None:
        """Lie in another one, of which it is a part."""
        self.pointer, self.whole = whole.pointer, whole

    def continued(self, other: Packed) -> Packed | None:
        """One of greater depth, where another one lies behind this one."""
        behind = self.b.first + self.depth * self.b.pitch
        if self.transposed or other.transposed or self.whole is not other.whole or behind != other.b.first:
            return None
        made = copy(self)
        made.depth += other.depth
        return made


class Turned(Packed):
    """A row per k, of a side that has a row per column."""

    def __init__(self, at: Machine, b: Storage, transposed: bool) -> None:
        super().__init__(at, b, transposed)
        self.pitch = self.cols + -self.cols % b.dtype.native_lanes

    @property
    def bytes(self) -> int:
        return self.depth * self.pitch * self.b.dtype.bytes

    def work(self) -> None:
        to = allocate(self.at, (self.depth, self.cols), self.b.dtype)
        self.pointer, self.pitch = to.pointer, to.pitch
        native = self.b.dtype.native_lanes

        def row(k: Number) -> None:
            def some(j: Number, lanes: int, mask: Mask) -> None:
                source = self.b.pointer + (j * self.b.pitch + k)
                value = op("vload")(source, mask, lanes, self.b.pitch)
                self.at.do("vstore", value, to.pointer + (k * to.pitch + j), mask)

            columns(self.at, self.cols, native, some)

        self.at.loop(0, self.depth, 1, row)


class Words(Packed):
    """Words of four bytes: those of rows 4k to 4k + 3 in column n are word `k * pitch + n`."""

    def __init__(self, at: Machine, b: Storage, transposed: bool) -> None:
        super().__init__(at, b, transposed)
        self.words = -(-self.depth // GROUP)
        self.pitch = self.cols + -self.cols % 8
        self.whole = self

    @property
    def bytes(self) -> int:
        copied = self.b.pitch * extents(self.b.shape)[0] if self.transposed and self.depth % GROUP else 0
        return self.words * self.pitch * GROUP + copied

    def joined(self, other: Packed) -> Packed | None:
        """Also of rows that follow each other, from a multiple of four on."""
        if not isinstance(other, Words) or self.transposed or other.transposed:
            return super().joined(other)
        first, last = sorted((self, other), key=lambda x: x.b.first)
        one, rows = first.b, (last.b.first - first.b.first) // first.b.pitch
        alike = one.base is last.b.base and one.pitch == last.b.pitch and self.cols == other.cols
        follows = rows <= first.depth and rows % GROUP == (last.b.first - one.first) % one.pitch == 0
        if not alike or not follows:
            return None
        shape = (max(first.depth, rows + last.depth), self.cols)
        return Words(self.at, replace(one, shape=shape), False)

    def take(self, whole: Packed) -> None:
        super().take(whole)
        rows = (self.b.first - whole.b.first) // self.b.pitch
        if rows:
            self.pointer = whole.pointer + rows * self.pitch

    def work(self) -> None:
        self.pointer = self.at.allocate(self.b.dtype, self.words * self.pitch * GROUP, "")
        (self._gather if self.transposed else self._interleave)(self.pointer)

    def _gather(self, to: Pointer) -> None:
        pitch = self.pitch
        b = of_words(self.at, self.b)
        source, target = self.at.retyped(b.pointer, "int32"), self.at.retyped(to, "int32")
        step = b.pitch // GROUP

        def row(k: Number) -> None:
            def some(j: Number, lanes: int, mask: Mask) -> None:
                value = op("vload")(source + (j * step + k), mask, lanes, step)
                self.at.do("vstore", value, target + (k * pitch + j), mask)

            columns(self.at, self.cols, 8, some)

        self.at.loop(0, self.words, 1, row)

    def _interleave(self, to: Pointer) -> None:
        pitch = self.pitch
        zipped = op("vzip")

        def row(k: Number, count: int = GROUP) -> None:
            def some(j: Number, lanes: int, mask: Mask) -> None:
                first = self.b.pointer + (k * (GROUP * self.b.pitch) + j)
                rows = [op("vload")(first + r * self.b.pitch, mask, 32) for r in range(count)]
                rows += [op("cast")(0, self.b.dtype.with_lanes(32))] * (GROUP - count)
                low = [self.at.let("even", zipped(rows[r], rows[r + 2], "low")) for r in (0, 1)]
                high = [self.at.let("odd", zipped(rows[r], rows[r + 2], "high")) for r in (0, 1)]
                target = to + (k * (pitch * GROUP) + j * GROUP)
                parts = [zipped(*low, "low"), zipped(*low, "high"), zipped(*high, "low"), zipped(*high, "high")]
                for n, part in enumerate(parts[: lanes // 8]):
                    self.at.do("vstore", part, target + n * 32)

            columns(self.at, self.cols, 32, some)

        whole = self.depth // GROUP
        self.at.loop(0, whole, 1, row)
        if self.words > whole:
            row(whole, self.depth % GROUP)


def of_words(at: Machine, tile: Storage) -> Storage:
    """A tile whose rows are whole words: itself, or a copy with zeros behind each row."""
    rows, cols = extents(tile.shape)
    if not cols % GROUP:
        return tile
    to = allocate(at, (rows, cols + -cols % GROUP), tile.dtype)
    lanes = tile.dtype.native_lanes
    whole = cols // lanes * lanes

    def row(i: Number) -> None:
        def some(j: Number, mask: Mask = None) -> None:
            value = op("vload")(tile.pointer + (i * tile.pitch + j), mask, lanes)
            at.do("vstore", value, to.pointer + (i * to.pitch + j), None)

        at.loop(0, whole, lanes, some)
        if cols > whole:
            some(whole, masked(cols - whole, lanes))

    at.loop(0, rows, 1, row)
    return to
