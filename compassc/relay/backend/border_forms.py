"""Where reals become whole numbers and back, as layers of the NPU that give the same numbers: `qnn.quantize` and `qnn.dequantize`, and
functions of numbers of 8 bits, which are looked up.

The host divides reals by the scale and rounds. Layers multiply by a reciprocal instead, which is rounded itself, so that reals close to where a
number begins may get the one beside it. Each number begins at a certain float32, which is known: layers find the beginning that
is nearest, and compare with it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compass_core.arrays import Array
from compassc.importers.onnx.operators.activations import clipped
from compassc.importers.onnx.operators.elementwise import arithmetic, cast
from compassc.importers.onnx.operators.quantised import Levels, quantize_layer
from compassc.importers.values import Refused, Value
from compassc.layers.arithmetic import quantise
from compassc.relay import declared
from compassc.relay.attributes import Attrs
from compassc.relay.backend.layer_forms import Layers, form
from compassc.relay.backend.whole_forms import BYTES, known, one_number
from compassc.relay.operators import OPERATORS, get
from compassc.relay.ops.fixed_point import on_axis, quantized
from compassc.relay.types import TensorType

ORDERED = np.int64(2**31)
INFINITY = np.int64(np.float32(np.inf).view(np.int32))


def _floats(ranks: Array) -> Array:
    """The float32 numbers of ranks: neighbours have ranks beside each other, 0 is that of zero."""
    bits = np.where(ranks >= 0, ranks, ORDERED - ranks)
    return bits.astype(np.uint32).view(np.float32)


def beginnings(function: Callable[[Array], Array], low: int, high: int) -> Array:
    """For each number from low + 1 to high the least float32 that a growing function takes to it or beyond."""
    wanted = np.arange(low + 1, high + 1)
    below, above = np.full(wanted.shape, -INFINITY), np.full(wanted.shape, INFINITY)
    for _ in range(33):
        middle = (below + above) // 2
        reached = function(_floats(middle)) >= wanted
        below, above = np.where(reached, below, middle), np.where(reached, middle, above)
    return _floats(above)


def _before(x: Array) -> Array:
    return np.nextafter(x, np.float32(-np.inf))


@form("qnn.quantize")
def to_numbers(b: Layers, a: Attrs, t: TensorType, x: Value, s: Value, z: Value) -> Value:
    scale, zero = known(s, "its scale"), one_number(z, "its zero point")
    if x.dtype != np.float32 or t.dtype not in (*BYTES, "int16") or scale.size != 1:
        raise Refused(f"layers do not make {t.dtype} of {x.dtype} by {scale.size} scales")
    if not 2.0**-100 < float(scale.item()) < 2.0**100:
        raise Refused(f"its scale is {float(scale.item()):.3g}")
    step, dtype, info = scale.reshape(()).astype(np.float32), np.dtype(t.dtype), np.iinfo(t.dtype)
    low, high = int(info.min), int(info.max)
    if not low <= zero <= high:
        raise Refused(f"its zero point {zero} is beyond {t.dtype}")
    begins = beginnings(lambda v: quantized(v, step, np.int32(zero), -1, t.dtype, str(a.rounding)), low, high)
    numbers = np.arange(low + 1, high + 1)
    factor = np.float32(1 / np.float64(step))
    alone = [quantise(v, factor, -zero, low, high) for v in (begins, _before(begins))]
    enough = bool((alone[0] == numbers).all() and (alone[1] == numbers - 1).all())
    if not enough and t.dtype not in BYTES:
        raise Refused(f"there are too many numbers of {t.dtype} to look up where each begins")
    # what is no number has the value 0, which layers take to the number 0
    if zero or not enough:
        x = b.onnx("Where", b.onnx("IsNaN", x), Value.of(np.zeros(1, np.float32)), x)
    if enough:
        return quantize_layer(b, x, Levels(dtype, np.asarray([step], np.float64), np.asarray([zero]), 0))
    return _compared(b, x, step, zero - low, begins, low, dtype)


def _compared(
    b: Layers, x: Value, step: Array, zero: int, begins: Array, low: int, dtype: np.dtype[np.generic]
) -> Value:
    """Numbers by their nearest beginnings. `zero`: the zero point less the least number."""
    half, count = np.float32(step / 2), len(begins)
    factor = np.float32(1 / np.float64(step))
    nearest = [quantise(v + half, factor, -zero, 0, count + 1) for v in (begins, _before(begins))]
    places = np.arange(1, count + 1)
    if ((nearest[0] < places) | (nearest[0] > places + 1)).any() or (
        (nearest[1] > places) | (nearest[1] < places - 1)
    ).any():
        raise Refused(f"layers do not find the numbers of its scale {float(step):.6g}")
    moved = arithmetic(b, x, Value.of(np.full(1, half, np.float32)), "Add")
    found = quantize_layer(b, moved, Levels(np.dtype(np.int16), np.asarray([step], np.float64), np.asarray([zero]), 0))
    place = cast(b, clipped(b, found, 0, count + 1), np.int32)
    table = np.concatenate([[-np.inf], begins, [np.inf]]).astype(np.float32)
    begun = b.onnx("GreaterOrEqual", x, b.onnx("Gather", Value.of(table), place))
    number = arithmetic(
        b, arithmetic(b, place, cast(b, begun, np.int32), "Add"), Value.of(np.full(1, low - 1, np.int32)), "Add"
    )
    return cast(b, number, dtype, saturate=True)


@form("qnn.dequantize")
def to_reals(b: Layers, a: Attrs, t: TensorType, x: Value, s: Value, z: Value) -> Value:
    """The difference of numbers of 16 bits is exact, so that the product alone is rounded, as on the host."""
    scale, zero = known(s, "its scale"), known(z, "its zero point")
    if t.dtype != "float32" or x.dtype.itemsize > 2:
        raise Refused(f"layers do not make {t.dtype} of {x.dtype}")
    scale, zero = (np.atleast_1d(on_axis(v, a.axis, x.rank)).astype(np.float32) for v in (scale, zero))
    real = arithmetic(b, cast(b, x, np.float32), Value.of(zero), "Sub")
    return arithmetic(b, real, Value.of(scale), "Mul")


def _looked_up(name: str) -> None:
    @form(name)
    def look_up(b: Layers, a: Attrs | None, t: TensorType, x: Value, *parameters: Value) -> Value:
        """What the host computes of every number."""
        if x.dtype.name not in BYTES or t.dtype not in BYTES:
            raise Refused(f"layers have no tables of {x.dtype}")
        arrays = [known(p, "a scale or zero point") for p in parameters]
        info = np.iinfo(x.dtype)
        numbers = np.arange(info.min, info.max + 1).astype(x.dtype)
        table = get(name).array_of(a, [numbers, *arrays], TensorType(numbers.shape, t.dtype))
        place = cast(b, x, np.int32)
        if info.min:
            place = arithmetic(b, place, Value.of(np.full(1, -int(info.min), np.int32)), "Add")
        return b.onnx("Gather", Value.of(table), place)


declared.load()
for _name in (
    "qnn.leaky_relu",
    *(n for n in OPERATORS if n.startswith("qnn.") and OPERATORS[n].get_attr("FTVMQnnLegalize")),
):
    _looked_up(_name)
