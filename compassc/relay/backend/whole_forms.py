"""Operators on whole numbers as layers of the NPU that give the same numbers: products in int32, additions and shifts of these, and
requantisations by multipliers of 31 bits.

Layers limit what is beyond 32 bits, where programs wrap around: a call is a layer where that cannot happen (`ends`).
"""

from __future__ import annotations

import numpy as np

from compass_core.arrays import Array
from compassc.importers.onnx.operators.elementwise import arithmetic, cast, combined
from compassc.importers.values import Refused, Value
from compassc.layers.arithmetic import UPWARD
from compassc.relay.attributes import Attrs
from compassc.relay.backend.layer_forms import Layers, form, ordered, window
from compassc.relay.expr import Call, Constant, Expr
from compassc.relay.operators import op_name
from compassc.relay.ops import fixed_point
from compassc.relay.ops.fixed_point import TWICE, requantization
from compassc.relay.types import TensorType

BYTES = ("int8", "uint8")
LIMIT = 1 << 31
Ends = tuple[int, int]
"""The least and the largest that numbers can be."""


# ------------------------------------------------------------------------------------------------------------- what fits


def ends(e: Expr) -> Ends:
    """Between what the elements of a typed expression lie, as far as operators and constants tell."""
    if isinstance(e, Constant):
        return int(e.array.min(initial=0)), int(e.array.max(initial=0))
    t = e.checked_type
    assert isinstance(t, TensorType)
    info = np.iinfo(t.dtype)
    whole = int(info.min), int(info.max)
    name = op_name(e)
    if not isinstance(e, Call) or t.dtype != "int32":
        return whole
    if name in (
        "cast",
        "reshape",
        "transpose",
        "nn.max_pool2d",
        "annotation.compiler_begin",
        "annotation.compiler_end",
    ):
        return _cut(ends(e.args[0]), whole)
    if name in ("qnn.conv2d", "qnn.dense"):
        most = _reach(e)
        return (-most, most) if most < LIMIT else whole
    if name in (*WRAPPING, "maximum", "minimum"):
        return _cut(_of_two(name, ends(e.args[0]), ends(e.args[1])), whole)
    return _requantised(e, whole) if name == "qnn.requantize" else whole


def _cut(found: Ends, whole: Ends) -> Ends:
    return found if whole[0] <= found[0] and found[1] <= whole[1] else whole


def _of_two(name: str, x: Ends, y: Ends) -> Ends:
    if name in ("add", "nn.bias_add"):
        return x[0] + y[0], x[1] + y[1]
    if name == "subtract":
        return x[0] - y[1], x[1] - y[0]
    if name == "left_shift":
        by = 1 << min(max(y[1], 0), 63)
        return min(x[0] * by, x[0]), max(x[1] * by, x[1])
    if name == "multiply":
        products = [a * b for a in x for b in y]
        return min(products), max(products)
    choose = max if name == "maximum" else min
    return choose(x[0], y[0]), choose(x[1], y[1])


def _reach(e: Call) -> int:
    """The largest magnitude of sums of products with known weights."""
    weights, zeros = e.args[1], e.args[3]
    if not isinstance(weights, Constant) or not isinstance(zeros, Constant):
        return LIMIT
    kernel = "OI" if op_name(e) == "qnn.dense" else str(e.attrs["kernel_layout"])  # type: ignore[index]  # it has a record
    moved = np.moveaxis(weights.array.astype(np.int64), kernel.index("O"), 0)
    zero = zeros.array.astype(np.int64).reshape(-1, *(1,) * (moved.ndim - 1))
    low, high = ends(e.args[0])
    around = ends(e.args[2])
    most = max(abs(low - around[1]), abs(high - around[0]))
    return int(np.abs(moved - zero).reshape(len(moved), -1).sum(1).max(initial=0)) * most


def _requantised(e: Call, whole: Ends) -> Ends:
    scales = e.args[1], e.args[3]
    if not all(isinstance(s, Constant) for s in (*scales, e.args[2], e.args[4])):
        return whole
    factor = float((scales[0].array.astype(np.float64) / scales[1].array.astype(np.float64)).max())  # type: ignore[attr-defined]  # constants
    (low, high), own, new = ends(e.args[0]), ends(e.args[2]), ends(e.args[4])
    found = int(np.floor((low - own[1]) * factor)) - 2 + new[0], int(np.ceil((high - own[0]) * factor)) + 2 + new[1]
    return _cut((min(found[0], new[0]), max(found[1], new[1])), whole)


WRAPPING = ("add", "subtract", "multiply", "nn.bias_add", "left_shift")
OF_WORDS = frozenset([*WRAPPING, "maximum", "minimum", "clip", "reshape", "transpose"])
"""Operators that are layers of int32, too."""


def why_not_whole(call: Call) -> str:
    """Why an operator on int32 gives other numbers as a layer; "" where it does not."""
    name = op_name(call)
    if name not in WRAPPING:
        return ""
    low, high = _of_two(name, ends(call.args[0]), ends(call.args[1]))
    return "" if -LIMIT <= low and high < LIMIT else f"its numbers go from {low} to {high}, beyond 32 bits"


# ----------------------------------------------------------------------------------------------------- requantisation


def known(x: Value, what: str) -> Array:
    """The array of a value. Refused where it is computed."""
    if x.array is None:
        raise Refused(f"{what} is not known")
    return x.array


def one_number(x: Value, what: str) -> int:
    """The whole number of a value. Refused where it is computed, or several."""
    array = known(x, what)
    if array.size != 1:
        raise Refused(f"{what} is not one number")
    return int(array.reshape(()))


def rescaled(
    b: Layers, x: Value, own: tuple[Value, Value], out: tuple[Array, int], axis: int, dtype: str, rounding: str = UPWARD
) -> Value:
    """Numbers of one scale and zero point as those of another, as `qnn.requantize` computes them. `out`: scale and zero point."""
    scale, zero = known(own[0], "its scale"), one_number(own[1], "its zero point")
    if x.dtype.name == "int32" and zero or dtype == "int32" and out[1]:
        raise Refused("numbers of 32 bits have a zero point")
    factor = fixed_point.ratio(scale.reshape(-1), out[0].reshape(-1))
    q, e = fixed_point.parts(np.ones(1) if factor is None else factor)
    if dtype == "int32" and x.dtype.name == "int32" and (e > 0).any() and factor is not None:
        raise Refused(f"its factor {float(np.max(factor)):.3g} may lead beyond 32 bits")
    e = np.where(q == 0, 0, e)
    tensor, order = b.stored(x)
    given: dict[str, object] = {"scale": q.astype(np.uint32), "shift": (31 - e).astype(np.int8)}
    if q.size == 1:
        given = {"scale_value": int(q[0]), "scale_type": "uint32", "shift_value": int(31 - e[0]), "shift_type": "int8"}
    place = order.index(x.axis(axis)) if q.size > 1 else None
    made = b.layer(
        "FixedPoint",
        [tensor],
        tensor.shape,
        dtype,
        axis=place,
        rounding=rounding,
        x_zero_point=zero,
        y_zero_point=out[1],
        **given,
    )
    return b.value(made, np.dtype(dtype), order)


@form("qnn.requantize")
def requantize(b: Layers, a: Attrs, t: TensorType, x: Value, s: Value, z: Value, new_s: Value, new_z: Value) -> Value:
    how = requantization(str(a.rounding), str(a.compute_dtype))
    if how.compute_dtype != "int64" or how.rounding not in (UPWARD, *TWICE):
        raise Refused(f"layers do not round {how.rounding} in {how.compute_dtype}")
    if x.dtype.name == "int64":
        raise Refused("its numbers are of int64")
    out = known(new_s, "the scale of the result"), one_number(new_z, "the zero point of the result")
    return rescaled(b, x, (s, z), out, a.axis, t.dtype, how.rounding)


# --------------------------------------------------------------------------------------------------- sums of products


def _fits(x: Value, w: Value, zero: int, dtype: str) -> None:
    if x.dtype.name not in BYTES or w.dtype.name not in BYTES or dtype != "int32":
        raise Refused(f"it makes {dtype} of {x.dtype} and {w.dtype}; layers make int32 of 8 bits")
    info = np.iinfo(x.dtype)
    if not info.min <= zero <= info.max:
        raise Refused(f"its zero point {zero} is beyond {x.dtype}")


def _zeros(w: Value, zeros: Value) -> Value:
    array = known(zeros, "the zero point of the weights").reshape(-1)
    info = np.iinfo(w.dtype)
    if array.min() < info.min or array.max() > info.max:
        raise Refused(f"the zero points of its weights are beyond {w.dtype}")
    return Value.of(array[:1].reshape(()).astype(w.dtype) if (array == array[0]).all() else array.astype(w.dtype))


@form("qnn.conv2d")
def convolution(
    b: Layers, a: Attrs, t: TensorType, x: Value, w: Value, zx: Value, zw: Value, sx: Value, sw: Value
) -> Value:  # fmt: skip
    known(w, "the weight")
    zero = one_number(zx, "the zero point of the data")
    _fits(x, w, zero, t.dtype)
    made: Value = b.onnx(
        "ConvInteger", ordered(b, x, a.data_layout, "NCHW"), ordered(b, w, a.kernel_layout, "OIHW"),
        Value.of(np.asarray(zero, x.dtype)), _zeros(w, zw), **window(a, 2), group=a.groups,
    )  # fmt: skip
    return ordered(b, made, "NCHW", a.out_layout or a.data_layout)


@form("qnn.dense")
def dense(b: Layers, a: Attrs, t: TensorType, x: Value, w: Value, zx: Value, zw: Value, sx: Value, sw: Value) -> Value:
    known(w, "the weight")
    zero = one_number(zx, "the zero point of the data")
    _fits(x, w, zero, t.dtype)
    made: Value = b.onnx("MatMulInteger", x, b.transpose(w, (1, 0)), Value.of(np.asarray(zero, x.dtype)), _zeros(w, zw))
    return made


@form("qnn.batch_matmul")
def batches(
    b: Layers, a: Attrs, t: TensorType, x: Value, y: Value, zx: Value, zy: Value, sx: Value, sy: Value
) -> Value:
    zeros = [one_number(z, "a zero point") for z in (zx, zy)]
    for operand, zero in zip((x, y), zeros, strict=True):
        _fits(operand, operand, zero, t.dtype)
    depth = x.shape[1 if a.transpose_a else 2]
    if depth * 255 * 255 >= LIMIT:
        raise Refused(f"sums of {depth} products may lead beyond 32 bits")
    left, right = b.transpose(x, (0, 2, 1)) if a.transpose_a else x, b.transpose(y, (0, 2, 1)) if a.transpose_b else y
    made: Value = b.onnx(
        "MatMulInteger", left, right, *(Value.of(np.asarray(z, v.dtype)) for z, v in zip(zeros, (x, y), strict=True))
    )
    return made


# ------------------------------------------------------------------------------------------------------ element by element


@form("cast")
def widened(b: Layers, a: Attrs, t: TensorType, x: Value) -> Value:
    if x.dtype.name not in (*BYTES, "int16") or t.dtype != "int32":
        raise Refused(f"layers do not cast {x.dtype} to {t.dtype} as programs do")
    return cast(b, x, np.int32)


@form("left_shift")
def shifted(b: Layers, a: Attrs, t: TensorType, x: Value, by: Value) -> Value:
    if not 0 <= one_number(by, "the shift") < 31:
        raise Refused("its shift is none of 32 bits")
    return combined(b, [x, Value.of(known(by, "the shift").reshape(1))], "BitShift", x.dtype, direction="LEFT")


def _words(b: Layers, x: Value, zero: int) -> Value:
    """Bytes as int32 less their zero point."""
    if x.dtype.name not in BYTES:
        raise Refused(f"layers have no sums of {x.dtype}")
    wide = cast(b, x, np.int32)
    return arithmetic(b, wide, Value.of(np.full(1, zero, np.int32)), "Sub") if zero else wide


Pair = tuple[Value, Value]


def _pairs(parameters: tuple[Value, ...]) -> tuple[list[Pair], tuple[Array, int]]:
    """Scale and zero point of both operands, and of the result."""
    sx, zx, sy, zy, s, z = parameters
    if any(known(v, "a scale").size != 1 for v in (sx, sy)):
        raise Refused("operands have a scale for each channel")
    return [(sx, zx), (sy, zy)], (known(s, "the scale of the result"), one_number(z, "the zero point of the result"))


def _total(name: str) -> None:
    @form(f"qnn.{name}")
    def total(b: Layers, a: Attrs, t: TensorType, x: Value, y: Value, *parameters: Value) -> Value:
        """Both operands in the steps of the result, without its zero point."""
        if requantization() != fixed_point.Requantization() or t.dtype not in BYTES:
            raise Refused(f"layers have no {name} of {t.dtype} with other roundings")
        own, (scale, zero) = _pairs(parameters)
        left, right = (rescaled(b, v, pair, (scale, 0), -1, "int32") for v, pair in zip((x, y), own, strict=True))
        made = arithmetic(b, left, right, "Add" if name == "add" else "Sub")
        made = arithmetic(b, made, Value.of(np.full(1, zero, np.int32)), "Add") if zero else made
        return cast(b, made, np.dtype(t.dtype), saturate=True)


_total("add")
_total("subtract")


@form("qnn.mul")
def product(b: Layers, a: Attrs, t: TensorType, x: Value, y: Value, *parameters: Value) -> Value:
    if requantization() != fixed_point.Requantization() or t.dtype not in BYTES:
        raise Refused(f"layers have no products of {t.dtype} with other roundings")
    own, out = _pairs(parameters)
    left, right = (_words(b, v, one_number(zero, "a zero point")) for v, (_, zero) in zip((x, y), own, strict=True))
    scales = [known(s, "a scale").astype(np.float32) for s, _ in own]
    zero = Value.of(np.zeros((), np.int32))
    return rescaled(b, arithmetic(b, left, right, "Mul"), (Value.of(scales[0] * scales[1]), zero), out, -1, t.dtype)
