"""Functions of one element on integers of 8 bits: tables, computed from the function itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from compass_core.arrays import Array
from compassc.importers.onnx.operators.quantised import Levels, Quantised, as_marked, marked, real_numbers
from compassc.importers.tflite.declare import Call
from compassc.importers.tflite.hard_swish import hard_swish
from compassc.importers.values import Value
from compassc.layers.declare import type_of
from compassc.layers.families.activation.reference import RECTIFIERS

if TYPE_CHECKING:
    from compassc.importers.tflite.convert import Conversion


BY_INTEGERS = {"HARD_SWISH": hard_swish}
"""Functions that runtimes compute of integers, by operator: of numbers, and of the levels of both sides."""


def quantised(array: Array, levels: Levels) -> Array:
    """Real numbers as integers, halves away from zero."""
    kind, shape = np.iinfo(levels.dtype), [1] * array.ndim
    if not levels.is_one:
        shape[levels.axis] = levels.scale.size
    exact = array.astype(np.float32) * (1 / levels.scale).astype(np.float32).reshape(shape)
    nearest = np.trunc(exact + np.copysign(np.float32(0.5), exact)).astype(np.float64) + levels.zero.reshape(shape)
    found: Array = np.clip(np.nan_to_num(nearest), kind.min, kind.max).astype(levels.dtype)
    return found


def looked_up(b: Conversion, call: Call, out: Levels) -> Value | None:
    """The function as a layer with a table; None where its layer has none, or the integers have more than 8 bits."""
    x = call.inputs[0]
    if not isinstance(x, Quantised) or not x.levels.is_one or x.value.array is not None:
        return None
    if x.levels.dtype.itemsize != 1 or out.dtype.itemsize != 1:
        return None
    kind = np.iinfo(x.levels.dtype)
    entries = Quantised(Value.of(np.arange(kind.min, kind.max + 1).astype(x.levels.dtype)), x.levels)
    real = real_numbers(entries).astype(np.float32)
    (made,) = b.handled(Call(call.operator, [Value.of(real), *call.inputs[1:]], call.options))
    if made.tensor is None:
        return None
    layer = b.producer(made.tensor)
    simple = [b.producer(t).type for t in layer.inputs] == ["Constant"]
    if not simple or not any(c.name == "lut" for c in type_of(layer.type).constants):
        return None
    if layer.attributes.get("method") in (*RECTIFIERS, "NONE", "CRELU"):
        return None
    by_integers = BY_INTEGERS.get(call.operator)
    if by_integers is not None and out.is_one:
        assert entries.value.array is not None
        table = by_integers(entries.value.array, x.levels, out)
    else:
        table = quantised(known_content(b, made), out)
    tensor, order = as_marked(b, x)
    with marked(b, out):
        found = b.layer(layer.type, [tensor], tensor.shape, out.dtype.name, **layer.attributes, lut=table)
    return b.value(found, out.dtype, order)


def known_content(b: Conversion, value: Value) -> Array:
    """The content of a value that depends on constants only."""
    array = b.computed(value).array
    assert array is not None
    return array
