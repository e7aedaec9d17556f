"""The step of whole numbers times multipliers of 31 bits, rounded as runtimes of quantised models do."""

from __future__ import annotations

import numpy as np

from compassc.build import Value
from compassc.graph import Layer, LayerError
from compassc.layers.arithmetic import TWICE_TONEAREST, UPWARD
from compassc.layers.families.eltwise.reference import fixed_point_terms
from compassc.layers.families.linear.channelwise import along_axis
from compassc.layers.kernels import elementwise
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.requantise import INT32_MAX, limited, operand
from compassc.layers.vectors import high_word, shifted_again


@elementwise("FixedPoint")
def fixed_point(k: LayerKernel, layer: Layer, x: Value) -> Value:
    """The high word of a product of 62 bits, by four products of 16 bits, and what is left of the shift."""
    along_axis(k, layer)
    scale, shift, rounding = fixed_point_terms(layer)
    value = k.shifted(x, -layer.integer("x_zero_point", 0))
    left, right = np.maximum(31 - shift, 0), np.maximum(shift - 31, 0)
    low, high = (end << int(left.max()) for end in (value.low, value.high))
    if low < -(2**31) or high > INT32_MAX:
        raise LayerError(f"numbers from {value.low} to {value.high} times 2^{int(left.max())} do not fit 32 bits")
    if left.any():
        value = k.let(value << operand(k, left), low=min(low, value.low), high=max(high, value.high))
    ends = [v * scale / 2.0 ** np.maximum(shift, 31) for v in (value.low, value.high)]
    low, high = (int(np.clip(f(ends), -(2**31) + 1, INT32_MAX - 1)) for f in (np.min, np.max))
    made = k.let(value + 0, low=low - 1, high=high + 1)
    nudge = np.where(right == 0, 1 << 15, 0) if rounding == UPWARD else np.asarray([1 << 15])
    k.paste(high_word, made, operand(k, scale >> 15), operand(k, scale & 0x7FFF), operand(k, nudge))
    if right.any():
        away = np.where(right > 0, -1, 0) if rounding == TWICE_TONEAREST else np.asarray([0])
        steps = (away, right, np.maximum(right - 1, 0), np.minimum(right, 1))
        k.paste(shifted_again, made, *(operand(k, step) for step in steps))
    moved = k.shifted(made, layer.integer("y_zero_point", 0))
    out = layer.output
    return moved if out.low <= moved.low and moved.high <= out.high else limited(k, moved, out.low, out.high)
