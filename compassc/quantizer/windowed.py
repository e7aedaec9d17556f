"""Convolutions and pooling in float32, in pieces that stay in the caches of processors."""

from __future__ import annotations

import numpy as np

from compass_core.arrays import Array
from compassc.graph import Layer
from compassc.layers.families.linear.reference import groups_of
from compassc.layers.rectify import rectify_float
from compassc.layers.threads import spread
from compassc.layers.window_products import STRIP, Place, places, strips, window_sums
from compassc.layers.windows import padded, window_of

PER_ELEMENT = ("PRELU",)
"""Activations that may have numbers for single elements of the whole output."""


def activated(layer: Layer, sums: Array) -> Array:
    method = layer.word("with_activation", "NONE")
    if method == "RELU":
        return np.maximum(sums, np.float32(0), out=sums)
    if method == "RELU6":
        return np.clip(sums, np.float32(0), np.float32(6), out=sums)
    return rectify_float(layer, method, sums)


def biases_of(layer: Layer, outputs: int) -> Array:
    if "biases" not in layer.constants:
        return np.zeros(outputs, np.float32)
    return layer.constants["biases"].reshape(-1).astype(np.float32)


def convolution(layer: Layer, x: Array) -> Array | None:
    weights = layer.constant("weights").astype(np.float32, copy=False)
    if weights.ndim != x.ndim or x.ndim > 4:
        return None
    line = np.tile(biases_of(layer, weights.shape[0]), layer.output.shape[-2])
    whole = layer.word("with_activation", "NONE") in PER_ELEMENT

    def end(sums: Array) -> Array:
        lines = sums.reshape(*sums.shape[:-2], -1)
        lines += line[: lines.shape[-1]]
        return sums if whole else activated(layer, sums)

    made = window_sums(x, weights, window_of(layer), groups_of(layer), 0.0, end, np.float32)
    return activated(layer, made) if whole else made


def pooling(layer: Layer, x: Array) -> Array | None:
    """Maxima and means over whole windows, cell by cell."""
    method = layer.word("method")
    window = window_of(layer)
    positions = tuple(layer.output.shape[1:-1])
    plain = x.ndim == 4 and window.positions(x.shape[1:-1]) == positions
    whole = method == "MAX" or not any(p for pair in window.pads for p in pair)
    if not plain or not whole or method not in ("MAX", "AVG") or any(p < 0 for pair in window.pads for p in pair):
        return None
    if method == "AVG" and window.kernel == x.shape[1:-1]:
        return np.asarray(x.mean((1, 2), keepdims=True, dtype=np.float32))
    wide = np.ascontiguousarray(padded(x, window, positions, float(np.finfo(np.float32).min)))
    made = np.empty((x.shape[0], *positions, x.shape[-1]), np.float32)
    cells, join = strips(wide, window, positions), np.maximum if method == "MAX" else np.add

    def piece(place: Place) -> None:
        own = made[place]
        found = own.reshape(*own.shape[:-2], -1)
        for i, seen in enumerate(cells(place)):
            if i:
                join(found, seen, out=found)
            else:
                found[...] = seen
        if method == "AVG":
            found /= np.float32(np.prod(window.kernel))

    spread(piece, places(made.shape[:-1], x.shape[-1], STRIP))
    return made
