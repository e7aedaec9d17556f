"""What is put together from parts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np

from compass_core.arrays import Array
from compassc.importers.declare import Constant
from compassc.importers.onnx.window import Asked
from compassc.importers.values import Refused
from compassc.relay.frontend.terms import INDEX, Expressions, Term, operator


def _extents(x: Term) -> list[int]:
    """The shape of a tensor. Refused where it is open."""
    found = [d for d in x.shape if isinstance(d, int)]
    if len(found) < x.rank:
        raise Refused("its extents are only known at run time")
    return found


@operator("Col2Im", since=18)
def put_together(b: Expressions, x: Term, image: Constant, block: Constant, *, asked: Asked) -> Term:
    """An image of overlapping blocks, which are added."""
    sizes, kernel = image.tolist(), block.tolist()
    window = asked.over(sizes, kernel)
    wide = [n + before + after for n, (before, after) in zip(sizes, window.pads, strict=True)]
    starts = [range(0, w - r + 1, by) for w, r, by in zip(wide, window.reach, window.stride, strict=True)]
    batch, columns, _ = _extents(x)
    channels = columns // prod(kernel)
    places = _places(wide, kernel, window.dilation, starts)
    b.room(batch * channels * places.size)
    values = b.call("reshape", x, newshape=[batch, channels, places.size])
    flat = b.full(b.of(np.zeros((), x.dtype)), [batch, channels, prod(wide)])
    index = np.ascontiguousarray(np.broadcast_to(places.reshape(-1), (batch, channels, places.size)))
    made = b.call("scatter_elements", flat, index, values, axis=2, reduction="add")
    made = b.call("reshape", made, newshape=[batch, channels, *wide])
    for i, (before, _) in enumerate(window.pads):
        made = b.slice(made, 2 + i, before, before + sizes[i])
    return made


def _places(wide: Sequence[int], kernel: Sequence[int], apart: Sequence[int], starts: Sequence[range]) -> Array:
    """Where the elements of blocks lie in the image: for each element of a block those of all blocks."""
    rows = [
        [
            np.ravel_multi_index([s + d * k for s, d, k in zip(start, apart, at, strict=True)], wide)
            for start in product(*starts)
        ]
        for at in np.ndindex(*kernel)
    ]
    return np.asarray(rows, INDEX)


@operator("MaxUnpool", since=9)
def put_back(b: Expressions, x: Term, places: Term, shape: Constant | None = None, *, asked: Asked) -> Term:
    """Maxima where they were, zeros between."""
    batch, channels, *space = _extents(x)
    window = asked.over(space)
    full = window.spread(space, [0] * len(space))
    own = [n - sum(p) for n, p in zip(full, window.pads, strict=True)]
    wanted = [batch, channels, *own] if shape is None else [int(n) for n in shape]
    flat = b.full(b.of(np.zeros((), x.dtype)), [prod((batch, channels, *own))])
    index, values = (b.call("reshape", v, newshape=[-1]) for v in (places, x))
    made = b.call("scatter_elements", flat, b.cast(index, INDEX), values, axis=0, reduction="update")
    made = b.call("reshape", made, newshape=[batch, channels, *own])
    ends = [(0, w - n) for w, n in zip(wanted, (batch, channels, *own), strict=True)]
    return (
        b.call("nn.pad", made, pad_width=ends, pad_value=b.of(np.zeros((), x.dtype))) if any(map(any, ends)) else made
    )
