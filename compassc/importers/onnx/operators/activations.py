"""Activations: the layer Activation by its methods."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from compass_core.arrays import NumpyDType
from compassc.graph.dtypes import numpy_dtype
from compassc.importers.building import Building, makes
from compassc.importers.onnx.declare import Constant, operator
from compassc.importers.onnx.operators.elementwise import combined, extreme, in_floats, unary
from compassc.importers.values import Refused, Value, stored_type

if TYPE_CHECKING:
    from compassc.importers.onnx.convert import Conversion

METHODS: dict[str, tuple[str, dict[str, object]]] = {
    "celu": ("CELU", {}), "elu": ("ELU", {}), "gelu": ("GELU", {"approximate": "NONE"}), "gelu_tanh": ("GELU", {"approximate": "TANH"}),
    "hard_sigmoid": ("HARDSIGMOID", {"clip_min": 0.0, "clip_max": 1.0}), "hard_swish": ("HARDSWISH", {}), "mish": ("MISH", {}),
    "selu": ("SELU", {}), "shrink": ("SHRINK", {}), "sigmoid": ("SIGMOID", {}), "silu": ("SILU", {}), "softplus": ("SOFTPLUS", {}),
    "softsign": ("SOFTSIGN", {}), "tanh": ("TANH", {}), "thresholded_relu": ("THRESHOLDEDRELU", {}),
}  # fmt: skip
"""Operators of the registry that are methods of the layer Activation, whose attributes they have, and further ones."""


def activation(b: Building, x: Value, method: str, **given: object) -> Value:
    """An Activation layer; whole numbers as real ones and back."""
    return in_floats(b, x, lambda v: unary(b, v, "Activation", method=method, **given))


def _method(name: str, more: dict[str, object], b: Building, x: Value, **given: object) -> Value:
    return activation(b, x, name, **given, **more)


for _name, (_layer, _more) in METHODS.items():
    makes(_name)(partial(_method, _layer, _more))


@makes("relu")
def relu(b: Building, x: Value) -> Value:
    return activation(b, x, "RELU") if x.is_float else extreme(b, x, Value.of(np.zeros(1, x.dtype)), "MAX")


@makes("leaky_relu")
def leaky_relu(b: Building, x: Value, *, alpha: float) -> Value:
    return activation(b, x, "LEAKYRELU", negative_slope_type="float32", negative_slope_value=alpha)


@makes("swish")
def swish(b: Building, x: Value, *, alpha: float = 1.0) -> Value:
    return activation(b, x, "SILU") if alpha == 1.0 else activation(b, x, "SWISH", alpha=alpha)


@operator("Clip")
def clip(b: Building, x: Value, low: Value | None = None, high: Value | None = None) -> Value:
    """Computed limits are a maximum and a minimum."""
    if any(v is not None and (v.array is None or v.count != 1) for v in (low, high)):
        x = extreme(b, x, low, "MAX") if low is not None else x
        return extreme(b, x, high, "MIN") if high is not None else x
    limits = [None if v is None or v.array is None else v.array.reshape(-1)[0] for v in (low, high)]
    return clipped(b, x, *limits)


def clipped(b: Building, x: Value, low: Any, high: Any) -> Value:
    """Within limits, of which None is none."""
    if x.is_float:
        most = float(np.finfo(np.float32).max)
        bottom = -most if low is None else max(float(low), -most)
        top = most if high is None else min(float(high), most)
        if (bottom, top) == (0.0, 6.0):
            return activation(b, x, "RELU6")
        if bottom == 0.0 and top >= most:
            return activation(b, x, "RELU")
        if bottom <= -most and top >= most:
            return x
        if bottom > top:
            raise Refused(f"its limits are {bottom} and {top}")
        return activation(b, x, "CLIP", clip_min=bottom, clip_max=top)
    for limit, method in ((low, "MAX"), (high, "MIN")):
        if limit is not None and not _is_end(x.dtype, int(limit), method):
            x = extreme(b, x, Value.of(np.full(1, limit, x.dtype)), method)
    return x


def _is_end(dtype: NumpyDType, limit: int, method: str) -> bool:
    """Whether a limit leaves all numbers that the graph's type holds."""
    kept = np.iinfo(numpy_dtype(stored_type(dtype)))
    return limit <= kept.min if method == "MAX" else limit >= kept.max


@operator("Softmax", "LogSoftmax", "Hardmax", since=13)
def softmax(b: Conversion, x: Value, *, axis: int = -1) -> Value:
    return unary(b, x, b.op, axis=x.place(axis))


@operator("Trilu")
def triangle(b: Building, x: Value, k: Constant | None = None, *, upper: int = 1) -> Value:
    """Elements on the other side of the diagonal become 0."""
    ones = np.ones(b.room(*x.shape[-2:]), bool)
    offset = 0 if k is None else int(k.reshape(-1)[0])
    kept = np.triu(ones, offset) if upper else np.tril(ones, offset)
    return combined(b, [Value.of(kept), x, Value.of(np.zeros(1, x.dtype))], "Where", x.dtype)
