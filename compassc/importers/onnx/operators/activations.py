"""Activations: the layer Activation by its methods."""

from __future__ import annotations

from typing import Any

import numpy as np

from compass_core.arrays import NumpyDType
from compassc.graph.dtypes import numpy_dtype
from compassc.importers.building import Building
from compassc.importers.onnx.declare import Constant, operator
from compassc.importers.onnx.operators.elementwise import combined, extreme, in_floats, unary
from compassc.importers.values import Refused, Value, stored_type

PLAIN = {
    "Sigmoid": "SIGMOID",
    "Tanh": "TANH",
    "Softplus": "SOFTPLUS",
    "Softsign": "SOFTSIGN",
    "HardSwish": "HARDSWISH",
    "Mish": "MISH",
}
SELU_ALPHA, SELU_GAMMA = 1.67326319217681884765625, 1.05070102214813232421875


def activation(b: Building, x: Value, method: str, **given: object) -> Value:
    """An Activation layer; whole numbers as real ones and back."""
    return in_floats(b, x, lambda v: unary(b, v, "Activation", method=method, **given))


def _declare_plain(name: str, method: str) -> None:
    @operator(name)
    def handler(b: Building, x: Value) -> Value:
        return activation(b, x, method)


for _name, _method in PLAIN.items():
    _declare_plain(_name, _method)


@operator("Relu")
def relu(b: Building, x: Value) -> Value:
    return activation(b, x, "RELU") if x.is_float else extreme(b, x, Value.of(np.zeros(1, x.dtype)), "MAX")


@operator("LeakyRelu")
def leaky_relu(b: Building, x: Value, *, alpha: float = 0.01) -> Value:
    return activation(b, x, "LEAKYRELU", negative_slope_type="float32", negative_slope_value=alpha)


@operator("Elu")
def elu(b: Building, x: Value, *, alpha: float = 1.0) -> Value:
    return activation(b, x, "ELU", alpha=alpha)


@operator("Celu", since=12)
def celu(b: Building, x: Value, *, alpha: float = 1.0) -> Value:
    return activation(b, x, "CELU", alpha=alpha)


@operator("ThresholdedRelu", since=10)
def thresholded_relu(b: Building, x: Value, *, alpha: float = 1.0) -> Value:
    return activation(b, x, "THRESHOLDEDRELU", alpha=alpha)


@operator("Selu")
def selu(b: Building, x: Value, *, alpha: float = SELU_ALPHA, gamma: float = SELU_GAMMA) -> Value:
    return activation(b, x, "SELU", alpha=alpha, gamma=gamma)


@operator("HardSigmoid")
def hard_sigmoid(b: Building, x: Value, *, alpha: float = 0.2, beta: float = 0.5) -> Value:
    return activation(b, x, "HARDSIGMOID", alpha=alpha, beta=beta, clip_min=0.0, clip_max=1.0)


@operator("Shrink", since=9)
def shrink(b: Building, x: Value, *, bias: float = 0.0, lambd: float = 0.5) -> Value:
    return activation(b, x, "SHRINK", bias=bias, lambd=lambd)


@operator("Gelu", since=20)
def gelu(b: Building, x: Value, *, approximate: str = "none") -> Value:
    return activation(b, x, "GELU", approximate=approximate.upper())


@operator("Swish", since=24)
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


@operator("Softmax", "LogSoftmax", since=13)
def softmax(b: Building, x: Value, *, axis: int = -1) -> Value:
    return _softmax(b, x, axis, _node_type(b))


@operator("Softmax", "LogSoftmax")
def softmax_of_rows(b: Building, x: Value, *, axis: int = 1) -> Value:
    """Over all axes from `axis` on."""
    axis = x.axis(axis)
    if all(size == 1 for size in x.shape[axis + 1 :]):
        return _softmax(b, x, axis, _node_type(b))
    flat = b.reshape(x, (int(np.prod(x.shape[:axis])), int(np.prod(x.shape[axis:]))))
    return b.reshape(_softmax(b, flat, 1, _node_type(b)), x.shape)


def _node_type(b: Any) -> str:
    return b.op


def _softmax(b: Building, x: Value, axis: int, type: str) -> Value:
    at = x.place(axis) if x.tensor is not None else x.axis(axis)
    return unary(b, x, type, axis=at)


@operator("Hardmax", since=13)
def hardmax(b: Building, x: Value, *, axis: int = -1) -> Value:
    return unary(b, x, "Hardmax", axis=x.place(axis))


@operator("Hardmax")
def hardmax_of_rows(b: Building, x: Value, *, axis: int = 1) -> Value:
    axis = x.axis(axis)
    flat = b.reshape(x, (int(np.prod(x.shape[:axis])), int(np.prod(x.shape[axis:]))))
    return b.reshape(unary(b, flat, "Hardmax", axis=flat.place(1)), x.shape)


@operator("Trilu", since=14)
def triangle(b: Building, x: Value, k: Constant | None = None, *, upper: int = 1) -> Value:
    """Elements on the other side of the diagonal become 0."""
    ones = np.ones(b.room(*x.shape[-2:]), bool)
    offset = 0 if k is None else int(k.reshape(-1)[0])
    kept = np.triu(ones, offset) if upper else np.tril(ones, offset)
    return combined(b, [Value.of(kept), x, Value.of(np.zeros(1, x.dtype))], "Where", x.dtype)
