"""Activation functions on float32 vectors, by name; fused ones take their parameters `p` and `q` as scalars."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from compassc.dsl import script as S
from compassc.oplib.layer import Layer, Unsupported

Function = Callable[[Any, Any, Any], Any]


class Activation(NamedTuple):
    """`apply(x, p, q)` on a vector, and which layer parameters give p and q: (key, default)."""

    apply: Function
    p: tuple[str, float | None] = ("", 0.0)
    q: tuple[str, float | None] = ("", 0.0)


def sigmoid(x: Any) -> Any:
    return 1.0 / (1.0 + S.exp(0.0 - x))


def _elu(x: Any, alpha: Any) -> Any:
    return S.vsel(x, alpha * (S.exp(S.min(x, 0.0)) - 1.0), x > 0.0)


def _softplus(x: Any) -> Any:
    # log(1 + e^x) = max(x, 0) + log(1 + e^-|x|), which never overflows
    return S.max(x, 0.0) + S.log(1.0 + S.exp(0.0 - S.abs(x)))


TABLE: dict[str, Activation] = {
    "NONE": Activation(lambda x, p, q: x),
    "RELU": Activation(lambda x, p, q: S.max(x, 0.0)),
    "RELU6": Activation(lambda x, p, q: S.min(S.max(x, 0.0), 6.0)),
    "CLIP": Activation(lambda x, p, q: S.min(S.max(x, p), q), ("clip_min", None), ("clip_max", None)),
    "LEAKYRELU": Activation(lambda x, p, q: S.vsel(x, x * p, x >= 0.0), ("negative_slope_value", 0.01)),
    "ELU": Activation(lambda x, p, q: _elu(x, p), ("alpha", 1.0)),
    "SELU": Activation(lambda x, p, q: q * _elu(x, p), ("alpha", 1.67326319), ("gamma", 1.05070102)),
    "SIGMOID": Activation(lambda x, p, q: sigmoid(x)),
    "TANH": Activation(lambda x, p, q: S.tanh(x)),
    "GELU": Activation(lambda x, p, q: 0.5 * x * (1.0 + S.erf(x * 0.7071067811865476))),
    "GELU_TANH": Activation(lambda x, p, q: 0.5 * x * (1.0 + S.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))),
    "SILU": Activation(lambda x, p, q: x * sigmoid(x)),
    "SWISH": Activation(lambda x, p, q: x * sigmoid(x * p), ("alpha", 1.0)),
    "HARDSIGMOID": Activation(lambda x, p, q: S.min(S.max(x * p + q, 0.0), 1.0), ("alpha", 0.2), ("beta", 0.5)),
    "HARDSWISH": Activation(lambda x, p, q: x * S.min(S.max(x + 3.0, 0.0), 6.0) * 0.16666667),
    "MISH": Activation(lambda x, p, q: x * S.tanh(_softplus(x))),
    "SOFTPLUS": Activation(lambda x, p, q: _softplus(x)),
    "SOFTSIGN": Activation(lambda x, p, q: x / (1.0 + S.abs(x))),
    "THRESHOLDEDRELU": Activation(lambda x, p, q: S.vsel(x, x * 0.0, x > p), ("alpha", 1.0)),
}
FUSED = ("NONE", "RELU", "RELU6", "CLIP", "LEAKYRELU")


def values(layer: Layer, name: str) -> tuple[float, float]:
    """The layer's values of the two parameters of an activation."""
    row = TABLE[name]
    p, q = (float(layer.number(key, default)) if key else 0.0 for key, default in (row.p, row.q))
    return p, q


def fused(layer: Layer) -> tuple[str, float, float]:
    """The activation a layer applies to its result."""
    name = layer.word("with_activation", "NONE")
    if name not in FUSED:
        raise Unsupported(f"with_activation {name} is not among {', '.join(FUSED)}")
    return name, *values(layer, name)
