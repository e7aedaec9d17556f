"""Tiles and element-wise work on them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache, partial
from math import isfinite
from typing import TYPE_CHECKING

from compass_core.errors import CompassError
from compass_core.shapes import broadcast_shape
from compassc.ir.dtypes import INT32, STORAGE, DataType

from .. import python_operators
from .machine import Machine, machine, op
from .storage import Shape, Storage, extents
from .values import Computed, Number, Pointer

if TYPE_CHECKING:
    from compassc.ops.core import Op

Mask = list[bool] | None
Vector = Callable[[Number, int, Mask], Computed]
"""The elements from a column on, so many of them, where a mask says which of these there are."""
Row = Callable[[Number], Vector]
"""The elements of a row."""
CODE = "tile"
FIXED = "a tile is a value: choose elements with S.tile_where, or store the parts one by one with S.tile_store"
"""What to do in the place of assigning to a part of a tile."""


def error(message: str, help: str) -> CompassError:
    return CompassError(message, code=CODE, help=help)


def shape_arg(shape: object, what: str) -> Shape:
    """A tile's shape, checked: one or two positive constants."""
    given = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if set(map(type, given)) == {int} and len(given) < 3 and min(given) > 0:
        return given
    items = tuple([n if type(n) is int else machine(what).constant(n) for n in given])
    if not 1 <= len(items) <= 2 or any(n is None or n < 1 for n in items):
        shown = ", ".join("a run-time value" if n is None else str(n) for n in items)
        raise error(
            f"{what}: the shape of a tile is one or two positive constants, got ({shown})",
            "tiles have the same shape everywhere: what lies beyond the tensor is filled, and not stored",
        )
    return tuple([n for n in items if n is not None])


def axis_arg(axis: object, rank: int, what: str) -> int:
    """An axis, checked, from 0 on."""
    number = axis if type(axis) is int else machine(what).constant(axis)
    if number is None or not -rank <= number < rank:
        raise error(f"{what}: axis {axis!r} of a tile of {rank} dimensions", "axes count from 0, or from -1 backwards")
    return number % rank


@lru_cache(maxsize=4096)
def broadcast(shapes: tuple[Shape, ...]) -> Shape:
    """The shape of element-wise work, as NumPy has it."""
    try:
        return broadcast_shape(shapes)
    except ValueError:
        shown = " and ".join(map(str, shapes))
        raise error(f"tiles of the shapes {shown} do not go together", "sizes must be equal, or 1") from None


def allocate(at: Machine, shape: Shape, dtype: DataType, name: str = "") -> Storage:
    """LSRAM for a tile; each row begins at a multiple of a register."""
    if dtype not in STORAGE:
        raise error(f"a tile of {dtype} cannot be kept", "choose by conditions with S.tile_where")
    rows, cols = extents(shape)
    pitch = cols + -cols % dtype.native_lanes
    if cols == 1:
        pitch = 1
    count = rows * pitch
    return Storage(at.allocate(dtype, count + -count % dtype.native_lanes, name), dtype, shape, pitch, object())


class Tile:
    """A value of a constant shape: one or two dimensions of elements of one type, in the LSRAM of the TEC.

    Operators and lane-wise operations work element by element, with broadcasting; `t[1:3]`, `t[:, 0:8]` are parts.
    """

    __array_ufunc__ = None
    __hash__ = object.__hash__
    attributes = ("shape", "dtype")
    what = "a tile"

    def __init__(self, at: Machine, shape: Shape, dtype: DataType) -> None:
        self.at, self.shape, self.dtype = at, shape, dtype

    def write(self, to: Storage) -> None:
        """Compute the tile into a storage, which nothing that is still needed lies in but at the same elements."""
        if not self.at.computed(self, to):
            self.work(to)

    def work(self, to: Storage) -> None:
        """The operations that compute it into a storage."""
        fill(self.at, to, self.rows(to.shape))

    def reads(self, base: object, to: Storage | None = None) -> bool:
        """Whether computing it into `to` reads an allocation at other elements than it writes then."""
        raise NotImplementedError

    def uses(self, base: object) -> bool:
        """Whether anything in an allocation is part of it."""
        return any(x.uses(base) for x in self.parts())

    def parts(self) -> list[Tile]:
        """The tiles that it is computed from."""
        return []

    def stored(self) -> Stored:
        """The tile in memory."""
        return copied(self)

    def rows(self, shape: Shape) -> Row:
        """The elements, spread over a shape. Emits what has to be done before loops."""
        return self.stored().rows(shape)

    def __repr__(self) -> str:
        return f"<tile of {self.dtype}, {'x'.join(map(str, self.shape))}>"

    def __bool__(self) -> bool:
        raise error("a tile has no truth value", "choose elements with S.tile_where")

    def __getitem__(self, index: object) -> Stored:
        return self.stored()[index]

    def __setitem__(self, index: object, value: object) -> None:
        raise error("cannot assign to an item of a tile", FIXED)


class Stored(Tile):
    """A tile in memory."""

    def __init__(self, at: Machine, storage: Storage, own: bool = False) -> None:
        """`own`: nothing else lies there, so that a name may have the storage."""
        super().__init__(at, storage.shape, storage.dtype)
        self._storage, self.own = storage, own

    @property
    def storage(self) -> Storage:
        """Where it lies."""
        return self._storage

    def held(self) -> Stored:
        """The same memory, for something that keeps it."""
        return Stored(self.at, self.storage)

    def uses(self, base: object) -> bool:
        return self.storage.base is base

    def stored(self) -> Stored:
        return self

    def reads(self, base: object, to: Storage | None = None) -> bool:
        return self.storage.base is base and self.storage is not to

    def rows(self, shape: Shape) -> Row:
        rows, cols = extents(self.shape)
        s = self.storage
        one = op("vload")
        if s.is_column and extents(shape) == extents(self.shape):
            return lambda i: lambda j, lanes, mask: one(_moved(s.pointer, j), mask, lanes)
        if cols == 1 and extents(shape)[1] > 1:
            if rows == 1:
                element = self.at.let("element", s.pointer[0])
                return lambda i: lambda j, lanes, mask: element

            def spread(i: Number) -> Vector:
                value = self.at.let("element", _moved(s.pointer, i)[0])
                return lambda j, lanes, mask: value

            return spread
        if rows == cols == 1 and extents(shape) != (1, 1):
            element = self.at.let("element", s.pointer[0])
            return lambda i: lambda j, lanes, mask: element
        if rows == 1:
            return lambda i: lambda j, lanes, mask: one(_moved(s.pointer, j), mask, lanes)

        def row(i: Number) -> Vector:
            start = _moved(s.pointer, i * s.pitch)
            return lambda j, lanes, mask: one(_moved(start, j), mask, lanes)

        return row

    def __getitem__(self, index: object) -> Stored:
        parts = index if isinstance(index, tuple) else (index,)
        if len(parts) > len(self.shape) or [p for p in parts if not isinstance(p, slice)]:
            raise error("a tile is cut by slices, one per dimension", "write t[0:4], or t[:, 0:8]")
        bounds = [_cut(self.at, p, n) for p, n in zip(parts, self.shape)]
        if len(parts) < len(self.shape):
            bounds += [(0, n) for n in self.shape[len(parts) :]]
        elif len(bounds) == 2 and self.shape[1] > 1 == bounds[1][1] - bounds[1][0] and bounds[0][1] - bounds[0][0] > 1:
            raise error("a column of a tile lies in many rows of it", "load it as a tile of its own")
        return self.part(bounds)

    def part(self, bounds: Sequence[tuple[int, int]]) -> Stored:
        """The elements from a place on to another one, of each dimension."""
        s = self.storage
        shape = tuple([stop - start for start, stop in bounds])
        moved = bounds[-1][0] + (bounds[0][0] * s.pitch if len(bounds) == 2 else 0)
        place = Storage(_moved(s.pointer, moved), s.dtype, shape, s.pitch, s.base, s.first + moved)
        part = Stored(self.at, place)
        return copied(part) if not s.is_column and bounds[-1][0] else part  # rows begin at whole registers


def copied(tile: Tile, name: str = "") -> Stored:
    """The tile in memory of its own."""
    to = allocate(tile.at, tile.shape, tile.dtype, name)
    tile.write(to)
    return Stored(tile.at, to, own=True)


def _cut(at: Machine, part: slice, size: int) -> tuple[int, int]:
    first, behind = part.start, part.stop
    if part.step is None:  # as most parts are cut
        first = 0 if first is None else first if type(first) is int else at.constant(first)
        behind = size if behind is None else behind if type(behind) is int else at.constant(behind)
        if first is not None and behind is not None and 0 <= first < behind <= size:
            return first, behind
    given = (part.start, part.stop, part.step)
    values = [v if v is None or type(v) is int else at.constant(v) for v in given]
    unknown = None in values and any(v is None and g is not None for v, g in zip(values, given))
    if unknown or values[2] not in (None, 1):
        raise error(
            "a tile is cut at constants, without steps",
            "load the part from its tensor: S.tile_load takes offsets that are known only when the kernel runs",
        )
    start, stop, _ = slice(*values).indices(size)
    if start >= stop:
        raise error(f"the part {start}:{stop} of {size} elements is empty", "give the first and the end")
    return start, stop


def _moved(pointer: Pointer, offset: Number) -> Pointer:
    return pointer if type(offset) is int and not offset else pointer + offset


class Elementwise(Tile):
    """`function` of the elements of operands: tiles, scalars and literals."""

    def __init__(self, at: Machine, function: Callable[..., Computed], operands: tuple[object, ...], what: str) -> None:
        self.function, self.operands = function, operands
        parts = self.parts()
        shape = broadcast(tuple([x.shape for x in parts]))
        samples = {x: at.sample(x, x.dtype, shape) for x in parts}
        self.sample: Computed = function(*[samples[x] if isinstance(x, Tile) else x for x in operands])
        kind = self.sample.dtype
        for one in samples.values():
            if one.dtype.lanes != kind.lanes:
                raise error(f"{what} does not work element by element", "tiles take operations from lane to lane")
        self.at, self.shape, self.dtype = at, shape, kind.element_of

    def parts(self) -> list[Tile]:
        return [x for x in self.operands if isinstance(x, Tile)]

    def reads(self, base: object, to: Storage | None = None) -> bool:
        together = [x for x in self.parts() if isinstance(x, Stored) or _inside(x, self.shape)]
        return any(x.reads(base, to) for x in together)

    def rows(self, shape: Shape) -> Row:
        if extents(shape) != extents(self.shape) and self.dtype in STORAGE:
            return self.stored().rows(shape)
        parts = [self._part(x, shape) for x in self.operands]

        def row(i: Number) -> Vector:
            vectors = [p(i) for p in parts]
            return lambda j, lanes, mask: self.function(*[v(j, lanes, mask) for v in vectors])

        return row

    def _part(self, x: object, shape: Shape) -> Callable[[Number], Callable[[Number, int, Mask], object]]:
        if isinstance(x, Tile):
            return x.rows(shape)
        if type(x) in (int, float, bool):
            return lambda i: lambda j, lanes, mask: x
        value = self.at.let("scalar", x)
        return lambda i: lambda j, lanes, mask: value


def _inside(x: object, shape: Shape) -> bool:
    """Whether an operand is computed in the loops of the work it is part of; else it is in memory before them."""
    return isinstance(x, Elementwise) and extents(x.shape) == extents(shape)


def element(value: object, dtype: DataType) -> Computed:
    """A number or scalar as an element of a type."""
    made: Computed = op("cast")(str(value) if type(value) is float and not isfinite(value) else value, dtype)
    return made


class Constant(Tile):
    """One value in every element."""

    def __init__(self, at: Machine, shape: Shape, dtype: DataType, value: object) -> None:
        super().__init__(at, shape, dtype)
        self.value = element(value, dtype)

    def reads(self, base: object, to: Storage | None = None) -> bool:
        return False

    def rows(self, shape: Shape) -> Row:
        value = self.at.let("scalar", self.value)
        return lambda i: lambda j, lanes, mask: op("vbcast")(value, None, lanes)


class Index(Tile):
    """The number of each element along an axis."""

    def __init__(self, at: Machine, shape: Shape, axis: int) -> None:
        super().__init__(at, shape, INT32)
        self.along_rows = axis + (2 - len(shape)) == 0 and not (shape[-1] == 1 and len(shape) == 2)

    def reads(self, base: object, to: Storage | None = None) -> bool:
        return False

    def rows(self, shape: Shape) -> Row:
        if extents(shape) != extents(self.shape):
            return self.stored().rows(shape)
        if self.along_rows:
            return lambda i: lambda j, lanes, mask: op("cast")(i, INT32) if isinstance(i, int) else i
        return lambda i: lambda j, lanes, mask: op("cast")(list(range(lanes)), f"int32x{lanes}") + j


def fill(at: Machine, to: Storage, source: Row) -> None:
    """Write the elements of a source to a storage."""
    rows, cols = extents(to.shape)
    if to.is_column:
        rows, cols = 1, rows

    def row(i: Number) -> None:
        start = _moved(to.pointer, i * to.pitch) if rows > 1 else to.pointer
        elements = source(i)

        def some(j: Number, lanes: int, mask: Mask) -> None:
            at.do("vstore", spread(elements(j, lanes, mask), to.dtype, lanes), _moved(start, j), mask)

        columns(at, cols, at.width(cols), some)

    at.loop(0, rows, 1, row)


def spread(value: Computed, kind: DataType, lanes: int) -> Computed:
    """A vector, or a scalar in so many lanes."""
    if value.dtype.lanes > 1:
        return value
    found: Computed = op("vbcast")(op("cast")(value, kind), None, lanes)
    return found


def columns(at: Machine, count: int, lanes: int, some: Callable[[Number, int, Mask], None]) -> None:
    """Call `some` for pieces of a row: whole vectors, and one with a mask for the rest."""
    whole = count // lanes * lanes
    at.loop(0, whole, lanes, lambda j: some(j, lanes, None))
    rest = count - whole
    if rest:
        width = rest + -rest % 8
        some(whole, width, None if width == rest else masked(rest, width))


def masked(active: int, lanes: int) -> Mask:
    return [k < active for k in range(lanes)]


class Known(Tile):
    """A tile whose elements a machine knows; it has no memory as long as nothing asks for that."""

    def __init__(self, at: Machine, shape: Shape, dtype: DataType, values: object) -> None:
        self.at, self.shape, self.dtype, self.values = at, shape, dtype, values
        self._stored: Stored | None = None

    def reads(self, base: object, to: Storage | None = None) -> bool:
        return False

    def stored(self) -> Stored:
        if self._stored is None:
            self._stored = copied(self)
        return self._stored


def made(tile: Tile) -> Tile:
    """A tile that an expression makes: computed here where the machine does that."""
    if not tile.at.eager or tile.dtype not in STORAGE:
        return tile
    values = tile.at.values(tile)
    return tile.stored() if values is None else Known(tile.at, tile.shape, tile.dtype, values)


def elementwise(
    function: Callable[..., Computed], operands: tuple[object, ...], what: str, key: Hashable = None
) -> Tile:
    """A function of elements. Functions of one key do the same with values of one type; without a key it is like no other."""
    return _computed(machine(what), function, operands, what, key)


def _computed(
    at: Machine, function: Callable[..., Computed], operands: tuple[object, ...], what: str, key: Hashable
) -> Tile:
    found = at.elementwise(function, operands, what, key)
    if found is None:
        return element_by_element(at, function, operands, what)
    assert isinstance(found, Tile)
    return found


def element_by_element(at: Machine, function: Callable[..., Computed], operands: tuple[object, ...], what: str) -> Tile:
    """A function of elements, whose types are found out by a sample."""
    checked = tuple([x if isinstance(x, Tile) else at.operand(x, what) for x in operands])
    return made(Elementwise(at, function, checked, what))


def binary(symbol: str, a: object, b: object) -> Tile:
    """`a symbol b`, where one of them is a tile."""
    what = f"`{symbol}`"
    at = machine(f"{what} on a tile")
    return _computed(at, partial(at.binary, symbol), (a, b), what, symbol)


_OPTIONS = frozenset((str, bool, type(None), DataType))
"""Types of options by which two calls of an operation are known to be alike."""
_MOST = 1024
_calls: dict[object, tuple[Callable[..., Computed], str, Hashable]] = {}
"""By operation and options: the function of elements, its name in messages, its key."""


def apply(operation: Op, args: tuple[object, ...], kwargs: dict[str, object]) -> Tile:
    """An operation on tiles, element by element."""
    count = 1 if operation.special else len(operation.operands)
    options = (*args[count:], *kwargs.values())
    known = (operation.name, options, *kwargs)
    if len(args) < count or not _OPTIONS.issuperset(map(type, options)):
        return elementwise(*_called(operation, args, kwargs))
    if known not in _calls:
        if len(_calls) >= _MOST:
            _calls.clear()
        function, _, what, _ = _called(operation, args, kwargs)
        _calls[known] = function, what, known
    function, what, key = _calls[known]
    return elementwise(function, args[:count], what, key)


def _called(
    operation: Op, args: tuple[object, ...], kwargs: dict[str, object]
) -> tuple[Callable[..., Computed], tuple[object, ...], str, None]:
    """What `elementwise` takes of a call, checked."""
    name = f"S.{operation.name}"
    if operation.special and operation.name != "cast":
        raise error(f"{name} does not take tiles", "S.tile_load and S.tile_store move tiles")
    given = operation.given(args, kwargs)
    operands = [given.pop(n) for n in (("x",) if operation.special else operation.operands)]
    if any(given.pop(n, None) is not None for n in ("mask", "r")):
        raise error(f"{name} takes no mask and no r on tiles", "choose elements with S.tile_where")
    if any(isinstance(v, Tile) for v in given.values()):
        raise error(f"{name}: a tile is an operand, not an option", "choose elements with S.tile_where")
    return partial(op(operation.name), **given), tuple(operands), name, None


def _unary(symbol: str, tile: Tile) -> Tile:
    return elementwise(lambda x: tile.at.unary(symbol, x), (tile,), f"`{symbol}`", ("of one", symbol))


python_operators.install(Tile, binary, _unary)
