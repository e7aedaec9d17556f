"""Kernels that move elements: blocks copied by DMA, or rows of single elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from compassc.graph import LayerError, Tensor
from compassc.layers.source import LANES, KernelSource

BITS = {
    "bool": "uint8",
    "int8": "uint8",
    "uint8": "uint8",
    "int16": "uint16",
    "uint16": "uint16",
    "float16": "uint16",
    "bfloat16": "uint16",
    "int32": "int32",
    "uint32": "int32",
    "float32": "int32",
}
"""Data type -> the type that moves it unchanged."""


def bits_of(dtype: str) -> str:
    """The type that moves elements of `dtype` unchanged. LayerError for types that kernels do not hold."""
    if dtype not in BITS:
        raise LayerError(f"kernels do not move {dtype}")
    return BITS[dtype]


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


def raw_pointer(k: KernelSource, tensor: Tensor) -> str:
    """A pointer parameter whose elements are integers of the tensor's element size."""
    return f'{k.tensor(tensor)}.as_ptr("{bits_of(tensor.dtype)}")'


UNITS = 16
"""Parts into which a copy is cut at least where its size allows, so that every TEC has some."""
SHORTEST = 32
"""Rows of a matrix that are transposed at once at least."""


def copy_lines(k: KernelSource, copy: Copy, source: str, target: str, tag: str) -> list[str]:
    """A copy by DMA: of rows that are contiguous on both sides, or of transposed matrices; else of single elements, 32 at
    a time."""
    c = merged(copy)
    if len(c.dims) == 1 and c.source_strides == c.target_strides == (1,):
        n = k.scalar(c.dims[0])
        return [
            f"part{tag} = shared_part({n}, {LANES})",
            f"at{tag} = S.get_local_id() * part{tag}",
            f"if at{tag} < {n}:",
            f"    to{tag} = {target} + ({k.scalar(c.target)} + at{tag})",
            f"    S.dma_copy(to{tag}, {source} + ({k.scalar(c.source)} + at{tag}), S.min({n} - at{tag}, part{tag}))",
        ]
    if c.source_strides[-1] == c.target_strides[-1] == 1:
        return _row_copies(k, c, source, target, tag)
    return _transposes(k, c, source, target, tag)


def _row_copies(k: KernelSource, c: Copy, source: str, target: str, tag: str) -> list[str]:
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
    step, leap, size = k.scalar(c.source_strides[many]), k.scalar(c.target_strides[many]), k.scalar(c.dims[many])
    block = (
        "S.dma_copy({to} + i{tag} * {leap}, {near} + i{tag} * {step}, {width}, {step}, "
        "S.min({size} - i{tag}, {chunk}), {leap})"
    )
    fields = {"leap": leap, "step": step, "width": k.scalar(width), "size": size}
    return _blocks(k, c, (many, len(c.dims) - 1), c.dims[many], 1, block, fields, source, target, tag)


def _transposes(k: KernelSource, c: Copy, source: str, target: str, tag: str) -> list[str]:
    last = len(c.dims) - 1
    near = [d for d in range(last) if c.source_strides[d] == 1]
    if c.target_strides[last] != 1 or not near or _overlap(c, near[0]):
        return _rows(k, c, source, target, tag)
    across = near[0]
    many, cols = c.dims[last], c.dims[across]
    step, leap, size = k.scalar(c.source_strides[last]), k.scalar(c.target_strides[across]), k.scalar(many)
    block = (
        "S.dma_transpose2d({to} + i{tag}, {near} + i{tag} * {step}, S.min({size} - i{tag}, {chunk}), {width}, "
        "{leap}, {step})"
    )
    fields = {"leap": leap, "step": step, "width": k.scalar(cols), "size": size}
    return _blocks(k, c, (across, last), many, SHORTEST, block, fields, source, target, tag)


def _overlap(c: Copy, across: int) -> bool:
    """Whether the rows of a matrix to transpose overlap."""
    return c.source_strides[-1] < c.dims[across] or c.target_strides[across] < c.dims[-1]


def _blocks(
    k: KernelSource,
    c: Copy,
    taken: tuple[int, int],
    size: int,
    least: int,
    block: str,
    fields: dict[str, str],
    source: str,
    target: str,
    tag: str,
) -> list[str]:
    """The loop over all dimensions that are not `taken` by one DMA, and over parts of one of these of `size` elements."""
    outer = [d for d in range(len(c.dims)) if d not in taken]
    count = 1
    for d in outer:
        count *= c.dims[d]
    chunk = max(least, -(-size // -(-UNITS // count)))
    chunks = -(-size // chunk)
    parts, indices = k.scalar(chunks), []
    near, far = [k.scalar(c.source)], [k.scalar(c.target)]
    rest = f"u{tag} / {parts}"
    for d in reversed(outer):
        n, name = k.scalar(c.dims[d]), f"i{tag}_{d}"
        indices.append(f"{name} = {rest} % {n}")
        rest = f"({rest}) / {n}"
        near.append(f"{name} * {k.scalar(c.source_strides[d])}")
        far.append(f"{name} * {k.scalar(c.target_strides[d])}")
    length = k.scalar(chunk)
    fields |= {"to": f"to{tag}", "near": f"near{tag}", "tag": tag, "chunk": length}
    return [
        f"for u{tag} in range(S.get_local_id(), {k.scalar(count * chunks)}, S.get_local_size()):",
        f"    i{tag} = u{tag} % {parts} * {length}",
        *(f"    {i}" for i in indices),
        f"    near{tag} = {source} + ({' + '.join(near)})",
        f"    to{tag} = {target} + ({' + '.join(far)})",
        f"    {block.format(**fields)}",
    ]


def _rows(k: KernelSource, c: Copy, source: str, target: str, tag: str) -> list[str]:
    """The loops of a copy of single elements."""
    *outer, cols = c.dims
    count = 1
    for n in outer:
        count *= n
    width = k.scalar(cols)
    near, far = [f"{k.scalar(c.source)}"], [f"{k.scalar(c.target)}"]
    indices = []
    rest = f"r{tag}"
    for d in reversed(range(len(outer))):
        name = f"i{tag}_{d}"
        indices.append(f"{name} = {rest} % {k.scalar(outer[d])}" if d else f"{name} = {rest} + 0")
        if d:
            indices.append(f"{rest}_{d} = {rest} / {k.scalar(outer[d])}")
            rest = f"{rest}_{d}"
        near.append(f"{name} * {k.scalar(c.source_strides[d])}")
        far.append(f"{name} * {k.scalar(c.target_strides[d])}")
    # one long row is cut, so that every TEC has a part of it
    if count == 1:
        loop = [f"for j{tag} in range(S.get_local_id() * {LANES}, {width}, S.get_local_size() * {LANES}):"]
        return [
            f"src{tag} = {source} + {near[0]}",
            f"dst{tag} = {target} + {far[0]}",
            *loop,
            *(f"    {line}" for line in _row(k, c, width, tag)),
        ]
    return [
        f"for r{tag} in range(S.get_local_id(), {k.scalar(count)}, S.get_local_size()):",
        *(f"    {line}" for line in indices),
        f"    src{tag} = {source} + ({' + '.join(near)})",
        f"    dst{tag} = {target} + ({' + '.join(far)})",
        f"    for j{tag} in range(0, {width}, {LANES}):",
        *(f"        {line}" for line in _row(k, c, width, tag)),
    ]


def _row(k: KernelSource, c: Copy, width: str, tag: str) -> list[str]:
    step, leap = k.scalar(c.source_strides[-1]), k.scalar(c.target_strides[-1])
    near = f"src{tag} + j{tag}" + ("" if c.source_strides[-1] == 1 else f" * {step}")
    far = f"dst{tag} + j{tag}" + ("" if c.target_strides[-1] == 1 else f" * {leap}")
    near_stride = "" if c.source_strides[-1] == 1 else f", stride={step}"
    far_stride = "" if c.target_strides[-1] == 1 else f", stride={leap}"
    return [
        f"mask = S.tail_mask(S.min({width} - j{tag}, {LANES}), {LANES})",
        f"x = S.vload({near}, mask, lanes={LANES}{near_stride})",
        f"S.vstore(x, {far}, mask{far_stride})",
    ]
