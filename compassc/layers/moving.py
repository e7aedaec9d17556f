"""Kernels that move elements: rows copied from one strided place to another, each branch with steps of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from compassc.layers.layer import LayerError
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


def rows(
    k: KernelSource, copy: Copy, source: str, target: str, load: str, body: list[str], store: str, tag: str
) -> list[str]:
    """The loops of a copy. In `load` and `store` stand the fields `at` (a pointer), `stride` and `mask`."""
    c = merged(copy)
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
            *(f"    {line}" for line in _row(k, c, width, load, body, store, tag)),
        ]
    return [
        f"for r{tag} in range(S.get_local_id(), {k.scalar(count)}, S.get_local_size()):",
        *(f"    {line}" for line in indices),
        f"    src{tag} = {source} + ({' + '.join(near)})",
        f"    dst{tag} = {target} + ({' + '.join(far)})",
        f"    for j{tag} in range(0, {width}, {LANES}):",
        *(f"        {line}" for line in _row(k, c, width, load, body, store, tag)),
    ]


def _row(k: KernelSource, c: Copy, width: str, load: str, body: list[str], store: str, tag: str) -> list[str]:
    step, leap = k.scalar(c.source_strides[-1]), k.scalar(c.target_strides[-1])
    near = f"src{tag} + j{tag}" + ("" if c.source_strides[-1] == 1 else f" * {step}")
    far = f"dst{tag} + j{tag}" + ("" if c.target_strides[-1] == 1 else f" * {leap}")
    near_stride = "" if c.source_strides[-1] == 1 else f", stride={step}"
    far_stride = "" if c.target_strides[-1] == 1 else f", stride={leap}"
    return [
        f"mask = S.tail_mask(S.min({width} - j{tag}, {LANES}), {LANES})",
        load.format(at=near, stride=near_stride),
        *body,
        store.format(at=far, stride=far_stride),
    ]
