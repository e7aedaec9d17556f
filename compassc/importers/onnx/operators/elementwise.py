"""Functions of each element, and of two or more elements at the same place."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from compass_core.arrays import NumpyDType
from compassc.graph.dtypes import IR_DTYPES
from compassc.importers.building import Building, makes
from compassc.importers.onnx.declare import operator
from compassc.importers.onnx.protobuf import numpy_type
from compassc.importers.values import Refused, Value, broadcast_shape, stored_type

UNARY = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh", "atan": "Atan", "atanh": "Atanh", "ceil": "Ceil",
    "cos": "Cosine", "cosh": "Cosh", "erf": "Erf", "exp": "Exp", "floor": "Floor", "log": "Log", "negative": "Negative",
    "reciprocal": "Reciprocal", "round": "Round", "rsqrt": "Rsqrt", "sign": "Sign", "sin": "Sine", "sinh": "Sinh", "sqrt": "Sqrt",
    "tan": "Tan",
}  # fmt: skip
"""Layers that are an operator of the registry, without attributes."""


def unary(b: Building, x: Value, type: str, dtype: Any = None, **given: object) -> Value:
    """A layer that works on each element; its result has the order of its input."""
    tensor, order = b.stored(x)
    to = x.dtype if dtype is None else np.dtype(dtype)
    return b.value(b.layer(type, [tensor], tensor.shape, stored_type(to), **given), to, order)


def combined(b: Building, values: Sequence[Value], type: str, dtype: Any, **given: Any) -> Value:
    """A layer of operands that broadcast."""
    tensors, shape, order = b.operands(values)
    return b.value(b.layer(type, tensors, shape, stored_type(np.dtype(dtype)), **given), dtype, order)


def cast(b: Building, x: Value, to: Any, saturate: bool = False) -> Value:
    """The tensor in another type. Integers wrap, but for those of 64 bits, which are stored in 32; real numbers lose their
    fraction."""
    to = np.dtype(to)
    if x.array is not None:
        with np.errstate(all="ignore"):
            return Value.of(x.array.astype(to))
    if to == np.dtype(bool) and x.dtype != to:
        return combined(b, [x, Value.of(np.zeros(1, x.dtype))], "Logical", bool, method="NOT_EQUAL")
    stored = stored_type(to)
    assert x.tensor is not None
    if x.tensor.dtype == stored:
        return x.typed(to)
    wraps = x.dtype.kind in "iub" and to.kind in "iu" and to.itemsize < 8 and not saturate
    mode = "TRUNCATION" if wraps else "SATURATION"
    return unary(b, x, "Cast", to, to_dtype=stored, clip_mode=mode, ignore_scale_zp=True)


def in_floats(b: Building, x: Value, make: Callable[[Value], Value]) -> Value:
    """A function that layers have for real numbers only, of whole numbers too: there and back. Those of more than 16 bits
    may lose some, which a warning says."""
    if x.is_float:
        return make(x)
    if x.dtype.itemsize > 2:
        warnings.warn(
            f"{b.budget.where}: the node '{b.name}' is computed in float32, as no layer does it in {x.dtype}: whole numbers "
            "beyond 2^24 are rounded",
            stacklevel=2,
        )
    return cast(b, make(cast(b, x, np.float32)), x.dtype)


def _elementwise(type: str, b: Building, x: Value) -> Value:
    if x.is_float or type in ("Abs", "Negative", "Sign"):
        return unary(b, x, type)
    return in_floats(b, x, lambda v: unary(b, v, type))


for _name, _type in UNARY.items():
    makes(_name)(partial(_elementwise, _type))


@makes("logical_not")
def logical_not(b: Building, x: Value) -> Value:
    return unary(b, x, "Logical", bool, method="NOT")


@makes("bitwise_not")
def bitwise_not(b: Building, x: Value) -> Value:
    if x.dtype == np.uint64:
        raise Refused("its results have 64 bits, of which graphs have 32")
    return unary(b, x, "Bitwise", method="NOT")


@makes("isnan")
def is_nan(b: Building, x: Value) -> Value:
    return unary(b, x, "IsNaN", bool)


@operator("IsInf")
def is_inf(b: Building, x: Value, *, detect_negative: int = 1, detect_positive: int = 1) -> Value:
    return unary(b, x, "IsInf", bool, detect_negative=bool(detect_negative), detect_positive=bool(detect_positive))


@operator("Cast")
def cast_layer(b: Building, x: Value, *, to: int, saturate: int = 1, round_mode: str = "up") -> Value:
    target = numpy_type(to)
    if target.kind in "OSU":
        raise Refused("text is not supported")
    return converted(b, x, target, bool(saturate))


@operator("CastLike")
def cast_like(b: Building, x: Value, like: Value, *, saturate: int = 1, round_mode: str = "up") -> Value:
    return converted(b, x, like.dtype, bool(saturate))


EIGHT_BITS = {"float8_e4m3fn": (448.0, 464.0), "float8_e5m2": (57344.0, 61440.0)}
"""Floats of 8 bits: the largest, and from where on numbers are beyond it."""


def converted(b: Building, x: Value, to: NumpyDType, saturate: bool) -> Value:
    """The tensor in another type as ONNX converts it. Refused when graphs have no type for it."""
    if x.array is not None:
        return cast(b, x, to)
    if stored_type(to) not in IR_DTYPES:
        raise Refused(f"graphs have no type for {to.name}")
    if to.name in ("int4", "uint4", "int2", "uint2"):
        return _wrapped(b, x, to)
    if to.name not in EIGHT_BITS or x.dtype == to:
        return cast(b, x, to)
    largest, beyond = EIGHT_BITS[to.name]
    wide = cast(b, x, np.float32)
    if saturate:
        return cast(b, unary(b, wide, "Activation", method="CLIP", clip_min=-largest, clip_max=largest), to)
    over = compare(b, unary(b, wide, "Abs"), Value.of(np.full(1, beyond, np.float32)), "GREATER")
    infinite = Value.of(np.full(1, np.inf, np.float32))
    lost = (
        arithmetic(b, wide, infinite, "Mul") if to.name == "float8_e5m2" else Value.of(np.full(1, np.nan, np.float32))
    )
    return cast(b, combined(b, [over, lost, wide], "Where", np.float32), to)


def _wrapped(b: Building, x: Value, to: NumpyDType) -> Value:
    """Integers of 4 and 2 bits, which are stored in 8: the rest of a division."""
    size = 1 << int(to.name[-1])
    low = 0 if to.name.startswith("u") else size >> 1
    whole = cast(b, x, np.int32)
    if low:
        whole = arithmetic(b, whole, Value.of(np.full(1, low, np.int32)), "Add")
    rest = modulo(b, whole, Value.of(np.full(1, size, np.int32)))
    if low:
        rest = arithmetic(b, rest, Value.of(np.full(1, low, np.int32)), "Sub")
    return cast(b, rest, np.int8).typed(to)


@operator("BitCast", partly="of up to 32 bits")
def bit_cast(b: Building, x: Value, *, to: int) -> Value:
    target = numpy_type(to)
    if x.dtype == target:
        return x
    if x.dtype.kind in "iub" and target.kind in "iu" and x.dtype.itemsize == target.itemsize:
        return cast(b, x, target)
    if x.array is not None and x.array.itemsize == target.itemsize:
        return Value.of(x.array.view(target))
    if x.dtype.itemsize > 4 or x.dtype.itemsize != target.itemsize:
        raise Refused(f"the bits of {x.dtype} as {target}: graphs hold the bits of types of one size of up to 32 bits")
    kind = stored_type(target)
    return unary(b, x, "Cast", target, to_dtype=kind, clip_mode="BITS", ignore_scale_zp=True)


@operator("Dropout", partly="not in training")
def dropout(
    b: Building, x: Value, ratio: Value | None = None, training: Value | None = None, *, seed: int = 0
) -> list[Value]:
    if training is not None and (training.array is None or bool(training.array)):
        unused = ratio is not None and ratio.array is not None and float(ratio.array) == 0
        if not unused:
            raise Refused("it is in training, where it is random")
    return [x, Value.of(np.ones(b.room(*x.shape), bool))]


# -- two operands

ARITHMETIC = {"Add": "ADD", "Sub": "SUB", "Mul": "MUL"}


def arithmetic(b: Building, x: Value, y: Value, name: str) -> Value:
    """Add, Sub or Mul; an Eltwise where the shapes are equal."""
    tensors, shape, order = b.operands([x, y])
    same = all(tuple(t.shape) == shape for t in tensors)
    given: dict[str, object] = {"method": ARITHMETIC[name]} if same else {}
    made = b.layer("Eltwise" if same else name, tensors, shape, stored_type(x.dtype), with_activation="NONE", **given)
    return b.value(made, x.dtype, order)


def extreme(b: Building, x: Value, y: Value, method: str) -> Value:
    return combined(b, [x, y], "Eltwise", x.dtype, method=method, with_activation="NONE")


def _arithmetic(name: str, b: Building, x: Value, y: Value) -> Value:
    """Whole numbers of up to 16 bits wrap around; layers limit theirs."""
    if x.dtype.kind not in "iu" or x.dtype.itemsize > 2:
        return arithmetic(b, x, y, name)
    wide = np.uint32 if name == "Mul" and x.dtype.kind == "u" else np.int32
    return cast(b, arithmetic(b, cast(b, x, wide), cast(b, y, wide), name), x.dtype)


def _extreme(method: str, b: Building, x: Value, y: Value) -> Value:
    return extreme(b, x, y, method)


for _name, _type in (("add", "Add"), ("subtract", "Sub"), ("multiply", "Mul")):
    makes(_name)(partial(_arithmetic, _type))
for _name, _type in (("maximum", "MAX"), ("minimum", "MIN")):
    makes(_name)(partial(_extreme, _type))


@makes("divide")
def divide(b: Building, x: Value, y: Value) -> Value:
    """Whole numbers are divided toward zero."""
    if x.is_float:
        return combined(b, [x, y], "Div", x.dtype)
    return divided(b, x, y, "TRUNC")[0]


def divided(b: Building, x: Value, y: Value, mode: str) -> tuple[Value, Value]:
    """Quotients and rests of whole numbers, rounded down (FLOOR) or toward zero (TRUNC)."""
    tensors, shape, order = b.operands([x, y])
    kind = stored_type(x.dtype)
    made = b.layers_of("DivMod", tensors, [(shape, kind), (shape, kind)], mode=mode)
    return b.value(made[0], x.dtype, order), b.value(made[1], x.dtype, order)


def _sign(b: Building, y: Value) -> Value:
    return Value.of(np.sign(y.array)) if y.array is not None else unary(b, y, "Sign")


@operator("Mod")
def modulo(b: Building, x: Value, y: Value, *, fmod: int = 0) -> Value:
    """Of floats with the sign of y: what is left with the sign of x, plus y where the signs differ. The layer's own form,
    x - floor(x / y) * y, loses bits of large quotients and knows no infinite ones."""
    if x.is_float:
        rest = combined(b, [x, y], "Mod", x.dtype, fmod=True)
        if fmod:
            return rest
        signs = arithmetic(b, unary(b, rest, "Sign"), _sign(b, y), "Mul")
        differ = compare(b, signs, Value.of(np.zeros(1, x.dtype)), "LESS")
        return combined(b, [differ, arithmetic(b, rest, y, "Add"), rest], "Where", x.dtype)
    return divided(b, x, y, "TRUNC" if fmod else "FLOOR")[1]


@operator("PRelu")
def prelu(b: Building, x: Value, slope: Value) -> Value:
    """One slope: LEAKYRELU. Constant ones: PRELU, by channel with the channels last. Computed ones: as ONNX defines it."""
    if slope.array is not None and slope.count == 1 and slope.rank <= x.rank:
        value = float(slope.array.reshape(-1)[0])
        return unary(b, x, "Activation", method="LEAKYRELU", negative_slope_type="float32", negative_slope_value=value)
    if slope.array is not None and x.is_float:
        wide = slope.array.reshape((1,) * (x.rank - slope.rank) + slope.shape)
        axes = [a for a, size in enumerate(wide.shape) if size != 1]
        if broadcast_shape([x.shape, wide.shape]) == x.shape:
            _, order = b.last(x, axes[0]) if len(axes) == 1 else b.stored(x)
            slopes = wide.transpose(order).astype(np.float32)
            slopes = slopes.reshape(-1) if len(axes) == 1 else slopes
            return b.mapped("Activation", x, order, method="PRELU", negative_slope=slopes)
    zero = Value.of(np.zeros(1, x.dtype))
    positive = extreme(b, x, zero, "MAX")
    negative = arithmetic(b, extreme(b, x, zero, "MIN"), slope, "Mul")
    return arithmetic(b, positive, negative, "Add")


def compare(b: Building, x: Value, y: Value, method: str) -> Value:
    return combined(b, [x, y], "Logical", bool, method=method)


def _compared(method: str, b: Building, x: Value, y: Value) -> Value:
    return compare(b, x, y, method)


def _bitwise(method: str, b: Building, x: Value, y: Value) -> Value:
    return combined(b, [x, y], "Bitwise", x.dtype, method=method)


for _name in ("equal", "greater", "greater_equal", "less", "less_equal", "not_equal"):
    makes(_name)(partial(_compared, _name.upper()))
for _name in ("and", "or", "xor"):
    makes(f"logical_{_name}")(partial(_compared, _name.upper()))
    makes(f"bitwise_{_name}")(partial(_bitwise, _name.upper()))


@operator("BitShift")
def bit_shift(b: Building, x: Value, y: Value, *, direction: str) -> Value:
    """What is moved beyond the 32 bits that uint64 has here is limited to them, as sums are."""
    found = combined(b, [x, y], "BitShift", x.dtype, direction=direction)
    if x.dtype != np.uint64 or direction != "LEFT":
        return found
    back = combined(b, [found, y], "BitShift", x.dtype, direction="RIGHT")
    return where(b, compare(b, back, x, "EQUAL"), found, Value.of(np.full(1, 2**32 - 1, x.dtype)))


@operator("Where")
def where(b: Building, condition: Value, x: Value, y: Value) -> Value:
    if condition.array is not None and condition.count and (condition.array == condition.array.flat[0]).all():
        chosen = x if condition.array.flat[0] else y
        if chosen.shape == np.broadcast_shapes(condition.shape, x.shape, y.shape):
            return chosen
    return combined(b, [condition, x, y], "Where", x.dtype)
