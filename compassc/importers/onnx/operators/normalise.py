"""Normalisation over batches, channels, groups and axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from compass_core.arrays import Array
from compassc.importers.building import Building
from compassc.importers.onnx.declare import Constant, operator
from compassc.importers.onnx.operators.elementwise import arithmetic, unary
from compassc.importers.onnx.operators.reduce import reduced
from compassc.importers.values import Refused, Value, channels_last

if TYPE_CHECKING:
    from compassc.importers.onnx.convert import Conversion


def _float32(array: Array) -> Array:
    return np.ascontiguousarray(array, np.float32)


def _in_training(b: Building, x: Value, parameters: Sequence[Array], epsilon: float, momentum: float) -> list[Value]:
    """By the means and variances of the batch, which the running ones move towards."""
    axes = [a for a in range(x.rank) if a != 1]
    shape = (1, -1, *(1,) * (x.rank - 2))
    scale, bias, mean, var = (p.astype(x.dtype) for p in parameters)
    now = [reduced(b, x, method, axes) for method in ("MEAN", "VARIANCE")]
    spread = unary(b, arithmetic(b, now[1], Value.of(np.full(1, epsilon, x.dtype)), "Add"), "Rsqrt")
    y = arithmetic(b, arithmetic(b, x, now[0], "Sub"), spread, "Mul")
    y = arithmetic(b, arithmetic(b, y, Value.of(scale.reshape(shape)), "Mul"), Value.of(bias.reshape(shape)), "Add")
    moved = []
    for before, current in zip((mean, var), now, strict=True):
        share = arithmetic(b, b.squeeze(current, axes), Value.of(np.full(1, 1 - momentum, x.dtype)), "Mul")
        moved.append(arithmetic(b, share, Value.of((before * momentum).astype(x.dtype)), "Add"))
    return [y, *moved]


@operator("BatchNormalization", since=7)
def batch_norm(
    b: Building,
    x: Value,
    scale: Constant,
    bias: Constant,
    mean: Constant,
    var: Constant,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
    spatial: int = 1,
) -> list[Value]:
    if training_mode:
        return _in_training(b, x, (scale, bias, mean, var), epsilon, momentum)
    if not spatial:
        raise Refused("it normalises each element by itself (spatial is 0)")
    factor = scale.astype(np.float64) / np.sqrt(var.astype(np.float64) + epsilon)
    addend = bias.astype(np.float64) - mean.astype(np.float64) * factor
    _, order = b.stored(x)
    given = {"weights": _float32(factor), "biases": _float32(addend)}
    return [b.mapped("BatchNorm", x, order, **given, axis=order.index(1), epsilon=0.0)]


def _spread(b: Building, array: Array, axes: Sequence[int], shape: Sequence[int]) -> Array:
    """Factors or addends of the normalised axes in their full shape."""
    return _float32(np.broadcast_to(array, b.room(*(shape[a] for a in axes), each=4)))


@operator("LayerNormalization", since=17)
def layer_norm(
    b: Conversion,
    x: Value,
    scale: Value,
    bias: Value | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> list[Value]:
    """Over all axes from `axis` on."""
    axes = list(range(x.axis(axis), x.rank))
    tensor = b.laid(x)
    known = scale.array is not None and (bias is None or bias.array is not None)
    size = b.room(*(x.shape[a] for a in axes), each=4)
    factors = _spread(b, scale.array, axes, x.shape) if known and scale.array is not None else np.ones(size, np.float32)
    addends = _spread(b, bias.array, axes, x.shape) if known and bias is not None and bias.array is not None else None
    many = max(i + 1 for i in range(3) if i == 0 or b.uses(i))
    small = (*x.shape[: axes[0]], *(1,) * len(axes))
    shapes = [(x.shape, tensor.dtype), (small, "float32"), (small, "float32")][:many]
    made = b.layers_of(
        "LayerNorm",
        [tensor],
        shapes,
        weights=factors,
        biases=np.zeros(size, np.float32) if addends is None else addends,
        axis=axes,
        epsilon=epsilon,
    )
    found = [b.value(made[0], x.dtype), *(b.value(t, np.float32) for t in made[1:])]
    if not known:
        found[0] = arithmetic(b, found[0], scale, "Mul")
        found[0] = arithmetic(b, found[0], bias, "Add") if bias is not None else found[0]
    return found


@operator("RMSNormalization", since=23)
def rms_norm(
    b: Building, x: Value, scale: Value, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Value:
    axes = list(range(x.axis(axis), x.rank))
    factors = np.ones(b.room(*(x.shape[a] for a in axes), each=4), np.float32)
    if scale.array is not None:
        factors = _spread(b, scale.array, axes, x.shape)
    found = b.mapped("RMSNorm", x, weights=factors, axis=axes, epsilon=epsilon)
    return found if scale.array is not None else arithmetic(b, found, scale, "Mul")


@operator("InstanceNormalization", since=6)
def instance_norm(b: Building, x: Value, scale: Constant, bias: Constant, *, epsilon: float = 1e-5) -> Value:
    given = {"weights": _float32(scale), "biases": _float32(bias), "epsilon": epsilon}
    return b.mapped("InstanceNorm", x, channels_last(x.rank), **given, axis=list(range(1, x.rank - 1)))


@operator("GroupNormalization", since=18)
def group_norm_of_groups(
    b: Building, x: Value, scale: Constant, bias: Constant, *, num_groups: int, epsilon: float = 1e-5
) -> Value:
    """Factors and addends are the groups'."""
    each = x.shape[1] // num_groups
    return group_norm(b, x, np.repeat(scale, each), np.repeat(bias, each), num_groups=num_groups, epsilon=epsilon)


@operator("GroupNormalization", since=21)
def group_norm(
    b: Building,
    x: Value,
    scale: Constant,
    bias: Constant,
    *,
    num_groups: int,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Value:
    order = channels_last(x.rank) if x.tensor is None or x.order[0] else x.order
    given = {"weights": _float32(scale), "biases": _float32(bias)}
    return b.mapped("GroupNorm", x, order, **given, group=num_groups, axis=order.index(1), epsilon=epsilon)


@operator("MeanVarianceNormalization", since=9)
def mean_variance_norm(b: Building, x: Value, *, axes: Sequence[int] = (0, 2, 3)) -> Value:
    _, order = b.stored(x)
    return b.mapped("MVN", x, order, axis=sorted(order.index(x.axis(a)) for a in axes), epsilon=1e-9)


@operator("LpNormalization")
def lp_norm(b: Building, x: Value, *, axis: int = -1, p: int = 2) -> Value:
    if p not in (1, 2):
        raise Refused(f"its p is {p}, expected 1 or 2")
    return unary(b, x, "Normalization", method=f"L{p}", axis=x.place(axis), epsilon=1e-12)


@operator("LRN")
def local_response(
    b: Building, x: Value, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> Value:
    if size % 2 == 0:
        raise Refused(f"its size is {size}; the layer's neighbourhood of even size begins elsewhere")
    given = {"size": size, "alpha": alpha, "beta": beta, "bias": bias}
    return b.mapped("LRN", x, channels_last(x.rank), **given, method="ACROSS_CHANNELS")
