"""What the layers compute, in NumPy and double precision."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
erf = np.vectorize(math.erf, otypes=["float64"])


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _softplus(x: Array) -> Array:
    return np.logaddexp(0, x)


ACTIVATIONS: dict[str, tuple[Any, dict[str, Any]]] = {
    "RELU": (lambda x: np.maximum(x, 0), {}),
    "RELU6": (lambda x: np.clip(x, 0, 6), {}),
    "CLIP": (lambda x: np.clip(x, -1.5, 0.75), {"clip_min": -1.5, "clip_max": 0.75}),
    "LEAKYRELU": (lambda x: np.where(x >= 0, x, 0.125 * x), {"negative_slope_value": 0.125}),
    "ELU": (lambda x: np.where(x > 0, x, 0.5 * np.expm1(x)), {"alpha": 0.5}),
    "SELU": (lambda x: 1.05 * np.where(x > 0, x, 1.67 * np.expm1(x)), {"alpha": 1.67, "gamma": 1.05}),
    "SIGMOID": (_sigmoid, {}),
    "TANH": (np.tanh, {}),
    "GELU": (lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))), {"approximate": "NONE"}),
    "SILU": (lambda x: x * _sigmoid(x), {}),
    "SWISH": (lambda x: x * _sigmoid(1.5 * x), {"alpha": 1.5}),
    "HARDSIGMOID": (lambda x: np.clip(0.3 * x + 0.4, 0, 1), {"alpha": 0.3, "beta": 0.4}),
    "HARDSWISH": (lambda x: x * np.clip(x + 3, 0, 6) / 6, {}),
    "MISH": (lambda x: x * np.tanh(_softplus(x)), {}),
    "SOFTPLUS": (_softplus, {}),
    "SOFTSIGN": (lambda x: x / (1 + np.abs(x)), {}),
    "THRESHOLDEDRELU": (lambda x: np.where(x > 0.7, x, 0), {"alpha": 0.7}),
}


def gelu_tanh(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def window_keys(kernel: tuple[int, int], stride: int = 1, pad: int = 0, dilation: int = 1) -> dict[str, int]:
    """The parameters of a window; `kernel` is (height, width)."""
    keys = {"kernel_y": kernel[0], "kernel_x": kernel[1]}
    for side in ("left", "right", "top", "bottom"):
        keys[f"pad_{side}"] = pad
    for axis in "xy":
        keys |= {f"stride_{axis}": stride, f"dilation_{axis}": dilation}
    return keys


def windows(x: Array, kernel: tuple[int, int], stride: int, pad: int, dilation: int, fill: float) -> Array:
    """[n, oh, ow, c, kh, kw]: what each position of the window sees."""
    padded = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)), constant_values=fill)
    reach = tuple(dilation * (k - 1) + 1 for k in kernel)
    seen = np.lib.stride_tricks.sliding_window_view(padded, reach, (1, 2))
    return seen[:, ::stride, ::stride, :, ::dilation, ::dilation]


def requantised(total: Array, factor: Array, zero: int, low: int = -128) -> Array:
    """int8 results of whole-number sums; products are float32, rounded half to even."""
    real = np.rint(total.astype("float32") * factor.astype("float32")) - zero
    return np.clip(real, low, 127).astype("int8")
