"""Sequences, which are known lists of tensors, and optional tensors."""

from __future__ import annotations

import numpy as np

from compass_core.reading.limits import MODEL_NODES
from compassc.importers.declare import Constant
from compassc.importers.onnx.maker import Maker, Tensor, operator
from compassc.importers.values import Refused


def _position(b: Maker[Tensor], position: Tensor | None, size: int) -> int:
    at = size if position is None else b.numbers(position, "position")[0]
    if not -size <= at <= size:
        raise Refused(f"the position {at} is outside a sequence of {size} tensors")
    return at + size if at < 0 else at


@operator("SequenceConstruct", since=11)
def construct(b: Maker[Tensor], *xs: Tensor) -> list[list[Tensor]]:
    b.room(len(xs))
    return [list(xs)]


@operator("SequenceEmpty", since=11)
def empty(b: Maker[Tensor], *, dtype: int = 1) -> list[list[Tensor]]:
    return [[]]


@operator("SequenceAt", since=11)
def at(b: Maker[Tensor], xs: list[Tensor], position: Tensor) -> Tensor:
    return xs[_position(b, position, len(xs))]


@operator("SequenceInsert", since=11)
def insert(b: Maker[Tensor], xs: list[Tensor], x: Tensor, position: Tensor | None = None) -> list[list[Tensor]]:
    b.room(len(xs))
    place = _position(b, position, len(xs))
    return [[*xs[:place], x, *xs[place:]]]


@operator("SequenceErase", since=11)
def erase(b: Maker[Tensor], xs: list[Tensor], position: Tensor | None = None) -> list[list[Tensor]]:
    b.room(len(xs))
    place = _position(b, position, len(xs)) if position is not None else len(xs) - 1
    return [[*xs[:place], *xs[place + 1 :]]]


@operator("SequenceLength", since=11)
def length(b: Maker[Tensor], xs: list[Tensor]) -> Tensor:
    return b.known(np.asarray(len(xs), np.int64))


@operator("ConcatFromSequence", since=11)
def join(b: Maker[Tensor], xs: list[Tensor], *, axis: int, new_axis: int = 0) -> Tensor:
    if new_axis:
        xs = [b.unsqueeze(x, [axis if axis >= 0 else axis + x.rank + 1]) for x in xs]
    return b.concat(*xs, axis=axis)


@operator("SplitToSequence", since=11)
def split(
    b: Maker[Tensor], x: Tensor, sizes: Constant | None = None, *, axis: int = 0, keepdims: int = 1
) -> list[list[Tensor]]:
    size = x.shape[x.axis(axis)]
    if not isinstance(size, int):
        raise Refused("how many parts it makes is only known at run time")
    if sizes is not None and sizes.ndim:
        return [b.split(x, axis, [int(s) for s in sizes])]
    each = 1 if sizes is None else int(sizes)
    b.budget.take(MODEL_NODES, size // max(each, 1), f"the node '{b.name}'")
    parts = b.split(x, axis, [min(each, size - i) for i in range(0, size, each)])
    return [parts if sizes is not None or keepdims else [b.squeeze(p, [axis]) for p in parts]]


@operator("Optional", "OptionalGetElement", since=15)
def optional(b: Maker[Tensor], x: Tensor | None = None, *, type: object = None) -> list[Tensor]:
    if x is None:
        raise Refused("an optional tensor that is not there")
    return [x]


@operator("OptionalHasElement", since=15)
def has_element(b: Maker[Tensor], x: Tensor | None = None) -> Tensor:
    return b.known(np.asarray(x is not None))
