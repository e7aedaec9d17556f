"""Convolutions, fully connected layers, matrix products and batch normalisation."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

from compass_core.arrays import Array
from compassc.graph import Layer, LayerError
from compassc.graph.dtypes import numpy_dtype
from compassc.layers.arithmetic import Number, requantise, requantise_as, saturate, saturate_int32
from compassc.layers.declare import Attribute, Constant
from compassc.layers.rectify import rectify, rectify_float
from compassc.layers.window_products import exact_type, window_sums
from compassc.layers.windows import window_of

WITH_ACTIVATION = Attribute("with_activation", "word", "the rectifier applied to the result", "NONE")
NUM_OUTPUT = Attribute(
    "num_output", "count", "output channels", "as weights", told=lambda layer: layer.output.shape[-1]
)
GROUP = Attribute("group", "count", "groups of channels that do not see each other", "1")
WEIGHTS = Constant("weights", "[O,KH,KW,I/group]", "the weights; per output channel one filter")
BIASES = Constant("biases", "[O]", "added to the sums; quantised in the scale input times weights", optional=True)


def quantised_weights(layer: Layer, key: str = "weights") -> Array:
    """Quantised weights with their zero point, int64."""
    return narrow_weights(layer, key).astype(np.int64, copy=False)


def narrow_weights(layer: Layer, key: str = "weights") -> Array:
    """The same; int16 where that holds them, for there may be many."""
    found = compact_weights(layer, key)
    return found.astype(np.int16) if found.dtype.itemsize == 1 else found


def compact_weights(layer: Layer, key: str = "weights") -> Array:
    """The same; bytes as they are stored where their zero point is 0: what is computed of them may not fit their type."""
    zero, weights = _constant_or_number(layer, f"{key}_zp"), layer.constant(key)
    is_plain, is_byte = zero.size == 1 and not zero.any(), weights.dtype in (np.int8, np.uint8)
    if is_plain:
        return weights if is_byte else weights.astype(np.int64)
    kind = np.int16 if is_byte and np.abs(zero).max(initial=0) < 1 << 14 else np.int64
    return weights.astype(kind) + zero.astype(kind).reshape(zero.shape + (1,) * (weights.ndim - zero.ndim))


def summed_biases(layer: Layer, outputs: int) -> Array:
    if "biases" not in layer.constants:
        return np.zeros(outputs, np.int64)
    biases = layer.constants["biases"].reshape(-1).astype(np.int64)
    if biases.size != outputs:
        raise LayerError(f"'biases' has {biases.size} values, but there are {outputs} output channels")
    return biases + _constant_or_number(layer, "biases_zp")


def float_biases(layer: Layer, outputs: int) -> Array:
    if "biases" not in layer.constants:
        return np.zeros(outputs, np.float64)
    biases = layer.constants["biases"].reshape(-1).astype(np.float64)
    if biases.size != outputs:
        raise LayerError(f"'biases' has {biases.size} values, but there are {outputs} output channels")
    return biases


def _constant_or_number(layer: Layer, key: str) -> Array:
    """A quantisation value that is a constant where there are several; 0 where there is none."""
    if key in layer.constants:
        return layer.constants[key].reshape(-1).astype(np.int64)
    value = layer.attributes.get(key, 0)
    if isinstance(value, list):
        return np.asarray(value, np.int64)
    return np.asarray(int(value) if isinstance(value, (int, float)) else 0, np.int64)


def finish(layer: Layer, sums: Array, biases: Array) -> Array:
    """Biases, the shift ahead of wide accumulators, and the fused activation."""
    scale, shift = layer.scale_shift(of=sums.shape[-1])
    if has_ahead_shift(layer):
        amount, shift = ahead_shift(layer, shift)
        sums = requantise(sums, 1, amount, 0, -(2**31), 2**31 - 1) + biases_ahead(biases, amount)
    else:
        sums = sums + biases
    return rectify(layer, layer.word("with_activation", "NONE"), sums, scale, shift)


def has_ahead_shift(layer: Layer) -> bool:
    """Whether sums of more than 8-bit operands enter a 32-bit scaler: they are shifted before the biases."""
    wide = layer.input.integer.bits > 8 or layer.constants.get("weights", np.zeros(0, np.int8)).dtype.itemsize > 1
    return layer.has("remain_shift") and wide


def ahead_shift(layer: Layer, shift: Array) -> tuple[int, Array]:
    """(how far sums are shifted before the biases are added, the shift that remains for the requantisation).

    An activation that reads a scalar shift takes the whole one, so that results are shifted twice.
    """
    remain, first = layer.integer("remain_shift"), int(np.atleast_1d(shift)[0])
    if first <= remain:
        return 0, shift
    method = layer.word("with_activation", "NONE")
    if method != "NONE" and "shift" not in layer.constants:
        if method == "RELU6":
            raise LayerError("'remain_shift' with RELU6 and a scalar shift has no meaning")
        return first - remain, shift
    return first - remain, np.full_like(shift, remain)


def biases_ahead(biases: Array, amount: int) -> Array:
    """Biases that are added to sums shifted by `amount`; those that are not shifted are not limited."""
    return saturate(biases >> amount, -(2**31), 2**31) if amount else biases


def groups_of(layer: Layer) -> int:
    """Groups of channels that do not see each other."""
    return layer.integer("group", layer.input.shape[-1] if layer.type == "DepthwiseConv" else 1)


def _at_once(layer: Layer) -> bool:
    """Whether what follows the sums may have numbers for places of the output, and not for its channels alone."""
    out = layer.output
    by_place = np.size(out.zero) > 1 and out.axis not in (None, -1, len(out.shape) - 1)
    return by_place or layer.word("with_activation", "NONE") == "PRELU"


def _windowed(
    layer: Layer,
    x: Array,
    weights: Array,
    fill: float,
    kind: np.dtype[np.generic] | type,
    end: Callable[[Array], Array],
) -> Array:
    """`end(sums)` of the sums of products under the window, as the type `kind`."""
    whole = _at_once(layer)
    made = window_sums(
        x, weights, window_of(layer), groups_of(layer), fill, (lambda sums: sums) if whole else end,
        weights.dtype.type if whole else kind,
    )  # fmt: skip
    return end(made) if whole else made


def convolution(layer: Layer, x: Array) -> Array:
    """In float64, as the sums of float32 products are defined."""
    weights = _spatial_order(layer, layer.constant("weights")).astype(np.float64)
    biases, method = float_biases(layer, weights.shape[0]), layer.word("with_activation", "NONE")
    return _windowed(layer, x, weights, 0.0, np.float64, lambda sums: rectify_float(layer, method, sums + biases))


def _exact(layer: Layer, weights: Array) -> Array:
    """Weights in the type that sums of their products with the input are exact in."""
    x = layer.input
    return weights.astype(exact_type(weights, max(abs(x.low), abs(x.high), abs(x.scalar_zero))))


def quantised_convolution(layer: Layer, x: Array) -> Array:
    """The input's zero point is in the biases, and the padding is its negative, which means 0."""
    weights = _exact(layer, _spatial_order(layer, narrow_weights(layer)))
    biases, fill = summed_biases(layer, weights.shape[0]), -layer.input.scalar_zero

    def end(sums: Array) -> Array:
        return finish(layer, sums.astype(np.int64), biases)

    return _windowed(layer, x, weights, fill, numpy_dtype(layer.output.dtype), end)


def _spatial_order(layer: Layer, weights: Array) -> Array:
    """Volumes have their weights as [O,KH,KW,KD,I]; here the depth comes first, as in the data."""
    return np.moveaxis(weights, 3, 1) if weights.ndim == 5 else weights


def _transposed(layer: Layer, x: Array, weights: Array, groups: int) -> Array:
    """Every input element adds its filter to the output; then the pads are cut off. Weights [O/group,K...,I]."""
    window = window_of(layer)
    outputs, inner = weights.shape[0] * groups, x.shape[-1] // groups
    extra = tuple(layer.integer(f"output_padding_{a}", 0) for a in "zyx"[-len(window.kernel) :])
    full = [(n - 1) * s + r + e for n, s, r, e in zip(x.shape[1:-1], window.stride, window.reach, extra, strict=True)]
    result = np.zeros((x.shape[0], *full, outputs), x.dtype)
    for cell in product(*(range(k) for k in window.kernel)):
        at = tuple(
            slice(c * d, c * d + (n - 1) * s + 1, s)
            for c, d, n, s in zip(cell, window.dilation, x.shape[1:-1], window.stride, strict=True)
        )
        for g in range(groups):
            filters: tuple[slice | int, ...] = (slice(None), *cell, slice(g * inner, (g + 1) * inner))
            part = x[..., g * inner : (g + 1) * inner] @ weights[filters].T
            own = slice(g * weights.shape[0], (g + 1) * weights.shape[0])
            result[(slice(None), *at, own)] += part
    cut = tuple(slice(b, n - a) for n, (b, a) in zip(full, window.pads, strict=True))
    return result[(slice(None), *cut, slice(None))]


def transposed_convolution(layer: Layer, x: Array) -> Array:
    weights = _spatial_order(layer, layer.constant("weights")).astype(np.float64)
    sums = _transposed(layer, x.astype(np.float64), weights, layer.integer("group", 1))
    return rectify_float(layer, layer.word("with_activation", "NONE"), sums + float_biases(layer, sums.shape[-1]))


def quantised_transposed_convolution(layer: Layer, x: Array) -> Array:
    """The biases hold the input's zero point as for a convolution, so that the sums are of x plus zero point less it."""
    weights = _spatial_order(layer, quantised_weights(layer)).astype(np.float64)
    zero, groups = layer.input.scalar_zero, layer.integer("group", 1)
    sums = _transposed(layer, x.astype(np.float64) + zero, weights, groups).astype(np.int64)
    return finish(layer, sums, summed_biases(layer, sums.shape[-1]) - absorbed(layer, weights))


def absorbed(layer: Layer, weights: Array) -> Array:
    """What the biases of a transposed convolution hold of the input's zero point; weights [O/group,K...,I]."""
    groups = layer.integer("group", 1)
    apart = weights.reshape(len(weights), -1, groups, weights.shape[-1] // groups).astype(np.int64, copy=False)
    sums: Array = apart.sum((1, 3)).T.reshape(-1)
    return sums * layer.input.scalar_zero


def biases_around_shift(layer: Layer, outputs: int) -> tuple[Array, Array]:
    """(what is added to sums of stored inputs before they are shifted ahead of the biases, and the biases).

    A transposed convolution adds the zero point to its inputs, so that no bias has a part in it.
    """
    biases = summed_biases(layer, outputs)
    turned = layer.type in ("ConvTranspose", "ConvTranspose3D")
    before = absorbed(layer, narrow_weights(layer)) if turned else np.zeros_like(biases)
    return before, biases - before


def fully_connected(layer: Layer, x: Array) -> Array:
    weights = layer.constant("weights").astype(np.float32)
    weights = weights.reshape(weights.shape[0], -1)
    sums = x.astype(np.float32) @ weights.T + float_biases(layer, weights.shape[0]).astype(np.float32)
    return rectify_float(layer, layer.word("with_activation", "NONE"), sums)


def quantised_fully_connected(layer: Layer, x: Array) -> Array:
    weights = _exact(layer, narrow_weights(layer))
    weights = weights.reshape(weights.shape[0], -1)
    sums = (x.astype(weights.dtype) @ weights.T).astype(np.int64)
    return finish(layer, sums, summed_biases(layer, weights.shape[0]))


def _matrices(layer: Layer, a: Array, b: Array) -> tuple[Array, Array]:
    """The operands, transposed where the layer says so."""
    left = a.swapaxes(-1, -2) if layer.flag("trans_a", False) else a
    right = b.swapaxes(-1, -2) if layer.flag("trans_b", False) else b
    return left, right


def matmul(layer: Layer, a: Array, b: Array) -> Array:
    left, right = _matrices(layer, a.astype(np.float32), b.astype(np.float32))
    return left @ right * np.float32(layer.number("fused_multiplier", 1.0))


def quantised_matmul(layer: Layer, a: Array, b: Array) -> Array:
    wide = [x.astype(np.int64) + t.scalar_zero for x, t in zip((a, b), layer.inputs, strict=True)]
    left, right = _matrices(layer, *wide)
    sums = (left.astype(np.float64) @ right.astype(np.float64)).astype(np.int64)
    scale, shift = layer.scale_shift(of=1)
    if layer.has("remain_shift") and max(t.integer.bits for t in layer.inputs[:2]) > 8:
        sums, shift = _ahead_shift_products(sums, shift, layer.integer("remain_shift"))
    out = layer.output
    return requantise_as(out.dtype, sums, scale, shift, out.scalar_zero, out.low, out.high)


def _ahead_shift_products(sums: Array, shift: Array, remain: int) -> tuple[Array, Array]:
    if int(shift) <= remain:
        return saturate_int32(sums), shift
    return requantise(sums, 1, int(shift) - remain, 0, -(2**31), 2**31 - 1), np.asarray(remain)


def gemm(layer: Layer, a: Array, b: Array, c: Array | None = None) -> Array:
    left, right = _matrices(layer, a.astype(np.float32), b.astype(np.float32))
    y = np.float32(layer.number("alpha", 1.0)) * (left @ right)
    return y if c is None else y + np.float32(layer.number("beta", 1.0)) * c.astype(np.float32)


def quantised_gemm(layer: Layer, a: Array, b: Array, c: Array | None = None) -> Array:
    """With two inputs the sign of alpha applies after the zero point and the limits."""
    wide = [x.astype(np.int64) + t.scalar_zero for x, t in zip((a, b), layer.inputs, strict=False)]
    left, right = _matrices(layer, *wide)
    sums = (left.astype(np.float64) @ right.astype(np.float64)).astype(np.int64)
    scale, shift = layer.scale_shift()
    out, sign = layer.output, int(np.sign(layer.number("alpha", 1.0)))
    if c is None:
        return requantise(sums, scale, shift, out.scalar_zero, out.low, out.high) * sign
    if scale.size != 3:
        raise LayerError(f"'scale_value' has {scale.size} values, expected 3 for three inputs")
    other = (c.astype(np.int64) + layer.inputs[2].scalar_zero) * int(scale[2])
    total = sums * int(scale[1]) * sign + other * int(np.sign(layer.number("beta", 1.0)))
    return requantise(total, int(scale[0]), shift, out.scalar_zero, out.low, out.high)


def matmul_integer(layer: Layer, a: Array, b: Array) -> Array:
    """The product of integers minus their zero points, without rescaling."""
    zeros = layer.integer("a_zero_point", 0), layer.integer("b_zero_point", 0)
    left, right = (x.astype(np.int64) - z for x, z in zip((a, b), zeros, strict=True))
    return (left.astype(np.float64) @ right.astype(np.float64)).astype(np.int64)


def zero_points_apart(layer: Layer) -> bool:
    """Whether zero points are attributes that are subtracted, and not those of the tensors."""
    return layer.has("x_zero_point") and not layer.has("weights_zp") and "weights_zp" not in layer.constants


def conv_integer(layer: Layer, x: Array) -> Array:
    """Float form: zero points are subtracted; quantised form: as a convolution without rescaling."""
    apart = zero_points_apart(layer)
    if apart:
        x = x.astype(np.int64) - layer.integer("x_zero_point", 0)
        weights = layer.constant("weights").astype(np.int64) - layer.integer("w_zero_point", 0)
    else:
        weights = quantised_weights(layer)
    biases, fill = summed_biases(layer, weights.shape[0]), 0 if apart else -layer.input.scalar_zero
    return _windowed(layer, x, weights.astype(np.float64), fill, np.int64, lambda sums: sums.astype(np.int64) + biases)


def _on_axis(layer: Layer, values: Array, rank: int) -> Array:
    """A value per channel, shaped to broadcast along the layer's axis; shorter ones are repeated."""
    axis = layer.axis("axis", rank - 1)
    channels = layer.input.shape[axis]
    if values.size not in (1, channels):
        raise LayerError(f"{values.size} weights for {channels} channels on axis {axis}")
    shape = [1] * rank
    shape[axis] = values.size
    return values.reshape(shape)


def batch_norm(layer: Layer, x: Array) -> Array:
    weights = _on_axis(layer, layer.constant("weights").astype(np.float32), x.ndim)
    biases = _on_axis(layer, layer.constant("biases").astype(np.float32), x.ndim)
    return rectify_float(layer, layer.word("with_activation", "NONE"), x.astype(np.float32) * weights + biases)


def quantised_batch_norm(layer: Layer, x: Array) -> Array:
    """Products and sums are float32, one operation after the other; the input's zero point is in the biases."""
    weights = _on_axis(layer, quantised_weights(layer).reshape(-1), x.ndim)
    biases = _on_axis(layer, summed_biases(layer, layer.constant("biases").size), x.ndim)
    sums = x.astype(np.float32) * weights.astype(np.float32) + biases.astype(np.float32)
    scale, shift = (_per_channel(layer, v, x.ndim) for v in layer.scale_shift())
    return rectify(layer, layer.word("with_activation", "NONE"), sums, scale, shift)


def _per_channel(layer: Layer, values: Array, rank: int) -> Number:
    return values if values.size == 1 else _on_axis(layer, values, rank)


def has_float_scales(layer: Layer) -> bool:
    """Whether a BiasAdd of integers has scales per channel in float32."""
    return layer.type == "BiasAdd" and "scale1" in layer.constants


def bias_add(layer: Layer, x: Array) -> Array:
    if has_float_scales(layer):
        # its constants are floats, but its tensors are integers
        return _with_float_scales(layer, x)
    return x.astype(np.float32) + _on_axis(layer, layer.constant("biases").astype(np.float32), x.ndim)


def quantised_bias_add(layer: Layer, x: Array) -> Array:
    """A batch normalisation with weights 1."""
    sums = x.astype(np.float32) + _on_axis(layer, summed_biases(layer, layer.constant("biases").size), x.ndim).astype(
        np.float32
    )
    scale, shift = (_per_channel(layer, v, x.ndim) for v in layer.scale_shift())
    return rectify(layer, "NONE", sums, scale, shift)


def _with_float_scales(layer: Layer, x: Array) -> Array:
    first, biases, second = (
        _on_axis(layer, layer.constant(c).astype(np.float32).reshape(-1), x.ndim)
        for c in ("scale1", "biases", "scale2")
    )
    real = (x.astype(np.float32) * first + biases) * second
    return saturate(np.rint(real), layer.output.low, layer.output.high)
