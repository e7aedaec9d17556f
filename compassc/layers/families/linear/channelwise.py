"""Element-wise steps with numbers per channel: batch normalisation and the addition of biases, in float32."""

from __future__ import annotations

import numpy as np

from compassc.graph import Layer, LayerError
from compassc.layers.arithmetic import Array
from compassc.layers.channel_bytes import results_of, straight
from compassc.layers.emit import rectify, rectify_float
from compassc.layers.families.linear.formats import floats_only
from compassc.layers.families.linear.reference import has_float_scales, quantised_weights, summed_biases
from compassc.layers.pairs import finish_pair
from compassc.layers.source import LANES, KernelSource, Value

FLOAT_WHOLE = 2**24
"""Integers up to this limit are exact in float32."""


def _along_axis(k: KernelSource, layer: Layer) -> None:
    """Sets the layout of this layer's numbers per channel in the kernel."""
    rank = len(layer.input.shape)
    axis = layer.axis("axis", rank - 1)
    k.channel_shape = tuple(layer.input.shape[axis] if a == axis else 1 for a in range(rank))
    if k.channel and axis != rank - 1:
        raise LayerError("it has numbers per channel, but the channels are not the last axis")


def _numbers(k: KernelSource, layer: Layer, values: Array) -> str:
    """A float32 number of the kernel, or one per channel."""
    channels = layer.input.shape[layer.axis("axis", len(layer.input.shape) - 1)]
    if values.size not in (1, channels):
        raise LayerError(f"{values.size} numbers for {channels} channels")
    flat = values.reshape(-1).astype(np.float32)
    return k.scalar(float(flat[0])) if flat.size == 1 else k.channels(flat)


def channelwise(k: KernelSource, layer: Layer, x: Value) -> Value:
    """BatchNorm, or with weights 1 BiasAdd."""
    _along_axis(k, layer)
    if has_float_scales(layer):
        return _with_float_scales(k, layer, x)
    scaled = layer.type == "BatchNorm"
    if not layer.is_quantised:
        floats_only(layer)
        factor = f" * {_numbers(k, layer, layer.constant('weights'))}" if scaled else ""
        y = k.let(f"{x.name}{factor} + {_numbers(k, layer, layer.constant('biases'))}", "float32")
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
    real, added = k.let(f'S.cast({x.name}, "float32")', "float32").name, _numbers(k, layer, biases)
    if not scaled:
        total = f"{real} + {added}"
    elif np.abs(ends).max() <= FLOAT_WHOLE:  # the product is exact
        start = f"S.vbcast({added}, lanes={LANES})" if biases.size == 1 else added
        total = f"S.fma({start}, {real}, {_numbers(k, layer, weights)})"
    else:
        product = k.let(f"{real} * {_numbers(k, layer, weights)}", "float32").name
        total = f"{product} + {added}"
    span = (int(low.min()) - slack, int(high.max()) + slack)
    return _requantised(k, layer, k.let(total, "float32").name, span)


def _in_bytes(k: KernelSource, layer: Layer, x: Value, weights: Array) -> Value | None:
    """The layer's lines on bytes, each with one rounding; None where they have others."""
    axis = layer.axis("axis", len(layer.input.shape) - 1)
    results = results_of(k, layer, x, axis)
    if results is None:
        return None
    scale, shift = layer.scale_shift(of=len(results))
    slopes = weights * scale.reshape(-1) * 2.0 ** -shift.reshape(-1).astype(float)
    return straight(k, layer, x, results, np.broadcast_to(slopes, len(results)))


def _with_float_scales(k: KernelSource, layer: Layer, x: Value) -> Value:
    """A BiasAdd with scales per channel: in float32, one operation after the other."""
    out = layer.output
    if x.kind != "int32" or not out.is_integer or out.integer.bits > 16:
        raise LayerError(
            f"'scale1' is given, but the tensors are {layer.input.dtype} and {out.dtype}, expected integers"
        )
    first, biases, second = (_numbers(k, layer, layer.constant(c)) for c in ("scale1", "biases", "scale2"))
    k.do(f"real = S.cast({x.name}, 'float32') * {first}")
    k.do(f"real = real + {biases}")
    k.do(f"real = S.rint(real * {second})")
    limited = f"clamp(real, {k.scalar(float(out.low))}, {k.scalar(float(out.high))})"
    return k.let(f'S.cast({limited}, "int32")', "int32", out.low, out.high)


def _requantised(k: KernelSource, layer: Layer, total: str, span: tuple[int, int]) -> Value:
    """The output's value of a whole float32 number."""
    scale, shift = layer.scale_shift(of=layer.input.shape[layer.axis("axis", len(layer.input.shape) - 1)])
    method = layer.word("with_activation", "NONE")
    if max(map(abs, span)) < 2**31 - 256:
        acc = k.let(f'S.cast({total}, "int32")', "int32", *span)
        k.float_forms[acc.name] = total
        return rectify(k, layer, method, acc, scale, shift)
    for name in ("high", "low"):
        k.do(f'{name} = S.cast({total} * 0.0, "int32")')
    k.do(f"split_float(high, low, {total})")
    return finish_pair(k, layer, span, scale, shift)
