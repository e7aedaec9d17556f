"""Normalisation over axes: layer, instance, group and RMS norm, mean and variance, norms of vectors, local responses."""

from __future__ import annotations

import numpy as np

from compass_core.arrays import Array
from compassc.graph import Layer, LayerError
from compassc.layers.arithmetic import inverse_root, look_up, requantise, saturate
from compassc.operators.arrays import larger

F32 = np.float32


def weights_zp(layer: Layer, key: str) -> Array:
    if key in layer.constants:
        return layer.constants[key].reshape(-1).astype(np.int64)
    value = layer.attributes.get(key, 0)
    return np.asarray(value if isinstance(value, (int, list)) else 0, np.int64)


def norm_axes(layer: Layer) -> tuple[int, ...]:
    rank = len(layer.input.shape)
    if layer.type == "InstanceNorm" and not layer.has("axis"):
        return tuple(range(1, rank - 1))
    if layer.type == "InstanceNorm":
        return tuple(layer.axes())
    return tuple(layer.axes("axis", -1))


def affine(layer: Layer, key: str) -> Array | None:
    """Factors or addends, shaped to broadcast to the input: int64 with their zero point, or float32; None: there are none.

    They are shaped like the reduced axes; those of an InstanceNorm and a GroupNorm are per channel.
    """
    if key not in layer.constants:
        return None
    values, shape = layer.constant(key), layer.input.shape
    whole = values.astype(np.int64) if layer.is_quantised else values.astype(F32)
    if layer.is_quantised:
        zero = weights_zp(layer, f"{key}_zp")
        whole = whole + (zero.reshape(whole.shape) if zero.size == whole.size else zero)
    axes = _affine_axes(layer)
    own = tuple(n if i in axes else 1 for i, n in enumerate(shape))
    squeezed = [n for n in own if n > 1]
    if [n for n in values.shape if n > 1] == squeezed:
        return whole.reshape(own)
    padded = (1,) * (len(shape) - values.ndim) + values.shape
    if len(padded) != len(shape) or any(n not in (1, m) for n, m in zip(padded, shape, strict=True)):
        raise LayerError(
            f"'{key}' of shape {list(values.shape)} does not broadcast to {list(shape)}, axes {list(axes)}"
        )
    return whole.reshape(padded)


def _affine_axes(layer: Layer) -> tuple[int, ...]:
    if layer.type == "GroupNorm":
        return (layer.axis("axis", -1),)
    return (len(layer.input.shape) - 1,) if layer.type == "InstanceNorm" else norm_axes(layer)


def factors(layer: Layer) -> tuple[Array, Array]:
    """Multipliers and shifts of the output: one, or one per element of the last axis that has weights, to broadcast."""
    scale, shift = layer.scale_shift()
    axis, rank = _affine_axes(layer)[-1], len(layer.input.shape)
    shape = [-1 if i == axis else 1 for i in range(rank)]
    for label, found in (("scale", scale), ("shift", shift)):
        if found.size not in (1, many := layer.input.shape[axis]):
            key = label if label in layer.constants else f"{label}_value"
            raise LayerError(f"'{key}' has {found.size} values, expected 1 or {many}, the elements of axis {axis}")
    return (
        (scale, shift)
        if scale.size == shift.size == 1
        else (
            np.broadcast_to(scale.reshape(-1), (layer.input.shape[axis],)).reshape(shape),
            np.broadcast_to(shift.reshape(-1), (layer.input.shape[axis],)).reshape(shape),
        )
    )


def _with_affine(layer: Layer, n: Array) -> Array:
    for key, apply in (("weights", np.multiply), ("biases", np.add)):
        if (values := affine(layer, key)) is not None:
            n = apply(n, values)
    return n


def layer_norm(layer: Layer, x: Array) -> list[Array]:
    axes, wide = norm_axes(layer), x.astype(F32)
    mean = wide.mean(axes, keepdims=True)
    inverse = F32(1) / np.sqrt(((wide - mean) ** 2).mean(axes, keepdims=True) + F32(layer.number("epsilon", 1e-5)))
    return [_with_affine(layer, (wide - mean) * inverse), mean, inverse][: len(layer.outputs)]


def _mean(x: Array, axes: tuple[int, ...]) -> Array:
    """The mean of integers, in float64."""
    found: Array = x.mean(axes, keepdims=True, dtype=np.float64)
    return found


def normalised(layer: Layer, x: Array, axes: tuple[int, ...], prefix: str = "norm_") -> tuple[Array, Array, Array]:
    """(integers around 0 in the scale of the normalised values, means, factors), for 8-bit and wider inputs."""
    kind, out = layer.input.integer, layer.output.integer
    low, high = -(1 << (out.bits - 1)), (1 << (out.bits - 1)) - 1
    if not out.signed:
        low, high = 0, (1 << out.bits) - 1
    wide = x.astype(np.int64)
    mean = saturate(np.rint(_mean(wide, axes)), kind.low, kind.high)
    difference = wide - mean
    norm_scale, norm_shift = layer.scale_shift(prefix, of=1)
    if kind.bits <= 8:
        total = (difference * difference).sum(axes, keepdims=True)
        move = layer.factor("var_shift_value", 0)
        # a negative shift of a stored unsigned number leaves nothing
        variance = total >> move if move >= 0 else np.zeros_like(total)
        factor = (inverse_root(np.minimum(variance, 2**31 - 1)) + 32768) >> 16
        return requantise(difference * factor, norm_scale, 8 + norm_shift, 0, low, high), mean, factor
    variance = np.trunc(_mean(difference * difference, axes)).astype(np.int64)
    factor = (inverse_root(np.minimum(variance, 2**31 - 1)) + 32768) >> 16
    factor = requantise(factor, norm_scale, norm_shift, 0, 0, 65535)
    return requantise((difference >> 1) * factor, 1, 7, 0, low, high), mean, factor


def _affine(layer: Layer, n: Array) -> Array:
    """Weights and biases on normalised integers, and the output's requantisation."""
    out = layer.output
    return requantise(_with_affine(layer, n), *factors(layer), np.asarray(out.zero), out.low, out.high)


def quantised_layer_norm(layer: Layer, x: Array) -> list[Array]:
    n, mean, factor = normalised(layer, x, norm_axes(layer))
    found = [_affine(layer, n)]
    if len(layer.outputs) > 1:
        source = layer.outputs[1]
        found += [saturate(mean - source.scalar_zero, source.low, source.high), factor]
    return found[: len(layer.outputs)]


def in_groups(layer: Layer, x: Array) -> tuple[Array, int, tuple[int, ...]]:
    """The channel axis split in groups: (array, its axis of groups, the axes to reduce)."""
    axis, group = layer.axis("axis", -1), layer.integer("group")
    if x.shape[axis] % group:
        raise LayerError(f"{x.shape[axis]} channels do not divide into {group} groups")
    split = x.reshape(*x.shape[:axis], group, x.shape[axis] // group, *x.shape[axis + 1 :])
    return split, axis, tuple(a for a in range(1, split.ndim) if a != axis)


def group_norm(layer: Layer, x: Array) -> Array:
    wide, _, axes = in_groups(layer, x.astype(F32))
    mean = wide.mean(axes, keepdims=True)
    inverse = F32(1) / np.sqrt(((wide - mean) ** 2).mean(axes, keepdims=True) + F32(layer.number("epsilon", 1e-5)))
    return _with_affine(layer, ((wide - mean) * inverse).reshape(x.shape))


def quantised_group_norm(layer: Layer, x: Array) -> Array:
    wide, _, axes = in_groups(layer, x)
    n, _, _ = normalised(layer, wide, axes)
    return _affine(layer, n.reshape(x.shape))


def rms_norm(layer: Layer, x: Array) -> Array:
    axes, wide = tuple(layer.axes("axis", -1)), x.astype(F32)
    inverse = F32(1) / np.sqrt((wide * wide).mean(axes, keepdims=True) + F32(layer.number("epsilon", 1e-5)))
    return _with_affine(layer, wide * inverse)


def quantised_rms_norm(layer: Layer, x: Array) -> Array:
    axes, bits = tuple(layer.axes("axis", -1)), layer.output.integer.bits
    u = x.astype(np.int64) + layer.input.scalar_zero
    variance = np.trunc(_mean(u * u, axes)).astype(np.int64)
    factor = (inverse_root(np.minimum(variance, 2**31 - 1)) + 32768) >> 16
    factor = requantise(factor, *layer.scale_shift("norm_", of=1), 0, 0, 65535)
    n = saturate((u * factor + 128) >> 8, -(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    return _affine(layer, n)


def mvn(layer: Layer, x: Array) -> Array:
    axes, wide = tuple(layer.axes()), x.astype(F32)
    mean = wide.mean(axes, keepdims=True)
    variance = ((wide - mean) ** 2).mean(axes, keepdims=True)
    found: Array = (wide - mean) / np.sqrt(variance + F32(layer.number("epsilon", 1e-9)))
    return found


def quantised_mvn(layer: Layer, x: Array) -> Array:
    """`scale_value` and `shift_value` are those of the normalised values."""
    n, _, _ = normalised(layer, x, tuple(layer.axes()), "")
    out = layer.output
    return saturate(n - out.scalar_zero, out.low, out.high)


def moments(layer: Layer, x: Array) -> list[Array]:
    axes, wide = tuple(layer.axes()), x.astype(F32)
    keep = layer.flag("keepdims", True)
    return [wide.mean(axes, keepdims=keep), wide.var(axes, keepdims=keep)]


def quantised_moments(layer: Layer, x: Array) -> list[Array]:
    axes, out = tuple(layer.axes()), layer.outputs[1]
    wide = (x.astype(np.int64) * layer.integer("input_scale_value", 1)) >> layer.integer("input_shift_value", 0)
    mean = np.rint(_mean(wide, axes)).astype(np.int64)
    variance = np.trunc(_mean((wide - mean) ** 2, axes)).astype(np.int64)
    scale, shift = layer.factor("var_scale_value", 1), layer.factor("var_shift_value", 0)
    if layer.input.integer.bits <= 8:
        second = requantise(variance, scale, shift, out.scalar_zero, out.low, out.high)
    else:
        top = variance >> 16
        rest = variance - (top << 16)
        both = requantise(top * scale, 1, shift - 16, 0, 0, 2**32 - 1) + requantise(
            rest * scale, 1, shift, 0, 0, 2**32 - 1
        )
        second = requantise(both, 1, 0, out.scalar_zero, out.low, out.high)
    return [v.reshape(t.shape) for v, t in zip((mean, second), layer.outputs, strict=True)]


def smallest_norm(layer: Layer) -> float:
    """The lower limit of the sum, in float32."""
    return float(F32(layer.number("epsilon", 1e-12) or 1.1920929e-07))


def normalization(layer: Layer, x: Array) -> Array:
    axes, wide = tuple(layer.axes()), x.astype(F32)
    epsilon = F32(smallest_norm(layer))
    power = 1 if layer.word("method", choices=("L1", "L2")) == "L1" else 2
    total = (np.abs(wide) ** power).sum(axes, keepdims=True)
    total = larger(total, epsilon)
    return wide / (total if power == 1 else np.sqrt(total))


def quantised_normalization(layer: Layer, x: Array) -> Array:
    axes, out = tuple(layer.axes()), layer.output
    u = x.astype(np.int64) + layer.input.scalar_zero
    scale, shift = (int(v) for v in layer.scale_shift(of=1))
    if layer.word("method", choices=("L1", "L2")) == "L1":
        total = np.abs(u).sum(axes, keepdims=True)
        if shift < 0:
            total, shift = total >> -shift, 0
        share = np.trunc((u * scale).astype(F32) / np.where(total == 0, 1, total).astype(F32)).astype(np.int64)
        return requantise(np.where(total == 0, 0, share), 1, shift, out.scalar_zero, out.low, out.high)
    total = (u * u).sum(axes, keepdims=True)
    bits = np.maximum(np.ceil(np.log2(total + 1.0)).astype(np.int64) - 31, 0)
    bits = bits + (bits & 1)
    root = inverse_root(total >> bits)
    excess = np.maximum(np.ceil(np.log2(np.maximum(root, 1).astype(np.float64))).astype(np.int64) - 15, 0)
    factor = np.minimum(root >> excess, 32767)
    p = layer.integer("reciprocal_shift_value")
    t = saturate(saturate(u * scale, -(2**31), 2**31 - 1) >> p, -32768, 32767)
    t = saturate(t * factor, -(2**31), 2**31 - 1)
    return requantise(t, 1, shift + 31 - p - excess + bits // 2, out.scalar_zero, out.low, out.high)


def _window_sums(layer: Layer, squares: Array) -> tuple[Array, Array]:
    """(sums of squares of the neighbourhood, cells of it)."""
    size, method = layer.integer("size"), layer.word("method", "ACROSS_CHANNELS", ("ACROSS_CHANNELS", "WITHIN_CHANNEL"))
    before = size // 2 if method == "ACROSS_CHANNELS" else (size - 1) // 2
    after = (size - 1) // 2
    if method == "ACROSS_CHANNELS":
        # what lies further away is outside at every place
        before, after = min(before, squares.shape[-1]), min(after, squares.shape[-1])
        padded = np.pad(squares, [(0, 0)] * (squares.ndim - 1) + [(before, after)])
        view = np.lib.stride_tricks.sliding_window_view(padded, before + after + 1, -1)
        return view.sum(-1), np.full(1, size)
    if size % 2 == 0:
        raise LayerError(f"'size' is {size}; WITHIN_CHANNEL has a result only for odd sizes")
    reach = min(after, max(squares.shape[1:3]))
    pads, sizes = ((0, 0), (reach, reach), (reach, reach), (0, 0)), (2 * reach + 1,) * 2
    view = np.lib.stride_tricks.sliding_window_view(np.pad(squares, pads), sizes, (1, 2))
    cells = np.pad(np.ones((1, *squares.shape[1:3], 1)), pads)
    return view.sum((-1, -2)), np.lib.stride_tricks.sliding_window_view(cells, sizes, (1, 2)).sum((-1, -2))


def local_response(layer: Layer, x: Array) -> Array:
    wide = x.astype(F32)
    total, cells = _window_sums(layer, wide * wide)
    inner = F32(layer.number("bias", 1.0)) + F32(layer.number("alpha", 1e-4)) * (total / cells.astype(F32))
    return wide / inner ** F32(layer.number("beta", 0.75))


def quantised_local_response(layer: Layer, x: Array) -> Array:
    u, out = x.astype(np.int64) + layer.input.scalar_zero, layer.output
    total, _ = _window_sums(layer, u * u)
    at = requantise(total, layer.integer("scale_sum_value"), layer.integer("shift_sum_value"), 0, 0, 65535)
    factor = look_up(at, layer.constant("lut").reshape(-1), 16, False)
    scale, shift = layer.scale_shift(of=1)
    return requantise(u * factor, scale, shift, out.scalar_zero, out.low, out.high)


def normalised_moments(layer: Layer, mean: Array, variance: Array, shift: Array) -> list[Array]:
    """Mean and variance of `counts` elements from their sum and the sum of their squares, both around `shift`."""
    first = mean.astype(F32) / counts_of(layer)
    return [first + shift.astype(F32), variance.astype(F32) / counts_of(layer) - first * first]


def counts_of(layer: Layer) -> Array:
    counts = int(layer.number("counts"))
    if counts < 1:
        raise LayerError(f"'counts' is {counts}, expected 1 or more")
    return np.asarray(counts, F32)


def three_scales(layer: Layer, prefix: str) -> list[int]:
    """The factor of the result and those of two operands."""
    scales = layer.integers(f"{prefix}_scale_value")
    if len(scales) != 3:
        raise LayerError(f"'{prefix}_scale_value' has {len(scales)} values, expected 3")
    return scales


def quantised_normalised_moments(layer: Layer, mean: Array, variance: Array, shift: Array) -> list[Array]:
    """The square of the mean comes from a table of the first input's values."""
    u, v, moved = (
        x.astype(np.int64) + t.scalar_zero for x, t in zip((mean, variance, shift), layer.inputs, strict=True)
    )
    kind = layer.input.integer
    square = look_up(mean, layer.constant("lut").reshape(-1), kind.bits, kind.signed)
    found = []
    for out, prefix, a, b in zip(layer.outputs, ("mean", "var"), (u, v), (moved, -square), strict=True):
        whole, first, second = three_scales(layer, prefix)
        total = a * first + b * second
        found.append(
            requantise(total, whole, layer.integer(f"{prefix}_shift_value"), out.scalar_zero, out.low, out.high)
        )
    return found
