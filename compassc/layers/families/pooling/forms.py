"""Kernels of pooling over volumes, and with windows of given sizes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compass_core.arrays import Array
from compassc.build import Value
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError
from compassc.layers.arithmetic import approximate_factor
from compassc.layers.families.pooling.fractional import windows_of
from compassc.layers.families.pooling.kernels import (
    maximum,
    over_areas,
    over_cells,
    span_of_sum,
    sum_of_cells,
    sum_of_reals,
)
from compassc.layers.families.pooling.reference import adaptive_bounds, least_of, padded_window, spans_3d
from compassc.layers.kernel import Kernel
from compassc.layers.kernels import kernel
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.requantise import requantise
from compassc.layers.sliding import WindowLoop, Windows, axes_of, bounded_axis
from compassc.layers.vectors import LANES, everywhere
from compassc.layers.windows import Window, cells_inside

FLOAT_WHOLE = 1 << 24
"""Integers below this limit are exact in float32."""


@kernel("Pooling3D", tail=True)
def pooling_3d(layer: Layer, tail: Sequence[Layer] = ()) -> Kernel:
    method, x, out, k = layer.word("method", choices=("MAX", "AVG")), layer.input, layer.output, LayerKernel()
    window, positions = padded_window(layer, x.shape)
    valid, cells = cells_inside(x.shape[1:-1], window, positions), int(np.prod(window.kernel))
    include = layer.flag("count_include_pad", True)
    if method == "AVG" and not include and (valid == 0).any():
        raise LayerError("a window sees no cell of the volume")
    with k.active():
        w = Windows(k, x, axes_of(k, window, layer))
        with w.positions():
            if method == "AVG" and layer.is_quantised:
                result = _quantised_mean(w, layer, window, (valid, cells), include)
            elif method == "AVG":
                result = over_cells(w, sum_of_reals(w), np.full_like(valid, cells) if include else valid)
            elif layer.is_quantised:
                result = requantise(k, maximum(w, min(x.low, out.low)), 1, 0, 0, out.low, out.high)
            else:
                result = maximum(w, least_of(layer, window, positions))
            w.finish(layer, tail, result)
    return k.kernel()


def _quantised_mean(w: WindowLoop, layer: Layer, window: Window, counts: tuple[Array, int], include: bool) -> Value:
    """As its reference in two steps, over each plane and then over the planes; with dilation in one."""
    x, out, (valid, cells) = layer.input, layer.output, counts
    zero_in, zero = (x.scalar_zero, out.scalar_zero) if include else (0, 0)
    if max(map(abs, span_of_sum(x, zero_in, "AVG", cells))) >= FLOAT_WHOLE:
        raise LayerError(f"sums of {cells} cells of {x.dtype} are not exact in float32, as the layer wants them")
    acc = sum_of_cells(w, "AVG", cells, zero_in)
    if max(window.dilation) > 1:
        areas = np.full_like(valid, cells) if include else np.maximum(valid, 1)
        return over_areas(w, acc, _one_over(areas), zero, out.low, out.high)
    depth, high, wide = (s.astype(np.int64) for s in spans_3d(layer, x.shape, window, valid.shape))
    planes = np.broadcast_to(high[:, None] * wide[None, :], valid.shape)
    if include:
        plane = over_areas(w, acc, _one_over(planes), 0, -(2**30), 2**30)
    else:
        assert isinstance(acc, Value), "32 bits hold it"
        plane = _shares(w, acc, valid, cells, planes)
    return over_areas(w, plane, _one_over(np.broadcast_to(depth[:, None, None], valid.shape)), zero, out.low, out.high)


def _one_over(areas: Array) -> Array:
    return np.float32(1) / areas.astype(np.float32)


def _shares(w: WindowLoop, acc: Value, valid: Array, cells: int, planes: Array) -> Value:
    """round(t * scale / 2^shift) where t is the sum in float32 as if all cells were inside.

    The product has up to 32 bits: rounded to float32, it is at a tie only where the rest of the product decides.
    """
    k, part = w.k, (valid.astype(np.float32) / np.float32(cells)).astype(np.float32) * np.float32(cells)
    scale, shift = approximate_factor(_one_over(planes), 8)
    if acc.magnitude * cells >= 1 << 46:
        raise LayerError(f"sums of {cells} cells are beyond what kernels compute")
    bound = int(acc.magnitude * cells * max(1.0, float((scale / 2.0**shift).max())) / float(part.min())) + 2
    if bound >= FLOAT_WHOLE >> 1:
        raise LayerError(f"sums of {cells} cells are beyond what kernels compute")
    numbers = (part, scale, 2.0**-shift)
    divisor, factor, unit = (k.held("per", k.pointer(n.reshape(-1).astype(np.float32))[w.spot]) for n in numbers)
    t = k.let(S.cast(acc, "float32") * k.number(float(cells)) / divisor)
    product = k.let(t * factor)
    lost = k.let(S.fma(0.0 - product, t, S.vbcast(factor, lanes=LANES)))
    real = k.let(product * unit)
    near = k.let(S.rint(real))
    apart, zeros = k.let(real - near), everywhere(0.0, "float32")
    up = S.vsel(1.0, zeros, (apart == 0.5) & (lost > 0.0))
    down = S.vsel(1.0, zeros, (apart == -0.5) & (lost < 0.0))
    return k.let(S.cast(near + up - down, "int32"), -bound, bound)


@kernel("AdaptivePool", tail=True)
def adaptive_pooling(layer: Layer, tail: Sequence[Layer] = ()) -> Kernel:
    bounds, k = adaptive_bounds(layer, layer.input.shape), LayerKernel()
    with k.active():
        _pooled(k, layer, bounds, tail)
    return k.kernel()


@kernel("FractionalPool")
def fractional_pooling(layer: Layer) -> Kernel:
    spans, k, x, y = windows_of(layer), LayerKernel(), layer.input, layer.output
    if x.dtype != y.dtype or x.is_integer != layer.is_quantised:
        raise LayerError(f"{x.dtype} to {y.dtype} has no kernel")
    with k.active():
        _pooled(k, layer, [(first, last) for _, first, last in spans])
        for (edges, _, _), t in zip(spans, layer.outputs[1:], strict=False):
            given, starts = k.pointer(edges.astype(np.int32)), k.tensor(t)
            with k.shared(k.number(t.count), "e") as e:
                starts[e] = S.cast(S.i32(given[e]), t.dtype)
    return k.kernel()


def _pooled(k: LayerKernel, layer: Layer, bounds: Sequence[tuple[Array, Array]], tail: Sequence[Layer] = ()) -> None:
    """The largest element or the mean of windows from first rows and columns to behind last ones."""
    x, out, method = layer.input, layer.output, layer.word("method", choices=("AVG", "MAX"))
    rows, columns = (last - first for first, last in bounds)
    areas = rows[:, None] * columns[None, :]
    w = Windows(k, x, [bounded_axis(k, n, *ends) for n, ends in zip(x.shape[-3:-1], bounds, strict=True)])
    with w.positions():
        if method == "MAX":
            result = maximum(w)
        elif layer.is_quantised:
            acc = sum_of_cells(w, "AVG", int(areas.max()), 0)
            result = over_areas(w, acc, _one_over(areas), 0, out.low, out.high)
        else:
            result = over_cells(w, sum_of_reals(w), areas)
        w.finish(layer, tail, result)
