"""`tvm.topi.testing`: what operators compute of arrays, by their references in Relay, or by NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from compass_core.arrays import Array

from .. import relay
from ..relay.backend.executors import create_executor
from ..relay.builders import build
from .topi_references import conv2d_transpose_nchw_python, depthwise_conv2d_python_nchw, pads_of

Sizes = int | Sequence[int]


def _several(name: str, *operands: object, **attributes: object) -> list[Array]:
    arrays = [np.asarray(o) if isinstance(o, np.ndarray) else o for o in operands]
    made = build(
        name, *(relay.const(a, str(a.dtype)) if isinstance(a, np.ndarray) else a for a in arrays), **attributes
    )
    found = create_executor("debug").evaluate(made)
    return [f.numpy() for f in (found if isinstance(found, (list, tuple)) else [found])]


def _one(name: str, *operands: object, **attributes: object) -> Array:
    return _several(name, *operands, **attributes)[0]


def _each(value: Sizes, count: int = 2) -> list[int]:
    return [int(value)] * count if isinstance(value, int) else [int(v) for v in value]


def _sides(padding: object, kernel: Sequence[int]) -> list[int]:
    pads = pads_of(padding, kernel)
    return [*(a for a, _ in pads), *(b for _, b in pads)]


# --------------------------------------------------------------------------------------------------------- convolutions


def depthwise_conv2d_python_nchwc(input_np: Array, filter_np: Array, stride: object, padding: object) -> Array:
    """A convolution of each channel of NCHW[c]c by windows OIHW1i[o]o."""
    n, outer, h, w, c = input_np.shape
    _, m, kh, kw, _, o = filter_np.shape
    plain = input_np.transpose(0, 1, 4, 2, 3).reshape(n, outer * c, h, w)
    windows = filter_np.transpose(0, 5, 4, 1, 2, 3).reshape(-1, m, kh, kw)
    made = depthwise_conv2d_python_nchw(plain, windows, stride, padding)
    return made.reshape(n, -1, o, *made.shape[2:]).transpose(0, 1, 3, 4, 2)


def conv2d_transpose_nhwc_python(
    a_np: Array, weight: Array, weight_format: str, stride: object, padding: object, output_padding: object = (0, 0)
) -> Array:
    """A transposed convolution of NHWC by weights in an order of the letters H, W, I, O: I the inputs."""
    weights = weight.transpose([weight_format.index(axis) for axis in "IOHW"])
    made = conv2d_transpose_nchw_python(a_np.transpose(0, 3, 1, 2), weights, stride, padding, output_padding)
    return made.transpose(0, 2, 3, 1)


def conv2d_backward_weight_python(
    dy_np: Array,
    x_np: Array,
    kernel_size: Sizes,
    stride: Sizes,
    padding: Sizes,
    layout: str = "NCHW",
    groups: int = 1,
    channels: object = None,
) -> Array:
    """The gradient of a convolution's weight, OIHW (of NHWC: HWIO)."""
    last = layout == "NHWC"
    dy, x = (v.transpose(0, 3, 1, 2) if last else v for v in (dy_np, x_np))
    made = _one(
        "nn.conv2d_backward_weight", dy, x, strides=_each(stride), padding=_sides(padding, _each(kernel_size)), groups=groups,
        kernel_size=_each(kernel_size),
    )  # fmt: skip
    return made.transpose(2, 3, 1, 0) if last else made


def _deformed(
    a: Array,
    offset: Array,
    w: Array,
    stride: Sizes,
    padding: object,
    dilation: Sizes,
    deformable_groups: int,
    groups: int,
    layouts: tuple[str, str],
) -> Array:
    window = [w.shape[layouts[1].index(axis)] for axis in "HW"]
    return _one(
        "nn.deformable_conv2d", a, offset, w, strides=_each(stride), padding=_sides(padding, window), dilation=_each(dilation),
        deformable_groups=deformable_groups, groups=groups, kernel_size=window, data_layout=layouts[0], kernel_layout=layouts[1],
    )  # fmt: skip


def deformable_conv2d_nchw_python(
    a_np: Array,
    offset_np: Array,
    w_np: Array,
    stride: Sizes,
    padding: object,
    dilation: Sizes,
    deformable_groups: int,
    groups: int,
) -> Array:
    """A convolution of NCHW by OIHW whose places are moved."""
    return _deformed(a_np, offset_np, w_np, stride, padding, dilation, deformable_groups, groups, ("NCHW", "OIHW"))


def deformable_conv2d_nhwc_python(
    a_np: Array,
    offset_np: Array,
    w_np: Array,
    stride: Sizes,
    padding: object,
    dilation: Sizes,
    deformable_groups: int,
    groups: int,
) -> Array:
    """A convolution of NHWC by HWIO whose places are moved."""
    return _deformed(a_np, offset_np, w_np, stride, padding, dilation, deformable_groups, groups, ("NHWC", "HWIO"))


def correlation_nchw_python(
    data1: Array,
    data2: Array,
    kernel_size: int,
    max_displacement: int,
    stride1: int,
    stride2: int,
    padding: Sizes,
    is_multiply: bool,
) -> Array:
    """How parts of two pictures go together, for each displacement."""
    return _one(
        "nn.correlation", data1, data2, kernel_size=kernel_size, max_displacement=max_displacement, stride1=stride1, stride2=stride2,
        padding=_sides(padding, [1, 1]), is_multiply=is_multiply, layout="NCHW",
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------------ norms and pooling


def batch_norm(
    x: Array, gamma: Array, beta: Array, moving_mean: Array, moving_var: Array, axis: int, epsilon: float, center: bool, scale: bool,
    training: bool, momentum: float,
) -> list[Array]:  # fmt: skip
    """What `topi.nn.batch_norm` gives."""
    others = tuple(d for d in range(x.ndim) if d != axis % x.ndim)
    wide = [1 if d in others else n for d, n in enumerate(x.shape)]
    mean, variance = (x.mean(others), x.var(others)) if training else (moving_mean, moving_var)
    made = (x - mean.reshape(wide)) / np.sqrt(variance.reshape(wide) + epsilon)
    made = made * gamma.reshape(wide) if scale else made
    made = made + beta.reshape(wide) if center else made
    if not training:
        return [made, moving_mean, moving_var]
    return [
        made,
        *(old * (1 - momentum) + new * momentum for old, new in ((moving_mean, mean), (moving_var, variance))),
    ]


def group_norm_python(
    data: Array,
    gamma: Array,
    beta: Array,
    num_groups: int,
    channel_axis: int,
    axes: Sequence[int],
    epsilon: float = 1e-5,
) -> Array:
    """Elements less the mean of their group of channels over its deviation, times `gamma`, plus `beta`."""
    at = channel_axis % data.ndim
    parts = data.reshape(*data.shape[:at], num_groups, -1, *data.shape[at + 1 :])
    over = (at + 1, *((a % data.ndim) + ((a % data.ndim) > at) for a in axes if a % data.ndim != at))
    mean, variance = parts.mean(over, keepdims=True), parts.var(over, keepdims=True)
    wide = [n if d == at else 1 for d, n in enumerate(data.shape)]
    made: Array = ((parts - mean) / np.sqrt(variance + epsilon)).reshape(data.shape) * gamma.reshape(
        wide
    ) + beta.reshape(wide)
    return made


def instance_norm_python(data: Array, gamma: Array, beta: Array, axis: Sequence[int], epsilon: float = 1e-5) -> Array:
    """Elements less the mean over `axis` over the deviation, times `gamma`, plus `beta`: numbers of channels, axis 1."""
    axes = tuple(a % data.ndim for a in axis)
    mean, variance = data.mean(axes, keepdims=True), data.var(axes, keepdims=True)
    wide = [n if d == 1 else 1 for d, n in enumerate(data.shape)]
    made: Array = (data - mean) / np.sqrt(variance + epsilon) * gamma.reshape(wide) + beta.reshape(wide)
    return made


def rms_norm_python(data: Array, weight: Array, bias: Array | None, axis: Sizes, epsilon: float = 1e-5) -> Array:
    """Elements over the root of the mean of their squares on axes, times `weight`, plus `bias`."""
    axes = tuple(a % data.ndim for a in ((axis,) if isinstance(axis, int) else axis))
    wide = [n if d in axes else 1 for d, n in enumerate(data.shape)]
    made = data / np.sqrt((data * data).mean(axes, keepdims=True) + epsilon) * weight.reshape(wide)
    found: Array = made if bias is None else made + bias.reshape(wide)
    return found


def pool_grad_nchw(
    a_np: Array, out_grad_np: Array, pool_size: Sizes, strides: Sizes, padding: Sizes, pool_type: str, ceil_mode: bool,
    count_include_pad: bool = True,
) -> Array:  # fmt: skip
    """The gradient of what was pooled by that of the result."""
    options: dict[str, object] = {"count_include_pad": count_include_pad} if pool_type == "avg" else {}
    return _one(
        f"nn.{pool_type}_pool2d_grad", out_grad_np, a_np, pool_size=_each(pool_size), strides=_each(strides), padding=_each(padding),
        ceil_mode=ceil_mode, **options,
    )  # fmt: skip


def nll_loss(
    predictions: Array, targets: Array, weights: Array, reduction: str = "mean", ignore_index: int = -100
) -> Array:
    """The negative of the predictions at the targets, weighted."""
    return _one("nn.nll_loss", predictions, targets, weights, reduction=reduction, ignore_index=ignore_index)


# ------------------------------------------------------------------------------------------------------ rearrangement


def batch_to_space_nd_python(
    data: Array, block_shape: Sequence[int], crop_begin_list: Sequence[int], crop_end_list: Sequence[int]
) -> Array:
    """Batches as blocks of the axes behind the first, of which ends are cut off."""
    crops = [list(c) for c in zip(crop_begin_list, crop_end_list)]
    return _one("nn.batch_to_space_nd", data, block_shape=list(block_shape), crops=crops)


def space_to_batch_nd_python(
    data: Array, block_shape: Sequence[int], pad_before: Sequence[int], pad_after: Sequence[int], pad_value: float = 0
) -> Array:
    """Blocks of the axes behind the first as batches, of what is padded before."""
    pads = [list(p) for p in zip(pad_before, pad_after)]
    return _one("nn.space_to_batch_nd", data, block_shape=list(block_shape), paddings=pads, pad_value=pad_value)


def pixel_shuffle_python(data: Array, upscale_factor: int) -> Array:
    """Channels of the last three axes (C, H, W) as blocks of pixels."""
    *lead, c, h, w = data.shape
    r = upscale_factor
    made = data.reshape(*lead, c // (r * r), r, r, h, w)
    n = len(lead)
    order = [*range(n), n, n + 3, n + 1, n + 4, n + 2]
    return made.transpose(order).reshape(*lead, c // (r * r), h * r, w * r)


def matrix_set_diag(data: Array, diagonal: Array, k: int | tuple[int, int] = 0, align: str = "RIGHT_LEFT") -> Array:
    """Matrices with other elements on some of their diagonals."""
    return _one("matrix_set_diag", data, diagonal, list(k) if isinstance(k, tuple) else k, align)


def slice_axis_python(data: Array, axis: int, begin: int, end: int | None = None) -> Array:
    """A part of an axis."""
    chosen = [slice(None)] * data.ndim
    chosen[axis] = slice(begin, end)
    return data[tuple(chosen)]


def reorg_python(a_np: Array, stride: int) -> Array:
    """Pixels as channels, in the order of YOLO."""
    return _one("vision.yolo_reorg", a_np, stride=stride)


def searchsorted_ref(sorted_sequence: Array, values: Array, right: bool, out_dtype: str) -> Array:
    """Where values belong in rows that are sorted."""
    side: Literal["left", "right"] = "right" if right else "left"
    if sorted_sequence.ndim == 1:
        return np.searchsorted(sorted_sequence, values, side).astype(out_dtype)
    rows = sorted_sequence.reshape(-1, sorted_sequence.shape[-1])
    found = [np.searchsorted(r, v, side) for r, v in zip(rows, values.reshape(len(rows), -1))]
    return np.stack(found).reshape(values.shape).astype(out_dtype)


# ------------------------------------------------------------------------------------------------------------- pictures


def _resized(rank: int, data: Array, scale: Sequence[float], layout: str, method: str, mode: str) -> Array:
    space = [layout.index(a) for a in "DHW"[3 - rank :]]
    size = [round(data.shape[d] * s) for d, s in zip(space, scale)]
    return _one(f"image.resize{rank}d", data, size, layout=layout, method=method, coordinate_transformation_mode=mode)


def resize1d_python(
    data: Array, scale: Sequence[float], layout: str = "NCW", method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "align_corners",
) -> Array:  # fmt: skip
    """Rows larger by factors."""
    return _resized(1, data, scale, layout, method, coordinate_transformation_mode)


def resize2d_python(
    data: Array, scale: Sequence[float], layout: str = "NCHW", method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "align_corners",
) -> Array:  # fmt: skip
    """Pictures larger by factors."""
    return _resized(2, data, scale, layout, method, coordinate_transformation_mode)


def resize3d_python(
    data: Array, scale: Sequence[float], layout: str = "NCDHW", method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "align_corners",
) -> Array:  # fmt: skip
    """Volumes larger by factors."""
    return _resized(3, data, scale, layout, method, coordinate_transformation_mode)


def crop_and_resize_python(
    image: Array, boxes: Array, box_indices: Array, crop_size: Sequence[int], layout: str, method: str = "bilinear",
    extrapolation_value: float = 0,
) -> Array:  # fmt: skip
    """Boxes of pictures in one size."""
    return _one(
        "image.crop_and_resize", image, boxes, box_indices, crop_size=list(crop_size), layout=layout, method=method,
        extrapolation_value=extrapolation_value,
    )  # fmt: skip


def affine_grid_python(data: Array, target_shape: Sequence[int]) -> Array:
    """The places that affine maps take the pixels of a picture of this size to."""
    return _one("image.affine_grid", data, target_shape=list(target_shape))


def grid_sample_python(
    data: Array,
    grid: Array,
    method: str = "bilinear",
    layout: str = "NCHW",
    padding_mode: str = "zeros",
    align_corners: bool = True,
) -> Array:
    """Pictures (or volumes) at places from -1 to 1."""
    return _one(
        "image.grid_sample",
        data,
        grid,
        method=method,
        layout=layout,
        padding_mode=padding_mode,
        align_corners=align_corners,
    )


def _aligned(a: Array, rois: Array, size: Sizes, scale: float, ratio: int, mode: object, layout: str) -> Array:
    kind = mode.decode() if isinstance(mode, bytes) else mode
    return _one(
        "vision.roi_align",
        a,
        rois,
        pooled_size=_each(size),
        spatial_scale=scale,
        sample_ratio=ratio,
        layout=layout,
        mode=kind,
    )


def roi_align_nchw_python(
    a_np: Array, rois_np: Array, pooled_size: Sizes, spatial_scale: float, sample_ratio: int, mode: object = b"avg"
) -> Array:
    """Regions of NCHW in one size, by samples between pixels."""
    return _aligned(a_np, rois_np, pooled_size, spatial_scale, sample_ratio, mode, "NCHW")


def roi_align_nhwc_python(
    a_np: Array, rois_np: Array, pooled_size: Sizes, spatial_scale: float, sample_ratio: int, mode: object = b"avg"
) -> Array:
    """Regions of NHWC in one size, by samples between pixels."""
    return _aligned(a_np, rois_np, pooled_size, spatial_scale, sample_ratio, mode, "NHWC")


def roi_pool_nchw_python(a_np: Array, rois_np: Array, pooled_size: Sizes, spatial_scale: float) -> Array:
    """The largest elements of parts of regions of NCHW."""
    return _one("vision.roi_pool", a_np, rois_np, pooled_size=_each(pooled_size), spatial_scale=spatial_scale)


# ------------------------------------------------------------------------------------------------------------ recurrent


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "sigmoid": _sigmoid,
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
}


def lstm_python(
    Xs: Array, Wi: Array, Wh: Array, Bi: Array | None = None, Bh: Array | None = None, h_init: Array | None = None, c_init: Array | None = None,
    proj: Array | None = None, p_i: Array | None = None, p_f: Array | None = None, p_o: Array | None = None, f_act: str = "sigmoid",
    g_act: str = "tanh", h_act: str = "tanh", reverse: bool = False, weight_layout: str = "IFGO",
) -> tuple[Array, Array]:  # fmt: skip
    """The hidden and the cell states after each step of a layer of long short-term memory."""
    steps, batch, cells = Xs.shape[0], Xs.shape[1], Wh.shape[0] // 4
    forget, made, shown = (ACTIVATIONS[name] for name in (f_act, g_act, h_act))
    h = np.zeros((batch, Wh.shape[1]), Xs.dtype) if h_init is None else h_init
    c = np.zeros((batch, cells), Xs.dtype) if c_init is None else c_init
    hidden, states = [], []
    for t in reversed(range(steps)) if reverse else range(steps):
        gates = Xs[t] @ Wi.T + h @ Wh.T
        for bias in (Bi, Bh):
            gates = gates if bias is None else gates + bias
        g = {name: gates[:, n * cells : (n + 1) * cells] for n, name in enumerate(weight_layout)}
        take = forget(g["I"] if p_i is None else g["I"] + p_i * c)
        keep = forget(g["F"] if p_f is None else g["F"] + p_f * c)
        c = keep * c + take * made(g["G"])
        h = forget(g["O"] if p_o is None else g["O"] + p_o * c) * shown(c)
        h = h if proj is None else h @ proj.T
        hidden.append(h)
        states.append(c)
    return np.stack(hidden), np.stack(states)
