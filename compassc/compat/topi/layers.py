"""`tvm.topi.nn`: products of matrices, norms, pooling, rearrangements and losses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ... import te
from ...ir.errors import ExpressionError
from ...ir.exprs import Expr
from ...operators import broadcast, elementwise, movement, normalisation
from ...operators import linear as products
from ...operators.declare import axes_of, axis_of, check_shape, number, numbers, sizes
from ...te.tensor import Tensor
from .calls import Sizes, one, per_axis

__all__ = [
    "adaptive_pool", "adaptive_pool1d", "adaptive_pool3d", "batch_matmul", "batch_norm", "batch_to_space_nd", "bias_add", "dense",
    "dense_pack", "depth_to_space", "dilate", "dropout", "fast_softmax", "fifo_buffer", "flatten", "global_pool", "group_norm",
    "instance_norm", "layer_norm", "lrn", "matmul", "mirror_pad", "nll_loss", "pad", "pool1d", "pool2d", "pool3d", "pool_grad",
    "rms_norm", "scale_shift_nchw", "scale_shift_nchwc", "scale_shift_nhwc", "simulated_dequantize", "simulated_quantize",
    "space_to_batch_nd", "space_to_depth", "upsampling", "upsampling3d",
]  # fmt: skip


def _plain_layout(*rewritten: object) -> None:
    if any(rewritten):
        raise ExpressionError("layouts of weights are not rewritten", "leave auto_scheduler_rewritten_layout out")


# ------------------------------------------------------------------------------------------------------------- products


def _biased(made: Tensor, bias: Tensor | None) -> Tensor:
    return made if bias is None else broadcast.add(made, elementwise.cast(bias, str(made.dtype)))


def matmul(
    tensor_a: Tensor, tensor_b: Tensor, bias: Tensor | None = None, out_dtype: str | None = None, transpose_a: bool = False,
    transpose_b: bool = False, auto_scheduler_rewritten_layout: str = "", meta_schedule_original_shape: object = None,
) -> Tensor:  # fmt: skip
    """The product of two matrices, each transposed where it is said, plus a bias of its columns."""
    _plain_layout(auto_scheduler_rewritten_layout, meta_schedule_original_shape)
    return _biased(products.matmul(tensor_a, tensor_b, transpose_a, transpose_b, out_dtype), bias)


def dense(
    data: Tensor, weight: Tensor, bias: Tensor | None = None, out_dtype: str | None = None,
    auto_scheduler_rewritten_layout: str = "", meta_schedule_original_shape: object = None,
) -> Tensor:  # fmt: skip
    """data @ weight.T, plus a bias of its columns."""
    return matmul(
        data, weight, bias, out_dtype, False, True, auto_scheduler_rewritten_layout, meta_schedule_original_shape
    )


def dense_pack(data: Tensor, weight: Tensor, bias: Tensor | None = None, out_dtype: str | None = None) -> Tensor:
    """`dense` by weights whose outputs lie in blocks: (outputs / n, inputs, n)."""
    blocks, depth, n = numbers(weight, "dense_pack")
    rows, given = numbers(data, "dense_pack")
    if given != depth:
        raise ExpressionError(f"dense_pack: rows of {given} elements do not go with {depth} inputs")
    kind, k = products.sum_type(data.dtype, out_dtype), te.reduce_axis((0, depth), name="k")
    total: Tensor = te.compute(
        (rows, blocks * n),
        lambda i, j: te.sum(products.product(data[i, k], weight[j // n, k, j % n], kind), axis=k),
        name="T_dense_pack",
        tag="dense_pack",
    )
    return _biased(products.result(total, data.dtype, out_dtype), bias)


def batch_matmul(
    tensor_a: Tensor, tensor_b: Tensor, oshape: Sequence[int] | None = None, out_dtype: str | None = None, transpose_a: bool = False,
    transpose_b: bool = True, auto_scheduler_rewritten_layout: str = "", meta_schedule_original_shape: object = None,
) -> Tensor:  # fmt: skip
    """The products of two stacks of matrices. `oshape`: the shape of the result, where it is known."""
    _plain_layout(auto_scheduler_rewritten_layout, meta_schedule_original_shape)
    made = products.batch_matmul(tensor_a, tensor_b, transpose_a, transpose_b, out_dtype)
    if oshape is not None:
        check_shape("batch_matmul", [n if isinstance(n, int) else sizes(made)[d] for d, n in enumerate(oshape)], made)
    return made


def bias_add(data: Tensor, bias: Tensor, axis: int = 1) -> Tensor:
    """data plus a bias for each place of an axis."""
    return one("nn.bias_add", data, bias, axis=axis)


# ---------------------------------------------------------------------------------------------------------------- norms


def batch_norm(
    data: Tensor, gamma: Tensor, beta: Tensor, moving_mean: Tensor, moving_var: Tensor, axis: int | None = None,
    epsilon: float | None = None, center: bool | None = None, scale: bool | None = None, training: bool | None = None,
    momentum: float | None = None,
) -> list[Tensor]:  # fmt: skip
    """Elements less the mean of their channel over its deviation, times `gamma`, plus `beta`; the mean and the variance.
    `training`: these are the batch's own, and what is returned are the moving ones, which follow by `momentum`."""
    at = axis_of(1 if axis is None else axis, data.ndim, "batch_norm")
    others = [d for d in range(data.ndim) if d != at]
    wide = [1 if d in others else n for d, n in enumerate(numbers(data, "batch_norm"))]
    mean, variance = moving_mean, moving_var
    if training:
        mean = one("mean", data, axis=others)
        apart = broadcast.subtract(data, one("reshape", mean, wide))
        variance = one("mean", broadcast.multiply(apart, apart), axis=others)
    root = elementwise.sqrt(broadcast.add(one("reshape", variance, wide), 1e-5 if epsilon is None else epsilon))
    made = broadcast.divide(broadcast.subtract(data, one("reshape", mean, wide)), root)
    if scale is None or scale:
        made = broadcast.multiply(made, one("reshape", gamma, wide))
    if center is None or center:
        made = broadcast.add(made, one("reshape", beta, wide))
    if not training:
        return [made, elementwise.identity(moving_mean), elementwise.identity(moving_var)]
    kept = 0.1 if momentum is None else momentum

    def moved(old: Tensor, new: Tensor) -> Tensor:
        return broadcast.add(broadcast.multiply(old, 1 - kept), broadcast.multiply(new, kept))

    return [made, moved(moving_mean, mean), moved(moving_var, variance)]


def layer_norm(data: Tensor, gamma: Tensor, beta: Tensor | None, axis: Sizes, epsilon: float = 1e-5) -> Tensor:
    """Elements less their mean over their deviation on axes, times `gamma`, plus `beta` (None: none)."""
    return normalisation.layer_norm(data, gamma, _or_zeros(beta, gamma), axis, epsilon)


def _or_zeros(beta: Tensor | None, gamma: Tensor) -> Tensor:
    return elementwise.full_like(gamma, 0.0) if beta is None else beta


def instance_norm(data: Tensor, gamma: Tensor, beta: Tensor, axis: Sizes, epsilon: float = 1e-5) -> Tensor:
    """Elements less the mean over `axis` over the deviation, times `gamma`, plus `beta`: numbers of each channel, axis 1."""
    axes = axes_of(axis, data.ndim, "instance_norm")
    channels = [d for d in range(1, data.ndim) if d not in axes]
    if len(channels) != 1:
        raise ExpressionError(f"instance_norm over the axes {axes} leaves no axis of channels")
    return one("nn.instance_norm", data, gamma, beta, axis=channels[0], epsilon=epsilon)


def group_norm(
    data: Tensor,
    gamma: Tensor,
    beta: Tensor,
    num_groups: int,
    channel_axis: int,
    axes: Sequence[int],
    epsilon: float = 1e-5,
) -> Tensor:
    """Elements less the mean of their group of channels (and of `axes`) over its deviation, times `gamma`, plus `beta`."""
    own = numbers(data, "group_norm")
    at = axis_of(channel_axis, data.ndim, "group_norm")
    over = axes_of(axes, data.ndim, "group_norm")
    if own[at] % num_groups:
        raise ExpressionError(f"group_norm: {num_groups} groups do not divide {own[at]} channels")
    parts = [*own[:at], num_groups, own[at] // num_groups, *own[at + 1 :]]
    inner = [at + 1, *(d if d < at else d + 1 for d in over if d != at)]
    x = one("reshape", data, parts)
    mean = one("mean", x, axis=inner, keepdims=True)
    apart = broadcast.subtract(x, mean)
    spread = one("mean", broadcast.multiply(apart, apart), axis=inner, keepdims=True)
    normal = one("reshape", broadcast.divide(apart, elementwise.sqrt(broadcast.add(spread, epsilon))), own)
    wide = [n if d == at else 1 for d, n in enumerate(own)]
    return broadcast.add(broadcast.multiply(normal, one("reshape", gamma, wide)), one("reshape", beta, wide))


def rms_norm(data: Tensor, weight: Tensor, bias: Tensor | None, axis: Sizes, epsilon: float = 1e-5) -> Tensor:
    """Elements over the root of the mean of their squares on axes, times `weight`, plus `bias` (None: none)."""
    made = normalisation.rms_norm(data, weight, axis, epsilon)
    if bias is None:
        return made
    axes = axes_of(axis, data.ndim, "rms_norm")
    wide = [n if d in axes else 1 for d, n in enumerate(numbers(data, "rms_norm"))]
    return broadcast.add(made, one("reshape", bias, wide))


def lrn(data: Tensor, size: int, axis: int = 1, alpha: float = 0.0001, beta: float = 0.75, bias: float = 2) -> Tensor:
    """Elements over a power of the sum of squares of their neighbours on an axis."""
    return one("nn.lrn", data, size=size, axis=axis, alpha=alpha, beta=beta, bias=bias)


def fast_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """`softmax` by an approximation of the exponential."""
    return one("nn.fast_softmax", x, axis=axis)


def _scaled(data: Tensor, scale: Tensor, shift: Tensor, wide: list[int]) -> Tensor:
    factor, addend = (one("reshape", t, wide) for t in (scale, shift))
    return broadcast.add(broadcast.multiply(data, factor), addend)


def scale_shift_nchw(Input: Tensor, Scale: Tensor, Shift: Tensor) -> Tensor:
    """Each channel of NCHW times a number plus a number."""
    return _scaled(Input, Scale, Shift, [1, numbers(Scale, "scale_shift")[0], 1, 1])


def scale_shift_nhwc(Input: Tensor, Scale: Tensor, Shift: Tensor) -> Tensor:
    """Each channel of NHWC times a number plus a number."""
    return broadcast.add(broadcast.multiply(Input, Scale), Shift)


def scale_shift_nchwc(Input: Tensor, Scale: Tensor, Shift: Tensor) -> Tensor:
    """Each channel of NCHW[c]c times a number plus a number, of tables C by c."""
    outer, inner = numbers(Scale, "scale_shift")
    return _scaled(Input, Scale, Shift, [1, outer, 1, 1, inner])


# -------------------------------------------------------------------------------------------------------------- pooling


def _pooled(
    data: Tensor, kernel: Sizes, stride: Sizes, dilation: Sizes, padding: Sizes, pool_type: str, ceil_mode: bool, layout: str,
    count_include_pad: bool, rank: int,
) -> Tensor:  # fmt: skip
    options: dict[str, object] = {"count_include_pad": count_include_pad} if pool_type == "avg" else {}
    if pool_type not in ("max", "avg"):
        raise ExpressionError(f"there is no pooling '{pool_type}': max, avg")
    sides = per_axis(padding, rank)
    return one(
        f"nn.{pool_type}_pool{rank}d", data, pool_size=per_axis(kernel, rank), strides=per_axis(stride, rank),
        dilation=per_axis(dilation, rank), padding=sides, layout=layout, ceil_mode=ceil_mode, **options,
    )  # fmt: skip


def pool1d(
    data: Tensor, kernel: Sizes, stride: Sizes, dilation: Sizes, padding: Sizes, pool_type: str, ceil_mode: bool = False,
    layout: str = "NCW", count_include_pad: bool = True,
) -> Tensor:  # fmt: skip
    """The largest (`max`) or the mean (`avg`) of each window of rows."""
    return _pooled(data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad, 1)


def pool2d(
    data: Tensor, kernel: Sizes, stride: Sizes, dilation: Sizes, padding: Sizes, pool_type: str, ceil_mode: bool = False,
    layout: str = "NCHW", count_include_pad: bool = True,
) -> Tensor:  # fmt: skip
    """The largest (`max`) or the mean (`avg`) of each window of pictures."""
    return _pooled(data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad, 2)


def pool3d(
    data: Tensor, kernel: Sizes, stride: Sizes, dilation: Sizes, padding: Sizes, pool_type: str, ceil_mode: bool = False,
    layout: str = "NCDHW", count_include_pad: bool = True,
) -> Tensor:  # fmt: skip
    """The largest (`max`) or the mean (`avg`) of each window of volumes."""
    return _pooled(data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad, 3)


def adaptive_pool(data: Tensor, output_size: Sizes, pool_type: str, layout: str = "NCHW") -> Tensor:
    """Windows that share a picture out evenly, whatever its size."""
    return _adapted(data, output_size, pool_type, layout, 2)


def adaptive_pool1d(data: Tensor, output_size: Sizes, pool_type: str, layout: str = "NCW") -> Tensor:
    """Windows that share a row out evenly, whatever its size."""
    return _adapted(data, output_size, pool_type, layout, 1)


def adaptive_pool3d(data: Tensor, output_size: Sizes, pool_type: str, layout: str = "NCDHW") -> Tensor:
    """Windows that share a volume out evenly, whatever its size."""
    return _adapted(data, output_size, pool_type, layout, 3)


def _adapted(data: Tensor, output_size: Sizes, pool_type: str, layout: str, rank: int) -> Tensor:
    if pool_type not in ("max", "avg"):
        raise ExpressionError(f"there is no pooling '{pool_type}': max, avg")
    return one(f"nn.adaptive_{pool_type}_pool{rank}d", data, output_size=per_axis(output_size, rank), layout=layout)


def global_pool(data: Tensor, pool_type: str, layout: str = "NCHW") -> Tensor:
    """The largest or the mean of each channel."""
    return _adapted(data, 1, pool_type, layout, 2)


def pool_grad(
    grads: Tensor, data: Tensor, kernel: Sizes, stride: Sizes, padding: Sizes, pool_type: str, ceil_mode: bool = False,
    layout: str = "NCHW", count_include_pad: bool = True,
) -> Tensor:  # fmt: skip
    """The gradient of what was pooled by that of the result."""
    options: dict[str, object] = {"count_include_pad": count_include_pad} if pool_type == "avg" else {}
    return one(
        f"nn.{pool_type}_pool2d_grad", grads, data, pool_size=per_axis(kernel, 2), strides=per_axis(stride, 2), padding=per_axis(padding, 2),
        layout=layout, ceil_mode=ceil_mode, **options,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------------------ rearranged


def pad(
    data: Tensor, pad_before: Sequence[Expr | int], pad_after: Sequence[Expr | int] | None = None, pad_value: object = 0.0,
    name: str = "PadInput", attrs: object = None,
) -> Tensor:  # fmt: skip
    """A tensor with a value before and after its elements on each axis."""
    after = pad_before if pad_after is None else pad_after
    if not len(pad_before) == len(after) == data.ndim:
        raise ExpressionError(f"Input dimension and pad_before dismatch: {data.ndim} vs {len(pad_before)}")
    fill = te.cast(pad_value, data.dtype) if isinstance(pad_value, Expr) else number(pad_value, data.dtype)
    own = sizes(data)

    def element(*i: te.Var) -> Expr:
        tests = [
            test
            for v, n, b, a in zip(i, own, pad_before, after)
            for test in ([] if _zero(b) else [v >= b]) + ([] if _zero(a) else [v < n + b])
        ]
        value = data[tuple(v if _zero(b) else v - b for v, b in zip(i, pad_before))]
        return te.if_then_else(te.all(*tests), value, fill) if tests else value

    shape = [n if _zero(b) and _zero(a) else n + b + a for n, b, a in zip(own, pad_before, after)]
    made: Tensor = te.compute(shape, element, name=name, tag="injective,pad")
    return made


def _zero(n: Expr | int) -> bool:
    return isinstance(n, int) and n == 0 or getattr(n, "value", None) == 0


def mirror_pad(
    data: Tensor,
    pad_before: Sequence[int],
    pad_after: Sequence[int] | None = None,
    mode: str = "SYMMETRIC",
    name: str = "MirrorPadInput",
) -> Tensor:
    """A tensor with its own elements, mirrored, before and after them: `SYMMETRIC` with the outermost ones, `REFLECT`
    without."""
    after = pad_before if pad_after is None else pad_after
    return one("nn.mirror_pad", data, [[int(b), int(a)] for b, a in zip(pad_before, after, strict=True)], mode=mode)


def dilate(data: Tensor, strides: Sequence[int], dilation_value: float = 0.0, name: str = "DilatedInput") -> Tensor:
    """The elements apart from each other, with a value between them."""
    return one("nn.dilate", data, strides=[int(s) for s in strides], dilation_value=dilation_value)


def flatten(data: Tensor) -> Tensor:
    """All axes but the first as one."""
    return movement.flatten(data)


def depth_to_space(data: Tensor, block_size: int, layout: str = "NCHW", mode: str = "DCR") -> Tensor:
    """Channels as blocks of pixels."""
    order = "CRD" if mode == "CDR" else mode
    return one("nn.depth_to_space", data, block_size=block_size, layout=layout, mode=order)


def space_to_depth(data: Tensor, block_size: int, layout: str = "NCHW") -> Tensor:
    """Blocks of pixels as channels."""
    return one("nn.space_to_depth", data, block_size=block_size, layout=layout)


def space_to_batch_nd(
    data: Tensor,
    block_shape: Sequence[int],
    pad_before: Sequence[int],
    pad_after: Sequence[int],
    pad_value: float = 0.0,
) -> Tensor:
    """Blocks of the axes behind the first as batches, of what is padded before."""
    return one(
        "nn.space_to_batch_nd", data, block_shape=list(block_shape), paddings=[list(p) for p in zip(pad_before, pad_after, strict=True)],
        pad_value=pad_value,
    )  # fmt: skip


def batch_to_space_nd(
    data: Tensor, block_shape: Sequence[int], crop_begin_list: Sequence[int], crop_end_list: Sequence[int]
) -> Tensor:
    """Batches as blocks of the axes behind the first, of which ends are cut off."""
    crops = [list(c) for c in zip(crop_begin_list, crop_end_list, strict=True)]
    return one("nn.batch_to_space_nd", data, block_shape=list(block_shape), crops=crops)


def fifo_buffer(data: Tensor, buffer: Tensor, axis: int) -> Tensor:
    """The buffer with `data` behind its elements on an axis, as many as it had, from the end."""
    return one("nn.fifo_buffer", data, buffer, axis=axis)


def upsampling(
    data: Tensor, scale_h: float, scale_w: float, layout: str = "NCHW", method: str = "nearest_neighbor", align_corners: bool = False,
    output_shape: Sequence[int] | None = None,
) -> Tensor:  # fmt: skip
    """Pictures larger by factors, or of the size `output_shape`."""
    if output_shape is None:
        return one(
            "nn.upsampling",
            data,
            scale_h=float(scale_h),
            scale_w=float(scale_w),
            layout=layout,
            method=method,
            align_corners=align_corners,
        )
    mode = "align_corners" if align_corners else "asymmetric"
    return one(
        "image.resize2d",
        data,
        [int(n) for n in output_shape],
        layout=layout,
        method=method.replace("bi", ""),
        coordinate_transformation_mode=mode,
    )


def upsampling3d(
    data: Tensor, scale_d: float, scale_h: float, scale_w: float, layout: str = "NCDHW", method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "half_pixel", output_shape: Sequence[int] | None = None,
) -> Tensor:  # fmt: skip
    """Volumes larger by factors, or of a size."""
    if output_shape is not None:
        return one(
            "image.resize3d", data, [int(n) for n in output_shape], layout=layout, method=method.replace("tri", ""),
            coordinate_transformation_mode=coordinate_transformation_mode,
        )  # fmt: skip
    return one(
        "nn.upsampling3d", data, scale_d=float(scale_d), scale_h=float(scale_h), scale_w=float(scale_w), layout=layout, method=method,
        coordinate_transformation_mode=coordinate_transformation_mode,
    )  # fmt: skip


# --------------------------------------------------------------------------------------------------------------- others


def dropout(x: Tensor, rate: float = 0.0) -> Tensor:
    """The tensor itself: nothing is left out when a model is used."""
    return elementwise.identity(x)


def nll_loss(predictions: Tensor, targets: Tensor, weights: Tensor, reduction: str, ignore_index: int) -> Tensor:
    """The negative of the predictions at the targets, weighted; their mean, their sum, or each (`none`)."""
    return one("nn.nll_loss", predictions, targets, weights, reduction=reduction, ignore_index=ignore_index)


def simulated_quantize(
    data: Tensor,
    out_dtype: object,
    output_scale: Tensor | None = None,
    output_zero_point: Tensor | None = None,
    axis: int = -1,
) -> Tensor:
    """What quantisation to a type gives, as real numbers. `out_dtype`: the type's name, or a tensor of its number."""
    return _simulated("qnn.simulated_quantize", data, out_dtype, output_scale, output_zero_point, axis)


def simulated_dequantize(
    data: Tensor,
    in_dtype: object,
    input_scale: Tensor | None = None,
    input_zero_point: Tensor | None = None,
    axis: int = -1,
) -> Tensor:
    """What dequantisation from a type gives. `in_dtype`: the type's name, or a tensor of its number."""
    return _simulated("qnn.simulated_dequantize", data, in_dtype, input_scale, input_zero_point, axis)


def _simulated(
    name: str, data: Tensor, kind: object, scale: Tensor | None, zero_point: Tensor | None, axis: int
) -> Tensor:
    factor = np.asarray(1.0, "float32") if scale is None else scale
    offset = np.asarray(0, "int32") if zero_point is None else zero_point
    return one(name, data, factor, offset, axis, kind)
