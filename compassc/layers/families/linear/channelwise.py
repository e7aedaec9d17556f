"""Element-wise steps with numbers per channel: batch normalisation and the addition of biases, in float32."""

from __future__ import annotations

import numpy as np

from compass_core.arrays import Array
from compassc.build import Value
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError
from compassc.layers.channel_bytes import results_of, straight
from compassc.layers.emit import rectify, rectify_float
from compassc.layers.families.linear.formats import floats_only
from compassc.layers.families.linear.reference import has_float_scales, quantised_weights, summed_biases
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.requantise import Pair
from compassc.layers.vectors import LANES, clamp, split_float

FLOAT_WHOLE = 2**24
"""Integers up to this limit are exact in float32."""


def along_axis(k: LayerKernel, layer: Layer) -> None:
    """Sets the layout of this layer's numbers per channel in the kernel."""
    rank = len(layer.input.shape)
    axis = layer.axis("axis", rank - 1)
    k.channel_shape = tuple(layer.input.shape[axis] if a == axis else 1 for a in range(rank))
    if k.lanes_are_channels and axis != rank - 1:
        raise LayerError("it has numbers per channel, but the channels are not the last axis")


def _numbers(k: LayerKernel, layer: Layer, values: Array) -> Value:
    """A float32 number of the kernel, or one per channel."""
    channels = layer.input.shape[layer.axis("axis", len(layer.input.shape) - 1)]
    if values.size not in (1, channels):
        raise LayerError(f"{values.size} numbers for {channels} channels")
    flat = values.reshape(-1).astype(np.float32)
    return k.number(float(flat[0])) if flat.size == 1 else k.channels(flat)


def channelwise(k: LayerKernel, layer: Layer, x: Value) -> Value:
    """BatchNorm, or with weights 1 BiasAdd."""
    along_axis(k, layer)
    if has_float_scales(layer):
        return _with_float_scales(k, layer, x)
    scaled = layer.type == "BatchNorm"
    if not layer.is_quantised:
        floats_only(layer)
        times = x * _numbers(k, layer, layer.constant("weights")) if scaled else x
        y = k.let(times + _numbers(k, layer, layer.constant("biases")))
        return rectify_float(k, layer, layer.word("with_activation", "NONE"), y)
    weights = quantised_weights(layer).reshape(-1) if scaled else np.ones(1, np.int64)
    if (known := _in_bytes(k, layer, x, weights)) is not None:
        return known
    biases = summed_biases(layer, layer.constant("biases").size)
    ends = np.stack([weights * x.low, weights * x.high])
    low, high = ends.min(0) + biases, ends.max(0) + biases
    # three roundings to 24 bits
    slack = 4 * (
        max(-int(low.min()), int(high.max()), int(np.abs(biases).max()), int(np.abs(ends).max())) // FLOAT_WHOLE
    )
    real, added = k.let(S.cast(x, "float32")), _numbers(k, layer, biases)
    if not scaled:
        total = real + added
    elif np.abs(ends).max() <= FLOAT_WHOLE:  # the product is exact
        start = S.vbcast(added, lanes=LANES) if biases.size == 1 else added
        total = S.fma(start, real, _numbers(k, layer, weights))
    else:
        total = k.let(real * _numbers(k, layer, weights)) + added
    span = (int(low.min()) - slack, int(high.max()) + slack)
    return _requantised(k, layer, k.let(total), span)


def _in_bytes(k: LayerKernel, layer: Layer, x: Value, weights: Array) -> Value | None:
    """The layer's lines on bytes, each with one rounding; None where they have others."""
    axis = layer.axis("axis", len(layer.input.shape) - 1)
    results = results_of(k, layer, x, axis)
    if results is None:
        return None
    scale, shift = layer.scale_shift(of=len(results))
    slopes = weights * scale.reshape(-1) * 2.0 ** -shift.reshape(-1).astype(float)
    return straight(k, layer, x, results, np.broadcast_to(slopes, len(results)))


def _with_float_scales(k: LayerKernel, layer: Layer, x: Value) -> Value:
    """A BiasAdd with scales per channel: in float32, one operation after the other."""
    out = layer.output
    if x.kind != "int32" or not out.is_integer or out.integer.bits > 16:
        raise LayerError(
            f"'scale1' is given, but the tensors are {layer.input.dtype} and {out.dtype}, expected integers"
        )
    first, biases, second = (_numbers(k, layer, layer.constant(c)) for c in ("scale1", "biases", "scale2"))
    real = k.let(k.let(S.cast(x, "float32") * first) + biases)
    rounded = k.let(S.rint(real * second))
    limited = clamp(rounded, k.number(float(out.low)), k.number(float(out.high)))
    return k.let(S.cast(limited, "int32"), low=out.low, high=out.high)


def _requantised(k: LayerKernel, layer: Layer, total: Value, span: tuple[int, int]) -> Value:
    """The output's value of a whole float32 number."""
    scale, shift = layer.scale_shift(of=layer.input.shape[layer.axis("axis", len(layer.input.shape) - 1)])
    method = layer.word("with_activation", "NONE")
    if max(map(abs, span)) < 2**31 - 256:
        acc = k.let(S.cast(total, "int32"), low=span[0], high=span[1])
        k.float_forms[acc.name] = total
        return rectify(k, layer, method, acc, scale, shift)
    pair = Pair(k.let(S.cast(total * 0.0, "int32")), k.let(S.cast(total * 0.0, "int32")), *span)
    k.paste(split_float, pair.high, pair.low, total)
    return rectify(k, layer, layer.word("with_activation", "NONE"), pair, scale, shift)
