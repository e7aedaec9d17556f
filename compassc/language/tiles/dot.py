"""The product of two tiles.

Integers: exact, in 32 bits that wrap. The right side is packed once, the four bytes of neighbouring rows that the
dot-product instruction adds up side by side; then blocks of rows and columns are accumulated in registers.
Floats: each element is `acc = fma(acc, a[i, k], b[k, j])` for k in order, in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial

from compassc.ir.dtypes import FLOAT32, DataType, dtype

from .machine import Machine, Variable, op
from .packed import GROUP, Packed, Turned, Words, of_words
from .storage import Storage, extents
from .tile import Constant, Elementwise, Mask, Row, Stored, Tile, Vector, columns, error, fill, made, spread
from .values import Computed, Number, Pointer

ROWS = 4
"""Rows of the result whose accumulators are in registers together."""
WIDTH = 32
"""Columns of the result that are worked on together."""
DEEPEST = 1 << 15
"""So many products of bytes, and a number up to `LARGEST`, have a sum that the dot-product instruction does not clip."""
LARGEST = 1 << 30


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
        at, a, b = self.at, self.a.stored().storage, self.b.stored().storage
        right: Packed = (Words if self.dtype.is_integer else Turned if self.transposed else Packed)(
            at, b, self.transposed
        )
        factors = (_Bytes if self.dtype.is_integer else _Floats)(at, a, right)
        if type(right) is not Packed:
            at.pack(right)
        product = Sums(at, to, None, [factors], [factors.a.pointer, b.pointer])
        at.add_up(Sums.of(self.acc, to).joined(product))


class Sums:
    """Products that are added to one tile, a block of which is in registers meanwhile.

    `start`: the elements that they are added to; None: those that the tile has. `read`: where what they are made of lies.
    """

    def __init__(
        self,
        at: Machine,
        to: Storage,
        start: Row | None,
        products: list[_Factors],
        read: list[Pointer],
        small: bool = False,
    ) -> None:
        """`small`: what they are added to is a number of at most `LARGEST`."""
        self.at, self.to, self.start, self.products, self.read, self.small = at, to, start, products, read, small

    @staticmethod
    def of(tile: Tile, to: Storage) -> Sums:
        """No products yet, and a tile that they are added to."""
        if isinstance(tile, Stored) and tile.storage is to:
            return Sums(tile.at, to, None, [], [])
        if to.is_column or not isinstance(tile, (Stored, Constant, Elementwise)):
            tile.write(to)
            return Sums(tile.at, to, None, [], [])
        return Sums(tile.at, to, tile.rows(to.shape), [], [s.pointer for s in _storages(tile)], is_small(tile))

    @property
    def depth(self) -> int:
        return sum(p.right.depth for p in self.products)

    def may_join(self, more: Sums) -> bool:
        """Whether other products, which come later, can be added in the same registers."""
        deep = self.to.dtype.is_integer and self.depth + more.depth > DEEPEST
        return self.to is more.to and more.start is None and not deep

    def joined(self, more: Sums) -> Sums:
        """These and other products that are added to the same tile."""
        return Sums(
            self.at, self.to, self.start, [*self.products, *more.products], [*self.read, *more.read], self.small
        )

    def work(self) -> None:
        """The loops that add up what is to be added."""
        if not self.products:
            fill(self.at, self.to, self._elements)
            return
        rows, cols = extents(self.to.shape)
        whole = rows // ROWS * ROWS
        products = together(self.products)
        for product in products:
            product.begin()

        def some(count: int) -> Callable[[Number], None]:
            return lambda i: columns(self.at, cols, WIDTH, partial(self._block, products, i, count))

        self.at.loop(0, whole, ROWS, some(ROWS))
        if rows > whole:
            some(rows - whole)(whole)

    def _elements(self, i: Number) -> Vector:
        if self.start is not None:
            return self.start(i)
        place = self.to.pointer + i * self.to.pitch
        return lambda j, lanes, mask: op("vload")(place + j, mask, lanes)

    def _block(self, products: list[_Factors], i: Number, count: int, j: Number, lanes: int, mask: Mask) -> None:
        """`count` rows from row i on, `lanes` columns from column j on."""
        width = products[0].width(lanes)
        parts = [(k, None if mask is None else mask[k : k + width]) for k in range(0, lanes, width)]
        pitch, kind = self.to.pitch, self.to.dtype
        places = [self.to.pointer + (i * pitch + j + r * pitch) for r in range(count)]
        rows = [self._elements(i + r if r else i) for r in range(count)]

        def old(row: Vector, k: int, part: Mask) -> Computed:
            return spread(row(j + k if k else j, width, part), kind, width)

        at_once = self.small or kind.is_floating
        zero = None if at_once else op("cast")(0, kind.with_lanes(width))
        sums = [
            [self.at.variable("total", old(row, *part) if zero is None else zero) for part in parts] for row in rows
        ]
        for product in products:
            product.add(i, j, lanes, mask, sums)
        for place, row, totals in zip(places, rows, sums):
            for (k, part), total in zip(parts, totals):
                value = total.get() if at_once else op("vadd")(old(row, k, part), total.get())
                self.at.do("vstore", value, place + k, part)


def together(products: list[_Factors]) -> list[_Factors]:
    """The products, where neighbours that continue each other are one."""
    made = products[:1]
    for product in products[1:]:
        joined = made[-1].continued(product)
        made[-1:] = [made[-1], product] if joined is None else [joined]
    return made


def is_small(tile: Tile) -> bool:
    """Whether a tile is a number to which as many products as there can be may be added without being clipped."""
    number = tile.at.constant(tile.value) if isinstance(tile, Constant) and tile.dtype.is_integer else None
    return number is not None and abs(number) <= LARGEST


def _storages(tile: Tile) -> list[Storage]:
    """What lies in memory of a tile."""
    return [tile.storage] if isinstance(tile, Stored) else [s for x in tile.parts() for s in _storages(x)]


class _Factors:
    """The two sides of a product, ready for its loops."""

    def __init__(self, at: Machine, a: Storage, right: Packed) -> None:
        self.at, self.a, self.right = at, a, right

    def continued(self, other: _Factors) -> _Factors | None:
        """One product of greater depth, where the sides of another one lie behind those of this one."""
        a, b = self.a, other.a
        follows = a.base is b.base and a.pitch == b.pitch and b.first == a.first + self.right.depth
        right = self.right.continued(other.right) if follows else None
        if right is None:
            return None
        made = copy(self)
        made.right = right
        return made

    def begin(self) -> None:
        """Emit what has to be done before the loops."""

    def width(self, lanes: int) -> int:
        """Lanes of an accumulator, where there are so many columns."""
        raise NotImplementedError

    def add(self, i: Number, j: Number, lanes: int, mask: Mask, sums: list[list[Variable]]) -> None:
        """Add the product to accumulators, a row of them for each row of a block of the result that begins at (i, j)."""
        raise NotImplementedError


class _Floats(_Factors):
    def width(self, lanes: int) -> int:
        return lanes

    def add(self, i: Number, j: Number, lanes: int, mask: Mask, sums: list[list[Variable]]) -> None:
        def step(k: Number) -> None:
            place = self.right.pointer + (k * self.right.pitch + j)
            right = self.at.let("right", _wide(op("vload")(place, mask, lanes)))
            for r, (total,) in enumerate(sums):
                left = _wide((self.a.pointer + (i * self.a.pitch + k + r * self.a.pitch))[0])
                total.set(op("fma")(total.get(), left, right))

        self.at.loop(0, self.right.depth, 1, step)


def _wide(value: Computed) -> Computed:
    return value if value.dtype.element_of is FLOAT32 else op("cast")(value, "float32")


class _Bytes(_Factors):
    def __init__(self, at: Machine, a: Storage, right: Packed) -> None:
        super().__init__(at, of_words(at, a), right)

    def begin(self) -> None:
        self.words = self.at.retyped(self.a.pointer, "int32")

    def width(self, lanes: int) -> int:
        return 8

    def add(self, i: Number, j: Number, lanes: int, mask: Mask, sums: list[list[Variable]]) -> None:
        step = self.a.pitch // GROUP

        def group(k: Number) -> None:
            at = self.right.pointer + (k * (self.right.pitch * GROUP) + j * GROUP)
            right = [self.at.let("right", op("vload")(at + n * 32)) for n in range(lanes // 8)]
            for r, totals in enumerate(sums):
                word = op("vbcast")((self.words + (i * step + k + r * step))[0])
                left = self.at.let("left", op("reinterpret")(word, self.a.dtype.with_lanes(32)))
                for total, b in zip(totals, right):
                    total.set(op("vqdpa")(total.get(), left, b))

        self.at.loop(0, -(-self.right.depth // GROUP), 1, group)


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
    return made(Product(a, b, start, bool(transposed)))
