"""Kernels of quantised regions: places are whole numbers with fraction bits, computed once for all channels."""

from __future__ import annotations

import math

import numpy as np

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
from compassc.layers.families.regions.reference import (
    FRACTION,
    MOST,
    fixed_numbers,
    mean_bits,
    pair,
    pyramid_numbers,
    samples,
)
from compassc.layers.families.regions.texts import (
    ALIGN,
    CROP,
    INDEXED,
    NEAREST,
    WEIGHTS,
    Lines,
    Numbers,
    four_pixels,
    image_lines,
    sizes_of,
)
from compassc.layers.requantise import requantise
from compassc.layers.scripts import Substitutions, script
from compassc.layers.source import Kernel, KernelSource, named
from compassc.layers.vectors import bits_of

SIZES = (("y", "height"), ("x", "width"))
CELLS = (("y", "height", "down"), ("x", "width", "across"))

# -- RoiAlign


def roi_align(layer: Layer, rois: Tensor, shape: tuple[int, int], mode: str, maximum: bool) -> Kernel:
    count, x, y = samples(layer), layer.input, layer.output
    adaptive, spatial = 0 in count, [int(v) for v in pair(layer, "spatial_scale_value")]
    scale, shift = (np.resize(v, 2) for v in layer.scale_shift(of=2))
    zero, k = rois.scalar_zero, KernelSource()
    largest = max(abs(rois.low + zero), abs(rois.high + zero))
    real = largest * int(scale[1]) * 2.0 ** -int(shift[1])
    if largest * int(scale[1]) >= 2**31 or not 0 <= shift[1] < 31 or not 0 <= scale[1]:
        raise LayerError(f"regions up to {largest} times {scale[1]} / 2^{shift[1]} are beyond what kernels compute")
    if (real + 1) * max(abs(s) for s in spatial) * 4 >= 2**31:
        raise LayerError(f"places up to {real:g} times 'spatial_scale_value' do not fit 32 bits")
    place, given = image_lines(layer, rois)
    place += _place(mode)
    at = "start_{a} + step_{a} * i_{a} + half_{a} * (2 * k_{a} + 1)"
    if adaptive:
        check_points(
            "spatial_scale_value", int((real + 1) * max(abs(s) for s in spatial)) + 1024, shape, count, FRACTION
        )
        for n, (a, _, cells) in enumerate(CELLS):
            place += _spread(a, cells, count[n], str(FRACTION))
        at = EXACT
    else:
        place += _steps()
    points = {f"point_{a}": _point(a, size, at.format(a=a), str(FRACTION)) for a, size in SIZES}
    body, weigh, start = _sum(k, layer, maximum, count, scale, shift)
    words: Substitutions = {
        "head": [],
        "place": place,
        **points,
        "many_y": "many_y" if adaptive else "samples_y",
        "many_x": "many_x" if adaptive else "samples_x",
        "dtype": x.dtype,
        "zero": " + zero_x" if x.scalar_zero else "",
        "start": start,
        "weigh": weigh,
        **(MEAN if adaptive and not maximum else PLAIN),
        "body": body[0],
        "result": body[1],
    }
    given |= {
        "samples_y": count[0],
        "samples_x": count[1],
        "zero_roi": zero,
        "scale_roi": int(scale[1]),
        "shift_roi": int(shift[1]),
    }
    if x.scalar_zero:
        given["zero_x"] = x.scalar_zero
    given |= {f"spatial_{a}": spatial[n] for n, a in enumerate("yx")}
    for n, a in enumerate("" if adaptive else "yx"):
        keys = (f"bin_scale_{a}", f"bin_shift_{a}", f"grid_scale_{a}", f"grid_shift_{a}")
        given |= dict(zip(keys, fixed_numbers(layer)[n], strict=True))
    return script(
        ALIGN,
        k,
        words,
        source=x,
        rois=rois,
        y=y,
        points=rois.shape[0] * math.prod(shape),
        roi_size=5,
        **sizes_of(layer, shape),
        **given,
    )


def _place(mode: str) -> list[str]:
    """The position of a quantised region in the image, and the distance of its samples."""
    place = ["valid = S.i32(1)", "if image < 0 or image >= images:", "    valid = S.i32(0)"]
    for n, a in enumerate("yx"):
        for name, at in ((f"start_{a}", n + 1), (f"end_{a}", n + 3)):
            place += [
                f"raw = (S.i32(rois[r * roi_size + {at}]) + zero_roi) * scale_roi",
                f"{name} = S.max(raw, 0) >> shift_roi",
                "if raw < 0:",
                f"    {name} = 0 - ((0 - raw) >> shift_roi)",
                f"{name} = {name} * spatial_{a}" + (" - 512" if mode == "HALF_PIXEL" else ""),
            ]
        place.append(f"size_{a} = end_{a} - start_{a}")
        if mode == "OUTPUT_HALF_PIXEL":
            place.append(f"size_{a} = S.max(size_{a}, 1024)")
        place += [
            f"if size_{a} < 0:",
            "    valid = S.i32(0)",
            f"    size_{a} = S.i32(0)",
        ]
    return [*place, "if valid == 0:", "    image = S.i32(0)"]


def _steps() -> Lines:
    """The distance of cells along an axis, and half that of their points."""
    return [
        line
        for a in "yx"
        for line in (
            f"step_{a} = scaled_floor(size_{a}, bin_scale_{a}, bin_shift_{a})",
            f"half_{a} = scaled_floor(step_{a}, grid_scale_{a}, grid_shift_{a})",
        )
    ]


EXACT = "start_{a} + (2 * (i_{a} * many_{a} + k_{a}) + 1) * step_{a} + (2 * (i_{a} * many_{a} + k_{a}) + 1) * rest_{a} / parts_{a}"
"""The place of a point, in parts of a region that `_spread` prepares."""
PLAIN: Substitutions = {"line": [], "line_end": []}
MEAN: Substitutions = {
    "line": ["line = S.vbcast(S.i32(0), lanes=32)"],
    "line_end": ["acc = acc + line / S.vbcast(S.max(many_x, 1), lanes=32)"],
}
"""Lines around those of a row of points: their sum is that of the rows, or of their means."""


def _spread(a: str, cells: str, count: int, bits: str) -> Lines:
    """Points of a cell along an axis (`count` 0: one for each pixel), and the region's size over twice all points."""
    pixels = f"S.min((size_{a} + ({cells} << {bits}) - 1) / ({cells} << {bits}), {MOST})"
    return [
        f"many_{a} = samples_{a} + 0" if count else f"many_{a} = {pixels}",
        f"parts_{a} = S.max(2 * {cells} * many_{a}, 1)",
        f"step_{a} = size_{a} / parts_{a}",
        f"rest_{a} = size_{a} - step_{a} * parts_{a}",
    ]


def _point(a: str, size: str, at: str, bits: str) -> Lines:
    """Lines of a point along an axis, whose place has fraction bits: pixels before and behind it, and their weights."""
    return [
        f"at_{a} = {at}",
        f"in_{a} = S.i32(0)",
        f"if valid != 0 and at_{a} >= 0 - (1 << {bits}) and at_{a} <= {size} << {bits}:",
        f"    in_{a} = S.i32(1)",
        f"at_{a} = S.max(at_{a}, 0)",
        f"{a}0 = S.min(at_{a} >> {bits}, {size} - 1)",
        f"{a}1 = S.min({a}0 + 1, {size} - 1)",
        f"f_{a} = at_{a} & ((1 << {bits}) - 1)",
        f"if {a}0 >= {size} - 1:",
        f"    f_{a} = S.i32(0)",
        f"g_{a} = ((1 << {bits}) - f_{a}) * in_{a}",
        f"f_{a} = f_{a} * in_{a}",
    ]


def _sum(
    k: KernelSource, layer: Layer, maximum: bool, count: tuple[int, int], scale: np.ndarray, shift: np.ndarray
) -> tuple[tuple[Lines, str], Lines, str]:
    """((lines behind the sum, the result), lines of a point, the start)."""
    x, y = layer.input, layer.output
    low, high = (v + x.scalar_zero for v in (x.low, x.high))
    terms = [f"{v} * (({wy} * {wx}) >> {FRACTION})" for v, wy, wx in WEIGHTS]
    adaptive = 0 in count and not maximum
    part = mean_bits(FRACTION) if adaptive else FRACTION
    many = 1 if maximum or adaptive else count[0] * count[1]
    acc = named("acc", "int32", min(low, 0) * many << part, max(high, 0) * many << part)
    result = requantise(k, acc, scale[0], shift[0] + part, y.scalar_zero, y.low, y.high)
    lines, total = k.body, " + ".join(terms)
    if maximum:
        largest = f"S.max(S.max({terms[0]}, {terms[1]}), S.max({terms[2]}, {terms[3]}))"
        nothing = "valid == 0 or many_y * many_x == 0" if 0 in count else "valid == 0"
        outside = [f"if {nothing}:", "    acc = S.vbcast(S.i32(0), lanes=32)"]
        return ([*outside, *lines], result.name), [f"acc = S.max(acc, {largest})"], f"S.i32({-(2**31) + 1})"
    if adaptive:
        weigh = [f"line = line + (({total}) >> {FRACTION - part})"]
        return (["acc = acc / S.vbcast(S.max(many_y, 1), lanes=32)", *lines], result.name), weigh, "S.i32(0)"
    return (lines, result.name), [f"acc = acc + ({total})"], "S.i32(0)"


# -- nearest regions


def roi_pooling(layer: Layer, shape: tuple[int, int]) -> Kernel:
    x, boxes, y = layer.inputs[0], layer.inputs[1], layer.output
    f, most = nearest_numbers(layer), (1 << STEP) - 1
    half = 1 << (f.shift - 1) if f.shift else 0
    place: Lines = []
    given: Numbers = {"zero_boxes": boxes.scalar_zero, "scale_boxes": f.scale}
    for n, (a, size, cells) in enumerate(CELLS):
        for name, at in (("first", n), ("last", n + 2)):
            raw = f"(S.i32(boxes[r * 4 + {at}]) + zero_boxes) * scale_boxes"
            place.append(f"{name}_{a} = clamp(({raw} + {half}) >> {f.shift}, 0, {most})")
        cell = "p / across % down" if a == "y" else "p % across"
        place += [
            f"i_{a} = {cell}",
            f"{a}_part = ({cells} * first_{a} + i_{a} * (last_{a} - first_{a})) * pixels_{a}",
            f"{a}_place = clamp(({a}_part + (i_{a} << {PART})) >> {PART}, 0, {size} - 1)",
        ]
        given[f"pixels_{a}"] = f.pixels[n]
    words: Substitutions = {"place": place, "bits": bits_of(x.dtype)}
    sizes = {n: v for n, v in sizes_of(layer, shape).items() if n not in ("images", "image_size")}
    points = y.count // x.shape[3]
    return script(NEAREST, None, words, source=x, boxes=boxes, target=y, points=points, **sizes, **given)


# -- crops


def _crop_lines(unit: Unit, nearest: bool, part: str) -> tuple[Lines, Lines, Numbers]:
    """(lines of a point, lines that take its channels, numbers): of a box first_y, first_x, last_y, last_x."""
    lines: Lines = []
    for a, size, cells in CELLS:
        lines += [
            f"span_{a} = (last_{a} - first_{a}) * ({size} - 1)",
            f"apart_{a} = S.max({cells} - 1, 1)",
            f"step_{a} = S.max(span_{a}, 0 - span_{a}) / apart_{a}",
            f"rest_{a} = ((S.max(span_{a}, 0 - span_{a}) - step_{a} * apart_{a}) << {STEP}) / apart_{a}",
            f"if span_{a} < 0:",
            f"    step_{a} = 0 - step_{a}",
            f"    rest_{a} = 0 - rest_{a}",
            f"at_{a} = first_{a} * ({size} - 1) + i_{a} * step_{a} + ((i_{a} * rest_{a}) >> {STEP})",
            f"if {cells} == 1:",
            f"    at_{a} = ((first_{a} + last_{a}) * ({size} - 1)) >> 1",
            f"if at_{a} < 0 or at_{a} > ({size} - 1) * unit:",
            "    inside = S.i32(0)",
            f"    at_{a} = S.i32(0)",
        ]
        if nearest:
            twice = (
                f"(scaled_floor(at_{a}, unit_scale, {unit.shift - 1}) + 1) >> 1"
                if unit.shift
                else f"at_{a} * unit_scale"
            )
            lines.append(f"{a}0 = S.min({twice}, {size} - 1)")
            continue
        lines += [
            f"{a}0 = S.min(scaled_floor(at_{a}, unit_scale, {unit.shift}), {size} - 1)",
            f"{a}1 = S.min({a}0 + 1, {size} - 1)",
            f"f_{a} = clamp(at_{a} - {a}0 * pixel - {a}0 * pixel_rest / unit_scale, 0, pixel + 1)",
            f"f_{a} = S.min((f_{a} * unit_scale) >> {unit.shift - unit.part}, {1 << unit.part})",
        ]
    given: Numbers = {"unit": unit.whole, "unit_scale": unit.scale}
    pixels = [pixel + part for pixel in four_pixels(nearest)]
    if nearest:
        return lines, [f"result = {pixels[0]}"], given
    taken = [f"{n} = {pixel}" for n, pixel in zip("abcd", pixels, strict=True)]
    taken += [
        f"above = a + (((b - a) * f_x) >> {unit.part})",
        f"below = c + (((d - c) * f_x) >> {unit.part})",
        f"result = above + (((below - above) * f_y) >> {unit.part})",
    ]
    return lines, taken, given | {"pixel": unit.pixel[0], "pixel_rest": unit.pixel[1]}


def crop_and_resize(layer: Layer, shape: tuple[int, int], nearest: bool) -> Kernel:
    x, boxes, index = layer.inputs[:3]
    point, taken, given = _crop_lines(crop_unit(layer), nearest, "")
    ends = [
        f"{name}_{a} = S.i32(boxes[r * 4 + {n + 2 * (name == 'last')}]) + zero_boxes"
        for n, a in enumerate("yx")
        for name in ("first", "last")
    ]
    words: Substitutions = {
        "place": [*INDEXED, *ends],
        "point": point,
        "taken": [t.replace("$dtype", x.dtype) for t in taken],
        "finish": [],
        "dtype": x.dtype,
    }
    return script(
        CROP,
        None,
        words,
        source=x,
        boxes=boxes,
        index=index,
        y=layer.output,
        points=boxes.shape[0] * math.prod(shape),
        outside=crop_outside(layer),
        zero_boxes=boxes.scalar_zero,
        **sizes_of(layer, shape),
        **given,
    )


# -- pyramids

_ENDS = ("first_y", "first_x", "last_y", "last_x")


def _level_lines(layer: Layer, f: FixedPyramid) -> tuple[Lines, dict[str, float | int | Tensor]]:
    """(lines that find the ends of region `r`, its level and the numbers of this, what they take)."""
    maps = layer.inputs[1:]
    lines = [f"{name} = S.i32(rois[r * 4 + {i}]) + zero_rois" for i, name in enumerate(_ENDS)]
    lines += [
        "tall = last_y - first_y",
        "broad = last_x - first_x",
        'area = S.cast(S.max(tall, 0 - tall), "uint32") * S.cast(S.max(broad, 0 - broad), "uint32")',
        "if (tall ^ broad) < 0:",
        "    area = S.u32(0)",
        "image = S.i32(0)",
        "source = map0 + 0",
    ]
    given: dict[str, float | int | Tensor] = {"zero_rois": layer.inputs[0].scalar_zero}
    own: dict[str, list[int]] = {
        "height": [m.shape[1] for m in maps],
        "width": [m.shape[2] for m in maps],
        "zero_own": [m.scalar_zero for m in maps],
        "own_scale": f.scale,
        "own_shift": [s + f.part for s in f.shift],
    }
    if f.places:
        own |= {"place_scale": [m for m, _ in f.places], "place_shift": [s for _, s in f.places]}
    lines += [f"{name} = {name}0 + 0" for name in own]
    for i in (1, 2, 3):
        lines.append(f'if area >= S.cast(limit{i}, "uint32"):')
        lines += [f"    source = map{i} + 0", *(f"    {name} = {name}{i} + 0" for name in own)]
        limit = min(f.limits[i - 1], 2**32 - 1)
        given[f"limit{i}"] = limit - (1 << 32) if limit >= 1 << 31 else limit
    given |= {f"map{i}": m for i, m in enumerate(maps)}
    given |= {f"{name}{i}": v for name, values in own.items() for i, v in enumerate(values)}
    return [*lines, "row_size = width * channels", "image_size = S.i32(0)"], given


def _finish(name: str, y: Tensor) -> Lines:
    """Lines that requantise a vector by the numbers of its level."""
    return [
        f"high = {name} >> 16",
        f"low = {name} & 0xFFFF",
        "multiply_wide(high, low, own_scale)",
        "shift_any(high, low, own_shift)",
        f"{name} = clamp(high{f' - {y.scalar_zero}' if y.scalar_zero else ''}, {y.low}, {y.high})",
    ]


def _region_lines(mode: str) -> Lines:
    """`valid`, and start and size of region `r` in pixels with `fraction` bits."""
    lines = ["valid = S.i32(1)"]
    half = " - (1 << (fraction - 1))" if mode == "HALF_PIXEL" else ""
    for a in "yx":
        lines += [
            f"start_{a} = scaled_floor(first_{a}, place_scale, place_shift){half}",
            f"size_{a} = scaled_floor(last_{a}, place_scale, place_shift){half} - start_{a}",
        ]
        if mode == "OUTPUT_HALF_PIXEL":
            lines.append(f"size_{a} = S.max(size_{a}, 1 << fraction)")
        lines += [f"if size_{a} < 0:", "    valid = S.i32(0)", f"    size_{a} = S.i32(0)"]
    return lines


def pyramid(layer: Layer, shape: tuple[int, int]) -> Kernel:
    boxes, y, f = layer.inputs[0], layer.output, fixed_pyramid(layer)
    place, given = _level_lines(layer, f)
    channels = layer.inputs[1].shape[3]
    given |= {"channels": channels, "down": shape[0], "across": shape[1], "points": y.count // channels}
    if f.unit:
        point, taken, more = _crop_lines(f.unit, False, " + zero_own")
        words: Substitutions = {
            "place": [*place, "inside = S.i32(1)"],
            "point": point,
            "dtype": y.dtype,
            "taken": [t.replace("$dtype", y.dtype) for t in taken],
            "finish": _finish("result", y),
        }
        return script(CROP, None, words, rois=boxes, y=y, outside=0, **given, **more)
    count, (mode, _) = samples(layer), pyramid_numbers(layer)
    terms = [f"{v} * (({wy} * {wx}) >> fraction)" for v, wy, wx in WEIGHTS]
    total, drop = " + ".join(terms), f.fraction - f.part
    spread = [_spread(a, n, count[i], "fraction") for i, (a, _, n) in enumerate(CELLS)]
    mean = ["acc = acc / S.vbcast(S.max(many_y, 1), lanes=32)"] if f.adaptive else []
    words = {
        "head": [],
        "place": [*place, *_region_lines(mode), *spread[0], *spread[1]],
        **{f"point_{a}": _point(a, size, EXACT.format(a=a), "fraction") for a, size in SIZES},
        "many_y": "many_y",
        "many_x": "many_x",
        "dtype": y.dtype,
        "zero": " + zero_own",
        "start": "S.i32(0)",
        "weigh": [f"line = line + (({total}) >> {drop})" if f.adaptive else f"acc = acc + ({total})"],
        "body": [*mean, *_finish("acc", y)],
        "result": "acc",
        **(MEAN if f.adaptive else PLAIN),
    }
    given |= {"samples_y": count[0], "samples_x": count[1], "fraction": f.fraction}
    return script(ALIGN, None, words, rois=boxes, y=y, **given)
