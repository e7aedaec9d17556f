"""Quantised sums of products as sums of products of what is stored: with x = a - za and w = b - zb the sum of x * w is
the sum of a * b, less zb times the sum of a, less za times the sum of b, plus za * zb for each product.

The four terms have the bits of the sum in their type. Where a term would need more (sums that may leave their type,
windows with dilation, groups, zero points that are not known) data and weights are taken less their zero points, in int32.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compass_core.arrays import Array
from compassc.ir.dtypes import dtype as data_type
from compassc.relay.attributes import Attrs
from compassc.relay.builders import call
from compassc.relay.expr import Expr
from compassc.relay.ops.convolution import both_ends, several
from compassc.relay.ops.fixed_point import on_axis
from compassc.relay.passes._functions import constant, scalar
from compassc.relay.qnn.arithmetic import Parameters, value, without
from compassc.relay.types import TensorType, Type, is_dynamic

Args = Sequence[Expr]
Types = Sequence[Type]


def _kind(a: Attrs) -> str:
    """The type that is computed in: that of the result, with at least 32 bits."""
    return "int64" if a.out_dtype == "int64" else "int32"


def _finished(a: Attrs, made: Expr) -> Expr:
    return made if a.out_dtype == _kind(a) else call("cast", made, dtype=a.out_dtype)


def _tensors(types: Types) -> tuple[TensorType, TensorType]:
    x, w = types[:2]
    assert isinstance(x, TensorType) and isinstance(w, TensorType)
    return x, w


def _apart(args: Args, types: Types, axis: int) -> list[Expr]:
    """Data and weights less their zero points, those of weights on an axis."""
    x, w = _tensors(types)
    own = [Parameters(args[4 + i], args[2 + i], types[2 + i], axis if i else 0) for i in (0, 1)]
    return [without(args[0], own[0], len(x.shape)), without(args[1], own[1], len(w.shape))]


def _four(products: Expr, kind: str, zx: Array, zw: Array, sums: tuple[Expr, Expr], number: int) -> Expr:
    """The four terms put together; those with a zero point of 0 are not there."""
    made = products
    if np.any(zw):
        made = call("subtract", made, call("multiply", sums[0], constant(zw.astype(kind))))
    if not np.any(zx):
        return made
    rest: Expr = call("multiply", sums[1], constant(zx.astype(kind)))
    if not np.any(zw):
        return call("subtract", made, rest)
    whole = zx.astype("int64") * zw.astype("int64") * number
    return call("add", made, call("subtract", constant(whole.astype(kind)), rest))


# ------------------------------------------------------------------------------------------------------------ convolutions


def _options(a: Attrs, **other: object) -> dict[str, object]:
    return {**dict(a), "out_dtype": _kind(a), **other}


def conv2d(a: Attrs, args: Args, types: Types) -> Expr:
    """A convolution with window sums for the zero point of weights, which are cheaper than shifted weights."""
    zx, zw = value(args[2]), value(args[3])
    if zx is None or zw is None or not _has_terms(a, types, zx, zw):
        axis = a.kernel_layout.index("O")
        return _finished(a, call("nn.conv2d", *_apart(args, types, axis), **_options(a)))
    x, pads = args[0], both_ends(a.padding, 2)
    if (np.any(zx) or np.any(zw)) and any(pads):  # what is around means 0, and window sums count it
        widths = [[0, 0] for _ in a.data_layout]
        for i, c in enumerate("HW"):
            widths[a.data_layout.index(c)] = [pads[i], pads[i + 2]]
        fill = scalar(int(zx.reshape(())), _tensors(types)[0].dtype)
        x, pads = call("nn.pad", x, fill, pad_width=widths), (0, 0, 0, 0)
    made = call("nn.conv2d", x, args[1], **_options(a, padding=pads))
    return _finished(a, _conv_terms(a, types, made, x, args[1], zx, zw))


def _shape(a: Attrs, types: Types) -> tuple[int, list[int], bool]:
    """Channels of the data, the extents of a window, and whether each channel has its own windows."""
    x, w = _tensors(types)
    channels = x.concrete_shape[a.data_layout.index("C")]
    window = [w.concrete_shape[a.kernel_layout.index(c)] for c in "HW"]
    return channels, window, a.groups > 1


def _has_terms(a: Attrs, types: Types, zx: Array, zw: Array) -> bool:
    """Whether a convolution is the four terms, exactly."""
    x, w = _tensors(types)
    if not (np.any(zx) or np.any(zw)):
        return True
    plain = sorted(a.data_layout) == sorted("NCHW") and sorted(a.kernel_layout) == sorted("OIHW")
    if not plain or (a.out_layout or a.data_layout) != a.data_layout or is_dynamic(x) or is_dynamic(w):
        return False
    channels, window, own = _shape(a, types)
    if own and not (a.groups == channels == w.concrete_shape[a.kernel_layout.index("O")]):
        return False
    if own and w.concrete_shape[a.kernel_layout.index("I")] != 1:
        return False
    if np.any(zw) and any(d != 1 for d in several(a.dilation, 2)):
        return False
    low, high = data_type(x.dtype).range()
    if any(both_ends(a.padding, 2)) and not low <= int(zx.reshape(())) <= high:
        return False
    most = max(-low, high) * (1 if own else channels) * (window[0] * window[1]) ** 2
    return most < data_type(_kind(a)).range()[1]


def _conv_terms(a: Attrs, types: Types, made: Expr, x: Expr, w: Expr, zx: Array, zw: Array) -> Expr:
    kind, axis = _kind(a), a.data_layout.index("C")
    channels, window, own = _shape(a, types)
    number = window[0] * window[1]
    sums: Expr = call("cast", x, dtype=kind)
    if not own:
        sums = call("sum", sums, axis=[axis], keepdims=True, exclude=False)
    if number > 1 or any(s != 1 for s in several(a.strides, 2)):
        sums = call("multiply", sums, scalar(number, kind))  # so that the mean is the sum
        sums = call(
            "nn.avg_pool2d", sums, pool_size=window, strides=several(a.strides, 2), padding=(0, 0, 0, 0), dilation=(1, 1),
            layout=a.data_layout, out_layout="", ceil_mode=False, count_include_pad=False,
        )  # fmt: skip
    of_weight = call("sum", call("cast", w, dtype=kind), axis=[a.kernel_layout.index(c) for c in "IHW"], exclude=False)
    places = [-1 if d == axis else 1 for d in range(4)]
    of_weight = call("reshape", of_weight, newshape=places)
    return _four(made, kind, zx.reshape(()), on_axis(zw, axis, 4), (sums, of_weight), number * (1 if own else channels))


def conv2d_transpose(a: Attrs, args: Args, types: Types) -> Expr:
    """The plain operator of data and weights less their zero points."""
    axis = a.kernel_layout.index("O")
    return _finished(a, call("nn.conv2d_transpose", *_apart(args, types, axis), **_options(a)))


# ---------------------------------------------------------------------------------------------------------------- matrices


def dense(a: Attrs, args: Args, types: Types) -> Expr:
    """A product of matrices, with sums of rows for zero points."""
    zx, zw, kind = value(args[2]), value(args[3]), _kind(a)
    depth = _tensors(types)[1].shape[1]
    if zx is None or zw is None or not isinstance(depth, int):
        return _finished(a, call("nn.dense", *_apart(args, types, 0), **_options(a)))
    rows = call("sum", call("cast", args[0], dtype=kind), axis=[-1], keepdims=True, exclude=False)
    units = call("sum", call("cast", args[1], dtype=kind), axis=[1], exclude=False)
    made = call("nn.dense", args[0], args[1], **_options(a))
    return _finished(a, _four(made, kind, zx.reshape(()), on_axis(zw, 0, 1), (rows, units), depth))


def batch_matmul(a: Attrs, args: Args, types: Types) -> Expr:
    """Products of matrices, with sums of rows for zero points."""
    zx, zy, kind = value(args[2]), value(args[3]), _kind(a)
    x_axis, y_axis = (1 if a.transpose_a else 2), (2 if a.transpose_b else 1)
    depth = _tensors(types)[0].shape[x_axis]
    if zx is None or zy is None or zy.size > 1 or not isinstance(depth, int):
        return _finished(a, call("nn.batch_matmul", *_apart(args, types, 0), **_options(a)))
    rows = call("sum", call("cast", args[0], dtype=kind), axis=[x_axis], exclude=False)
    columns = call("sum", call("cast", args[1], dtype=kind), axis=[y_axis], exclude=False)
    made = call("nn.batch_matmul", args[0], args[1], **_options(a))
    sums = call("expand_dims", rows, axis=2), call("expand_dims", columns, axis=1)
    return _finished(a, _four(made, kind, zx.reshape(()), zy.reshape(()), sums, depth))
