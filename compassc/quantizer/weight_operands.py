"""What linear layers multiply with their weights, as rows of a matrix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compass_core.arrays import Array
from compassc.graph import Layer
from compassc.layers.declare import find_type
from compassc.layers.families.linear.reference import groups_of
from compassc.layers.window_products import patches
from compassc.layers.windows import padded, window_of
from compassc.operators.patterns import Filters

MOST_ROWS = 4096
"""Of a batch, evenly taken."""


def is_linear(layer: Layer) -> bool:
    """Whether a layer multiplies rows with its weights: elements of a row, or windows over images."""
    declared = find_type(layer.type)
    if declared is None or declared.filters is not Filters.BY_OUTPUT:
        return False
    return layer.constant("weights").ndim in (2, 4)


def rows_of(layer: Layer, inputs: Sequence[Array]) -> Array | None:
    """[groups, rows, inputs] in the order of the weights of an output channel; None for layers that have no such form."""
    if not is_linear(layer):
        return None
    weights = layer.constant("weights")
    size = weights[0].size
    if weights.ndim == 2:
        return _thinned(inputs[0].reshape(-1, size).astype(np.float32, copy=False))[None]
    x, window = inputs[0].astype(np.float32, copy=False), window_of(layer)
    if x.ndim != 4 or weights.ndim != 4 or any(p < 0 for pair in window.pads for p in pair):
        return None
    groups = groups_of(layer)
    positions = window.positions(x.shape[1:-1])
    seen = patches(padded(x, window, positions, 0.0), window, positions)
    flat = seen.reshape(-1, weights[0, ..., 0].size, x.shape[-1])
    flat = _thinned(flat)
    split = flat.reshape(len(flat), -1, groups, x.shape[-1] // groups).transpose(2, 0, 1, 3)
    return np.ascontiguousarray(split).reshape(groups, len(flat), -1)


def _thinned(rows: Array) -> Array:
    return rows[:: -(-len(rows) // MOST_ROWS)]
