"""Reshape, Transpose, Reshape that are one layer on images: the channel shuffle, and channels moved from or to blocks.

`FORMS` says for each layer: the shape in the middle, the permutation, the shape at the end, in sizes of the image at
the start [n,c,h,w] and one free size k.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from compass_core.namedtuple import NamedTuple
from compassc.importers.building import Building
from compassc.importers.values import Value, channels_last

Sizes = tuple[int, ...]


class Form(NamedTuple):
    """A layer, by the shapes that reshapes lead to; `of` gives the layer's attributes for k."""

    layer: str
    middle: Callable[[int, int, int, int, int], Sizes]
    perm: Sizes
    end: Callable[[int, int, int, int, int], Sizes]
    of: Callable[[int], dict[str, object]]


def _block(mode: str) -> Callable[[int], dict[str, object]]:
    return lambda k: {"block_size_x": k, "block_size_y": k} | ({"mode": mode} if mode else {})


FORMS = (
    Form(
        "ChannelShuffle",
        lambda n, c, h, w, k: (n, k, c // k, h, w),
        (0, 2, 1, 3, 4),
        lambda n, c, h, w, k: (n, c, h, w),
        lambda k: {"group": k, "splits": 1},
    ),
    Form(
        "ChannelShuffle",
        lambda n, c, h, w, k: (n, k, c // k, h * w),
        (0, 2, 1, 3),
        lambda n, c, h, w, k: (n, c, h, w),
        lambda k: {"group": k, "splits": 1},
    ),
    Form(
        "DepthToSpace",
        lambda n, c, h, w, k: (n, c // k**2, k, k, h, w),
        (0, 1, 4, 2, 5, 3),
        lambda n, c, h, w, k: (n, c // k**2, h * k, w * k),
        _block("CRD"),
    ),
    Form(
        "DepthToSpace",
        lambda n, c, h, w, k: (n, k, k, c // k**2, h, w),
        (0, 3, 4, 1, 5, 2),
        lambda n, c, h, w, k: (n, c // k**2, h * k, w * k),
        _block("DCR"),
    ),
    Form(
        "SpaceToDepth",
        lambda n, c, h, w, k: (n, c, h // k, k, w // k, k),
        (0, 3, 5, 1, 2, 4),
        lambda n, c, h, w, k: (n, c * k**2, h // k, w // k),
        _block(""),
    ),
)


def shuffled(b: Building, x: Value, shape: Sizes) -> Value | None:
    """The single layer for reshape, transpose and reshape to `shape`; None when the three are not one layer."""
    if x.tensor is None or x.tensor.name not in b.reshapes:
        return None
    start, middle = b.reshapes[x.tensor.name]
    if start.rank != 4 or len(shape) != 4 or middle.rank != x.rank:
        return None
    perm = [0] * x.rank
    for before, now in zip(middle.order, x.order, strict=True):
        perm[now] = before
    for form, k in _fitting(middle.shape, tuple(perm), shape, start.shape):
        tensor = b.image(start)
        n, c, h, w = shape
        made = b.layer(form.layer, [tensor], [n, h, w, c], tensor.dtype, **form.of(k))
        return b.value(made, x.dtype, channels_last(4))
    return None


def _fitting(middle: Sizes, perm: Sizes, end: Sizes, start: Sizes) -> Iterator[tuple[Form, int]]:
    n, c, h, w = start
    for form in FORMS:
        if form.perm != perm:
            continue
        for k in {size for size in middle[1:] if size > 1}:
            if tuple(middle) == form.middle(n, c, h, w, k) and end == form.end(n, c, h, w, k):
                yield form, k
