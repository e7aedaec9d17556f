"""Quantised models: QuantizeLinear and DequantizeLinear, the operators between them, and QLinear operators.

Where a DequantizeLinear, a float operator and a QuantizeLinear meet, the operator becomes a quantised layer
(`quantised_forms`). What has no such form stays a float layer between DeQuantize and Quantize.

ONNX: x = (q - zero) * scale. The graph: x = (q + zero) / scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from compass_core.arrays import Array, NumpyDType
from compass_core.namedtuple import NamedTuple
from compassc.graph.tensor import Tensor
from compassc.importers.building import Building, known
from compassc.importers.onnx.declare import Constant, operator
from compassc.importers.onnx.operators.activations import clipped
from compassc.importers.onnx.operators.elementwise import arithmetic, cast, combined, unary
from compassc.importers.onnx.protobuf import numpy_type
from compassc.importers.values import NotConstant, Refused, Value, stored_type

if TYPE_CHECKING:
    from compassc.importers.onnx.convert import Conversion

LAYER_TYPES = ("int8", "uint8", "int16", "uint16")
"""Types of quantised tensors."""
NARROW = {"int4": (-8, 7), "uint4": (0, 15), "int2": (-2, 1), "uint2": (0, 3)}
"""Types that are stored in 8 bits, with their limits."""


class Levels(NamedTuple):
    """What the integers of a tensor stand for: one scale and zero point, or one per index of `axis`."""

    dtype: NumpyDType
    scale: Array
    zero: Array
    axis: int

    @property
    def is_one(self) -> bool:
        return self.scale.size == 1

    def matches(self, other: Levels) -> bool:
        """Whether the same integer stands for the same number."""
        return (
            self.dtype == other.dtype
            and np.array_equal(self.scale, other.scale)
            and np.array_equal(self.zero, other.zero)
        )


class Quantised(NamedTuple):
    """A tensor of integers, and what they stand for."""

    value: Value
    levels: Levels


def levels_of(scale: Array, zero: Array | None, dtype: NumpyDType, axis: int, rank: int) -> Levels:
    """Scales and zero points as they are computed with. Refused when a scale, or its reciprocal, is no float32."""
    with np.errstate(all="ignore"):
        limits = np.asarray([scale.min(initial=1), scale.max(initial=1)], np.float64)
        fits = np.isfinite(np.concatenate([limits, 1 / limits]).astype(np.float32)).all()
    if not (fits and limits[0] > 0):
        raise Refused(f"its scales go from {limits[0]:.3g} to {limits[1]:.3g}, which is no range of scales")
    offset = np.zeros(scale.shape, np.int64) if zero is None else zero.astype(np.int64)
    flat = scale.reshape(-1).astype(np.float64)
    zeros = np.broadcast_to(offset.reshape(-1), flat.shape)
    return Levels(dtype, flat, zeros, axis % max(rank, 1) if flat.size > 1 else 0)


def marked(b: Building, levels: Levels, axis: int | None = None) -> Any:
    """A context in which layers mark their results of this type with what the integers stand for."""
    scale = 1 / levels.scale if not levels.is_one else float(1 / levels.scale[0])
    zero = -levels.zero if not levels.is_one else -int(levels.zero[0])
    place = axis if not levels.is_one else None
    return b.marking(stored_type(levels.dtype), {"scale": scale, "zero": zero, "axis": place})


def as_marked(b: Building, q: Quantised) -> tuple[Tensor, tuple[int, ...]]:
    """The tensor with its scale and zero point, and its order; one that has others is looked at in another way."""
    tensor, order = b.stored(q.value)
    place = order.index(q.levels.axis) if not q.levels.is_one else None
    with marked(b, q.levels, place):
        wanted = b.mark(Tensor(tensor.name, tensor.shape, tensor.dtype))
        if (wanted.scale, wanted.zero, wanted.axis) == (tensor.scale, tensor.zero, tensor.axis):
            return tensor, order
        return b.layer("Reshape", [tensor], tensor.shape, tensor.dtype, shape=list(tensor.shape)), order


# -- QuantizeLinear, DequantizeLinear


@operator("QuantizeLinear", since=10)
def quantize(
    b: Conversion,
    x: Value,
    scale: Value,
    zero: Value | None = None,
    *,
    axis: int = 1,
    saturate: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
) -> Value:
    dtype = zero.dtype if zero is not None else numpy_type(output_dtype) if output_dtype else np.dtype(np.uint8)
    fixed = scale.array is not None and (zero is None or zero.array is not None)
    plain_type = dtype.name in LAYER_TYPES and not block_size
    if not fixed or not plain_type or scale.count > 1 and scale.count != x.shape[x.axis(axis)]:
        return _quantize_by_arithmetic(b, x, scale, zero, axis, dtype, block_size)
    assert scale.array is not None
    levels = levels_of(scale.array, None if zero is None else zero.array, dtype, axis, x.rank)
    found = quantised_form(b, x, levels)
    return found if found is not None else quantize_layer(b, x, levels)


def quantize_layer(b: Building, x: Value, levels: Levels) -> Value:
    tensor, order = b.stored(cast(b, x, np.float32) if not x.is_float else x)
    place = None if levels.is_one else order.index(levels.axis)
    with marked(b, levels, place):
        made = b.layer(
            "Quantize",
            [tensor],
            tensor.shape,
            levels.dtype.name,
            quantize_scale=(1 / levels.scale).astype(np.float32),
            quantize_zp=(-levels.zero).astype(np.int32),
            round_mode="ROUND_TO_EVEN",
            axis=place,
        )
    return b.value(made, levels.dtype, order)


def _spread(b: Conversion, v: Value, x: Value, axis: int, block: int) -> Value:
    """Scales or zero points in a shape that broadcasts against x."""
    if v.count == 1 and not block:
        return b.reshape(v, (1,) * bool(x.rank))
    if not block:
        shape = [1] * x.rank
        shape[x.axis(axis)] = v.count
        return b.reshape(v, shape)
    at = x.axis(axis)
    if v.array is None:
        raise NotConstant("its scales are computed, block by block", [v.tensor.name] if v.tensor else [])
    b.room(v.count, block, each=v.dtype.itemsize)
    wide = np.repeat(v.array, block, at)
    return Value.of(wide.take(range(x.shape[at]), at))


def _quantize_by_arithmetic(
    b: Conversion, x: Value, scale: Value, zero: Value | None, axis: int, dtype: NumpyDType, block: int
) -> Value:
    wide = cast(b, x, np.float32)
    divided = arithmetic_div(b, wide, cast(b, _spread(b, scale, x, axis, block), np.float32))
    if dtype.kind not in "iu" and dtype.name not in NARROW:
        return cast(b, divided, dtype, saturate=True)
    rounded = unary(b, divided, "Round")
    if zero is not None:
        rounded = arithmetic(b, rounded, cast(b, _spread(b, zero, x, axis, block), np.float32), "Add")
    low, high = NARROW.get(dtype.name) or (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return cast(b, clipped(b, rounded, np.float32(low), np.float32(high)), dtype, saturate=True)


def arithmetic_div(b: Conversion, x: Value, y: Value) -> Value:
    return combined(b, [x, y], "Div", x.dtype)


@operator("DequantizeLinear", since=10)
def dequantize(
    b: Conversion,
    x: Value,
    scale: Value,
    zero: Value | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Value:
    to = numpy_type(output_dtype) if output_dtype else scale.dtype
    fixed = scale.array is not None and (zero is None or zero.array is not None)
    fitting = scale.count == 1 or scale.count == x.shape[x.axis(axis)]
    if not fixed or block_size or x.dtype.name not in (*LAYER_TYPES, "int32") or not fitting:
        return _dequantize_by_arithmetic(b, x, scale, zero, axis, to, block_size)
    assert scale.array is not None
    levels = levels_of(scale.array, None if zero is None else zero.array, x.dtype, axis, x.rank)
    q = Quantised(x, levels)
    if x.array is not None:
        return b.dequantised(Value.of(real_numbers(q).astype(to)), q)
    if x.dtype.name not in LAYER_TYPES:
        return b.dequantised(_dequantize_by_arithmetic(b, x, scale, zero, axis, to, 0), q)
    return b.dequantised(dequantize_layer(b, q, to), q)


def real_numbers(q: Quantised) -> Array:
    """What the integers of a constant stand for, in float64."""
    levels, shape = q.levels, [1] * q.value.rank
    if not levels.is_one:
        shape[levels.axis] = levels.scale.size
    return (known(q.value).astype(np.float64) - levels.zero.reshape(shape)) * levels.scale.reshape(shape)


def dequantize_layer(b: Building, q: Quantised, to: NumpyDType) -> Value:
    """What the integers of a tensor stand for, as the layer DeQuantize computes it."""
    tensor, order = as_marked(b, q)
    place = None if q.levels.is_one else order.index(q.levels.axis)
    made = b.layer(
        "DeQuantize",
        [tensor],
        tensor.shape,
        stored_type(to),
        quantize_scale=(1 / q.levels.scale).astype(np.float32),
        quantize_zp=(-q.levels.zero).astype(np.int32),
        axis=place,
    )
    return b.value(made, to, order)


def _dequantize_by_arithmetic(
    b: Conversion, x: Value, scale: Value, zero: Value | None, axis: int, to: NumpyDType, block: int
) -> Value:
    wide = cast(b, x, np.float32)
    if zero is not None:
        wide = arithmetic(b, wide, cast(b, _spread(b, zero, x, axis, block), np.float32), "Sub")
    return cast(b, arithmetic(b, wide, cast(b, _spread(b, scale, x, axis, block), np.float32), "Mul"), to)


# -- operators between them


def quantised_form(b: Conversion, x: Value, levels: Levels) -> Value | None:
    """The quantised layer for an operator whose inputs are dequantised and whose result is quantised; None if none."""
    from compassc.importers.onnx.operators.quantised_forms import FORMS

    origin = b.origin(x)
    if origin is None or not levels.is_one:
        return None
    form = FORMS.get(origin.node.op_type)
    if form is None:
        return None
    before = len(b.refusals)
    try:
        found = form(b, origin, levels)
    except Refused:
        del b.refusals[before:]
        return None
    return found


def quantised_inputs(b: Conversion, values: Sequence[object]) -> list[Quantised] | None:
    """What the inputs were dequantised from; None when one was not."""
    found = [b.source(v) if isinstance(v, Value) else None for v in values]
    return None if any(f is None for f in found) else [f for f in found if f is not None]


def bias_of(b: Conversion, bias: object, x: Quantised, w: Quantised, outputs: int) -> Array | None:
    """Biases as integers in the scale of the products; None when they are not known."""
    product = np.broadcast_to(x.levels.scale * w.levels.scale, (outputs,))
    if bias is None:
        return np.zeros(outputs, np.int64)
    if not isinstance(bias, Value) or bias.array is None or bias.count != outputs:
        return None
    found: Array = np.rint(bias.array.reshape(-1).astype(np.float64) / product).astype(np.int64)
    return found


def plain_levels(scale: Constant, zero: Constant | None, dtype: NumpyDType, axis: int = 0, rank: int = 1) -> Levels:
    return levels_of(np.asarray(scale), zero, dtype, axis, rank)
