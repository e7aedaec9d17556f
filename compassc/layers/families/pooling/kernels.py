"""Kernels of pooling: the lanes are channels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from compass_core.arrays import Array
from compassc.build import Expression, Value
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError, Tensor
from compassc.graph.dtypes import numpy_dtype
from compassc.layers.arithmetic import approximate_factor
from compassc.layers.axes import AxisLoop, ending
from compassc.layers.axis_sums import largest_of_elements, sum_of_elements
from compassc.layers.byte_functions import BYTES
from compassc.layers.emit import look_up
from compassc.layers.families.pooling.reference import METHODS, area_of, check_positions, least_of, window_for
from compassc.layers.kernel import Kernel
from compassc.layers.kernels import kernel, scheduled
from compassc.layers.lane_arithmetic import add_squares, add_to_pair
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.machine import Share
from compassc.layers.requantise import Pair, requantise, requantise_rounded
from compassc.layers.sliding import WindowLoop, Windows, axes_of
from compassc.layers.vectors import LANES, clamp, everywhere, halves, halves_of, wide, wide_kind
from compassc.layers.window_tiles import TiledWindows, plan_of
from compassc.layers.windows import Window, cells_inside

TERMS: dict[str, Callable[[Value], Expression]] = {"AVG": lambda v: v, "L1": S.abs, "L2": lambda v: v * v}
"""What a sum has of each cell."""


def maximum(w: WindowLoop, least: float | None = None) -> Value:
    """The largest cell that is no NaN, or `least` where there is none or all are less. Integers are compared as they are stored: a register
    holds four times as many of 8 bits."""
    k, x = w.k, w.x
    if not x.is_integer:
        lowest = S.vbcast(S.fp32("-inf" if least in (None, -np.inf) else least), lanes=LANES)
        return _joined(w, lowest, lambda most, cell: S.max(most, w.widened(cell)))
    low = x.low if least is None else int(least)
    if np.iinfo(x.dtype).min > low:
        most = _joined(w, everywhere(low), lambda most, cell: S.max(most, w.widened(cell)))
    else:
        most = k.let(wide(_joined(w, everywhere(low, x.dtype), S.max), x.dtype))
    return most.within(min(x.low, low), x.high)


def sum_of_reals(w: WindowLoop, method: str = "AVG") -> Value:
    """The sum of the terms of all cells, in float32."""
    return _joined(w, everywhere(0.0, "float32"), lambda acc, cell: acc + TERMS[method](w.widened(cell)))


def _joined(w: WindowLoop, start: Expression, join: Callable[[Value, Expression], Expression]) -> Value:
    """A variable that is joined with cell after cell."""
    acc = w.k.changing("acc", start)
    for cell in w.cells():
        w.k.assign(acc, join(acc, cell))
    return acc


def span_of_sum(x: Tensor, zero: int, method: str, cells: int) -> tuple[int, int]:
    """The smallest and largest that the sum of the terms of so many cells, each plus a zero point, can be."""
    low, high = x.low + zero, x.high + zero
    if method == "AVG":
        return cells * min(low, 0), cells * max(high, 0)
    return 0, cells * max(abs(low), abs(high)) ** (2 if method == "L2" else 1)


def sum_of_cells(w: WindowLoop, method: str, cells: int, zero: int) -> Value | Pair:
    """The sum of the terms of at most so many integers, each plus a zero point; where 32 bits do not hold it, a pair that
    is limited as the reference has it."""
    k, x, span = w.k, w.x, span_of_sum(w.x, zero, method, cells)
    largest = max(map(abs, span))
    if largest >= 2**31:
        return _sum_of_squares(w, zero) if method == "L2" else _limited_sum(w, method, zero)
    if method == "AVG" and x.dtype in BYTES and largest < 1 << 15:
        more = k.number(zero) if zero else None
        some = _joined(
            w,
            everywhere(0, "int16"),
            lambda some, cell: some + (halves_of(cell) if more is None else halves(cell, more)),
        )
        return k.let(S.cast(some, "int32"), *span)
    return _joined(w, everywhere(0), lambda acc, cell: acc + TERMS[method](w.widened(cell, zero))).within(*span)


def _sum_of_squares(w: WindowLoop, zero: int) -> Pair:
    k, x = w.k, w.x
    if max(abs(x.low + zero), abs(x.high + zero)) > 65535:
        raise LayerError(f"the zero point {zero} of '{x.name}' is larger than its type")
    total = k.changing("total", everywhere(0, "uint32"))
    for cell in w.cells():
        add_squares(total, w.widened(cell, zero))
    high, low = total >> S.u32(16), total & S.u32(0xFFFF)
    return Pair(k.let(S.cast(high, "int32")), k.let(S.cast(low, "int32")), 0, 2**32 - 1)


def _limited_sum(w: WindowLoop, method: str, zero: int) -> Pair:
    k = w.k
    high, low = k.changing("high", everywhere(0)), k.changing("low", everywhere(0))
    for cell in w.cells():
        add_to_pair(high, low, TERMS[method](w.widened(cell, zero)))
    if method == "L1":
        k.assign(low, S.vsel(65535, low, high > 65535))
        k.assign(high, S.min(high, 65535))
        return Pair(high, low, 0, 2**32 - 1)
    k.assign(low, S.vsel(0, low, (high < -32768) | (high >= 32768)))
    k.assign(high, clamp(high, -32768, 32768))
    return Pair(high, low, -(2**31), 2**31)


def over_areas(w: WindowLoop, value: Value | Pair, ratio: Array, zero: int, low: int, high: int) -> Value:
    """A value times the ratio of its position, by the reference's multiplier and shift for it."""
    scale, shift = (a.reshape(-1) for a in approximate_factor(ratio, 8))
    if (scale == scale[0]).all() and (shift == shift[0]).all():
        return requantise(w.k, value, scale[:1], shift[:1], zero, low, high)
    with w.k.one_of(w.spot):
        return requantise(w.k, value, scale, shift, zero, low, high)


def over_cells(w: WindowLoop, value: Value, areas: Array) -> Value:
    """A real number over the number of cells of its position."""
    cells = np.maximum(areas.reshape(-1), 1).astype(np.float32)
    if (cells == cells[0]).all():
        return w.k.let(value / w.k.number(float(cells[0])))
    return w.k.let(value / w.k.held("area", w.k.pointer(cells)[w.spot]))


def _integers(w: WindowLoop, layer: Layer, method: str, cells: int) -> Value:
    k, x, out = w.k, layer.input, layer.output
    value = sum_of_cells(w, method, cells, x.scalar_zero)
    if method == "AVG":
        areas = area_of(layer)
        ratio = np.float32(out.scalar_scale) / np.float32(x.scalar_scale) / np.maximum(areas, 1).astype(np.float32)
        result = over_areas(w, value, ratio, out.scalar_zero, out.low, out.high)
        if areas.all():
            return result
        # nothing to average is the stored number 0
        some = k.let(
            result * k.pointer((areas.reshape(-1) > 0).astype(np.int32))[w.spot],
            min(result.low, 0),
            max(result.high, 0),
        )
        return k.let(clamp(some, k.number(out.low), k.number(out.high)), out.low, out.high)
    scale, shift = layer.scale_shift(of=1)
    if method == "L2":
        return look_up(k, requantise(k, value, scale, shift, 0, 0, 65535), layer.constant("sqrt_lut"), 16)
    if isinstance(value, Pair):
        return requantise(k, value, scale, shift, out.scalar_zero, out.low, out.high)
    return requantise_rounded(k, value, scale, shift, out)


def _reals(w: WindowLoop, layer: Layer, method: str) -> Value:
    value = sum_of_reals(w, method)
    if method == "AVG":
        return over_cells(w, value, area_of(layer))
    return w.k.let(S.sqrt(value)) if method == "L2" else value


def _of_all(layer: Layer, tail: Sequence[Layer], window: Window) -> Kernel | None:
    """The largest of all or the mean of each image's channels, whose elements are joined like those of a reduction; None for
    other windows, and for the largest of those few that fit a tile."""
    x, size, method = layer.input, layer.input.shape[1:-1], layer.word("method")
    cells, made = int(np.prod(size)), layer.output.shape[1:-1]
    whole = tuple(window.kernel) == size and all(n == 1 for n in made)
    if not whole or any(before or after for before, after in window.pads):
        return None
    span = span_of_sum(x, x.scalar_zero, "AVG", cells) if layer.is_quantised else (0, 0)
    if plan_of(x, window, made) is not None if method == "MAX" else max(map(abs, span)) >= 2**31:
        return None
    k, out = LayerKernel(), layer.output
    with k.active():
        w = AxisLoop(k, range(1, len(size) + 1), {"x": x, "y": ending(layer, tail)}, ("x",))
        with w.positions():
            if method == "MAX":
                result = largest_of_elements(w, x)
            elif layer.is_quantised:
                ratio = np.float32(out.scalar_scale) / np.float32(x.scalar_scale)
                scale, shift = approximate_factor(ratio / np.full(1, cells, np.float32), 8)
                total = sum_of_elements(w, x.scalar_zero).within(*span)
                result = requantise(k, total, scale, shift, out.scalar_zero, out.low, out.high)
            else:
                result = k.let(w.sum_of("acc", lambda: w.load("x"), "float32") / k.number(float(cells)))
            w.finish(layer, tail, result)
    return k.kernel()


FEW, ROWS = {"MAX": range(8, 17), "AVG": range(8, 16)}, Share(4)
"""Channels of images of which schedules have 18 to 76 % fewer cycles than the kernel by hand, whose lanes they are, and the
room for the rows of a window. Of 24 channels they have up to 5 % more, of rows that do not fit 6 times as many."""


def _few_channels(layer: Layer) -> bool:
    """Whether the schedule comes first: for images of `FEW` channels in float32 whose windows lie within them, as the
    operator has minus infinity beside images, and of means those of a power of two, whose quotients are exact."""
    x, method = layer.input, layer.word("method", choices=METHODS)
    if x.dtype != "float32" or len(x.shape) != 4 or x.shape[-1] not in FEW.get(method, ()):
        return False
    window = window_for(layer, x.shape)
    cells, positions = int(np.prod(window.kernel)), check_positions(layer, window, x.shape)
    if positions[0] == 1 or cells == 1 or (method == "AVG" and cells & (cells - 1)):
        return False
    row = x.shape[2] * x.shape[3] * numpy_dtype(x.dtype).itemsize
    return window.reach[0] * row <= ROWS.size and bool((cells_inside(x.shape[1:3], window, positions) == cells).all())


scheduled("Pooling", when=_few_channels)


@kernel("Pooling", "GlobalPool", tail=True)
def pooling(layer: Layer, tail: Sequence[Layer] = ()) -> Kernel:
    method, x, k = layer.word("method", choices=METHODS), layer.input, LayerKernel()
    window = window_for(layer, x.shape)
    positions = check_positions(layer, window, x.shape)
    wide_kind(x)
    if method in ("MAX", "AVG") and (whole := _of_all(layer, tail, window)) is not None:
        return whole
    with k.active():
        w = _loop(k, layer, window, method)
        with w.positions():
            if method == "MAX":
                result = maximum(w, None if x.is_integer else least_of(layer, window, positions))
            elif layer.is_quantised:
                result = _integers(w, layer, method, int(np.prod(window.kernel)))
            else:
                result = _reals(w, layer, method)
            w.finish(layer, tail, result)
    return k.kernel()


def _loop(k: LayerKernel, layer: Layer, window: Window, method: str) -> WindowLoop:
    """Tiles through LSRAM where there is a number that changes no result, for elements outside of the image."""
    x = layer.input
    plan, fill = plan_of(x, window, layer.output.shape[1:-1]), _neutral(x, method)
    if plan is None or (plan.bordered and fill is None):
        return Windows(k, x, axes_of(k, window, layer))
    return TiledWindows(k, plan, fill or 0)


def _neutral(x: Tensor, method: str) -> float | None:
    """What changes no result where it is an element; None where the type has no such number."""
    if not x.is_integer:
        return -np.inf if method == "MAX" else 0.0
    fill = x.low if method == "MAX" else -x.scalar_zero
    limits = np.iinfo(x.dtype)
    return fill if limits.min <= fill <= limits.max else None
