"""Operators that move elements: shapes, parts, and tensors joined."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from compass_core.arrays import Array
from compassc.importers.declare import Constant
from compassc.importers.onnx.common.shapes import cut_off, pairs_of
from compassc.importers.values import Refused
from compassc.relay.frontend.terms import FARTHEST, INDEX, Expressions, Size, Term, operator


@operator("Shape")
def shape(b: Expressions, x: Term, *, start: int = 0, end: int | None = None) -> Term:
    wanted = slice(start, end)
    if all(isinstance(d, int) for d in x.shape[wanted]):
        return b.known(np.asarray(x.shape[wanted], np.int64))
    first, last, _ = wanted.indices(x.rank)
    whole = b.call("shape_of", x, dtype=INDEX)
    return b.slice(whole, 0, first, last) if (first, last) != (0, x.rank) else whole


@operator("Size")
def count(b: Expressions, x: Term) -> Term:
    if all(isinstance(d, int) for d in x.shape):
        return b.known(np.asarray(prod(x.shape), np.int64))
    return b.call("ndarray_size", x, dtype=INDEX)


@operator("Reshape", since=5)
def reshape(b: Expressions, x: Term, shape: Term, *, allowzero: int = 0) -> Term:
    wanted = b.listed(shape)
    if not allowzero:
        wanted = [b.size(x, i) if s == 0 and i < x.rank else s for i, s in enumerate(wanted)]
    computed = [s for s in wanted if not isinstance(s, int)]
    if -1 in wanted and not computed:
        plain = [s for s in wanted if isinstance(s, int)]
        rest = -prod(plain)
        if all(isinstance(d, int) for d in x.shape):
            if not rest or prod(x.shape) % rest:
                raise Refused(f"the shape {list(x.shape)} does not become {plain}")
            plain[plain.index(-1)] = prod(x.shape) // rest
        return b.call("reshape", x, newshape=plain, allowzero=bool(allowzero))
    if -1 in wanted or len(computed) > 1:
        return b.call("reshape", x, newshape=b.vector(wanted), allowzero=bool(allowzero))
    return b.reshape(x, wanted)


@operator("Flatten")
def flatten(b: Expressions, x: Term, *, axis: int = 1) -> Term:
    at = axis + x.rank if axis < 0 else axis
    parts: list[Size] = []
    for part in (x.shape[:at], x.shape[at:]):
        parts.append(prod(part) if all(isinstance(d, int) for d in part) else -1)
    if parts == [-1, -1]:
        sizes = b.sizes(x)
        parts = [product_of(b, sizes[:at]), product_of(b, sizes[at:])]
        return b.call("reshape", x, newshape=b.vector(parts))
    return b.call("reshape", x, newshape=parts, allowzero=True)


def product_of(b: Expressions, sizes: Sequence[Size]) -> Size:
    """How many elements extents make."""
    found: Size = 1
    for s in sizes:
        if isinstance(found, int) and isinstance(s, int):
            found *= s
        else:
            found = b.call(
                "multiply", *(b.of(np.asarray(v, np.int64)) if isinstance(v, int) else v for v in (found, s))
            )
    return found


@operator("Expand", since=8)
def expand(b: Expressions, x: Term, shape: Term) -> Term:
    wanted = b.listed(shape)
    x = b.ranked(x, len(wanted))
    own = [1] * (x.rank - len(wanted))
    sizes: list[Size] = []
    for i, s in enumerate([*own, *wanted]):
        d = x.shape[i]
        if isinstance(s, int) and isinstance(d, int):
            sizes.append(d if s == 1 else s)
        elif s == 1:
            sizes.append(b.size(x, i))
        elif isinstance(s, int) or d == 1:
            sizes.append(s)
        else:  # either may be 1
            pair = (v if isinstance(v, Term) else b.of(np.asarray(v, np.int64)) for v in (b.size(x, i), s))
            sizes.append(b.call("maximum", *pair))
    return b.broadcast(x, sizes)


@operator("Tile", since=6)
def tile(b: Expressions, x: Term, repeats: Term) -> Term:
    wanted = b.listed(repeats)
    known = all(isinstance(n, int) for n in wanted)
    return b.call("tile", x, reps=wanted if known else b.vector(wanted))


@operator("Slice")
def cut(
    b: Expressions, x: Term, starts: Term, ends: Term, axes: Constant | None = None, steps: Constant | None = None
) -> Term:
    first, last = b.listed(starts), b.listed(ends)
    along = axes.reshape(-1).tolist() if axes is not None else list(range(len(first)))
    by = steps.reshape(-1).tolist() if steps is not None else [1] * len(first)
    if all(isinstance(v, int) for v in (*first, *last)):
        return b.sliced(x, [v for v in first if isinstance(v, int)], [v for v in last if isinstance(v, int)], by, along)
    limits = zip(first, last, by, strict=True)
    return _computed_cut(b, x, {x.axis(a): limit for a, limit in zip(along, limits, strict=True)})


def _computed_cut(b: Expressions, x: Term, cuts: dict[int, tuple[Size, Size, int]]) -> Term:
    """A slice whose places are computed."""
    rows: list[list[Size]] = [[], [], []]
    for a in range(x.rank):
        begin, end, step = cuts.get(a, (0, FARTHEST, 1))
        if step < 0:
            raise Refused("the places of its slice, which goes backwards, are only known at run time")
        for row, v in zip(rows, (begin, end, step), strict=True):
            row.append(max(-FARTHEST, min(v, FARTHEST)) if isinstance(v, int) else v)
    return b.call("strided_slice", x, begin=b.vector(rows[0]), end=b.vector(rows[1]), strides=b.vector(rows[2]))


MODES = ("constant", "edge", "reflect")


@operator("Pad")
def pad(
    b: Expressions,
    x: Term,
    pads: Term,
    value: Term | None = None,
    axes: Constant | None = None,
    *,
    mode: str = "constant",
) -> Term:
    around = pairs_of(x, b.listed(pads), axes)
    fill = value if value is not None and mode == "constant" else b.of(np.zeros((), x.dtype))
    fill = b.call("reshape", fill, newshape=[]) if fill.rank else fill
    flat = [w for pair in around for w in pair]
    if any(not isinstance(w, int) for w in flat):
        if mode not in MODES:
            raise Refused(f"its widths are only known at run time, and its mode is {mode}")
        table = b.reshape(b.vector(flat), [x.rank, 2])
        return b.call("nn.pad", x, pad_width=table, pad_value=fill, pad_mode=mode)
    x, known = cut_off(b, x, [(low, high) for low, high in around if isinstance(low, int) and isinstance(high, int)])
    if mode == "wrap":
        return _wrapped(b, x, known)
    if mode not in MODES:
        raise Refused(f"there is no mode {mode}")
    return b.call("nn.pad", x, pad_width=known, pad_value=fill, pad_mode=mode) if any(map(any, known)) else x


def _wrapped(b: Expressions, x: Term, widths: Sequence[tuple[int, int]]) -> Term:
    for a, (before, after) in enumerate(widths):
        size = x.shape[a]
        if not isinstance(size, int):
            raise Refused("how its tensor is continued is only known at run time")
        if before or after:
            places = np.arange(-before, size + after) % size
            x = b.call("take", x, places.astype(np.int64), axis=a)
    return x


@operator("ConstantOfShape", since=9)
def constant_of_shape(b: Expressions, shape: Term, *, value: Array | None = None) -> Term:
    number = np.zeros((), np.float32) if value is None else value.reshape(())
    return b.full(b.known(number), b.listed(shape))


@operator("Range")
def numbers_between(b: Expressions, start: Term, limit: Term, step: Term) -> Term:
    return b.call("arange", start=start, stop=limit, step=step, dtype=start.kind)


@operator("DepthToSpace")
def depth_to_space(b: Expressions, x: Term, *, blocksize: int, mode: str = "DCR") -> Term:
    return b.call("nn.depth_to_space", x, block_size=blocksize, mode=mode)


@operator("SpaceToDepth")
def space_to_depth(b: Expressions, x: Term, *, blocksize: int, mode: str = "DCR") -> Term:
    if mode != "DCR":
        return _by_channels(b, x, blocksize)
    return b.call("nn.space_to_depth", x, block_size=blocksize)


def _by_channels(b: Expressions, x: Term, block: int) -> Term:
    """Blocks of pictures as channels, those of a channel together."""
    c, h, w = x.shape[1:]
    if not all(isinstance(d, int) for d in (c, h, w)):
        raise Refused("the size of its picture is only known at run time")
    parts = b.reshape(x, [b.size(x, 0), c, h // block, block, w // block, block])
    turned = b.transpose(parts, [0, 1, 3, 5, 2, 4])
    return b.reshape(turned, [b.size(x, 0), c * block * block, h // block, w // block])


@operator("ReverseSequence")
def reverse_sequence(b: Expressions, x: Term, lengths: Term, *, batch_axis: int = 1, time_axis: int = 0) -> Term:
    return b.call("reverse_sequence", x, b.cast(lengths, "int32"), seq_axis=time_axis, batch_axis=batch_axis)
