"""Convolutions and pooling in float32, in pieces that stay in the caches of processors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from math import inf

import numpy as np

from compass_core.arrays import Array
from compassc.graph import Layer
from compassc.layers.families.linear.reference import float_biases, groups_of
from compassc.layers.float_loops import Wanted
from compassc.layers.rectify import rectify_float
from compassc.layers.threads import spread
from compassc.layers.window_products import STRIP, End, Filters, Place, WindowSums, places, strips
from compassc.layers.windows import Window, padded, window_of

Fast = Callable[..., Array]
"""Gives the one output of a layer for its inputs."""
LIMITS = {"NONE": (-inf, inf), "RELU": (0.0, inf), "RELU6": (0.0, 6.0)}
"""Of results, by rectifiers that limit them and do no more."""
PER_ELEMENT = ("PRELU",)
"""Activations that may have numbers for single elements of the whole output."""


def limits_of(layer: Layer) -> tuple[float, float]:
    """Of sums in the end, by the rectifiers that do no more."""
    return LIMITS.get(layer.word("with_activation", "NONE"), (-inf, inf))


def rectifier(layer: Layer) -> End | None:
    """What the layer does to its sums when they are limited, if it does anything."""
    method = layer.word("with_activation", "NONE")
    return None if method in LIMITS else partial(rectify_float, layer, method)


def biases_of(layer: Layer, outputs: int) -> Array:
    return float_biases(layer, outputs).astype(np.float32)


class Watched(ABC):
    """What gives the one output of a layer for its inputs and finds the extremes of it that are `wanted`, perhaps, on the way."""

    @abstractmethod
    def __call__(self, *inputs: Array, wanted: Wanted | None = None) -> Array: ...


class Convolution(Watched):
    """A convolution of images of the shape that it declares."""

    def __init__(self, layer: Layer, weights: Array) -> None:
        """Weights [O, kernel..., I / groups] of float32."""
        self._at_once, self._activated = layer.word("with_activation", "NONE") in PER_ELEMENT, rectifier(layer)
        filters = Filters(weights, biases_of(layer, weights.shape[0]), limits_of(layer))
        self._sums = WindowSums(layer.input.shape, filters, window_of(layer), groups_of(layer), 0.0)

    def __call__(self, *inputs: Array, wanted: Wanted | None = None) -> Array:
        (x,) = inputs
        found = self._sums(x, None if self._at_once else self._activated, np.float32, None if self._at_once else wanted)
        return self._activated(found) if self._at_once and self._activated else found


def convolution(layer: Layer) -> Fast | None:
    weights = layer.constant("weights").astype(np.float32, copy=False)
    if weights.ndim != len(layer.input.shape) or weights.ndim > 4:
        return None
    return Convolution(layer, weights)


def pooling(layer: Layer) -> Fast | None:
    """Maxima and means over whole windows, cell by cell."""
    method, window, shape = layer.word("method"), window_of(layer), layer.input.shape
    positions = tuple(layer.output.shape[1:-1])
    plain = len(shape) == 4 and window.positions(shape[1:-1]) == positions
    whole = method == "MAX" or not any(p for pair in window.pads for p in pair)
    if not plain or not whole or method not in ("MAX", "AVG") or any(p < 0 for pair in window.pads for p in pair):
        return None
    if method == "AVG" and window.kernel == shape[1:-1]:
        return lambda x: np.asarray(x.mean((1, 2), keepdims=True, dtype=np.float32))
    return partial(_pooled, window, positions, np.maximum if method == "MAX" else np.add)


def _pooled(window: Window, positions: tuple[int, ...], join: np.ufunc, x: Array) -> Array:
    wide = np.ascontiguousarray(padded(x, window, positions, float(np.finfo(np.float32).min)))
    made = np.empty((x.shape[0], *positions, x.shape[-1]), np.float32)
    cells = strips(wide, window, positions)

    def piece(place: Place) -> None:
        own = made[place]
        found = own.reshape(*own.shape[:-2], -1)
        for i, seen in enumerate(cells(place)):
            if i:
                join(found, seen, out=found)
            else:
                found[...] = seen
        if join is np.add:
            found /= np.float32(np.prod(window.kernel))

    spread(piece, places(made.shape[:-1], x.shape[-1], STRIP))
    return made
