"""The rectifiers: activations that rescale, as layers of their own and fused to the end of another layer.

Quantised, a rectifier takes the wide integers that the layer before it sums up (for a layer of its own: input plus
zero point) and ends in the output's requantisation.
"""

from __future__ import annotations

import numpy as np

from compass_core.arrays import Array
from compassc.graph import Layer, LayerError, Tensor
from compassc.graph.dtypes import INTEGER_TYPES
from compassc.layers.arithmetic import Number, requantise, requantise_as, saturate
from compassc.operators.calls import CallsOn, References, X

FUSED = ("NONE", "RELU", "RELU6", "CLIP", "LEAKYRELU", "PRELU")
INT48 = (-(2**47), 2**47 - 1)
UINT48 = (0, 2**48 - 1)


def rectify(layer: Layer, method: str, values: Array, scale: Number, shift: Number) -> Array:
    """The quantised output of rectifier `method` for integers `values`; scale and shift as `requantise` takes them."""
    out = layer.output
    zero, low, high = on_channels(out, out.zero), out.low, out.high
    if method == "CLIP":
        return _clip(layer, values, scale, shift)
    if method in ("RELU", "RELU6"):
        # the maximum is taken in float32, which matters above 24 bits
        values = np.maximum(values.astype(np.float32), np.float32(0))
    elif method in ("LEAKYRELU", "PRELU"):
        values = _leak(layer, method, values)
    elif method != "NONE":
        raise LayerError(f"the activation {method} has no quantised form here; known: {', '.join(FUSED)}")
    return requantise_as(out.dtype, values, scale, shift, zero, low, high)


def rectify_float(layer: Layer, method: str, values: Array) -> Array:
    """The rectifier on real numbers, in their own float type."""
    return rectified(References(), layer, method, values)


def rectified(call: CallsOn[X], layer: Layer, method: str, x: X) -> X:
    """The rectifier on real numbers in calls of operators."""
    if method == "NONE":
        return x
    if method == "RELU":
        return call("relu", x)
    if method == "RELU6":
        return call("clip", x, 0.0, 6.0)
    if method == "CLIP":
        return call("clip", x, layer.number("clip_min"), layer.number("clip_max"))
    if method == "LEAKYRELU":
        return call("leaky_relu", x, layer.number("negative_slope_value"))
    if method == "PRELU":
        below = call("multiply", call("minimum", x, 0.0), call.constant(slopes_of(layer).astype(np.float32)))
        return call("add", call("relu", x), below)
    raise LayerError(f"the activation {method} is not known; known: {', '.join(FUSED)}")


def slopes_of(layer: Layer) -> Array:
    """The slopes of a PRELU, as few as broadcast to the given ones, so that those of channels have one axis and a single
    one has none. LayerError for slopes that do not broadcast to the output."""
    slopes, out = layer.constant("negative_slope"), layer.output.shape
    while slopes.ndim and slopes.shape[0] == 1:
        slopes = slopes[0]
    if slopes.ndim > len(out) or any(n not in (1, o) for n, o in zip(slopes.shape[::-1], out[::-1], strict=False)):
        given = list(layer.constant("negative_slope").shape)
        raise LayerError(f"'negative_slope' is {given}, which does not broadcast to the output's {list(out)}")
    for axis in range(slopes.ndim):
        first = slopes.take([0], axis)
        slopes = first if (slopes == first).all() else slopes
    return slopes.reshape(slopes.shape[next((i for i, n in enumerate(slopes.shape) if n > 1), slopes.ndim) :])


def on_channels(t: Tensor, value: float | tuple[float, ...]) -> Array:
    """A number, or one per channel, in a shape that broadcasts along the tensor's axis."""
    if np.size(value) == 1:
        return np.asarray(value).reshape(())
    shape = [1] * len(t.shape)
    shape[t.axis if t.axis is not None else -1] = np.size(value)
    return np.asarray(value).reshape(shape)


def _clip(layer: Layer, values: Array, scale: Number, shift: Number) -> Array:
    """Limits in 8 more fraction bits where the output has at most 8 bits; both steps round."""
    out = layer.output
    extra = 8 if INTEGER_TYPES[out.dtype].bits <= 8 else 0
    inner = requantise(
        values, scale, np.asarray(shift) - extra, 0, layer.integer("clip_min"), layer.integer("clip_max")
    )
    return requantise_as(out.dtype, inner, 1, extra, on_channels(out, out.zero), out.low, out.high)


def _leak(layer: Layer, method: str, values: Array) -> Array:
    """Negative values times the slope, in 48 bits."""
    bits = INTEGER_TYPES[layer.output.dtype].bits
    slope: Number = layer.integer("negative_slope_value") if method == "LEAKYRELU" else slopes_of(layer)
    shift = layer.integer("negative_slope_shift", bits)
    limits = UINT48 if method == "PRELU" and not INTEGER_TYPES[layer.output.dtype].signed else INT48
    scaled = np.rint(np.minimum(values, 0).astype(np.float64) * slope * 2.0**-shift) + np.maximum(values, 0)
    return saturate(scaled, *limits)
