"""Better integers for weights than the nearest ones, from the moments of what they are multiplied with."""

from __future__ import annotations

import numpy as np

from compass_core.arrays import Array
from compassc.quantizer.numbers import Levels
from compassc.quantizer.statistics import Moments

MOST_SWEEPS = 8


def _real(values: Array, levels: Levels) -> Array:
    """What integers [O, K] stand for, float64."""
    scale, zero = (np.asarray(v, np.float64).reshape(-1, 1) for v in (levels.scale, levels.zero))
    return (values.reshape(len(values), -1) + zero) / scale


def _by_group(values: Array, groups: int) -> list[slice]:
    own = len(values) // groups
    return [slice(g * own, (g + 1) * own) for g in range(groups)]


def mean_error(weights: Array, values: Array, levels: Levels, moments: Moments) -> Array:
    """What rounding takes from the mean of each output channel: to be added to the biases."""
    lost = weights.reshape(len(weights), -1) - _real(values, levels)
    made = np.zeros(len(weights), np.float32)
    for mean, own in zip(moments.mean, _by_group(values, len(moments.mean)), strict=True):
        made[own] = lost[own] @ mean
    return made


def output_error(weights: Array, values: Array, levels: Levels, moments: Moments) -> float:
    """The mean squared error of the layer's sums that comes from rounded weights."""
    assert moments.products is not None
    lost = weights.reshape(len(weights), -1) - _real(values, levels)
    total = 0.0
    for products, own in zip(moments.products, _by_group(values, len(moments.products)), strict=True):
        total += float(((lost[own] @ products) * lost[own]).sum())
    return total


def adaptive(weights: Array, values: Array, levels: Levels, moments: Moments) -> Array:
    """Integers next to the weights, up or down as the layer's sums change least.

    Weight by weight, all output channels at once, until nothing gets better: the error never grows.
    """
    assert moments.products is not None
    flat = weights.reshape(len(weights), -1).astype(np.float64)
    made = values.reshape(len(values), -1).copy()
    scale, zero = (
        np.broadcast_to(np.asarray(v, np.float64).reshape(-1), len(flat)) for v in (levels.scale, levels.zero)
    )
    exact = flat * scale[:, None] - zero[:, None]
    down = np.clip(np.floor(exact), levels.low, levels.high).astype(np.int64)
    up = np.clip(np.ceil(exact), levels.low, levels.high).astype(np.int64)
    for products, own in zip(moments.products, _by_group(values, len(moments.products)), strict=True):
        made[own] = _descended(exact[own], made[own], down[own], up[own], products)
    return made.reshape(values.shape)


def _descended(exact: Array, made: Array, down: Array, up: Array, products: Array) -> Array:
    """Coordinate descent in steps of the integers; a channel's scale is the same for all of its weights."""
    gradient = (made - exact) @ products
    weight = np.diagonal(products)
    for _ in range(MOST_SWEEPS):
        changed = False
        for k in range(exact.shape[1]):
            step = np.where(made[:, k] == down[:, k], up[:, k], down[:, k]) - made[:, k]
            gain = step * (2 * gradient[:, k] + step * weight[k])
            take = gain < -1e-12
            if take.any():
                moved = np.where(take, step, 0)
                made[:, k] += moved
                gradient += moved[:, None] * products[k]
                changed = True
        if not changed:
            break
    return made
