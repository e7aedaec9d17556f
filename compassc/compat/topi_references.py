"""What operators of `topi` compute, by NumPy, under the names of `tvm.topi.testing`: arrays in, arrays out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from compass_core.arrays import Array


def _each(value: Any, count: int) -> tuple[int, ...]:
    return (value,) * count if isinstance(value, int) else tuple(value)


def pads_of(
    padding: object, kernel: Sequence[int], stride: Sequence[int] = (), size: Sequence[int] = ()
) -> list[tuple[int, int]]:
    """The elements before and after each dimension: of a number, of one for each or both sides, of `VALID` and `SAME`."""
    count = len(kernel)
    if isinstance(padding, str):
        total = [0 if padding == "VALID" else k - 1 for k in kernel]
        return [((t + 1) // 2, t // 2) for t in total]
    given = _each(padding, count)
    if len(given) == count:
        return [(p, p) for p in given]
    return list(zip(given[:count], given[count:]))


def _convolved(data: Array, weight: Array, stride: object, padding: object, dilation: object, groups: int) -> Array:
    """A convolution of any number of dimensions: data `(batch, channels, ...)`, weights `(outputs, channels of a group, ...)`."""
    rank = data.ndim - 2
    steps, wide = _each(stride, rank), _each(dilation, rank)
    kernel = [(k - 1) * d + 1 for k, d in zip(weight.shape[2:], wide)]
    padded = np.pad(data, [(0, 0), (0, 0), *pads_of(padding, kernel)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, kernel, axis=tuple(range(2, data.ndim)))
    chosen = (slice(None), slice(None), *(slice(None, None, s) for s in steps), *(slice(None, None, d) for d in wide))
    windows = windows[chosen]
    inner = tuple(range(windows.ndim - rank, windows.ndim))
    parts = []
    for w, x in zip(np.split(weight, groups), np.split(windows, groups, axis=1)):
        product = np.tensordot(x, w, axes=((1, *inner), (1, *range(2, w.ndim))))
        parts.append(np.moveaxis(product, -1, 1))
    return np.concatenate(parts, axis=1)


def _transposed(
    data: Array, weight: Array, stride: object, padding: object, output_padding: object, groups: int = 1
) -> Array:
    """A transposed convolution: weights `(channels, outputs of a group, ...)`."""
    rank = data.ndim - 2
    more = _each(output_padding, rank)
    dilated = dilate_python(data, (1, 1, *_each(stride, rank)))
    kernel = weight.shape[2:]
    sides = [(k - 1 - a, k - 1 - b + m) for k, (a, b), m in zip(kernel, pads_of(padding, kernel), more)]
    turned = np.flip(weight, axis=tuple(range(2, weight.ndim)))
    parts = [np.swapaxes(w, 0, 1) for w in np.split(turned, groups)]
    padded = np.pad(dilated, [(0, 0), (0, 0), *sides])
    return _convolved(padded, np.concatenate(parts), 1, 0, 1, groups)


def _channels_last(data: Array) -> Array:
    return np.moveaxis(data, 1, -1)


def _channels_first(data: Array) -> Array:
    return np.moveaxis(data, -1, 1)


def conv1d_ncw_python(a_np: Array, w_np: Array, stride: object, padding: object, dilation: object) -> Array:
    """A convolution of rows."""
    return _convolved(a_np, w_np, stride, padding, dilation, 1)


def group_conv1d_ncw_python(
    a_np: Array, w_np: Array, stride: object, padding: object, dilation: object, groups: int
) -> Array:
    """A convolution of rows in groups of channels."""
    return _convolved(a_np, w_np, stride, padding, dilation, groups)


def conv2d_nchw_python(a_np: Array, w_np: Array, stride: object, padding: object, groups: int = 1) -> Array:
    """A convolution of images with channels first."""
    return _convolved(a_np, w_np, stride, padding, 1, groups)


def conv2d_nhwc_python(a_np: Array, w_np: Array, stride: object, padding: object, groups: int = 1) -> Array:
    """A convolution of images with channels last; weights `(h, w, channels, outputs)`."""
    made = _convolved(_channels_first(a_np), w_np.transpose(3, 2, 0, 1), stride, padding, 1, groups)
    return _channels_last(made)


def conv2d_hwcn_python(a_np: Array, w_np: Array, stride: object, padding: object) -> Array:
    """A convolution of images `(h, w, channels, batch)`."""
    made = _convolved(a_np.transpose(3, 2, 0, 1), w_np.transpose(3, 2, 0, 1), stride, padding, 1, 1)
    return made.transpose(2, 3, 1, 0)


def conv3d_ncdhw_python(a_np: Array, w_np: Array, stride: object, padding: object, groups: int = 1) -> Array:
    """A convolution of volumes with channels first."""
    return _convolved(a_np, w_np, stride, padding, 1, groups)


def conv3d_ndhwc_python(a_np: Array, w_np: Array, stride: object, padding: object, groups: int = 1) -> Array:
    """A convolution of volumes with channels last."""
    made = _convolved(_channels_first(a_np), w_np.transpose(4, 3, 0, 1, 2), stride, padding, 1, groups)
    return _channels_last(made)


def conv1d_transpose_ncw_python(
    a_np: Array, w_np: Array, stride: object, padding: object, output_padding: object
) -> Array:
    """A transposed convolution of rows."""
    return _transposed(a_np, w_np, stride, padding, output_padding)


def conv2d_transpose_nchw_python(
    a_np: Array, w_np: Array, stride: object, padding: object, output_padding: object, groups: int = 1
) -> Array:
    """A transposed convolution of images."""
    return _transposed(a_np, w_np, stride, padding, output_padding, groups)


def conv3d_transpose_ncdhw_python(
    a_np: Array, w_np: Array, stride: object, padding: object, output_padding: object
) -> Array:
    """A transposed convolution of volumes."""
    return _transposed(a_np, w_np, stride, padding, output_padding)


def depthwise_conv2d_python_nchw(input_np: Array, filter_np: Array, stride: object, padding: object) -> Array:
    """A convolution of each channel by itself; weights `(channels, multiplier, h, w)`."""
    channels, multiplier, *kernel = filter_np.shape
    return _convolved(input_np, filter_np.reshape(channels * multiplier, 1, *kernel), stride, padding, 1, channels)


def depthwise_conv2d_python_nhwc(input_np: Array, filter_np: Array, stride: object, padding: object) -> Array:
    """The same with channels last; weights `(h, w, channels, multiplier)`."""
    made = depthwise_conv2d_python_nchw(_channels_first(input_np), filter_np.transpose(2, 3, 0, 1), stride, padding)
    return _channels_last(made)


def dilate_python(
    input_np: Array, strides: Sequence[int], dilation_value: float = 0.0, out_dtype: DTypeLike | None = None
) -> Array:
    """The elements apart from each other, with a value between them."""
    shape = [(n - 1) * s + 1 if n else 0 for n, s in zip(input_np.shape, strides, strict=True)]
    made = np.full(shape, dilation_value, out_dtype or input_np.dtype)
    made[tuple(slice(None, None, s) for s in strides)] = input_np
    return made


def dense(
    x: Array,
    y: Array,
    bias: Array | None = None,
    use_bias: bool = False,
    use_relu: bool = False,
    out_dtype: DTypeLike | None = None,
) -> Array:
    """A product with weights `(outputs, inputs)`, with a bias and no negative results where that is said."""
    kind = out_dtype or x.dtype
    made = np.dot(x.astype(kind), y.T.astype(kind))
    if use_bias:
        assert bias is not None, "use_bias asks for a bias"
        made = made + bias
    found: Array = np.maximum(made, 0) if use_relu else made
    return found


def batch_matmul(
    x: Array, y: Array, out_dtype: DTypeLike | None = None, trans_x: bool = False, trans_y: bool = True
) -> Array:
    """Products of stacks of matrices, each transposed where it is said."""
    kind = out_dtype or x.dtype
    a, b = (np.swapaxes(v, 1, 2) if t else v for v, t in ((x, trans_x), (y, trans_y)))
    made: Array = np.matmul(a.astype(kind), b.astype(kind))
    return made


def softmax_python(a_np: Array, axis: int = 1) -> Array:
    """Exponentials that add up to 1."""
    e = np.exp(a_np - a_np.max(axis=axis, keepdims=True))
    made: Array = e / e.sum(axis=axis, keepdims=True)
    return made


def log_softmax_python(a_np: Array, axis: int = 1) -> Array:
    """The logarithm of `softmax_python`."""
    shifted = a_np - a_np.max(axis=axis, keepdims=True)
    made: Array = shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))
    return made


def l2_normalize_python(a_np: Array, eps: float, axis: int | Sequence[int] | None = None) -> Array:
    """Elements over the root of the sum of their squares."""
    axes = tuple(axis) if isinstance(axis, Sequence) else axis
    made: Array = a_np / np.sqrt(np.maximum((a_np * a_np).sum(axis=axes, keepdims=True), eps))
    return made


def layer_norm_python(
    data: Array, gamma: Array, beta: Array | None, axis: int | Sequence[int], epsilon: float = 1e-5
) -> Array:
    """Elements less their mean over their deviation along some axes."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    mean, variance = data.mean(axes, keepdims=True), data.var(axes, keepdims=True)
    shape = [n if i in {a % data.ndim for a in axes} else 1 for i, n in enumerate(data.shape)]
    made = (data - mean) / np.sqrt(variance + epsilon) * gamma.reshape(shape)
    found: Array = made if beta is None else made + beta.reshape(shape)
    return found


def lrn_python(a_np: Array, size: int, axis: int, bias: float, alpha: float, beta: float) -> Array:
    """Elements over a power of the sum of squares of their neighbours along an axis."""
    squares = np.moveaxis(a_np * a_np, axis, -1)
    padded = np.pad(squares, [(0, 0)] * (a_np.ndim - 1) + [(size // 2, size - 1 - size // 2)])
    sums = np.lib.stride_tricks.sliding_window_view(padded, size, axis=-1).sum(-1)
    made: Array = a_np / (bias + alpha * np.moveaxis(sums, -1, axis) / size) ** beta
    return made


def strided_slice_python(
    data: Array, begin: Sequence[int], end: Sequence[int], strides: Sequence[int] | None, slice_mode: str = "end",
    axes: Sequence[int] | None = None,
) -> Array:  # fmt: skip
    """A part of an array; in the mode `size` ends are numbers of elements, -1 for all that follow."""
    places = list(axes) if axes is not None else list(range(len(begin)))
    steps = list(strides) if strides else []
    chosen = [slice(None)] * data.ndim
    for i, axis in enumerate(places):
        step = steps[i] if i < len(steps) and slice_mode == "end" else 1
        stop = end[i] if i < len(end) else None
        if slice_mode == "size":
            stop = None if stop in (-1, None) else begin[i] + stop
        chosen[axis] = slice(begin[i], stop, step)
    return data[tuple(chosen)]


def strided_set_python(
    data: Array, v: Array, begin: Sequence[int], end: Sequence[int], strides: Sequence[int] | None
) -> Array:
    """An array with a part of it replaced."""
    made = data.copy()
    steps = list(strides or []) + [1] * (len(begin) - len(strides or []))
    made[tuple(slice(b, e, s) for b, e, s in zip(begin, end, steps))] = v
    return made


def gather_python(data: Array, axis: int, indices: Array) -> Array:
    """Elements by their places along an axis."""
    return np.take_along_axis(data, indices, axis)


def gather_nd_python(a_np: Array, indices_np: Array) -> Array:
    """Parts by their leading indices, which are along the first axis of `indices_np`."""
    made: Array = a_np[tuple(indices_np.astype("int64"))]
    return made


def depth_to_space_python(data: Array, block_size: int, mode: str = "DCR") -> Array:
    """Channels as blocks of pixels."""
    n, c, h, w = data.shape
    b = block_size
    if mode == "DCR":
        made = data.reshape(n, b, b, c // (b * b), h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        made = data.reshape(n, c // (b * b), b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    return made.reshape(n, c // (b * b), h * b, w * b)


def space_to_depth_python(data: Array, block_size: int) -> Array:
    """Blocks of pixels as channels."""
    n, c, h, w = data.shape
    b = block_size
    made = data.reshape(n, c, h // b, b, w // b, b).transpose(0, 3, 5, 1, 2, 4)
    return made.reshape(n, c * b * b, h // b, w // b)


def one_hot(indices: Array, on_value: float, off_value: float, depth: int, axis: int, dtype: DTypeLike) -> Array:
    """A new axis on which one element is `on_value`."""
    made = np.where(indices[..., None] == np.arange(depth), on_value, off_value).astype(dtype)
    return made if axis == -1 else np.moveaxis(made, -1, axis)


def sequence_mask(data: Array, valid_length: Array, mask_value: float, axis: int) -> Array:
    """Sequences of which what is behind their lengths is a value; `axis` counts their elements, the other one of two them."""
    count = np.arange(data.shape[axis])
    short = count[:, None] >= valid_length[None] if axis == 0 else count[None] >= valid_length[:, None]
    return np.where(short.reshape(*short.shape, *(1,) * (data.ndim - 2)), mask_value, data).astype(data.dtype)


def poolnd_python(
    np_data: Array, kernel: Sequence[int], strides: Sequence[int], dilation: Sequence[int], padding_before: Sequence[int],
    padding_after: Sequence[int], pool_type: str, count_include_pad: bool = True, ceil_mode: bool = False,
    dtype: DTypeLike = "float32", layout: str | None = None,
) -> Array:  # fmt: skip
    """Maxima or means of windows in the dimensions behind the first two (`layout` with the channels last: before them)."""
    last = layout is not None and str(layout).endswith("C")
    data = _channels_first(np_data) if last else np_data
    rank = len(kernel)
    size = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
    sides = []
    for n, k, s, before, after in zip(data.shape[2:], size, strides, padding_before, padding_after):
        more = (-(n + before + after - k)) % s if ceil_mode else 0
        sides.append((before, after + more))
    fill = 0 if pool_type == "avg" else np.finfo(data.dtype).min if data.dtype.kind == "f" else np.iinfo(data.dtype).min
    axes = tuple(range(2, 2 + rank))
    chosen: tuple[Any, ...] = (..., *(slice(None, None, s) for s in strides), *(slice(None, None, d) for d in dilation))

    def windows(values: Array, value: float) -> Array:
        padded = np.pad(values, [(0, 0), (0, 0), *sides], constant_values=value)
        made: Array = np.lib.stride_tricks.sliding_window_view(padded, size, axis=axes)[chosen]
        return made

    inner = tuple(range(-rank, 0))
    if pool_type == "max":
        made = windows(data, fill).max(inner)
    else:
        ones = np.ones(data.shape)
        if count_include_pad:
            ones = np.pad(ones, [(0, 0), (0, 0), *zip(padding_before, padding_after)], constant_values=1)
            grown = [(0, s[1] - a) for s, a in zip(sides, padding_after)]
            padded = np.pad(ones, [(0, 0), (0, 0), *grown])
            count = np.lib.stride_tricks.sliding_window_view(padded, size, axis=axes)[chosen].sum(inner)
        else:
            count = windows(ones, 0).sum(inner)
        made = windows(data, 0).sum(inner) / np.maximum(count, 1)
    made = made.astype(dtype)
    return _channels_last(made) if last else made


def adaptive_pool(np_data: Array, out_size: object, pool_type: str, layout: str) -> Array:
    """Maxima or means of parts of as equal size as can be."""
    last = layout.endswith("C")
    data = _channels_first(np_data) if last else np_data
    sizes = _each(out_size, data.ndim - 2)
    reduce_of: Callable[..., Array] = np.max if pool_type == "max" else np.mean
    made = np.empty((*data.shape[:2], *sizes), data.dtype)
    for place in np.ndindex(*sizes):
        parts = [slice(p * n // o, -(-(p + 1) * n // o)) for p, n, o in zip(place, data.shape[2:], sizes)]
        here: tuple[Any, ...] = (..., *parts)
        made[(..., *place)] = reduce_of(data[here], axis=tuple(range(2, data.ndim)))
    return _channels_last(made) if last else made
