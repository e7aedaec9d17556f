"""Pooling: the largest or the mean of windows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product as tuples

import numpy as np

from compass_core.arrays import Array
from compassc import te
from compassc.ir.errors import ExpressionError
from compassc.ir.exprs import Expr
from compassc.operators import reduction
from compassc.operators.arrays import largest_of, mean, mean_of_sum
from compassc.operators.convolution import padding_of
from compassc.operators.declare import (
    check_known,
    largest,
    least,
    mean_of,
    number,
    numbers,
    operator,
    pair,
    positives,
    sample,
    sizes,
    summed,
)
from compassc.operators.movement import pad
from compassc.operators.patterns import PatternKind
from compassc.te.tensor import Tensor


def _places(layout: str) -> tuple[int, int]:
    if layout not in ("NCHW", "NHWC"):
        raise ExpressionError(f"there is no pooling of '{layout}': NCHW, NHWC")
    return (2, 3) if layout == "NCHW" else (1, 2)


def _pooled(
    x: Array, kernel: object, stride: object, dilation: object, padding: Sequence[int], pool_type: str, ceil_mode: bool = False,
    layout: str = "NCHW", count_include_pad: bool = True,
) -> Array:  # fmt: skip
    if layout == "NHWC":
        made = _pooled(
            x.transpose(0, 3, 1, 2), kernel, stride, dilation, padding, pool_type, ceil_mode, "NCHW", count_include_pad
        )
        return made.transpose(0, 2, 3, 1)
    (kh, kw), (sy, sx), (ly, lx), (top, left, bottom, right) = pair(kernel), pair(stride), pair(dilation), padding
    nothing = (-np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min) if pool_type == "max" else 0
    oh = _count(x.shape[2] + top + bottom, kh, sy, ly, ceil_mode)
    ow = _count(x.shape[3] + left + right, kw, sx, lx, ceil_mode)
    ends = [max((n - 1) * s + (k - 1) * d + 1 - size - before, after) for n, s, k, d, size, before, after in
            ((oh, sy, kh, ly, x.shape[2], top, bottom), (ow, sx, kw, lx, x.shape[3], left, right))]  # fmt: skip
    border = [(0, 0), (0, 0), (top, ends[0]), (left, ends[1])]
    wide, ones = (np.pad(a, border, constant_values=v) for a, v in ((x.astype("f8"), nothing), (np.ones(x.shape), 0)))
    found = np.zeros((*x.shape[:2], oh, ow))
    for i, j in tuples(range(oh), range(ow)):
        cut = np.s_[:, :, i * sy : i * sy + (kh - 1) * ly + 1 : ly, j * sx : j * sx + (kw - 1) * lx + 1 : lx]
        window = wide[cut]
        count = kh * kw if count_include_pad else np.maximum(ones[cut].sum((2, 3)), 1)
        found[:, :, i, j] = (
            largest_of(window, (2, 3)) if pool_type == "max" else mean_of_sum(window.sum((2, 3)), count, x.dtype)
        )
    return found


def _count(size: int, window: int, stride: int, dilation: int, ceil_mode: bool) -> int:
    left = size - (window - 1) * dilation - 1
    return (-(-left // stride) if ceil_mode else left // stride) + 1


def pool2d(
    data: Tensor, kernel: object, stride: object, dilation: object, padding: object, pool_type: str, ceil_mode: bool = False,
    layout: str = "NCHW", count_include_pad: bool = True,
) -> Tensor:  # fmt: skip
    """The largest (`max`) or the mean (`avg`) of each window; `padding` is that of convolutions: four numbers are top, left,
    bottom, right. Means of whole numbers are those of `mean`. With `ceil_mode` a window may go beyond the end; without
    `count_include_pad` a mean is of the elements that exist. The largest of none is minus infinity, the least number of a
    type of whole ones."""
    (h, w), (kh, kw) = _places(layout), positives(kernel, "pool2d: windows")
    (sy, sx), (ly, lx) = positives(stride, "pool2d: strides"), positives(dilation, "pool2d: dilations")
    (top, left), (bottom, right) = padding_of(padding, (kh, kw), (ly, lx))
    shape = sizes(data)
    check_known((shape[h], shape[w]), data, "pool2d")
    oh = _count(shape[h] + top + bottom, kh, sy, ly, ceil_mode)
    ow = _count(shape[w] + left + right, kw, sx, lx, ceil_mode)
    low, high = [0] * 4, [0] * 4
    low[h], low[w] = top, left
    high[h] = max((oh - 1) * sy + (kh - 1) * ly + 1 - shape[h] - top, 0)
    high[w] = max((ow - 1) * sx + (kw - 1) * lx + 1 - shape[w] - left, 0)
    if pool_type not in ("max", "avg"):
        raise ExpressionError(f"there is no pooling '{pool_type}': max, avg")
    nothing = least(data.dtype) if pool_type == "max" else 0
    padded = pad(data, low, high, nothing) if any((*low, *high)) else data
    ry, rx = te.reduce_axis((0, kh), name="ry"), te.reduce_axis((0, kw), name="rx")
    made = list(shape)
    made[h], made[w] = oh, ow
    kind = summed(data.dtype)

    def element(*i: Expr) -> object:
        at = list(i)
        at[h], at[w] = i[h] * sy + ry * ly, i[w] * sx + rx * lx
        value = padded[tuple(at)]
        if pool_type == "max":
            return largest(value, axis=[ry, rx])
        return te.sum(te.cast(value, kind), axis=[ry, rx])

    found: Tensor = te.compute(made, element, name=f"T_pool_{pool_type}", tag=f"pool_{pool_type}")
    if pool_type == "max":
        return found
    starts = ((h, sy, ly, kh, top, shape[h]), (w, sx, lx, kw, left, shape[w]))

    def mean(*i: Expr) -> Expr:
        if count_include_pad:
            return mean_of(found[i], kh * kw, data.dtype)
        counted = [_existing(i[d], s, l, k, before, extent) for d, s, l, k, before, extent in starts]
        return mean_of(found[i], te.max(counted[0] * counted[1], 1), data.dtype)

    result: Tensor = te.compute(made, mean, name="T_pool_mean", tag="elemwise")
    return result


def _existing(place: Expr, stride: int, dilation: int, window: int, before: int, extent: int) -> Expr:
    """How many elements of a window exist on an axis."""
    start = place * stride - before
    first = te.max((te.const(dilation - 1) - start) // dilation, 0) if before else te.const(0)
    last = te.min((te.const(extent - 1) - start) // dilation, window - 1)
    found: Expr = te.max(last - first + 1, 0)
    return found


_MAX = (sample((1, 3, 7, 8), [3, 2], [2, 1], 1, [1, 0, 1, 1], "max"), sample((1, 6, 7, 3), 2, 2, 1, [0, 0, 0, 0], "max", False, "NHWC"),
        sample((1, 2, 7, 7), 3, 2, 1, [0, 0, 0, 0], "max", True))  # fmt: skip
_MEAN = (sample((1, 3, 7, 8), [3, 2], [2, 1], 1, [1, 0, 1, 1], "avg"), sample((1, 2, 6, 6), 3, 2, 1, [1, 1, 1, 1], "avg", False, "NCHW", False),
         sample((1, 6, 6, 9), 3, 2, 1, [1, 1, 1, 1], "avg", False, "NHWC", False))  # fmt: skip
operator(PatternKind.ANCHOR, _pooled, *_MAX, name="max_pool2d")(pool2d)
operator(PatternKind.ANCHOR, _pooled, *_MEAN, name="avg_pool2d")(pool2d)


@operator(PatternKind.ANCHOR, lambda x, pool_type: {"max": largest_of, "avg": mean}[pool_type](x, (2, 3), keepdims=True),
          sample((2, 3, 4, 5), "avg"), sample((2, 3, 4, 5), "max"))  # fmt: skip
def global_pool(data: Tensor, pool_type: str, layout: str = "NCHW") -> Tensor:
    """The largest or the mean of each channel."""
    reducer = {"max": reduction.max, "avg": reduction.mean}.get(pool_type)
    if reducer is None:
        raise ExpressionError(f"there is no pooling '{pool_type}': max, avg")
    return reducer(data, _places(layout), True)


def _adapted(x: Array, output_size: object, pool_type: str) -> Array:
    oh, ow = pair(output_size)
    h, w = x.shape[2:]
    found = np.zeros((*x.shape[:2], oh, ow))
    for i, j in tuples(range(oh), range(ow)):
        part = x[:, :, i * h // oh : -(-(i + 1) * h // oh), j * w // ow : -(-(j + 1) * w // ow)].astype("f8")
        area = part.shape[2] * part.shape[3]
        found[:, :, i, j] = (
            largest_of(part, (2, 3)) if pool_type == "max" else mean_of_sum(part.sum((2, 3)), area, x.dtype)
        )
    return found


@operator(PatternKind.ANCHOR, _adapted, sample((1, 2, 7, 9), [3, 4], "avg"), sample((1, 2, 7, 9), [3, 4], "max"))
def adaptive_pool(data: Tensor, output_size: object, pool_type: str, layout: str = "NCHW") -> Tensor:
    """Windows that share a picture out evenly, whatever its size; NCHW."""
    if layout != "NCHW" or pool_type not in ("max", "avg"):
        raise ExpressionError(f"topi.nn.adaptive_pool has no '{pool_type}' of '{layout}': max, avg of NCHW")
    (n, c, h, w), (oh, ow) = numbers(data, "adaptive_pool"), positives(output_size, "adaptive_pool: sizes")
    ry = te.reduce_axis((0, max(_span(i, h, oh) for i in range(oh))), name="ry")
    rx = te.reduce_axis((0, max(_span(i, w, ow) for i in range(ow))), name="rx")

    def first(i: Expr, size: int, parts: int) -> Expr:
        return (i * size) // parts

    def count(i: Expr, size: int, parts: int) -> Expr:
        return ((i + 1) * size + parts - 1) // parts - first(i, size, parts)

    def element(b: Expr, k: Expr, y: Expr, x: Expr) -> object:
        inside = te.all(ry < count(y, h, oh), rx < count(x, w, ow))
        at = te.min(first(y, h, oh) + ry, h - 1), te.min(first(x, w, ow) + rx, w - 1)
        if pool_type == "max":
            return largest(te.Select(inside, data[(b, k, *at)], least(data.dtype)), axis=[ry, rx])
        value = te.cast(data[(b, k, *at)], summed(data.dtype))
        return te.sum(te.Select(inside, value, number(0, summed(data.dtype))), axis=[ry, rx])

    found: Tensor = te.compute([n, c, oh, ow], element, name="T_adaptive_pool", tag=f"pool_{pool_type}")
    if pool_type == "max":
        return found

    def mean(b: Expr, k: Expr, y: Expr, x: Expr) -> Expr:
        return mean_of(found[b, k, y, x], count(y, h, oh) * count(x, w, ow), data.dtype)

    result: Tensor = te.compute([n, c, oh, ow], mean, name="T_adaptive_mean", tag="elemwise")
    return result


def _span(i: int, size: int, parts: int) -> int:
    return -(-(i + 1) * size // parts) - i * size // parts
