"""Products and convolutions of real numbers by operators."""

from __future__ import annotations

from math import prod

import numpy as np

from compass_core.arrays import Array
from compassc.graph import Layer, LayerError
from compassc.layers.families.linear.reference import groups_of
from compassc.layers.rectify import rectified
from compassc.layers.windows import window_of
from compassc.operators.calls import Calls, Operand, Outputs


def _biased(call: Calls, layer: Layer, sums: Operand) -> Operand:
    """Sums with biases and the activation of a layer."""
    if "biases" in layer.constants:
        sums = call("add", sums, call.constant(layer.constant("biases").reshape(-1).astype(np.float32)))
    return rectified(call, layer, layer.word("with_activation", "NONE"), sums)


def convolution_body(call: Calls, layer: Layer, x: Operand) -> Outputs:
    window, weights, channels = window_of(layer), layer.constant("weights").astype(np.float32), layer.input.shape[-1]
    if weights.ndim != 4:
        raise LayerError("the operators convolve images")
    (top, bottom), (left, right) = window.pads
    if min(top, bottom, left, right) < 0:
        raise LayerError("the operators have no convolution that cuts elements off")
    how = {"dilation": list(window.dilation), "padding": [top, left, bottom, right], "stride": list(window.stride)}
    filters, groups = np.ascontiguousarray(np.moveaxis(weights, 0, -1)), groups_of(layer)
    if groups == 1:
        return _biased(call, layer, call("conv2d_nhwc", x, call.constant(filters), **how))
    if groups == channels:
        own = filters.reshape(*filters.shape[:2], channels, -1)
        return _biased(call, layer, call("depthwise_conv2d_nhwc", x, call.constant(own), **how))
    return _biased(call, layer, call("group_conv2d_nhwc", x, call.constant(filters), **how, groups=groups))


def fully_connected_body(call: Calls, layer: Layer, x: Operand) -> Outputs:
    weights = layer.constant("weights").astype(np.float32)
    matrix = call.constant(weights.reshape(weights.shape[0], -1))
    if len(layer.input.shape) == 2:
        return _biased(call, layer, call("dense", x, matrix))
    rows = call("reshape", x, [-1, layer.input.shape[-1]])
    return call("reshape", _biased(call, layer, call("dense", rows, matrix)), list(layer.output.shape))


def matmul_body(call: Calls, layer: Layer, a: Operand, b: Operand) -> Outputs:
    """A batch is one axis; operands whose leading axes are stretched to each other's have no expression."""
    left, right = (t.shape for t in layer.inputs)
    turned = layer.flag("trans_a", False), layer.flag("trans_b", False)
    if len(left) == len(right) == 2:
        found = call("matmul", a, b, *turned)
    elif left[:-2] == right[:-2]:
        batches = (call("reshape", x, [prod(s[:-2]), *s[-2:]]) for x, s in ((a, left), (b, right)))
        found = call("reshape", call("batch_matmul", *batches, *turned), list(layer.output.shape))
    else:
        raise LayerError(f"the batches {list(left[:-2])} and {list(right[:-2])} differ")
    factor = layer.number("fused_multiplier", 1.0)
    return found if factor == 1 else call("multiply", found, factor)


def _along(layer: Layer, values: Array) -> Array:
    """Numbers of channels, to broadcast to the input."""
    axis = layer.axis("axis", -1)
    return values.reshape([-1 if d == axis else 1 for d in range(len(layer.input.shape))]).astype(np.float32)


def batch_norm_body(call: Calls, layer: Layer, x: Operand) -> Outputs:
    found = bias_add_body(call, layer, call("multiply", x, call.constant(_along(layer, layer.constant("weights")))))
    return rectified(call, layer, layer.word("with_activation", "NONE"), found)


def bias_add_body(call: Calls, layer: Layer, x: Operand) -> Operand:
    return call("add", x, call.constant(_along(layer, layer.constant("biases"))))
