"""Float layers whose references are exact but slow, in float32: products, pooling, the error function.

Statistics do not need the references' float64; results differ from theirs in the last bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from compassc.graph import Layer
from compassc.layers.arithmetic import Array
from compassc.layers.rectify import rectify_float
from compassc.layers.windows import Window, window_of

ALONE = 1 << 18
"""Multiplications of a product up to which the BLAS library does it on one core: threads that wait for each other cost
more than they gain, and very much where other programs run, too."""
LEAST_ROWS = 8
Fast = Callable[..., "Array | None"]
"""The one output of a layer; None where the reference is to be asked."""


def _activated(layer: Layer, sums: Array) -> Array:
    method = layer.word("with_activation", "NONE")
    if method == "RELU":
        return np.maximum(sums, np.float32(0), out=sums)
    return rectify_float(layer, method, sums)


def _biases(layer: Layer, outputs: int) -> Array:
    if "biases" not in layer.constants:
        return np.zeros(outputs, np.float32)
    return layer.constants["biases"].reshape(-1).astype(np.float32)


def product(rows: Array, filters: Array) -> Array:
    """rows [M, K] times the transposed filters [N, K], in pieces that one core does."""
    (many, inner), outputs = rows.shape, len(filters)
    piece = ALONE // max(inner * outputs, 1)
    if piece < LEAST_ROWS or many <= piece:
        return np.asarray(rows @ filters.T)
    columns, whole = np.ascontiguousarray(filters.T), many // piece * piece
    made = np.empty((many, outputs), np.float32)
    np.matmul(rows[:whole].reshape(-1, piece, inner), columns, out=made[:whole].reshape(-1, piece, outputs))
    if whole < many:
        np.matmul(rows[whole:], columns, out=made[whole:])
    return made


def padded(x: Array, window: Window, fill: float = 0.0) -> Array:
    if not any(p for pair in window.pads for p in pair):
        return x
    return np.pad(x, ((0, 0), *window.pads, (0, 0)), constant_values=np.float32(fill))


def patches(x: Array, window: Window, positions: tuple[int, ...]) -> Array:
    """[N, positions..., kernel..., C]: a view of what the window sees."""
    strides = x.strides
    inner = tuple(s * d for s, d in zip(strides[1:-1], window.dilation, strict=True))
    outer = tuple(s * step for s, step in zip(strides[1:-1], window.stride, strict=True))
    shape = (x.shape[0], *positions, *window.kernel, x.shape[-1])
    return np.lib.stride_tricks.as_strided(x, shape, (strides[0], *outer, *inner, strides[-1]), writeable=False)


def convolution(layer: Layer, x: Array) -> Array | None:
    weights = layer.constant("weights").astype(np.float32, copy=False)
    window = window_of(layer)
    if weights.ndim != 4 or x.ndim != 4 or any(p < 0 for pair in window.pads for p in pair):
        return None
    outputs, channels = weights.shape[0], x.shape[-1]
    groups = layer.integer("group", channels if layer.type == "DepthwiseConv" else 1)
    positions = window.positions(x.shape[1:-1])
    if weights.shape[1:] != (*window.kernel, channels // groups) or outputs % groups:
        return None
    wide = np.ascontiguousarray(padded(x, window))
    if groups == channels and weights.shape[-1] == 1:
        sums = _depthwise(wide, weights, window, positions)
    else:
        sums = _grouped(wide, weights, window, positions, groups)
    sums += _biases(layer, outputs)
    return _activated(layer, sums)


def _depthwise(x: Array, weights: Array, window: Window, positions: tuple[int, ...]) -> Array:
    """Each cell of the window at a time; output channel o sees the input channel o div multiplier."""
    multiplier = weights.shape[0] // x.shape[-1]
    made: Array | None = None
    for cell in np.ndindex(*window.kernel):
        at = tuple(
            slice(c * d, c * d + (n - 1) * s + 1, s)
            for c, d, s, n in zip(cell, window.dilation, window.stride, positions, strict=True)
        )
        part = x[(slice(None), *at)]
        part = np.repeat(part, multiplier, -1) if multiplier > 1 else part
        product = part * weights[(slice(None), *cell, 0)]
        made = product if made is None else np.add(made, product, out=made)
    assert made is not None
    return made


def _grouped(x: Array, weights: Array, window: Window, positions: tuple[int, ...], groups: int) -> Array:
    own, inner = weights.shape[0] // groups, weights.shape[-1]
    parts = []
    for g in range(groups):
        filters = weights[g * own : (g + 1) * own].reshape(own, -1)
        source = x if groups == 1 else x[..., g * inner : (g + 1) * inner]
        if window.kernel == (1, 1):
            (sy, sx), (oy, ox) = window.stride, positions
            rows = np.ascontiguousarray(source[:, : (oy - 1) * sy + 1 : sy, : (ox - 1) * sx + 1 : sx]).reshape(
                -1, inner
            )
        else:
            rows = np.ascontiguousarray(patches(source, window, positions)).reshape(-1, filters.shape[1])
        parts.append(product(rows, filters).reshape(x.shape[0], *positions, own))
    return parts[0] if groups == 1 else np.concatenate(parts, -1)


def fully_connected(layer: Layer, x: Array) -> Array:
    weights = layer.constant("weights").astype(np.float32, copy=False)
    weights = weights.reshape(weights.shape[0], -1)
    rows = np.ascontiguousarray(x.reshape(-1, weights.shape[1]), np.float32)
    sums = product(rows, weights).reshape(*x.shape[:-1], len(weights))
    sums += _biases(layer, len(weights))
    return _activated(layer, sums)


def pooling(layer: Layer, x: Array) -> Array | None:
    """Maxima and means over whole windows, cell by cell."""
    method = layer.word("method")
    window = window_of(layer)
    positions = tuple(layer.output.shape[1:-1])
    plain = x.ndim == 4 and window.positions(x.shape[1:-1]) == positions
    whole = method == "MAX" or not any(p for pair in window.pads for p in pair)
    if not plain or not whole or method not in ("MAX", "AVG"):
        return None
    if method == "AVG" and window.kernel == x.shape[1:-1]:
        return np.asarray(x.mean((1, 2), keepdims=True, dtype=np.float32))
    wide = padded(x, window, float(np.finfo(np.float32).min))
    made: Array | None = None
    for cell in np.ndindex(*window.kernel):
        at = tuple(
            slice(c * d, c * d + (n - 1) * s + 1, s)
            for c, d, s, n in zip(cell, window.dilation, window.stride, positions, strict=True)
        )
        part = wide[(slice(None), *at)]
        if made is None:
            made = part.copy()
        else:
            (np.maximum if method == "MAX" else np.add)(made, part, out=made)
    assert made is not None
    return made if method == "MAX" else made / np.float32(np.prod(window.kernel))


def erf(x: Array) -> Array:
    """The error function to 1e-6, by the approximation 7.1.26 of Abramowitz and Stegun."""
    magnitude = np.abs(x)
    t = 1 / (1 + np.float32(0.3275911) * magnitude)
    series: Array = np.full((), 1.061405429, np.float32)
    for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series = series * t + np.float32(factor)
    return np.copysign(1 - series * t * np.exp(-magnitude * magnitude), x)


def activation(layer: Layer, x: Array) -> Array | None:
    """GELU, whose reference asks for one number after the other."""
    named = layer.type == "GELU" or layer.type == "Activation" and layer.word("method", "NONE") == "GELU"
    if not named or layer.word("approximate", "NONE") != "NONE":
        return None
    return x * np.float32(0.5) * (1 + erf(x * np.float32(0.5**0.5)))


def moved(layer: Layer, x: Array) -> Any:
    return x.reshape(layer.output.shape) if x.size == layer.output.count else None


FAST: dict[str, Fast] = {
    "Convolution": convolution,
    "DepthwiseConv": convolution,
    "FullyConnected": fully_connected,
    "Pooling": pooling,
    "Reshape": moved,
    "Activation": activation,
    "GELU": activation,
    "Erf": lambda layer, x: erf(x),
}
"""By layer type."""
