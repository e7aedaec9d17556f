"""Regions in whole numbers: the quantised forms of crops, nearest regions and pyramids.

Places are integers that stand for parts of the image, or for pixels, by the scale of the boxes. Where the format leaves
a step open the choice is said here and on the pages of the layers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compass_core.arrays import Array
from compass_core.namedtuple import NamedTuple
from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.arithmetic import approximate_factor, requantise
from compassc.layers.families.regions.reference import (
    CROPS,
    LEVELS,
    MOST,
    NORMALISED_LEVELS,
    check_rois,
    crop_size,
    fixed_terms,
    mean_bits,
    mean_of_points,
    pyramid_numbers,
    pyramid_shape,
    samples,
    spread_points,
)

PART = 15
"""Fraction bits of weights, at most: with them, the difference of two numbers of 16 bits fits 32 bits."""
STEP = 8
"""Fraction bits of the distance of points, and bits of a box of which only the nearest pixels are taken."""
COUNTED = 12
"""Bits of the multiplier that brings boxes to `STEP` bits."""


def narrow_types(*tensors: Tensor) -> None:
    for t in tensors:
        if not t.is_integer or t.integer.bits > 16:
            raise LayerError(f"'{t.name}' is {t.dtype}, but quantised maps and boxes have at most 16 bits")


def same_levels(x: Tensor, y: Tensor) -> None:
    """LayerError where a layer that hands elements on declares other steps for them."""
    if (x.dtype, x.scalar_scale, x.scalar_zero) != (y.dtype, y.scalar_scale, y.scalar_zero):
        of = [f"{t.dtype} with the scale {t.scalar_scale:g} and the zero point {t.scalar_zero}" for t in (x, y)]
        raise LayerError(f"'{x.name}' is {of[0]}, but '{y.name}' {of[1]}; the layer keeps them")


def reach(t: Tensor) -> int:
    """The largest magnitude of what a tensor holds, its zero point added."""
    return max(abs(t.low + t.scalar_zero), abs(t.high + t.scalar_zero))


# -- nearest regions


class FixedNearest(NamedTuple):
    """The numbers of a quantised ROIPooling: multiplier and shift that bring boxes to 255 steps, and along y and x the
    pixels of a step over the cells, with 15 fraction bits."""

    scale: int
    shift: int
    pixels: tuple[int, int]


def nearest_numbers(layer: Layer) -> FixedNearest:
    x, boxes = layer.inputs
    narrow_types(x, boxes)
    same_levels(x, layer.output)
    cells = layer.output.shape[-3:-1]
    if len(x.shape) != 4 or boxes.shape[-1:] != (4,) or len(cells) != 2 or 0 in cells:
        raise LayerError(f"{list(x.shape)} and {list(boxes.shape)} are not NHWC maps and boxes of four numbers")
    scale, shift = (int(v) for v in approximate_factor(((1 << STEP) - 1) / boxes.scalar_scale, COUNTED))
    if shift < 0:
        raise LayerError(
            f"'{boxes.name}' has the scale {boxes.scalar_scale:g}, which leaves no places inside the image"
        )
    pixels = []
    for a, key in enumerate(("y_index_scale", "x_index_scale")):
        exact = round((1 << PART) * x.shape[1 + a] / ((1 << STEP) - 1) / cells[a])
        found = layer.integer(key, exact)
        if not 0 <= found or ((cells[a] << STEP) * found + (cells[a] << PART)) >= 2**31:
            raise LayerError(f"'{key}' is {found}, which leads beyond 32 bits in {cells[a]} cells")
        pixels.append(found)
    return FixedNearest(scale, shift, (pixels[0], pixels[1]))


def quantised_roi_pooling(layer: Layer, x: Array, boxes: Array) -> Array:
    """The places of floats, computed with 15 fraction bits from boxes in 255 steps."""
    f, cells = nearest_numbers(layer), layer.output.shape[-3:-1]
    wide = boxes.reshape(-1, 4).astype(np.int64) + layer.inputs[1].scalar_zero
    half = 1 << (f.shift - 1) if f.shift else 0
    steps = np.clip((wide * f.scale + half) >> f.shift, 0, (1 << STEP) - 1)
    found = np.empty((len(steps), *cells, x.shape[3]), x.dtype)
    for r, box in enumerate(steps):
        at = []
        for a, n in enumerate(cells):
            i = np.arange(n)
            places = ((n * box[a] + i * (box[a + 2] - box[a])) * f.pixels[a] + (i << PART)) >> PART
            at.append(np.clip(places, 0, x.shape[1 + a] - 1))
        found[r] = x[0][np.ix_(*at)]
    return found.reshape(layer.output.shape)


# -- crops


class Unit(NamedTuple):
    """How boxes become pixels: places times `scale` over 2^shift; `whole` is what 1 is in boxes."""

    scale: int
    shift: int
    whole: int

    @property
    def part(self) -> int:
        """Fraction bits of weights."""
        return min(self.shift, PART)

    @property
    def pixel(self) -> tuple[int, int]:
        """What a pixel is in places: a whole number, and a rest over `scale`."""
        return divmod(1 << self.shift, self.scale)


def unit_of(scale: int, shift: int, boxes: Tensor, sizes: Sequence[Sequence[int]], cells: Sequence[int]) -> Unit:
    """LayerError where the multiplier contradicts the scale of the boxes, or places do not fit 32 bits."""
    whole = max(1, round(boxes.scalar_scale))
    if not (0 < scale < 1 << 16 and 0 <= shift <= 30):
        raise LayerError(
            f"the multiplier of the boxes is {scale} and its shift {shift}, expected 1 to 65535 and 0 to 30"
        )
    if not 0.7 < whole * scale / (1 << shift) < 1.4:
        raise LayerError(
            f"'{boxes.name}' has the scale {boxes.scalar_scale:g}, but its multiplier {scale} and shift {shift} are for "
            f"{(1 << shift) / scale:g}"
        )
    largest = max(n for size in sizes for n in size)
    if 4 * max(reach(boxes), 1) * largest >= 2**31 or largest * scale >= 2**31 or max(cells) >= 1 << 16:
        raise LayerError(f"places of '{boxes.name}' in maps of up to {largest} pixels do not fit 32 bits")
    return Unit(scale, shift, whole)


def crop_unit(layer: Layer) -> Unit:
    x, boxes = layer.inputs[:2]
    narrow_types(x, boxes)
    same_levels(x, layer.output)
    scale, shift = (int(v.reshape(-1)[0]) for v in layer.scale_shift(of=1))
    return unit_of(scale, shift, boxes, [x.shape[1:3]], crop_size(layer))


def toward_zero(value: int, by: int) -> int:
    """A quotient without its fraction."""
    return abs(value) // by * (1 if value >= 0 else -1)


def _places(first: int, last: int, size: int, n: int) -> list[int]:
    """Where the points of a crop lie along an axis, in parts of pixels."""
    span = (last - first) * (size - 1)
    if n == 1:
        return [((first + last) * (size - 1)) >> 1]
    step = toward_zero(span << STEP, n - 1)
    return [first * (size - 1) + (i * step >> STEP) for i in range(n)]


def _pixels(at: int, size: int, unit: Unit) -> tuple[int, int, int]:
    """The pixel before a place, the one behind it, and the weight of the second."""
    low = min((at * unit.scale) >> unit.shift, size - 1)
    whole, rest = unit.pixel
    fraction = min(max(at - low * whole - low * rest // unit.scale, 0), whole + 1)
    weight = min((fraction * unit.scale) >> (unit.shift - unit.part), 1 << unit.part)
    return low, min(low + 1, size - 1), weight


def fixed_crop(x: Array, box: Sequence[int], shape: Sequence[int], nearest: bool, outside: int, unit: Unit) -> Array:
    """A part of a map [H, W, C] of whole numbers; `box` is (y0, x0, y1, x1) in parts of the image."""
    sizes = x.shape[:2]
    rows, columns = (_places(box[a], box[a + 2], sizes[a], shape[a]) for a in (0, 1))
    found = np.full((*shape, x.shape[2]), outside, np.int64)
    half = 1 << (unit.shift - 1) if unit.shift else 0
    for i, y in enumerate(rows):
        for j, c in enumerate(columns):
            if not all(0 <= p <= (n - 1) * unit.whole for p, n in zip((y, c), sizes, strict=True)):
                continue
            if nearest:
                top, left = (
                    min((p * unit.scale + half) >> unit.shift, n - 1) for p, n in zip((y, c), sizes, strict=True)
                )
                found[i, j] = x[top, left]
                continue
            (top, bottom, fy), (left, right, fx) = (_pixels(p, n, unit) for p, n in zip((y, c), sizes, strict=True))
            above = x[top, left] + (((x[top, right] - x[top, left]) * fx) >> unit.part)
            below = x[bottom, left] + (((x[bottom, right] - x[bottom, left]) * fx) >> unit.part)
            found[i, j] = above + (((below - above) * fy) >> unit.part)
    return found


def crop_outside(layer: Layer) -> int:
    """What lies outside of the image, as the output's integer."""
    value, y = layer.integer("extrapolation_value", 0), layer.output
    if not y.low <= value <= y.high:
        raise LayerError(f"'extrapolation_value' is {value}, but '{y.name}' holds {y.low} to {y.high}")
    return value


def quantised_crop_and_resize(layer: Layer, x: Array, boxes: Array, images: Array) -> Array:
    check_rois(layer, x, boxes, 4)
    unit, shape, outside = crop_unit(layer), crop_size(layer), crop_outside(layer)
    nearest = layer.word("method", "BILINEAR", CROPS) == "NEAREST"
    if images.size != len(boxes):
        raise LayerError(f"{len(boxes)} boxes and {images.size} indices of images")
    wide = x.astype(np.int64)
    found = np.full((len(boxes), *shape, x.shape[3]), outside, np.int64)
    for r, (box, i) in enumerate(zip(_whole(boxes, layer.inputs[1]), images.reshape(-1).tolist(), strict=True)):
        if 0 <= i < len(x):
            found[r] = fixed_crop(wide[i], box, shape, nearest, outside, unit)
    return found


def _whole(boxes: Array, t: Tensor) -> list[list[int]]:
    found: list[list[int]] = (boxes.reshape(-1, 4).astype(np.int64) + t.scalar_zero).tolist()
    return found


# -- pyramids


class FixedPyramid(NamedTuple):
    """The numbers of a quantised PyramidROIAlign: areas of the second level on, multiplier and shift of each level's
    results, in parts of the image the unit of boxes; otherwise fraction bits of pixels, and multiplier and shift of
    boxes by level."""

    limits: list[int]
    scale: list[int]
    shift: list[int]
    unit: Unit | None
    fraction: int
    places: list[tuple[int, int]]
    adaptive: bool = False
    """Whether cells have as many points as pixels; then results are means, and factors know of no number of points."""

    @property
    def part(self) -> int:
        """Fraction bits of sums or means."""
        return mean_bits(self.fraction) if self.adaptive else self.fraction


def _four(layer: Layer, key: str, low: int, high: int) -> list[int]:
    found = layer.integers(key)
    found = found * 4 if len(found) == 1 else found
    if len(found) != 4 or min(found) < low or max(found) > high:
        raise LayerError(
            f"'{key}' is {layer.attributes[key]}, expected a number for each of four levels, {low} to {high}"
        )
    return found


def fixed_pyramid(layer: Layer) -> FixedPyramid:
    boxes, maps, y = layer.inputs[0], layer.inputs[1:], layer.output
    if len(maps) != 4 or any(len(m.shape) != 4 or m.shape[0] != 1 for m in maps) or boxes.shape[-1:] != (4,):
        raise LayerError("it takes boxes and four maps of one image")
    narrow_types(boxes, y, *maps)
    given = [v.reshape(-1).tolist() for v in layer.scale_shift(of=4)]
    steps = [(m.scalar_scale, m.scalar_zero) for m in maps]
    if len(given[0]) == 1 and len(set(steps)) > 1:
        raise LayerError(
            f"the maps have the scales and zero points {steps}, but 'scale_value' is {given[0][0]} for all of them"
        )
    scale, shift = (v * 4 if len(v) == 1 else v for v in given)
    normalised = layer.flag("proposal_normalized", False)
    areas = NORMALISED_LEVELS if normalised else LEVELS
    limits = layer.integers("levels", [int(np.ceil(v * boxes.scalar_scale**2)) for v in areas])
    if len(limits) != 3 or min(limits) < 1 or limits != sorted(limits):
        raise LayerError(f"'levels' is {limits}, expected three areas above 0 in ascending order")
    found = FixedPyramid(limits, scale, shift, None, 0, [])
    if normalised:
        found = found._replace(unit=_normalised_unit(layer, boxes, maps))
    else:
        found = _in_pixels(layer, found)
    _check_results(layer, found)
    return found


def _normalised_unit(layer: Layer, boxes: Tensor, maps: Sequence[Tensor]) -> Unit:
    """By `input_scale` and `input_shift`, or by a power of two, which must be near the scale of the boxes."""
    scale, shift = layer.integer("input_scale", 1), layer.integer("input_shift", -1)
    if shift < 0:
        shift = layer.integer("box_input_qvalue", int(np.rint(np.log2(boxes.scalar_scale))))
        off = abs(boxes.scalar_scale / 2.0**shift - 1) * max(n for m in maps for n in m.shape[1:3])
        if off > 0.25:
            raise LayerError(
                f"'{boxes.name}' has the scale {boxes.scalar_scale:g}, but 'box_input_qvalue' {shift} stands for "
                f"{2.0**shift:g}: {off:.1f} pixels off; give it 'input_scale' and 'input_shift'"
            )
    return unit_of(scale, shift, boxes, [m.shape[1:3] for m in maps], pyramid_shape(layer))


def _in_pixels(layer: Layer, f: FixedPyramid) -> FixedPyramid:
    boxes, maps = layer.inputs[0], layer.inputs[1:]
    fraction, count = layer.integer("spatial_shift"), samples(layer)
    if not 1 <= fraction <= PART:
        raise LayerError(f"'spatial_shift' is {fraction}, expected 1 to {PART}")
    places = list(zip(_four(layer, "input_scale", 0, 65535), _four(layer, "input_shift", 0, 31), strict=True))
    farthest = max((reach(boxes) * m >> s) + (2 << fraction) for m, s in places)
    if max(n for m in maps for n in m.shape[1:3]) << fraction >= 2**30:
        raise LayerError(f"'spatial_shift' is {fraction}: places in the maps do not fit 32 bits")
    check_points("input_scale", farthest, pyramid_shape(layer), count, fraction)
    return f._replace(fraction=fraction, places=places, adaptive=0 in count)


def check_points(key: str, farthest: int, shape: Sequence[int], count: Sequence[int], bits: int) -> None:
    """LayerError where the quotients that points of regions are at do not fit 32 bits."""
    points = max(n * (m or min((2 * farthest >> bits) // n + 1, MOST)) for n, m in zip(shape, count, strict=True))
    if 8 * farthest >= 2**31 or points >= 1 << 14:
        raise LayerError(
            f"'{key}' leads to places up to {farthest}, which with {points} points of a region along an axis do not fit 32 bits"
        )


def pyramid_reach(layer: Layer, f: FixedPyramid) -> list[int]:
    """The largest magnitude of each level's sums before they are requantised."""
    many = 1 if f.unit or f.adaptive else int(np.prod(samples(layer)))
    return [reach(m) * many << f.part for m in layer.inputs[1:]]


def _check_results(layer: Layer, f: FixedPyramid) -> None:
    for most, scale, shift in zip(pyramid_reach(layer, f), f.scale, f.shift, strict=True):
        last = shift + f.part
        if not (0 <= scale < 1 << 15 and 0 <= last <= 46) or most >= 2**31 or most * scale >> last >= 2**31:
            raise LayerError(
                f"'scale_value' {scale} with 'shift_value' {shift} of sums up to {most} is beyond what kernels compute"
            )


def quantised_pyramid(layer: Layer, boxes: Array, *maps: Array) -> Array:
    """Every level has a factor of its own; the distance of points is one quotient, rounded down."""
    f, y, shape = fixed_pyramid(layer), layer.output, pyramid_shape(layer)
    found = []
    for box in _whole(boxes, layer.inputs[0]):
        area = (box[2] - box[0]) * (box[3] - box[1])
        level = sum(area >= limit for limit in f.limits)
        wide = maps[level][0].astype(np.int64) + layer.inputs[1 + level].scalar_zero
        if f.unit:
            total = fixed_crop(wide, box, shape, False, 0, f.unit)
        else:
            total = _aligned(layer, f, wide, box, f.places[level])
        exact = requantise(total, f.scale[level], f.shift[level] + f.part, y.scalar_zero, y.low, y.high)
        found.append(exact)
    made = np.stack(found) if found else np.zeros((0,), np.int64)
    return made.reshape(y.shape)


def _aligned(layer: Layer, f: FixedPyramid, x: Array, box: Sequence[int], place: tuple[int, int]) -> Array:
    """The sums or means of a region's points, with `f.part` fraction bits."""
    shape, count, (mode, _) = pyramid_shape(layer), samples(layer), pyramid_numbers(layer)
    found, one = np.zeros((*shape, x.shape[2]), np.int64), 1 << f.fraction
    ends = [((v * place[0]) >> place[1]) - (one >> 1 if mode == "HALF_PIXEL" else 0) for v in box]
    size = [ends[a + 2] - ends[a] for a in (0, 1)]
    if mode == "OUTPUT_HALF_PIXEL":
        size = [max(s, one) for s in size]
    if min(size) < 0:
        return found
    points = [spread_points(ends[a], size[a], shape[a], count[a], f.fraction) for a in (0, 1)]
    for i, rows in enumerate(points[0]):
        for j, columns in enumerate(points[1]):
            if f.adaptive:
                found[i, j] = mean_of_points(x, rows, columns, f.fraction)
                continue
            terms = [t for p in rows for q in columns for t in fixed_terms(x, p, q, f.fraction)]
            found[i, j] = np.sum(terms, axis=0)
    return found
