"""`tvm.topi.nn`: convolutions by layout, in groups, transposed, packed, deformed, and their gradients."""

from __future__ import annotations

from collections.abc import Sequence

from ... import te
from ...ir.errors import ExpressionError
from ...operators.convolution import padding_of
from ...operators.declare import numbers
from ...te.tensor import Tensor
from .calls import Pads, Sizes, one, per_axis

__all__ = [
    "conv", "conv1d", "conv1d_ncw", "conv1d_nwc", "conv1d_transpose_ncw", "conv2d", "conv2d_NCHWc", "conv2d_NCHWc_int8",
    "conv2d_hwcn", "conv2d_nchw", "conv2d_nhwc", "conv2d_transpose_nchw", "conv2d_winograd_nchw", "conv2d_winograd_nhwc", "conv3d_ncdhw",
    "conv3d_ndhwc", "conv3d_transpose_ncdhw", "correlation_nchw", "deformable_conv2d_nchw", "deformable_conv2d_nhwc",
    "depthwise_conv2d_NCHWc", "depthwise_conv2d_backward_input_nhwc", "depthwise_conv2d_backward_weight_nhwc", "depthwise_conv2d_nchw",
    "depthwise_conv2d_nhwc", "group_conv1d_ncw", "group_conv1d_nwc", "group_conv2d_nchw", "group_conv2d_nhwc",
    "group_conv2d_transpose_nchw",
]  # fmt: skip
_AXES = {1: "W", 2: "HW", 3: "DHW"}


def _convolved(
    data: Tensor, kernel: Tensor, stride: Sizes, padding: Pads, dilation: Sizes, groups: int, data_layout: str,
    kernel_layout: str, out_dtype: str | None,
) -> Tensor:  # fmt: skip
    axes = [a for a in data_layout if a in "DHW"]
    window = [numbers(kernel, "conv")[kernel_layout.index(a)] for a in axes]
    wide = per_axis(dilation, len(axes))
    before, after = padding_of(padding, window, wide)
    return one(
        f"nn.conv{len(axes)}d", data, kernel, strides=per_axis(stride, len(axes)), padding=[*before, *after], dilation=wide,
        groups=groups, channels=None, kernel_size=window, data_layout=data_layout, kernel_layout=kernel_layout,
        out_dtype=_out(data, out_dtype),
    )  # fmt: skip


def _out(data: Tensor, out_dtype: str | None) -> str:
    return out_dtype or ("" if data.dtype.is_floating else "int32")


def conv(
    inp: Tensor, filt: Tensor, stride: Sizes, padding: Pads, dilation: Sizes, groups: int, data_layout: str,
    kernel_layout: str = "", out_dtype: str | None = None, auto_scheduler_rewritten_layout: str | None = None,
    meta_schedule_original_shape: object = None, auto_scheduler_should_rewrite_layout: bool = False,
) -> Tensor:  # fmt: skip
    """A convolution of one, two or three dimensions. `kernel_layout`: by default OI... for channels first, ...IO for channels
    last, ...OI for what is in two dimensions in as many groups as channels. Rewritten layouts are refused."""
    if auto_scheduler_rewritten_layout or meta_schedule_original_shape:
        raise ExpressionError("layouts of weights are not rewritten", "leave auto_scheduler_rewritten_layout out")
    axes = "".join(a for a in data_layout if a in "DHW")
    orders = {f"NC{axes}": f"OI{axes}", f"N{axes}C": f"{axes}IO", f"{axes}CN": f"{axes}IO"}
    if data_layout not in orders:
        raise ExpressionError(f"conv has no layout '{data_layout}'", ", ".join(orders))
    return _convolved(
        inp, filt, stride, padding, dilation, groups, data_layout, kernel_layout or orders[data_layout], out_dtype
    )


def conv1d(
    data: Tensor, kernel: Tensor, strides: Sizes = 1, padding: Pads = "VALID", dilation: Sizes = 1, data_layout: str = "NCW",
    kernel_layout: str = "", out_dtype: str | None = None,
) -> Tensor:  # fmt: skip
    """A convolution of rows by layout."""
    return conv(data, kernel, strides, padding, dilation, 1, data_layout, kernel_layout, out_dtype)


def conv2d(
    input: Tensor, filter: Tensor, strides: Sizes, padding: Pads, dilation: Sizes, data_layout: str = "NCHW",
    kernel_layout: str = "", out_dtype: str | None = None,
) -> Tensor:  # fmt: skip
    """A convolution of pictures by layout: NCHW, NHWC, HWCN."""
    return conv(input, filter, strides, padding, dilation, 1, data_layout, kernel_layout, out_dtype)


def group_conv1d_ncw(
    data: Tensor, kernel: Tensor, strides: Sizes = 1, padding: Pads = "VALID", dilation: Sizes = 1, groups: int = 1,
    out_dtype: str | None = None,
) -> Tensor:  # fmt: skip
    """A convolution of NCW by OIW, I the channels of a group."""
    return conv(data, kernel, strides, padding, dilation, groups, "NCW", "", out_dtype)


def group_conv1d_nwc(
    data: Tensor, kernel: Tensor, strides: Sizes = 1, padding: Pads = "VALID", dilation: Sizes = 1, groups: int = 1,
    out_dtype: str | None = None,
) -> Tensor:  # fmt: skip
    """A convolution of NWC by WIO, I the channels of a group."""
    return conv(data, kernel, strides, padding, dilation, groups, "NWC", "", out_dtype)


def conv1d_ncw(
    data: Tensor, kernel: Tensor, strides: Sizes = 1, padding: Pads = "VALID", dilation: Sizes = 1,
    out_dtype: str | None = None,
) -> Tensor:  # fmt: skip
    """A convolution of NCW by OIW."""
    return conv(data, kernel, strides, padding, dilation, 1, "NCW", "", out_dtype)


def conv1d_nwc(
    data: Tensor, kernel: Tensor, strides: Sizes = 1, padding: Pads = "VALID", dilation: Sizes = 1,
    out_dtype: str | None = None,
) -> Tensor:  # fmt: skip
    """A convolution of NWC by WIO."""
    return conv(data, kernel, strides, padding, dilation, 1, "NWC", "", out_dtype)


def conv2d_nchw(
    Input: Tensor, Filter: Tensor, stride: Sizes, padding: Pads, dilation: Sizes, out_dtype: str | None = None
) -> Tensor:
    """A convolution of NCHW by OIHW."""
    return conv(Input, Filter, stride, padding, dilation, 1, "NCHW", "", out_dtype)


def conv2d_hwcn(
    Input: Tensor, Filter: Tensor, stride: Sizes, padding: Pads, dilation: Sizes, out_dtype: str | None = None
) -> Tensor:
    """A convolution of HWCN by HWIO."""
    return conv(Input, Filter, stride, padding, dilation, 1, "HWCN", "", out_dtype)


def conv2d_nhwc(
    Input: Tensor, Filter: Tensor, stride: Sizes, padding: Pads, dilation: Sizes, out_dtype: str | None = "float32",
    auto_scheduler_rewritten_layout: str = "", meta_schedule_original_shape: object = None,
) -> Tensor:  # fmt: skip
    """A convolution of NHWC by HWIO."""
    return conv(
        Input, Filter, stride, padding, dilation, 1, "NHWC", "", out_dtype, auto_scheduler_rewritten_layout, meta_schedule_original_shape
    )  # fmt: skip


def group_conv2d_nchw(
    Input: Tensor,
    Filter: Tensor,
    stride: Sizes,
    padding: Pads,
    dilation: Sizes,
    groups: int,
    out_dtype: str | None = None,
) -> Tensor:
    """A convolution of NCHW by OIHW, I the channels of a group."""
    return conv(Input, Filter, stride, padding, dilation, groups, "NCHW", "", out_dtype)


def group_conv2d_nhwc(
    Input: Tensor,
    Filter: Tensor,
    stride: Sizes,
    padding: Pads,
    dilation: Sizes,
    groups: int,
    out_dtype: str | None = None,
) -> Tensor:
    """A convolution of NHWC by HWIO, I the channels of a group."""
    return conv(Input, Filter, stride, padding, dilation, groups, "NHWC", "", out_dtype)


def conv3d_ncdhw(
    Input: Tensor,
    Filter: Tensor,
    stride: Sizes,
    padding: Pads,
    dilation: Sizes,
    groups: int,
    out_dtype: str | None = None,
) -> Tensor:
    """A convolution of NCDHW by OIDHW."""
    return conv(Input, Filter, stride, padding, dilation, groups, "NCDHW", "", out_dtype)


def conv3d_ndhwc(
    Input: Tensor, Filter: Tensor, stride: Sizes, padding: Pads, dilation: Sizes, groups: int,
    out_dtype: str | None = "float32", auto_scheduler_rewritten_layout: str = "", meta_schedule_original_shape: object = None,
) -> Tensor:  # fmt: skip
    """A convolution of NDHWC by DHWIO."""
    return conv(
        Input, Filter, stride, padding, dilation, groups, "NDHWC", "", out_dtype, auto_scheduler_rewritten_layout, meta_schedule_original_shape
    )  # fmt: skip


def conv2d_winograd_nchw(
    data: Tensor,
    weight: Tensor,
    strides: Sizes,
    padding: Pads,
    dilation: Sizes,
    out_dtype: str | None,
    pre_computed: bool = False,
) -> Tensor:
    """What Winograd's algorithm computes, by sums of products. Weights that were transformed before are refused."""
    _plain_weights(pre_computed)
    return conv2d_nchw(data, weight, strides, padding, dilation, out_dtype)


def conv2d_winograd_nhwc(
    data: Tensor, weight: Tensor, strides: Sizes, padding: Pads, dilation: Sizes, out_dtype: str | None, pre_computed: bool = False,
    auto_scheduler_rewritten_layout: str = "", meta_schedule_original_shape: object = None,
) -> Tensor:  # fmt: skip
    """What Winograd's algorithm computes, by sums of products. Weights that were transformed before are refused."""
    _plain_weights(pre_computed)
    return conv2d_nhwc(
        data,
        weight,
        strides,
        padding,
        dilation,
        out_dtype,
        auto_scheduler_rewritten_layout,
        meta_schedule_original_shape,
    )


def _plain_weights(pre_computed: bool) -> None:
    if pre_computed:
        raise ExpressionError("convolutions take weights as they are", "leave pre_computed out, and give the kernel")


def _packed(
    kind: str, data: Tensor, kernel: Tensor, stride: Sizes, padding: Pads, dilation: Sizes, layout: str, out_layout: str,
    out_dtype: str | None, kernel_layout: str, groups: int,
) -> Tensor:  # fmt: skip
    window, wide = numbers(kernel, kind)[2:4], per_axis(dilation, 2)
    before, after = padding_of(padding, window, wide)
    return one(
        kind, data, kernel, strides=per_axis(stride, 2), padding=[*before, *after], dilation=wide, groups=groups,
        kernel_size=window, data_layout=layout, kernel_layout=kernel_layout, out_layout=out_layout, out_dtype=_out(data, out_dtype),
    )  # fmt: skip


def conv2d_NCHWc(
    data: Tensor, kernel: Tensor, stride: Sizes, padding: Pads, dilation: Sizes, layout: str, out_layout: str,
    out_dtype: str | None = "float32",
) -> Tensor:  # fmt: skip
    """A convolution of NCHW[c]c by OIHW[i]i[o]o."""
    i, o = numbers(kernel, "conv2d_NCHWc")[4:6]
    return _packed(
        "nn.contrib_conv2d_nchwc",
        data,
        kernel,
        stride,
        padding,
        dilation,
        layout,
        out_layout,
        out_dtype,
        f"OIHW{i}i{o}o",
        1,
    )


def conv2d_NCHWc_int8(
    data: Tensor, kernel: Tensor, stride: Sizes, padding: Pads, dilation: Sizes, layout: str, out_layout: str,
    out_dtype: str | None = "int32", n_elems: int = 4,
) -> Tensor:  # fmt: skip
    """A convolution of bytes, NCHW[c]c by kernels (O, I, H, W, i / n, o, n), n elements together. The result is packed by o."""
    on, inn, kh, kw, outer, o, n = numbers(kernel, "conv2d_NCHWc_int8")
    plain: Tensor = te.compute(
        (on, inn, kh, kw, outer * n, o),
        lambda a, b, y, x, i, c: kernel[a, b, y, x, i // n, c, i % n],
        name="T_kernel",
        tag="injective",
    )
    return conv2d_NCHWc(data, plain, stride, padding, dilation, layout, out_layout, out_dtype)


def depthwise_conv2d_NCHWc(
    Input: Tensor, Filter: Tensor, stride: Sizes, padding: Pads, dilation: Sizes, layout: str, out_layout: str,
    out_dtype: str | None = None,
) -> Tensor:  # fmt: skip
    """A convolution of each channel of NCHW[c]c by windows OIHW1i[o]o."""
    *_, one_, o = numbers(Filter, "depthwise_conv2d_NCHWc")
    data = numbers(Input, "depthwise_conv2d_NCHWc")
    return _packed(
        "nn.contrib_depthwise_conv2d_nchwc", Input, Filter, stride, padding, dilation, layout, out_layout or f"NCHW{o}c", out_dtype,
        f"OIHW{one_}i{o}o", data[1] * data[4],
    )  # fmt: skip


def depthwise_conv2d_nchw(
    Input: Tensor, Filter: Tensor, stride: Sizes, padding: Pads, dilation: Sizes, out_dtype: str | None = None
) -> Tensor:
    """A convolution of each channel of NCHW by its windows (C, M, H, W)."""
    c, m, kh, kw = numbers(Filter, "depthwise_conv2d_nchw")
    plain = one("reshape", Filter, [c * m, 1, kh, kw]) if m > 1 else Filter
    return conv(Input, plain, stride, padding, dilation, c, "NCHW", "OIHW", out_dtype)


def depthwise_conv2d_nhwc(
    Input: Tensor, Filter: Tensor, stride: Sizes, padding: Pads, dilation: Sizes, kernel_layout: str = "HWOI",
    out_dtype: str | None = None,
) -> Tensor:  # fmt: skip
    """A convolution of each channel of NHWC by its windows (H, W, C, M)."""
    if kernel_layout not in ("HWOI", "HWIO"):
        raise ExpressionError(f"depthwise_conv2d_nhwc has no kernel layout '{kernel_layout}'", "HWOI")
    kh, kw, *channels = numbers(Filter, "depthwise_conv2d_nhwc")
    m = channels[1]
    plain = one("reshape", Filter, [kh, kw, 1, channels[0] * m])
    return conv(Input, plain, stride, padding, dilation, numbers(Input, "data")[3], "NHWC", "HWIO", out_dtype)


# ---------------------------------------------------------------------------------------------------------- transposed


def _transposed(
    data: Tensor,
    kernel: Tensor,
    strides: Sizes,
    padding: Pads,
    out_dtype: str | None,
    output_padding: Sizes,
    groups: int = 1,
) -> Tensor:
    rank = data.ndim - 2
    window = numbers(kernel, "conv_transpose")[2:]
    before, after = padding_of(padding, window, [1] * rank)
    return one(
        f"nn.conv{rank}d_transpose", data, kernel, strides=per_axis(strides, rank), padding=[*before, *after], dilation=[1] * rank,
        groups=groups, kernel_size=window, channels=numbers(kernel, "conv_transpose")[1] * groups,
        output_padding=per_axis(output_padding, rank), out_dtype=_out(data, out_dtype),
    )  # fmt: skip


def conv1d_transpose_ncw(
    data: Tensor, kernel: Tensor, stride: Sizes, padding: Pads, out_dtype: str | None, output_padding: Sizes
) -> Tensor:
    """A transposed convolution of NCW by IOW."""
    return _transposed(data, kernel, stride, padding, out_dtype, output_padding)


def conv2d_transpose_nchw(
    Input: Tensor, Filter: Tensor, strides: Sizes, padding: Pads, out_dtype: str | None, output_padding: Sizes
) -> Tensor:
    """A transposed convolution of NCHW by IOHW."""
    return _transposed(Input, Filter, strides, padding, out_dtype, output_padding)


def group_conv2d_transpose_nchw(
    data: Tensor,
    kernel: Tensor,
    stride: Sizes,
    padding: Pads,
    out_dtype: str | None,
    output_padding: Sizes,
    groups: int,
) -> Tensor:
    """A transposed convolution of NCHW by IOHW, O the outputs of a group."""
    return _transposed(data, kernel, stride, padding, out_dtype, output_padding, groups)


def conv3d_transpose_ncdhw(
    Input: Tensor, Filter: Tensor, strides: Sizes, padding: Pads, out_dtype: str | None, output_padding: Sizes
) -> Tensor:
    """A transposed convolution of NCDHW by IODHW."""
    return _transposed(Input, Filter, strides, padding, out_dtype, output_padding)


# ------------------------------------------------------------------------------------------------- gradients and others


def _sides(padding: Sizes) -> list[int]:
    before, after = padding_of(padding, [1, 1], [1, 1])
    return [*before, *after]


def depthwise_conv2d_backward_input_nhwc(
    Filter: Tensor, Out_grad: Tensor, oshape: Sequence[int], ishape: Sequence[int], stride: Sizes, padding: Sizes
) -> Tensor:
    """The gradient of a depthwise convolution's data (NHWC, windows HWCM) by that of its result."""
    kh, kw, _, m = numbers(Filter, "depthwise_conv2d_backward_input_nhwc")
    (sy, sx), (top, left, _, _) = per_axis(stride, 2), _sides(padding)
    _, height, width, _ = (int(n) for n in oshape)
    dy, dx, dc = te.reduce_axis((0, kh), "dh"), te.reduce_axis((0, kw), "dw"), te.reduce_axis((0, m), "dc")

    def element(b: te.Var, h: te.Var, w: te.Var, c: te.Var) -> object:
        y, x = h + top - dy, w + left - dx
        met = te.all(y >= 0, x >= 0, y % sy == 0, x % sx == 0, y // sy < height, x // sx < width)
        value = te.if_then_else(met, Out_grad[b, y // sy, x // sx, c * m + dc], te.const(0, str(Out_grad.dtype)))
        return te.sum(value * Filter[dy, dx, c, dc], axis=[dy, dx, dc])

    made: Tensor = te.compute(
        tuple(int(n) for n in ishape), element, name="In_grad", tag="depthwise_conv2d_backward_input_nhwc"
    )
    return made


def depthwise_conv2d_backward_weight_nhwc(
    Input: Tensor, Out_grad: Tensor, oshape: Sequence[int], fshape: Sequence[int], stride: Sizes, padding: Sizes
) -> Tensor:
    """The gradient of a depthwise convolution's windows (HWCM) by its data (NHWC) and the gradient of its result."""
    n, height, width, _ = numbers(Input, "depthwise_conv2d_backward_weight_nhwc")
    (sy, sx), (top, left, _, _), m = per_axis(stride, 2), _sides(padding), int(fshape[3])
    db, dy, dx = (te.reduce_axis((0, int(e)), name) for e, name in zip((n, oshape[1], oshape[2]), ("db", "dh", "dw")))

    def element(fh: te.Var, fw: te.Var, c: te.Var, k: te.Var) -> object:
        y, x = dy * sy + fh - top, dx * sx + fw - left
        inside = te.all(y >= 0, y < height, x >= 0, x < width)
        value = te.if_then_else(inside, Input[db, y, x, c], te.const(0, str(Input.dtype)))
        return te.sum(Out_grad[db, dy, dx, c * m + k] * value, axis=[db, dy, dx])

    made: Tensor = te.compute(
        tuple(int(n) for n in fshape), element, name="Weight_grad", tag="depthwise_conv2d_backward_weight_nhwc"
    )
    return made


def _deformed(
    data: Tensor, offset: Tensor, kernel: Tensor, strides: Sizes, padding: Sizes, dilation: Sizes, deformable_groups: int,
    groups: int, out_dtype: str | None, layout: tuple[str, str],
) -> Tensor:  # fmt: skip
    window = [numbers(kernel, "deformable_conv2d")[layout[1].index(a)] for a in "HW"]
    return one(
        "nn.deformable_conv2d", data, offset, kernel, strides=per_axis(strides, 2), padding=_sides(padding), dilation=per_axis(dilation, 2),
        deformable_groups=deformable_groups, groups=groups, kernel_size=window, data_layout=layout[0], kernel_layout=layout[1],
        out_dtype=out_dtype or "",
    )  # fmt: skip


def deformable_conv2d_nchw(
    data: Tensor, offset: Tensor, kernel: Tensor, strides: Sizes, padding: Sizes, dilation: Sizes, deformable_groups: int,
    groups: int, out_dtype: str | None,
) -> Tensor:  # fmt: skip
    """A convolution of NCHW by OIHW whose places are moved by `offset`."""
    return _deformed(
        data, offset, kernel, strides, padding, dilation, deformable_groups, groups, out_dtype, ("NCHW", "OIHW")
    )


def deformable_conv2d_nhwc(
    data: Tensor, offset: Tensor, kernel: Tensor, strides: Sizes, padding: Sizes, dilation: Sizes, deformable_groups: int,
    groups: int, out_dtype: str | None,
) -> Tensor:  # fmt: skip
    """A convolution of NHWC by HWIO whose places are moved by `offset`."""
    return _deformed(
        data, offset, kernel, strides, padding, dilation, deformable_groups, groups, out_dtype, ("NHWC", "HWIO")
    )


def correlation_nchw(
    data1: Tensor,
    data2: Tensor,
    kernel_size: int,
    max_displacement: int,
    stride1: int,
    stride2: int,
    padding: Sizes,
    is_multiply: bool,
) -> Tensor:
    """How parts of two pictures go together, for each displacement."""
    return one(
        "nn.correlation", data1, data2, kernel_size=kernel_size, max_displacement=max_displacement, stride1=stride1, stride2=stride2,
        padding=_sides(padding), is_multiply=is_multiply, layout="NCHW",
    )  # fmt: skip
