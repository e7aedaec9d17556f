"""Activations."""

from __future__ import annotations

import numpy as np

from compassc.importers.building import Building
from compassc.importers.onnx.operators.activations import clipped
from compassc.importers.onnx.operators.elementwise import arithmetic, cast, divide, extreme, prelu, unary
from compassc.importers.onnx.operators.quantised import Levels, as_marked, marked
from compassc.importers.onnx.operators.quantised_forms import factor
from compassc.importers.onnx.operators.reduce import reduced
from compassc.importers.tflite.convert import Conversion
from compassc.importers.tflite.declare import Call, operator, quantised, tabled
from compassc.importers.tflite.endings import Ending, limited_integers
from compassc.importers.values import Refused, Value

PLAIN = {"LOGISTIC": "sigmoid", "TANH": "tanh", "HARD_SWISH": "hard_swish", "ELU": "elu"}
"""Operators that are operators of the registry."""
LIMITS = {
    "RELU": Ending(0.0),
    "RELU6": Ending(0.0, 6.0),
    "RELU_N1_TO_1": Ending(-1.0, 1.0),
    "RELU_0_TO_1": Ending(0.0, 1.0),
}


def _declare_plain(name: str, made: str) -> None:
    given: dict[str, object] = {"alpha": 1.0} if made == "elu" else {}

    @operator(name)
    def handler(b: Building, x: Value) -> Value:
        return b.made(made, x, **given)


def _declare_limits(name: str, ending: Ending) -> None:
    @operator(name)
    def handler(b: Building, x: Value) -> Value:
        high = None if ending.high is None else np.float32(ending.high)
        return clipped(b, x, np.float32(ending.low), high)

    @quantised(name)
    def form(b: Conversion, call: Call, out: Levels) -> Value | None:
        return limited_integers(b, rescaled(b, call, out), out, ending)


def rescaled(b: Conversion, call: Call, out: Levels) -> Value:
    """Integers in other steps."""
    found = call.pair(0)
    if found is None or not found[0].levels.is_one:
        raise Refused("its input is not quantised as a whole")
    x = found[0]
    if x.levels.matches(out):
        return x.value
    tensor, order = as_marked(b, x)
    with marked(b, out):
        made = b.layer(
            "Activation", [tensor], tensor.shape, out.dtype.name, method="NONE", **factor(x.levels.scale / out.scale)
        )
    return b.value(made, out.dtype, order)


for _name, _made in PLAIN.items():
    _declare_plain(_name, _made)
for _name, _ending in LIMITS.items():
    _declare_limits(_name, _ending)
tabled(*PLAIN, "GELU")


@operator("GELU")
def gelu(b: Building, x: Value, *, approximate: bool = False) -> Value:
    return b.made("gelu_tanh" if approximate else "gelu", x)


@operator("LEAKY_RELU")
def leaky_relu(b: Building, x: Value, *, alpha: float) -> Value:
    return b.made("leaky_relu", x, alpha=alpha)


@operator("PRELU")
def prelu_layer(b: Building, x: Value, slope: Value) -> Value:
    return prelu(b, x, slope)


@operator("SOFTMAX")
def softmax(b: Building, x: Value, *, beta: float) -> Value:
    if beta != 1:
        x = arithmetic(b, x, Value.of(np.full(1, beta, np.float32)), "Mul")
    return _along_last(b, x, "Softmax")


@operator("LOG_SOFTMAX")
def log_softmax(b: Building, x: Value) -> Value:
    return _along_last(b, x, "LogSoftmax")


def _along_last(b: Building, x: Value, type: str) -> Value:
    _, order = b.stored(x)
    return b.mapped(type, x, order, axis=order.index(x.rank - 1))


@operator("L2_NORMALIZATION")
def l2_normalization(b: Building, x: Value) -> Value:
    """Over the last axis, with a norm of at least 1e-6."""
    norm = unary(b, reduced(b, unary(b, x, "Square"), "SUM", [x.rank - 1]), "Sqrt")
    return divide(b, x, extreme(b, norm, Value.of(np.full(1, 1e-6, np.float32)), "MAX"))


@operator("QUANTIZE", "DEQUANTIZE")
def as_real(b: Conversion, x: Value) -> Value:
    """The numbers as they are: what stands for them is a matter of tensors."""
    return cast(b, x, np.float32)


@quantised("QUANTIZE")
def requantised(b: Conversion, call: Call, out: Levels) -> Value | None:
    return rescaled(b, call, out)
