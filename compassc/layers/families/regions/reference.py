"""Regions of feature maps, whose places are values of another tensor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compass_core.arrays import Array
from compassc.graph import Layer, LayerError
from compassc.layers.arithmetic import requantise
from compassc.operators.arrays import largest_of, limited

MODES = ("HALF_PIXEL", "OUTPUT_HALF_PIXEL")
AVERAGES = ("AVG", "MAX")
CROPS = ("BILINEAR", "NEAREST")
MOST = 1024
"""Points of a cell along an axis."""
FARTHEST = float(1 << 20)
"""The largest magnitude of a pixel that a region of a MaxRoiPool begins or ends with."""
FRACTION = 10
"""Fraction bits of quantised places."""
LEVELS = tuple(float(np.float32((224 * 2.0 ** (k - 4 - 1e-6)) ** 2)) for k in (3, 4, 5))
"""Areas of regions, in pixels, from which on the next level of a pyramid is taken."""
NORMALISED_LEVELS = (0.005979, 0.023914, 0.095656)
"""The same, as parts of the image."""


def pair(layer: Layer, key: str, default: object = None) -> tuple[float, float]:
    """Two numbers (y, x); a single one counts for both."""
    found = layer.numbers(key) if default is None else layer.numbers(key, default)
    if len(found) == 1:
        found = found * 2
    if len(found) != 2:
        raise LayerError(f"'{key}' has {len(found)} values, expected two")
    return found[0], found[1]


def pooled_shape(layer: Layer) -> tuple[int, int]:
    h, w = pair(layer, "pooled_shape")
    if h < 1 or w < 1 or h != int(h) or w != int(w):
        raise LayerError(f"'pooled_shape' is {layer.attributes['pooled_shape']}, expected two positive sizes")
    check_size(layer, (h, w))
    return int(h), int(w)


def check_size(layer: Layer, size: Sequence[float]) -> None:
    """Results have this size."""
    if len(layer.output.shape) < 3 or tuple(layer.output.shape[-3:-1]) != tuple(size):
        raise LayerError(f"regions of {list(size)} do not lead to the shape {list(layer.output.shape)}")


def samples(layer: Layer) -> tuple[int, int]:
    """Points of a cell along y and x; 0: as many as a cell has pixels, up to `MOST`."""
    h, w = (int(n) for n in pair(layer, "sample", [0]))
    if not (0 <= h <= MOST and 0 <= w <= MOST):
        raise LayerError(f"'sample' is {layer.attributes['sample']}, expected numbers from 0 to {MOST}")
    return h, w


def check_rois(layer: Layer, x: Array, rois: Array, width: int) -> None:
    if x.ndim != 4 or rois.ndim != 2 or rois.shape[1] != width:
        raise LayerError(f"{list(x.shape)} and {list(rois.shape)} are not NHWC maps and rows of {width} numbers")


# -- RoiAlign


def weighed(x: Array, y0: np.float32, x0: np.float32) -> list[Array]:
    """The four pixels around a point, each times its weight; 0 for points more than a pixel outside."""
    height, width = x.shape[:2]
    one = np.float32(1)
    if not (-1 <= y0 <= height and -1 <= x0 <= width):
        return [np.zeros(x.shape[2], np.float32)] * 4
    at, parts = [], []
    for place, size in ((y0, height), (x0, width)):
        p = np.maximum(place, np.float32(0))
        low = min(int(p), size - 1)
        at.append((low, min(low + 1, size - 1)))
        parts.append(np.float32(0) if low >= size - 1 else np.float32(p - np.float32(low)))
    fy, fx = parts
    (top, bottom), (left, right) = at
    return [
        x[top, left] * ((one - fy) * (one - fx)),
        x[top, right] * ((one - fy) * fx),
        x[bottom, left] * (fy * (one - fx)),
        x[bottom, right] * (fy * fx),
    ]


def aligned(
    x: Array,
    start: Sequence[np.float32],
    size: Sequence[np.float32],
    shape: Sequence[int],
    count: Sequence[int],
    maximum: bool,
) -> Array:
    """One region of a map [H, W, C] in float32, sampled at `count` points per cell (0: one per pixel, up to `MOST`)."""
    half = np.float32(0.5)
    step = [np.float32(s / np.float32(n)) for s, n in zip(size, shape, strict=True)]
    many = [n or min(int(np.ceil(s)), MOST) for n, s in zip(count, step, strict=True)]
    places = [
        [
            [np.float32(a + np.float32(i) * s + (np.float32(k) + half) * s / np.float32(m)) for k in range(m)]
            for i in range(n)
        ]
        for a, s, m, n in zip(start, step, many, shape, strict=True)
    ]
    found = np.zeros((*shape, x.shape[2]), np.float32)
    points = many[0] * many[1]
    near = [[[p for p in cell if -1 <= p <= n] for cell in side] for side, n in zip(places, x.shape[:2], strict=True)]
    for i, ys in enumerate(near[0] if points else ()):
        for j, xs in enumerate(near[1]):
            terms = [weighed(x, y, c) for y in ys for c in xs]
            if len(terms) < points:  # of those outside of the map, once
                terms.append([np.zeros(x.shape[2], np.float32)] * 4)
            if maximum:
                found[i, j] = largest_of(np.asarray(terms), (0, 1))
                continue
            total = np.zeros(x.shape[2], np.float32)
            for t in terms:
                total = total + (((t[0] + t[1]) + t[2]) + t[3])
            found[i, j] = total / np.float32(points)
    return found


def _ends(roi: Array, scale: tuple[float, float], mode: str) -> tuple[list[np.float32], list[np.float32], bool]:
    """(first points, sizes, whether the region has points) of (y0, x0, y1, x1)."""
    shift = np.float32(0.5 if mode == "HALF_PIXEL" else 0)
    factors = [np.float32(s) for s in scale]
    start = [np.float32(roi[i] * factors[i] - shift) for i in (0, 1)]
    size = [np.float32(np.float32(roi[i + 2] * factors[i] - shift) - start[i]) for i in (0, 1)]
    if mode == "OUTPUT_HALF_PIXEL":
        size = [np.fmax(s, np.float32(1)) for s in size]
    return start, size, all(0 <= s < np.inf for s in size)


def image_of(roi: Array, images: int) -> int:
    """The image of a region (image, y0, x0, y1, x1); NaN is the first one, infinities are none."""
    return int(np.nan_to_num(roi[0], posinf=images, neginf=-1))


def roi_align(layer: Layer, x: Array, rois: Array) -> Array:
    check_rois(layer, x, rois, 5)
    shape, count = pooled_shape(layer), samples(layer)
    mode = layer.word("coordinate_transformation_mode", "HALF_PIXEL", MODES)
    maximum = layer.word("method", "AVG", AVERAGES) == "MAX"
    scale = pair(layer, "spatial_scale_value", [1.0])
    wide = x.astype(np.float32)
    found = np.zeros((len(rois), *shape, x.shape[3]), np.float32)
    for r, roi in enumerate(rois.astype(np.float32)):
        start, size, valid = _ends(roi[1:], scale, mode)
        image = image_of(roi, len(x))
        if valid and 0 <= image < len(x):
            found[r] = aligned(wide[image], start, size, shape, count, maximum)
    return found


def images_of(layer: Layer, rois: Array) -> Array:
    """The image of each region, by the scale of the tensor of regions."""
    if layer.input.shape[0] == 1:
        return np.zeros(len(rois), np.int64)
    t = layer.inputs[1]
    real = (rois[:, 0].astype(np.float32) + np.float32(t.scalar_zero)) / np.float32(t.scalar_scale)
    found: Array = np.rint(real).astype(np.int64)
    return found


def _fixed_points(start: int, size: int, many: int, count: int, numbers: Sequence[int]) -> list[list[int]]:
    bin_scale, bin_shift, grid_scale, grid_shift = numbers
    step = (size * bin_scale) >> bin_shift
    half = (step * grid_scale) >> grid_shift
    return [[start + step * i + half * (2 * k + 1) for k in range(count)] for i in range(many)]


def fixed_numbers(layer: Layer) -> list[list[int]]:
    """bin scale, bin shift, grid scale, grid shift along y and x."""
    rows = []
    keys = ("bin_scale_value", "bin_shift_value", "grid_scale_value", "grid_shift_value")
    for key in keys:
        given = layer.integers(key)
        rows.append(given * 2 if len(given) == 1 else given)
        if len(rows[-1]) != 2 or min(rows[-1]) < 0 or max(rows[-1]) >= (65536 if "scale" in key else 32):
            raise LayerError(f"'{key}' is {layer.attributes[key]}, expected two numbers of 16 bits (shifts: 0 to 31)")
    return [[row[i] for row in rows] for i in (0, 1)]


def _fixed_corners(p: int, size: int, bits: int) -> tuple[int, int, int, bool]:
    inside = -(1 << bits) <= p <= size << bits
    p = max(p, 0)
    low = min(p >> bits, size - 1)
    return low, min(low + 1, size - 1), 0 if low >= size - 1 else p & ((1 << bits) - 1), inside


def spread_points(start: int, size: int, many: int, count: int, bits: int) -> list[list[int]]:
    """Where the points of each of `many` cells lie along an axis; `count` 0: as many as a cell has pixels, up to `MOST`."""
    count = count or min(-(-size // (many << bits)), MOST)
    return [[start + (2 * (i * count + k) + 1) * size // (2 * many * count) for k in range(count)] for i in range(many)]


def mean_of_points(x: Array, rows: Sequence[int], columns: Sequence[int], bits: int) -> Array:
    """With `mean_bits` fraction bits; the mean of a row and that of the rows lose what is left."""
    total = np.zeros(x.shape[2], np.int64)
    for p in rows if columns else ():
        line = sum(np.sum(fixed_terms(x, p, q, bits), axis=0) >> (bits - mean_bits(bits)) for q in columns)
        total += np.sign(line) * (np.abs(line) // len(columns))
    return np.asarray(np.sign(total) * (np.abs(total) // max(len(rows), 1)))


def mean_bits(bits: int) -> int:
    """Fraction bits of the mean of any number of points: with those, sums of `MOST` numbers of 17 bits fit 32."""
    return min(bits, 3)


def quantised_roi_align(layer: Layer, x: Array, rois: Array) -> Array:
    """Places with ten fraction bits; where cells have as many points as pixels they are exact quotients, rounded down."""
    check_rois(layer, x, rois, 5)
    shape, count = pooled_shape(layer), samples(layer)
    adaptive = 0 in count
    mode = layer.word("coordinate_transformation_mode", "HALF_PIXEL", MODES)
    maximum = layer.word("method", "AVG", AVERAGES) == "MAX"
    spatial = [int(v) for v in pair(layer, "spatial_scale_value")]
    numbers = [] if adaptive else fixed_numbers(layer)
    scale, shift = (np.resize(v, 2) for v in layer.scale_shift(of=2))
    one, out, source = 1 << FRACTION, layer.output, layer.inputs[1]
    wide = x.astype(np.int64) + layer.input.scalar_zero
    real = (rois[:, 1:].astype(np.int64) + source.scalar_zero) * float(scale[1]) * 2.0 ** -float(shift[1])
    ends = np.trunc(real).astype(np.int64) * np.resize(spatial, 4) - (512 if mode == "HALF_PIXEL" else 0)
    found = np.zeros((len(rois), *shape, x.shape[3]), np.int64)
    for r, image in enumerate(images_of(layer, rois)):
        size = [int(ends[r, i + 2] - ends[r, i]) for i in (0, 1)]
        if mode == "OUTPUT_HALF_PIXEL":
            size = [max(s, one) for s in size]
        if min(size) < 0 or not 0 <= image < len(x):
            continue
        ys, xs = (
            spread_points(int(ends[r, i]), size[i], shape[i], count[i], FRACTION)
            if adaptive
            else _fixed_points(int(ends[r, i]), size[i], shape[i], count[i], numbers[i])
            for i in (0, 1)
        )
        for i, rows in enumerate(ys):
            for j, columns in enumerate(xs):
                if adaptive and not maximum:
                    found[r, i, j] = mean_of_points(wide[image], rows, columns, FRACTION)
                elif rows and columns:
                    terms = [t for p in rows for q in columns for t in fixed_terms(wide[image], p, q, FRACTION)]
                    found[r, i, j] = np.max(terms, axis=0) if maximum else np.sum(terms, axis=0)
    part = mean_bits(FRACTION) if adaptive and not maximum else FRACTION
    return requantise(found, scale[0], shift[0] + part, out.scalar_zero, out.low, out.high)


def fixed_terms(x: Array, p: int, q: int, bits: int) -> list[Array]:
    """The four pixels around a place with fraction bits, each times its weight of as many bits."""
    top, bottom, fy, above = _fixed_corners(p, x.shape[0], bits)
    left, right, fx, beside = _fixed_corners(q, x.shape[1], bits)
    one = (1 << bits) * (above and beside)
    sides = ((top, (one - fy) * bool(one)), (bottom, fy * bool(one)))
    ends = ((left, (one - fx) * bool(one)), (right, fx * bool(one)))
    return [x[y, c] * ((v * w) >> bits) for y, v in sides for c, w in ends]


# -- pyramids and crops


def crop(x: Array, box: Array, shape: Sequence[int], nearest: bool, outside: Array | np.float32) -> Array:
    """A part of a map [H, W, C], its corners at the outer pixels' centres; `box` is (y0, x0, y1, x1) from 0 to 1."""
    places = []
    for axis, n in enumerate(shape):
        last = np.float32(x.shape[axis] - 1)
        first, end = box[axis], box[axis + 2]
        if n > 1:
            step = (end - first) * last / np.float32(n - 1)
            places.append([np.float32(first * last + np.float32(i) * step) for i in range(n)])
        else:
            places.append([np.float32(np.float32(0.5) * (first + end) * last)])
    found = np.empty((*shape, x.shape[2]), np.float32)
    for i, y in enumerate(places[0]):
        for j, c in enumerate(places[1]):
            if not (0 <= y <= x.shape[0] - 1 and 0 <= c <= x.shape[1] - 1):
                found[i, j] = outside
            elif nearest:
                found[i, j] = x[int(np.floor(y + np.float32(0.5))), int(np.floor(c + np.float32(0.5)))]
            else:
                top, left = int(y), int(c)
                bottom, right = min(top + 1, x.shape[0] - 1), min(left + 1, x.shape[1] - 1)
                fy, fx = np.float32(y - np.float32(top)), np.float32(c - np.float32(left))
                above = x[top, left] + (x[top, right] - x[top, left]) * fx
                below = x[bottom, left] + (x[bottom, right] - x[bottom, left]) * fx
                found[i, j] = above + (below - above) * fy
    return found


def crop_size(layer: Layer) -> tuple[int, int]:
    found = layer.integers("crop_size")
    if len(found) != 2 or min(found) < 1:
        raise LayerError(f"'crop_size' is {found}, expected two positive sizes")
    check_size(layer, found)
    return found[0], found[1]


def crop_and_resize(layer: Layer, x: Array, boxes: Array, images: Array) -> Array:
    check_rois(layer, x, boxes, 4)
    shape, nearest = crop_size(layer), layer.word("method", "BILINEAR", CROPS) == "NEAREST"
    outside = np.asarray(layer.number("extrapolation_value", 0.0), np.float32)
    if images.size != len(boxes):
        raise LayerError(f"{len(boxes)} boxes and {images.size} indices of images")
    wide = x.astype(np.float32)
    found = [
        crop(wide[int(i)], box, shape, nearest, outside)
        if 0 <= i < len(x)
        else np.broadcast_to(outside, (*shape, x.shape[3]))
        for box, i in zip(boxes.astype(np.float32), images.reshape(-1), strict=True)
    ]
    return np.stack(found).astype(np.float32)


def pyramid_shape(layer: Layer) -> tuple[int, int]:
    shape = layer.integer("resize_height"), layer.integer("resize_width")
    if min(shape) < 1:
        raise LayerError(f"'resize_height' and 'resize_width' are {list(shape)}, expected positive sizes")
    check_size(layer, shape)
    return shape


def pyramid_roi_align(layer: Layer, boxes: Array, *maps: Array) -> Array:
    if len(maps) != 4 or any(m.ndim != 4 or len(m) != 1 for m in maps) or boxes.shape[-1] != 4:
        raise LayerError("it takes boxes and four maps of one image")
    shape = pyramid_shape(layer)
    rows = boxes.reshape(-1, 4).astype(np.float32)
    normalised = layer.flag("proposal_normalized", False)
    mode, scales = pyramid_numbers(layer)
    count = samples(layer)
    found = []
    for box in rows:
        area = np.float32((box[2] - box[0]) * (box[3] - box[1]))
        level = sum(bool(area >= np.float32(t)) for t in (NORMALISED_LEVELS if normalised else LEVELS))
        wide = maps[level][0].astype(np.float32)
        if normalised:
            found.append(crop(wide, box, shape, False, np.float32(0)))
            continue
        start, size, valid = _ends(box, (scales[level],) * 2, mode)
        empty = np.zeros((*shape, wide.shape[2]), np.float32)
        found.append(aligned(wide, start, size, shape, count, False) if valid else empty)
    return np.stack(found).reshape(layer.output.shape)


def pyramid_numbers(layer: Layer) -> tuple[str, list[float]]:
    """(coordinate mode, scale of each level)."""
    scales = layer.numbers("spatial_scale_value", [1.0])
    scales = scales * 4 if len(scales) == 1 else scales
    if len(scales) != 4:
        raise LayerError(f"'spatial_scale_value' has {len(scales)} values, expected one for each of four levels")
    return layer.word("coordinate_transformation_mode", "OUTPUT_HALF_PIXEL", MODES), scales


# -- pooling


def _maxima(x: Array, starts: Sequence[int], sizes: Sequence[int], shape: tuple[int, int], empty: int) -> Array:
    """The maxima over the parts of a region of a map [H, W, C]."""
    found = np.full((*shape, x.shape[2]), empty, x.dtype)
    spans = []
    for axis in (0, 1):
        n, size, start, room = shape[axis], sizes[axis], starts[axis], x.shape[axis]
        spans.append(
            [
                (min(max(i * size // n + start, 0), room), min(max(-(-(i + 1) * size // n) + start, 0), room))
                for i in range(n)
            ]
        )
    for i, (top, bottom) in enumerate(spans[0]):
        for j, (left, right) in enumerate(spans[1]):
            if top < bottom and left < right:
                found[i, j] = largest_of(x[top:bottom, left:right], (0, 1))
    return found


def max_roi_pool(layer: Layer, x: Array, rois: Array) -> Array:
    check_rois(layer, x, rois, 5)
    shape, spatial = pooled_shape(layer), pair(layer, "spatial", [1.0])
    found = np.zeros((len(rois), *shape, x.shape[3]), x.dtype)
    factors = np.resize(np.asarray(spatial, np.float32), 4)
    real = np.floor(rois[:, 1:].astype(np.float32) * factors + np.float32(0.5))
    ends = limited(real, -FARTHEST, FARTHEST).astype(np.int64)
    for r, roi in enumerate(rois.astype(np.float32)):
        image = image_of(roi, len(x))
        if 0 <= image < len(x):
            size = [max(int(ends[r, i + 2] - ends[r, i]) + 1, 1) for i in (0, 1)]
            found[r] = _maxima(x[image], ends[r, :2].tolist(), size, shape, 0)
    return found


def quantised_max_roi_pool(layer: Layer, x: Array, rois: Array) -> Array:
    """`spatial` has 16 fraction bits and holds the scale of the regions too."""
    check_rois(layer, x, rois, 5)
    shape, spatial = pooled_shape(layer), [int(v) for v in pair(layer, "spatial")]
    empty = -layer.input.scalar_zero
    found = np.full((len(rois), *shape, x.shape[3]), empty, np.int64)
    moved = (rois[:, 1:].astype(np.int64) + layer.inputs[1].scalar_zero) * np.resize(spatial, 4)
    ends = (moved + (1 << 15)) >> 16
    for r, image in enumerate(images_of(layer, rois)):
        if 0 <= image < len(x):
            size = [max(int(ends[r, i + 2] - ends[r, i]) + 1, 1) for i in (0, 1)]
            found[r] = _maxima(x[image].astype(np.int64), ends[r, :2].tolist(), size, shape, empty)
    return found


def roi_pooling(layer: Layer, x: Array, boxes: Array) -> Array:
    """The nearest pixels of normalised boxes in the first image."""
    rows = boxes.reshape(-1, 4).astype(np.float32)
    height, width = layer.output.shape[-3:-1] if len(layer.output.shape) > 2 else (0, 0)
    if x.ndim != 4 or height < 1 or width < 1:
        raise LayerError(f"{list(x.shape)} and {list(layer.output.shape)} are no NHWC maps")
    found = np.empty((len(rows), height, width, x.shape[3]), x.dtype)
    for r, box in enumerate(rows):
        at = [nearest_places(box[a], box[a + 2], x.shape[1 + a], n) for a, n in ((0, height), (1, width))]
        found[r] = x[0][np.ix_(*at)]
    return found.reshape(layer.output.shape)


def nearest_places(first: Array, last: Array, size: int, n: int) -> Array:
    factor = np.float32(np.float32(size) / np.float32(n))
    a, b = np.float32(first * factor), np.float32(last * factor)
    places = np.float32(n) * a + np.arange(n, dtype=np.float32) * np.float32(b + np.float32(1) - a)
    return limited(places, 0, size - 1).astype(np.int64)
