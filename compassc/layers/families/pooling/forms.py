"""Kernels of pooling over volumes, and to an image of a wanted size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from compassc.build import Value
from compassc.graph import Layer, LayerError
from compassc.layers.arithmetic import Array, approximate_factor
from compassc.layers.emit import requantise, wide_kind
from compassc.layers.families.pooling.kernels import (
    Sum,
    area_line,
    maximum,
    rescaled,
    stored,
    sum_of_cells,
)
from compassc.layers.families.pooling.reference import adaptive_bounds, padded_window, spans_3d
from compassc.layers.kernels import kernel
from compassc.layers.sliding import WindowAxis, load_cell, slides_of, window_loops
from compassc.layers.source import LANES, Kernel, KernelSource, finish, named
from compassc.layers.windows import Window, cells_inside

FLOAT_WHOLE = 1 << 24
"""Integers below this limit are exact in float32."""


@kernel("Pooling3D", tail=True)
def pooling_3d(layer: Layer, tail: Sequence[Layer] = ()) -> Kernel:
    method, x, k = layer.word("method", choices=("MAX", "AVG")), layer.input, KernelSource()
    window, positions = padded_window(layer, x.shape)
    wide_kind(x)
    valid, cells = cells_inside(x.shape[1:-1], window, positions), int(np.prod(window.kernel))
    include, zero = layer.flag("count_include_pad", True), 0
    if method == "AVG" and not include and (valid == 0).any():
        raise LayerError("a window sees no cell of the volume")
    begin: list[str] = []
    if method == "MAX":
        total = maximum(replace(x, limits=(-(2**31), x.high)) if layer.is_quantised else x)
        result = named("acc", wide_kind(x), *total.span)
        if layer.is_quantised:
            result = requantise(k, result, 1, 0, 0, layer.output.low, layer.output.high)
    elif layer.is_quantised:
        zero = x.scalar_zero if include else 0
        total = sum_of_cells(replace(x, zero=zero), "AVG", cells)
        if max(map(abs, total.span)) >= FLOAT_WHOLE:
            raise LayerError(f"sums of {cells} cells of {x.dtype} are not exact in float32, as the layer wants them")
        result = _quantised_mean(k, layer, window, (valid, cells), total, include)
    else:
        area = np.full_like(valid, cells) if include else valid
        total = Sum([f"acc = S.vbcast(S.fp32(0), lanes={LANES})"], ["acc = acc + v"], [], (0, 0))
        begin = [area_line(k, area)]
        result = k.let('acc / S.cast(area, "float32")', "float32")
    end = [*total.end, *stored(k, layer, result, tail)]
    step = [f"v = {load_cell(k, x, zero)}", *total.step]
    return finish(k, [*k.head, *window_loops(k, x, slides_of(k, window, layer), [*total.begin, *begin], step, end)])


def _per_spot(k: KernelSource, value: Value, areas: Array, zero: int, low: int, high: int) -> Value:
    """A value over the number of cells of its position, by a multiplier and a shift of the position."""
    scale, shift = approximate_factor(np.float32(1) / areas.reshape(-1).astype(np.float32), 8)
    k.choice = "spot"
    result = requantise(k, value, scale, shift, zero, low, high)
    k.choice = ""
    return result


def _quantised_mean(
    k: KernelSource, layer: Layer, window: Window, counts: tuple[Array, int], total: Sum, include: bool
) -> Value:
    """As its reference in two steps, over each plane and then over the planes; with dilation in one."""
    out = layer.output
    zero = out.scalar_zero if include else 0
    (valid, cells), acc = counts, named("acc", "int32", *total.span)
    if max(window.dilation) > 1:
        areas = np.full_like(valid, cells) if include else np.maximum(valid, 1)
        return _per_spot(k, acc, areas, zero, out.low, out.high)
    depth, high, wide = (s.astype(np.int64) for s in spans_3d(layer, layer.input.shape, window, valid.shape))
    planes = np.broadcast_to(high[:, None] * wide[None, :], valid.shape)
    if include:
        plane = _per_spot(k, acc, planes, 0, -(2**30), 2**30)
    else:
        plane = _shares(k, acc, valid, cells, planes)
    return _per_spot(k, plane, np.broadcast_to(depth[:, None, None], valid.shape), zero, out.low, out.high)


def _shares(k: KernelSource, acc: Value, valid: Array, cells: int, planes: Array) -> Value:
    """round(t * scale / 2^shift) where t is the sum in float32 as if all cells were inside.

    The product has up to 32 bits: rounded to float32, it is at a tie only where the rest of the product decides.
    """
    part = (valid.astype(np.float32) / np.float32(cells)).astype(np.float32) * np.float32(cells)
    scale, shift = approximate_factor(np.float32(1) / planes.reshape(-1).astype(np.float32), 8)
    if acc.magnitude * cells >= 1 << 46:
        raise LayerError(f"sums of {cells} cells are beyond what kernels compute")
    divisor, factor, unit = (k.constant(v.reshape(-1).astype(np.float32)) for v in (part, scale, 2.0**-shift))
    whole = k.scalar(float(cells))
    k.do(f"t = S.cast({acc.name}, 'float32') * {whole} / {divisor}[spot]")
    k.do(f"product = t * {factor}[spot]")
    k.do(f"lost = S.fma(0.0 - product, t, S.vbcast({factor}[spot], lanes={LANES}))")
    k.do(f"real = product * {unit}[spot]")
    k.do("near = S.rint(real)")
    k.do("apart = real - near")
    k.do("up = S.vsel(1.0, S.vbcast(S.fp32(0), lanes=32), (apart == 0.5) & (lost > 0.0))")
    k.do("down = S.vsel(1.0, S.vbcast(S.fp32(0), lanes=32), (apart == -0.5) & (lost < 0.0))")
    bound = int(acc.magnitude * cells * max(1.0, float((scale / 2.0**shift).max())) / float(part.min())) + 2
    if bound >= FLOAT_WHOLE >> 1:
        raise LayerError(f"sums of {cells} cells are beyond what kernels compute")
    return k.let('S.cast(near + up - down, "int32")', "int32", -bound, bound)


@kernel("AdaptivePool", tail=True)
def adaptive_pooling(layer: Layer, tail: Sequence[Layer] = ()) -> Kernel:
    method, x, k = layer.word("method", choices=("AVG", "MAX")), layer.input, KernelSource()
    rows, columns = adaptive_bounds(layer, x.shape)
    areas = (rows[1] - rows[0])[:, None] * (columns[1] - columns[0])[None, :]
    slides = []
    for axis, (first, last), size in zip("yx", (rows, columns), x.shape[-3:-1], strict=True):
        ends = [k.constant(v.astype(np.int32)) for v in (first, last)]
        loop = f"for i{axis} in range({', '.join(f'S.i32({e}[o{axis}])' for e in ends)}):"
        slides.append(WindowAxis(axis, size, len(first), (loop,)))
    begin: list[str] = []
    if method == "MAX":
        total = maximum(x)
        result = named("acc", wide_kind(x), *total.span)
    elif layer.is_quantised:
        total = sum_of_cells(replace(x, zero=0), "AVG", int(areas.max()))
        scale, shift = approximate_factor(np.float32(1) / areas.reshape(-1).astype(np.float32), 8)
        k.choice = "spot"
        result = rescaled(k, total, scale, shift, 0, layer.output.low, layer.output.high)
        k.choice = ""
    else:
        total = Sum([f"acc = S.vbcast(S.fp32(0), lanes={LANES})"], ["acc = acc + v"], [], (0, 0))
        begin = [area_line(k, areas)]
        result = k.let('acc / S.cast(area, "float32")', "float32")
    end = [*total.end, *stored(k, layer, result, tail)]
    step = [f"v = {load_cell(k, x)}", *total.step]
    lines = window_loops(k, x, slides, [*total.begin, *begin], step, end, images=prod(x.shape[:-3]))
    return finish(k, [*k.head, *lines])
