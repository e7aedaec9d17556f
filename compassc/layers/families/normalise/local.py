"""The kernel of local response normalisation: the lanes are channels, whose neighbours are loaded at other places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from compass_core.arrays import Array
from compassc.build import Value
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError
from compassc.layers.emit import look_up
from compassc.layers.kernel import Kernel
from compassc.layers.kernels import kernel
from compassc.layers.lane_arithmetic import carry_pair
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.requantise import Pair, requantise
from compassc.layers.sliding import Windows, axes_of
from compassc.layers.vectors import LANES, add_product, everywhere, wide_kind
from compassc.layers.windows import Window, cells_inside

ACROSS, WITHIN = "ACROSS_CHANNELS", "WITHIN_CHANNEL"


@kernel("LRN")
def local_response(layer: Layer) -> Kernel:
    x, y, size, k = layer.input, layer.output, layer.integer("size"), LayerKernel()
    across = layer.word("method", ACROSS, (ACROSS, WITHIN)) == ACROSS
    if x.shape != y.shape or (not across and len(x.shape) != 4) or not x.shape:
        raise LayerError(f"its input is {list(x.shape)}, its output {list(y.shape)}, expected NHWC images of one shape")
    if size < 1 or (not across and size % 2 == 0):
        raise LayerError(f"'size' is {size}, expected {'1 or more' if across else 'an odd number'}")
    reach, ones = (size - 1) // 2, (1, 1)
    window, zero = Window((size, size), ones, ones, ((reach, reach),) * 2), x.scalar_zero if layer.is_quantised else 0
    with k.active():
        w = Windows(k, x, [] if across else axes_of(k, window, layer))
        with w.positions():
            elements = _neighbours(w, size, zero) if across else (w.widened(cell, zero) for cell in w.cells())
            total = _sum_of_squares(w, elements, size if across else size * size, zero)
            own = w.widened(S.vload(w.source + w.place, k.mask, lanes=LANES), zero)
            if layer.is_quantised:
                result = _integer(k, layer, total, own)
            else:
                inside = np.full(1, size) if across else cells_inside(x.shape[1:-1], window, x.shape[1:-1])
                result = _real(w, layer, total, own, inside.reshape(-1).astype(np.float32))
            w.finish(layer, (), result)
    return k.kernel()


def _neighbours(w: Windows, size: int, zero: int) -> Iterator[Value]:
    """Statements for every one of so many neighbours of each channel: 0 beyond the first and the last channel."""
    k, before = w.k, w.k.number(size // 2)
    with k.first():
        lanes = k.held("lane", S.vload(k.pointer(np.arange(LANES, dtype=np.int32)), lanes=LANES))
    with k.for_range(0, k.number(size), name="d") as d:
        channel = k.held("channel", lanes + (w.channel + d - before))
        inside = k.held("inside", (channel >= 0) & (channel < w.channels))
        v = w.widened(S.vload(w.source + (w.place + d - before), inside & k.mask, lanes=LANES), zero)
        yield k.let(S.vsel(v, everywhere(0), inside), min(v.low, 0), max(v.high, 0)) if zero else v


def _sum_of_squares(w: Windows, elements: Iterable[Value], many: int, zero: int) -> Value | Pair:
    """The sum of squares of so many elements at most, which are integers plus a zero point, or real numbers."""
    k, x = w.k, w.x
    largest = max(abs(x.low + zero), abs(x.high + zero)) if x.is_integer else 0
    bound = many * largest * largest
    if bound < 2**31:
        total = k.changing("total", everywhere(0, wide_kind(x)))
        for u in elements:
            k.assign(total, total + u * u)
        return total.within(0, bound)
    if largest > 65535:
        raise LayerError(f"the zero point {zero} of '{x.name}' is larger than its type")
    upper, lower = k.changing("upper", everywhere(0, "uint32")), k.changing("lower", everywhere(0, "uint32"))
    for u in elements:
        square = k.let(S.cast(u * u, "uint32"))
        k.assign(lower, lower + (square & S.u32(0xFFFF)))
        k.assign(upper, upper + (square >> S.u32(16)))
        carry_pair(lower, upper)
    return Pair(k.let(S.cast(upper, "int32")), k.let(S.cast(lower, "int32")), 0, bound)


def _real(w: Windows, layer: Layer, total: Value | Pair, own: Value, cells: Array) -> Value:
    assert isinstance(total, Value), "real numbers have one word"
    k = w.k
    count = k.number(float(cells[0])) if cells.size == 1 else k.held("count", k.pointer(cells)[w.spot])
    alpha, beta, bias = (
        k.number(float(np.float32(layer.number(n, d)))) for n, d in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0))
    )
    return k.let(own / S.pow(k.let(total / count * alpha + bias), beta))


def _integer(k: LayerKernel, layer: Layer, total: Value | Pair, own: Value) -> Value:
    out = layer.output
    scale, shift = (np.asarray(layer.integer(n)) for n in ("scale_sum_value", "shift_sum_value"))
    factor = look_up(k, requantise(k, total, scale, shift, 0, 0, 65535), layer.constant("lut"), 16)
    span, product = own.magnitude * factor.magnitude, own * factor
    if span < 2**31:
        found: Value | Pair = k.let(product, -span, span)
    else:
        found = Pair(k.changing("high", everywhere(0)), k.changing("low", everywhere(0)), -span, span)
        add_product(found.high, found.low, own, factor)
    return requantise(k, found, *layer.scale_shift(of=1), out.scalar_zero, out.low, out.high)
