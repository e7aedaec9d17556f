"""Axes and parts, and sums over several tensors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TypeVar

import numpy as np

from compass_core.arrays import Array
from compassc.importers.declare import Constant
from compassc.importers.onnx.maker import Maker, Making, Tensor, operator
from compassc.importers.onnx.protobuf import numpy_type
from compassc.importers.values import ModelTensor, Refused

BEYOND = 2**31 - 1
"""A place behind all axes."""
Size = TypeVar("Size")
"""What computes a number."""


def known_shape(x: ModelTensor, what: str) -> tuple[int, ...]:
    """The shape of a tensor. Refused where extents are open; `what` they decide."""
    if not all(isinstance(d, int) for d in x.shape):
        raise Refused(f"{what} only known at run time")
    return x.shape


def pairs_of(
    x: ModelTensor, pads: Sequence[Size | int], axes: Array | None = None
) -> list[tuple[Size | int, Size | int]]:
    """What pads, all those before axes and then all those behind, put before and behind each axis of a tensor."""
    along = [x.axis(int(a)) for a in axes.reshape(-1)] if axes is not None else list(range(x.rank))
    if len(pads) != 2 * len(along):
        raise Refused(f"its {len(pads)} pads are not two for each of {len(along)} axes")
    found = dict(zip(along, zip(pads[: len(along)], pads[len(along) :], strict=True), strict=True))
    return [found.get(a, (0, 0)) for a in range(x.rank)]


def cut_off(b: Making[Tensor], x: Tensor, pairs: Sequence[tuple[int, int]]) -> tuple[Tensor, list[tuple[int, int]]]:
    """A tensor without what widths below 0 take off its axes, and the widths that are left."""
    cut = [a for a, pair in enumerate(pairs) if min(pair) < 0]
    if cut:
        for a in cut:
            size = x.shape[a]
            if isinstance(size, int) and size + min(pairs[a][0], 0) + min(pairs[a][1], 0) < 0:
                raise Refused(f"it takes more off axis {a} than its {size} elements")
        begin, end = ([max(0, -p) for p in side] for side in zip(*(pairs[a] for a in cut), strict=True))
        x = b.sliced(x, begin, [-e or BEYOND for e in end], [1] * len(cut), cut)
    return x, [(max(p, 0), max(q, 0)) for p, q in pairs]


@operator("Identity")
def identity(b: Maker[Tensor], x: Tensor) -> list[Tensor]:
    """Of tensors and of sequences."""
    return [x]


@operator("Squeeze")
def squeeze(b: Maker[Tensor], x: Tensor, axes: Constant | None = None) -> Tensor:
    if axes is None:
        return b.squeeze(x, [a for a, n in enumerate(known_shape(x, "which axes have one element is")) if n == 1])
    return b.squeeze(x, [int(a) for a in axes.reshape(-1)])


@operator("Unsqueeze")
def unsqueeze(b: Maker[Tensor], x: Tensor, axes: Constant) -> Tensor:
    return b.unsqueeze(x, [int(a) for a in axes.reshape(-1)])


@operator("Transpose")
def transpose(b: Maker[Tensor], x: Tensor, *, perm: Sequence[int] | None = None) -> Tensor:
    order = list(perm) if perm is not None else list(range(x.rank))[::-1]
    if sorted(order) != list(range(x.rank)):
        raise Refused(f"its perm {order} is no order of {x.rank} axes")
    return b.transpose(x, order)


@operator("Concat", since=4)
def concat(b: Maker[Tensor], *xs: Tensor, axis: int) -> Tensor:
    return b.concat(*xs, axis=axis)


@operator("Split", since=2)
def split(
    b: Maker[Tensor], x: Tensor, split: Constant | None = None, *, axis: int = 0, num_outputs: int | None = None
) -> list[Tensor]:
    if split is not None:
        return b.split(x, axis, [int(s) for s in split])
    many = num_outputs or len(b.outputs())
    size = x.shape[x.axis(axis)]
    if not isinstance(size, int):
        raise Refused("the sizes of its parts are only known at run time")
    if num_outputs is None and size % many:
        raise Refused(f"{size} elements do not divide into {many} parts")
    each = -(-size // many)
    return b.split(x, axis, [min(each, max(size - each * i, 0)) for i in range(many)])


@operator("EyeLike", since=9)
def eye_like(b: Maker[Tensor], x: Tensor, *, dtype: int | None = None, k: int = 0) -> Tensor:
    rows, columns = b.room(*known_shape(x, "the shape of its matrix is"))
    return b.known(np.eye(rows, columns, k).astype(x.dtype if dtype is None else numpy_type(dtype)))


@operator("Mean")
def mean(b: Maker[Tensor], *xs: Tensor) -> Tensor:
    if len(xs) == 1:
        return xs[0]
    total = reduce(lambda x, y: b.made("add", x, y), xs)
    return b.made("multiply", total, b.known(np.full((), 1 / len(xs), xs[0].dtype)))


@operator("Det", since=11, partly="matrices up to 3x3")
def determinant(b: Maker[Tensor], x: Tensor) -> Tensor:
    """By the first row."""
    size = x.shape[-1] if x.rank > 1 else 0
    if x.rank < 2 or x.shape[-2] != size or size not in (1, 2, 3):
        raise Refused(f"its input is {list(x.shape)}; determinants up to 3x3 are sums, of others there are none")

    def entry(row: int, column: int) -> Tensor:
        at = [row, column]
        return b.squeeze(b.sliced(x, at, [row + 1, column + 1], [1, 1], [x.rank - 2, x.rank - 1]), [-2, -1])

    def minor(row: int, columns: Sequence[int]) -> Tensor:
        if row + 1 == size:
            return entry(row, columns[0])
        total = None
        for i, column in enumerate(columns):
            rest = minor(row + 1, [c for c in columns if c != column])
            term = b.made("multiply", entry(row, column), rest)
            total = term if total is None else b.made("subtract" if i % 2 else "add", total, term)
        assert total is not None
        return total

    return minor(0, range(size))
