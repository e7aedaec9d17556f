"""Convolutions and pooling."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from compassc.importers.onnx.common.shapes import cut_off
from compassc.importers.onnx.window import Asked, Window
from compassc.importers.values import Refused
from compassc.relay.frontend.operators.linear import without_zero
from compassc.relay.frontend.terms import Expressions, Term, operator
from compassc.relay.ops.convolution import SPACE


def space(x: Term) -> int:
    """How many axes windows move over. Refused where there are others than 1 to 3."""
    rank = x.rank - 2
    if rank not in SPACE:
        raise Refused(f"it moves over {rank} axes; expressions have 1, 2 or 3")
    return rank


def layouts(rank: int, kernel: str = "OI") -> dict[str, str]:
    return {"data_layout": "NC" + SPACE[rank], "kernel_layout": kernel + SPACE[rank]}


def options(window: Window) -> dict[str, list[int]]:
    """A window as operators take it."""
    return {"strides": list(window.stride), "padding": window.ends, "dilation": list(window.dilation)}


def extents_of(w: Term) -> list[int]:
    """The extents of kernels. Refused where they are open."""
    found = [d for d in w.shape[2:] if isinstance(d, int)]
    if len(found) < w.rank - 2:
        raise Refused("the extents of its kernels are only known at run time")
    return found


def convolved(b: Expressions, x: Term, w: Term, asked: Asked, group: int = 1, **more: object) -> Term:
    """A convolution without a bias."""
    rank, kernel = space(x), extents_of(w)
    window = asked.over(x.shape[2:], kernel)
    if min(min(pair) for pair in window.pads) < 0:
        raise Refused("its pads are below 0")
    return b.call(
        f"nn.conv{rank}d",
        x,
        w,
        **options(window),
        groups=group,
        kernel_size=kernel,
        channels=w.shape[0],
        **layouts(rank),
        **more,
    )


def biased(b: Expressions, x: Term, bias: Term | None) -> Term:
    """With a number for each channel added."""
    return x if bias is None else b.call("nn.bias_add", x, bias, axis=1)


@operator("Conv")
def conv(b: Expressions, x: Term, w: Term, bias: Term | None = None, *, asked: Asked, group: int = 1) -> Term:
    return biased(b, convolved(b, x, w, asked, group), bias)


@operator("ConvInteger")
def conv_of_integers(
    b: Expressions,
    x: Term,
    w: Term,
    x_zero: Term | None = None,
    w_zero: Term | None = None,
    *,
    asked: Asked,
    group: int = 1,
) -> Term:
    return convolved(b, without_zero(b, x, x_zero), without_zero(b, w, w_zero, 0), asked, group, out_dtype="int32")


@operator("ConvTranspose")
def conv_transposed(
    b: Expressions, x: Term, w: Term, bias: Term | None = None, *, asked: Asked, group: int = 1,
    output_padding: Sequence[int] | None = None, output_shape: Sequence[int] | None = None,
) -> Term:  # fmt: skip
    rank, kernel, units = space(x), extents_of(w), w.shape[1]
    more = list(output_padding or [0] * rank)
    window = asked.transposed(x.shape[2:], kernel, more, output_shape)
    if not isinstance(units, int):
        raise Refused("how many channels it makes is only known at run time")
    whole = window._replace(pads=((0, 0),) * rank)
    made = b.call(
        f"nn.conv{rank}d_transpose", x, w, **options(whole), groups=group, kernel_size=kernel, channels=units * group,
        output_padding=[0] * rank, **layouts(rank, "IO"),
    )  # fmt: skip
    return biased(
        b,
        _cropped(b, made, [(before, behind - m) for (before, behind), m in zip(window.pads, more, strict=True)]),
        bias,
    )


def _cropped(b: Expressions, x: Term, ends: Sequence[tuple[int, int]]) -> Term:
    """Without what is cut off at the ends of each axis, or with zeros where that is below 0."""
    for i, (before, behind) in enumerate(ends):
        if max(before, behind) > 0:
            size = x.shape[2 + i]
            end = -max(behind, 0) or (size if isinstance(size, int) else 2**31 - 1)
            x = b.slice(x, 2 + i, max(before, 0), end)
    zeros = [(0, 0), (0, 0), *((max(-before, 0), max(-behind, 0)) for before, behind in ends)]
    return b.call("nn.pad", x, pad_width=zeros, pad_value=b.of(np.zeros((), x.dtype))) if any(map(any, zeros)) else x


# -- pooling


def _pool(b: Expressions, name: str, x: Term, window: Window, ceil: int, **more: object) -> Term:
    rank, sizes = space(x), [n for n in x.shape[2:] if isinstance(n, int)]
    if ceil and len(sizes) == rank:
        x, pairs = cut_off(b, x, [(0, 0), (0, 0), *window.trimmed(sizes).pads])
        window = window._replace(pads=tuple(pairs[2:]))
    return b.call(
        f"nn.{name}_pool{rank}d", x, pool_size=list(window.kernel), **options(window), ceil_mode=bool(ceil),
        layout="NC" + SPACE[rank], **more,
    )  # fmt: skip


@operator("MaxPool")
def max_pool(b: Expressions, x: Term, *, asked: Asked, ceil_mode: int = 0, storage_order: int = 0) -> Term:
    if b.uses(1):
        raise Refused("where its maxima come from has no expression")
    return _pool(b, "max", x, asked.over(x.shape[2:]), ceil_mode)


@operator("AveragePool", since=7)
def average_pool(b: Expressions, x: Term, *, asked: Asked, ceil_mode: int = 0, count_include_pad: int = 0) -> Term:
    return _pool(b, "avg", x, asked.mean(x.shape[2:]), ceil_mode, count_include_pad=bool(count_include_pad))


@operator("LpPool", since=2)
def lp_pool(b: Expressions, x: Term, *, asked: Asked, ceil_mode: int = 0, p: int = 2) -> Term:
    window = asked.mean(x.shape[2:])
    if ceil_mode:
        sizes = [size for size in x.shape[2:] if isinstance(size, int)]
        if len(sizes) != len(window.kernel):
            raise Refused(
                "its extents are only known at run time, and how far its last window reaches follows from them"
            )
        window = window.filled(sizes)
    mean = _pool(b, "avg", b.call("power", b.call("abs", x), p), window, 0, count_include_pad=True)
    return b.call("power", b.call("multiply", mean, prod(window.kernel)), 1 / p)


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
    b: Expressions, x: Term, w: Term, offset: Term, bias: Term | None = None, mask: Term | None = None, *, asked: Asked,
    group: int = 1, offset_group: int = 1,
) -> Term:  # fmt: skip
    if mask is not None:
        raise Refused("its input 'mask' has no expression")
    if x.rank != 4:
        raise Refused("only that of pictures has an expression")
    kernel = extents_of(w)
    made = b.call(
        "nn.deformable_conv2d", x, offset, w, **options(asked.over(x.shape[2:], kernel)), groups=group,
        deformable_groups=offset_group, kernel_size=kernel, channels=w.shape[0],
    )  # fmt: skip
    return biased(b, made, bias)
