"""The product of two tiles.

Integers: exact, in 32 bits that wrap. The right side is packed once, the four bytes of neighbouring rows that the
dot-product instruction adds up side by side; then blocks of rows and columns are accumulated in registers.
Floats: each element is `acc = fma(acc, a[i, k], b[k, j])` for k in order, in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from compassc.ir.dtypes import FLOAT32, DataType, dtype

from .machine import op
from .storage import Storage, extents
from .tile import Constant, Mask, Stored, Tile, allocate, columns, error, masked
from .values import Computed, Number, Pointer

_Packed = TypeVar("_Packed")
ROWS = 4
"""Rows of the result whose accumulators are in registers together."""
GROUP = 4
"""Bytes that a lane of the dot-product instruction adds up."""
WIDTH = 32
"""Columns of the result that are worked on together."""


class Product(Tile):
    """`acc + a @ b`; with `transposed`, b has a row per column of the result."""

    def __init__(self, a: Tile, b: Tile, acc: Tile, transposed: bool) -> None:
        self.a, self.b, self.acc, self.transposed = a, b, acc, transposed
        super().__init__(a.at, acc.shape, acc.dtype)

    def parts(self) -> list[Tile]:
        return [self.a, self.b, self.acc]

    def reads(self, base: object, to: Storage | None = None) -> bool:
        return any(x.reads(base) for x in (self.a, self.b) if isinstance(x, Stored)) or self.acc.reads(base, to)

    def work(self, to: Storage) -> None:
        a, b = self.a.stored().storage, self.b.stored().storage
        if not (isinstance(self.acc, Stored) and self.acc.storage is to):
            self.acc.write(to)
        (_Bytes if self.dtype.is_integer else _Floats)(self, a, b, to).run()


class _Blocks(Generic[_Packed]):
    """The loops over blocks of the result."""

    def __init__(self, product: Product, a: Storage, b: Storage, to: Storage) -> None:
        self.at, self.a, self.b, self.to = product.at, a, b, to
        self.transposed = product.transposed
        self.rows, self.depth = extents(a.shape)
        self.cols = extents(to.shape)[1]

    def run(self) -> None:
        packed = self.packed()
        whole = self.rows // ROWS * ROWS

        def rows(count: int) -> Callable[[Number], None]:
            return lambda i: columns(
                self.at, self.cols, WIDTH, lambda j, lanes, mask: self.block(packed, i, count, j, lanes, mask)
            )

        self.at.loop(0, whole, ROWS, rows(ROWS))
        if self.rows > whole:
            rows(self.rows - whole)(whole)

    def packed(self) -> _Packed:
        """The right side as blocks read it."""
        raise NotImplementedError

    def block(self, packed: _Packed, i: Number, count: int, j: Number, lanes: int, mask: Mask) -> None:
        """`count` rows of the result from row i on, `lanes` columns from column j on."""
        raise NotImplementedError

    def places(self, i: Number, count: int, j: Number) -> list[Pointer]:
        pitch = self.to.pitch
        return [self.to.pointer + (i * pitch + j + r * pitch) for r in range(count)]


class _Floats(_Blocks[Storage]):
    def packed(self) -> Storage:
        """The right side with a row per k, in float32."""
        if not self.transposed:
            return self.b
        rows, cols = self.depth, self.cols
        to = allocate(self.at, (rows, cols), self.b.dtype)
        native = self.b.dtype.native_lanes

        def row(k: Number) -> None:
            def some(j: Number, lanes: int, mask: Mask) -> None:
                source = self.b.pointer + (j * self.b.pitch + k)
                self.at.do(
                    "vstore", op("vload")(source, mask, lanes, self.b.pitch), to.pointer + (k * to.pitch + j), mask
                )

            columns(self.at, cols, native, some)

        self.at.loop(0, rows, 1, row)
        return to

    def block(self, packed: Storage, i: Number, count: int, j: Number, lanes: int, mask: Mask) -> None:
        places = self.places(i, count, j)
        sums = [self.at.variable("total", op("vload")(p, mask, lanes)) for p in places]

        def step(k: Number) -> None:
            right = self.at.let("right", _wide(op("vload")(packed.pointer + (k * packed.pitch + j), mask, lanes)))
            for r, total in enumerate(sums):
                left = _wide((self.a.pointer + (i * self.a.pitch + k + r * self.a.pitch))[0])
                total.set(op("fma")(total.get(), left, right))

        self.at.loop(0, self.depth, 1, step)
        for p, total in zip(places, sums):
            self.at.do("vstore", total.get(), p, mask)


def _wide(value: Computed) -> Computed:
    return value if value.dtype.element_of is FLOAT32 else op("cast")(value, "float32")


class _Bytes(_Blocks[tuple[Pointer, int]]):
    words: Pointer
    """The left side, four bytes at a time."""

    def packed(self) -> tuple[Pointer, int]:
        """Words of four bytes: those of rows 4k to 4k + 3 in column n are word `k * pitch + n`."""
        words = -(-self.depth // GROUP)
        pitch = self.cols + -self.cols % 8
        self.a = self._of_words(self.a)
        self.words = self.at.retyped(self.a.pointer, "int32")
        to = self.at.allocate(self.b.dtype, words * pitch * GROUP, "")
        (self._gather if self.transposed else self._interleave)(to, words, pitch)
        return to, pitch

    def _of_words(self, tile: Storage) -> Storage:
        """A tile whose rows are whole words: itself, or a copy with zeros behind each row."""
        rows, cols = extents(tile.shape)
        if not cols % GROUP:
            return tile
        to = allocate(self.at, (rows, cols + -cols % GROUP), tile.dtype)
        lanes = tile.dtype.native_lanes
        whole = cols // lanes * lanes

        def row(i: Number) -> None:
            def some(j: Number, mask: Mask = None) -> None:
                value = op("vload")(tile.pointer + (i * tile.pitch + j), mask, lanes)
                self.at.do("vstore", value, to.pointer + (i * to.pitch + j), None)

            self.at.loop(0, whole, lanes, some)
            if cols > whole:
                some(whole, masked(cols - whole, lanes))

        self.at.loop(0, rows, 1, row)
        return to

    def _gather(self, to: Pointer, words: int, pitch: int) -> None:
        b = self._of_words(self.b)
        source, target = self.at.retyped(b.pointer, "int32"), self.at.retyped(to, "int32")
        step = b.pitch // GROUP

        def row(k: Number) -> None:
            def some(j: Number, lanes: int, mask: Mask) -> None:
                value = op("vload")(source + (j * step + k), mask, lanes, step)
                self.at.do("vstore", value, target + (k * pitch + j), mask)

            columns(self.at, self.cols, 8, some)

        self.at.loop(0, words, 1, row)

    def _interleave(self, to: Pointer, words: int, pitch: int) -> None:
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
        if words > whole:
            row(whole, self.depth % GROUP)

    def block(self, packed: tuple[Pointer, int], i: Number, count: int, j: Number, lanes: int, mask: Mask) -> None:
        to, pitch = packed
        kind = self.to.dtype
        words = self.words
        step = self.a.pitch // GROUP
        registers = lanes // 8
        zero = op("cast")(0, kind.with_lanes(8))
        sums = [[self.at.variable("total", zero) for _ in range(registers)] for _ in range(count)]

        def group(k: Number) -> None:
            at = to + (k * (pitch * GROUP) + j * GROUP)
            right = [self.at.let("right", op("vload")(at + n * 32)) for n in range(registers)]
            for r, totals in enumerate(sums):
                word = op("vbcast")((words + (i * step + k + r * step))[0])
                left = self.at.let("left", op("reinterpret")(word, self.a.dtype.with_lanes(32)))
                for total, b in zip(totals, right):
                    total.set(op("vqdpa")(total.get(), left, b))

        self.at.loop(0, -(-self.depth // GROUP), 1, group)
        for p, totals in zip(self.places(i, count, j), sums):
            for n, total in enumerate(totals):
                part = None if mask is None else mask[8 * n : 8 * n + 8]
                old = op("vload")(p + 8 * n, part)
                self.at.do("vstore", op("vadd")(old, total.get()), p + 8 * n, part)


def _result_type(a: DataType, b: DataType) -> DataType:
    if a.bits == b.bits == 8:
        return dtype("int32" if a.is_int or b.is_int else "uint32")
    if a.is_floating and b.is_floating:
        return FLOAT32
    raise error(f"S.tile_dot of {a} and {b}", "both are 8-bit integers, or both floats; convert one with S.cast")


def product(a: object, b: object, acc: object, transposed: object) -> Tile:
    """`acc + a @ b`, checked."""
    if not isinstance(a, Tile) or not isinstance(b, Tile) or not (acc is None or isinstance(acc, Tile)):
        raise error("S.tile_dot takes tiles", "load them with S.tile_load")
    if not len(a.shape) == len(b.shape) == 2:
        raise error(f"S.tile_dot of the shapes {a.shape} and {b.shape}", "both have rows and columns")
    kind = _result_type(a.dtype, b.dtype)
    rows, depth = a.shape
    cols, other = b.shape if transposed else reversed(b.shape)
    if depth != other:
        how = " (transposed)" if transposed else ""
        raise error(
            f"S.tile_dot of {a.shape} and {b.shape}{how}: {depth} columns meet {other} rows",
            "b is depth x columns, or columns x depth with transpose_b=True",
        )
    at = a.at
    start = Constant(at, (rows, cols), kind, 0 if kind.is_integer else 0.0) if acc is None else acc
    if start.shape != (rows, cols) or start.dtype is not kind:
        raise error(
            f"S.tile_dot: the accumulator is {start!r}", f'it is {rows}x{cols} of {kind}: S.tile_full(..., 0, "{kind}")'
        )
    result = Product(a, b, start, bool(transposed))
    return result.stored() if at.eager else result
