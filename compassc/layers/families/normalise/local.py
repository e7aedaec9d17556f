"""The kernel of local response normalisation: the lanes are channels, whose neighbours are loaded at other places."""

from __future__ import annotations

import numpy as np

from compassc.build import Value
from compassc.graph import Layer, LayerError
from compassc.layers.arithmetic import Array
from compassc.layers.emit import look_up, requantise, wide_kind
from compassc.layers.kernels import kernel
from compassc.layers.pairs import held_pair, requantise_pair
from compassc.layers.sliding import slides_of, window_loops
from compassc.layers.source import LANES, Kernel, KernelSource, finish, named
from compassc.layers.windows import Window

ACROSS, WITHIN = "ACROSS_CHANNELS", "WITHIN_CHANNEL"


_ADD_SQUARE = (
    'square = S.cast(u * u, "uint32")',
    "lower = lower + (square & S.u32(0xFFFF))",
    "upper = upper + (square >> S.u32(16))",
    "carry_pair(lower, upper)",
)
"""A square is added to a sum of 32 + 16 bits."""


@kernel("LRN")
def local_response(layer: Layer) -> Kernel:
    x, y, size = layer.input, layer.output, layer.integer("size")
    across = layer.word("method", ACROSS, (ACROSS, WITHIN)) == ACROSS
    if x.shape != y.shape or (not across and len(x.shape) != 4) or not x.shape:
        raise LayerError(f"its input is {list(x.shape)}, its output {list(y.shape)}, expected NHWC images of one shape")
    if size < 1 or (not across and size % 2 == 0):
        raise LayerError(f"'size' is {size}, expected {'1 or more' if across else 'an odd number'}")
    k, quantised, kind = KernelSource(), layer.is_quantised, wide_kind(x)
    zero = k.scalar(x.scalar_zero) if quantised else ""
    source = k.tensor(x)
    largest = max(abs(x.low + x.scalar_zero), abs(x.high + x.scalar_zero)) if quantised else 0
    pair = (size if across else size * size) * largest * largest >= 2**31
    if pair and largest > 65535:
        raise LayerError(f"the zero point {x.scalar_zero} of '{x.name}' is larger than its type")
    names = ("upper", "lower") if pair else ("total",)
    begin = [f'{n} = S.vbcast(S.cast(0, "{"uint32" if pair else kind}"), lanes={LANES})' for n in names]
    moved = f"v + {zero}" if quantised else "v"
    step = [f'u = S.vsel({moved}, S.vbcast(S.cast(0, "{kind}"), lanes={LANES}), inside)' if across else f"u = {moved}"]
    if pair:
        step += _ADD_SQUARE
    else:
        step.append("total = total + u * u")
    cells = np.full(1, size, np.float32)
    if not across:
        cells = _cells(x.shape, size)
    k.do(f'own = load({source} + place, mask, "{x.dtype}", {LANES})' + (f" + {zero}" if quantised else ""))
    result = (
        _quantised(k, layer, names, size * size if not across else size, largest)
        if quantised
        else _float(k, layer, cells)
    )
    end = [*k.body, f'S.vstore(narrow({result.name}, "{y.dtype}"), {k.tensor(y)} + place, mask)']
    load = f'v = load(pixel, mask, "{x.dtype}", {LANES})'
    if not across:
        ones, reach = (1, 1), ((size - 1) // 2, (size - 1) // 2)
        window = Window((size, size), ones, ones, (reach, reach))
        return finish(k, [*k.head, *window_loops(k, x, slides_of(k, window, layer), begin, [load, *step], end)])
    c, many, before = k.scalar(x.shape[-1]), k.scalar(size), k.scalar(size // 2)
    return finish(
        k,
        [
            *k.head,
            f"lane = S.vload({k.constant(np.arange(LANES, dtype=np.int32))}, lanes={LANES})",
            f"for at in range(S.get_local_id(), {k.scalar(x.count // max(x.shape[-1], 1))}, S.get_local_size()):",
            f"    for o in range(0, {c}, {LANES}):",
            f"        mask = S.tail_mask(S.min({c} - o, {LANES}), {LANES})",
            *(f"        {b}" for b in begin),
            f"        for d in range({many}):",
            f"            channel = lane + (o + d - {before})",
            f"            inside = (channel >= 0) & (channel < {c})",
            f'            v = load({source} + (at * {c} + o + d - {before}), inside & mask, "{x.dtype}", {LANES})',
            *(f"            {s}" for s in step),
            f"        place = at * {c} + o",
            *(f"        {e}" for e in end),
        ],
    )


def _cells(shape: tuple[int, ...], size: int) -> Array:
    """Cells of the image that a window sees, by position."""
    reach = (size - 1) // 2
    counts = [np.minimum(np.arange(n) + reach, n - 1) - np.maximum(np.arange(n) - reach, 0) + 1 for n in shape[1:3]]
    return (counts[0][:, None] * counts[1][None, :]).astype(np.float32)


def _float(k: KernelSource, layer: Layer, cells: Array) -> Value:
    count = k.scalar(float(cells[0])) if cells.ndim == 1 else f"{k.constant(cells.reshape(-1))}[spot]"
    alpha, beta, bias = (
        float(np.float32(layer.number(n, d))) for n, d in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0))
    )
    inner = k.let(f"total / {count} * {k.scalar(alpha)} + {k.scalar(bias)}", "float32")
    return k.let(f"own / S.pow({inner.name}, {k.scalar(beta)})", "float32")


def _quantised(k: KernelSource, layer: Layer, names: tuple[str, ...], cells: int, largest: int) -> Value:
    out = layer.output
    scale, shift = (np.asarray(layer.integer(n)) for n in ("scale_sum_value", "shift_sum_value"))
    bound = cells * largest * largest
    if len(names) > 1:
        k.do('high = S.cast(upper, "int32")')
        k.do('low = S.cast(lower, "int32")')
        at = requantise_pair(k, held_pair((0, bound)), scale, shift, 0, 0, 65535)
    else:
        at = requantise(k, named("total", "int32", 0, bound), scale, shift, 0, 0, 65535)
    factor = look_up(k, at, layer.constant("lut"), 16)
    span = largest * max(abs(factor.low), abs(factor.high))
    if span >= 2**31:
        for word in ("high", "low"):
            k.do(f"{word} = own * 0")
        k.do(f"add_product(high, low, own, {factor.name})")
        return requantise_pair(
            k, held_pair((-span, span)), *layer.scale_shift(of=1), out.scalar_zero, out.low, out.high
        )
    product = k.let(f"own * {factor.name}", "int32", -span, span)
    return requantise(k, product, *layer.scale_shift(of=1), out.scalar_zero, out.low, out.high)
