"""Kernels for outputs whose elements are elements of the input at places known when the graph is built.

The place of an output element is a sum of one number per axis. The innermost axes make a row: a run of neighbours that
DMA copies, or elements that are picked out of a part of the input in LSRAM.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from compass_core.arrays import Array
from compassc.build import Address, Expression, Pointer, Value, either
from compassc.dsl import script as S
from compassc.graph import LayerError, Tensor
from compassc.graph.dtypes import numpy_dtype
from compassc.layers.kernel import Kernel
from compassc.layers.layer_kernel import LayerKernel, tail
from compassc.layers.machine import Share
from compassc.layers.vectors import LANES, bits_of, everywhere

PART = Share(3)
"""Bytes of LSRAM for the part of the input that holds a row's elements. A constant, so that all sizes share a kernel."""
LONGEST_ROW = 2048
"""Elements of a row whose places and values are in LSRAM."""
LONGEST_RUN = 64
"""Rows of neighbours shorter than this are picked together with others where that is possible."""
JOINED = 1 << 14
"""Entries of a table up to which those of two axes are joined."""
OUTSIDE = -1
"""The place of an element that is not in the input."""


def _sum(left: Array, right: Array) -> Array:
    both = left[:, None] + right[None, :]
    return np.where((left[:, None] < 0) | (right[None, :] < 0), OUTSIDE, both).reshape(-1)


def is_run(row: Array) -> bool:
    """Whether the places follow each other, all inside."""
    return bool(row[0] >= 0) and bool((np.diff(row) == 1).all())


def _fits(row: Array, size: int) -> bool:
    inside = row[row >= 0]
    span = int(inside.max() - inside.min()) + 2 if inside.size else 1
    return span * size <= PART.size and len(row) <= LONGEST_ROW


def remap_kernel(x: Tensor, y: Tensor, places: Sequence[Array], fill: int = 0) -> Kernel:
    """The kernel for an output whose element (i, j, ...) is the input's at `places[0][i] + places[1][j] + ...`.

    A negative number stands for elements outside of the input, which are `fill` (its bits as an integer).
    """
    k = LayerKernel()
    with k.active():
        remapped(k, x, y, places, (k.raw(x), k.raw(y)), fill)
    return k.kernel()


def remapped(
    k: LayerKernel, x: Tensor, y: Tensor, places: Sequence[Array], pointers: tuple[Pointer, Pointer], fill: int = 0
) -> None:
    """`remap_kernel` as statements within another kernel, from one pointer to the other."""
    if int(np.prod([len(p) for p in places])) != y.count:
        raise LayerError(f"its attributes do not lead to the shape {list(y.shape)}")
    if x.dtype != y.dtype:
        raise LayerError(f"its input is {x.dtype}, its output {y.dtype}")
    if not y.count:
        return
    size = numpy_dtype(x.dtype).itemsize
    tables = [np.asarray(p, np.int64) for p in places] or [np.zeros(1, np.int64)]
    row = tables.pop()
    while tables:
        table, short = tables[-1], len(tables[-1]) * len(row) <= LONGEST_ROW
        longer = is_run(row) and table[0] >= 0 and bool((np.diff(table) == len(row)).all())
        if not longer and not (short and not (is_run(row) and len(row) >= LONGEST_RUN)):
            break
        joined = _sum(tables[-1], row)
        if not longer and not _fits(joined, size):
            break
        tables.pop()
        row = joined
    if not is_run(row) and not _fits(row, size):
        # a row too long to be picked from LSRAM is cut into elements
        tables.append(row)
        row = np.zeros(1, np.int64)
    _rows(k, y, _joined(tables), row, pointers, fill)


def _joined(tables: list[Array]) -> list[Array]:
    found: list[Array] = []
    for table in tables:
        if found and len(found[-1]) * len(table) <= JOINED:
            found[-1] = _sum(found[-1], table)
        else:
            found.append(table)
    return found


def _rows(
    k: LayerKernel, y: Tensor, tables: list[Array], row: Array, pointers: tuple[Pointer, Pointer], fill: int
) -> None:
    """The loop over rows, whose places are sums of one entry of each table."""
    (source, target), bits = pointers, bits_of(y.dtype)
    run, holes = is_run(row), any((t < 0).any() for t in tables)
    base, n = int(row[row >= 0].min()) if (row >= 0).any() else 0, k.number(len(row))
    border = None if run and not holes else k.held("border", everywhere(k.number(fill), bits))
    picked = None if run or border is None else _Picked(k, row, base, bits, border)
    with k.shared(k.number(y.count // len(row)), "r") as r:
        outside: list[Expression] = []
        rest: Expression = r
        place: Expression = k.number(base)
        for table in reversed(tables):
            entries, length = k.pointer(table.astype(np.int32)), k.number(len(table))
            at = k.held("at", entries[rest % length if table is not tables[0] else rest])
            rest, place = rest / length, place + at
            outside.append(at < 0)
        near, to = source + place, target + r * n

        def moved() -> None:
            if picked is None:
                S.dma_copy(to, near, n)
            else:
                picked.move(k, near, to)

        if border is None or not holes:
            moved()
            return
        with k.when(reduce(either, outside)), k.for_range(0, n, LANES, "j") as j:
            S.vstore(border, to + j, tail(n - j))
        with k.otherwise():
            moved()


class _Picked:
    """Rows whose elements are picked out of a part of the input in LSRAM; what fills places outside stands behind it."""

    def __init__(self, k: LayerKernel, row: Array, base: int, bits: str, border: Value) -> None:
        inside = row >= 0
        span = int(row[inside].max()) - base + 1 if inside.any() else 0
        self.span, self.width, self.length = span, k.number(len(row)), k.number(span)
        self.part = k.scratch(PART.size // int(np.dtype(bits).itemsize), bits, "part")
        self.out = k.scratch(LONGEST_ROW, bits, "out")
        self.table = k.scratch(LONGEST_ROW, "int16", "table")
        S.dma_copy(self.table, k.pointer(np.where(inside, row - base, span).astype(np.int16)), self.width)
        S.vstore(border, self.part + self.length, S.tail_mask(1, LANES))

    def move(self, k: LayerKernel, near: Address, to: Address) -> None:
        if self.span:
            S.dma_copy(self.part, near, self.length)
        with k.for_range(0, self.width, LANES, "j") as j:
            mask = k.held("mask", tail(self.width - j))
            places = k.held("places", S.vload(self.table + j, mask, lanes=LANES))
            S.vstore(S.vload_gather(self.part, places, mask), self.out + j, mask)
        S.dma_copy(to, self.out, self.width)
