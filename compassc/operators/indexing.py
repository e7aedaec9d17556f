"""Operators whose places are data: take, gather, scatter, one-hot, and sorting by counting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compassc import te
from compassc.ir.dtypes import INT32, DataType
from compassc.ir.dtypes import dtype as type_of
from compassc.ir.errors import ExpressionError
from compassc.ir.exprs import Expr
from compassc.ir.iter_vars import IterVar
from compassc.operators.arrays import larger, order, smaller
from compassc.operators.declare import (
    Whole,
    axis_of,
    greatest,
    largest,
    least,
    number,
    numbers,
    operator,
    sample,
    sizes,
    smallest,
)
from compassc.operators.elementwise import cast
from compassc.operators.movement import reshape
from compassc.operators.patterns import PatternKind
from compassc.te.reduce import Reducer
from compassc.te.tensor import Tensor

INT8, INT16 = type_of("int8"), type_of("int16")


def _inside(place: Expr, extent: int | Expr, mode: str) -> Expr:
    """A place on an axis: of `clip` the nearest there is, of `wrap` counted round; of `fast` as it is."""
    if mode == "clip":
        found: Expr = te.min(te.max(place, 0), extent - 1)
        return found
    if mode == "wrap":
        return place % extent
    if mode == "fast":
        return place
    raise ExpressionError(f"topi.take has no mode '{mode}': clip, wrap, fast")


def _place(e: Expr, extent: int | Expr) -> Expr:
    """A place that may count from the end."""
    at = te.cast(e, INT32)
    return te.Select(at < 0, at + extent, at)


def _element(e: Expr, extent: int | Expr) -> Expr:
    """A place that may count from the end; the nearest that there is, so that vectors of them can be gathered."""
    return _inside(_place(e, extent), extent, "clip")


@operator(PatternKind.INJECTIVE, 
    lambda a, indices, axis=None, mode="clip": np.take(a, indices, axis, mode=mode),
    sample((5, 4), Whole((2, 3), -1, 7), 0), sample((3, 6), Whole((4,), 0, 6), 1, "wrap"), sample((12,), Whole((5,), 0, 12)),
)  # fmt: skip
def take(a: Tensor, indices: Tensor, axis: int | None = None, mode: str = "clip") -> Tensor:
    """The elements (or slices on an axis) at these places."""
    if axis is None:
        return take(reshape(a, [int(np.prod(numbers(a, "take"), dtype=np.int64))]), indices, 0, mode)
    at, shape = axis_of(axis, a.ndim, "take"), sizes(a)
    end = at + indices.ndim

    def element(*i: Expr) -> Expr:
        place = _inside(te.cast(indices[tuple(i[at:end])], INT32), shape[at], mode)
        found: Expr = a[(*i[:at], place, *i[end:])]
        return found

    made: Tensor = te.compute([*shape[:at], *sizes(indices), *shape[at + 1 :]], element, name="T_take", tag="injective")
    return made


def _gathered(data: Array, axis: int, indices: Array) -> Array:
    """As the definition, but for places that there are not, which are an error; other axes of the indices may be shorter."""
    at = axis_of(axis, data.ndim, "gather")
    rest = tuple(slice(None if d == at else n) for d, n in enumerate(indices.shape))
    return np.take_along_axis(data[rest], indices, at)


@operator(PatternKind.INJECTIVE, 
    _gathered, sample((4, 5), 1, Whole((4, 3), 0, 5)),
    sample((4, 5), 0, Whole((2, 5), -4, 4)), sample((4, 5), 1, Whole((3, 2), -5, 5)),
)  # fmt: skip
def gather(data: Tensor, axis: int, indices: Tensor) -> Tensor:
    """The element of each place on an axis (the nearest there is), the other indices as they are."""
    at, shape = axis_of(axis, data.ndim, "gather"), sizes(data)
    made: Tensor = te.compute(
        sizes(indices),
        lambda *i: data[(*i[:at], _element(indices[i], shape[at]), *i[at + 1 :])],
        name="T_gather",
        tag="injective",
    )
    return made


@operator(
    PatternKind.INJECTIVE,
    lambda a, indices: a[tuple(indices)],
    sample((4, 5), Whole((2, 3), 0, 4)),
    sample((4, 5), Whole((1, 3), 0, 4)),
)
def gather_nd(a: Tensor, indices: Tensor) -> Tensor:
    """The elements at the places whose indices are the columns of `indices` (the nearest there are)."""
    count = numbers(indices, "gather_nd")[0]
    shape, rest = sizes(a), sizes(indices)[1:]

    def element(*i: Expr) -> Expr:
        where = [_element(indices[(n, *i[: len(rest)])], shape[n]) for n in range(count)]
        found: Expr = a[(*where, *i[len(rest) :])]
        return found

    made: Tensor = te.compute([*rest, *shape[count:]], element, name="T_gather_nd", tag="injective")
    return made


def _scattered(data: Array, indices: Array, updates: Array, axis: int = 0, reduction: str = "update") -> Array:
    found, axis = data.copy(), axis_of(axis, data.ndim, "scatter_elements")
    with np.errstate(over="ignore"):
        for i in np.ndindex(indices.shape):
            at = (*i[:axis], indices[i], *i[axis + 1 :])
            old, new = found[at], updates[i]
            found[at] = {"update": new, "add": old + new, "mul": old * new, "min": smaller(old, new),
                         "max": larger(old, new)}[reduction]  # fmt: skip
    return found


@operator(PatternKind.OPAQUE, 
    _scattered, sample((5, 3), Whole((4, 3), 0, 5), (4, 3)), sample((3, 6), Whole((3, 4), -6, 6), (3, 4), 1),
    *(sample((5, 3), Whole((7, 3), 0, 5), (7, 3), 0, r) for r in ("add", "min", "max")),
)  # fmt: skip
def scatter_elements(
    data: Tensor, indices: Tensor, updates: Tensor, axis: int = 0, reduction: str = "update"
) -> Tensor:
    """`data` with updates at places of an axis: of `update` the last one of a place counts, else all are joined."""
    at, shape = axis_of(axis, data.ndim, "scatter_elements"), sizes(data)
    count = sizes(indices)[at]
    if sizes(updates) != sizes(indices):
        raise ExpressionError("topi.scatter_elements: indices and updates are of different shapes")
    k = te.reduce_axis((0, count), name="k")
    many = isinstance(shape[at], int) and shape[at] >= _COMPARED
    kind, turns = (_narrowest(n) if many else INT32 for n in (shape[at], count))
    narrow = _narrow_places(indices, shape[at], kind) if many else None

    def hits(i: tuple[Expr, ...]) -> tuple[tuple[object, ...], Expr]:
        where = (*i[:at], k, *i[at + 1 :])
        there = _covered(i, at, sizes(indices), shape)
        place = _place(indices[where], shape[at]) if narrow is None else narrow[where]
        return where, te.all(*there, place == te.cast(i[at], kind))

    if reduction == "update":

        def last(*i: Expr) -> object:
            _, hit = hits(i)
            return te.max(te.if_then_else(hit, te.cast(k, turns), number(-1, turns)), axis=k)

        found: Tensor = te.compute(shape, last, name="T_scatter_last", tag="comm_reduce")

        def element(*i: Expr) -> Expr:
            turn = te.min(te.max(found[i], number(0, turns)), te.cast(count - 1, turns))
            where = (*i[:at], te.cast(turn, INT32), *i[at + 1 :])
            return te.if_then_else(found[i] >= number(0, turns), updates[where], data[i])

        made: Tensor = te.compute(shape, element, name="T_scatter", tag="injective")
        return made
    joins: dict[str, tuple[Reducer, Callable[[Expr, Expr], Expr], Expr]] = {
        "add": (te.sum, lambda a, b: a + b, number(0, data.dtype)),
        "mul": (te.prod, lambda a, b: a * b, number(1, data.dtype)),
        "min": (smallest, lambda a, b: te.min(a, b), greatest(data.dtype)),
        "max": (largest, lambda a, b: te.max(a, b), least(data.dtype)),
    }
    if reduction not in joins:
        raise ExpressionError(f"topi.scatter_elements has no reduction '{reduction}': update, {', '.join(joins)}")
    reducer, join, nothing = joins[reduction]

    def together(*i: Expr) -> Expr:
        where, hit = hits(i)
        found: Expr = reducer(te.if_then_else(hit, updates[where], nothing), axis=k)
        return found

    joined: Tensor = te.compute(shape, together, name="T_scatter_joined", tag="comm_reduce")
    result: Tensor = te.compute(shape, lambda *i: join(data[i], joined[i]), name="T_scatter", tag="injective")
    return result


_COMPARED = 16
"""With how many places each place that is given is compared at least, for which it is brought to a narrow type before."""


def _narrowest(extent: object) -> DataType:
    """The narrowest type of whole numbers that places on an axis fit, and -1."""
    return next((k for k in (INT8, INT16) if isinstance(extent, int) and extent <= 1 << k.bits - 1), INT32)


def _narrow_places(indices: Tensor, extent: int, kind: DataType) -> Tensor:
    """Places that may count from the end, -1 for those that there are not: a stage of its own, for each of them is compared
    with all that there are, in lanes of its type."""

    def element(*i: Expr) -> Expr:
        place = _place(indices[i], extent)
        return te.cast(te.Select(te.all(place >= 0, place < extent), place, te.const(-1)), kind)

    made: Tensor = te.compute(sizes(indices), element, name="T_scatter_places", tag="injective")
    return made


def _covered(i: Sequence[Expr], at: int, inner: Sequence[object], shape: Sequence[object]) -> list[object]:
    """That an index is inside of smaller axes."""
    return [v < n for d, (v, n, m) in enumerate(zip(i, inner, shape)) if d != at and n is not m and n != m]


@operator(
    PatternKind.INJECTIVE,
    lambda indices, depth, dtype="float32": (indices[..., None] == np.arange(depth)).astype(dtype),
    sample(Whole((3, 2), -2, 7), 5),
    types=("int32",),
)
def one_hot(indices: Tensor, depth: int, dtype: str = "float32") -> Tensor:
    """A new last axis: 1 at the place that is said, else 0."""
    on, off = number(1, dtype), number(0, dtype)
    made: Tensor = te.compute(
        [*sizes(indices), depth],
        lambda *i: te.Select(te.cast(indices[i[:-1]], INT32) == i[-1], on, off),
        name="T_one_hot",
        tag="injective",
    )
    return made


# -------------------------------------------------------------------------------------------------------------- sorting


def _keys(data: Tensor, is_ascend: bool) -> Tensor:
    """What elements are compared by: NaN comes last, as the infinity that does."""
    if data.dtype.is_integer:
        return data
    last = (greatest if is_ascend else least)(data.dtype)
    made: Tensor = te.compute(
        sizes(data), lambda *i: te.Select(data[i] == data[i], data[i], last), name="T_keys", tag="elemwise"
    )
    return made


_CODED = 4096
"""Of how many elements that a row lies in there are codes at most: they are in the memory of a TEC."""


@dataclass(frozen=True)
class _Codes:
    """Elements of a narrow type as whole numbers, no two of a row alike, that are in order as the elements are, equal ones by
    their places: the value above the place, below which a bit of halves tells -0.0 from zero, NaN from infinity."""

    tensor: Tensor
    of: DataType
    bits: int
    is_ascend: bool

    @property
    def _flags(self) -> int:
        return int(self.of.is_floating)

    def place(self, code: Expr) -> Expr:
        low = (te.cast(code, INT32) >> self._flags) & te.const((1 << self.bits) - 1)
        return low if self.is_ascend else te.const((1 << self.bits) - 1) - low

    def value(self, code: Expr) -> Expr:
        image = te.cast(code, INT32) >> (self.bits + self._flags)
        if not self.of.is_floating:
            return te.cast(image + te.const(_lifted(self.of)), self.of)
        lost = te.Select(image == te.const(0), te.const(-1 << 15), te.const((1 << 15) - 1))
        found = te.Select((code & te.const(1)) == te.const(1), lost, _turned(image))
        return te.reinterpret(self.of, te.cast(found, INT16))


def _lifted(kind: DataType) -> int:
    """By how much numbers of a type are above the signed ones of as many bits."""
    return 0 if kind.range()[0] else 1 << kind.bits - 1


def _turned(bits: Expr, width: int = 16) -> Expr:
    """The bits of a real of a width in order as its values, both zeros 0; and back."""
    return te.Select(bits < number(0, bits.dtype), number(-1 << width - 1, bits.dtype) - bits, bits)


def _together(data: Tensor, at: int) -> bool:
    """Whether what the elements of an axis lie in is known to fit the memory of a TEC, as codes."""
    extents = sizes(data)[at:]
    return all(isinstance(n, int) for n in extents) and prod(extents) <= _CODED


def _codes(data: Tensor, at: int, is_ascend: bool) -> _Codes | None:
    """None for elements that are too wide, or too many of them in a row."""
    kind, extent = data.dtype, sizes(data)[at]
    if kind.is_bool or kind.bytes > 2 or (kind.is_floating and kind.bytes != 2):
        return None
    if not _together(data, at):
        return None
    bits, flags = max(extent - 1, 1).bit_length(), int(kind.is_floating)
    code = next((k for k in (INT16, INT32) if kind.bits + bits + flags <= k.bits), None)
    if code is None:
        return None
    last = (greatest if is_ascend else least)(kind)

    def element(*i: Expr) -> Expr:
        x, place = data[i], te.cast(i[at], code)
        low = place if is_ascend else number((1 << bits) - 1, code) - place
        if not flags:
            return ((te.cast(x, code) - number(_lifted(kind), code)) << number(bits, code)) + low
        raw = te.reinterpret(INT16, x)
        image = _turned(te.reinterpret(INT16, te.Select(data[i] == data[i], x, last)))
        flag = te.Select(te.any(data[i] != data[i], raw == number(-1 << 15, INT16)), number(1, INT16), number(0, INT16))
        return (te.cast(image, code) << number(bits + 1, code)) + (low << number(1, code)) + te.cast(flag, code)

    return _Codes(te.compute(sizes(data), element, name="T_codes", tag="elemwise"), kind, bits, is_ascend)


def _ranks(data: Tensor, at: int, is_ascend: bool) -> Tensor:
    """How many elements of its row come before each element; equal ones in order of their places."""
    shape = sizes(data)
    k = te.reduce_axis((0, shape[at]), name="k")

    def element(*i: Expr) -> object:
        own, other = data[i], data[(*i[:at], k, *i[at + 1 :])]
        before = other < own if is_ascend else other > own
        tie = te.all(other == own, te.cast(k, INT32) < i[at])
        return te.sum(te.Select(te.any(before, tie), te.const(1), te.const(0)), axis=k)

    made: Tensor = te.compute(shape, element, name="T_ranks", tag="comm_reduce")
    return made


def _at_rank(ranks: Tensor, at: int, count: object) -> Tensor:
    """The place of the element of each rank."""
    shape = sizes(ranks)
    k = te.reduce_axis((0, shape[at]), name="j")

    def element(*i: Expr) -> object:
        hit = ranks[(*i[:at], k, *i[at + 1 :])] == i[at]
        return te.max(te.Select(hit, te.cast(k, INT32), te.const(-1)), axis=k)

    made: Tensor = te.compute([*shape[:at], count, *shape[at + 1 :]], element, name="T_places", tag="comm_reduce")
    return made


_PICKED, _AMONG = 8, 16
"""Of how many elements at most, and of a row of how many times as many at least, each is found by reductions of its own."""


def _picked(
    data: Tensor, keys: Tensor, at: int, count: int, is_ascend: bool, alone: bool = False
) -> tuple[Tensor, Tensor]:
    """The first elements of each row in order, and their places: the best of those behind the one before, one by one.
    `alone`: values are wanted without places, so they need not be loaded by them where they are what is compared."""
    shape, kind = sizes(data), INT16 if data.dtype.bytes < 4 and sizes(data)[at] < 1 << 15 else INT32
    kept = [*shape[:at], 1, *shape[at + 1 :]]
    reducer, nothing = (smallest, greatest) if is_ascend else (largest, least)
    none = te.const((1 << kind.bits - 1) - 1, str(kind))
    found: list[tuple[Tensor, Tensor]] = []

    def behind(i: tuple[Expr, ...], k: IterVar) -> tuple[Expr, list[Expr]]:
        """An element, and the conditions under which it comes after that which was found last."""
        x = keys[(*i[:at], k, *i[at + 1 :])]
        if not found:
            return x, []
        value, place = (t[(*i[:at], 0, *i[at + 1 :])] for t in found[-1])
        after = value < x if is_ascend else x < value
        return x, [te.any(after, te.all(x == value, te.cast(k, kind) > place))]

    def best(*i: Expr) -> Expr:
        k = te.reduce_axis((0, shape[at]), name="k")
        x, conditions = behind(i, k)
        found: Expr = reducer(te.Select(te.all(*conditions), x, nothing(data.dtype)) if conditions else x, axis=k)
        return found

    def place_of(value: Tensor, name: str) -> Tensor:
        def first(*i: Expr) -> Expr:
            k = te.reduce_axis((0, shape[at]), name="j")
            x, conditions = behind(i, k)
            found: Expr = te.min(te.Select(te.all(x == value[i], *conditions), te.cast(k, kind), none), axis=k)
            return found

        made: Tensor = te.compute(kept, first, name=name, tag="comm_reduce_idx")
        return made

    for n in range(count):
        value = te.compute(kept, best, name=f"T_best{n}", tag="comm_reduce")
        found.append((value, place_of(value, f"T_place{n}")))

    def chosen(which: int, kind: DataType, name: str) -> Tensor:
        made: Tensor = te.compute(
            [*shape[:at], count, *shape[at + 1 :]],
            lambda *i: te.cast(_nth([pair[which] for pair in found], i, at), kind),
            name=name,
            tag="injective",
        )
        return made

    places = chosen(1, INT32, "T_places")
    if alone and keys is data:
        return chosen(0, data.dtype, "T_topk"), places
    return _at_places(data, places, at), places


def _picked_codes(data: Tensor, codes: _Codes, at: int, count: int, alone: bool) -> tuple[Tensor, Tensor]:
    """As `_picked`, of codes: each is the best of those behind the one before."""
    shape, kind = sizes(codes.tensor), codes.tensor.dtype
    reducer, nothing = (smallest, greatest) if codes.is_ascend else (largest, least)
    found: list[Tensor] = []

    def best(*i: Expr) -> Expr:
        k = te.reduce_axis((0, shape[at]), name="k")
        x = codes.tensor[(*i[:at], k, *i[at + 1 :])]
        if found:
            before = found[-1][(*i[:at], 0, *i[at + 1 :])]
            x = te.Select(before < x if codes.is_ascend else x < before, x, nothing(kind))
        made: Expr = reducer(x, axis=k)
        return made

    for n in range(count):
        found.append(te.compute([*shape[:at], 1, *shape[at + 1 :]], best, name=f"T_best{n}", tag="comm_reduce"))
    made = [*shape[:at], count, *shape[at + 1 :]]
    places: Tensor = te.compute(made, lambda *i: codes.place(_nth(found, i, at)), name="T_places", tag="injective")
    if not alone:
        return _at_places(data, places, at), places
    return te.compute(made, lambda *i: codes.value(_nth(found, i, at)), name="T_topk", tag="injective"), places


def _picked_images(data: Tensor, keys: Tensor, at: int, count: int, is_ascend: bool) -> tuple[Tensor, Tensor]:
    """As `_picked`, of floats: by their bits in order, of which those of an element that was found become the worst of all."""
    shape, worst = sizes(data), greatest(INT32) if is_ascend else least(INT32)
    kept = [*shape[:at], 1, *shape[at + 1 :]]
    left: Tensor = te.compute(
        shape, lambda *i: _turned(te.reinterpret(INT32, keys[i]), 32), name="T_codes", tag="elemwise"
    )
    found: list[Tensor] = []

    def best(*i: Expr) -> Expr:
        k = te.reduce_axis((0, shape[at]), name="k")
        made: Expr = (smallest if is_ascend else largest)(left[(*i[:at], k, *i[at + 1 :])], axis=k)
        return made

    def first(value: Tensor) -> Callable[..., Expr]:
        def place(*i: Expr) -> Expr:
            k = te.reduce_axis((0, shape[at]), name="j")
            hit = left[(*i[:at], k, *i[at + 1 :])] == value[i]
            made: Expr = te.min(te.Select(hit, te.cast(k, INT32), greatest(INT32)), axis=k)
            return made

        return place

    def without(before: Tensor, place: Tensor) -> Callable[..., Expr]:
        def element(*i: Expr) -> Expr:
            made: Expr = te.Select(i[at] == place[(*i[:at], 0, *i[at + 1 :])], worst, before[i])
            return made

        return element

    for n in range(count):
        if found:
            left = te.compute(shape, without(left, found[-1]), name="T_codes", tag="elemwise")
        value = te.compute(kept, best, name=f"T_best{n}", tag="comm_reduce")
        found.append(te.compute(kept, first(value), name=f"T_place{n}", tag="comm_reduce_idx"))
    places: Tensor = te.compute(
        [*shape[:at], count, *shape[at + 1 :]], lambda *i: _nth(found, i, at), name="T_places", tag="injective"
    )
    inside: Tensor = te.compute(
        sizes(places), lambda *i: _inside(places[i], shape[at], "clip"), name="T_inside", tag="injective"
    )  # so that vectors of them can be gathered
    return _at_places(data, inside, at), places


def _at_places(data: Tensor, places: Tensor, at: int) -> Tensor:
    """The elements of data at places of an axis."""
    made: Tensor = te.compute(
        sizes(places), lambda *i: data[(*i[:at], places[i], *i[at + 1 :])], name="T_topk", tag="injective"
    )
    return made


def _nth(found: Sequence[Tensor], i: tuple[Expr, ...], at: int) -> Expr:
    """The element of the tensor whose number an index is."""
    own = [t[(*i[:at], 0, *i[at + 1 :])] for t in found]
    made: Expr = own[-1]
    for n in reversed(range(len(own) - 1)):
        made = te.if_then_else(i[at] == n, own[n], made)
    return made


def _topk(x: Array, k: int = 1, axis: int = -1, ret_type: str = "both", is_ascend: bool = False) -> Array | list[Array]:
    places = order(x, axis, is_ascend)
    places = np.take(places, range(k or x.shape[axis]), axis)
    values = np.take_along_axis(x, places, axis)
    found: dict[str, Array | list[Array]] = {"both": [values, places], "values": values, "indices": places}
    return found[ret_type]


@operator(
    PatternKind.OPAQUE,
    _topk,
    sample((3, 9), 4),
    sample((5, 4), 2, 0, "values", True),
    sample((2, 7), 0, 1, "indices", True),
    sample((8,), 3),
)
def topk(
    data: Tensor, k: int = 1, axis: int = -1, ret_type: str = "both", is_ascend: bool = False, dtype: str = "int32"
) -> Any:
    """The `k` largest (or with `is_ascend` smallest) elements of an axis in order, and their places; all for k = 0.

    `ret_type`: both, values or indices. Of equal ones the first comes first; NaN counts as the infinity that comes last.
    """
    at = axis_of(axis, data.ndim, "topk")
    extent = sizes(data)[at]
    keys = _keys(data, is_ascend)
    if 0 < k <= _PICKED and isinstance(extent, int) and extent >= _AMONG * k:
        codes = _codes(data, at, is_ascend)
        if codes is not None:
            best, first = _picked_codes(data, codes, at, k, ret_type == "values")
        elif data.dtype == "float32" and at == data.ndim - 1 and _together(data, at):
            best, first = _picked_images(data, keys, at, k, is_ascend)
        else:
            best, first = _picked(data, keys, at, k, is_ascend, ret_type == "values")
        first = first if dtype == "int32" else cast(first, dtype)
        return {"both": [best, first], "values": best}.get(ret_type, first)
    places = _at_rank(_ranks(keys, at, is_ascend), at, k or extent)
    kept = places if dtype == "int32" else cast(places, dtype)
    if ret_type == "indices":
        return kept
    values = _at_places(data, places, at)
    return values if ret_type == "values" else [values, kept]


@operator(PatternKind.OPAQUE, 
    order,
    sample((3, 7)), sample((5, 2), 0, False),
)  # fmt: skip
def argsort(data: Tensor, axis: int = -1, is_ascend: bool = True, dtype: str = "int32") -> Tensor:
    """The places of the elements in order."""
    found: Tensor = topk(data, 0, axis, "indices", is_ascend, dtype)
    return found


@operator(PatternKind.OPAQUE, 
    lambda x, axis=-1, is_ascend=True: _topk(x, 0, axis, "values", is_ascend),
    sample((3, 7)), sample((5, 2), 0, False),
)  # fmt: skip
def sort(data: Tensor, axis: int = -1, is_ascend: bool = True) -> Tensor:
    """The elements in order."""
    found: Tensor = topk(data, 0, axis, "values", is_ascend)
    return found
