"""Activations that models spell out in arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import pi, sqrt

from compassc.graph.layer import Layer
from compassc.graph.patterns import Fusion, Match, Pattern, anything, call, number

X = anything("x")


def _activation(method: str, **given: object) -> Callable[[Match], Sequence[Layer] | None]:
    def make(m: Match) -> Sequence[Layer] | None:
        if m["x"].shape != m.root.output.shape:
            return None
        return m.layer("Activation", [m["x"]], method=method, **given)

    return make


def square(x: Pattern) -> Pattern:
    return call("Square", x) | x * x | call("Pow", x, 2.0)


def root(x: Pattern) -> Pattern:
    return call("Sqrt", x) | call("Pow", x, 0.5)


def _cube(x: Pattern) -> Pattern:
    return call("Pow", x, 3.0) | square(x) * x


def _clip(x: Pattern, low: float, high: float) -> Pattern:
    if (low, high) == (0, 6):
        return call("Activation", x, method="RELU6")
    return call("Activation", x, method="CLIP", clip_min=low, clip_max=high)


_ERF = call("Erf", X / sqrt(2)) | call("Erf", X * (1 / sqrt(2)))
_HALF = X * 0.5 | X / 2.0
GELU = (X * (_ERF + 1.0)) * 0.5 | _HALF * (_ERF + 1.0) | X * ((_ERF + 1.0) * 0.5)
_INNER = (X + _cube(X) * 0.044715) * sqrt(2 / pi) | (X * sqrt(2 / pi)) * ((square(X) * 0.044715) + 1.0)
_TANH = call("Tanh", _INNER) + 1.0
GELU_TANH = (X * _TANH) * 0.5 | _HALF * _TANH | X * (_TANH * 0.5)
_STEPS = _clip(X + 3.0, 0.0, 6.0)
HARD_SIGMOID = _STEPS / 6.0 | _STEPS * (1 / 6)
_HARD = call("Activation", X, method="HARDSIGMOID", clip_min=0.0, clip_max=1.0, name="sigmoid")
HARD_SWISH = (X * _STEPS) / 6.0 | (X * _STEPS) * (1 / 6) | X * (_STEPS / 6.0) | X * (_STEPS * (1 / 6))


def _hard_swish(m: Match) -> Sequence[Layer] | None:
    given = m.layers["sigmoid"].attributes
    near = abs(float(str(given["alpha"])) - 1 / 6) < 1e-6 and abs(float(str(given["beta"])) - 0.5) < 1e-6
    return _activation("HARDSWISH")(m) if near else None


def _swish(m: Match) -> Sequence[Layer] | None:
    return _activation("SWISH", alpha=m.number("a"))(m)


def _leaky(m: Match) -> Sequence[Layer] | None:
    slope = m.number("a")
    return _activation("LEAKYRELU", negative_slope_type="float32", negative_slope_value=slope)(m)


FUSIONS = (
    Fusion(GELU, _activation("GELU", approximate="NONE")),
    Fusion(GELU_TANH, _activation("GELU", approximate="TANH")),
    Fusion(HARD_SWISH, _activation("HARDSWISH")),
    Fusion(X * _HARD, _hard_swish),
    Fusion(HARD_SIGMOID, _activation("HARDSIGMOID", alpha=1 / 6, beta=0.5, clip_min=0.0, clip_max=1.0)),
    Fusion(X * call("Sigmoid", X), _activation("SILU")),
    Fusion(X * call("Sigmoid", X * number("a")), _swish),
    Fusion(X * call("Tanh", call("Softplus", X)), _activation("MISH")),
    Fusion(call("Log", call("Exp", X) + 1.0), _activation("SOFTPLUS")),
    Fusion(call("Relu", X) - call("Relu", call("Negative", X)) * number("a"), _leaky),
    Fusion(X / (call("Abs", X) + 1.0), _activation("SOFTSIGN")),
)
