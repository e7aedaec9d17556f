"""Images sampled at given coordinates."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from compass_core.arrays import Array
from compassc.graph import Layer, LayerError
from compassc.layers.arithmetic import saturate
from compassc.operators.arrays import limited

METHODS = ("BILINEAR", "LINEAR", "NEAREST")
PADDINGS = ("ZEROS", "BORDER")


def letters_of(x: Sequence[int], grid: Sequence[int]) -> str:
    """The coordinates of a grid: x and y, and z of volumes. LayerError for shapes that do not go together."""
    axes = len(x) - 2
    if axes not in (2, 3) or len(grid) != len(x) or grid[-1] != axes or grid[0] != x[0]:
        raise LayerError(f"{list(x)} and {list(grid)} are not NHWC images (or volumes) and their grids of (x, y[, z])")
    return "xyz"[:axes]


def grid_sample(layer: Layer, x: Array, grid: Array) -> Array:
    """Coordinates in float32; between pixels first along x, then along y, then along z."""
    letters = letters_of(x.shape, grid.shape)
    wide, g = x.astype(np.float32), grid.astype(np.float32)
    places = [_position(layer, g[..., i], x.shape[-2 - i]) for i in range(len(letters))]
    if layer.word("method", "BILINEAR", METHODS) == "NEAREST":
        return _pixels(layer, wide, [np.rint(p) for p in places], 0)
    low = [np.floor(p) for p in places]
    parts = [(p - n)[..., None] for p, n in zip(places, low, strict=True)]

    def step(a: Array, b: Array, axis: int) -> Array:
        found: Array = a + (b - a) * parts[axis]
        return found

    return _between(lambda at: _pixels(layer, wide, at, 0), low, step)


def _between(
    pixels: Callable[[list[Array]], Array],
    low: list[Array],
    step: Callable[[Array, Array, int], Array],
    fixed: tuple[Array, ...] = (),
) -> Array:
    """From the pixels at whole places, axis by axis: `step` goes between two values along an axis."""
    if len(fixed) == len(low):
        return pixels(list(fixed))
    axis = len(low) - len(fixed) - 1
    a, b = (_between(pixels, low, step, (low[axis] + n, *fixed)) for n in (0, 1))
    return step(a, b, axis)


def _position(layer: Layer, g: Array, size: int) -> Array:
    """The coordinate in pixels, at most two beyond the image: there all places look alike. NaN is the lowest one."""
    if layer.flag("align_corners", False):
        place = (g + np.float32(1)) / np.float32(2) * np.float32(size - 1)
    else:
        place = ((g + np.float32(1)) * np.float32(size) - np.float32(1)) / np.float32(2)
    return limited(place, -2, size + 1)


def _pixels(layer: Layer, x: Array, places: Sequence[Array], outside: int) -> Array:
    """The pixels at whole coordinates (x first); beyond the image `outside`, or the nearest pixel."""
    sizes = x.shape[-2:0:-1]
    at = [np.clip(p, -1, n).astype(np.int64) for p, n in zip(places, sizes, strict=True)]
    image = np.arange(len(x)).reshape(-1, *(1,) * len(sizes))
    found: Array = x[(image, *(np.clip(p, 0, n - 1) for p, n in zip(reversed(at), reversed(sizes), strict=True)))]
    if layer.word("padding_mode", "ZEROS", PADDINGS) == "BORDER":
        return found
    inside = np.all([(p >= 0) & (p < n) for p, n in zip(at, sizes, strict=True)], axis=0)
    made: Array = np.where(inside[..., None], found, x.dtype.type(outside))
    return made


def quantised_grid_sample(layer: Layer, x: Array, grid: Array) -> Array:
    """Coordinates of 16 bits with fraction bits; steps between pixels are rounded down."""
    letters = letters_of(x.shape, grid.shape)
    places, bits = [], []
    scale, shift = (np.resize(v, len(letters)) for v in layer.scale_shift(of=len(letters)))
    for i, letter in enumerate(letters):
        fraction = layer.integer(f"coordinate_{letter}_shift")
        moved = grid[..., i].astype(np.int64) + layer.inputs[1].scalar_zero
        centre = (x.shape[-2 - i] - 1) * (1 << fraction) // 2
        places.append(saturate(((moved * scale[i]) >> shift[i]) + centre, -32768, 32767))
        bits.append(fraction)
    out, wide, beyond = layer.output, x.astype(np.int64), -layer.input.scalar_zero
    if layer.word("method", "BILINEAR", METHODS) == "NEAREST":
        near = [saturate(p + (1 << b >> 1), -32768, 32767) >> b for p, b in zip(places, bits, strict=True)]
        return saturate(_pixels(layer, wide, near, beyond), out.low, out.high)
    low = [p >> b for p, b in zip(places, bits, strict=True)]
    parts = [(p - (n << b))[..., None] for p, n, b in zip(places, low, bits, strict=True)]

    def step(a: Array, b: Array, axis: int) -> Array:
        found: Array = a + (((b - a) * parts[axis]) >> bits[axis])
        return found

    return saturate(_between(lambda at: _pixels(layer, wide, at, beyond), low, step), out.low, out.high)
