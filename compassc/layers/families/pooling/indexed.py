"""Kernels of the maximum with its place."""

from __future__ import annotations

import numpy as np

from compassc.graph import Layer, LayerError
from compassc.layers.emit import wide_kind
from compassc.layers.families.pooling.reference import FLATTENED, check_positions
from compassc.layers.kernels import kernel
from compassc.layers.sliding import load_cell, slides_of, window_loops
from compassc.layers.source import LANES, Kernel, KernelSource, finish
from compassc.layers.windows import window_of


@kernel("MaxPoolingWithArgMax")
def max_pooling_with_index(layer: Layer) -> Kernel:
    """Lanes are channels: each keeps its largest cell and that cell's number in the image."""
    x, k = layer.input, KernelSource()
    if len(x.shape) != 4 or len(layer.outputs) != 2:
        raise LayerError(
            f"the input is {list(x.shape)} and there are {len(layer.outputs)} outputs, expected NHWC and 2"
        )
    window, (y, index) = window_of(layer), layer.outputs
    check_positions(layer, window, x.shape)
    if y.shape != index.shape or x.dtype != y.dtype or index.dtype != "int32":
        raise LayerError(
            f"its outputs are {y.dtype} {list(y.shape)} and {index.dtype} {list(index.shape)}, expected {x.dtype} and "
            "int32 of one shape"
        )
    kind, (_, height, width, channels) = wide_kind(x), x.shape
    h, w, c = k.scalar(height), k.scalar(width), k.scalar(channels)
    cell = f"ix * {h} + iy" if layer.integer("storage_order", 0) else f"iy * {w} + ix"
    zeros = f'S.vbcast(S.cast(0, "{kind}"), lanes={LANES})'
    better = "(v > best) | (place_of < 0)"
    if kind == "float32":
        better += " | ((v != v) & (best == best))"
    begin = [f"best = {zeros}", f"place_of = S.vbcast(S.i32(-1), lanes={LANES})"]
    step = [
        f"v = {load_cell(k, x)}",
        f"better = {better}",
        f"place_of = S.vsel({cell}, place_of, better)",
        "best = S.vsel(v, best, better)",
    ]
    form = layer.word("flatten_dim", "HWC", FLATTENED)
    lane = f"S.vload({k.constant(np.arange(LANES, dtype=np.int32))}, lanes={LANES}) + o"
    whole = {
        "HW": "place_of",
        "HWC": f"place_of * {c} + ({lane})",
        "NHWC": f"(image * {h} * {w} + place_of) * {c} + ({lane})",
        "NCHW": f"(image * {c} + ({lane})) * ({h} * {w}) + place_of",
    }[form]
    end = [
        f"whole = S.vsel({whole}, 0, place_of >= 0)",
        f'S.vstore(narrow(best, "{y.dtype}"), {k.tensor(y)} + place, mask)',
        f"S.vstore(whole, {k.tensor(index)} + place, mask)",
    ]
    return finish(k, [*k.head, *window_loops(k, x, slides_of(k, window, layer), begin, step, end)])
