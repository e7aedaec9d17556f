"""Which part of its input each output of a layer is, where it is a box of it as it stands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compassc.graph import Layer
from compassc.layers.families.movement.reference import slice_indices

Box = list[tuple[int, int]]
"""Per axis the first index, and how many."""


def parts_of(layer: Layer) -> list[Box] | None:
    """The box of the first input that each output is a copy of; None for layers that do more, or whose numbers are inputs."""
    if len(layer.inputs) != 1:
        return None
    shape = layer.input.shape
    if layer.type == "Split":
        axis, firsts, sizes = layer.axis(), [0], layer.integers("splits")
        for size in sizes:
            firsts.append(firsts[-1] + size)
        return [
            [(first, size) if a == axis else (0, n) for a, n in enumerate(shape)]
            for first, size in zip(firsts, sizes, strict=False)
        ]
    if layer.type in ("Slice", "StridedSlice"):
        given = (layer.integers(key) for key in ("begin", "end", "strides"))
        return _box(slice_indices(b, e, step, n) for b, e, step, n in zip(*given, shape, strict=True))
    if layer.type == "Crop":
        pairs = zip(layer.pairs("crops"), shape, strict=True)
        return _box(range(b + n if b < 0 else b, min(e + n if e < 0 else e, n)) for (b, e), n in pairs)
    return None


def _box(taken: Iterable[Iterable[int]]) -> list[Box] | None:
    rows = [list(indices) for indices in taken]
    if any(not r or r != list(range(r[0], r[0] + len(r))) for r in rows):
        return None
    return [[(r[0], len(r)) for r in rows]]


def offset_of(box: Box, shape: Sequence[int]) -> int | None:
    """The element at which a box of a tensor begins; None where its elements do not lie behind each other."""
    cut = [a for a, ((_, size), n) in enumerate(zip(box, shape, strict=True)) if size != n]
    if cut and any(size != 1 for _, size in box[: cut[-1]]):
        return None
    at = 0
    for (first, _), n in zip(box, shape, strict=True):
        at = at * n + first
    return at
