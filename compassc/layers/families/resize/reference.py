"""Images in another size."""

from __future__ import annotations

import numpy as np

from compass_core.arrays import Array
from compass_core.namedtuple import NamedTuple
from compassc.graph import Layer, LayerError
from compassc.layers.arithmetic import requantise, saturate

METHODS = ("NEAREST", "BILINEAR", "AREA", "LINEAR", "BICUBIC", "TRILINEAR")
RANKS = {"LINEAR": 3, "BICUBIC": 4, "TRILINEAR": 5}
"""Methods that weigh neighbours along an axis after the other, and the dimensions of their images."""
MODES = (
    "HALF_PIXEL",
    "HALF_PIXEL_SYMMETRIC",
    "ALIGN_CORNERS",
    "ASYMMETRIC",
    "PYTORCH_HALF_PIXEL",
    "TF_HALF_PIXEL_FOR_NN",
)


def coordinates(layer: Layer, axis: str, size: int, result: int) -> Array:
    """The coordinate of each output element in the input, float64."""
    mode = layer.word("mode", "HALF_PIXEL", MODES)
    i = np.arange(result, dtype=np.float64)
    ratio = layer.number(f"ratio_{axis}", 0) if not layer.is_quantised else 0
    _check_ratio(layer, axis, size, result)
    if mode == "ALIGN_CORNERS":
        return i * ((size - 1) / (result - 1)) if result > 1 else i * 0
    step = 1 / ratio if ratio else None
    if mode == "ASYMMETRIC":
        return i * step if step is not None else i * size / result
    moved = i + 0.5
    scaled = moved * step if step is not None else moved * size / result
    if mode == "TF_HALF_PIXEL_FOR_NN":
        return scaled
    if mode == "PYTORCH_HALF_PIXEL" and result <= 1:
        return i * 0
    if mode == "HALF_PIXEL_SYMMETRIC" and ratio:
        adjust = result / (ratio * size)
        centre = size / 2
        return centre * (1 - adjust) + scaled - 0.5
    return scaled - 0.5


def _check_ratio(layer: Layer, axis: str, size: int, result: int) -> None:
    """LayerError where a ratio contradicts the sizes. A ratio of 1 is what graphs hold that were given sizes."""
    key = f"ratio_{axis}"
    if not layer.has(key) or layer.number(key) in (0, 1):
        return
    ratio = layer.number(key)
    if not ratio > 0 or abs(ratio * size - result) >= 1:
        raise LayerError(f"'{key}' is {ratio:g}, but the sizes {size} and {result} say {result / max(size, 1):g}")


NEAREST_MODES = ("ROUND_PREFER_FLOOR", "ROUND_PREFER_CEIL", "FLOOR", "CEIL", "SIMPLE")


def nearest(layer: Layer, at: Array, size: int, result: int) -> Array:
    mode = layer.word("nearest_mode", "ROUND_PREFER_FLOOR", NEAREST_MODES)
    if mode == "ROUND_PREFER_FLOOR":
        index = np.ceil(at - 0.5)
    elif mode == "ROUND_PREFER_CEIL":
        index = np.floor(at + 0.5)
    elif mode == "FLOOR":
        index = np.floor(at)
    elif mode == "CEIL":
        index = np.ceil(at)
    else:
        index = np.ceil(at) if result < size else np.trunc(at)
    return np.clip(index, 0, size - 1).astype(np.int64)


def resize(layer: Layer, x: Array, *sizes: Array) -> Array:
    method = layer.word("method", "BILINEAR", METHODS)
    if method in RANKS:
        return _separable(layer, x)
    if len(x.shape) != 4:
        raise LayerError(f"the input has {x.ndim} dimensions, expected an NHWC image")
    height, width = layer.output.shape[1:3]
    rows = coordinates(layer, "y", x.shape[1], height)
    columns = coordinates(layer, "x", x.shape[2], width)
    if method in ("NEAREST", "AREA"):
        at = nearest(layer, rows, x.shape[1], height), nearest(layer, columns, x.shape[2], width)
        return x[:, at[0][:, None], at[1][None, :]]
    if layer.flag("antialias", False):
        return _antialiased(layer, x)
    return _bilinear(layer, x, rows, columns)


class Taps(NamedTuple):
    """The neighbours of each output element along an axis, and their weights in float32: [elements, neighbours]."""

    places: Array
    weights: Array


def taps_of(layer: Layer) -> list[Taps]:
    """The taps of each axis of the image, outermost first."""
    method, x, y = layer.word("method", choices=METHODS), layer.input.shape, layer.output.shape
    if len(x) != RANKS[method] or len(y) != len(x) or (x[0], x[-1]) != (y[0], y[-1]) or 0 in (*x, *y):
        raise LayerError(
            f"{list(x)} to {list(y)} is no change of size that {method} makes, of {RANKS[method]} dimensions"
        )
    corners, cubic = layer.word("mode", "HALF_PIXEL", MODES) == "ALIGN_CORNERS", method == "BICUBIC"
    return [_taps(n, m, corners, cubic) for n, m in zip(x[1:-1], y[1:-1], strict=True)]


def _taps(size: int, made: int, corners: bool, cubic: bool) -> Taps:
    f = np.float32
    i = np.arange(made, dtype=f)
    if corners:
        at = i * (f(size - 1) / f(made - 1) if made > 1 else f(0))
    else:
        at = f(size) / f(made) * (i + f(0.5)) - f(0.5)
    low = np.floor(at if cubic else np.maximum(at, 0))
    t = (at if cubic else np.maximum(at, 0)) - low
    first = low.astype(np.int64)
    if not cubic:
        first = np.minimum(first, size - 1)
        return Taps(np.stack([first, np.minimum(first + 1, size - 1)], -1), np.stack([f(1) - t, t], -1).astype(f))
    a = f(-0.75)

    def far(d: Array) -> Array:
        return np.asarray(((a * d - f(5) * a) * d + f(8) * a) * d - f(4) * a)

    def near(d: Array) -> Array:
        return np.asarray(((a + f(2)) * d - (a + f(3))) * d * d + f(1))

    weights = np.stack([far(t + f(1)), near(t), near(f(1) - t), far(f(2) - t)], -1).astype(f)
    return Taps(np.clip(first[:, None] + np.arange(-1, 3), 0, size - 1), weights)


def _separable(layer: Layer, x: Array) -> Array:
    """Sums of weighted neighbours from the innermost axis out, in float32, in order."""
    wide = x.astype(np.float32)
    taps = taps_of(layer)
    for axis in reversed(range(len(taps))):
        shape = [1] * wide.ndim
        shape[axis + 1] = len(taps[axis].places)
        parts = [
            wide.take(i, axis + 1) * w.reshape(shape)
            for i, w in zip(taps[axis].places.T, taps[axis].weights.T, strict=True)
        ]
        wide = parts[0]
        for part in parts[1:]:
            wide = wide + part
    return saturate(np.rint(wide), layer.output.low, layer.output.high) if layer.is_quantised else wide


def _bilinear(layer: Layer, x: Array, rows: Array, columns: Array) -> Array:
    """Weights of the four corners in float64; quantised in 13 bits, on the numbers as they are."""
    r0, r1, fy = between(rows, x.shape[1])
    c0, c1, fx = between(columns, x.shape[2])
    fy, fx = fy[:, None, None], fx[None, :, None]
    corners = [x[:, r[:, None], c[None, :]] for r in (r0, r1) for c in (c0, c1)]
    weights = [(1 - fy) * (1 - fx), (1 - fy) * fx, fy * (1 - fx), fy * fx]
    if not layer.is_quantised:
        found: Array = sum(c.astype(np.float32) * w for c, w in zip(corners, weights, strict=True))
        return found
    bits = layer.integer("interp_shift_value", 13)
    fixed = [np.floor(w * 2.0**bits + 0.5).astype(np.int64) for w in weights]
    total = np.asarray(sum(c.astype(np.int64) * w for c, w in zip(corners, fixed, strict=True)))
    return saturate(np.rint(total / 2.0**bits), layer.output.low, layer.output.high)


def between(at: Array, size: int) -> tuple[Array, Array, Array]:
    """(cell before, cell after, distance from the one before)."""
    low = np.maximum(np.floor(at), 0).astype(np.int64)
    high = np.minimum(np.ceil(at), size - 1).astype(np.int64)
    return np.minimum(low, size - 1), np.maximum(high, 0), at - low


class Windows(NamedTuple):
    """The windows of a filter along an axis: the first element, the one behind the last, and weights [windows, width]."""

    low: Array
    high: Array
    weights: Array


def windows_of(layer: Layer, letter: str) -> Windows:
    """The windows of an antialiased image along "x" or "y": those that the graph holds, else those of a triangle."""
    axis = 2 if letter == "x" else 1
    size, made = layer.input.shape[axis], layer.output.shape[axis]
    if f"weight_coefficients_{letter}" not in layer.constants:
        return _triangles(layer, letter, size, made)
    weights = layer.constant(f"weight_coefficients_{letter}").reshape(made, -1)
    low, high = (layer.constant(f"bound_{letter}_{end}").reshape(-1).astype(np.int64) for end in ("min", "max"))
    if len(low) != made or len(high) != made or (high - low).max() > weights.shape[1] or high.max() > size:
        raise LayerError(
            f"the constants 'bound_{letter}_min' and '_max' do not fit {made} windows of {weights.shape[1]} over {size}"
        )
    return Windows(low, high, weights)


def _triangles(layer: Layer, letter: str, size: int, made: int) -> Windows:
    """Triangles as wide as the step between two results. What is outside counts for the border, unless it is left out."""
    at = coordinates(layer, letter, size, made) + 0.5
    ratio = layer.number(f"ratio_{letter}", 0) if not layer.is_quantised else 0
    support = max(1 / ratio if ratio else size / made, 1.0)
    first, last = (np.floor(at + d + 0.5).astype(np.int64) for d in (-support, support))
    low, high = np.maximum(first, 0), np.minimum(last, size)
    weights = np.zeros((made, 2 * int(np.ceil(support)) + 1))
    outside = not layer.flag("exclude_outside", False)
    for i in range(made):
        x = np.arange(first[i], last[i]) if outside else np.arange(low[i], high[i])
        found = np.maximum(0, 1 - np.abs((x - at[i] + 0.5) / support))
        np.add.at(weights[i], np.clip(x, low[i], high[i] - 1) - low[i], found / found.sum())
    stored = np.trunc(weights.astype(np.float32) * 255).astype(np.uint8) if layer.is_quantised else weights
    return Windows(low, high, stored if layer.is_quantised else stored.astype(np.float32))


def _antialiased(layer: Layer, x: Array) -> Array:
    """Horizontally, then vertically."""
    wide = x.astype(np.int64 if layer.is_quantised else np.float32)
    for axis, letter in ((2, "x"), (1, "y")):
        moved = np.moveaxis(wide, axis, -1)
        parts = []
        for a, b, w in zip(*windows_of(layer, letter), strict=True):
            parts.append((moved[..., a:b] * w[: b - a].astype(wide.dtype)).sum(-1))
        wide = np.moveaxis(np.stack(parts, -1), -1, axis)
        if layer.is_quantised:
            wide = requantise(wide, 1, 8, 0, layer.input.low, layer.input.high)
    return wide
