"""Activations and other functions of one operand: by table when quantised, or by rescaling (the rectifiers)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from compass_core.arrays import Array
from compass_core.namedtuple import NamedTuple
from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.arithmetic import exp2_float, look_up, look_up_range, requantise, saturate, whole_limits
from compassc.layers.rectify import rectified, rectify
from compassc.operators.calls import Calls, Operand, References, all_operators

F32 = np.float32


class Method(NamedTuple):
    """A function that is a table when quantised: the operator that it is, and the layer type that is this method alone."""

    operator: str
    type: str
    use: str = "common"

    @property
    def parameters(self) -> Mapping[str, float]:
        """Its parameters with their defaults."""
        return all_operators()[self.operator].attributes


METHODS: dict[str, Method] = {
    "SIGMOID": Method("sigmoid", "Sigmoid"),
    "TANH": Method("tanh", "Tanh"),
    "GELU": Method("gelu", "GELU"),
    "SILU": Method("silu", "Silu"),
    "SWISH": Method("swish", "Swish"),
    "HARDSWISH": Method("hard_swish", "Hardswish"),
    "HARDSIGMOID": Method("hard_sigmoid", "HardSigmoid"),
    "MISH": Method("mish", "MISH"),
    "ELU": Method("elu", "ELU"),
    "SELU": Method("selu", "SELU", "rare"),
    "CELU": Method("celu", "CELU", "rare"),
    "SOFTPLUS": Method("softplus", "Softplus"),
    "SOFTSIGN": Method("softsign", "Softsign", "rare"),
    "SHRINK": Method("shrink", "SHRINK", "rare"),
    "THRESHOLDEDRELU": Method("thresholded_relu", "THRESHOLDEDRELU", "rare"),
    "EXP": Method("exp", "Exp"),
    "LOG": Method("log", "Log"),
    "ERF": Method("erf", "Erf"),
    "SQUARE": Method("square", "Square"),
    "FLOOR": Method("floor", "Floor", "sometimes"),
    "CEIL": Method("ceil", "Ceil", "rare"),
    "TRUNC": Method("trunc", "Trunc", "rare"),
    "ROUND": Method("round", "Round", "rare"),
    "TAN": Method("tan", "Tan", "rare"),
    "SINH": Method("sinh", "Sinh", "rare"),
    "COSH": Method("cosh", "Cosh", "rare"),
    "ASIN": Method("asin", "Asin", "rare"),
    "ACOS": Method("acos", "Acos", "rare"),
    "ATAN": Method("atan", "Atan", "rare"),
    "ASINH": Method("asinh", "Asinh", "rare"),
    "ACOSH": Method("acosh", "Acosh", "rare"),
    "ATANH": Method("atanh", "Atanh", "rare"),
}
"""Functions by method name."""
LARGEST = float(np.finfo(F32).max)
OUTSIDE = {"ASIN": 2147483647.0, "ATANH": LARGEST}
"""What functions are beyond their domain, where that is a number."""
UNKNOWN = "UNKNOWN"
"""The method of a function that only its table tells."""
PLAIN = {"Sqrt": "sqrt", "Rsqrt": "rsqrt", "Reciprocal": "reciprocal", "BNLL": "softplus"}
"""Layer types whose table starts at the lowest input value, with their operators."""
PERIODIC = {"Sine": "sin", "Cosine": "cos"}
TABLED = (*(m.type for m in METHODS.values()), *PLAIN, *PERIODIC)
"""Layer types that are tables when quantised."""

RECTIFIERS = {"RELU": "RELU", "RELU6": "RELU6", "CLIP": "Clip", "LEAKYRELU": "LeakyRELU", "PRELU": "PRELU"}
METHOD_OF = {m.type: method for method, m in METHODS.items()} | {name: method for method, name in RECTIFIERS.items()}
"""Layer type -> method."""
FUNCTIONS = ("Activation", *METHOD_OF)
"""Layer types that are a function by its method."""


def method_of(layer: Layer) -> str:
    return METHOD_OF.get(layer.type) or layer.word("method")


def function_of(layer: Layer) -> str:
    """What function a layer is: its method where it has one, else its type."""
    return method_of(layer) if layer.type in FUNCTIONS else layer.type


def parameters_of(layer: Layer, method: str) -> dict[str, float]:
    return {key: layer.number(key, default) for key, default in METHODS[method].parameters.items()}


def table_base(t: Tensor) -> int:
    """The value of a tensor that the first entry of its table is of: one below the lowest where the range is the same on
    both sides."""
    return t.low - (1 if t.integer.signed and -t.low == t.high else 0)


def tabled(layer: Layer, x: Array) -> Array:
    """The table of the layer at the input's position in its range."""
    table = layer.constant("lut").reshape(-1)
    found = look_up(x.astype(np.int64) - table_base(layer.input), table, layer.input.integer.bits, False)
    return np.clip(found, *whole_limits(table))


def activation_body(call: Calls, layer: Layer, x: Operand) -> Any:
    method = method_of(layer)
    if is_approximated(layer):
        raise LayerError(f"its {method} is a table, which no operator is")
    if method in ("NONE", *RECTIFIERS):
        return rectified(call, layer, method, x)
    if method == "CRELU":
        negative = call("relu", call("negative", x))
        return call("concatenate", [call("relu", x), negative], axis=layer.axis("axis", 0))
    if method == UNKNOWN:
        return x
    if method not in METHODS:
        raise LayerError(f"the method {method} is not known; known: {', '.join((*METHODS, *RECTIFIERS))}")
    if method == "GELU" and layer.word("approximate", "NONE", ("NONE", "TANH")) == "TANH":
        return call("gelu_tanh", x)
    found = call(METHODS[method].operator, x, **parameters_of(layer, method))
    if method in OUTSIDE:
        limited = call("clip", found, -LARGEST, LARGEST)
        return call("where", call("isnan", found), OUTSIDE[method], limited)
    return found


def activation(layer: Layer, x: Array) -> Array:
    wide = x.astype(np.float32)
    if is_approximated(layer):
        return approximated(layer, method_of(layer), wide)
    found: Array = activation_body(References(), layer, wide)
    return found


TIMES_INPUT = ("SILU", "SWISH", "GELU", "MISH")
"""Methods whose range table holds a factor of the input."""


def is_approximated(layer: Layer) -> bool:
    """Whether a layer of floats is a table over an interval."""
    return not layer.is_quantised and layer.flag("is_perf_mode", False) and "lut" in layer.constants


class FloatTable(NamedTuple):
    """A table of float entries: `scale` entries to 1, the first one at `offset` entries from 0, entries plus `value_offset`."""

    entries: Array
    mode: str
    scale: float = 1.0
    offset: float = 0.0
    value_offset: float = 0.0


def float_table(layer: Layer, method: str) -> FloatTable:
    """The table of an approximated layer; LayerError where it has none, or one that its function does not follow from."""
    if method == "COSH":
        raise LayerError(
            "'is_perf_mode' is true: the table of a COSH is not that of the function its result is made of"
        )
    table = layer.constant("lut").reshape(-1).astype(F32)
    mode = layer.word("lut_mode", "NORMAL", ("NORMAL", "MIRROR", "EXP"))
    if mode == "EXP":
        if table.size != 513 or method != "EXP":
            raise LayerError(f"'lut' has {table.size} entries for {method}, expected the 513 of powers of two for EXP")
        return FloatTable(table, mode)
    if table.size < 2:
        raise LayerError(f"'lut' has {table.size} entries, expected at least 2")
    return FloatTable(
        table, mode, *(layer.number(f"{key}_value") for key in ("index_scale", "index_offset", "value_offset"))
    )


def approximated(layer: Layer, method: str, x: Array) -> Array:
    """A float layer by a table over an interval."""
    table, mode, *numbers = float_table(layer, method)
    if mode == "EXP":
        return exp2_float(x * F32(1.442695), table)
    if method in ("SINE", "COSINE"):
        turned = x + F32(math.pi / 2) if method == "COSINE" else x
        x = turned - F32(2 * math.pi) * np.trunc(turned / F32(2 * math.pi))
    scale, offset, value_offset = numbers
    found = look_up_range(x, table, scale, offset, mode == "MIRROR", value_offset)
    return x * found if method in TIMES_INPUT else found


def quantised_activation(layer: Layer, x: Array) -> Array:
    method = method_of(layer)
    if method in ("NONE", *RECTIFIERS):
        scale, shift = layer.scale_shift()
        wide = x.astype(np.int64) + np.asarray(layer.input.zero)
        return rectify(layer, method, wide, scale, shift)
    if method == "CRELU":
        wide = x.astype(np.int64) + layer.input.scalar_zero
        both = np.concatenate([np.maximum(wide, 0), np.maximum(-wide, 0)], layer.axis("axis", 0))
        out = layer.output
        return requantise(both, *layer.scale_shift(of=1), out.scalar_zero, out.low, out.high)
    return tabled(layer, x)


def plain_tabled(layer: Layer, x: Array) -> Array:
    table = layer.constant("lut").reshape(-1)
    return look_up(x.astype(np.int64) - layer.input.low, table, layer.input.integer.bits, False)


def periodic_body(call: Calls, layer: Layer, x: Operand) -> Any:
    if is_approximated(layer):
        raise LayerError("it is a table, which no operator is")
    return call(PERIODIC[layer.type], x)


def periodic(layer: Layer, x: Array) -> Array:
    wide = x.astype(np.float32)
    if is_approximated(layer):
        return approximated(layer, layer.type.upper(), wide)
    found: Array = periodic_body(References(), layer, wide)
    return found


def quantised_periodic(layer: Layer, x: Array) -> Array:
    """Of 16-bit inputs the position within a period is an index of the table."""
    if layer.input.integer.bits <= 8:
        return plain_tabled(layer, x)
    table = layer.constant("lut").reshape(-1).astype(np.int64)
    scale, shift = layer.scale_shift(of=1)
    at = requantise(x.astype(np.int64) + layer.input.scalar_zero, scale, shift, 0, -(2**31), 2**31 - 1)
    found: Array = table[at & (len(table) - 1)]
    return found


def quantised_abs(layer: Layer, x: Array) -> Array:
    out = layer.output
    wide = np.abs(x.astype(np.int64) + layer.input.scalar_zero)
    return requantise(wide, *layer.scale_shift(of=1), out.scalar_zero, out.low, out.high)


def quantised_negative(layer: Layer, x: Array) -> Array:
    out = layer.output
    return saturate(-(x.astype(np.int64) + layer.input.scalar_zero) - out.scalar_zero, out.low, out.high)


def quantised_sign(layer: Layer, x: Array) -> Array:
    return np.sign(x.astype(np.int64) + layer.input.scalar_zero)
