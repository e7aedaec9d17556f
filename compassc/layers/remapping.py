"""Kernels for outputs whose elements are elements of the input at places known when the graph is built.

The place of an output element is a sum of one number per axis. The innermost axes make a row: a run of neighbours that
DMA copies, or elements that are picked out of a part of the input in LSRAM.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compassc.layers.arithmetic import Array
from compassc.layers.layer import LayerError, TensorType
from compassc.layers.moving import bits_of
from compassc.layers.source import LANES, Kernel, KernelSource, finish
from compassc.layers.storage import numpy_dtype

PART_BYTES = 12288
"""LSRAM for the part of the input in which the elements of a row lie. Always all of it, so that sizes share a kernel."""
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
    return span * size <= PART_BYTES and len(row) <= LONGEST_ROW


def remap_kernel(x: TensorType, y: TensorType, places: Sequence[Array], fill: int = 0) -> Kernel:
    """The kernel for an output whose element (i, j, ...) is the input's at `places[0][i] + places[1][j] + ...`.

    A negative number stands for elements outside of the input, which are `fill` (its bits as an integer).
    """
    if [len(p) for p in places] != list(y.shape):
        raise LayerError(f"its attributes do not lead to the shape {list(y.shape)}")
    if x.dtype != y.dtype:
        raise LayerError(f"its input is {x.dtype}, its output {y.dtype}")
    size = numpy_dtype(x.dtype).itemsize
    tables = [np.asarray(p, np.int64) for p in places] or [np.zeros(1, np.int64)]
    row = tables.pop()
    while tables:
        joined = _sum(tables[-1], row)
        longer = is_run(joined) or (_fits(joined, size) and not (is_run(row) and len(row) >= LONGEST_RUN))
        if not longer:
            break
        tables.pop()
        row = joined
    if not is_run(row) and not _fits(row, size):
        # a row too long to be picked from LSRAM is cut into elements
        tables.append(row)
        row = np.zeros(1, np.int64)
    return _kernel(x, y, _joined(tables), row, fill)


def _joined(tables: list[Array]) -> list[Array]:
    found: list[Array] = []
    for table in tables:
        if found and len(found[-1]) * len(table) <= JOINED:
            found[-1] = _sum(found[-1], table)
        else:
            found.append(table)
    return found


def _kernel(x: TensorType, y: TensorType, tables: list[Array], row: Array, fill: int) -> Kernel:
    k, bits = KernelSource(), bits_of(x.dtype)
    source, target = f'{k.tensor(x)}.as_ptr("{bits}")', f'{k.tensor(y)}.as_ptr("{bits}")'
    run, holes = is_run(row), any((t < 0).any() for t in tables)
    width, base = len(row), int(row[row >= 0].min()) if (row >= 0).any() else 0
    n = k.scalar(width)
    lines, body = [], []
    if holes or not run:
        lines.append(f'border = S.vbcast(S.cast({k.scalar(fill)}, "{bits}"), lanes={LANES})')
    rest, terms, outside = "r", [k.scalar(base)], []
    for d in reversed(range(len(tables))):
        table, length = k.constant(tables[d].astype(np.int32)), k.scalar(len(tables[d]))
        body.append(f"at{d} = {table}[{rest} % {length}] + 0" if d else f"at0 = {table}[{rest}] + 0")
        rest = f"({rest} / {length})"
        terms.append(f"at{d}")
        outside.append(f"at{d} < 0")
    body.append(f"start = {' + '.join(terms)}")
    if run:
        around: list[str] = []
        inside = [f"S.dma_copy({target} + r * {n}, {source} + start, {n})"]
    else:
        picking, inside, around = _picked(k, row, base, bits, source, target)
        lines += picking
    if holes:
        fills = [
            f"for j in range(0, {n}, {LANES}):",
            f"    S.vstore(border, {target} + r * {n} + j, S.tail_mask(S.min({n} - j, {LANES}), {LANES}))",
        ]
        inside = [f"if {' or '.join(outside)}:", *(f"    {f}" for f in fills), "else:", *(f"    {i}" for i in inside)]
    rows = k.scalar(y.count // width)
    return finish(k, [
        *lines,
        *around,
        f"for r in range(S.get_local_id(), {rows}, S.get_local_size()):",
        *(f"    {b}" for b in (*body, *inside)),
    ])  # fmt: skip


def _picked(k: KernelSource, row: Array, base: int, bits: str, source: str,
            target: str) -> tuple[list[str], list[str], list[str]]:  # fmt: skip
    """(what is made once, what is done for a row, what is done before all rows) to pick the elements of a row."""
    inside = row >= 0
    span = int(row[inside].max()) - base + 1 if inside.any() else 0
    index = np.where(inside, row - base, span).astype(np.int16)
    width, length = k.scalar(len(row)), k.scalar(span)
    lines = [
        f'part = S.alloc({PART_BYTES // int(np.dtype(bits).itemsize)}, "{bits}", scope="lsram")',
        f'out = S.alloc({LONGEST_ROW}, "{bits}", scope="lsram")',
        f'table = S.alloc({LONGEST_ROW}, "int16", scope="lsram")',
        f"S.dma_copy(table, {k.constant(index)}, {width})",
    ]
    # behind the part stands what fills places outside
    around = [f"S.vstore(border, part + {length}, S.tail_mask(1, {LANES}))"]
    body = [
        f"S.dma_copy(part, {source} + start, {length})",
        f"for j in range(0, {width}, {LANES}):",
        f"    mask = S.tail_mask(S.min({width} - j, {LANES}), {LANES})",
        f"    places = S.vload(table + j, mask, lanes={LANES})",
        "    S.vstore(S.vload_gather(part, places, mask), out + j, mask)",
        f"S.dma_copy({target} + r * {width}, out, {width})",
    ]
    return lines, body if span else body[1:], around
