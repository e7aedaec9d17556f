"""Regions of images, and convolutions that look at computed places."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compass_core.arrays import Array
from compassc.importers.building import Building
from compassc.importers.onnx.declare import Constant, operator
from compassc.importers.onnx.operators.elementwise import arithmetic, cast
from compassc.importers.onnx.operators.indexing import gather
from compassc.importers.onnx.operators.windows import convolve
from compassc.importers.onnx.window import Asked, Ints
from compassc.importers.values import Refused, Value, channels_last


def _boxes(b: Building, rois: Value, columns: Sequence[int]) -> Value:
    """The columns of regions in another order."""
    return gather(b, rois, Value.of(np.asarray(columns, np.int32)), axis=1)


@operator("RoiAlign", since=10)
def roi_align(
    b: Building,
    x: Value,
    rois: Value,
    images: Value,
    *,
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
    coordinate_transformation_mode: str = "half_pixel",
) -> Value:
    """The layer has the number of the image before the corners, rows first."""
    numbers = b.unsqueeze(cast(b, images, x.dtype), [1])
    boxes = b.concat(numbers, _boxes(b, rois, (1, 0, 3, 2)), axis=1)
    tensor, count = b.image(x), rois.shape[0]
    made = b.layer(
        "RoiAlign",
        [tensor, b.laid(boxes)],
        (count, output_height, output_width, x.shape[1]),
        tensor.dtype,
        pooled_shape=[output_height, output_width],
        sample=[sampling_ratio] * 2,
        method=mode.upper(),
        spatial_scale_value=[spatial_scale] * 2,
        coordinate_transformation_mode=coordinate_transformation_mode.upper(),
    )
    return b.value(made, x.dtype, channels_last(4))


@operator("MaxRoiPool")
def max_roi_pool(b: Building, x: Value, rois: Value, *, pooled_shape: Ints, spatial_scale: float = 1.0) -> Value:
    tensor = b.image(x)
    shape = (rois.shape[0], *pooled_shape, x.shape[1])
    made = b.layer(
        "MaxRoiPool",
        [tensor, b.laid(_boxes(b, rois, (0, 2, 1, 4, 3)))],
        shape,
        tensor.dtype,
        pooled_shape=list(pooled_shape),
        spatial=[spatial_scale] * 2,
    )
    return b.value(made, x.dtype, channels_last(4))


@operator("DeformConv", since=19)
def deform_conv(
    b: Building,
    x: Value,
    w: Constant,
    offset: Value,
    bias: Constant | None = None,
    mask: Value | None = None,
    *,
    asked: Asked,
    group: int = 1,
    offset_group: int = 1,
) -> Value:
    """Each place that a filter looks at is sampled, then a convolution of single cells sums them up."""
    if x.rank != 4:
        raise Refused("it is supported for images only")
    window = asked.over(x.shape[2:], w.shape[2:])
    (rows, columns), cells = window.positions(x.shape[2:]), int(np.prod(w.shape[2:]))
    b.room(rows, columns, cells, 2)
    lines = []
    for size, kernel, stride, dilation, (before, _), many in zip(
        x.shape[2:], window.kernel, window.stride, window.dilation, window.pads, (rows, columns), strict=True
    ):
        places = np.arange(many)[:, None] * stride + np.arange(kernel) * dilation - before
        lines.append((2 * places + 1) / size - 1)
    grid = np.zeros((rows, columns, *window.kernel, 2), np.float32)
    grid[..., 0], grid[..., 1] = lines[1][None, :, None, :], lines[0][:, None, :, None]
    base = Value.of(grid.reshape(1, rows, columns, cells, 2))
    unit = Value.of(np.asarray([2 / x.shape[3], 2 / x.shape[2]], np.float32))
    sampled = [
        _sampled(b, part, moved, base, unit, None if mask is None else _group(b, mask, g, offset_group, cells, 1))
        for g, (part, moved) in enumerate(
            (_channels(b, x, g, offset_group), _group(b, offset, g, offset_group, cells, 2))
            for g in range(offset_group)
        )
    ]
    joined = b.concat(*sampled, axis=4)  # [n, rows, columns, cells, channels]
    flat = b.reshape(joined, (x.shape[0], rows, columns, cells * x.shape[1]))
    one = window._replace(kernel=(1, 1), stride=(1, 1), dilation=(1, 1), pads=((0, 0), (0, 0)))
    return convolve(b, b.transpose(flat, (0, 3, 1, 2)), _dense(b, w, group, x.shape[1]), bias, one, 1)


def _channels(b: Building, x: Value, index: int, parts: int) -> Value:
    many = x.shape[1] // parts
    return gather(b, x, Value.of(np.arange(index * many, (index + 1) * many, dtype=np.int32)), axis=1)


def _group(b: Building, x: Value, index: int, parts: int, cells: int, many: int) -> Value:
    """The channels of an offset group as [n, rows, columns, cells, many]."""
    part = _channels(b, x, index, parts)
    n, _, rows, columns = part.shape
    return b.transpose(b.reshape(part, (n, cells, many, rows, columns)), (0, 3, 4, 1, 2))


def _sampled(b: Building, x: Value, offset: Value, base: Value, unit: Value, mask: Value | None) -> Value:
    """[n, rows, columns, cells, channels]: x at the places of the grid moved by offsets (y, x)."""
    turned = gather(b, offset, Value.of(np.asarray([1, 0], np.int32)), axis=4)
    grid = arithmetic(b, arithmetic(b, turned, unit, "Mul"), base, "Add")
    n, rows, columns, cells, _ = grid.shape
    places = b.laid(b.reshape(grid, (n, rows, columns * cells, 2)))
    tensor = b.image(x)
    made = b.layer(
        "GridSample",
        [tensor, places],
        (n, rows, columns * cells, x.shape[1]),
        tensor.dtype,
        method="BILINEAR",
        padding_mode="ZEROS",
        align_corners=False,
    )
    found = b.reshape(b.value(made, x.dtype), (n, rows, columns, cells, x.shape[1]))
    return found if mask is None else arithmetic(b, found, mask, "Mul")


def _dense(b: Building, w: Array, group: int, channels: int) -> Array:
    """Weights [O, cells * channels, 1, 1] without groups, cells before channels."""
    outputs, inner = w.shape[:2]
    full = np.zeros(b.room(outputs, channels, *w.shape[2:]), w.dtype).reshape(outputs, channels, -1)
    own = outputs // group
    for g in range(group):
        at = slice(g * own, (g + 1) * own)
        full[at, g * inner : (g + 1) * inner] = w[at].reshape(own, inner, -1)
    return np.ascontiguousarray(full.transpose(0, 2, 1)).reshape(outputs, -1, 1, 1)
