"""The values of a model during import: known arrays, or tensors of the graph with their order of axes.

A layer that works on images wants the channels last, others keep the order they get. So nothing is transposed when it
is used, but when somebody needs another order than the one there is: `Value.order` says which one that is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from compass_core.arrays import Array, NumpyDType
from compass_core.dataclass import dataclass
from compassc.graph.tensor import Tensor

Order = tuple[int, ...]

NARROWED = {
    "bool": "uint8",
    "int64": "int32",
    "uint64": "uint32",
    "float64": "float32",
    "int4": "int8",
    "uint4": "uint8",
    "int2": "int8",
    "uint2": "uint8",
}
"""Element types of models that graphs lack, with the type used instead."""


class Refused(Exception):
    """A node is in a form that cannot be imported; the message is the reason."""


class Reported(Refused):
    """A node cannot be imported for reasons that are listed already: those of the nodes inside of it."""


class TooWide(Refused):
    """A constant has numbers that the graph's type for it lacks."""


class NotConstant(Refused):
    """A node needs the content of tensors that is only known at run time. `tensors`: their names in the graph."""

    def __init__(self, reason: str, tensors: Sequence[str]) -> None:
        super().__init__(reason)
        self.tensors = tuple(tensors)


def stored_type(dtype: NumpyDType) -> str:
    """The graph's data type for a type of a model."""
    return NARROWED.get(dtype.name, dtype.name)


def unfit(array: Array) -> int | None:
    """A number of an array of integers that the graph's type for it does not have; None where all fit."""
    dtype = np.dtype(stored_type(array.dtype)) if array.dtype.kind in "iu" else array.dtype
    if dtype == array.dtype or dtype.kind not in "iu" or not array.size:
        return None
    info, extremes = np.iinfo(dtype), (int(array.min()), int(array.max()))
    return next((n for n in extremes if not info.min <= n <= info.max), None)


def fitting(array: Array) -> Array:
    """The array, for numbers that become attributes. TooWide when the graph's type for them lacks one."""
    number = unfit(array)
    if number is not None:
        raise TooWide(f"a constant of type {array.dtype} has {number}, beyond {stored_type(array.dtype)}")
    return array


@dataclass(frozen=True, eq=False)
class ModelTensor:
    """A tensor of a model: `shape` (extents that are no numbers are open) and `dtype` are the model's; `array` is its content
    where that is known."""

    shape: tuple[Any, ...]
    dtype: NumpyDType
    array: Array | None = None

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def name(self) -> str:
        """What users know it by; "" where it has no name."""
        return ""

    def axis(self, axis: int) -> int:
        """The model's axis, counted from the front. Refused when there is no such axis."""
        if not -self.rank <= axis < max(self.rank, 1):
            raise Refused(f"the axis {axis} is not one of its {self.rank} dimensions")
        return axis % max(self.rank, 1)


@dataclass(frozen=True, eq=False)
class Value(ModelTensor):
    """A tensor of a graph in the making: if its content is not known it is `tensor`, whose axis j is the model's axis `order[j]`."""

    shape: tuple[int, ...]
    tensor: Tensor | None = None
    order: Order = ()

    @staticmethod
    def of(array: Array) -> Value:
        return Value(tuple(array.shape), array.dtype, array=array)

    @property
    def name(self) -> str:
        return self.tensor.name if self.tensor is not None else ""

    @property
    def count(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def is_float(self) -> bool:
        return self.dtype.kind == "f" or self.dtype.name.startswith(("bfloat", "float"))

    @property
    def is_plain(self) -> bool:
        """Whether the axes are in the model's order."""
        return self.order == tuple(range(self.rank))

    def place(self, axis: int) -> int:
        """The axis of the graph's tensor that is the model's axis, of a known array the same."""
        return self.order.index(self.axis(axis)) if self.order else self.axis(axis)

    def typed(self, dtype: NumpyDType) -> Value:
        """The same tensor with another element type in the model."""
        return replace(self, dtype=np.dtype(dtype))


def plain(rank: int) -> Order:
    return tuple(range(rank))


def channels_last(rank: int) -> Order:
    """The order of images and volumes: N, spatial axes, C."""
    return (0, *range(2, rank), 1)


def spans(
    x: ModelTensor, begin: Sequence[int], end: Sequence[int], step: Sequence[int], axes: Sequence[int]
) -> dict[int, range]:
    """The places of axes of known extents that a slice takes, by ONNX's rules for bounds outside of them: Python's, but
    what begins before the first element begins there, backwards too. Refused for a step of 0."""
    if 0 in step:
        raise Refused("its step is 0")
    found = {}
    for axis, first, last, by in zip((x.axis(a) for a in axes), begin, end, step, strict=True):
        size = x.shape[axis]
        found[axis] = range(*slice(max(first, -size), last, by).indices(size)) or range(0)
    return found


def stop_of(span: range, size: int) -> int:
    """The end of a span as slices say it: one before the first element counts from the end."""
    return span.stop if span.stop >= 0 else -size - 1


def broadcast_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape of operands that broadcast. Refused when they do not."""
    try:
        return tuple(np.broadcast_shapes(*shapes))
    except ValueError:
        raise Refused(f"the shapes {' and '.join(str(list(s)) for s in shapes)} do not broadcast") from None


def reshaped_in_order(old: tuple[int, ...], new: tuple[int, ...], order: Order) -> Order | None:
    """The axis order of a reshaped tensor if no element moves; None when elements would have to move.

    Axes that are split stay where they are; axes that are joined must lie behind each other.
    """
    result: dict[int, list[int]] = {}
    i = j = 0
    while i < len(old) or j < len(new):
        first, start = i, j
        left, right = (old[i] if i < len(old) else 1), (new[j] if j < len(new) else 1)
        i, j = i + 1, j + 1
        while left != right:
            if left < right and i < len(old):
                left, i = left * old[i], i + 1
            elif right < left and j < len(new):
                right, j = right * new[j], j + 1
            else:
                return None
        group, made = list(range(first, min(i, len(old)))), list(range(start, min(j, len(new))))
        places = [order.index(axis) for axis in group]
        if places != list(range(places[0], places[0] + len(places))) if places else bool(made):
            return None
        if places:
            result[places[0]] = made
    return tuple(axis for place in sorted(result) for axis in result[place])


def moves_data(shape: Sequence[int], order: Sequence[int]) -> bool:
    """Whether a transpose changes the order of elements: it does not when it moves axes of size 1 only."""
    kept = [axis for axis in order if shape[axis] != 1]
    return kept != sorted(kept)
