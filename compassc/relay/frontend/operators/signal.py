"""Fourier transforms, by constant matrices, and what is put together from parts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np

from compass_core.arrays import Array
from compass_core.reading.limits import COMPUTED_BYTES
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


def _transformed(b: Expressions, x: Term, length: int, inverse: bool, onesided: bool) -> Term:
    """Of real or complex numbers (the last axis has one or both parts) the transform along the axis before."""
    size, parts = _extents(x)[-2:]
    if size > length:
        x = b.slice(x, x.rank - 2, 0, length)
    count = length // 2 + 1 if onesided and not inverse else length
    b.budget.take(COMPUTED_BYTES, 16 * length * count, f"the node '{b.name}'")
    angles = 2 * np.pi * np.outer(np.arange(count), np.arange(min(size, length))) / length
    scale = np.full(angles.shape[1], 1 / length if inverse else 1.0)
    if onesided and inverse:  # the other half is that of the conjugates
        scale[1 : (length + 1) // 2] *= 2
    cosines, sines = (np.asarray(f(angles) * scale, x.dtype) for f in (np.cos, np.sin))
    turn = -sines if not inverse else sines  # of exp(-i a), or exp(i a)
    real = _part(b, x, 0)
    found = [b.call("nn.dense", real, cosines), b.call("nn.dense", real, turn)]
    if parts == 2:
        other = _part(b, x, 1)
        found[0] = b.call("subtract", found[0], b.call("nn.dense", other, turn))
        found[1] = b.call("add", found[1], b.call("nn.dense", other, cosines))
    if onesided and inverse:
        return b.call("expand_dims", found[0], axis=-1)
    return b.call("stack", found, axis=-1)


def _part(b: Expressions, x: Term, index: int) -> Term:
    return b.call("take", x, np.asarray(index, INDEX), axis=x.rank - 1)


@operator("DFT")
def fourier(
    b: Expressions,
    x: Term,
    length: Constant | None = None,
    axis: Constant | None = None,
    *,
    inverse: int = 0,
    onesided: int = 0,
) -> Term:
    at = x.axis(-2 if axis is None else int(axis.reshape(-1)[0]))
    order = [a for a in range(x.rank - 1) if a != at] + [at, x.rank - 1]
    turned = b.transpose(x, order)
    own = _extents(turned)[-2]
    whole = 2 * (own - 1) if onesided and inverse else own
    size = int(length.reshape(-1)[0]) if length is not None else whole
    made = _transformed(b, turned, size, bool(inverse), bool(onesided))
    return b.transpose(made, [int(a) for a in np.argsort(order)])


@operator("STFT", since=17)
def short_fourier(
    b: Expressions,
    x: Term,
    step: Constant,
    window: Term | None = None,
    length: Constant | None = None,
    *,
    onesided: int = 1,
) -> Term:
    """The transforms of parts of a signal."""
    _, size, parts = _extents(x)
    by = int(step.reshape(-1)[0])
    count = int(length.reshape(-1)[0]) if length is not None else _extents(window)[0] if window is not None else size
    places = np.arange(0, size - count + 1, by)[:, None] + np.arange(count)
    frames = b.call("take", x, places.astype(INDEX), axis=1)
    if window is not None:
        frames = b.call("multiply", frames, b.call("reshape", window, newshape=[1, 1, -1, 1]))
    return _transformed(b, frames, count, False, bool(onesided) and parts == 1)


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
