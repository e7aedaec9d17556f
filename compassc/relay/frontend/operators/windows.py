"""Convolutions and pooling."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from compassc.importers.values import Refused
from compassc.relay.frontend.operators.linear import without_zero
from compassc.relay.frontend.terms import Expressions, Term, operator
from compassc.relay.ops.convolution import SPACE

SAME_PADS = ("SAME_UPPER", "SAME_LOWER")


def space(x: Term) -> int:
    """How many axes windows move over. Refused where there are others than 1 to 3."""
    rank = x.rank - 2
    if rank not in SPACE:
        raise Refused(f"it moves over {rank} axes; expressions have 1, 2 or 3")
    return rank


def layouts(rank: int, kernel: str = "OI") -> dict[str, str]:
    return {"data_layout": "NC" + SPACE[rank], "kernel_layout": kernel + SPACE[rank]}


def around(
    x: Term,
    auto: str,
    pads: Sequence[int] | None,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> list[int]:
    """What is put around the axes: before each, then behind each."""
    if auto not in SAME_PADS:
        return list(pads) if pads is not None and auto == "NOTSET" else [0] * 2 * len(kernel)
    before, behind = [], []
    for size, k, s, d in zip(x.shape[2:], kernel, strides, dilations, strict=True):
        if not isinstance(size, int):
            raise Refused(f"its attribute 'auto_pad' is {auto}, and its extents are only known at run time")
        total = max(0, (-(-size // s) - 1) * s + (k - 1) * d + 1 - size)
        low = total // 2
        before.append(low if auto == "SAME_UPPER" else total - low)
        behind.append(total - before[-1])
    return [*before, *behind]


def extents_of(w: Term) -> list[int]:
    """The extents of kernels. Refused where they are open."""
    found = [d for d in w.shape[2:] if isinstance(d, int)]
    if len(found) < w.rank - 2:
        raise Refused("the extents of its kernels are only known at run time")
    return found


def convolved(
    b: Expressions, x: Term, w: Term, auto_pad: str = "NOTSET", pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None, dilations: Sequence[int] | None = None, group: int = 1, **more: Any,
) -> Term:  # fmt: skip
    """A convolution without a bias."""
    rank, kernel = space(x), extents_of(w)
    by, apart = list(strides or [1] * rank), list(dilations or [1] * rank)
    wide = around(x, auto_pad, pads, kernel, by, apart)
    if min(wide, default=0) < 0:
        raise Refused("its pads are below 0")
    return b.call(
        f"nn.conv{rank}d", x, w, strides=by, padding=wide, dilation=apart, groups=group, kernel_size=kernel,
        channels=w.shape[0], **layouts(rank), **more,
    )  # fmt: skip


def biased(b: Expressions, x: Term, bias: Term | None) -> Term:
    """With a number for each channel added."""
    return x if bias is None else b.call("nn.bias_add", x, bias, axis=1)


@operator("Conv")
def conv(
    b: Expressions, x: Term, w: Term, bias: Term | None = None, *, auto_pad: str = "NOTSET", pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None, dilations: Sequence[int] | None = None, group: int = 1,
    kernel_shape: Sequence[int] | None = None,
) -> Term:  # fmt: skip
    return biased(b, convolved(b, x, w, auto_pad, pads, strides, dilations, group), bias)


@operator("ConvInteger")
def conv_of_integers(
    b: Expressions, x: Term, w: Term, x_zero: Term | None = None, w_zero: Term | None = None, *, auto_pad: str = "NOTSET",
    pads: Sequence[int] | None = None, strides: Sequence[int] | None = None, dilations: Sequence[int] | None = None,
    group: int = 1, kernel_shape: Sequence[int] | None = None,
) -> Term:  # fmt: skip
    given = without_zero(b, x, x_zero), without_zero(b, w, w_zero, 0)
    return convolved(b, *given, auto_pad, pads, strides, dilations, group, out_dtype="int32")


@operator("ConvTranspose")
def conv_transposed(
    b: Expressions, x: Term, w: Term, bias: Term | None = None, *, auto_pad: str = "NOTSET", pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None, dilations: Sequence[int] | None = None, group: int = 1,
    kernel_shape: Sequence[int] | None = None, output_padding: Sequence[int] | None = None, output_shape: Sequence[int] | None = None,
) -> Term:  # fmt: skip
    rank, kernel = space(x), extents_of(w)
    by, apart = list(strides or [1] * rank), list(dilations or [1] * rank)
    more = list(output_padding or [0] * rank)
    wide = list(pads or [0] * 2 * rank) if auto_pad == "NOTSET" else [0] * 2 * rank
    if output_shape is not None or auto_pad in SAME_PADS:
        wide, more = _towards(x, output_shape, auto_pad, kernel, by, apart, more)
    units = w.shape[1]
    if not isinstance(units, int):
        raise Refused("how many channels it makes is only known at run time")
    made = b.call(
        f"nn.conv{rank}d_transpose", x, w, strides=by, padding=[0] * 2 * rank, dilation=apart, groups=group,
        kernel_size=kernel, channels=units * group, output_padding=[0] * rank, **layouts(rank, "IO"),
    )  # fmt: skip
    made = _cropped(b, made, wide, more)
    return biased(b, made, bias)


def _cropped(b: Expressions, x: Term, wide: Sequence[int], more: Sequence[int]) -> Term:
    """Without what `wide` cuts off, or with zeros where that is below 0; `more` is added behind."""
    rank = len(more)
    ends = [(wide[i], wide[rank + i] - more[i]) for i in range(rank)]
    for i, (before, behind) in enumerate(ends):
        if max(before, behind) > 0:
            size = x.shape[2 + i]
            end = -max(behind, 0) or (size if isinstance(size, int) else 2**31 - 1)
            x = b.slice(x, 2 + i, max(before, 0), end)
    zeros = [(0, 0), (0, 0), *((max(-before, 0), max(-behind, 0)) for before, behind in ends)]
    return b.call("nn.pad", x, pad_width=zeros, pad_value=b.of(np.zeros((), x.dtype))) if any(map(any, zeros)) else x


def _towards(
    x: Term, wanted: Sequence[int] | None, auto: str, kernel: Sequence[int], by: Sequence[int], apart: Sequence[int],
    more: Sequence[int],
) -> tuple[list[int], list[int]]:  # fmt: skip
    """Pads that make an extent: what is missing is split, its larger half where `auto_pad` says."""
    before, behind = [], []
    for i, (k, s, d) in enumerate(zip(kernel, by, apart, strict=True)):
        size = x.shape[2 + i]
        if not isinstance(size, int):
            raise Refused("its extents are only known at run time, and pads follow from them")
        goal = wanted[-len(kernel) :][i] if wanted is not None else size * s
        total = s * (size - 1) + more[i] + (k - 1) * d + 1 - goal
        low = total // 2 if auto != "SAME_LOWER" else total - total // 2
        if auto not in SAME_PADS:
            low = total - total // 2
        before.append(low)
        behind.append(total - low)
    return [*before, *behind], list(more)


# -- pooling


def _pool(
    b: Expressions, name: str, x: Term, kernel: Sequence[int], auto: str, pads: Sequence[int] | None,
    strides: Sequence[int] | None, dilations: Sequence[int] | None, ceil: int, **more: Any,
) -> Term:  # fmt: skip
    rank = space(x)
    by, apart = list(strides or [1] * rank), list(dilations or [1] * rank)
    wide = around(x, auto, pads, kernel, by, apart)
    for i, size in enumerate(x.shape[2:]):  # a window that starts behind the tensor is left out
        if ceil and isinstance(size, int):
            reach = size + wide[i] + wide[rank + i] - (kernel[i] - 1) * apart[i] - 1
            if -(-reach // by[i]) * by[i] >= size + wide[i]:
                raise Refused("its last window lies outside the tensor")
    return b.call(
        f"nn.{name}_pool{rank}d", x, pool_size=list(kernel), strides=by, padding=wide, dilation=apart, ceil_mode=bool(ceil),
        layout="NC" + SPACE[rank], **more,
    )  # fmt: skip


@operator("MaxPool")
def max_pool(
    b: Expressions, x: Term, *, kernel_shape: Sequence[int], auto_pad: str = "NOTSET", pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None, dilations: Sequence[int] | None = None, ceil_mode: int = 0, storage_order: int = 0,
) -> Term:  # fmt: skip
    if b.uses(1):
        raise Refused("where its maxima come from has no expression")
    return _pool(b, "max", x, kernel_shape, auto_pad, pads, strides, dilations, ceil_mode)


@operator("AveragePool", since=7)
def average_pool(
    b: Expressions, x: Term, *, kernel_shape: Sequence[int], auto_pad: str = "NOTSET", pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None, dilations: Sequence[int] | None = None, ceil_mode: int = 0, count_include_pad: int = 0,
) -> Term:  # fmt: skip
    counted = {"count_include_pad": bool(count_include_pad)}
    return _pool(b, "avg", x, kernel_shape, auto_pad, pads, strides, dilations, ceil_mode, **counted)


@operator("LpPool", since=2)
def lp_pool(
    b: Expressions, x: Term, *, kernel_shape: Sequence[int], auto_pad: str = "NOTSET", pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None, dilations: Sequence[int] | None = None, ceil_mode: int = 0, p: int = 2,
) -> Term:  # fmt: skip
    powers = b.call("power", b.call("abs", x), p)
    mean = _pool(b, "avg", powers, kernel_shape, auto_pad, pads, strides, dilations, ceil_mode, count_include_pad=True)
    return b.call("power", b.call("multiply", mean, prod(kernel_shape)), 1 / p)


def _global(b: Expressions, x: Term, name: str) -> Term:
    if x.rank == 4:
        return b.call(f"nn.global_{name}_pool2d", x)
    return b.call({"avg": "mean", "max": "max"}[name], x, axis=list(range(2, x.rank)), keepdims=True)


@operator("GlobalAveragePool")
def global_average(b: Expressions, x: Term) -> Term:
    return _global(b, x, "avg")


@operator("GlobalMaxPool")
def global_max(b: Expressions, x: Term) -> Term:
    return _global(b, x, "max")


@operator("GlobalLpPool", since=2)
def global_lp(b: Expressions, x: Term, *, p: int = 2) -> Term:
    total = b.call("sum", b.call("power", b.call("abs", x), p), axis=list(range(2, x.rank)), keepdims=True)
    return b.call("power", total, 1 / p)


@operator("MaxRoiPool")
def max_of_regions(
    b: Expressions, x: Term, regions: Term, *, pooled_shape: Sequence[int], spatial_scale: float = 1.0
) -> Term:
    return b.call("vision.roi_pool", x, regions, pooled_size=tuple(pooled_shape), spatial_scale=spatial_scale)


@operator("DeformConv", since=19)
def deformable(
    b: Expressions, x: Term, w: Term, offset: Term, bias: Term | None = None, mask: Term | None = None, *,
    kernel_shape: Sequence[int] | None = None, strides: Sequence[int] | None = None, pads: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None, group: int = 1, offset_group: int = 1,
) -> Term:  # fmt: skip
    if mask is not None:
        raise Refused("its input 'mask' has no expression")
    if x.rank != 4:
        raise Refused("only that of pictures has an expression")
    made = b.call(
        "nn.deformable_conv2d", x, offset, w, strides=list(strides or (1, 1)), padding=list(pads or [0] * 4),
        dilation=list(dilations or (1, 1)), groups=group, deformable_groups=offset_group, kernel_size=extents_of(w), channels=w.shape[0],
    )  # fmt: skip
    return biased(b, made, bias)
