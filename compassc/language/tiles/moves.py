"""Tiles from and to tensors in device memory, and reductions of them."""

from __future__ import annotations

from functools import partial

from compassc.ir.dtypes import DataType, dtype
from compassc.ops.args import known_int
from compassc.ops.numeric import literal

from .machine import Machine, op
from .storage import Shape, Storage, extents
from .tile import Mask, Row, Tile, Vector, axis_arg, columns, elementwise, error, made, masked
from .values import Computed, Number, Pointer

Condition = bool | Computed
"""Whether something holds, known or not."""
_32_BITS = {"i": "int32", "u": "uint32", "f": "float32", "b": "float32"}


class Place:
    """The part of a tensor that a tile covers: which rows and columns of the tile exist there, and where they begin."""

    def __init__(self, at: Machine, what: str, tensor: object, offsets: object, shape: Shape) -> None:
        self.pointer, dims = at.tensor(tensor)
        given = tuple(offsets) if isinstance(offsets, (tuple, list)) else (offsets,)
        if len(given) != len(dims) or len(shape) > len(dims):
            raise error(
                f"{what}: {len(given)} offsets and a tile of {len(shape)} dimensions for a tensor of {len(dims)}",
                "give an offset per dimension of the tensor; the tile covers the last ones",
            )
        given = at.offsets(tuple([at.operand(known_int(o), f"{what}: an offset") for o in given]), dims)
        self.at, self.shape, self.dtype = at, shape, self.pointer.dtype
        lead = len(dims) - len(shape)
        start: Number = 0
        self.outer: list[Computed] = []
        for offset, size in zip(given[:lead], dims):
            start = self._sum(start, size, offset)
            self.outer += self._exists(offset, size)
        self.low, self.count, inside = [], [], []
        for offset, size, length in zip(given[lead:], dims[lead:], shape):
            low, count, first = self._axis(offset, size, length)
            self.low.append(low)
            self.count.append(count)
            inside.append(first)
        for first, size in zip(inside, dims[lead:]):
            start = self._sum(start, size, first)
        self.start = start
        self.pitch = dims[-1]

    def _sum(self, start: Number, size: Number, offset: Number) -> Number:
        scaled = start if type(start) is int and not start else start * size
        if type(scaled) is int and not scaled:
            return offset
        return scaled if type(offset) is int and not offset else scaled + offset

    def _axis(self, offset: Number, size: Number, length: int) -> tuple[Number, Number, Number]:
        """Of an axis: the first element of the tile that exists, how many do, and which of the tensor's the first one is."""
        at = self.at
        if type(offset) is int and type(size) is int:
            low = max(0, -offset)
            return low, max(0, min(length, size - offset) - low), offset + low
        end = at.let("end", op("min")(_less(at, size, offset), length))
        if type(offset) is int and offset >= 0:
            return 0, end, offset
        if type(offset) is int:
            return -offset, at.let("count", end - -offset), 0
        low = at.let("low", op("max")(_less(at, 0, offset), 0))
        return low, at.let("count", end - low), offset + low

    def _exists(self, offset: Number, size: Number) -> list[Computed]:
        """The conditions under which an index is one of the tensor, apart from those that surely hold."""
        at = self.at
        low = [] if type(offset) is int and offset >= 0 else [at.binary(">=", offset, 0)]
        high = [] if type(offset) is type(size) is int and offset < size else [at.binary("<", offset, size)]
        return [at.let("exists", c) for c in low + high]

    def conditions(self) -> tuple[Condition, Condition]:
        """Whether some of the tile is missing in the tensor, and whether anything exists."""
        runtime = [(n, m) for n, m in zip(self.count, self.shape) if type(n) is not int]
        fixed = [(n, m) for n, m in zip(self.count, self.shape) if type(n) is int]
        less: Condition = any(n < m for n, m in fixed)
        some: Condition = all(n > 0 for n, _ in fixed)
        for n, m in runtime:
            less = (n < m) if less is False else True if less is True else self.at.binary("or", less, n < m)
            some = False if some is False else (n > 0) if some is True else self.at.binary("and", some, n > 0)
        for c in self.outer:
            some = some if some is False else c if some is True else self.at.binary("and", some, c)
            missing = self.at.missing(c)
            less = missing if less is False else less if less is True else self.at.binary("or", less, missing)
        return less, some

    def copy(self, storage: Storage, inward: bool) -> None:
        """The transfer between the tensor and a tile's storage, of what exists."""
        rank = len(self.shape)
        rows, cols = (1, self.count[0]) if rank == 1 else self.count
        low_row, low_col = (0, self.low[0]) if rank == 1 else self.low
        offset = self._sum(low_row, storage.pitch, low_col)
        near = storage.pointer if type(offset) is int and not offset else storage.pointer + offset
        far = self.pointer if type(self.start) is int and not self.start else self.pointer + self.start
        copy = partial(self.at.do, "dma_copy")
        if type(rows) is int and rows == 1:
            copy(*((near, far) if inward else (far, near)), cols)
        elif inward:
            copy(near, far, cols, self.pitch, rows, storage.pitch)
        else:
            copy(far, near, cols, storage.pitch, rows, self.pitch)


def _less(at: Machine, a: Number, b: Number) -> Number:
    if type(b) is int and not b:
        return a
    return at.binary("-", a, b)


class Loaded(Tile):
    """A part of a tensor; what lies beyond the tensor is a constant."""

    def __init__(self, at: Machine, tensor: object, offsets: object, shape: Shape, value: object) -> None:
        self.place = Place(at, "S.tile_load", tensor, offsets, shape)
        self.value = value
        super().__init__(at, shape, self.place.dtype)

    def reads(self, base: object, to: Storage | None = None) -> bool:
        return False

    def work(self, to: Storage) -> None:
        rows, cols = extents(to.shape)
        count = (rows - 1) * to.pitch + cols
        less, some = self.place.conditions()
        if less is not False:
            pointer, value = self._filling(to)
            self.at.when(less, lambda: self.at.do("dma_memset", pointer, value, count))
        self.at.when(some, lambda: self.place.copy(to, True))

    def _filling(self, to: Storage) -> tuple[Pointer, object]:
        """What is filled with which number; floats by their bits, infinities too."""
        value = self.value
        if to.dtype.is_integer or not (type(value) is int or type(value) is float) or not value:
            return to.pointer, value
        kind = f"int{to.dtype.bits}"
        return self.at.retyped(to.pointer, kind), int(literal(float(value), to.dtype).view(kind))


def store(at: Machine, tensor: object, offsets: object, tile: Tile) -> None:
    """Write a tile to a tensor, as far as it exists."""
    place = Place(at, "S.tile_store", tensor, offsets, tile.shape)
    if place.dtype is not tile.dtype:
        raise error(
            f"S.tile_store: the tile is {tile.dtype}, the tensor {place.dtype}",
            f'convert it: S.cast(t, "{place.dtype}")',
        )
    storage = tile.stored().storage
    at.when(place.conditions()[1], lambda: place.copy(storage, False))


# ---------------------------------------------------------------------------------------------------------- reductions

JOINS = {"sum": ("vrpadd", "vadd"), "max": ("vrpmax", "max"), "min": ("vrpmin", "min")}
"""The operations that join the lanes of a vector, and two vectors."""


def identity(how: str, kind: DataType) -> object:
    """What changes nothing when it is joined."""
    if how == "sum":
        return 0 if kind.is_integer else 0.0
    low, high = kind.range() if kind.is_integer else ("-inf", "inf")
    value = low if how == "max" else high
    return op("cast")(value, kind)


def sum_type(kind: DataType) -> DataType:
    """The type of sums: 32 bits, of the kind of the elements."""
    return dtype(_32_BITS[str(kind)[0]])


class Reduced(Tile):
    """The sums, largest or smallest elements along an axis, whose size becomes 1.

    Along rows (axis 0) elements are joined in order. Along columns, vectors of up to four registers are joined in order,
    then their registers, the first with the second and the third with the fourth, then the lanes of what is left, as
    vrpadd does. 16-bit floats are joined as float32, sums are given in 32 bits.
    """

    def __init__(self, tile: Tile, how: str, axis: int) -> None:
        self.tile, self.how = tile, how
        self.joined = sum_type(tile.dtype) if how == "sum" or tile.dtype.is_bfloat else tile.dtype
        self.axis = axis + (2 - len(tile.shape))
        shape = tuple([1 if k == axis else n for k, n in enumerate(tile.shape)])
        super().__init__(tile.at, shape, self.joined if how == "sum" else tile.dtype)

    def parts(self) -> list[Tile]:
        return [self.tile]

    def reads(self, base: object, to: Storage | None = None) -> bool:
        return self.tile.reads(base)

    def work(self, to: Storage) -> None:
        (self._rows if self.axis == 0 else self._columns)(to, self.tile.rows(self.tile.shape))

    def _vector(self, value: Computed) -> Computed:
        return value if value.dtype.element_of is self.joined else op("cast")(value, str(self.joined))

    def _result(self, value: Computed) -> Computed:
        return value if self.joined is self.dtype else op("cast")(value, str(self.dtype))

    def _rows(self, to: Storage, source: Row) -> None:
        rows, cols = extents(self.tile.shape)
        join = op(JOINS[self.how][1])

        def some(j: Number, lanes: int, mask: Mask) -> None:
            total = self.at.variable("total", self._wide(source(0)(j, lanes, mask), lanes))
            self.at.loop(
                1, rows, 1, lambda i: total.set(join(total.get(), self._wide(source(i)(j, lanes, mask), lanes)))
            )
            self.at.do("vstore", self._result(total.get()), to.pointer + j, mask)

        if cols == 1:
            self._columns(to, lambda _: lambda j, lanes, mask: source(0)(j, lanes, mask), rows)
        else:
            columns(self.at, cols, self.at.width(cols), some)

    def _wide(self, value: Computed, lanes: int) -> Computed:
        value = self._vector(value)
        return value if value.dtype.lanes > 1 else op("vbcast")(value, None, lanes)

    def _columns(self, to: Storage, source: Row, count: int = 0) -> None:
        rows, cols = (1, count) if count else extents(self.tile.shape)
        native = self.joined.native_lanes
        lanes = native * min(4, -(-cols // native))
        across, join = map(op, JOINS[self.how])

        def row(i: Number) -> None:
            elements = source(i)
            whole = cols // lanes * lanes
            first = self._some(elements, 0, lanes, None if whole else cols)
            total = self.at.variable("total", first)
            self.at.loop(
                lanes, whole, lanes, lambda j: total.set(join(total.get(), self._some(elements, j, lanes, None)))
            )
            if whole and cols > whole:
                total.set(join(total.get(), self._some(elements, whole, lanes, cols - whole)))
            parts = list(op("vsplit")(total.get())) if lanes > native else [total.get()]
            while len(parts) > 1:
                parts = [join(a, b) for a, b in zip(parts[::2], parts[1::2])] + parts[len(parts) & ~1 :]
            value = across(parts[0])[0]
            self.at.store(to.pointer if type(i) is int and not i else to.pointer + i, self._result(value))

        self.at.loop(0, rows, 1, row)

    def _some(self, elements: Vector, j: Number, lanes: int, active: int | None) -> Computed:
        """Lanes to be joined; those behind the end are the identity."""
        mask = None if active is None else masked(active, lanes)
        value = self._wide(elements(j, lanes, mask), lanes)
        return value if mask is None else op("vsel")(value, identity(self.how, self.joined), mask)


def reduced(tile: object, how: str, axis: object) -> Tile:
    """A reduction along an axis, checked."""
    what = f"S.tile_{how}"
    if not isinstance(tile, Tile):
        raise error(f"{what} takes a tile", "load one with S.tile_load")
    number = axis_arg(axis, len(tile.shape), what)
    if tile.dtype.is_bool:
        raise error(f"{what}: a tile of conditions has no {how}", "choose numbers by them with S.tile_where")
    result = Reduced(tile, how, number)
    if tile.shape[number] == 1:
        kind = str(result.dtype)
        return elementwise(lambda x: op("cast")(x, kind), (tile,), what, ("cast", kind))
    return made(result)
