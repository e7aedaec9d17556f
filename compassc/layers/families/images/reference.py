"""Colours of images, and the extremes of windows plus weights."""

from __future__ import annotations

import numpy as np

from compass_core.arrays import Array
from compass_core.namedtuple import NamedTuple
from compassc.graph import Layer, LayerError
from compassc.layers.arithmetic import requantise
from compassc.layers.windows import Window, cells_inside, seen, window_of
from compassc.operators.arrays import largest_of, limited, smallest_of

# -- colours


class Colours(NamedTuple):
    """A conversion of colours: offsets before and after the matrix, whose numbers have `shift` fraction bits."""

    before: Array
    behind: Array
    matrix: Array
    shift: int

    @property
    def half(self) -> int:
        """The rounding term added before the fraction bits are dropped."""
        return (1 << self.shift) >> 1


def colours_of(layer: Layer) -> Colours:
    kind: type[np.generic] = np.int64 if layer.is_quantised else np.float32
    given = layer.integers("coefficient") if layer.is_quantised else layer.numbers("coefficient")
    if len(given) != 15:
        raise LayerError(f"'coefficient' has {len(given)} values, expected 15")
    layer.word("format", "I420", ("I420",))
    numbers = np.asarray(given, kind)
    shift = layer.integer("coefficient_shift") if layer.is_quantised else layer.integer("coefficient_shift", 0)
    if not 0 <= shift < 24:
        raise LayerError(f"'coefficient_shift' is {shift}, expected 0 to 23")
    return Colours(numbers[:3], numbers[3:6], numbers[6:].reshape(3, 3), shift)


def image_size(count: int, shape: tuple[int, ...]) -> tuple[int, int, int]:
    """(images, rows, columns) of an NHWC image of three colours that has `count` elements as planes."""
    if len(shape) != 4 or shape[3] != 3 or shape[1] % 2 or shape[2] % 2 or 0 in shape:
        raise LayerError(f"{list(shape)} is no NHWC image of three colours with even sizes")
    n, h, w, _ = shape
    if count != n * h * w * 3 // 2:
        raise LayerError(f"planes of {count} elements do not fit an image of {list(shape)}")
    return n, h, w


def _rounded(values: Array) -> Array:
    return np.rint(values) if values.dtype.kind == "f" else np.rint(values.astype(np.float64))


def _grown(plane: Array) -> Array:
    """A plane [N, h, w] in twice the size, its new rows and columns between the others."""
    below = np.concatenate([plane[:, 1:], plane[:, -1:]], 1)
    mean = _rounded((plane + below) * plane.dtype.type(0.5))
    mean[:, -1] = plane[:, -1]
    tall = np.stack([plane, mean], 2).reshape(len(plane), -1, plane.shape[2])
    left = np.concatenate([tall[:, :, :1], tall[:, :, :-1]], 2)
    right = np.concatenate([tall[:, :, 1:], tall[:, :, -1:]], 2)
    quarter = plane.dtype.type(0.25)
    even, odd = _rounded((left + tall * 3) * quarter), _rounded((tall * 3 + right) * quarter)
    even[:, :, 0], odd[:, :, -1] = tall[:, :, 0], tall[:, :, -1]
    return np.stack([even, odd], 3).reshape(len(plane), tall.shape[1], -1)


def yuv_to_rgb(layer: Layer, x: Array) -> Array:
    n, h, w = image_size(x.size, layer.output.shape)
    c = colours_of(layer)
    kind: type[np.generic] = np.float64 if layer.is_quantised else np.float32
    zero = layer.input.scalar_zero if layer.is_quantised else 0
    flat = x.reshape(n, -1).astype(kind) + kind(zero)
    size = h * w
    luma = flat[:, :size].reshape(n, h, w)
    planes = [_grown(p.reshape(n, h // 2, w // 2)) for p in np.split(flat[:, size:], 2, axis=1)]
    yuv = [p - kind(b) for p, b in zip((luma, *planes), c.before, strict=True)]
    m = c.matrix.astype(kind)
    found = []
    for row, behind in zip(m, c.behind, strict=True):
        total = yuv[0] * row[0] + yuv[1] * row[1] + yuv[2] * row[2] + kind(c.half)
        found.append(total * kind(2.0**-c.shift) + kind(behind))
    result = limited(np.rint(np.stack(found, -1)), 0, 255)
    made: Array = result - layer.output.scalar_zero if layer.is_quantised else result
    return made


def rgb_to_yuv(layer: Layer, x: Array) -> Array:
    n = image_size(layer.output.count, tuple(x.shape))[0]
    c = colours_of(layer)
    kind: type[np.generic] = np.float64 if layer.is_quantised else np.float32
    wide = x.astype(kind) + kind(layer.input.scalar_zero if layer.is_quantised else 0)
    m, offsets = c.matrix.astype(kind), added(c)
    planes = []
    for i, part in enumerate((wide, wide[:, ::2, ::2], wide[:, ::2, ::2])):
        total = part[..., 0] * m[i, 0] + part[..., 1] * m[i, 1] + part[..., 2] * m[i, 2] + kind(offsets[i])
        scaled = np.floor(total) * kind(2.0**-c.shift)
        planes.append(limited(np.rint(scaled) if layer.is_quantised else scaled, 0, 255).reshape(n, -1))
    result = np.concatenate(planes, 1).reshape(layer.output.shape)
    return result - layer.output.scalar_zero if layer.is_quantised else result


def added(c: Colours) -> list[float]:
    """The offset added to the sums of RgbToYuv."""
    row = [-sum(c.before[j] * c.matrix[j, i] for j in range(3)) for i in range(3)]
    return [
        float(r + b * c.matrix.dtype.type(1 << c.shift) + c.matrix.dtype.type(c.half))
        for r, b in zip(row, c.behind, strict=True)
    ]


# -- windows plus weights


def weights_of(layer: Layer) -> Array:
    """[KH, KW, C]: the values added to the cells of the window; subtracted by an Erosion."""
    weights = layer.constant("weights")
    c = layer.input.shape[-1]
    window = window_of(layer)
    if weights.shape != (c, *window.kernel, 1):
        raise LayerError(f"the weights are {list(weights.shape)}, expected {[c, *window.kernel, 1]}")
    found = weights[..., 0].transpose(1, 2, 0)
    return found[::-1, ::-1] if layer.type == "Erosion" else found


def checked_window(layer: Layer) -> Window:
    """The window; every position of it must see the image."""
    x, y = layer.input.shape, layer.output.shape
    if len(x) != 4 or len(y) != 4 or (x[0], x[3]) != (y[0], y[3]) or 0 in x:
        raise LayerError(f"{list(x)} and {list(y)} are no NHWC images of equal channels")
    window = window_of(layer)
    fitting = (window.positions(x[1:3]), window.positions(x[1:3], ceil=True))
    if any(many not in both for many, *both in zip(y[1:3], *fitting, strict=True)):
        raise LayerError(
            f"the window leads from {list(x[1:3])} to {list(fitting[0])}, in ceil mode to {list(fitting[1])}, but the output "
            f"'{layer.output.name}' is {list(y)}"
        )
    if y.count(0) == 0 and not cells_inside(x[1:3], window, (y[1], y[2])).all():
        raise LayerError("a window sees no cell of the image")
    return window


def extreme(layer: Layer, x: Array) -> Array:
    erosion, window = layer.type == "Erosion", checked_window(layer)
    fill = np.inf if erosion else -np.inf
    views = seen(x.astype(np.float32), window, tuple(layer.output.shape[1:3]), fill)
    weights = weights_of(layer).astype(np.float32).transpose(2, 0, 1)
    moved = views - weights if erosion else views + weights
    return smallest_of(moved, (-1, -2)) if erosion else largest_of(moved, (-1, -2))


def quantised_extreme(layer: Layer, x: Array) -> Array:
    """Image and weights brought to one scale by two multipliers; then requantised."""
    erosion, window, out = layer.type == "Erosion", checked_window(layer), layer.output
    (scale, of_x, of_w), shift = multipliers(layer)
    wide = (x.astype(np.int64) + layer.input.scalar_zero) * of_x
    far = 2**60
    views = seen(wide, window, tuple(out.shape[1:3]), far if erosion else -far)
    weights = weights_of(layer).astype(np.int64).transpose(2, 0, 1) * of_w
    moved = views - weights if erosion else views + weights
    found = moved.min(axis=(-1, -2)) if erosion else moved.max(axis=(-1, -2))
    return requantise(found, scale, shift, out.scalar_zero, out.low, out.high)


def multipliers(layer: Layer) -> tuple[tuple[int, int, int], int]:
    """((of the result, of the image, of the weights), shift)."""
    scale, shift = layer.integers("scale_value"), layer.integers("shift_value")
    if len(scale) != 3 or len(shift) != 1:
        raise LayerError(f"'scale_value' and 'shift_value' have {len(scale)} and {len(shift)} values, expected 3 and 1")
    return (scale[0], scale[1], scale[2]), shift[0]
