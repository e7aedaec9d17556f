"""Pooling: the maximum, the mean or a norm of the elements of a window, per channel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from compass_core.arrays import Array
from compassc.graph import Layer, LayerError
from compassc.layers.arithmetic import approximate_factor, look_up, requantise, saturate
from compassc.layers.windows import Window, cells_inside, seen, window_of
from compassc.operators.arrays import larger, largest_of
from compassc.operators.calls import Calls, Operand, Outputs

METHODS = ("MAX", "AVG", "L1", "L2")
ENDS = (("top", "bottom"), ("left", "right"))
LOWEST = float(np.finfo(np.float32).min)


def _views(layer: Layer, x: Array, fill: float) -> tuple[Array, tuple[int, ...]]:
    """The elements of each window, and the axes of its cells, which are the last."""
    window = window_for(layer, x.shape)
    positions = check_positions(layer, window, x.shape)
    return seen(x, window, positions, fill), tuple(range(-len(window.kernel), 0))


def window_for(layer: Layer, shape: tuple[int, ...]) -> Window:
    """The window of a layer; that of a GlobalPool is the whole image with its pads."""
    if layer.type != "GlobalPool":
        return window_of(layer)
    ones = (1,) * (len(shape) - 2)
    named = ENDS[2 - len(ones) :] if len(ones) <= 2 else ()
    pads = tuple((layer.integer(f"pad_{a}", 0), layer.integer(f"pad_{b}", 0)) for a, b in named) or ((0, 0),) * len(
        ones
    )
    return Window(tuple(n + a + b for n, (a, b) in zip(shape[1:-1], pads, strict=True)), ones, ones, pads)


def check_positions(layer: Layer, window: Window, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The number of window positions along each axis; LayerError where the output has other sizes."""
    made = layer.output.shape
    sizes = [window.positions(shape[1:-1], ceil) for ceil in (False, True)]
    # along one axis a last window may reach past the end, along another it may begin there and count for nothing
    known = all(n in size for n, size in zip(made[1:-1], zip(*sizes, strict=True), strict=False))
    if len(made) != len(shape) or (made[0], made[-1]) != (shape[0], shape[-1]) or not known:
        expected = [shape[0], *sizes[0], shape[-1]]
        raise LayerError(f"the window leads from {list(shape)} to the shape {expected}, the output is {list(made)}")
    return tuple(made[1:-1])


def least_of(layer: Layer, window: Window, positions: tuple[int, ...]) -> float:
    """What no maximum of reals of a layer is below: the lowest finite float32, which the maximum of a window beside the image
    is, where a window is; else minus infinity."""
    return -np.inf if cells_inside(layer.input.shape[1:-1], window, positions).all() else LOWEST


def area_of(layer: Layer) -> Array:
    """Cells a mean is taken over, by position."""
    window, positions = window_for(layer, layer.input.shape), tuple(layer.output.shape[1:-1])
    if layer.flag("count_include_pad", True):
        return np.full(positions, int(np.prod(window.kernel)), np.int64)
    return cells_inside(layer.input.shape[1:-1], window, positions)


def pooling_body(call: Calls, layer: Layer, x: Operand) -> Outputs:
    method, shape = layer.word("method", choices=METHODS), layer.input.shape
    window = window_for(layer, shape)
    if method not in ("MAX", "AVG") or len(shape) != 4 or any(n < 0 for pair in window.pads for n in pair):
        raise LayerError("the operators pool images, by maximum and mean, and cut nothing off")
    positions = check_positions(layer, window, shape)
    (top, bottom), (left, right) = window.pads
    return call(
        "max_pool2d", x, list(window.kernel), list(window.stride), list(window.dilation), [top, left, bottom, right],
        method.lower(), positions != window.positions(shape[1:-1]), "NHWC", layer.flag("count_include_pad", True),
    )  # fmt: skip


def pooling(layer: Layer, x: Array) -> Array:
    method = layer.word("method", choices=METHODS)
    if method == "MAX":
        views, axes = _views(layer, x.astype(np.float32), -np.inf)
        window, positions = window_for(layer, x.shape), tuple(layer.output.shape[1:-1])
        return larger(largest_of(views, axes), np.float32(least_of(layer, window, positions)))
    views, axes = _views(layer, x.astype(np.float32), 0.0)
    if method == "AVG":
        area = area_of(layer)[..., None]
        return np.where(area > 0, views.sum(axes) / np.maximum(area, 1).astype(np.float32), 0)
    if method == "L1":
        found: Array = np.abs(views).sum(axes)
        return found
    found = np.sqrt((views * views).sum(axes))
    return found


def quantised_pooling(layer: Layer, x: Array) -> Array:
    method = layer.word("method", choices=METHODS)
    out, source = layer.output, layer.input
    if method == "MAX":
        views, axes = _views(layer, x.astype(np.int64), source.low)
        found: Array = views.max(axes)
        return found
    # a padded cell counts as 0 once the zero point is added
    views, axes = _views(layer, x.astype(np.int64) + source.scalar_zero, 0)
    if method == "AVG":
        area = area_of(layer)[..., None]
        ratio = np.float32(np.float32(out.scalar_scale) / np.float32(source.scalar_scale))
        scale, shift = approximate_factor(ratio / np.maximum(area, 1).astype(np.float32), 8)
        total = saturate(views.sum(axes), -(2**31), 2**31)
        y = requantise(total, scale, shift, out.scalar_zero, out.low, out.high)
        # nothing to average is not a number, which is stored as 0
        return np.where(area > 0, y, saturate(np.zeros(1, np.int64), out.low, out.high))
    scale, shift = layer.scale_shift(of=1)
    if method == "L1":
        total = saturate(np.abs(views).sum(axes), 0, 2**32 - 1)
        return requantise(total, scale, shift, out.scalar_zero, out.low, out.high)
    total = saturate((views * views).sum(axes), 0, 2**32 - 1)
    return look_up(requantise(total, scale, shift, 0, 0, 65535), layer.constant("sqrt_lut").reshape(-1), 16, False)


def padded_window(layer: Layer, shape: tuple[int, ...]) -> tuple[Window, tuple[int, ...]]:
    """The window of a volume with the end padded as far as the output needs it, and its positions."""
    if len(shape) != 5 or len(layer.output.shape) != 5:
        raise LayerError(f"the input is {list(shape)}, expected NDHWC volumes")
    window, positions = window_of(layer), tuple(layer.output.shape[1:-1])
    if (shape[0], shape[-1]) != (layer.output.shape[0], layer.output.shape[-1]):
        raise LayerError(f"the output '{layer.output.name}' is {list(layer.output.shape)} for the input {list(shape)}")
    fitting = (window.positions(shape[1:-1]), window.positions(shape[1:-1], ceil=True))
    if any(many not in both for many, *both in zip(positions, *fitting, strict=True)):
        raise LayerError(
            f"the window leads from {list(shape[1:-1])} to {list(fitting[0])}, in ceil mode to {list(fitting[1])}, "
            f"but the output '{layer.output.name}' is {list(layer.output.shape)}"
        )
    pads = []
    for size, (before, after), stride, reach, many in zip(
        shape[1:-1], window.pads, window.stride, window.reach, positions, strict=True
    ):
        pads.append((before, after + max(0, (many - 1) * stride + reach - size - before - after)))
    return replace(window, pads=tuple(pads)), positions


def pooling_3d(layer: Layer, x: Array) -> Array:
    window, positions = padded_window(layer, x.shape)
    axes = (-3, -2, -1)
    if layer.word("method", choices=("MAX", "AVG")) == "MAX":
        views = seen(x.astype(np.float32), window, positions, -np.inf)
        return larger(largest_of(views, axes), np.float32(least_of(layer, window, positions)))
    total = seen(x.astype(np.float32), window, positions, 0.0).sum(axes)
    if layer.flag("count_include_pad", True):
        found: Array = total / np.float32(np.prod(window.kernel))
        return found
    inside = cells_inside(x.shape[1:-1], window, positions)[..., None].astype(np.float32)
    cells = np.float32(np.prod(window.kernel))
    found = (total / cells * cells) / (inside / cells * cells)
    return found


def quantised_pooling_3d(layer: Layer, x: Array) -> Array:
    """Means in two steps, over each plane and then over the planes, where no dilation is; in float32."""
    window, positions = padded_window(layer, x.shape)
    out, source, axes = layer.output, layer.input, (-3, -2, -1)
    if layer.word("method", choices=("MAX", "AVG")) == "MAX":
        return saturate(seen(x.astype(np.int64), window, positions, -(2**31)).max(axes), out.low, out.high)
    include = layer.flag("count_include_pad", True)
    zero_in = source.scalar_zero if include else 0
    zero_out = out.scalar_zero if include else 0
    total = seen(x.astype(np.float32) + zero_in, window, positions, 0.0).sum(axes)
    total = np.clip(total, -(2.0**31), 2.0**31 - 1).astype(np.float32)
    cells = np.float32(np.prod(window.kernel))
    inside = cells_inside(x.shape[1:-1], window, positions)[None, ..., None].astype(np.float32)
    if max(window.dilation) > 1:
        area = np.full_like(inside, cells) if include else np.maximum(inside, 1)
        return requantise(total, *approximate_factor(1 / area, 8), zero_out, out.low, out.high)
    if not include:
        total = (total * cells) / ((inside / cells).astype(np.float32) * cells)
    spans = spans_3d(layer, x.shape, window, positions)
    scale, shift = approximate_factor(
        (np.float32(1) / spans[1][:, None] / spans[2][None, :])[None, None, :, :, None], 8
    )
    total = np.clip(np.rint(total.astype(np.float32) * scale * np.exp2(-shift.astype(np.float64))), -(2.0**31), 2.0**31)
    scale, shift = approximate_factor((np.float32(1) / spans[0])[None, :, None, None, None], 8)
    return saturate(np.rint(total * scale * np.exp2(-shift.astype(np.float64))) - zero_out, out.low, out.high)


def spans_3d(layer: Layer, shape: tuple[int, ...], window: Window, positions: tuple[int, ...]) -> list[Array]:
    """Cells of each window along depth, height and width. The pads that count are those of other axes, as defined."""
    names = ("pad_y_begin", "pad_x_begin", "pad_x_end")
    found = []
    for axis, name in enumerate(names):
        size = shape[1 + axis] + sum(window.pads[axis])
        first = np.maximum(np.arange(positions[axis]) * window.stride[axis] - layer.integer(name, 0), 0)
        found.append((np.minimum(first + window.kernel[axis], size) - first).astype(np.float32))
    return found


FLATTENED = ("HWC", "NHWC", "HW", "NCHW")


def max_pooling_with_index(layer: Layer, x: Array) -> list[Array]:
    """The first maximum of each window in rows, and where it lies in the image."""
    window = window_of(layer)
    positions = check_positions(layer, window, x.shape)
    wide = x.astype(np.int64 if layer.is_quantised else np.float32)
    views = seen(wide, window, positions, 0)
    inside = seen(np.ones((1, *x.shape[1:-1], 1), bool), window, positions, False)
    flat, inside = views.reshape(*views.shape[:-2], -1), inside.reshape(*inside.shape[:-2], -1)
    lowest = np.iinfo(np.int64).min if layer.is_quantised else -np.inf
    # NaN is the maximum
    largest = np.where(inside, flat, lowest).max(-1, keepdims=True)
    best = (inside & ((flat == largest) | (np.isnan(flat) & np.isnan(largest)))).argmax(-1)
    empty = ~inside.any(-1)
    height, width, channels = x.shape[1:]
    rows = np.arange(positions[0])[:, None, None] * window.stride[0] - window.pads[0][0]
    columns = np.arange(positions[1])[None, :, None] * window.stride[1] - window.pads[1][0]
    rows = rows + best // window.kernel[1] * window.dilation[0]
    columns = columns + best % window.kernel[1] * window.dilation[1]
    index = columns * height + rows if layer.integer("storage_order", 0) else rows * width + columns
    image, channel = np.arange(x.shape[0])[:, None, None, None], np.arange(channels)
    form = layer.word("flatten_dim", "HWC", FLATTENED)
    if form in ("HWC", "NHWC"):
        index = index * channels + channel + (image * height * width * channels if form == "NHWC" else 0)
    elif form == "NCHW":
        index = (image * channels + channel) * height * width + index
    value = np.take_along_axis(flat, best[..., None], -1)[..., 0]
    return [np.where(empty, 0, value), np.where(empty, 0, index)]


def unpooling(layer: Layer, values: Array, index: Array) -> Array:
    """The values at their indices, the value that means 0 elsewhere; of equal indices the last one wins."""
    fill = -layer.output.scalar_zero if layer.is_quantised else 0
    n, height, width, channels = layer.output.shape
    form = layer.word("flatten_dim", "HW" if layer.type == "MaxUnpool" else "HWC", FLATTENED)
    first = form in ("HW", "NCHW")
    order = (0, 3, 1, 2) if first else (0, 1, 2, 3)
    flat = np.full(n * height * width * channels, fill, values.dtype if values.dtype.kind == "f" else np.int64)
    at = index.astype(np.int64)
    image = np.arange(n)[:, None, None, None] * (height * width * channels)
    if form == "HW":
        at = at + image + np.arange(channels) * (height * width)
    elif form == "HWC":
        at = at + image
    ordered, content = at.transpose(order).reshape(-1), values.transpose(order).reshape(-1)
    ordered = np.where(ordered < 0, ordered + flat.size, ordered)
    kept = (ordered >= 0) & (ordered < flat.size)
    flat[ordered[kept]] = content[kept]
    if first:
        return flat.reshape(n, channels, height, width).transpose(0, 2, 3, 1)
    return flat.reshape(n, height, width, channels)


def adaptive_bounds(layer: Layer, shape: tuple[int, ...]) -> list[tuple[Array, Array]]:
    """The first row of each window and the one behind its last, then the same of the columns."""
    if len(shape) not in (3, 4):
        raise LayerError(f"the input is {list(shape)}, expected images as HWC or NHWC")
    wanted = layer.integers("output_size")
    if len(wanted) != 2 or min(wanted) < 1 or 0 in shape:
        raise LayerError(f"'output_size' is {wanted}, expected a height and a width for the input {list(shape)}")
    if layer.output.shape != (*shape[:-3], *wanted, shape[-1]):
        raise LayerError(f"'output_size' is {wanted}, but the output is {list(layer.output.shape)}")
    found = []
    for size, made in zip(shape[-3:-1], wanted, strict=True):
        i = np.arange(made)
        found.append((i * size // made, -(-(i + 1) * size // made)))
    return found


def adaptive_pooling(layer: Layer, x: Array) -> Array:
    """Windows that divide the image into an output of the wanted size."""
    method = layer.word("method", choices=("AVG", "MAX"))
    rows, columns = adaptive_bounds(layer, x.shape)
    wide = x.astype(np.int64 if layer.is_quantised else np.float32)
    result = np.empty(layer.output.shape, wide.dtype)
    area = ((rows[1] - rows[0])[:, None] * (columns[1] - columns[0])[None, :])[:, :, None].astype(np.float32)
    for i, (top, bottom) in enumerate(zip(*rows, strict=True)):
        for j, (left, right) in enumerate(zip(*columns, strict=True)):
            part = wide[..., top:bottom, left:right, :]
            result[..., i, j, :] = largest_of(part, (-3, -2)) if method == "MAX" else part.sum((-3, -2))
    if method == "MAX":
        return result
    if not layer.is_quantised:
        found: Array = result / area
        return found
    out = layer.output
    return requantise(result, *approximate_factor(np.float32(1) / area, 8), 0, out.low, out.high)
