"""The activation at the end of an operator: limits of what it makes, of real numbers and of integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from compass_core.namedtuple import NamedTuple
from compassc.importers.building import Building
from compassc.importers.onnx.operators.activations import activation, clipped
from compassc.importers.onnx.operators.quantised import Levels, marked
from compassc.importers.tflite.source import names_of
from compassc.importers.values import Refused, Value

CLIP_FRACTION = 8
"""Bits behind the point that the limits of a CLIP have where its results have 8 bits."""


class Ending(NamedTuple):
    """Limits, of which None is none; `tanh`: not limits, but this function."""

    low: float | None = None
    high: float | None = None
    tanh: bool = False


ENDINGS = {
    "NONE": Ending(),
    "RELU": Ending(0.0),
    "RELU_N1_TO_1": Ending(-1.0, 1.0),
    "RELU6": Ending(0.0, 6.0),
    "TANH": Ending(tanh=True),
}


def ending_of(number: int) -> Ending:
    """What the option `fused_activation_function` says."""
    name = names_of("ActivationFunctionType").get(number, str(number))
    if name not in ENDINGS:
        raise Refused(f"the activation {name} at its end is not supported")
    return ENDINGS[name]


def limited(b: Building, x: Value, ending: Ending) -> Value:
    """Real numbers (or whole ones that stand for themselves) within the limits."""
    if ending.tanh:
        return activation(b, x, "TANH")
    if ending.low is None and ending.high is None:
        return x
    kind: Any = np.float32 if x.is_float else x.dtype.type
    return clipped(b, x, *(None if v is None else kind(v) for v in (ending.low, ending.high)))


def bounds(levels: Levels, ending: Ending) -> tuple[int | None, int | None]:
    """The least and the largest integer within the limits; None where the type ends there. Refused for what is no limit."""
    if ending.tanh:
        raise Refused("a quantised operator with TANH at its end is computed in floats")
    kind, scale, zero = np.iinfo(levels.dtype), float(levels.scale[0]), int(levels.zero[0])
    low, high = (None if v is None else zero + _whole(v / scale) for v in (ending.low, ending.high))
    return (None if low is None or low <= kind.min else low), (None if high is None or high >= kind.max else high)


def limited_integers(b: Building, x: Value, levels: Levels, ending: Ending) -> Value:
    """Integers within the limits, which changes nothing where the type ends there."""
    kind, zero = np.iinfo(levels.dtype), int(levels.zero[0])
    low, high = bounds(levels, ending)
    if low is None and high is None:
        return x
    if x.array is not None:
        return Value.of(np.clip(x.array, low, high))
    tensor, order = b.stored(x)
    one = {"scale_value": 1, "scale_type": "uint16", "shift_value": 0, "shift_type": "int8"}
    given: dict[str, object] = {"method": "RELU"}
    if high is not None or low != zero:
        fine = 1 << (CLIP_FRACTION if kind.bits <= 8 else 0)
        bottom, top = (kind.min if low is None else low), (kind.max if high is None else high)
        given = {"method": "CLIP", "clip_min": (bottom - zero) * fine, "clip_max": (top - zero) * fine}
    with marked(b, levels):
        return b.value(b.layer("Activation", [tensor], tensor.shape, tensor.dtype, **given, **one), x.dtype, order)


def _whole(x: float) -> int:
    """The nearest integer, halves away from zero."""
    return int(np.floor(abs(x) + 0.5) * np.sign(x))
