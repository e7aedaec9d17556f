"""Counts of elements."""

from __future__ import annotations

import numpy as np

from compass_core.arrays import Array
from compassc.graph import Layer, LayerError
from compassc.layers.arithmetic import saturate


def top_sizes(layer: Layer) -> tuple[int, int]:
    x = layer.input.shape
    if len(layer.inputs) != 2 or len(x) != 2 or layer.inputs[1].count != x[0] or layer.output.count != x[0] or 0 in x:
        raise LayerError(f"predictions {list(x)} do not fit the targets and the output")
    if layer.integer("k") < 1:
        raise LayerError(f"'k' is {layer.integer('k')}, expected a positive number")
    return x[0], x[1]


def in_top_k(layer: Layer, x: Array, targets: Array) -> Array:
    """1 where fewer than k predictions of the row are larger than the target's."""
    n, classes = top_sizes(layer)
    found = np.zeros(n, np.int64)
    for i, t in enumerate(targets.reshape(-1).astype(np.int64)):
        found[i] = 0 <= t < classes and np.count_nonzero(x[i] > x[i, t]) < layer.integer("k")
    return found.reshape(layer.output.shape)


def zero_sizes(layer: Layer) -> tuple[int, int]:
    """(results, elements each is of)."""
    x, many = layer.input, layer.output.count
    if many < 1 or x.count < 1 or (many > 1 and (not x.shape or x.shape[0] != many)):
        raise LayerError(f"{list(x.shape)} does not lead to the shape {list(layer.output.shape)}")
    return many, x.count // many


def zero_fraction(layer: Layer, x: Array) -> Array:
    many, size = zero_sizes(layer)
    out = layer.output
    if not layer.is_quantised:
        zeros = (x.reshape(many, size) == 0).sum(1)
        made: Array = (zeros.astype(np.float32) / np.float32(size)).reshape(out.shape)
        return made
    zeros = (x.reshape(many, size).astype(np.int64) + layer.input.scalar_zero == 0).sum(1)
    found = (zeros * layer.integer("output_scale") + size // 2) // size - out.scalar_zero
    return saturate(found, out.low, out.high).reshape(out.shape)


def bins_of(layer: Layer) -> tuple[int, int, int, float, float]:
    """(rows, elements of a row, bins, lowest, highest)."""
    x, bins = layer.input, layer.integer("nbins")
    if not x.shape or 0 in x.shape or layer.output.shape != (x.shape[0], bins):
        raise LayerError(f"{list(x.shape)} with {bins} bins does not lead to {list(layer.output.shape)}")
    low, high = layer.number("min"), layer.number("max")
    if not low < high:
        raise LayerError(f"'min' is {low} and 'max' {high}, expected a range")
    layer.flag("discrete", True)
    return x.shape[0], x.count // x.shape[0], bins, low, high


def count(layer: Layer, x: Array) -> Array:
    """A histogram of each row; values outside the range are not counted. `discrete`: the highest is in the last bin."""
    rows, size, bins, low, high = bins_of(layer)
    wide = x.astype(np.float32).reshape(rows, size)
    first, last = np.float32(low), np.float32(high)
    at = np.trunc((wide - first) * np.float32(bins) / np.float32(last - first))
    closed = layer.flag("discrete", True)
    inside = (wide >= first) & ((wide <= last) if closed else (wide < last))
    at = np.where(inside, np.clip(at, 0, bins - 1), -1).astype(np.int64)
    return np.stack([np.bincount(row[row >= 0], minlength=bins) for row in at])
