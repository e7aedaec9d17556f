"""Kernels of quantised regions: places are whole numbers with fraction bits, computed once for all channels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import add

import numpy as np

from compass_core.namedtuple import NamedTuple
from compassc.build import Expression, Value, both, either
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.families.regions.fixed import (
    PART,
    STEP,
    FixedPyramid,
    Unit,
    check_points,
    crop_outside,
    crop_unit,
    fixed_pyramid,
    nearest_numbers,
)
from compassc.layers.families.regions.frame import Axis, Near, Regions
from compassc.layers.families.regions.reference import (
    FRACTION,
    MOST,
    fixed_numbers,
    mean_bits,
    pair,
    pyramid_numbers,
    samples,
)
from compassc.layers.kernel import Kernel
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.requantise import requantise
from compassc.layers.vectors import clamp, everywhere, multiply_wide, scaled_floor, shift_any

Ends = list[tuple[Value, Value]]
"""Start and size of a region along both axes; of crops, its first and its last place."""


class Points(NamedTuple):
    """The points of a cell along an axis: how many, and the place of one by its number."""

    axis: Axis
    many: Value
    place: Callable[[Value], Expression]


# -- RoiAlign


def roi_align(layer: Layer, rois: Tensor, shape: tuple[int, int], mode: str, maximum: bool) -> Kernel:
    count, x, spatial = samples(layer), layer.input, [int(v) for v in pair(layer, "spatial_scale_value")]
    scale, shift = (np.resize(v, 2) for v in layer.scale_shift(of=2))
    largest = max(abs(rois.low + rois.scalar_zero), abs(rois.high + rois.scalar_zero))
    real = largest * int(scale[1]) * 2.0 ** -int(shift[1])
    if largest * int(scale[1]) >= 2**31 or not 0 <= shift[1] < 31 or not 0 <= scale[1]:
        raise LayerError(f"regions up to {largest} times {scale[1]} / 2^{shift[1]} are beyond what kernels compute")
    if (real + 1) * max(abs(s) for s in spatial) * 4 >= 2**31:
        raise LayerError(f"places up to {real:g} times 'spatial_scale_value' do not fit 32 bits")
    if 0 in count:
        far = int((real + 1) * max(abs(s) for s in spatial)) + 1024
        check_points("spatial_scale_value", far, shape, count, FRACTION)
    f = Regions(layer, rois, [x], shape)
    with f.cells():
        image = f.image(rois)
        valid, ends = _ends(f, mode, f.is_outside(image), spatial, int(scale[1]), int(shift[1]))
        with f.k.when(valid == 0):
            f.k.assign(image, S.i32(0))
        f.on_image(image)
        sides = _spread(f, ends, count, FRACTION) if 0 in count else _stepped(f, ends, count)
        _align(f, sides, valid, maximum, 0 in count)
    return f.k.kernel()


def _ends(
    f: Regions, mode: str, outside: Expression, spatial: Sequence[int], scale: int, shift: int
) -> tuple[Value, Ends]:
    """Whether (1 or 0) a region counts; where it begins in the image, and how large it is."""
    k, found = f.k, Ends()
    zero, factor, down = (k.number(n) for n in (f.layer.inputs[1].scalar_zero, scale, shift))
    valid = k.changing("valid", S.i32(1))
    with k.when(outside):
        k.assign(valid, S.i32(0))
    for n, pixels in enumerate(map(k.number, spatial)):

        def end(name: str, at: int, pixels: Value = pixels) -> Value:
            raw = k.held("raw", (S.i32(f.number_of(at)) + zero) * factor)
            toward_zero = k.changing("whole", S.max(raw, 0) >> down)
            with k.when(raw < 0):
                k.assign(toward_zero, 0 - ((0 - raw) >> down))
            return k.held(name, toward_zero * pixels - 512 if mode == "HALF_PIXEL" else toward_zero * pixels)

        start, behind = end("start", n + 1), end("behind", n + 3)
        found.append((start, _size(k, behind - start, mode, 1024, valid)))
    return valid, found


def _size(k: LayerKernel, difference: Expression, mode: str, least: int | Expression, valid: Value) -> Value:
    """The size of a region; one below 0 does not count."""
    size = k.changing("size", S.max(difference, least) if mode == "OUTPUT_HALF_PIXEL" else difference)
    with k.when(size < 0):
        k.assign(valid, S.i32(0))
        k.assign(size, S.i32(0))
    return size


def _stepped(f: Regions, ends: Ends, count: tuple[int, int]) -> list[Points]:
    """Points whose distances are rounded down."""
    k, found = f.k, []
    for axis, (start, size), many, numbers in zip(f.axes, ends, count, fixed_numbers(f.layer), strict=True):
        bin_scale, bin_shift, grid_scale, grid_shift = (k.number(int(v)) for v in numbers)
        step = k.held("step", scaled_floor(size, bin_scale, bin_shift))
        half = k.held("half", scaled_floor(step, grid_scale, grid_shift))

        def place(i: Value, first: Expression = start + step * axis.cell, half: Value = half) -> Expression:
            return first + half * (2 * i + 1)

        found.append(Points(axis, k.number(many), place))
    return found


def _spread(f: Regions, ends: Ends, count: tuple[int, int], bits: int | Value) -> list[Points]:
    """Points at equal distances, in parts of the region; `count`: of a cell along each axis, 0 for one of each pixel."""
    k, found = f.k, []
    for axis, (start, size), points in zip(f.axes, ends, count, strict=True):
        cell = axis.cells << bits
        many = k.held("many", k.number(points) + 0 if points else S.min((size + cell - 1) / cell, MOST))
        parts = k.held("parts", S.max(2 * axis.cells * many, 1))
        step = k.held("step", size / parts)
        rest = k.held("rest", size - step * parts)

        def place(i: Value, own: tuple[Expression, ...] = (axis.cell, start, many, parts, step, rest)) -> Expression:
            index, start, many, parts, step, rest = own
            odd = 2 * (index * many + i) + 1
            return start + odd * step + odd * rest / parts

        found.append(Points(axis, many, place))
    return found


def _point(k: LayerKernel, points: Points, number: Value, bits: int | Value, valid: Value) -> Near:
    """The pixels around a point, whose place has fraction bits; those outside of the map are weighed with 0."""
    size, one = points.axis.pixels, S.i32(1) << bits
    exact, inside = k.held("exact", points.place(number)), k.changing("inside", S.i32(0))
    with k.when(both(both(valid != 0, exact >= 0 - one), exact <= size << bits)):
        k.assign(inside, S.i32(1))
    at = k.held("at", S.max(exact, 0))
    near = k.held("near", S.min(at >> bits, size - 1))
    far, part = k.held("far", S.min(near + 1, size - 1)), k.changing("part", at & (one - 1))
    with k.when(near >= size - 1):
        k.assign(part, S.i32(0))
    return Near((near, far), (k.held("here", (one - part) * inside), k.held("there", part * inside)))


def _terms(pixels: list[Value], y: Near, x: Near, bits: int | Value) -> list[Expression]:
    """Pixels times their weights, which have fraction bits."""
    weights = [(v * u) >> bits for v in y.weights for u in x.weights]
    return [p * w for p, w in zip(pixels, weights, strict=True)]


def _mean(k: LayerKernel, total: Value, rows: Value) -> None:
    """A sum of means becomes their mean."""
    k.assign(total, total / everywhere(S.max(rows, 1)))


def _align(f: Regions, sides: Sequence[Points], valid: Value, maximum: bool, adaptive: bool) -> None:
    k, (x, y), count = f.k, (f.layer.input, f.layer.output), samples(f.layer)
    scale, shift = (np.resize(v, 2) for v in f.layer.scale_shift(of=2))
    means, many = adaptive and not maximum, [s.many for s in sides]
    part = mean_bits(FRACTION) if means else FRACTION
    low, high = (v + x.scalar_zero for v in (x.low, x.high))
    times = 1 if maximum or means else count[0] * count[1]

    def weighed(total: Value, pixels: list[Value], v: Near, u: Near) -> None:
        terms = _terms(pixels, v, u, FRACTION)
        if maximum:
            k.assign(total, S.max(total, S.max(S.max(terms[0], terms[1]), S.max(terms[2], terms[3]))))
        else:
            found = reduce(add, terms)
            k.assign(total, total + (found >> (FRACTION - part) if means else found))

    def ended(total: Value) -> Value:
        if maximum:
            nothing = valid == 0
            with k.when(either(nothing, many[0] * many[1] == 0) if adaptive else nothing):
                k.assign(total, everywhere(0))
        elif means:
            _mean(k, total, many[0])
        known = total.within(min(low, 0) * times << part, max(high, 0) * times << part)
        return requantise(k, known, scale[0], shift[0] + part, y.scalar_zero, y.low, y.high)

    zero = k.number(x.scalar_zero) if x.scalar_zero else None
    start = everywhere(-(2**31) + 1 if maximum else 0)
    f.align(many, lambda n, i: _point(k, sides[n], i, FRACTION, valid), weighed, ended, start, zero, means)


# -- nearest regions


def roi_pooling(layer: Layer, shape: tuple[int, int]) -> Kernel:
    x, boxes = layer.inputs
    numbers, most, places = nearest_numbers(layer), (1 << STEP) - 1, []
    half, f = 1 << (numbers.shift - 1) if numbers.shift else 0, Regions(layer, boxes, [x], shape)
    with f.cells(early=False) as axes:
        k = f.k
        zero, scale = k.number(boxes.scalar_zero), k.number(numbers.scale)
        for n, axis in enumerate(axes):
            raw = ((S.i32(f.number_of(at)) + zero) * scale for at in (n, n + 2))
            first, last = (k.held("end", clamp((v + half) >> numbers.shift, 0, most)) for v in raw)
            cell = k.held("cell", axis.cell)
            part = (axis.cells * first + cell * (last - first)) * k.number(numbers.pixels[n])
            place = clamp((part + (cell << PART)) >> PART, 0, axis.pixels - 1)
            places.append(k.held("place", place))
        f.copy_pixel(*places)
    return f.k.kernel()


# -- crops


class CropUnit(NamedTuple):
    """A unit of boxes, with those of its numbers that are parameters of the kernel."""

    numbers: Unit
    whole: Value
    scale: Value
    pixel: Value
    rest: Value

    @classmethod
    def of(cls, k: LayerKernel, unit: Unit) -> CropUnit:
        return cls(unit, *(k.number(n) for n in (unit.whole, unit.scale, *unit.pixel)))


def _crop_place(f: Regions, axis: Axis, unit: CropUnit, ends: tuple[Value, Value], inside: Value) -> Value:
    """The place of a cell along an axis, in parts of the unit: 0 where it is outside of the map."""
    k, (size, cells, cell), (first, last) = f.k, axis, ends
    span = k.held("span", (last - first) * (size - 1))
    apart, length = k.held("apart", S.max(cells - 1, 1)), k.held("length", S.max(span, 0 - span))
    step = k.changing("step", length / apart)
    rest = k.changing("rest", ((length - step * apart) << STEP) / apart)
    with k.when(span < 0):
        k.assign(step, 0 - step)
        k.assign(rest, 0 - rest)
    at = k.changing("at", first * (size - 1) + cell * step + ((cell * rest) >> STEP))
    with k.when(cells == 1):
        k.assign(at, ((first + last) * (size - 1)) >> 1)
    with k.when(either(at < 0, at > (size - 1) * unit.whole)):
        k.assign(inside, S.i32(0))
        k.assign(at, S.i32(0))
    return at


def _crop_taken(
    f: Regions, unit: CropUnit, ends: Ends, inside: Value, nearest: bool, zero: Value | None = None
) -> Callable[[], Value]:
    """Makes the pixels at the place of a cell, between its ends along both axes."""
    k, shift, near, parts = f.k, unit.numbers.shift, list[Near](), list[Value]()
    for axis, own in zip(f.axes, ends, strict=True):
        at, last = _crop_place(f, axis, unit, own, inside), axis.pixels - 1
        if nearest:
            rounded = (scaled_floor(at, unit.scale, shift - 1) + 1) >> 1 if shift else at * unit.scale
            near.append(Near((k.held("near", S.min(rounded, last)),)))
            continue
        pixel = k.held("near", S.min(scaled_floor(at, unit.scale, shift), last))
        near.append(Near((pixel, k.held("far", S.min(pixel + 1, last)))))
        rest = clamp(at - pixel * unit.pixel - pixel * unit.rest / unit.scale, 0, unit.pixel + 1)
        part = (k.held("rest", rest) * unit.scale) >> (shift - unit.numbers.part)
        parts.append(k.held("part", S.min(part, 1 << unit.numbers.part)))

    def taken() -> Value:
        a, *others = f.pixels(f.rows(near[0]), near[1], zero)
        if nearest:
            return a
        b, c, d = others
        bits = unit.numbers.part
        above, below = (k.let(v + (((u - v) * parts[1]) >> bits)) for v, u in ((a, b), (c, d)))
        return k.let(above + (((below - above) * parts[0]) >> bits))

    return taken


def crop_and_resize(layer: Layer, shape: tuple[int, int], nearest: bool) -> Kernel:
    x, boxes, index = layer.inputs[:3]
    unit, f = crop_unit(layer), Regions(layer, boxes, [x], shape)
    with f.cells():
        k, inside = f.k, f.indexed(index)
        zero = k.number(boxes.scalar_zero)
        places = [k.held("end", S.i32(f.number_of(i)) + zero) for i in range(4)]
        ends = list(zip(places[:2], places[2:], strict=True))
        taken = _crop_taken(f, CropUnit.of(k, unit), ends, inside, nearest)
        f.crop(inside, crop_outside(layer), taken, lambda result: result)
    return f.k.kernel()


# -- pyramids


def _level(f: Regions, numbers: FixedPyramid) -> tuple[Ends, dict[str, Value]]:
    """Goes to the map of a region: (its first and its last place along both axes, the numbers of its level)."""
    k, maps, zero = f.k, f.layer.inputs[1:], f.k.number(f.layer.inputs[0].scalar_zero)
    places = [k.held("end", S.i32(f.number_of(i)) + zero) for i in range(4)]
    ends = list(zip(places[:2], places[2:], strict=True))
    tall, broad = (k.held("span", last - first) for first, last in ends)
    sizes = (S.cast(S.max(v, 0 - v), "uint32") for v in (tall, broad))
    area = k.changing("area", reduce(lambda a, b: a * b, sizes))
    with k.when((tall ^ broad) < 0):
        k.assign(area, S.u32(0))
    own: dict[str, list[int]] = {
        "height": [m.shape[1] for m in maps],
        "width": [m.shape[2] for m in maps],
        "zero": [m.scalar_zero for m in maps],
        "scale": numbers.scale,
        "shift": [s + numbers.part for s in numbers.shift],
    }
    if numbers.places:
        own |= {"place_scale": [m for m, _ in numbers.places], "place_shift": [s for _, s in numbers.places]}
    words = (min(limit, 2**32 - 1) for limit in numbers.limits[:3])
    limits = [S.cast(k.number(w - (1 << 32) if w >= 1 << 31 else w), "uint32") for w in words]
    return ends, f.on_level(area, limits, **own)


def pyramid(layer: Layer, shape: tuple[int, int]) -> Kernel:
    numbers, f = fixed_pyramid(layer), Regions(layer, layer.inputs[0], layer.inputs[1:], shape)
    with f.cells():
        ends, own = _level(f, numbers)

        def ended(total: Value) -> Value:
            return _by_level(f.k, total, own, layer.output)

        if numbers.unit:
            inside = f.k.changing("inside", S.i32(1))
            taken = _crop_taken(f, CropUnit.of(f.k, numbers.unit), ends, inside, False, own["zero"])
            f.crop(inside, 0, taken, ended)
        else:
            _align_level(f, numbers, ends, own, ended)
    return f.k.kernel()


def _by_level(k: LayerKernel, value: Value, own: dict[str, Value], y: Tensor) -> Value:
    """A sum requantised by the numbers of a level."""
    high, low = k.changing("high", value >> 16), k.changing("low", value & 0xFFFF)
    multiply_wide(high, low, own["scale"])
    shift_any(high, low, own["shift"])
    return k.let(clamp(high - y.scalar_zero if y.scalar_zero else high, y.low, y.high), y.low, y.high)


def _align_level(
    f: Regions, numbers: FixedPyramid, ends: Ends, own: dict[str, Value], ended: Callable[[Value], Value]
) -> None:
    k, count, (mode, _) = f.k, samples(f.layer), pyramid_numbers(f.layer)
    bits, valid, regions = k.number(numbers.fraction), k.changing("valid", S.i32(1)), Ends()
    for first, last in ends:
        half = (S.i32(1) << (bits - 1)) if mode == "HALF_PIXEL" else None
        places = (scaled_floor(v, own["place_scale"], own["place_shift"]) for v in (first, last))
        begin, end = (v if half is None else v - half for v in places)
        start = k.held("start", begin)
        regions.append((start, _size(k, end - start, mode, S.i32(1) << bits, valid)))
    sides, drop = _spread(f, regions, count, bits), numbers.fraction - numbers.part

    def weighed(total: Value, pixels: list[Value], v: Near, u: Near) -> None:
        found = reduce(add, _terms(pixels, v, u, bits))
        k.assign(total, total + (found >> drop if numbers.adaptive else found))

    def result(total: Value) -> Value:
        if numbers.adaptive:
            _mean(k, total, sides[0].many)
        return ended(total)

    def point(n: int, number: Value) -> Near:
        return _point(k, sides[n], number, bits, valid)

    f.align([s.many for s in sides], point, weighed, result, everywhere(0), own["zero"], numbers.adaptive)
