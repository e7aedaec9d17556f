"""Activations and other functions of one operand: by table when quantised, or by rescaling (the rectifiers)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.arithmetic import Array, look_up, look_up_range, requantise, saturate, whole_limits
from compassc.layers.rectify import rectify, rectify_float
from compassc.layers.special import erf

Function = Callable[[Array, Mapping[str, float]], Array]
F32 = np.float32


class TableFunction(NamedTuple):
    """A function that is a table when quantised. `parameters`: its parameters with their defaults."""

    function: Function
    summary: str
    parameters: Mapping[str, float] = {}
    use: str = "common"


def sigmoid(x: Array) -> Array:
    return F32(1) / (F32(1) + np.exp(-x))


def softplus(x: Array) -> Array:
    return np.where(x > 20, x, np.log1p(np.exp(np.minimum(x, F32(20)))))


def _elu(x: Array, alpha: float) -> Array:
    return np.where(x > 0, x, F32(alpha) * np.expm1(np.minimum(x, F32(0))))


def _gelu(x: Array, p: Mapping[str, float]) -> Array:
    return x * F32(0.5) * (F32(1) + erf(x * F32(math.sqrt(0.5))))


def gelu_tanh(x: Array) -> Array:
    inner = F32(math.sqrt(2 / math.pi)) * (x + F32(0.044715) * x * x * x)
    return x * F32(0.5) * (F32(1) + np.tanh(inner))


def _celu(x: Array, p: Mapping[str, float]) -> Array:
    alpha = F32(p["alpha"])
    return np.maximum(x, 0) + np.minimum(F32(0), alpha * np.expm1(x / alpha))


def _shrink(x: Array, p: Mapping[str, float]) -> Array:
    bound, bias = F32(p["lambd"]), F32(p["bias"])
    return np.where(x < -bound, x + bias, np.where(x > bound, x - bias, F32(0)))


def _hyperbolic(x: Array, sign: int) -> Array:
    """cosh (1) or sinh (-1), which beyond 80 does not overflow before its result does."""
    a = np.abs(x)
    far = F32(np.exp(80.0) / 2) * np.exp(a - F32(80)) + sign * np.exp(-a) / F32(2)
    near = np.cosh(a) if sign > 0 else np.sinh(a)
    value = np.where(a > 80, far, near)
    return value if sign > 0 else np.where(x < 0, -value, value)


METHODS: dict[str, TableFunction] = {
    "SIGMOID": TableFunction(lambda x, p: sigmoid(x), "1 / (1 + e^-x)"),
    "TANH": TableFunction(lambda x, p: np.tanh(x), "the hyperbolic tangent"),
    "GELU": TableFunction(_gelu, "x times the normal distribution's probability up to x"),
    "SILU": TableFunction(lambda x, p: x * sigmoid(x), "x * sigmoid(x)"),
    "SWISH": TableFunction(lambda x, p: x * sigmoid(F32(p["alpha"]) * x), "x * sigmoid(alpha * x)", {"alpha": 1.0}),
    "HARDSWISH": TableFunction(lambda x, p: x * np.clip(x + 3, 0, 6) / F32(6), "x * clip(x + 3, 0, 6) / 6"),
    "HARDSIGMOID": TableFunction(
        lambda x, p: np.maximum(
            F32(p["clip_min"]), np.minimum(F32(p["alpha"]) * x + F32(p["beta"]), F32(p["clip_max"]))
        ),
        "alpha * x + beta, limited",
        {"alpha": 0.2, "beta": 0.5, "clip_min": 0.0, "clip_max": 1.0},
    ),
    "MISH": TableFunction(lambda x, p: x * np.tanh(softplus(x)), "x * tanh(softplus(x))"),
    "ELU": TableFunction(lambda x, p: _elu(x, p["alpha"]), "x, or alpha * (e^x - 1) where negative", {"alpha": 1.0}),
    "SELU": TableFunction(
        lambda x, p: F32(p["gamma"]) * _elu(x, p["alpha"]),
        "gamma times ELU",
        {"alpha": 1.67326319, "gamma": 1.05070102},
        "rare",
    ),
    "CELU": TableFunction(_celu, "max(0, x) + min(0, alpha * (e^(x / alpha) - 1))", {"alpha": 1.0}, "rare"),
    "SOFTPLUS": TableFunction(lambda x, p: softplus(x), "log(1 + e^x)"),
    "SOFTSIGN": TableFunction(lambda x, p: x / (F32(1) + np.abs(x)), "x / (1 + |x|)", {}, "rare"),
    "SHRINK": TableFunction(_shrink, "x moved toward 0 by bias, 0 within lambd", {"lambd": 0.5, "bias": 0.0}, "rare"),
    "THRESHOLDEDRELU": TableFunction(
        lambda x, p: np.where(x > p["alpha"], x, F32(0)), "x above alpha, else 0", {"alpha": 1.0}, "rare"
    ),
    "EXP": TableFunction(lambda x, p: np.exp(x), "e^x"),
    "SQUARE": TableFunction(lambda x, p: x * x, "x^2"),
    "LOG": TableFunction(lambda x, p: np.log(x), "the natural logarithm"),
    "ERF": TableFunction(lambda x, p: erf(x), "the error function"),
    "FLOOR": TableFunction(lambda x, p: np.floor(x), "the largest integer not above x", {}, "sometimes"),
    "CEIL": TableFunction(lambda x, p: np.ceil(x), "the smallest integer not below x", {}, "rare"),
    "TRUNC": TableFunction(lambda x, p: np.trunc(x), "x without its fraction", {}, "rare"),
    "ROUND": TableFunction(lambda x, p: np.rint(x), "the nearest integer, ties to even", {}, "rare"),
    "TAN": TableFunction(lambda x, p: np.tan(x), "the tangent", {}, "rare"),
    "SINH": TableFunction(lambda x, p: _hyperbolic(x, -1), "the hyperbolic sine", {}, "rare"),
    "COSH": TableFunction(lambda x, p: _hyperbolic(x, 1), "the hyperbolic cosine", {}, "rare"),
    "ASIN": TableFunction(lambda x, p: np.nan_to_num(np.arcsin(x), nan=2147483647.0), "the arc sine", {}, "rare"),
    "ACOS": TableFunction(lambda x, p: np.arccos(x), "the arc cosine", {}, "rare"),
    "ATAN": TableFunction(lambda x, p: np.arctan(x), "the arc tangent", {}, "rare"),
    "ASINH": TableFunction(lambda x, p: np.arcsinh(x), "the inverse hyperbolic sine", {}, "rare"),
    "ACOSH": TableFunction(lambda x, p: np.arccosh(x), "the inverse hyperbolic cosine", {}, "rare"),
    "ATANH": TableFunction(
        lambda x, p: np.nan_to_num(np.arctanh(x), nan=float(np.finfo(F32).max)),
        "the inverse hyperbolic tangent",
        {},
        "rare",
    ),
    "UNKNOWN": TableFunction(lambda x, p: x, "a function that only its table tells", {}, "rare"),
}
"""Functions by method name."""

ALONE = {
    "SIGMOID": ("Sigmoid",),
    "TANH": ("Tanh",),
    "GELU": ("GELU",),
    "SILU": ("Silu",),
    "SWISH": ("Swish",),
    "HARDSWISH": ("Hardswish",),
    "HARDSIGMOID": ("HardSigmoid",),
    "MISH": ("MISH",),
    "ELU": ("ELU",),
    "SELU": ("SELU",),
    "CELU": ("CELU",),
    "SOFTPLUS": ("Softplus",),
    "SOFTSIGN": ("Softsign",),
    "SHRINK": ("SHRINK",),
    "THRESHOLDEDRELU": ("THRESHOLDEDRELU",),
    "EXP": ("Exp",),
    "SQUARE": ("Square",),
    "LOG": ("Log",),
    "ERF": ("Erf",),
    "FLOOR": ("Floor",),
    "CEIL": ("Ceil",),
    "TRUNC": ("Trunc",),
    "ROUND": ("Round",),
    "TAN": ("Tan",),
    "SINH": ("Sinh",),
    "COSH": ("Cosh",),
    "ASIN": ("Asin",),
    "ACOS": ("Acos",),
    "ATAN": ("Atan",),
    "ASINH": ("Asinh",),
    "ACOSH": ("Acosh",),
    "ATANH": ("Atanh",),
}
"""Method -> layer types that are this method alone."""
RECTIFIERS = {"RELU": "RELU", "RELU6": "RELU6", "CLIP": "Clip", "LEAKYRELU": "LeakyRELU", "PRELU": "PRELU"}
METHOD_OF = {name: method for method, names in ALONE.items() for name in names} | {
    name: method for method, name in RECTIFIERS.items()
}
"""Layer type -> method."""


def method_of(layer: Layer) -> str:
    return METHOD_OF.get(layer.type) or layer.word("method")


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


def activation(layer: Layer, x: Array) -> Array:
    method = method_of(layer)
    if method in ("NONE", *RECTIFIERS):
        wide = x.astype(np.float32) if method == "RELU" else x
        return rectify_float(layer, method, wide)
    if method == "CRELU":
        wide = x.astype(np.float32)
        return np.concatenate([np.maximum(wide, 0), np.maximum(-wide, 0)], layer.axis("axis", 0))
    if method not in METHODS:
        raise LayerError(f"the method {method} is not known; known: {', '.join((*METHODS, *RECTIFIERS))}")
    if is_approximated(layer):
        return approximated(layer, method, x.astype(np.float32))
    wide = x.astype(np.float32)
    if method == "GELU" and layer.word("approximate", "NONE", ("NONE", "TANH")) == "TANH":
        return gelu_tanh(wide)
    return METHODS[method].function(wide, parameters_of(layer, method))


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
        from compassc.layers.arithmetic import exp2_float

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


class PlainTable(NamedTuple):
    """A function whose table starts at the lowest input value."""

    function: Callable[[Array], Array]
    summary: str


def _bnll(x: Array) -> Array:
    wide = x.astype(np.float64)
    return np.where(wide > 0, wide + np.log1p(np.exp(-np.abs(wide))), np.log1p(np.exp(np.minimum(wide, 0))))


PLAIN = {
    "Sqrt": PlainTable(lambda x: np.sqrt(x.astype(F32)), "the square root"),
    "Rsqrt": PlainTable(lambda x: x.dtype.type(1) / np.sqrt(x), "the reciprocal of the square root"),
    "Reciprocal": PlainTable(lambda x: x.dtype.type(1) / x, "1 / x"),
    "BNLL": PlainTable(_bnll, "log(1 + e^x)"),
}


def _plain(layer: Layer, x: Array) -> Array:
    return PLAIN[layer.type].function(x)


def plain_tabled(layer: Layer, x: Array) -> Array:
    table = layer.constant("lut").reshape(-1)
    return look_up(x.astype(np.int64) - layer.input.low, table, layer.input.integer.bits, False)


def trigonometric(layer: Layer, x: Array) -> Array:
    if is_approximated(layer):
        return approximated(layer, layer.type.upper(), x.astype(np.float32))
    return np.sin(x) if layer.type == "Sine" else np.cos(x)


def quantised_trigonometric(layer: Layer, x: Array) -> Array:
    """Of 16-bit inputs the position within a period is an index of the table."""
    if layer.input.integer.bits <= 8:
        return plain_tabled(layer, x)
    table = layer.constant("lut").reshape(-1).astype(np.int64)
    scale, shift = layer.scale_shift(of=1)
    at = requantise(x.astype(np.int64) + layer.input.scalar_zero, scale, shift, 0, -(2**31), 2**31 - 1)
    return table[at & (len(table) - 1)]


def quantised_abs(layer: Layer, x: Array) -> Array:
    out = layer.output
    wide = np.abs(x.astype(np.int64) + layer.input.scalar_zero)
    return requantise(wide, *layer.scale_shift(of=1), out.scalar_zero, out.low, out.high)


def quantised_negative(layer: Layer, x: Array) -> Array:
    out = layer.output
    return saturate(-(x.astype(np.int64) + layer.input.scalar_zero) - out.scalar_zero, out.low, out.high)


def quantised_sign(layer: Layer, x: Array) -> Array:
    return np.sign(x.astype(np.int64) + layer.input.scalar_zero)
