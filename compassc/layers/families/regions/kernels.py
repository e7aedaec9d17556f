"""Kernels of regions of real numbers, and which kernel a layer has."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from operator import add

import numpy as np

from compass_core.namedtuple import NamedTuple
from compassc.build import Expression, Value, both, either
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.families.regions import fixed_kernels
from compassc.layers.families.regions.frame import Axis, Near, Regions, check_maps
from compassc.layers.families.regions.reference import (
    AVERAGES,
    CROPS,
    FARTHEST,
    LEVELS,
    MODES,
    MOST,
    NORMALISED_LEVELS,
    crop_size,
    pair,
    pooled_shape,
    pyramid_numbers,
    pyramid_shape,
    samples,
)
from compassc.layers.kernel import Kernel
from compassc.layers.kernels import kernel
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.vectors import clamp, everywhere, wide_kind


class Side(NamedTuple):
    """A region along an axis: where it begins, how far its cells are apart, and how many points each has."""

    axis: Axis
    start: Value
    step: Value
    many: Value


def _real(number: float) -> Expression:
    return S.cast(number, "float32")


def _ends(f: Regions, mode: str, scales: Sequence[Value]) -> list[tuple[Value, Value]]:
    """Start and size of the present region along both axes, in pixels."""
    k, first, found = f.k, f.width - 4, []
    shift = 0.5 if mode == "HALF_PIXEL" else 0.0
    for n, scale in enumerate(scales):
        start, end = (f.real(first + i) * scale for i in (n, n + 2))
        begin = k.held("start", start - shift if shift else start)
        size: Expression = (end - shift if shift else end) - begin
        found.append((begin, k.held("size", S.max(size, 1.0) if mode == "OUTPUT_HALF_PIXEL" else size)))
    return found


def _sides(f: Regions, ends: Sequence[tuple[Value, Value]], count: tuple[int, int], valid: Value) -> list[Side]:
    """A region with points; `count`: of a cell along each axis, 0 for one of each pixel, up to `MOST`."""
    k, found = f.k, []
    for axis, (start, size), points in zip(f.axes, ends, count, strict=True):
        step = k.held("step", size / S.cast(axis.cells, "float32"))
        many = k.changing("many", k.number(points) + 0 if points else S.min(S.cast(S.ceil(step), "int32"), MOST))
        with k.when(valid == 0):
            k.assign(many, S.i32(0))
        found.append(Side(axis, start, step, many))
    return found


def _point(k: LayerKernel, side: Side, number: Value) -> Near:
    """The pixels around a point of a cell; those around one that is outside of the map are weighed with 0."""
    size, start, step = side.axis.pixels, side.start, side.step
    inner = k.held("inner", (S.cast(number, "float32") + 0.5) * step / S.cast(side.many, "float32"))
    exact = k.held("exact", start + S.cast(side.axis.cell, "float32") * step + inner)
    inside = k.changing("inside", _real(0))
    with k.when(both(exact >= -1.0, exact <= S.cast(size, "float32"))):
        k.assign(inside, _real(1))
    at = k.held("at", S.min(S.max(exact, 0.0), S.cast(size, "float32")))
    near = k.held("near", S.min(S.cast(at, "int32"), size - 1))
    far, part = k.held("far", S.min(near + 1, size - 1)), k.changing("part", at - S.cast(near, "float32"))
    with k.when(near >= size - 1):
        k.assign(part, _real(0))
    return Near((near, far), (k.held("here", (_real(1) - part) * inside), k.held("there", part * inside)))


def _align(f: Regions, sides: Sequence[Side], maximum: bool) -> None:
    """The mean of a cell's points, or the largest term of any."""
    k, cells = f.k, sides[0].many * sides[1].many

    def weighed(total: Value, pixels: list[Value], y: Near, x: Near) -> None:
        terms = [p * w for p, w in zip(pixels, [v * u for v in y.weights for u in x.weights], strict=True)]
        if maximum:
            k.assign(total, S.max(total, S.max(S.max(terms[0], terms[1]), S.max(terms[2], terms[3]))))
        else:
            k.assign(total, total + reduce(add, terms))

    def ended(total: Value) -> Value:
        if not maximum:
            return k.let(total / S.cast(S.max(cells, 1), "float32"))
        with k.when(cells == 0):
            k.assign(total, everywhere(0, "float32"))
        return total

    start = everywhere(S.fp32("-inf") if maximum else 0.0, "float32")
    f.align([s.many for s in sides], lambda n, i: _point(k, sides[n], i), weighed, ended, start)


@kernel("RoiAlign")
def roi_align(layer: Layer) -> Kernel:
    rois, shape = layer.inputs[1], pooled_shape(layer)
    check_maps(layer, rois, 5, shape)
    mode = layer.word("coordinate_transformation_mode", "HALF_PIXEL", MODES)
    maximum = layer.word("method", "AVG", AVERAGES) == "MAX"
    if layer.is_quantised:
        return fixed_kernels.roi_align(layer, rois, shape, mode, maximum)
    scales, f = pair(layer, "spatial_scale_value", [1.0]), Regions(layer, rois, layer.inputs[:1], shape)
    with f.cells(early=False):
        image = f.image(rois)
        ends = _ends(f, mode, [f.k.number(float(s)) for s in scales])
        sides = _sides(f, ends, samples(layer), _valid(f, ends, mode, f.is_outside(image)))
        f.on_image(image)
        _align(f, sides, maximum)
    return f.k.kernel()


def _valid(f: Regions, ends: Sequence[tuple[Value, Value]], mode: str, outside: Expression | None) -> Value:
    """Whether (1 or 0) a region has points: one of infinite size or beyond the images has none."""
    sizes = [size for _, size in ends]
    wrong = [size < 0.0 for size in sizes] if mode == "HALF_PIXEL" else []
    wrong += [size == S.fp32("inf") for size in sizes]
    valid = f.k.changing("valid", S.i32(1))
    with f.k.when(either(*wrong) if outside is None else either(outside, *wrong)):
        f.k.assign(valid, S.i32(0))
    return valid


# -- crops and pyramids


def _crop_place(f: Regions, n: int, first: Value, last: Value, inside: Value) -> Value:
    """The place of a cell along an axis, in pixels: 0 where it is outside of the map."""
    k, (size, cells, cell) = f.k, f.axes[n]
    end = k.held("end", S.cast(size - 1, "float32"))
    exact = k.changing("exact", _real(0.5) * (first + last) * end)
    with k.when(cells > 1):
        step = k.held("step", (last - first) * end / S.cast(cells - 1, "float32"))
        k.assign(exact, first * end + S.cast(cell, "float32") * step)
    at = k.changing("at", _real(0))
    with k.when(both(exact >= 0.0, exact <= end)):
        k.assign(at, exact + 0.0)
    with k.otherwise():
        k.assign(inside, S.i32(0))
    return at


def _crop_taken(f: Regions, ends: Sequence[tuple[Value, Value]], inside: Value, nearest: bool) -> Callable[[], Value]:
    """Makes the pixels at the place of a cell, between its ends along both axes."""
    k, near, parts = f.k, list[Near](), list[Value]()
    for n, (first, last) in enumerate(ends):
        at = _crop_place(f, n, first, last, inside)
        pixel = k.held("near", S.cast(S.floor(at + 0.5) if nearest else at, "int32"))
        if nearest:
            near.append(Near((pixel,)))
            continue
        near.append(Near((pixel, k.held("far", S.min(pixel + 1, f.axes[n].pixels - 1)))))
        parts.append(k.held("part", at - S.cast(pixel, "float32")))

    def taken() -> Value:
        a, *rest = f.pixels(f.rows(near[0]), near[1])
        if nearest:
            return a
        b, c, d = rest
        above, below = k.let(a + (b - a) * parts[1]), k.let(c + (d - c) * parts[1])
        return k.let(above + (below - above) * parts[0])

    return taken


def _unchanged(value: Value) -> Value:
    return value


@kernel("CropAndResize")
def crop_and_resize(layer: Layer) -> Kernel:
    boxes, index = layer.inputs[1:3]
    shape, nearest = crop_size(layer), layer.word("method", "BILINEAR", CROPS) == "NEAREST"
    check_maps(layer, boxes, 4, shape)
    if index.dtype not in ("int32", "int16", "int8", "uint8", "uint16") or index.count != boxes.shape[0]:
        raise LayerError(f"'{index.name}' is {index.dtype} {list(index.shape)}, expected an image for each box")
    if layer.is_quantised:
        return fixed_kernels.crop_and_resize(layer, shape, nearest)
    f = Regions(layer, boxes, layer.inputs[:1], shape)
    with f.cells():
        inside = f.indexed(index)
        ends = [(f.k.held("first", f.real(n)), f.k.held("last", f.real(n + 2))) for n in range(2)]
        taken = _crop_taken(f, ends, inside, nearest)
        f.crop(inside, layer.number("extrapolation_value", 0.0), taken, _unchanged)
    return f.k.kernel()


def _check_pyramid(boxes: Tensor, maps: Sequence[Tensor], y: Tensor, shape: tuple[int, int]) -> None:
    if len(maps) != 4 or any(len(m.shape) != 4 or m.shape[0] != 1 or m.dtype != y.dtype for m in maps):
        raise LayerError("it takes boxes and four maps of one image, with the type of the output")
    if (
        boxes.shape[-1:] != (4,)
        or wide_kind(boxes) != wide_kind(y)
        or y.count != boxes.count // 4 * math.prod(shape) * maps[0].shape[3]
    ):
        raise LayerError(f"boxes of {list(boxes.shape)} do not lead to the shape {list(y.shape)}")
    if min(shape) < 1 or any(m.shape[3] != maps[0].shape[3] for m in maps):
        raise LayerError("the maps must have equal channels, and the regions positive sizes")


@kernel("PyramidROIAlign")
def pyramid(layer: Layer) -> Kernel:
    boxes, maps = layer.inputs[0], layer.inputs[1:]
    shape = pyramid_shape(layer)
    _check_pyramid(boxes, maps, layer.output, shape)
    if layer.is_quantised:
        return fixed_kernels.pyramid(layer, shape)
    f, normalised = Regions(layer, boxes, maps, shape), layer.flag("proposal_normalized", False)
    mode, scales = pyramid_numbers(layer)
    limits = [float(np.float32(v)) for v in (NORMALISED_LEVELS if normalised else LEVELS)[:3]]
    with f.cells():
        k = f.k
        first_y, first_x, last_y, last_x = (k.held(n, f.real(i)) for i, n in enumerate(("y", "x", "yy", "xx")))
        area = k.held("area", (last_y - first_y) * (last_x - first_x))
        sizes = {"height": [m.shape[1] for m in maps], "width": [m.shape[2] for m in maps]}
        scale = f.on_level(area, [k.number(v) for v in limits], **sizes, scale=[float(s) for s in scales])["scale"]
        if normalised:
            inside = k.changing("inside", S.i32(1))
            taken = _crop_taken(f, [(first_y, last_y), (first_x, last_x)], inside, False)
            f.crop(inside, 0.0, taken, _unchanged)
        else:
            ends = _ends(f, mode, [scale, scale])
            _align(f, _sides(f, ends, samples(layer), _valid(f, ends, mode, None)), False)
    return f.k.kernel()


# -- pooling


@kernel("MaxRoiPool")
def max_roi_pool(layer: Layer) -> Kernel:
    rois, shape, x = layer.inputs[1], pooled_shape(layer), layer.input
    check_maps(layer, rois, 5, shape)
    spatial, f = pair(layer, "spatial", [1.0]), Regions(layer, rois, [x], shape)
    if layer.is_quantised:
        zero = rois.scalar_zero
        largest = max(abs(rois.low + zero), abs(rois.high + zero)) * max(abs(int(s)) for s in spatial)
        if largest >= 2**31 - 2**15:
            raise LayerError(f"regions times 'spatial' are up to {largest}, which does not fit 32 bits")
    with f.cells() as axes:
        k, image = f.k, f.image(rois)
        zero_of_boxes = k.number(rois.scalar_zero) if layer.is_quantised else None
        ends = [_pooled(f, axis, n, spatial[n], zero_of_boxes) for n, axis in enumerate(axes)]
        with k.when(f.is_outside(image)):
            k.assign(ends[0][1], ends[0][0] + 0)
            k.assign(image, S.i32(0))
        f.on_image(image)
        (first_y, last_y), (first_x, last_x) = ends
        empty, kind = max(min(-x.scalar_zero, x.high), x.low) if layer.is_quantised else 0.0, wide_kind(x)
        lowest = everywhere(x.low if layer.is_quantised else S.fp32("-inf"), kind)
        nothing = k.number(empty)
        with f.blocks():
            most = k.changing("most", lowest)
            with k.for_range(first_y, last_y, name="v") as v:
                lines = f.rows(Near((v,)))
                with k.for_range(first_x, last_x, name="u") as u:
                    k.assign(most, S.max(most, *f.pixels(lines, Near((u,)))))
            with k.when(either(first_y >= last_y, first_x >= last_x)):
                k.assign(most, everywhere(nothing, kind))
            f.store(most)
    return f.k.kernel()


def _pooled(f: Regions, axis: Axis, n: int, spatial: float, zero: Value | None) -> tuple[Value, Value]:
    """The first pixel of a cell along an axis, and the one behind its last."""
    k, factor = f.k, f.k.number(float(spatial) if zero is None else int(spatial))

    def end(name: str, at: int) -> Value:
        if zero is not None:
            return k.held(name, ((S.i32(f.number_of(at)) + zero) * factor + 32768) >> 16)
        real = S.floor(f.real(at) * factor + 0.5)
        return k.held(name, S.cast(S.min(S.max(real, -FARTHEST), FARTHEST), "int32"))

    begin, behind = end("begin", n + 1), end("behind", n + 3)
    size = k.held("size", S.max(behind - begin + 1, 1))
    first = k.held("first", clamp(axis.cell * size / axis.cells + begin, 0, axis.pixels))
    last = clamp(((axis.cell + 1) * size + axis.cells - 1) / axis.cells + begin, 0, axis.pixels)
    return first, k.changing("last", last)


@kernel("ROIPooling")
def roi_pooling(layer: Layer) -> Kernel:
    x, boxes, y = layer.inputs[0], layer.inputs[1], layer.output
    if len(x.shape) != 4 or len(y.shape) < 3 or boxes.shape[-1:] != (4,) or x.dtype != y.dtype:
        raise LayerError(f"{list(x.shape)} and {list(boxes.shape)} are not NHWC maps and boxes of four numbers")
    h, w = y.shape[-3:-1]
    if y.count != boxes.count // 4 * h * w * x.shape[3] or min(h, w) < 1 or wide_kind(boxes) != wide_kind(y):
        raise LayerError(f"boxes of {list(boxes.shape)} do not lead to the shape {list(y.shape)}")
    if layer.is_quantised:
        return fixed_kernels.roi_pooling(layer, (h, w))
    f, places = Regions(layer, boxes, [x], (h, w)), []
    with f.cells(early=False) as axes:
        k = f.k
        for n, axis in enumerate(axes):
            cells = S.cast(axis.cells, "float32")
            factor = k.held("factor", S.cast(axis.pixels, "float32") / cells)
            first, last = (k.held(name, f.real(n + i) * factor) for name, i in (("first", 0), ("last", 2)))
            real = cells * first + S.cast(axis.cell, "float32") * (last + 1.0 - first)
            limited = S.min(S.max(k.held("real", real), 0.0), S.cast(axis.pixels - 1, "float32"))
            places.append(k.held("place", S.cast(limited, "int32")))
        f.copy_pixel(*places)
    return f.k.kernel()
