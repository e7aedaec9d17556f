"""Operators of numbers with scales and zero points."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from compassc.importers.onnx.protobuf import numpy_type
from compassc.importers.onnx.window import Asked
from compassc.importers.values import Refused
from compassc.relay.frontend.operators.linear import matmul_of_integers
from compassc.relay.frontend.operators.meanings import rounded
from compassc.relay.frontend.operators.windows import conv_of_integers
from compassc.relay.frontend.terms import Expressions, Term, operator
from compassc.relay.ops.fixed_point import TIES_TO_EVEN


def spread(b: Expressions, x: Term, each: Term, axis: int, block: int = 0) -> Term:
    """Numbers for a tensor, for each place of an axis, or for blocks of it, so that they broadcast."""
    if not each.rank or each.shape == (1,) and x.rank != 1:
        return b.call("reshape", each, newshape=[]) if each.rank else each
    at = x.axis(axis)
    if each.rank == 1 and not block:
        return b.call("expand_dims", each, axis=1, num_newaxis=x.rank - 1 - at) if x.rank - 1 - at else each
    size = x.shape[at]
    if not block or not isinstance(size, int):
        raise Refused("its scales are no tensor of one axis")
    wide = b.call("repeat", each, repeats=block, axis=at)
    return b.slice(wide, at, 0, size) if wide.shape[at] != size else wide


def limited(b: Expressions, x: Term, dtype: DTypeLike) -> Term:
    """Numbers of a type of integers: those beyond it become its first and last."""
    info = np.iinfo(dtype)
    low, high = (b.of(np.asarray(v, x.dtype)) for v in (info.min, info.max))
    return b.cast(b.call("minimum", b.call("maximum", x, low), high), dtype)


def _parameters(
    b: Expressions, x: Term, scale: Term, zero: Term | None, axis: int, block: int
) -> tuple[Term, Term] | None:
    """Scale and zero point as operators of quantised numbers take them: scalars, or one for each place of an axis. None where
    they are others."""
    if scale.kind != "float32" or block or scale.rank > 1:
        return None
    one = not scale.rank or scale.shape == (1,) and (x.rank != 1 or x.shape == (1,))
    if not one and (not x.rank or x.shape[x.axis(axis)] != scale.shape[0]):
        return None
    points = b.of(np.zeros(scale.shape, np.int32)) if zero is None else b.cast(zero, "int32")
    if points.shape != scale.shape:
        return None
    if one and scale.rank:
        scale, points = (
            b.known(v.array.reshape(())) if v.array is not None else b.reshape(v, []) for v in (scale, points)
        )
    return scale, points


@operator("QuantizeLinear")
def quantize(
    b: Expressions, x: Term, scale: Term, zero: Term | None = None, *, axis: int = 1, saturate: int = 1, block_size: int = 0,
    output_dtype: int = 0, precision: int = 0,
) -> Term:  # fmt: skip
    """By division, as ONNX says, with ties to even."""
    dtype = zero.dtype if zero is not None else numpy_type(output_dtype) if output_dtype else np.dtype("uint8")
    if dtype.kind not in "iu" or dtype.name not in ("int8", "uint8", "int16", "uint16"):
        raise Refused(f"numbers of {dtype} have no expression")
    kind = numpy_type(precision).name if precision else scale.kind
    if x.kind == kind == "float32" and (found := _parameters(b, x, scale, zero, axis, block_size)) is not None:
        return b.call(
            "qnn.quantize",
            x,
            *found,
            axis=x.axis(axis) if found[0].rank else -1,
            out_dtype=dtype.name,
            rounding=TIES_TO_EVEN,
        )
    real, each = b.cast(x, kind), b.cast(scale, kind)
    whole = b.cast(rounded(b, b.call("divide", real, spread(b, x, each, axis, block_size))), "float32")
    if zero is not None:
        whole = b.call("add", whole, b.cast(spread(b, x, zero, axis, block_size), "float32"))
    return limited(b, whole, dtype)


@operator("DynamicQuantizeLinear", since=11)
def dynamic_quantize(b: Expressions, x: Term) -> list[Term]:
    """By 8 bits between the extremes, of which 0 is one."""
    zero = b.of(np.zeros((), np.float32))
    low, high = b.call("minimum", b.call("min", x), zero), b.call("maximum", b.call("max", x), zero)
    scale = b.call("divide", b.call("subtract", high, low), 255)
    point = limited(b, rounded(b, b.call("divide", b.call("negative", low), scale)), np.uint8)
    return [quantize(b, x, scale, point), scale, point]


@operator("DequantizeLinear")
def dequantize(
    b: Expressions,
    x: Term,
    scale: Term,
    zero: Term | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Term:
    if x.kind not in ("int8", "uint8", "int16", "uint16", "int32"):
        raise Refused(f"numbers of {x.dtype} have no expression")
    found = _parameters(b, x, scale, zero, axis, block_size)
    if found is not None and not output_dtype:
        return b.call("qnn.dequantize", x, *found, axis=x.axis(axis) if found[0].rank else -1, out_dtype="float32")
    wide = b.cast(x, "int32")
    if zero is not None and not (zero.array is not None and not zero.array.any()):
        wide = b.call("subtract", wide, b.cast(spread(b, x, zero, axis, block_size), "int32"))
    made = b.call("multiply", b.cast(wide, scale.dtype), spread(b, x, scale, axis, block_size))
    return b.cast(made, numpy_type(output_dtype)) if output_dtype else made


def requantised(b: Expressions, sums: Term, x_scale: Term, w_scale: Term, scale: Term, zero: Term, axis: int) -> Term:
    """Sums as numbers of another scale."""
    factor = b.call("multiply", b.cast(x_scale, "float32"), b.cast(w_scale, "float32"))
    factor = b.call("divide", factor, b.cast(scale, "float32"))
    if factor.rank and factor.shape != (1,) and sums.rank - 1 - axis:
        factor = b.call("expand_dims", factor, axis=1, num_newaxis=sums.rank - 1 - axis)
    whole = rounded(b, b.call("multiply", b.cast(sums, "float32"), factor))
    return limited(b, b.call("add", whole, b.cast(zero, "float32")), zero.dtype)


@operator("QLinearConv")
def qlinear_conv(
    b: Expressions, x: Term, x_scale: Term, x_zero: Term, w: Term, w_scale: Term, w_zero: Term, scale: Term, zero: Term,
    bias: Term | None = None, *, asked: Asked, group: int = 1,
) -> Term:  # fmt: skip
    sums = conv_of_integers(b, x, w, x_zero, w_zero, asked=asked, group=group)
    sums = sums if bias is None else b.call("nn.bias_add", sums, bias, axis=1)
    return requantised(b, sums, x_scale, w_scale, scale, zero, 1)


@operator("QLinearMatMul")
def qlinear_matmul(
    b: Expressions, x: Term, x_scale: Term, x_zero: Term, y: Term, y_scale: Term, y_zero: Term, scale: Term, zero: Term
) -> Term:
    sums = matmul_of_integers(b, x, y, x_zero, y_zero)
    return requantised(b, sums, x_scale, y_scale, scale, zero, sums.rank - 1)
