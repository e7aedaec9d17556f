"""Kernels of pooling: the lanes are channels; each TEC takes every fourth position of the window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from compassc.build import Value
from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.arithmetic import Array, approximate_factor
from compassc.layers.axes import AxisLoop, ending
from compassc.layers.axis_sums import sum_of_elements
from compassc.layers.byte_functions import BYTES
from compassc.layers.emit import look_up, requantise, requantise_rounded, wide_kind
from compassc.layers.families.pooling import fractional  # noqa: F401 (its kernel is registered)
from compassc.layers.families.pooling.reference import METHODS, area_of, check_positions, window_for
from compassc.layers.kernels import follow, kernel
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.pairs import held_pair, requantise_pair
from compassc.layers.sliding import CELL, load_cell, slides_of, window_loops
from compassc.layers.source import LANES, Kernel, KernelSource, finish, named
from compassc.layers.window_tiles import TILE_CELL, plan_of, tiled_loops
from compassc.layers.windows import Window

LOWEST = "-3.4028234663852886e38"
STEP = {
    "MAX": "S.max(acc, v)",
    "AVG": "acc + v",
    "L1": "acc + S.abs(v)",
    "L2": "acc + v * v",
}


NO_AREAS = np.zeros(0, np.int64)


def _equal(areas: Array) -> bool:
    """Whether all means are taken over as many cells."""
    return bool(areas.size) and bool((areas == areas.flat[0]).all())


def _float(k: KernelSource, layer: Layer, method: str, areas: Array) -> Value:
    acc = named("acc", "float32")
    if method == "AVG" and _equal(areas):
        return k.let(f"acc / {k.scalar(float(max(areas.flat[0], 1)))}", "float32")
    if method == "AVG":
        table = np.arange(int(areas.max(initial=0)) + 1).astype(np.float32)
        k.body.append(f"cells = {k.constant(np.maximum(table, 1))}[area]")
        return k.let("acc / cells", "float32")
    if method == "L2":
        return k.let("S.sqrt(acc)", "float32")
    return acc


class Sum(NamedTuple):
    """A sum: its start value, how a cell `v` is added, and the final step; `span`: the smallest and largest it can be."""

    begin: list[str]
    step: list[str]
    end: list[str]
    span: tuple[int, int]
    pair: bool = False


def sum_of_cells(x: Tensor, method: str, cells: int) -> Sum:
    """The sum of `v`, of its magnitude (L1) or of its square (L2); sums beyond 32 bits are pairs `high` and `low`."""
    low, high = x.low + x.scalar_zero, x.high + x.scalar_zero
    largest = max(abs(low), abs(high))
    zeros = f"S.vbcast(S.i32(0), lanes={LANES})"
    if method == "L2" and cells * largest * largest >= 2**31:
        if largest > 65535:
            raise LayerError(f"the zero point {x.scalar_zero} of '{x.name}' is larger than its type")
        begin = [f"total = S.vbcast(S.u32(0), lanes={LANES})"]
        end = ['high = S.cast(total >> S.u32(16), "int32")', 'low = S.cast(total & S.u32(0xFFFF), "int32")']
        return Sum(begin, ["add_squares(total, v)"], end, (0, 2**32 - 1), True)
    if method != "L2" and cells * largest >= 2**31:
        added, limits = ("S.abs(v)", (0, 2**32 - 1)) if method == "L1" else ("v", (-(2**31), 2**31))
        first, last = limits[0] >> 16, limits[1] >> 16
        end = (
            [
                f"low = S.vsel({limits[1] & 0xFFFF}, S.vsel(0, low, high < {first}), high >= {last})",
                f"high = clamp(high, {first}, {last})",
            ]
            if method != "L1"
            else [f"low = S.vsel(65535, low, high > {last})", f"high = S.min(high, {last})"]
        )
        return Sum([f"high = {zeros}", f"low = {zeros}"], [f"add_to_pair(high, low, {added})"], end, limits, True)
    span = (0, cells * largest ** (2 if method == "L2" else 1))
    if method == "AVG":
        span = (cells * min(low, 0), cells * max(high, 0))
    return Sum([f"acc = {zeros}"], [f"acc = {STEP[method]}"], [], span)


def rescaled(k: KernelSource, total: Sum, scale: Array, shift: Array, zero: int, low: int, high: int) -> Value:
    """A sum requantised."""
    if total.pair:
        return requantise_pair(k, held_pair(total.span), scale, shift, zero, low, high)
    return requantise(k, named("acc", "int32", *total.span), scale, shift, zero, low, high)


def mean_of(k: KernelSource, layer: Layer, areas: Array, ratio: np.float32, total: Sum) -> Value:
    """A sum over the number of cells, which is the variable `area`, in the output's scale."""
    out = layer.output
    if _equal(areas) and areas.all():
        scale, shift = approximate_factor(ratio / areas.flat[:1].astype(np.float32), 8)
        return rescaled(k, total, scale, shift, out.scalar_zero, out.low, out.high)
    scale, shift = approximate_factor(ratio / np.maximum(areas, 1).astype(np.float32), 8)
    size = int(areas.max(initial=0)) + 1
    scales, shifts = np.zeros(size, np.int64), np.zeros(size, np.int64)
    scales[areas.reshape(-1)], shifts[areas.reshape(-1)] = scale.reshape(-1), shift.reshape(-1)
    used = scales > 0
    scales[~used], shifts[~used] = 1, shifts[used].min(initial=0)
    k.choice = "area"
    result = rescaled(k, total, scales, shifts, out.scalar_zero, out.low, out.high)
    k.choice = ""
    if (areas == 0).any():
        # nothing to average is the stored number 0
        nothing = k.let(f"{result.name} * S.min(area, 1)", "int32", min(result.low, 0), max(result.high, 0))
        return k.let(f"clamp({nothing.name}, {k.scalar(out.low)}, {k.scalar(out.high)})", "int32", out.low, out.high)
    return result


def _quantised(k: KernelSource, layer: Layer, method: str, areas: Array, total: Sum) -> Value:
    out, source = layer.output, layer.input
    if method == "AVG":
        return mean_of(k, layer, areas, np.float32(out.scalar_scale) / np.float32(source.scalar_scale), total)
    scale, shift = layer.scale_shift(of=1)
    if method == "L1" and not total.pair:
        return requantise_rounded(k, named("acc", "int32", *total.span), scale, shift, out)
    if method == "L1":
        return rescaled(k, total, scale, shift, out.scalar_zero, out.low, out.high)
    at = rescaled(k, total, scale, shift, 0, 0, 65535)
    return look_up(k, at, layer.constant("sqrt_lut"), 16)


def maximum(x: Tensor) -> Sum:
    """The largest cell, as a sum's steps."""
    start = LOWEST if wide_kind(x) == "float32" else str(x.low)
    low, high = (x.low, x.high) if x.is_integer else (0, 0)
    begin = f'acc = S.vbcast(S.cast({start}, "{wide_kind(x)}"), lanes={LANES})'
    return Sum([begin], [f"acc = {STEP['MAX']}"], [], (low, high))


def narrow_maximum(x: Tensor, cell: str = CELL) -> Sum:
    """As `maximum`, of integers as they are stored: a register holds four times as many of 8 bits."""
    begin = f'most = S.vbcast(S.cast({x.low}, "{x.dtype}"), lanes={LANES})'
    step = f"most = S.max(most, {cell})"
    return Sum([begin], [step], [f'acc = wide(most, "{x.dtype}")'], (x.low, x.high))


def narrow_sum(k: KernelSource, x: Tensor, zero: int, cells: int, cell: str = CELL) -> Sum | None:
    """The sum of bytes plus a zero point in 16 bits; None where these do not hold it."""
    span = (cells * min(x.low + zero, 0), cells * max(x.high + zero, 0))
    if x.dtype not in BYTES or max(map(abs, span)) >= 1 << 15:
        return None
    begin = f'some = S.vbcast(S.cast(0, "int16"), lanes={LANES})'
    step = f"some = some + halves_of({cell})"
    if zero:
        step = f"some = some + halves({cell}, {k.scalar(zero)})"
    return Sum([begin], [step], ['acc = S.cast(some, "int32")'], span)


def area_line(k: KernelSource, areas: Array) -> str:
    """The statement that has the number of cells of a position's window in `area`."""
    return f"area = S.i32({k.constant(areas.reshape(-1).astype(np.int32))}[spot])"


def stored(k: KernelSource, layer: Layer, result: Value, tail: Sequence[Layer]) -> list[str]:
    """The statements of the body, after the layers that follow, with the store of their value."""
    result, out = follow(k, layer, result, tail, k.at_place)
    lines, k.body = k.body, []
    return [*lines, f'S.vstore(narrow({result.name}, "{out.dtype}"), {k.tensor(out)} + place, mask)']


def _mean_of_all(layer: Layer, tail: Sequence[Layer], window: Window) -> Kernel | None:
    """The mean of each image's channels, whose elements are added like those of a reduction; None for other windows."""
    x, size = layer.input, layer.input.shape[1:-1]
    cells = int(np.prod(size))
    whole = tuple(window.kernel) == size and all(n == 1 for n in layer.output.shape[1:-1])
    if not whole or any(before or after for before, after in window.pads):
        return None
    if layer.is_quantised and sum_of_cells(x, "AVG", cells).pair:
        return None
    k, out = LayerKernel(), layer.output
    with k.active():
        w = AxisLoop(k, range(1, len(size) + 1), {"x": x, "y": ending(layer, tail)}, ("x",))
        with w.positions():
            if layer.is_quantised:
                total = sum_of_elements(w, x.scalar_zero).within(*sum_of_cells(x, "AVG", cells).span)
                ratio = np.float32(out.scalar_scale) / np.float32(x.scalar_scale)
                scale, shift = approximate_factor(ratio / np.full(1, cells, np.float32), 8)
                result = requantise(k, total, scale, shift, out.scalar_zero, out.low, out.high)
            else:
                result = k.let(w.sum_of("acc", lambda: w.load("x"), "float32") / k.number(float(cells)))
            w.finish(layer, tail, result)
    return k.kernel()


@kernel("Pooling", "GlobalPool", tail=True)
def pooling(layer: Layer, tail: Sequence[Layer] = ()) -> Kernel:
    method, x, k = layer.word("method", choices=METHODS), layer.input, KernelSource()
    window = window_for(layer, x.shape)
    check_positions(layer, window, x.shape)
    wide_kind(x)
    if method == "AVG" and (whole := _mean_of_all(layer, tail, window)) is not None:
        return whole
    areas, quantised = area_of(layer) if method == "AVG" else NO_AREAS, layer.is_quantised
    zero = x.scalar_zero if quantised and method != "MAX" else 0
    plan, fill = plan_of(x, window, layer.output.shape[1:-1]), _neutral(x, method, zero)
    if plan is not None and plan.bordered and fill is None:
        plan = None
    cell = TILE_CELL if plan else CELL
    small = method == "MAX" and x.dtype in (*BYTES, "int16", "uint16")
    if method == "MAX":
        total = narrow_maximum(x, cell) if small else maximum(x)
        result = named("acc", wide_kind(x), *total.span)
    elif quantised:
        cells = int(np.prod(window.kernel))
        halves = narrow_sum(k, x, zero, cells, cell) if method == "AVG" else None
        small = halves is not None
        total = halves or sum_of_cells(x, method, cells)
        result = _quantised(k, layer, method, areas, total)
    else:
        total = Sum([f"acc = S.vbcast(S.fp32(0), lanes={LANES})"], [f"acc = {STEP[method]}"], [], (0, 0))
        result = _float(k, layer, method, areas)
    end = [*total.end, *stored(k, layer, result, tail)]
    begin = [*total.begin, *([area_line(k, areas)] if method == "AVG" else [])]
    step = total.step if small else [f"v = {load_cell(k, x, zero, cell)}", *total.step]
    if plan is not None:
        return finish(k, [*k.head, *tiled_loops(k, plan, fill or 0, begin, step, end)])
    return finish(k, [*k.head, *window_loops(k, x, slides_of(k, window, layer), begin, step, end)])


def _neutral(x: Tensor, method: str, zero: int) -> float | None:
    """What changes no result where it is an element; None where the type has no such number."""
    if not x.is_integer:
        return -np.inf if method == "MAX" else 0.0
    fill = x.low if method == "MAX" else -zero
    limits = np.iinfo(x.dtype)
    return fill if limits.min <= fill <= limits.max else None
