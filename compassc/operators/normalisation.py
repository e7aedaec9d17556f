"""Softmax and normalisations; what they sum is in float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from compass_core.arrays import Array
from compassc import te
from compassc.ir.errors import ExpressionError
from compassc.operators.declare import REALS, axes_of, axis_of, check_shape, numbers, on_axes, operator, sample, sizes
from compassc.operators.elementwise import mapped
from compassc.operators.patterns import PatternKind
from compassc.te.tensor import Tensor

if TYPE_CHECKING:
    from compassc.ir.exprs import Expr

_FLOAT = "float32"


Index: TypeAlias = "tuple[Expr, ...]"


def _soft(x: Array, axis: int = -1) -> Array:
    e = np.exp(x - x.max(axis, keepdims=True))
    found: Array = e / e.sum(axis, keepdims=True)
    return found


def _log_soft(x: Array, axis: int = -1) -> Array:
    apart = x - x.max(axis, keepdims=True)
    found: Array = apart - np.log(np.exp(apart).sum(axis, keepdims=True))
    return found


def _rows(x: Tensor, axis: int, what: str) -> tuple[int, Callable[[Index], Index]]:
    at = axis_of(axis, x.ndim, what)
    return at, lambda i: (*i[:at], *i[at + 1 :])


def _peak_and_sum(x: Tensor, at: int) -> tuple[Tensor, Tensor, Tensor]:
    """The largest of each row, e to what an element is above it, and the sum of these."""
    shape = sizes(x)
    others = [*shape[:at], *shape[at + 1 :]] or [1]
    k, j = (te.reduce_axis((0, shape[at]), name=n) for n in "kj")

    def full(i: Index, r: te.IterVar) -> tuple[object, ...]:
        rest = i if x.ndim > 1 else ()
        return (*rest[:at], r, *rest[at:])

    def row(i: Index) -> tuple[object, ...]:
        return (*i[:at], *i[at + 1 :]) or (0,)

    peak: Tensor = te.compute(others, lambda *i: te.max(x[full(i, k)], axis=k), name="T_softmax_max", tag="row_reduce")
    power: Tensor = te.compute(
        shape, lambda *i: te.exp(te.cast(x[i], _FLOAT) - te.cast(peak[row(i)], _FLOAT)), name="T_softmax_exp", tag="row"
    )
    total: Tensor = te.compute(
        others, lambda *i: te.sum(power[full(i, j)], axis=j), name="T_softmax_sum", tag="row_reduce"
    )
    return peak, power, total


@operator(PatternKind.REDUCTION, _soft, sample((4, 9)), sample((3, 5, 2), 1), sample((7,)), types=REALS)
def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """e to the power of each element over the sum of these on an axis."""
    at, row = _rows(x, axis, "softmax")
    _, power, total = _peak_and_sum(x, at)
    made: Tensor = te.compute(
        sizes(x), lambda *i: te.cast(power[i] / total[row(i) or (0,)], x.dtype), name="T_softmax_norm", tag="softmax"
    )
    return made


@operator(PatternKind.REDUCTION, _log_soft, sample((4, 9)), sample((3, 5, 2), 1), types=REALS)
def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """The logarithm of softmax."""
    at, row = _rows(x, axis, "log_softmax")
    peak, _, total = _peak_and_sum(x, at)

    def element(*i: Expr) -> Expr:
        r = row(i) or (0,)
        return te.cast(te.cast(x[i], _FLOAT) - te.cast(peak[r], _FLOAT) - te.log(total[r]), x.dtype)

    made: Tensor = te.compute(sizes(x), element, name="T_log_softmax", tag="softmax")
    return made


def _statistics(
    x: Tensor,
    made: list[int],
    inner: list[int],
    at: Callable[[Index, Sequence[te.IterVar]], tuple[object, ...]],
    what: str,
    centred: bool = True,
) -> tuple[Any, Tensor, int]:
    """Sums of elements and of their squares (about the mean where they are centred) by the indices of `made`, over those of
    `inner`. `at`: the element of both."""
    count = prod(inner)

    def over(name: str) -> list[te.IterVar]:
        return [te.reduce_axis((0, extent), name=f"{name}{d}") for d, extent in enumerate(inner)]

    def total(*i: Expr) -> object:
        return te.sum(te.cast(x[at(i, first)], _FLOAT), axis=first)

    first, second = over("k"), over("j")
    mean: Tensor | None = None
    if centred:
        sums: Tensor = te.compute(made, total, name=f"T_{what}_sum", tag="row_reduce")
        mean = mapped(sums, lambda v: v * te.const(1 / count, _FLOAT), f"T_{what}_mean")

    def squares(*i: Expr) -> Expr:
        value = te.cast(x[at(i, second)], _FLOAT)
        apart = value - mean[i] if mean is not None else value
        found: Expr = te.sum(apart * apart, axis=second)
        return found

    spread: Tensor = te.compute(made, squares, name=f"T_{what}_squares", tag="row_reduce")
    return mean, spread, count


def _over_axes(x: Tensor, axes: list[int], what: str, centred: bool = True) -> tuple[Any, Tensor, int]:
    """The statistics over axes, by the other indices."""
    shape = numbers(x, what)
    others = [d for d in range(x.ndim) if d not in axes]

    def at(i: Index, r: Sequence[te.IterVar]) -> tuple[object, ...]:
        own = {**dict(zip(others, i)), **dict(zip(axes, r))}
        return tuple(own[d] for d in range(x.ndim))

    return _statistics(x, [shape[d] for d in others] or [1], [shape[d] for d in axes], at, what, centred)


def _normal(x: Array, axis: object, epsilon: float) -> Array:
    axes = tuple(axes_of(axis, x.ndim, "normal"))
    found: Array = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)
    return found


def _root_of_squares(x: Array, axis: object, epsilon: float) -> Array:
    found: Array = np.sqrt((x * x).mean(tuple(axes_of(axis, x.ndim, "rms_norm")), keepdims=True) + epsilon)
    return found


@operator(PatternKind.REDUCTION, 
    lambda x, g, b, axis, epsilon=1e-5: _normal(x, axis, epsilon) * on_axes(x, g, axis) + on_axes(x, b, axis),
    sample((3, 4, 5), (5,), (5,), [2]), sample((3, 4, 5), (4, 5), (4, 5), [1, 2], 1e-3), types=REALS,
)  # fmt: skip
def layer_norm(data: Tensor, gamma: Tensor, beta: Tensor, axis: object, epsilon: float = 1e-5) -> Tensor:
    """Elements less their mean over the root of their variance on axes, times `gamma`, plus `beta`."""
    axes = axes_of(axis, data.ndim, "layer_norm")
    check_shape("layer_norm", [sizes(data)[a] for a in axes], gamma, beta)
    mean, spread, count = _over_axes(data, axes, "layer_norm")
    others = [d for d in range(data.ndim) if d not in axes]

    def element(*i: Expr) -> Expr:
        row, own = tuple(i[d] for d in others) or (0,), tuple(i[d] for d in axes)
        scale = te.rsqrt(spread[row] * te.const(1 / count, _FLOAT) + te.const(epsilon, _FLOAT))
        normal = (te.cast(data[i], _FLOAT) - mean[row]) * scale
        return te.cast(normal * te.cast(gamma[own], _FLOAT) + te.cast(beta[own], _FLOAT), data.dtype)

    made: Tensor = te.compute(sizes(data), element, name="T_layer_norm", tag="row")
    return made


@operator(PatternKind.REDUCTION, 
    lambda x, w, axis, epsilon=1e-5: x / _root_of_squares(x, axis, epsilon) * on_axes(x, w, axis),
    sample((3, 4, 5), (5,), [-1]), types=REALS,
)  # fmt: skip
def rms_norm(data: Tensor, weight: Tensor, axis: object, epsilon: float = 1e-5) -> Tensor:
    """Elements over the root of the mean of their squares on axes, times `weight`."""
    axes = axes_of(axis, data.ndim, "rms_norm")
    check_shape("rms_norm", [sizes(data)[a] for a in axes], weight)
    _, spread, count = _over_axes(data, axes, "rms_norm", centred=False)
    others = [d for d in range(data.ndim) if d not in axes]

    def element(*i: Expr) -> Expr:
        row, own = tuple(i[d] for d in others) or (0,), tuple(i[d] for d in axes)
        scale = te.rsqrt(spread[row] * te.const(1 / count, _FLOAT) + te.const(epsilon, _FLOAT))
        return te.cast(te.cast(data[i], _FLOAT) * scale * te.cast(weight[own], _FLOAT), data.dtype)

    made: Tensor = te.compute(sizes(data), element, name="T_rms_norm", tag="row")
    return made


def _grouped(
    x: Array, g: Array, b: Array, num_groups: int, channel_axis: int, axes: object, epsilon: float = 1e-5
) -> Array:
    parts = x.reshape(len(x), num_groups, -1)
    made = _normal(parts, (2,), epsilon).reshape(x.shape)
    return made * on_axes(x, g, 1) + on_axes(x, b, 1)


@operator(PatternKind.REDUCTION, _grouped, sample((2, 6, 3, 4), (6,), (6,), 3, 1, [2, 3]), types=REALS)
def group_norm(
    data: Tensor, gamma: Tensor, beta: Tensor, num_groups: int, channel_axis: int, axes: object, epsilon: float = 1e-5
) -> Tensor:
    """`layer_norm` of groups of channels, which are axis 1, and of all further axes."""
    n, channels, *space = numbers(data, "group_norm")
    if axis_of(channel_axis, data.ndim, "group_norm") != 1 or axes_of(axes, data.ndim, "group_norm") != list(
        range(2, data.ndim)
    ):
        raise ExpressionError("topi.nn.group_norm takes channels on axis 1 and reduces over all further axes")
    if channels % num_groups:
        raise ExpressionError(f"topi.nn.group_norm: {channels} channels are no {num_groups} groups")
    check_shape("group_norm", [channels], gamma, beta)
    each = channels // num_groups

    def at(i: Index, r: Sequence[te.IterVar]) -> tuple[object, ...]:
        return (i[0], i[1] * each + r[0], *r[1:])

    mean, spread, count = _statistics(data, [n, num_groups], [each, *space], at, "group_norm")

    def element(*i: Expr) -> Expr:
        row = (i[0], i[1] // each)
        scale = te.rsqrt(spread[row] * te.const(1 / count, _FLOAT) + te.const(epsilon, _FLOAT))
        normal = (te.cast(data[i], _FLOAT) - mean[row]) * scale
        return te.cast(normal * te.cast(gamma[i[1]], _FLOAT) + te.cast(beta[i[1]], _FLOAT), data.dtype)

    made: Tensor = te.compute(sizes(data), element, name="T_group_norm", tag="row")
    return made


def _batch(x: Array, g: Array, b: Array, m: Array, v: Array, axis: int = 1, epsilon: float = 1e-5) -> Array:
    g, b, m, v = (on_axes(x, p, axis) for p in (g, b, m, np.abs(v)))
    return (x - m) / np.sqrt(v + epsilon) * g + b


@operator(
    PatternKind.BROADCAST,
    _batch,
    sample((2, 4, 3, 3), (4,), (4,), (4,), (4,), low=0.5),
    sample((2, 3, 5), (5,), (5,), (5,), (5,), 2, low=0.5),
    types=REALS,
)
def batch_norm(
    data: Tensor,
    gamma: Tensor,
    beta: Tensor,
    moving_mean: Tensor,
    moving_var: Tensor,
    axis: int = 1,
    epsilon: float = 1e-5,
) -> Tensor:
    """Elements less a mean over the root of a variance, times `gamma`, plus `beta`: numbers of each channel."""
    at = axis_of(axis, data.ndim, "batch_norm")
    check_shape("batch_norm", [sizes(data)[at]], gamma, beta, moving_mean, moving_var)

    def element(*i: Expr) -> Expr:
        g, b, m, v = (te.cast(t[i[at]], _FLOAT) for t in (gamma, beta, moving_mean, moving_var))
        return te.cast((te.cast(data[i], _FLOAT) - m) * te.rsqrt(v + te.const(epsilon, _FLOAT)) * g + b, data.dtype)

    made: Tensor = te.compute(sizes(data), element, name="T_batch_norm", tag="broadcast")
    return made


@operator(
    PatternKind.REDUCTION,
    lambda x, g, b, axis=(2, 3), epsilon=1e-5: _normal(x, axis, epsilon) * on_axes(x, g, 1) + on_axes(x, b, 1),
    sample((2, 4, 5, 6), (4,), (4,)),
    types=REALS,
)
def instance_norm(data: Tensor, gamma: Tensor, beta: Tensor, axis: object = (2, 3), epsilon: float = 1e-5) -> Tensor:
    """Elements of NCHW less the mean of their picture over the root of its variance, times `gamma`, plus `beta`: numbers of
    each channel."""
    return group_norm(data, gamma, beta, sizes(data)[1], 1, axes_of(axis, data.ndim, "instance_norm"), epsilon)
