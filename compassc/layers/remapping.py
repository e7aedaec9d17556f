"""Kernels for outputs whose elements are elements of the input at places known when the graph is built.

The place of an output element is a sum of one number per axis. The innermost axes make a row: a run of neighbours that
DMA copies, or elements that are picked out of a part of the input in LSRAM.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compassc.graph import LayerError, Tensor
from compassc.graph.dtypes import numpy_dtype
from compassc.layers.arithmetic import Array
from compassc.layers.machine import Share
from compassc.layers.moving import bits_of, raw_pointer
from compassc.layers.source import LANES, Kernel, KernelSource, finish

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
    k = KernelSource()
    lines = remap_lines(k, x, y, places, raw_pointer(k, x), raw_pointer(k, y), "", fill)
    return finish(k, [*k.head, *lines])


def remap_lines(
    k: KernelSource, x: Tensor, y: Tensor, places: Sequence[Array], source: str, target: str, tag: str, fill: int = 0
) -> list[str]:
    """`remap_kernel` as statements within another kernel; its arrays are declared in `k.head`."""
    if int(np.prod([len(p) for p in places])) != y.count:
        raise LayerError(f"its attributes do not lead to the shape {list(y.shape)}")
    if x.dtype != y.dtype:
        raise LayerError(f"its input is {x.dtype}, its output {y.dtype}")
    if not y.count:
        return []
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
    return _lines(k, y, _joined(tables), row, source, target, tag, fill)


def _joined(tables: list[Array]) -> list[Array]:
    found: list[Array] = []
    for table in tables:
        if found and len(found[-1]) * len(table) <= JOINED:
            found[-1] = _sum(found[-1], table)
        else:
            found.append(table)
    return found


def _lines(
    k: KernelSource, y: Tensor, tables: list[Array], row: Array, source: str, target: str, tag: str, fill: int
) -> list[str]:
    bits = bits_of(y.dtype)
    run, holes = is_run(row), any((t < 0).any() for t in tables)
    width, base = len(row), int(row[row >= 0].min()) if (row >= 0).any() else 0
    n = k.scalar(width)
    around, body = [], []
    if holes or not run:
        around.append(f'border{tag} = S.vbcast(S.cast({k.scalar(fill)}, "{bits}"), lanes={LANES})')
    rest, terms, outside = f"r{tag}", [k.scalar(base)], []
    for d in reversed(range(len(tables))):
        table, length, at = k.constant(tables[d].astype(np.int32)), k.scalar(len(tables[d])), f"at{tag}_{d}"
        body.append(f"{at} = {table}[{rest} % {length}] + 0" if d else f"{at} = {table}[{rest}] + 0")
        rest = f"({rest} / {length})"
        terms.append(at)
        outside.append(f"{at} < 0")
    near, to = f"{source} + ({' + '.join(terms)})", f"{target} + r{tag} * {n}"
    if run:
        inside = [f"S.dma_copy({to}, {near}, {n})"]
    else:
        made, inside = _picked(k, row, base, bits, near, to, tag)
        around += made
    if holes:
        fills = [
            f"for j{tag} in range(0, {n}, {LANES}):",
            f"    S.vstore(border{tag}, {to} + j{tag}, S.tail_mask(S.min({n} - j{tag}, {LANES}), {LANES}))",
        ]
        inside = [f"if {' or '.join(outside)}:", *(f"    {f}" for f in fills), "else:", *(f"    {i}" for i in inside)]
    return [
        *around,
        f"for r{tag} in range(S.get_local_id(), {k.scalar(y.count // width)}, S.get_local_size()):",
        *(f"    {b}" for b in (*body, *inside)),
    ]


def _picked(
    k: KernelSource, row: Array, base: int, bits: str, near: str, to: str, tag: str
) -> tuple[list[str], list[str]]:
    """The statements before all rows, and those for each row, that pick the elements of a row."""
    inside = row >= 0
    span = int(row[inside].max()) - base + 1 if inside.any() else 0
    index = np.where(inside, row - base, span).astype(np.int16)
    width, length = k.scalar(len(row)), k.scalar(span)
    room = [
        f'part = S.alloc({PART.size // int(np.dtype(bits).itemsize)}, "{bits}", scope="lsram")',
        f'out = S.alloc({LONGEST_ROW}, "{bits}", scope="lsram")',
        f'table = S.alloc({LONGEST_ROW}, "int16", scope="lsram")',
    ]
    if room[0] not in k.head:
        k.head += room
    # behind the part stands what fills places outside
    around = [
        f"S.dma_copy(table, {k.constant(index)}, {width})",
        f"S.vstore(border{tag}, part + {length}, S.tail_mask(1, {LANES}))",
    ]
    body = [
        f"S.dma_copy(part, {near}, {length})",
        f"for j{tag} in range(0, {width}, {LANES}):",
        f"    mask = S.tail_mask(S.min({width} - j{tag}, {LANES}), {LANES})",
        f"    places = S.vload(table + j{tag}, mask, lanes={LANES})",
        f"    S.vstore(S.vload_gather(part, places, mask), out + j{tag}, mask)",
        f"S.dma_copy({to}, out, {width})",
    ]
    return around, body if span else body[1:]
