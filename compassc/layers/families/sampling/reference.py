"""Images sampled at given coordinates."""

from __future__ import annotations

import numpy as np

from compassc.graph import Layer, LayerError
from compassc.layers.arithmetic import Array, saturate

METHODS = ("BILINEAR", "LINEAR", "NEAREST")
PADDINGS = ("ZEROS", "BORDER")


def _checked(layer: Layer, x: Array, grid: Array) -> None:
    if x.ndim != 4 or grid.ndim != 4 or grid.shape[-1] != 2 or grid.shape[0] != x.shape[0]:
        raise LayerError(f"{list(x.shape)} and {list(grid.shape)} are not NHWC images and their grids of (x, y)")


def grid_sample(layer: Layer, x: Array, grid: Array) -> Array:
    """Coordinates in float32; between pixels first along x, then along y."""
    _checked(layer, x, grid)
    wide, g = x.astype(np.float32), grid.astype(np.float32)
    column, row = (_position(layer, g[..., i], x.shape[2 - i]) for i in (0, 1))
    if layer.word("method", "BILINEAR", METHODS) == "NEAREST":
        return _pixels(layer, wide, np.rint(row), np.rint(column), 0)
    left, top = np.floor(column), np.floor(row)
    fx, fy = (column - left)[..., None], (row - top)[..., None]
    lines = []
    for at in (top, top + 1):
        a, b = (_pixels(layer, wide, at, c, 0) for c in (left, left + 1))
        lines.append(a + (b - a) * fx)
    return lines[0] + (lines[1] - lines[0]) * fy


def _position(layer: Layer, g: Array, size: int) -> Array:
    if layer.flag("align_corners", False):
        return (g + np.float32(1)) / np.float32(2) * np.float32(size - 1)
    return ((g + np.float32(1)) * np.float32(size) - np.float32(1)) / np.float32(2)


def _pixels(layer: Layer, x: Array, row: Array, column: Array, outside: int) -> Array:
    """The pixels at whole coordinates; beyond the image `outside`, or the nearest pixel."""
    height, width = x.shape[1:3]
    r, c = (np.clip(v, -1, n).astype(np.int64) for v, n in ((row, height), (column, width)))
    image = np.arange(len(x)).reshape(-1, 1, 1)
    found = x[image, np.clip(r, 0, height - 1), np.clip(c, 0, width - 1)]
    if layer.word("padding_mode", "ZEROS", PADDINGS) == "BORDER":
        return found
    inside = (0 <= r) & (r < height) & (0 <= c) & (c < width)
    return np.where(inside[..., None], found, x.dtype.type(outside))


def quantised_grid_sample(layer: Layer, x: Array, grid: Array) -> Array:
    """Coordinates of 16 bits with fraction bits; steps between pixels are rounded down."""
    _checked(layer, x, grid)
    places, bits = [], []
    scale, shift = (np.resize(v, 2) for v in layer.scale_shift())
    for i, letter in enumerate("xy"):
        fraction = layer.integer(f"coordinate_{letter}_shift")
        moved = grid[..., i].astype(np.int64) + layer.inputs[1].scalar_zero
        centre = (x.shape[2 - i] - 1) * (1 << fraction) // 2
        places.append(saturate(((moved * scale[i]) >> shift[i]) + centre, -32768, 32767))
        bits.append(fraction)
    (column, row), (bx, by) = places, bits
    out, wide, beyond = layer.output, x.astype(np.int64), -layer.input.scalar_zero
    if layer.word("method", "BILINEAR", METHODS) == "NEAREST":
        near = [saturate(p + (1 << b >> 1), -32768, 32767) >> b for p, b in zip(places, bits, strict=True)]
        return saturate(_pixels(layer, wide, near[1], near[0], beyond), out.low, out.high)
    left, top = column >> bx, row >> by
    fx, fy = (column - (left << bx))[..., None], (row - (top << by))[..., None]
    lines = []
    for at in (top, top + 1):
        a, b = (_pixels(layer, wide, at, c, beyond) for c in (left, left + 1))
        lines.append(a + (((b - a) * fx) >> bx))
    return saturate(lines[0] + (((lines[1] - lines[0]) * fy) >> by), out.low, out.high)
