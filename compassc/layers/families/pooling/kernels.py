"""Kernels of pooling: the lanes are channels; each TEC takes every fourth position of the window."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compassc.graph import Layer, LayerError
from compassc.layers.arithmetic import Array, approximate_factor
from compassc.layers.emit import look_up, requantise, requantise_to, wide_kind
from compassc.layers.families.pooling.reference import METHODS, area_of, window_for
from compassc.layers.kernels import follow, kernel
from compassc.layers.source import LANES, Kernel, KernelSource, Value, finish
from compassc.layers.windows import Window, seen

START = {"MAX": "-3.4028234663852886e38", "AVG": "0.0", "L1": "0.0", "L2": "0.0"}
STEP = {
    "MAX": "S.max(acc, v)",
    "AVG": "acc + v",
    "L1": "acc + S.abs(v)",
    "L2": "acc + v * v",
}


def _areas(layer: Layer, window: Window) -> Array:
    """Cells a mean is taken over, by position in rows of the output."""
    inside = np.ones((1, *layer.input.shape[1:-1], 1), bool)
    cells = seen(inside, window, tuple(layer.output.shape[1:-1]), False)
    return area_of(layer, cells, tuple(range(-len(window.kernel), 0)))[0, ..., 0]


def _float(k: KernelSource, layer: Layer, method: str, areas: Array) -> Value:
    acc = Value("acc", "float32")
    if method == "AVG":
        table = np.arange(int(areas.max(initial=0)) + 1).astype(np.float32)
        k.body.append(f"cells = {k.constant(np.maximum(table, 1))}[area]")
        return k.let("acc / cells", "float32")
    if method == "L2":
        return k.let("S.sqrt(acc)", "float32")
    return acc


def _quantised(k: KernelSource, layer: Layer, method: str, areas: Array, cells: int) -> Value:
    out, source = layer.output, layer.input
    zero = source.scalar_zero
    low, high = source.low + zero, source.high + zero
    if method == "MAX":
        return Value("acc", "int32", source.low, source.high)
    largest = max(abs(low), abs(high))
    bound = cells * (largest * largest if method == "L2" else largest)
    if bound >= 2**31:
        raise LayerError("its sums do not fit 32 bits, which no kernel here computes with")
    if method == "AVG":
        acc = Value("acc", "int32", cells * min(low, 0), cells * max(high, 0))
        ratio = np.float32(np.float32(out.scalar_scale) / np.float32(source.scalar_scale))
        scale, shift = approximate_factor(ratio / np.maximum(areas, 1).astype(np.float32), 8)
        size = int(areas.max(initial=0)) + 1
        scales, shifts = np.zeros(size, np.int64), np.zeros(size, np.int64)
        scales[areas.reshape(-1)], shifts[areas.reshape(-1)] = scale.reshape(-1), shift.reshape(-1)
        if (areas == 0).any():
            raise LayerError("a window sees no cell of the image")
        used = scales > 0
        scales[~used], shifts[~used] = 1, shifts[used].min(initial=0)
        k.choice = "area"
        result = requantise(k, acc, scales, shifts, out.scalar_zero, out.low, out.high)
        k.choice = ""
        return result
    acc = Value("acc", "int32", 0, bound)
    if method == "L1":
        return requantise_to(k, acc, *layer.scale_shift(of=1), out)
    at = requantise(k, acc, *layer.scale_shift(of=1), 0, 0, 65535)
    return look_up(k, at, layer.constant("sqrt_lut"), 16)


@kernel("Pooling", "GlobalPool", tail=True)
def pooling(layer: Layer, tail: Sequence[Layer] = ()) -> Kernel:
    method, x, y = layer.word("method", choices=METHODS), layer.input, layer.output
    window = window_for(layer, x.shape)
    if len(window.kernel) == 1:
        raise LayerError("one-dimensional pooling has no kernel")
    kind, k = wide_kind(x), KernelSource()
    areas = _areas(layer, window)
    px, cells = k.tensor(x), int(np.prod(window.kernel))
    quantised = layer.is_quantised
    result = _quantised(k, layer, method, areas, cells) if quantised else _float(k, layer, method, areas)
    result, out = follow(k, layer, result, tail, "place")
    zero = x.scalar_zero if quantised and method != "MAX" else 0
    start = START[method] if kind == "float32" else str(x.low if method == "MAX" else 0)
    area = (
        f"S.i32({k.constant(areas.reshape(-1).astype(np.int32))}[oy * {{ow}} + ox])" if method == "AVG" else "S.i32(0)"
    )
    (kh, kw), (sy, sx), (dy, dx) = window.kernel, window.stride, window.dilation
    names = {
        name: k.scalar(value)
        for name, value in {
            "items": x.shape[0] * y.shape[1] * y.shape[2],
            "h": x.shape[1],
            "w": x.shape[2],
            "c": x.shape[3],
            "oh": y.shape[1],
            "ow": y.shape[2],
            "kh": kh,
            "kw": kw,
            "sy": sy,
            "sx": sx,
            "dy": dy,
            "dx": dx,
            "pt": window.pads[0][0],
            "pl": window.pads[1][0],
            "zero": zero,
        }.items()
    }
    py = k.tensor(out)
    load = f'load(pixel, mask, "{x.dtype}", {LANES})' + (f" + {names['zero']}" if kind == "int32" and zero else "")
    lines = [
        "for at in range(S.get_local_id(), {items}, S.get_local_size()):",
        "    ox = at % {ow}",
        "    oy = at / {ow} % {oh}",
        "    image = at / ({ow} * {oh})",
        f"    area = {area}",
        f"    for o in range(0, {{c}}, {LANES}):",
        f"        mask = S.tail_mask(S.min({{c}} - o, {LANES}), {LANES})",
        f'        acc = S.vbcast(S.cast({start}, "{kind}"), lanes={LANES})',
        "        for ky in range({kh}):",
        "            iy = oy * {sy} + ky * {dy} - {pt}",
        "            if iy >= 0 and iy < {h}:",
        "                for kx in range({kw}):",
        "                    ix = ox * {sx} + kx * {dx} - {pl}",
        "                    if ix >= 0 and ix < {w}:",
        f"                        pixel = {px} + ((image * {{h}} + iy) * {{w}} + ix) * {{c}} + o",
        f"                        v = {load}",
        f"                        acc = {STEP[method]}",
        "        place = at * {c} + o",
        *(f"        {line}" for line in k.body),
        f'        S.vstore(narrow({result.name}, "{out.dtype}"), {py} + place, mask)',
    ]
    return finish(k, [*k.head, *(line.format(**names) for line in lines)])
