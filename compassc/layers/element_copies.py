"""Kernels that move elements: blocks copied by DMA, or rows of single elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from compass_core.namedtuple import NamedTuple
from compassc.build import Expression, Pointer, Value
from compassc.dsl import script as S
from compassc.graph import Tensor
from compassc.layers.layer_kernel import LayerKernel, tail
from compassc.layers.vectors import LANES, bits_of, everywhere, shared_part


class Copy(NamedTuple):
    """A block of elements: its dimensions, and for both sides the first element and the step of each dimension."""

    dims: tuple[int, ...]
    source: int
    source_strides: tuple[int, ...]
    target: int
    target_strides: tuple[int, ...]


def strides_of(shape: Sequence[int]) -> tuple[int, ...]:
    """Elements from one index of a dimension to the next, row-major."""
    found = [1]
    for dim in reversed(shape[1:]):
        found.append(found[-1] * dim)
    return tuple(reversed(found)) if shape else ()


def merged(copy: Copy) -> Copy:
    """The same copy with as few dimensions as possible."""
    dims: list[int] = []
    near: list[int] = []
    far: list[int] = []
    for n, s, t in zip(copy.dims, copy.source_strides, copy.target_strides, strict=True):
        if n == 1:
            continue
        if dims and near[-1] == s * n and far[-1] == t * n:
            dims[-1], near[-1], far[-1] = dims[-1] * n, s, t
        else:
            dims.append(n)
            near.append(s)
            far.append(t)
    if not dims:
        dims, near, far = [1], [1], [1]
    return Copy(tuple(dims), copy.source, tuple(near), copy.target, tuple(far))


UNITS = 16
"""Parts into which a copy is cut at least where its size allows, so that every TEC has some."""
SHORTEST = 32
"""Rows of a matrix that are transposed at once at least."""


def copied(k: LayerKernel, copy: Copy, source: Pointer, target: Pointer) -> None:
    """A copy by DMA: of rows that are contiguous on both sides, or of transposed matrices; else of single elements, 32 at
    a time."""
    c = merged(copy)
    if len(c.dims) == 1 and c.source_strides == c.target_strides == (1,):
        n = k.number(c.dims[0])
        part = k.held("part", shared_part(n, LANES))
        at = k.held("at", S.get_local_id() * part)
        with k.when(at < n):
            to = k.hold(target + (k.number(c.target) + at), "to")
            S.dma_copy(to, source + (k.number(c.source) + at), S.min(n - at, part))
    elif c.source_strides[-1] == c.target_strides[-1] == 1:
        _row_copies(k, c, source, target)
    else:
        _transposes(k, c, source, target)


def copied_whole(k: LayerKernel, count: int, source: Pointer, target: Pointer) -> None:
    """A copy of so many elements that lie behind each other."""
    copied(k, Copy((count,), 0, (1,), 0, (1,)), source, target)


class Block(NamedTuple):
    """What one DMA moves: its addresses, the first of the rows, and how many these are at most."""

    to: Pointer
    near: Pointer
    first: Value
    many: Value


def _row_copies(k: LayerKernel, c: Copy, source: Pointer, target: Pointer) -> None:
    width, many = c.dims[-1], len(c.dims) - 2
    if c.source_strides[many] < width or c.target_strides[many] < width:
        # a DMA takes rows only forward
        c = Copy(
            (*c.dims[:-1], 1, width),
            c.source,
            (*c.source_strides[:-1], width, 1),
            c.target,
            (*c.target_strides[:-1], width, 1),
        )
        many += 1
    step, leap, size = (k.number(n) for n in (c.source_strides[many], c.target_strides[many], c.dims[many]))
    wide = k.number(width)

    def move(b: Block) -> None:
        rows = S.min(size - b.first, b.many)
        S.dma_copy(b.to + b.first * leap, b.near + b.first * step, wide, step, rows, leap)

    _blocks(k, c, (many, len(c.dims) - 1), c.dims[many], 1, move, source, target)


def _transposes(k: LayerKernel, c: Copy, source: Pointer, target: Pointer) -> None:
    last = len(c.dims) - 1
    near = [d for d in range(last) if c.source_strides[d] == 1]
    if c.target_strides[last] != 1 or not near or _overlap(c, near[0]):
        _rows(k, c, source, target)
        return
    across = near[0]
    step, leap, size = (k.number(n) for n in (c.source_strides[last], c.target_strides[across], c.dims[last]))
    wide = k.number(c.dims[across])

    def move(b: Block) -> None:
        rows = S.min(size - b.first, b.many)
        S.dma_transpose2d(b.to + b.first, b.near + b.first * step, rows, wide, leap, step)

    _blocks(k, c, (across, last), c.dims[last], SHORTEST, move, source, target)


def _overlap(c: Copy, across: int) -> bool:
    """Whether the rows of a matrix to transpose overlap."""
    return c.source_strides[-1] < c.dims[across] or c.target_strides[across] < c.dims[-1]


def _blocks(
    k: LayerKernel,
    c: Copy,
    taken: tuple[int, int],
    size: int,
    least: int,
    move: Callable[[Block], None],
    source: Pointer,
    target: Pointer,
) -> None:
    """The loop over all dimensions that are not `taken` by one DMA, and over parts of one of these of `size` elements."""
    outer = [d for d in range(len(c.dims)) if d not in taken]
    count = prod(c.dims[d] for d in outer)
    chunk = max(least, -(-size // -(-UNITS // count)))
    chunks = -(-size // chunk)
    parts, length = k.number(chunks), k.number(chunk)
    with k.shared(k.number(count * chunks), "u") as u:
        first = k.held("i", u % parts * length)
        near, far = _places(k, c, outer, u / parts)
        at = k.hold(source + near, "near")
        move(Block(k.hold(target + far, "to"), at, first, length))


def _places(k: LayerKernel, c: Copy, dims: Sequence[int], item: Expression) -> tuple[Expression, Expression]:
    """The elements of both sides at which the item of a number begins, counted along these dimensions."""
    near: Expression = k.number(c.source)
    far: Expression = k.number(c.target)
    rest = item
    for d in reversed(dims):
        size = k.number(c.dims[d])
        at = k.held("i", rest % size)
        rest = rest / size
        near = near + at * k.number(c.source_strides[d])
        far = far + at * k.number(c.target_strides[d])
    return near, far


def _rows(k: LayerKernel, c: Copy, source: Pointer, target: Pointer) -> None:
    """The loops of a copy of single elements."""
    *outer, cols = c.dims
    count, width = prod(outer), k.number(cols)
    if count == 1:
        # one long row is cut, so that every TEC has a part of it
        near, far = k.hold(source + k.number(c.source), "src"), k.hold(target + k.number(c.target), "dst")
        with k.shared(width, "j", LANES) as j:
            _row(k, c, width, near, far, j)
        return
    with k.shared(k.number(count), "r") as r:
        places = _places(k, c, range(len(outer)), r)
        near, far = k.hold(source + places[0], "src"), k.hold(target + places[1], "dst")
        with k.for_range(0, width, LANES, "j") as j:
            _row(k, c, width, near, far, j)


def _row(k: LayerKernel, c: Copy, width: Value, near: Pointer, far: Pointer, j: Value) -> None:
    mask = k.held("mask", tail(width - j))
    if c.source_strides[-1] == 1:
        x = S.vload(near + j, mask, lanes=LANES)
    else:
        step = k.number(c.source_strides[-1])
        x = S.vload(near + j * step, mask, lanes=LANES, stride=step)
    if c.target_strides[-1] == 1:
        S.vstore(x, far + j, mask)
    else:
        leap = k.number(c.target_strides[-1])
        S.vstore(x, far + j * leap, mask, stride=leap)


def filled(k: LayerKernel, y: Tensor, target: Pointer, word: int) -> None:
    """All elements of a tensor, of which `target` is the raw pointer, become one number, given by its bits."""
    n = k.number(y.count)
    border = k.held("border", everywhere(k.number(word), bits_of(y.dtype)))
    with k.shared(n, "j", LANES) as j:
        S.vstore(border, target + j, tail(n - j))
