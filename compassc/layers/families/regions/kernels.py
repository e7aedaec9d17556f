"""Kernels of regions: lanes are channels; places of points are scalars, which every group of channels shares."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.emit import wide_kind
from compassc.layers.families.regions import fixed_kernels
from compassc.layers.families.regions.reference import (
    AVERAGES,
    CROPS,
    LEVELS,
    MODES,
    NORMALISED_LEVELS,
    crop_size,
    pair,
    pooled_shape,
    pyramid_numbers,
    pyramid_shape,
    samples,
)
from compassc.layers.families.regions.texts import (
    ALIGN,
    CROP,
    INDEXED,
    NEAREST,
    WEIGHTS,
    Lines,
    check_maps,
    four_pixels,
    image_lines,
    sizes_of,
)
from compassc.layers.kernels import kernel
from compassc.layers.scripts import Substitutions, script
from compassc.layers.source import Kernel
from compassc.layers.vectors import bits_of


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


@kernel("RoiAlign")
def roi_align(layer: Layer) -> Kernel:
    rois, shape = layer.inputs[1], pooled_shape(layer)
    check_maps(layer, rois, 5, shape)
    mode = layer.word("coordinate_transformation_mode", "HALF_PIXEL", MODES)
    maximum = layer.word("method", "AVG", AVERAGES) == "MAX"
    if layer.is_quantised:
        return fixed_kernels.roi_align(layer, rois, shape, mode, maximum)
    count, scale = samples(layer), pair(layer, "spatial_scale_value", [1.0])
    cell, points, many = _float_points(count)
    image, _ = image_lines(layer, rois)
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
        **sizes_of(layer, shape),
        **numbers,
    )


def _float_weights(maximum: bool) -> Substitutions:
    terms = [f"{v} * ({wy} * {wx})" for v, wy, wx in WEIGHTS]
    total = "(({} + {}) + {}) + {}".format(*terms)
    cells = 'S.cast(S.max(many_y * many_x, 1), "float32")'
    lines: Substitutions = {"line": [], "line_end": []}
    if not maximum:
        return lines | {
            "start": "S.fp32(0)",
            "weigh": [f"acc = acc + ({total})"],
            "body": [f"acc = acc / {cells}"],
            "result": "acc",
        }
    largest = f"S.max(S.max({terms[0]}, {terms[1]}), S.max({terms[2]}, {terms[3]}))"
    body = ["if many_y * many_x == 0:", "    acc = S.vbcast(S.fp32(0), lanes=32)"]
    return lines | {"start": 'S.fp32("-inf")', "weigh": [f"acc = S.max(acc, {largest})"], "body": body, "result": "acc"}


# -- crops and pyramids


def _crop_points(nearest: bool) -> tuple[Lines, Lines]:
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
    pixels = four_pixels(nearest)
    if nearest:
        return lines, [f"result = {pixels[0]}"]
    taken = [f"{n} = {pixel}" for n, pixel in zip("abcd", pixels, strict=True)]
    return lines, [
        *taken,
        "above = a + (b - a) * f_x",
        "below = c + (d - c) * f_x",
        "result = above + (below - above) * f_y",
    ]


@kernel("CropAndResize")
def crop_and_resize(layer: Layer) -> Kernel:
    x, boxes, index = layer.inputs[:3]
    shape, nearest = crop_size(layer), layer.word("method", "BILINEAR", CROPS) == "NEAREST"
    check_maps(layer, boxes, 4, shape)
    if index.dtype not in ("int32", "int16", "int8", "uint8", "uint16") or index.count != boxes.shape[0]:
        raise LayerError(f"'{index.name}' is {index.dtype} {list(index.shape)}, expected an image for each box")
    if layer.is_quantised:
        return fixed_kernels.crop_and_resize(layer, shape, nearest)
    point, taken = _crop_points(nearest)
    ends = [
        f'{name}_{a} = S.cast(boxes[r * 4 + {n + 2 * (name == "last")}], "float32")'
        for n, a in enumerate("yx")
        for name in ("first", "last")
    ]
    place = [*INDEXED, *ends]
    taken = [t.replace("$dtype", x.dtype) for t in taken]
    return script(
        CROP,
        None,
        {"place": place, "point": point, "taken": taken, "finish": [], "dtype": x.dtype},
        source=x,
        boxes=boxes,
        index=index,
        y=layer.output,
        points=boxes.shape[0] * math.prod(shape),
        outside=layer.number("extrapolation_value", 0.0),
        **sizes_of(layer, shape),
    )


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
    shape = pyramid_shape(layer)
    _check_pyramid(boxes, maps, y, shape)
    if layer.is_quantised:
        return fixed_kernels.pyramid(layer, shape)
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
        point, taken = _crop_points(False)
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
            "finish": [],
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
    check_maps(layer, rois, 5, shape)
    place, given = image_lines(layer, rois)
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
        **sizes_of(layer, shape),
        **given,
    )


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
    sizes = {n: v for n, v in sizes_of(layer, (h, w)).items() if n not in ("images", "image_size")}
    return script(NEAREST, None, words, source=x, boxes=boxes, target=y, points=y.count // x.shape[3], **sizes)
