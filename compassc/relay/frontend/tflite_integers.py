"""Operators of TFLite on integers with scales, as its runtimes compute them: expressions by operator.

    @integers("CONV_2D", "DEPTHWISE_CONV_2D")
    def convolution(b, node): ...

A form is given tensors that all have one scale and zero point, but for constants, and gives integers by the levels of the result.
None: the operator is computed of the real numbers that the integers stand for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compassc.importers.onnx.operators.quantised import Levels
from compassc.importers.onnx.window import Asked, Window
from compassc.importers.tflite.endings import Ending, bounds
from compassc.importers.tflite.operators.activations import LIMITS
from compassc.importers.tflite.operators.movement import pads_of
from compassc.importers.tflite.tables import BY_INTEGERS
from compassc.importers.tflite.window import padding_of
from compassc.importers.values import Refused
from compassc.relay.frontend.terms import Expressions, Term

UPWARD, TONEAREST = "TWICE_UPWARD", "TWICE_TONEAREST"
"""How products are rounded: of CONV_2D, FULLY_CONNECTED and QUANTIZE of 8 bits, and of others (`ops.fixed_point`)."""
SHIFT = {1: 20, 2: 15}
"""Bits behind the point that sums of two tensors have, by the bytes of their elements."""


@dataclass(frozen=True)
class Whole:
    """A tensor of integers, and what they stand for."""

    term: Term
    levels: Levels

    @property
    def scale(self) -> float:
        return float(self.levels.scale[0])

    @property
    def zero(self) -> int:
        return int(self.levels.zero[0])


@dataclass(frozen=True)
class IntegerNode:
    """A node: its inputs (`Whole`, or a tensor without a scale, or None), its options, the levels and the shape of its result,
    and the limits at its end."""

    operator: str
    inputs: Sequence[Whole | Term | None]
    options: Mapping[str, object]
    out: Levels
    shape: Sequence[int | None]
    ending: Ending

    def whole(self, place: int) -> Whole:
        """An input that has a scale. Refused where it has none."""
        found = self.inputs[place] if place < len(self.inputs) else None
        if not isinstance(found, Whole):
            raise Refused(f"its input {place} has no scale")
        return found

    def known(self, place: int) -> Array | None:
        """The content of an input; None where there is no such input. Refused where it is not known."""
        found = self.inputs[place] if place < len(self.inputs) else None
        if found is None:
            return None
        array = (found.term if isinstance(found, Whole) else found).array
        if array is None:
            raise Refused(f"its input {place} is computed")
        return array

    def option(self, name: str, default: int | None = None) -> int:
        """An option that is a whole number. Refused where it is missing."""
        found = self.options.get(name, default)
        if not isinstance(found, (int, np.integer)):
            raise Refused(f"its option '{name}' is missing")
        return int(found)


Form = Callable[[Expressions, IntegerNode], "Term | None"]
FORMS: dict[str, Form] = {}
DATA = {"TRANSPOSE_CONV": 2}
"""Which input of an operator has its data, where that is not the first."""


def integers(*names: str) -> Callable[[Form], Form]:
    """Declare what operators are on integers."""

    def declare(form: Form) -> Form:
        FORMS.update(dict.fromkeys(names, form))
        return form

    return declare


# ---------------------------------------------------------------------------------------------------------------- levels


def scale(b: Expressions, value: float | Array, dtype: str = "float32") -> Term:
    return b.known(np.asarray(value, dtype))


def zero(b: Expressions, value: int | Array) -> Term:
    return b.known(np.asarray(value, np.int32))


def parameters(b: Expressions, levels: Levels) -> tuple[Term, Term]:
    """Scale and zero point as operands of operators: scalars, or one for each place of an axis."""
    if levels.is_one:
        return scale(b, levels.scale[0]), zero(b, levels.zero[0])
    return scale(b, levels.scale), zero(b, levels.zero)


def rescaled(
    b: Expressions, x: Term, own: float | Array, out: Levels | float, rounding: str, axis: int = -1, own_zero: int = 0
) -> Term:
    """Integers in other steps: of the levels `out`, or, of 32 bits around 0, in steps of that size. `own`: steps in double precision."""
    dtype = out.dtype.name if isinstance(out, Levels) else "int32"
    step, place = (float(out.scale[0]), int(out.zero[0])) if isinstance(out, Levels) else (out, 0)
    return b.call(
        "qnn.requantize", x, scale(b, own, "float64"), zero(b, own_zero), scale(b, step), zero(b, place), axis=axis,
        rounding=rounding, compute_dtype="int64", out_dtype=dtype,
    )  # fmt: skip


def ended(b: Expressions, x: Term, out: Levels, ending: Ending) -> Term:
    """Integers within the limits of the activation at the end of an operator."""
    low, high = bounds(out, ending)
    if low is None and high is None:
        return x
    kind = np.iinfo(out.dtype)
    bottom, top = kind.min if low is None else low, kind.max if high is None else high
    return b.call("clip", x, a_min=float(bottom), a_max=float(top))


def centred(b: Expressions, q: Whole) -> Term:
    """Integers of 32 bits, less their zero point."""
    wide = b.cast(q.term, "int32")
    return b.call("subtract", wide, zero(b, q.zero)) if q.zero else wide


# -------------------------------------------------------------------------------------------------------- sums of products


def _finished(
    b: Expressions, sums: Term, bias: Array | None, scales: float | Array, node: IntegerNode, way: str
) -> Term:
    """Sums of products with their bias, in the steps of the result. `scales`: those of the products."""
    axis = sums.rank - 1
    if bias is not None:
        sums = b.call("nn.bias_add", sums, b.known(bias.reshape(-1).astype(sums.kind)), axis=axis)
    if sums.kind == "int64":
        made = _narrowed(b, sums, np.asarray(scales) / float(node.out.scale[0]), node)
    else:
        made = rescaled(b, sums, scales, node.out, way, axis)
    return ended(b, made, node.out, node.ending)


def _narrowed(b: Expressions, sums: Term, factors: Array, node: IntegerNode) -> Term:
    """Sums of 64 bits times multipliers, halves up: of 15 bits, in FULLY_CONNECTED of 31 bits. Refused where products have no room."""
    part, exponent = np.frexp(factors)
    multiplier, bits = np.floor(part * 2**31 + 0.5).astype(np.int64), 31
    if node.operator != "FULLY_CONNECTED":
        multiplier, bits = np.minimum((multiplier + (1 << 15)) >> 16, 0x7FFF), 15
    weights, bias = node.known(1), node.known(2)
    assert weights is not None
    shift = (bits - exponent).astype(np.int64)
    most = float(np.abs(weights.astype(np.float64)).reshape(len(weights), -1).sum(1).max()) * 2**15 + float(
        np.abs(0.0 if bias is None else bias).max()
    )
    if most * 2.0**bits >= 2.0**62 or (shift < 1).any() or (shift > 62).any():
        raise Refused("its sums or factors are beyond what fits 64 bits")
    product = b.call("multiply", sums, b.known(multiplier))
    made = b.call("right_shift", b.call("add", product, b.known(np.int64(1) << (shift - 1))), b.known(shift))
    made = b.call("add", made, b.known(np.asarray(node.out.zero[0], np.int64)))
    kind = np.iinfo(node.out.dtype)
    return b.cast(b.call("clip", made, a_min=float(kind.min), a_max=float(kind.max)), node.out.dtype)


def _products(node: IntegerNode, axis: int) -> tuple[Whole, Whole, Array, float | Array]:
    """The data, the weights with what is known of them, and the scales of products; `axis`: where weights may have scales."""
    x, w = node.whole(0), node.whole(1)
    weights = node.known(1)
    if weights is None or not x.levels.is_one or x.levels.dtype.itemsize > 2 or w.levels.dtype.itemsize != 1:
        raise Refused(f"it has {x.levels.dtype} and weights of {w.levels.dtype}")
    if not w.levels.is_one and w.levels.axis != axis:
        raise Refused("its weights have scales along another axis than the filters")
    return x, w, weights, x.scale * w.scale if w.levels.is_one else x.scale * w.levels.scale


def _sums_type(x: Whole) -> str:
    return "int32" if x.levels.dtype.itemsize == 1 else "int64"


@integers("CONV_2D", "DEPTHWISE_CONV_2D")
def convolution(b: Expressions, node: IntegerNode) -> Term:
    """Weights [O,H,W,I]; of depthwise ones [1,H,W,C*m], whose filters lie behind each other by channels."""
    depthwise = node.operator == "DEPTHWISE_CONV_2D"
    x, w, weights, scales = _products(node, 3 if depthwise else 0)
    kernel = weights.transpose(1, 2, 0, 3) if depthwise else weights.transpose(1, 2, 3, 0)
    channels, inner = x.term.shape[3], kernel.shape[2]
    if channels % inner:
        raise Refused(f"filters of {inner} channels do not fit {channels} channels")
    strides = node.option("stride_h"), node.option("stride_w")
    dilation = node.option("dilation_h_factor", 1), node.option("dilation_w_factor", 1)
    window = _window(node, x, kernel.shape[:2], strides, dilation)
    sums = b.call(
        "qnn.conv2d", x.term, np.ascontiguousarray(kernel), zero(b, x.zero), _zeros(b, w), scale(b, x.scale),
        parameters(b, w.levels)[0], kernel_size=kernel.shape[:2], channels=kernel.shape[3], strides=strides,
        dilation=dilation, groups=channels // inner, padding=window.ends, data_layout="NHWC", kernel_layout="HWIO",
        out_dtype=_sums_type(x),
    )  # fmt: skip
    return _finished(b, sums, node.known(2), scales, node, TONEAREST if depthwise else UPWARD)


def _zeros(b: Expressions, w: Whole) -> Term:
    """The zero point of weights: of scales per channel often the same everywhere."""
    same = (w.levels.zero == w.levels.zero[0]).all()
    return zero(b, w.levels.zero[0] if same else w.levels.zero)


def _window(
    node: IntegerNode, x: Whole, kernel: Sequence[int], strides: tuple[int, int], dilation: tuple[int, int] = (1, 1)
) -> Window:
    if x.term.rank != 4 or not all(isinstance(d, int) for d in x.term.shape[1:3]):
        raise Refused("its image has an open size")
    return Asked(None, strides, dilation, None, padding_of(node.option("padding"))).over(x.term.shape[1:3], kernel)


@integers("TRANSPOSE_CONV")
def transposed_convolution(b: Expressions, node: IntegerNode) -> Term:
    """Weights [O,H,W,I]; the pads are those of the convolution that leads from the result to the data."""
    shape = node.known(0)
    if shape is None or shape.size != 4:
        raise Refused("its shape is not known")
    node = replace(node, inputs=(node.inputs[2], node.inputs[1], *node.inputs[3:]))
    x, w, weights, scales = _products(node, 0)
    strides, wanted = (node.option("stride_h"), node.option("stride_w")), [int(n) for n in shape.reshape(-1)[1:3]]
    forward = Asked(None, strides, (1, 1), None, padding_of(node.option("padding"))).over(wanted, weights.shape[1:3])
    if forward.positions(wanted) != x.term.shape[1:3]:
        raise Refused(f"its input {list(x.term.shape)} does not lead to the shape {shape.tolist()}")
    before = [begin for begin, _ in forward.pads]
    behind = [
        (n - 1) * s + k - begin - size
        for n, s, k, begin, size in zip(x.term.shape[1:3], strides, weights.shape[1:3], before, wanted, strict=True)
    ]
    sums = b.call(
        "qnn.conv2d_transpose", b.transpose(x.term, [0, 3, 1, 2]), np.ascontiguousarray(weights.transpose(3, 0, 1, 2)),
        zero(b, x.zero), _zeros(b, w), scale(b, x.scale), parameters(b, w.levels)[0], strides=strides,
        padding=(*before, *(max(n, 0) for n in behind)), output_padding=tuple([max(-n, 0) for n in behind]),
        channels=weights.shape[0], kernel_size=weights.shape[1:3], out_dtype=_sums_type(x),
    )  # fmt: skip
    return _finished(b, b.transpose(sums, [0, 2, 3, 1]), node.known(2), scales, node, TONEAREST)


@integers("FULLY_CONNECTED")
def dense(b: Expressions, node: IntegerNode) -> Term:
    x, w, weights, scales = _products(node, 0)
    rows = b.reshape(x.term, [-1, weights.shape[1]]) if x.term.shape != (x.term.shape[0], weights.shape[1]) else x.term
    sums = b.call(
        "qnn.dense", rows, weights, zero(b, x.zero), _zeros(b, w), scale(b, x.scale), parameters(b, w.levels)[0],
        units=weights.shape[0], out_dtype=_sums_type(x),
    )  # fmt: skip
    made = _finished(b, sums, node.known(2), scales, node, UPWARD)
    keep = node.options.get("keep_num_dims") and x.term.rank != 2
    return b.reshape(made, [*x.term.shape[:-1], weights.shape[0]]) if keep else made


@integers("BATCH_MATMUL")
def batch_matmul(b: Expressions, node: IntegerNode) -> Term:
    x, y = node.whole(0), node.whole(1)
    if not (x.term.rank == y.term.rank == 3 and x.levels.is_one and y.levels.is_one and x.levels.dtype.itemsize == 1):
        raise Refused("it is no product of two stacks of matrices of 8 bits")
    left, right = (
        b.transpose(q.term, [0, 2, 1]) if turn else q.term
        for q, turn in ((x, node.options.get("adj_x")), (y, not node.options.get("adj_y")))
    )
    sums = b.call(
        "qnn.batch_matmul", left, right, zero(b, x.zero), zero(b, y.zero), scale(b, x.scale), scale(b, y.scale), out_dtype="int32",
    )  # fmt: skip
    return ended(b, rescaled(b, sums, x.scale * y.scale, node.out, TONEAREST), node.out, node.ending)


# ------------------------------------------------------------------------------------------------------ element by element


@integers("ADD", "SUB")
def total(b: Expressions, node: IntegerNode) -> Term | None:
    """Operands with bits behind the point, in twice the larger of both scales."""
    x, y = node.whole(0), node.whole(1)
    if x.levels.dtype.itemsize not in SHIFT or not (x.levels.is_one and y.levels.is_one):
        return None
    bits = SHIFT[x.levels.dtype.itemsize]
    fine = 2.0**-bits
    most = 2 * max(x.scale, y.scale) * fine
    wide = [
        rescaled(b, b.call("left_shift", centred(b, q), zero(b, bits)), q.scale * fine, most, TONEAREST) for q in (x, y)
    ]
    made = b.call("add" if node.operator == "ADD" else "subtract", *wide)
    return ended(b, rescaled(b, made, most, node.out, TONEAREST), node.out, node.ending)


@integers("MUL")
def product(b: Expressions, node: IntegerNode) -> Term | None:
    """The factor is computed in single precision."""
    x, y = node.whole(0), node.whole(1)
    if x.levels.dtype.itemsize not in SHIFT or not (x.levels.is_one and y.levels.is_one):
        return None
    step = np.float32(node.out.scale[0])
    factor = np.float32(x.scale) * np.float32(y.scale) / step
    made = b.call("multiply", centred(b, x), centred(b, y))
    return ended(b, rescaled(b, made, float(factor) * float(step), node.out, TONEAREST), node.out, node.ending)


@integers("QUANTIZE", *LIMITS)
def in_other_steps(b: Expressions, node: IntegerNode) -> Term | None:
    """Integers in other steps, and limited."""
    x, ending = node.whole(0), LIMITS.get(node.operator, node.ending)
    if not x.levels.is_one or x.levels.dtype.itemsize > 2:
        return None
    if x.levels.matches(node.out):
        return ended(b, x.term, node.out, ending)
    of_bytes = x.levels.dtype.itemsize == node.out.dtype.itemsize == 1
    way = UPWARD if node.operator == "QUANTIZE" and of_bytes else TONEAREST
    return ended(b, rescaled(b, x.term, x.scale, node.out, way, own_zero=x.zero), node.out, ending)


@integers("LEAKY_RELU")
def leaky_relu(b: Expressions, node: IntegerNode) -> Term | None:
    """Both sides of 0 by multipliers of their own; the factors are computed in single precision."""
    x, alpha = node.whole(0), node.options.get("alpha")
    if not x.levels.is_one or x.levels.dtype.itemsize > 2 or not isinstance(alpha, float):
        return None
    step = np.float32(node.out.scale[0])
    factors = np.float32(x.scale) / step, np.float32(x.scale) * np.float32(alpha) / step
    if min(factors) <= 0:
        return None
    above, below = (rescaled(b, x.term, float(f) * float(step), node.out, TONEAREST, own_zero=x.zero) for f in factors)
    return b.call("where", b.call("less", b.cast(x.term, "int32"), zero(b, x.zero)), below, above)


@integers(*BY_INTEGERS)
def by_table(b: Expressions, node: IntegerNode) -> Term | None:
    """Functions of 8 bits: a table of what runtimes compute."""
    x = node.whole(0)
    if x.levels.dtype.itemsize != 1 or node.out.dtype.itemsize != 1 or not x.levels.is_one:
        return None
    kind = np.iinfo(x.levels.dtype)
    numbers = np.arange(kind.min, kind.max + 1)
    place = b.call("subtract", b.cast(x.term, "int32"), zero(b, kind.min))
    return b.call("take", b.known(BY_INTEGERS[node.operator](numbers, x.levels, node.out)), place)


@integers("MAXIMUM", "MINIMUM")
def extreme(b: Expressions, node: IntegerNode) -> Term | None:
    x, y = node.whole(0), node.whole(1)
    same = x.levels.is_one and x.levels.matches(node.out) and y.levels.matches(node.out)
    return b.call(node.operator.lower(), x.term, y.term) if same else None


# ---------------------------------------------------------------------------------------------------------- pools, borders


def _pool(node: IntegerNode) -> tuple[Whole, Window]:
    x = node.whole(0)
    if not (x.levels.is_one and x.levels.matches(node.out)):
        raise Refused("its result has other steps")
    kernel = node.option("filter_height"), node.option("filter_width")
    return x, _window(node, x, kernel, (node.option("stride_h"), node.option("stride_w")))


@integers("MAX_POOL_2D")
def max_pool(b: Expressions, node: IntegerNode) -> Term:
    x, w = _pool(node)
    made = b.call(
        "nn.max_pool2d", x.term, pool_size=w.kernel, strides=w.stride, padding=w.ends, dilation=(1, 1), layout="NHWC"
    )
    return ended(b, made, node.out, node.ending)


@integers("AVERAGE_POOL_2D")
def average_pool(b: Expressions, node: IntegerNode) -> Term:
    """Of the integers as they are, halves away from 0; each window has as many as lie inside of the image."""
    x, w = _pool(node)
    size = w.kernel[0] * w.kernel[1]
    given = {"pool_size": w.kernel, "strides": w.stride, "padding": w.ends, "dilation": (1, 1), "layout": "NHWC"}
    wide = b.call("multiply", b.cast(x.term, "int32"), zero(b, size))  # so that the mean is the sum
    sums = b.call("nn.avg_pool2d", wide, count_include_pad=True, **given)
    inside = [
        np.asarray([sum(0 <= i * s - before + k < n for k in range(many)) for i in range(positions)], np.int32)
        for n, many, s, (before, _), positions in zip(
            x.term.shape[1:3], w.kernel, w.stride, w.pads, w.positions(x.term.shape[1:3]), strict=True
        )
    ]
    counts = inside[0][:, None, None] * inside[1][None, :, None]
    counts = counts[:1, :1] if (counts == counts.flat[0]).all() else counts
    means = b.call("floor_divide", b.call("add", b.call("abs", sums), zero(b, counts // 2)), zero(b, counts))
    signed = b.call("where", b.call("less", sums, zero(b, 0)), b.call("negative", means), means)
    return ended(b, b.cast(signed, x.term.kind), node.out, node.ending)


@integers("PAD", "PADV2")
def padded(b: Expressions, node: IntegerNode) -> Term | None:
    """The border of PAD is the integer that stands for 0."""
    x, paddings = node.whole(0), node.known(1)
    if paddings is None or not (x.levels.is_one and x.levels.matches(node.out)):
        return None
    value = x.zero
    if node.operator == "PADV2":
        border, content = node.whole(2), node.known(2)
        if content is None or not border.levels.matches(node.out):
            return None
        value = int(content.reshape(-1)[0])
    widths = pads_of(paddings, x.term.rank)
    return b.call("nn.pad", x.term, pad_width=widths, pad_value=b.known(np.asarray(value, x.term.dtype)))


@integers("REDUCE_MAX", "REDUCE_MIN")
def reduced(b: Expressions, node: IntegerNode) -> Term | None:
    x, axes = node.whole(0), node.known(1)
    if axes is None or not (x.levels.is_one and x.levels.matches(node.out)):
        return None
    name, keep = node.operator.removeprefix("REDUCE_").lower(), bool(node.options.get("keep_dims"))
    return b.call(name, x.term, axis=[int(a) for a in axes.reshape(-1)], keepdims=keep)
