"""Kernels of regions: lanes are channels; places of points are scalars, which every group of channels shares."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.emit import requantise, wide_kind
from compassc.layers.families.regions.reference import (
    AVERAGES,
    CROPS,
    FRACTION,
    LEVELS,
    MODES,
    NORMALISED_LEVELS,
    crop_size,
    fixed_numbers,
    pair,
    pooled_shape,
    pyramid_numbers,
    samples,
)
from compassc.layers.kernels import kernel
from compassc.layers.moving import bits_of
from compassc.layers.scripts import Substitutions, script
from compassc.layers.source import LANES, Kernel, KernelSource, Value

Lines = list[str]


def _indented(lines: Sequence[str], depth: int = 1) -> Lines:
    return ["    " * depth + line for line in lines]


def _check(layer: Layer, rois: Tensor, width: int, shape: tuple[int, int]) -> None:
    x, y = layer.input, layer.output
    if len(x.shape) != 4 or len(rois.shape) != 2 or rois.shape[1] != width:
        raise LayerError(f"{list(x.shape)} and {list(rois.shape)} are not NHWC maps and rows of {width} numbers")
    if y.shape != (rois.shape[0], *shape, x.shape[3]):
        raise LayerError(f"the output is {list(y.shape)}, expected {[rois.shape[0], *shape, x.shape[3]]}")
    if x.dtype != y.dtype:
        raise LayerError(f"the input is {x.dtype}, the output {y.dtype}; it keeps the type")
    if (wide_kind(x) == "int32") != layer.is_quantised or (wide_kind(rois) == "int32") != layer.is_quantised:
        raise LayerError(f"maps of {x.dtype} with regions of {rois.dtype} have no kernel")


def _sizes(layer: Layer, shape: tuple[int, int]) -> dict[str, int]:
    x = layer.input.shape
    return {
        "images": x[0],
        "height": x[1],
        "width": x[2],
        "channels": x[3],
        "down": shape[0],
        "across": shape[1],
        "image_size": x[1] * x[2] * x[3],
        "row_size": x[2] * x[3],
    }


def _image(layer: Layer, rois: Tensor) -> tuple[Lines, dict[str, float | int]]:
    """`image`: that of region `r`."""
    if not layer.is_quantised:
        return ['image = S.cast(S.cast(rois[r * 5], "float32"), "int32")'], {}
    if layer.input.shape[0] == 1:
        return ["image = S.i32(0)"], {}
    given: dict[str, float | int] = {"zero_rois": rois.scalar_zero, "scale_rois": float(rois.scalar_scale)}
    return ['image = S.cast(S.rint(S.cast(S.i32(rois[r * 5]) + zero_rois, "float32") / scale_rois), "int32")'], given


# -- RoiAlign

ALIGN = """
$head
for p in range(S.get_local_id(), points, S.get_local_size()):
    r = p / (down * across)
    i_y = p / across % down
    i_x = p % across
    $place
    for j in range(0, channels, 32):
        mask = S.tail_mask(S.min(channels - j, 32), 32)
        acc = S.vbcast($start, lanes=32)
        for k_y in range($many_y):
            $point_y
            for k_x in range($many_x):
                $point_x
                top = source + (image * image_size + y0 * row_size + j)
                bottom = source + (image * image_size + y1 * row_size + j)
                a = load(top + x0 * channels, mask, "$dtype", 32)$zero
                b = load(top + x1 * channels, mask, "$dtype", 32)$zero
                c = load(bottom + x0 * channels, mask, "$dtype", 32)$zero
                d = load(bottom + x1 * channels, mask, "$dtype", 32)$zero
                $weigh
        $body
        S.vstore(narrow($result, "$dtype"), y + (p * channels + j), mask)
"""


def _float_ends(mode: str) -> Lines:
    """`valid`, and start and size of region `r` along both axes; `scale_y`, `scale_x` are names."""
    lines: Lines = []
    shift = " - 0.5" if mode == "HALF_PIXEL" else ""
    for n, a in enumerate("yx"):
        lines += [
            f'start_{a} = S.cast(rois[r * roi_size + (roi_size - 4 + {n})], "float32") * scale_{a}{shift}',
            f'size_{a} = S.cast(rois[r * roi_size + (roi_size - 2 + {n})], "float32") * scale_{a}{shift} - start_{a}',
        ]
        if mode == "OUTPUT_HALF_PIXEL":
            lines.append(f"size_{a} = S.max(size_{a}, 1.0)")
    return lines


def _float_points(count: tuple[int, int]) -> tuple[Lines, dict[str, Lines], dict[str, str]]:
    """(lines of a cell, lines of a point along each axis, how many points there are)."""
    cell: Lines = []
    points: dict[str, Lines] = {}
    many: dict[str, str] = {}
    for n, (a, size, cells) in enumerate(zip("yx", ("height", "width"), ("down", "across"), strict=True)):
        cell.append(f'step_{a} = size_{a} / S.cast({cells}, "float32")')
        if count[n] == 0:
            cell.append(f'many_{a} = S.cast(S.ceil(step_{a}), "int32")')
        else:
            cell.append(f"many_{a} = samples_{a} + 0")
        cell += ["if valid == 0:", f"    many_{a} = S.i32(0)"]
        many[f"many_{a}"] = f"many_{a}"
        points[f"point_{a}"] = [
            f'inner_{a} = (S.cast(k_{a}, "float32") + 0.5) * step_{a} / S.cast(many_{a}, "float32")',
            f'at_{a} = start_{a} + S.cast(i_{a}, "float32") * step_{a} + inner_{a}',
            f"in_{a} = S.fp32(0)",
            f'if at_{a} >= -1.0 and at_{a} <= S.cast({size}, "float32"):',
            f"    in_{a} = S.fp32(1)",
            f'at_{a} = S.min(S.max(at_{a}, 0.0), S.cast({size}, "float32"))',
            f'{a}0 = S.min(S.cast(at_{a}, "int32"), {size} - 1)',
            f"{a}1 = S.min({a}0 + 1, {size} - 1)",
            f'f_{a} = at_{a} - S.cast({a}0, "float32")',
            f"if {a}0 >= {size} - 1:",
            f"    f_{a} = S.fp32(0)",
            f"g_{a} = (1.0 - f_{a}) * in_{a}",
            f"f_{a} = f_{a} * in_{a}",
        ]
    return cell, points, many


WEIGHTS = (("a", "g_y", "g_x"), ("b", "g_y", "f_x"), ("c", "f_y", "g_x"), ("d", "f_y", "f_x"))


@kernel("RoiAlign")
def roi_align(layer: Layer) -> Kernel:
    rois, shape = layer.inputs[1], pooled_shape(layer)
    _check(layer, rois, 5, shape)
    mode = layer.word("coordinate_transformation_mode", "HALF_PIXEL", MODES)
    maximum = layer.word("method", "AVG", AVERAGES) == "MAX"
    if layer.is_quantised:
        return _fixed_align(layer, rois, shape, mode, maximum)
    count, scale = samples(layer), pair(layer, "spatial_scale_value", [1.0])
    cell, points, many = _float_points(count)
    image, _ = _image(layer, rois)
    place = [
        *image,
        *_float_ends(mode),
        "valid = S.i32(1)",
        "if image < 0 or image >= images" + (" or size_y < 0.0 or size_x < 0.0:" if mode == "HALF_PIXEL" else ":"),
        "    valid = S.i32(0)",
        *cell,
    ]
    words: Substitutions = {"place": place, **points, **many, **_float_weights(maximum)}
    words |= {"dtype": layer.input.dtype, "zero": "", "head": []}
    numbers = {"samples_y": count[0], "samples_x": count[1], "scale_y": float(scale[0]), "scale_x": float(scale[1])}
    return script(
        ALIGN,
        None,
        words,
        source=layer.input,
        rois=rois,
        y=layer.output,
        points=rois.shape[0] * math.prod(shape),
        roi_size=5,
        **_sizes(layer, shape),
        **numbers,
    )


def _float_weights(maximum: bool) -> Substitutions:
    terms = [f"{v} * ({wy} * {wx})" for v, wy, wx in WEIGHTS]
    total = S_SUM.format(*terms)
    cells = 'S.cast(S.max(many_y * many_x, 1), "float32")'
    if not maximum:
        return {
            "start": "S.fp32(0)",
            "weigh": [f"acc = acc + ({total})"],
            "body": [f"acc = acc / {cells}"],
            "result": "acc",
        }
    largest = f"S.max(S.max({terms[0]}, {terms[1]}), S.max({terms[2]}, {terms[3]}))"
    body = ["if many_y * many_x == 0:", "    acc = S.vbcast(S.fp32(0), lanes=32)"]
    return {"start": 'S.fp32("-inf")', "weigh": [f"acc = S.max(acc, {largest})"], "body": body, "result": "acc"}


S_SUM = "(({} + {}) + {}) + {}"


def _fixed_align(layer: Layer, rois: Tensor, shape: tuple[int, int], mode: str, maximum: bool) -> Kernel:
    count, x, y = samples(layer), layer.input, layer.output
    if 0 in count:
        raise LayerError("quantised regions with an adaptive number of samples ('sample' is 0) are not supported")
    spatial, numbers = [int(v) for v in pair(layer, "spatial_scale_value")], fixed_numbers(layer)
    scale, shift = (np.resize(v, 2) for v in layer.scale_shift(of=2))
    zero, k = rois.scalar_zero, KernelSource()
    largest = max(abs(rois.low + zero), abs(rois.high + zero))
    real = largest * int(scale[1]) * 2.0 ** -int(shift[1])
    if largest * int(scale[1]) >= 2**31 or not 0 <= shift[1] < 31 or not 0 <= scale[1]:
        raise LayerError(f"regions up to {largest} times {scale[1]} / 2^{shift[1]} are beyond what kernels compute")
    if (real + 1) * max(abs(s) for s in spatial) * 4 >= 2**31:
        raise LayerError(f"places up to {real:g} times 'spatial_scale_value' do not fit 32 bits")
    place, given = _image(layer, rois)
    place += _fixed_place(mode)
    points = {f"point_{a}": _fixed_point(a, size) for a, size in (("y", "height"), ("x", "width"))}
    body, weigh, start = _fixed_sum(k, layer, maximum, count, scale, shift)
    words: Substitutions = {
        "head": [],
        "place": place,
        **points,
        "many_y": "samples_y",
        "many_x": "samples_x",
        "dtype": x.dtype,
        "zero": " + zero_x" if x.scalar_zero else "",
        "start": start,
        "weigh": weigh,
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
    for n, a in enumerate("yx"):
        keys = (f"bin_scale_{a}", f"bin_shift_{a}", f"grid_scale_{a}", f"grid_shift_{a}")
        given |= {f"spatial_{a}": spatial[n]} | dict(zip(keys, numbers[n], strict=True))
    return script(
        ALIGN,
        k,
        words,
        source=x,
        rois=rois,
        y=y,
        points=rois.shape[0] * math.prod(shape),
        roi_size=5,
        **_sizes(layer, shape),
        **given,
    )


def _fixed_place(mode: str) -> list[str]:
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
            f"step_{a} = scaled_floor(size_{a}, bin_scale_{a}, bin_shift_{a})",
            f"half_{a} = scaled_floor(step_{a}, grid_scale_{a}, grid_shift_{a})",
        ]
    return [*place, "if valid == 0:", "    image = S.i32(0)"]


def _fixed_point(a: str, size: str) -> Lines:
    return [
        f"at_{a} = start_{a} + step_{a} * i_{a} + half_{a} * (2 * k_{a} + 1)",
        f"in_{a} = S.i32(0)",
        f"if valid != 0 and at_{a} >= -1024 and at_{a} <= {size} << {FRACTION}:",
        f"    in_{a} = S.i32(1)",
        f"at_{a} = S.max(at_{a}, 0)",
        f"{a}0 = S.min(at_{a} >> {FRACTION}, {size} - 1)",
        f"{a}1 = S.min({a}0 + 1, {size} - 1)",
        f"f_{a} = at_{a} & 1023",
        f"if {a}0 >= {size} - 1:",
        f"    f_{a} = S.i32(0)",
        f"g_{a} = (1024 - f_{a}) * in_{a}",
        f"f_{a} = f_{a} * in_{a}",
    ]


def _fixed_sum(
    k: KernelSource, layer: Layer, maximum: bool, count: tuple[int, int], scale: np.ndarray, shift: np.ndarray
) -> tuple[tuple[Lines, str], Lines, str]:
    """((lines behind the sum, the result), lines of a point, the start)."""
    x, y = layer.input, layer.output
    low, high = (v + x.scalar_zero for v in (x.low, x.high))
    terms = [f"{v} * (({wy} * {wx}) >> {FRACTION})" for v, wy, wx in WEIGHTS]
    many = 1 if maximum else count[0] * count[1]
    acc = Value("acc", "int32", min(low, 0) * many << FRACTION, max(high, 0) * many << FRACTION)
    result = requantise(k, acc, scale[0], shift[0] + FRACTION, y.scalar_zero, y.low, y.high)
    lines = k.body
    if maximum:
        largest = f"S.max(S.max({terms[0]}, {terms[1]}), S.max({terms[2]}, {terms[3]}))"
        outside = ["if valid == 0:", "    acc = S.vbcast(S.i32(0), lanes=32)"]
        return ([*outside, *lines], result.name), [f"acc = S.max(acc, {largest})"], f"S.i32({-(2**31) + 1})"
    return (lines, result.name), [f"acc = acc + ({' + '.join(terms)})"], "S.i32(0)"


# -- crops and pyramids

CROP = """
for p in range(S.get_local_id(), points, S.get_local_size()):
    r = p / (down * across)
    i_y = p / across % down
    i_x = p % across
    $place
    $point
    for j in range(0, channels, 32):
        mask = S.tail_mask(S.min(channels - j, 32), 32)
        result = S.vbcast(outside, lanes=32)
        if inside != 0:
            $taken
        S.vstore(narrow(result, "$dtype"), y + (p * channels + j), mask)
"""


def _crop_points(nearest: bool, source: str) -> tuple[Lines, Lines]:
    """(lines of a point, lines that take its channels)."""
    lines: Lines = []
    for a, size, cells in (("y", "height", "down"), ("x", "width", "across")):
        last = f'S.cast({size} - 1, "float32")'
        lines += [
            f"at_{a} = 0.5 * (first_{a} + last_{a}) * {last}",
            f"if {cells} > 1:",
            f'    step_{a} = (last_{a} - first_{a}) * {last} / S.cast({cells} - 1, "float32")',
            f'    at_{a} = first_{a} * {last} + S.cast(i_{a}, "float32") * step_{a}',
            f"if not (at_{a} >= 0.0 and at_{a} <= {last}):",
            "    inside = S.i32(0)",
            f"    at_{a} = S.fp32(0)",
            f'{a}0 = S.cast({f"S.floor(at_{a} + 0.5)" if nearest else f"at_{a}"}, "int32")',
            f"{a}1 = S.min({a}0 + 1, {size} - 1)",
            f'f_{a} = at_{a} - S.cast({a}0, "float32")',
        ]
    near = {
        f"{v}{w}": f"{source} + (image * image_size + y{v} * row_size + x{w} * channels + j)"
        for v in "01"
        for w in "01"
    }
    if nearest:
        return lines, [f'result = load({near["00"]}, mask, "$dtype", {LANES})']
    taken = [f'{n} = load({near[at]}, mask, "$dtype", {LANES})' for n, at in zip("abcd", near, strict=True)]
    return lines, [
        *taken,
        "above = a + (b - a) * f_x",
        "below = c + (d - c) * f_x",
        "result = above + (below - above) * f_y",
    ]


@kernel("CropAndResize")
def crop_and_resize(layer: Layer) -> Kernel:
    x, boxes, index = layer.inputs[:3]
    shape = crop_size(layer)
    _check(layer, boxes, 4, shape)
    if index.dtype not in ("int32", "int16", "int8", "uint8", "uint16") or index.count != boxes.shape[0]:
        raise LayerError(f"'{index.name}' is {index.dtype} {list(index.shape)}, expected an image for each box")
    point, taken = _crop_points(layer.word("method", "BILINEAR", CROPS) == "NEAREST", "source")
    ends = [
        f'{name}_{a} = S.cast(boxes[r * 4 + {n + 2 * (name == "last")}], "float32")'
        for n, a in enumerate("yx")
        for name in ("first", "last")
    ]
    place = [
        "image = S.i32(index[r])",
        "inside = S.i32(1)",
        "if image < 0 or image >= images:",
        "    inside = S.i32(0)",
        "    image = S.i32(0)",
        *ends,
    ]
    taken = [t.replace("$dtype", x.dtype) for t in taken]
    return script(
        CROP,
        None,
        {"place": place, "point": point, "taken": taken, "dtype": x.dtype},
        source=x,
        boxes=boxes,
        index=index,
        y=layer.output,
        points=boxes.shape[0] * math.prod(shape),
        outside=layer.number("extrapolation_value", 0.0),
        **_sizes(layer, shape),
    )


def _check_pyramid(boxes: Tensor, maps: Sequence[Tensor], y: Tensor, shape: tuple[int, int]) -> None:
    if len(maps) != 4 or any(len(m.shape) != 4 or m.shape[0] != 1 or m.dtype != y.dtype for m in maps):
        raise LayerError("it takes boxes and four maps of one image, with the type of the output")
    if (
        boxes.shape[-1:] != (4,)
        or wide_kind(boxes) != "float32"
        or y.count != boxes.count // 4 * math.prod(shape) * maps[0].shape[3]
    ):
        raise LayerError(f"boxes of {list(boxes.shape)} do not lead to the shape {list(y.shape)}")
    if min(shape) < 1 or any(m.shape[3] != maps[0].shape[3] for m in maps):
        raise LayerError("the maps must have equal channels, and the regions positive sizes")


_PYRAMID_BEGIN = (
    'y_first = S.cast(rois[r * 4], "float32")',
    'x_first = S.cast(rois[r * 4 + 1], "float32")',
    'y_last = S.cast(rois[r * 4 + 2], "float32")',
    'x_last = S.cast(rois[r * 4 + 3], "float32")',
    "area = (y_last - y_first) * (x_last - x_first)",
    "image = S.i32(0)",
    "source = map0 + 0",
    "height = height0 + 0",
    "width = width0 + 0",
    "scale_y = scale0 + 0.0",
)
"""The ends of a region of a pyramid, and its first map, which small regions are on."""


@kernel("PyramidROIAlign")
def pyramid(layer: Layer) -> Kernel:
    boxes, maps, y = layer.inputs[0], layer.inputs[1:], layer.output
    shape = layer.integer("resize_height"), layer.integer("resize_width")
    _check_pyramid(boxes, maps, y, shape)
    normalised = layer.flag("proposal_normalized", False)
    mode, scales = pyramid_numbers(layer)
    given: dict[str, float | int | Tensor] = {f"map{i}": m for i, m in enumerate(maps)}
    place = [*_PYRAMID_BEGIN]
    limits = NORMALISED_LEVELS if normalised else LEVELS
    for i in (1, 2, 3):
        place += [
            f"if area >= limit{i}:",
            f"    source = map{i} + 0",
            f"    height = height{i} + 0",
            f"    width = width{i} + 0",
            f"    scale_y = scale{i} + 0.0",
        ]
        given[f"limit{i}"] = float(np.float32(limits[i - 1]))
    for i, m in enumerate(maps):
        given |= {f"height{i}": m.shape[1], f"width{i}": m.shape[2], f"scale{i}": float(scales[i])}
    place += ["row_size = width * channels", "image_size = S.i32(0)", "scale_x = scale_y + 0.0"]
    given |= {"channels": maps[0].shape[3], "down": shape[0], "across": shape[1], "points": y.count // maps[0].shape[3]}
    if normalised:
        point, taken = _crop_points(False, "source")
        place += [
            "first_y = y_first + 0.0",
            "first_x = x_first + 0.0",
            "last_y = y_last + 0.0",
            "last_x = x_last + 0.0",
            "inside = S.i32(1)",
        ]
        words: Substitutions = {
            "place": place,
            "point": point,
            "dtype": y.dtype,
            "taken": [t.replace("$dtype", y.dtype) for t in taken],
        }
        return script(CROP, None, words, rois=boxes, y=y, outside=0.0, **given)
    count = samples(layer)
    cell, points, many = _float_points(count)
    valid = "if size_y < 0.0 or size_x < 0.0:"
    checks = ["valid = S.i32(1)", *([valid, "    valid = S.i32(0)"] if mode == "HALF_PIXEL" else [])]
    words = {
        "place": [*place, *_float_ends(mode), *checks, *cell],
        **points,
        **many,
        **_float_weights(False),
        "dtype": y.dtype,
        "zero": "",
        "head": [],
    }
    return script(ALIGN, None, words, rois=boxes, y=y, roi_size=4, samples_y=count[0], samples_x=count[1], **given)


# -- pooling

MAXIMA = """
for p in range(S.get_local_id(), points, S.get_local_size()):
    r = p / (down * across)
    i_y = p / across % down
    i_x = p % across
    $place
    if image < 0 or image >= images:
        last_y = first_y + 0
        image = S.i32(0)
    for j in range(0, channels, 32):
        mask = S.tail_mask(S.min(channels - j, 32), 32)
        acc = S.vbcast($start, lanes=32)
        for v in range(first_y, last_y):
            for u in range(first_x, last_x):
                acc = S.max(acc, load(source + (image * image_size + v * row_size + u * channels + j), mask, "$dtype", 32))
        if first_y >= last_y or first_x >= last_x:
            acc = S.vbcast($empty, lanes=32)
        S.vstore(narrow(acc, "$dtype"), y + (p * channels + j), mask)
"""


@kernel("MaxRoiPool")
def max_roi_pool(layer: Layer) -> Kernel:
    rois, shape, x = layer.inputs[1], pooled_shape(layer), layer.input
    _check(layer, rois, 5, shape)
    place, given = _image(layer, rois)
    spatial = pair(layer, "spatial", [1.0])
    if layer.is_quantised:
        zero = rois.scalar_zero
        largest = max(abs(rois.low + zero), abs(rois.high + zero)) * max(abs(int(s)) for s in spatial)
        if largest >= 2**31 - 2**15:
            raise LayerError(f"regions times 'spatial' are up to {largest}, which does not fit 32 bits")
        given |= {
            "zero_roi": zero,
            "spatial_y": int(spatial[0]),
            "spatial_x": int(spatial[1]),
            "empty": max(min(-x.scalar_zero, x.high), x.low),
        }
    else:
        given |= {"spatial_y": float(spatial[0]), "spatial_x": float(spatial[1]), "empty": 0.0}
    for n, (a, size, cells) in enumerate((("y", "height", "down"), ("x", "width", "across"))):
        for name, at in (("from", n + 1), ("to", n + 3)):
            if layer.is_quantised:
                place.append(f"{name}_{a} = ((S.i32(rois[r * 5 + {at}]) + zero_roi) * spatial_{a} + 32768) >> 16")
            else:
                real = f'S.floor(S.cast(rois[r * 5 + {at}], "float32") * spatial_{a} + 0.5)'
                place.append(f'{name}_{a} = S.cast(S.min(S.max({real}, -1048576.0), 1048576.0), "int32")')
        place += [
            f"size_{a} = S.max(to_{a} - from_{a} + 1, 1)",
            f"first_{a} = clamp(i_{a} * size_{a} / {cells} + from_{a}, 0, {size})",
            f"last_{a} = clamp(((i_{a} + 1) * size_{a} + {cells} - 1) / {cells} + from_{a}, 0, {size})",
        ]
    start = f"S.i32({x.low})" if layer.is_quantised else 'S.fp32("-inf")'
    words: Substitutions = {"place": place, "start": start, "dtype": x.dtype, "empty": "empty"}
    return script(
        MAXIMA,
        None,
        words,
        source=x,
        rois=rois,
        y=layer.output,
        points=rois.shape[0] * math.prod(shape),
        **_sizes(layer, shape),
        **given,
    )


NEAREST = """
for p in range(S.get_local_id(), points, S.get_local_size()):
    r = p / (down * across)
    $place
    pixel = source.as_ptr("$bits") + (y_place * row_size + x_place * channels)
    S.dma_copy(target.as_ptr("$bits") + p * channels, pixel, channels)
"""


@kernel("ROIPooling")
def roi_pooling(layer: Layer) -> Kernel:
    x, boxes, y = layer.inputs[0], layer.inputs[1], layer.output
    if len(x.shape) != 4 or len(y.shape) < 3 or boxes.shape[-1:] != (4,) or x.dtype != y.dtype:
        raise LayerError(f"{list(x.shape)} and {list(boxes.shape)} are not NHWC maps and boxes of four numbers")
    h, w = y.shape[-3:-1]
    if y.count != boxes.count // 4 * h * w * x.shape[3] or min(h, w) < 1 or wide_kind(boxes) != "float32":
        raise LayerError(f"boxes of {list(boxes.shape)} do not lead to the shape {list(y.shape)}")
    place: Lines = []
    for n, (a, size, at) in enumerate((("y", "height", "p / across % down"), ("x", "width", "p % across"))):
        cells = 'S.cast(down, "float32")' if a == "y" else 'S.cast(across, "float32")'
        place += [
            f'{a}_factor = S.cast({size}, "float32") / {cells}',
            f'{a}_a = S.cast(boxes[r * 4 + {n}], "float32") * {a}_factor',
            f'{a}_b = S.cast(boxes[r * 4 + {n + 2}], "float32") * {a}_factor',
            f'{a}_real = {cells} * {a}_a + S.cast({at}, "float32") * ({a}_b + 1.0 - {a}_a)',
            f'{a}_place = S.cast(S.min(S.max({a}_real, 0.0), S.cast({size} - 1, "float32")), "int32")',
        ]
    words: Substitutions = {"place": place, "bits": bits_of(x.dtype)}
    sizes = {n: v for n, v in _sizes(layer, (h, w)).items() if n not in ("images", "image_size")}
    return script(NEAREST, None, words, source=x, boxes=boxes, target=y, points=y.count // x.shape[3], **sizes)
