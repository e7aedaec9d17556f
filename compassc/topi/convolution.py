"""Convolutions: one and two dimensions, NCHW and NHWC, groups, dilation, depthwise, transposed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product as tuples
from typing import Any

import numpy as np

from compassc import te
from compassc.te.errors import ExpressionError
from compassc.te.tensor import Tensor
from compassc.topi.declare import number, numbers, operator, pair, sample
from compassc.topi.linear import product, result, sum_type, wide_product
from compassc.topi.movement import pad


def padding_of(padding: Any, kernel: Sequence[int], dilation: Sequence[int]) -> tuple[list[int], list[int]]:
    """Elements before and after each axis: of one number, one for each axis, one for each end, VALID or SAME."""
    count = len(kernel)
    if isinstance(padding, str):
        if padding.upper() == "VALID":
            return [0] * count, [0] * count
        if padding.upper() != "SAME":
            raise ExpressionError(f"there is no padding '{padding}': numbers, VALID, SAME")
        whole = [(k - 1) * d for k, d in zip(kernel, dilation)]
        return [w // 2 for w in whole], [w - w // 2 for w in whole]
    given = list(padding) if isinstance(padding, (tuple, list)) else [padding]
    if len(given) == 1:
        given = given * count
    if len(given) == count:
        given = given * 2
    if len(given) != 2 * count:
        raise ExpressionError(f"padding {padding!r} does not go with {count} dimensions")
    return given[:count], given[count:]


def _convolved(x: Any, w: Any, strides: Any, padding: Any, dilation: Any, groups: int = 1) -> Any:
    """The reference, of NC... and OI...."""
    x, w = wide_product(x), wide_product(w)
    rank = x.ndim - 2
    strides, dilation = pair(strides, rank), pair(dilation, rank)
    before, after = padding_of(padding, w.shape[2:], dilation)
    x = np.pad(x, [(0, 0), (0, 0), *zip(before, after)])
    out = [(d - (k - 1) * l - 1) // s + 1 for d, k, l, s in zip(x.shape[2:], w.shape[2:], dilation, strides)]
    made = np.zeros((x.shape[0], w.shape[0], *out), x.dtype)
    own = w.shape[0] // groups
    for o in range(w.shape[0]):
        first = (o // own) * w.shape[1]
        for at in tuples(*map(range, w.shape[2:])):
            cut = tuple(slice(a * l, a * l + (n - 1) * s + 1, s) for a, l, n, s in zip(at, dilation, out, strides))
            part = x[(slice(None), slice(first, first + w.shape[1]), *cut)]
            made[:, o] += np.tensordot(part, w[(o, slice(None), *at)], (1, 0))
    return made


def _conv(
    data: Tensor,
    kernel: Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    out_dtype: str | None,
    tag: str,
) -> Tensor:
    """A convolution of NC... by OI..., any number of dimensions."""
    (n, channels, *space), (out, own, *window) = numbers(data, tag), numbers(kernel, tag)
    rank = len(space)
    strides, dilation = pair(strides, rank), pair(dilation, rank)
    if channels != own * groups or out % groups:
        raise ExpressionError(
            f"topi.{tag}: {channels} channels in {groups} groups do not go with a kernel of {own}, for {out} outputs"
        )
    before, after = padding_of(padding, window, dilation)
    padded = pad(data, [0, 0, *before], [0, 0, *after]) if any((*before, *after)) else data
    made = [
        (d + b + a - (k - 1) * l - 1) // s + 1
        for d, b, a, k, l, s in zip(space, before, after, window, dilation, strides)
    ]
    rc = te.reduce_axis((0, own), name="rc")
    over = [te.reduce_axis((0, k), name=f"r{'yxz'[i] if rank > 1 else 'x'}") for i, k in enumerate(window)]
    kind, each = sum_type(data.dtype, out_dtype), out // groups

    def element(b: Any, o: Any, *at: Any) -> Any:
        places = [p * s + r * l for p, s, r, l in zip(at, strides, over, dilation)]
        channel = rc if groups == 1 else (o // each) * own + rc
        return te.sum(product(padded[(b, channel, *places)], kernel[(o, rc, *over)], kind), axis=[rc, *over])

    total = te.compute([n, out, *made], element, name=f"T_{tag}", tag=tag)
    return result(total, data.dtype, out_dtype)


_CONV2D = (
    sample((1, 3, 6, 7), (4, 3, 3, 3), 1, 1, 1), sample((2, 2, 7, 7), (3, 2, 3, 2), [2, 1], [1, 0, 0, 2], 1),
    sample((1, 2, 9, 8), (2, 2, 3, 3), 1, "SAME", 2),
)  # fmt: skip


@operator(_convolved, *_CONV2D)
def conv2d_nchw(
    Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any = 1, out_dtype: str | None = None
) -> Tensor:
    """A convolution of NCHW by OIHW. Bytes give int32."""
    return _conv(Input, Filter, stride, padding, dilation, 1, out_dtype, "conv2d_nchw")


@operator(_convolved, sample((1, 4, 5, 6), (6, 2, 3, 3), 1, 1, 1, 2))
def group_conv2d_nchw(
    Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any, groups: int, out_dtype: str | None = None
) -> Tensor:
    """A convolution of NCHW in groups of channels by OIHW, I the channels of a group."""
    return _conv(Input, Filter, stride, padding, dilation, groups, out_dtype, "group_conv2d_nchw")


@operator(_convolved, sample((2, 3, 12), (4, 3, 3), 2, 1, 1), sample((1, 2, 10), (2, 2, 3), 1, 0, 3))
def conv1d_ncw(
    data: Tensor, kernel: Tensor, strides: Any = 1, padding: Any = "VALID", dilation: Any = 1, out_dtype: Any = None
) -> Tensor:
    """A convolution of NCW by OIW."""
    return _conv(data, kernel, strides, padding, dilation, 1, out_dtype, "conv1d_ncw")


def _channels_last(x: Any, w: Any, strides: Any, padding: Any, dilation: Any = 1, groups: int = 1) -> Any:
    """The reference, of N...C and ...IO."""
    rank = x.ndim - 2
    first = (0, rank + 1, *range(1, rank + 1)), (rank + 1, rank, *range(rank))
    made = _convolved(x.transpose(first[0]), w.transpose(first[1]), strides, padding, dilation, groups)
    return made.transpose(0, *range(2, rank + 2), 1)


def _conv_last(
    data: Tensor,
    kernel: Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    out_dtype: str | None,
    tag: str,
) -> Tensor:
    """A convolution of N...C by ...IO, any number of dimensions."""
    (n, *space, channels), (*window, own, out) = numbers(data, tag), numbers(kernel, tag)
    rank = len(space)
    strides, dilation = pair(strides, rank), pair(dilation, rank)
    if len(window) != rank or channels != own * groups or out % groups:
        raise ExpressionError(
            f"topi.{tag}: {channels} channels in {groups} groups do not go with a kernel of {own}, for {out} outputs"
        )
    before, after = padding_of(padding, window, dilation)
    padded = pad(data, [0, *before, 0], [0, *after, 0]) if any((*before, *after)) else data
    made = [
        (d + b + a - (k - 1) * l - 1) // s + 1
        for d, b, a, k, l, s in zip(space, before, after, window, dilation, strides)
    ]
    over = [te.reduce_axis((0, k), name=f"r{'yxz'[i] if rank > 1 else 'x'}") for i, k in enumerate(window)]
    rc = te.reduce_axis((0, own), name="rc")
    kind, each = sum_type(data.dtype, out_dtype), out // groups

    def element(b: Any, *at: Any) -> Any:
        places, o = [p * s + r * l for p, s, r, l in zip(at, strides, over, dilation)], at[-1]
        channel = rc if groups == 1 else (o // each) * own + rc
        return te.sum(product(padded[(b, *places, channel)], kernel[(*over, rc, o)], kind), axis=[*over, rc])

    names = ["b", *("yxz"[:rank] if rank > 1 else "x"), "o"]
    total = te.compute([n, *made, out], element, name=f"T_{tag}", tag=tag, varargs_names=names[1:])
    return result(total, data.dtype, out_dtype)


@operator(
    _channels_last, sample((1, 6, 7, 3), (3, 3, 3, 4), 1, 1, 1), sample((2, 7, 7, 2), (3, 2, 2, 8), [2, 1], "SAME", 2)
)
def conv2d_nhwc(
    Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any = 1, out_dtype: str | None = None
) -> Tensor:
    """A convolution of NHWC by HWIO. Bytes give int32."""
    return _conv_last(Input, Filter, stride, padding, dilation, 1, out_dtype, "conv2d_nhwc")


@operator(_channels_last, sample((1, 5, 6, 4), (3, 3, 2, 6), 1, 1, 1, 2))
def group_conv2d_nhwc(
    Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any, groups: int, out_dtype: str | None = None
) -> Tensor:
    """A convolution of NHWC in groups of channels by HWIO, I the channels of a group."""
    return _conv_last(Input, Filter, stride, padding, dilation, groups, out_dtype, "group_conv2d_nhwc")


@operator(_channels_last, sample((2, 12, 3), (3, 3, 8), 2, 1, 1), sample((1, 10, 2), (3, 2, 2), 1, 0, 3))
def conv1d_nwc(
    data: Tensor, kernel: Tensor, strides: Any = 1, padding: Any = "VALID", dilation: Any = 1, out_dtype: Any = None
) -> Tensor:
    """A convolution of NWC by WIO."""
    return _conv_last(data, kernel, strides, padding, dilation, 1, out_dtype, "conv1d_nwc")


def _depthwise(x: Any, w: Any, stride: Any, padding: Any, dilation: Any = 1) -> Any:
    channels, times = w.shape[:2]
    return _convolved(x, w.reshape(channels * times, 1, *w.shape[2:]), stride, padding, dilation, channels)


@operator(_depthwise, sample((1, 4, 6, 9), (4, 1, 3, 3), 1, 1), sample((2, 3, 7, 7), (3, 2, 3, 3), 2, 0, 2))
def depthwise_conv2d_nchw(
    Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any = 1, out_dtype: str | None = None
) -> Tensor:
    """A convolution of each channel of NCHW by its own windows: CMHW, M outputs for each channel."""
    (n, channels, h, w), (own, times, kh, kw) = numbers(Input, "depthwise"), numbers(Filter, "depthwise")
    if channels != own:
        raise ExpressionError(f"topi.depthwise_conv2d_nchw: {channels} channels do not go with {own} windows")
    (sy, sx), (ly, lx) = pair(stride), pair(dilation)
    before, after = padding_of(padding, (kh, kw), (ly, lx))
    padded = pad(Input, [0, 0, *before], [0, 0, *after]) if any((*before, *after)) else Input
    oh = (h + before[0] + after[0] - (kh - 1) * ly - 1) // sy + 1
    ow = (w + before[1] + after[1] - (kw - 1) * lx - 1) // sx + 1
    ry, rx = te.reduce_axis((0, kh), name="ry"), te.reduce_axis((0, kw), name="rx")
    kind = sum_type(Input.dtype, out_dtype)

    def element(b: Any, c: Any, y: Any, x: Any) -> Any:
        channel, window = (c, 0) if times == 1 else (c // times, c % times)
        own_value = padded[b, channel, y * sy + ry * ly, x * sx + rx * lx]
        return te.sum(product(own_value, Filter[channel, window, ry, rx], kind), axis=[ry, rx])

    total = te.compute([n, channels * times, oh, ow], element, name="T_depthwise", tag="depthwise_conv2d_nchw")
    return result(total, Input.dtype, out_dtype)


def _depthwise_last(x: Any, w: Any, stride: Any, padding: Any, dilation: Any = 1) -> Any:
    made = _depthwise(x.transpose(0, 3, 1, 2), w.transpose(2, 3, 0, 1), stride, padding, dilation)
    return made.transpose(0, 2, 3, 1)


@operator(_depthwise_last, sample((1, 6, 9, 8), (3, 3, 8, 1), 1, 1), sample((2, 7, 7, 3), (3, 3, 3, 2), 2, 0, 2))
def depthwise_conv2d_nhwc(
    Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any = 1, out_dtype: str | None = None
) -> Tensor:
    """A convolution of each channel of NHWC by its own windows: HWCM, M outputs for each channel."""
    (n, h, w, channels), (kh, kw, own, times) = numbers(Input, "depthwise"), numbers(Filter, "depthwise")
    if channels != own:
        raise ExpressionError(f"topi.depthwise_conv2d_nhwc: {channels} channels do not go with {own} windows")
    (sy, sx), (ly, lx) = pair(stride), pair(dilation)
    before, after = padding_of(padding, (kh, kw), (ly, lx))
    padded = pad(Input, [0, *before, 0], [0, *after, 0]) if any((*before, *after)) else Input
    oh = (h + before[0] + after[0] - (kh - 1) * ly - 1) // sy + 1
    ow = (w + before[1] + after[1] - (kw - 1) * lx - 1) // sx + 1
    ry, rx = te.reduce_axis((0, kh), name="ry"), te.reduce_axis((0, kw), name="rx")
    kind = sum_type(Input.dtype, out_dtype)

    def element(b: Any, y: Any, x: Any, c: Any) -> Any:
        channel, window = (c, 0) if times == 1 else (c // times, c % times)
        own_value = padded[b, y * sy + ry * ly, x * sx + rx * lx, channel]
        return te.sum(product(own_value, Filter[ry, rx, channel, window], kind), axis=[ry, rx])

    total = te.compute([n, oh, ow, channels * times], element, name="T_depthwise", tag="depthwise_conv2d_nhwc")
    return result(total, Input.dtype, out_dtype)


def _transposed(x: Any, w: Any, strides: Any, padding: Any, output_padding: Any = 0) -> Any:
    (sy, sx), x, w = pair(strides), wide_product(x), wide_product(w)
    kh, kw = w.shape[2:]
    (top, left), (bottom, right) = padding_of(padding, (kh, kw), (1, 1))
    more = pair(output_padding)
    h, v = (x.shape[2] - 1) * sy + kh, (x.shape[3] - 1) * sx + kw
    made = np.zeros((x.shape[0], w.shape[1], h + more[0], v + more[1]), x.dtype)
    for i, j in tuples(range(x.shape[2]), range(x.shape[3])):
        made[:, :, i * sy : i * sy + kh, j * sx : j * sx + kw] += np.tensordot(x[:, :, i, j], w, (1, 0))
    return made[:, :, top : made.shape[2] - bottom, left : made.shape[3] - right]


@operator(
    _transposed,
    sample((1, 3, 4, 5), (3, 2, 3, 3), 2, 1, output_padding=1),
    sample((2, 2, 3, 3), (2, 3, 2, 3), [1, 2], 0),
)
def conv2d_transpose_nchw(
    Input: Tensor, Filter: Tensor, strides: Any, padding: Any, out_dtype: str | None = None, output_padding: Any = 0
) -> Tensor:
    """What a convolution of NCHW by IOHW would be the gradient of: each element is spread over a window."""
    (n, channels, h, w), (own, out, kh, kw) = numbers(Input, "conv2d_transpose"), numbers(Filter, "conv2d_transpose")
    if channels != own:
        raise ExpressionError(f"topi.conv2d_transpose_nchw: {channels} channels do not go with a kernel of {own}")
    (sy, sx), more = pair(strides), pair(output_padding)
    (top, left), (bottom, right) = padding_of(padding, (kh, kw), (1, 1))
    oh = (h - 1) * sy + kh + more[0] - top - bottom
    ow = (w - 1) * sx + kw + more[1] - left - right
    rc, ry, rx = (te.reduce_axis((0, e), name=m) for e, m in ((channels, "rc"), (kh, "ry"), (kw, "rx")))
    kind, zero = sum_type(Input.dtype, out_dtype), number(0, Input.dtype)

    def element(b: Any, o: Any, y: Any, x: Any) -> Any:
        i, j = y + top - ry, x + left - rx
        tests = [i >= 0, i < h * sy, j >= 0, j < w * sx]
        tests += [i % sy == 0] if sy > 1 else []
        tests += [j % sx == 0] if sx > 1 else []
        own_value = te.if_then_else(te.all(*tests), Input[b, rc, i // sy, j // sx], zero)
        return te.sum(product(own_value, Filter[rc, o, ry, rx], kind), axis=[rc, ry, rx])

    total = te.compute([n, out, oh, ow], element, name="T_conv2d_transpose", tag="conv2d_transpose_nchw")
    return result(total, Input.dtype, out_dtype)


def conv2d(
    data: Tensor, kernel: Tensor, strides: Any = 1, padding: Any = 0, dilation: Any = 1, layout: str = "NCHW",
    out_dtype: str | None = None, groups: int = 1,
) -> Tensor:  # fmt: skip
    """A convolution by layout: NCHW by OIHW or NHWC by HWIO, both in groups, too."""
    if layout == "NCHW":
        return _conv(data, kernel, strides, padding, dilation, groups, out_dtype, "conv2d_nchw")
    if layout == "NHWC":
        return _conv_last(data, kernel, strides, padding, dilation, groups, out_dtype, "conv2d_nhwc")
    raise ExpressionError(f"topi.nn.conv2d has no layout '{layout}'", "NCHW, NHWC")


def conv1d(
    data: Tensor, kernel: Tensor, strides: Any = 1, padding: Any = "VALID", dilation: Any = 1, data_layout: str = "NCW",
    out_dtype: str | None = None,
) -> Tensor:  # fmt: skip
    """A convolution of one dimension: NCW by OIW, or NWC by WIO."""
    if data_layout not in ("NCW", "NWC"):
        raise ExpressionError(f"topi.nn.conv1d has no layout '{data_layout}': NCW, NWC")
    return (conv1d_ncw if data_layout == "NCW" else conv1d_nwc)(data, kernel, strides, padding, dilation, out_dtype)
