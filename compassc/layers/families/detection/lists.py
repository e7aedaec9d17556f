"""What kernels of boxes store: elements of outputs, and lists of boxes with their scores and of classes, by image."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compassc.build import Address, Expression, Pointer, Value
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.vectors import LANES, clamp, narrow, wide_kind

FAR = 0x7FFFFFFF
"""A place behind all others, and a score above all others; its negative is below all."""


def whole_numbers(*tensors: Tensor, of: str = "") -> None:
    """LayerError where tensors hold no whole numbers; `of`: what these would be the numbers of."""
    for t in tensors:
        if wide_kind(t) != "int32":
            raise LayerError(f"'{t.name}' is {t.dtype}, expected {f'numbers of {of}' if of else 'whole numbers'}")


def floats(*tensors: Tensor) -> None:
    """LayerError where tensors hold no floats."""
    for t in tensors:
        if wide_kind(t) != "float32":
            raise LayerError(f"'{t.name}' is {t.dtype}, expected floats")


def same_kinds(layer: Layer, boxes: Tensor, scores: Tensor, whole: Sequence[Tensor]) -> None:
    for t in whole:
        if wide_kind(t) not in ("int32", "float32"):
            raise LayerError(f"'{t.name}' is {t.dtype}")
    kind = "int32" if layer.is_quantised else "float32"
    for t in (*layer.inputs, boxes, scores):
        if wide_kind(t) != kind:
            raise LayerError(f"'{t.name}' is {t.dtype}, which has no kernel here")


def ends(kind: str) -> tuple[Expression, Expression]:
    """Numbers of a kind that are below and above all others; in floats infinities."""
    low, high = (S.fp32("-inf"), S.fp32("inf")) if kind == "float32" else (S.i32(-FAR), S.i32(FAR))
    return S.cast(low, kind), S.cast(high, kind)


def more(value: Expression, number: int) -> Expression:
    """An integer plus a number of the layer."""
    return value + number if number else value


def scalar(pointer: Address, at: Expression | int, of: Tensor, zero: int = 0) -> Expression:
    """An element of a tensor in its wide form, plus a number."""
    return more(S.cast(pointer[at], wide_kind(of)), zero)


def counting(k: LayerKernel) -> Value:
    """The numbers of the lanes."""
    return k.held("lanes", S.vload(k.pointer(np.arange(LANES, dtype=np.int32)), lanes=LANES))


def ones(where: Expression) -> Expression:
    """1 in the lanes of a mask, 0 in the others."""
    return S.vsel(S.vbcast(S.i32(1), lanes=LANES), S.vbcast(S.i32(0), lanes=LANES), where)


class Output:
    """A tensor whose elements a kernel stores one by one, in their wide form."""

    def __init__(self, k: LayerKernel, tensor: Tensor) -> None:
        self.tensor, self.kind, self.pointer = tensor, wide_kind(tensor), k.tensor(tensor)

    def put(self, at: Expression | int, value: Expression) -> None:
        self.pointer[at] = narrow(value, self.tensor.dtype)

    def put_limited(self, at: Expression | int, value: Expression) -> None:
        """Stores a number that may be beyond the tensor's integers."""
        t = self.tensor
        self.put(at, clamp(value, t.low, t.high) if t.is_integer else value)

    def put_count(self, at: Expression | int, value: Expression) -> None:
        """Stores a whole number, which the tensor may hold as a float."""
        t = self.tensor
        self.pointer[at] = narrow(value, t.dtype) if t.is_integer else S.cast(S.cast(value, "float32"), t.dtype)

    def fill(self, at: Expression | int, number: int = 0) -> None:
        self.put(at, S.cast(number, self.kind))


class BoxList:
    """Boxes with scores, up to `room` for each image. What no box takes is 0."""

    def __init__(self, k: LayerKernel, boxes: Tensor, scores: Tensor, room: int) -> None:
        self.k, self.boxes, self.scores = k, Output(k, boxes), Output(k, scores)
        self.room = k.number(room)

    def begin(self, image: Expression) -> None:
        """The empty list of an image."""
        self.image, self.filled = image, self.k.changing("filled", S.i32(0))

    @property
    def place(self) -> Expression:
        """The place of the next box."""
        return self.image * self.room + self.filled

    @property
    def has_room(self) -> Expression:
        found: Expression = self.filled < self.room
        return found

    def put(self, corners: Sequence[Expression], score: Expression) -> None:
        """Stores the next box. Integers are limited to what the outputs hold."""
        self.store(self.k.held("to", self.place), corners, score)
        self.took_one()

    def store(self, at: Expression, corners: Sequence[Expression], score: Expression) -> None:
        """Stores a box at a place of the list."""
        for e, corner in enumerate(corners):
            self.boxes.put_limited(at * 4 + e, corner)
        self.scores.put_limited(at, score)

    def copy(self, boxes: Address, scores: Address, at: Expression) -> None:
        """The next box is one of others, whose elements are stored as these are."""
        to = self.k.held("to", self.place)
        self.scores.pointer[to] = scores[at]
        with self.k.for_range(0, 4, name="i") as i:
            self.boxes.pointer[to * 4 + i] = boxes[at * 4 + i]
        self.took_one()

    def took_one(self) -> None:
        """The next place has its box."""
        self.k.assign(self.filled, self.filled + 1)

    def end(self) -> None:
        k = self.k
        with k.for_range(self.filled, self.room, name="z") as z:
            place = self.image * self.room + z
            with k.for_range(0, 4, name="e") as e:
                self.boxes.fill(place * 4 + e)
            self.scores.fill(place)


class ClassList:
    """Classes that have boxes, up to `slots` for each image: their labels, and how many boxes each has."""

    def __init__(self, k: LayerKernel, counts: Tensor, labels: Tensor, many: Tensor, slots: int) -> None:
        self.k, self.counts, self.labels, self.many = k, Output(k, counts), Output(k, labels), Output(k, many)
        self.slots = k.number(slots)

    def begin(self, image: Expression) -> None:
        """The empty list of an image."""
        self.image, self.listed = image, self.k.changing("listed", S.i32(0))

    @property
    def has_room(self) -> Expression:
        found: Expression = self.listed < self.slots
        return found

    def put(self, label: Expression, count: Expression) -> None:
        to = self.image * self.slots + self.listed
        self.counts.put_count(to, count)
        self.labels.put_count(to, label)
        self.k.assign(self.listed, self.listed + 1)

    def end(self) -> None:
        self.many.put_count(self.image, self.listed)
        with self.k.for_range(self.listed, self.slots, name="z") as z:
            to = self.image * self.slots + z
            self.counts.fill(to)
            self.labels.fill(to)


class Entries:
    """A table of whole numbers at indices from 0, with 2^extra of them from one entry to the next: between entries the
    value is interpolated and rounded down.

    `last`: the last entry's place in a table that does not end with a copy of it. `first`: what is added to indices.
    """

    def __init__(self, k: LayerKernel, table: Pointer, extra: int, first: int = 0, last: int | None = None) -> None:
        self.k, self.table, self.extra, self.first, self.last = k, table, extra, first, last

    def at(self, index: Expression) -> Expression:
        k, extra, index = self.k, self.extra, more(index, self.first)
        if extra <= 0:
            return S.i32(self.table[index])
        at = k.held("at", index)
        low = k.held("low", S.i32(self.table[at >> extra]))
        following = (at >> extra) + 1
        if self.last is not None:
            following = S.min(following, self.last)
        step = k.held("step", S.i32(self.table[following]) - low)
        return low + ((step * (at & ((1 << extra) - 1))) >> extra)


def entries_of(k: LayerKernel, layer: Layer, key: str, of: Tensor) -> Entries:
    """A table of the layer at quantised values of a tensor."""
    table = layer.constant(key).reshape(-1)
    size, bits = table.size, of.integer.bits
    whole = table.dtype.kind in "iu" and size == 1 << (size.bit_length() - 1)
    if not whole or not -32768 <= int(table.min()) <= int(table.max()) <= 32767:
        raise LayerError(f"the table '{key}' has {size} entries of {table.dtype}, expected a power of two of 16 bits")
    if bits > 16:
        raise LayerError(f"'{of.name}' is {of.dtype}, but indices of the table '{key}' have at most 16 bits")
    closed = k.pointer(np.append(table, table[-1]).astype(np.int16))
    return Entries(k, closed, bits - (size.bit_length() - 1), 1 << (bits - 1) if of.integer.signed else 0)
