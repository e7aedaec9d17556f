"""Kernels of the maximum with its place, and of values put back at such places."""

from __future__ import annotations

import numpy as np

from compassc.graph import Layer, LayerError
from compassc.layers.emit import wide_kind
from compassc.layers.families.movement.indexed import fill_value
from compassc.layers.families.movement.kernels import filling
from compassc.layers.families.pooling.reference import FLATTENED, check_positions
from compassc.layers.kernels import kernel
from compassc.layers.moving import raw_pointer
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


@kernel("MaxUnpool", "UpsampleByIndex")
def unpooling(layer: Layer) -> Kernel:
    """Every TEC reads all values in order and stores those of its own part, so that their order is kept."""
    values, index, y = *layer.inputs[:2], layer.output
    if len(layer.inputs) != 2 or values.shape != index.shape or len(values.shape) != 4 or len(y.shape) != 4:
        raise LayerError(f"its inputs are {[list(t.shape) for t in layer.inputs]}, expected values and indices, NHWC")
    if values.dtype != y.dtype or index.dtype not in ("int32", "int16", "uint16", "int8", "uint8"):
        raise LayerError(f"'{values.name}' is {values.dtype}, the output {y.dtype}, the indices {index.dtype}")
    if (values.shape[0], values.shape[3]) != (y.shape[0], y.shape[3]):
        raise LayerError(
            f"values of {list(values.shape)} have other images or channels than the output {list(y.shape)}"
        )
    form = layer.word("flatten_dim", "HW" if layer.type == "MaxUnpool" else "HWC", FLATTENED)
    k, (n, h, w, c) = KernelSource(), values.shape
    whole, image = k.scalar(y.count), k.scalar(y.count // n if n else 0)
    planes, size, channels = form in ("HW", "NCHW"), k.scalar(h * w), k.scalar(c)
    zero = -y.scalar_zero if layer.is_quantised else 0
    target = raw_pointer(k, y)
    offset = {"HW": f"b * {image} + ch * {k.scalar(y.shape[1] * y.shape[2])}", "HWC": f"b * {image}"}.get(form, "0")
    lines = [*filling(k, y, target, fill_value(zero, y)), "S.barrier()"]
    area = k.scalar(y.shape[1] * y.shape[2])
    # in planes the index counts by channels first, the output does not
    moved = f"(g / ({area} * {channels}) * {area} + g % {area}) * {channels} + g / {area} % {channels}"
    return finish(
        k,
        [
            *lines,
            f"for r in range({k.scalar(values.count)}):",
            f"    b = r / ({size} * {channels})",
            f"    ch = {f'r / {size} % {channels}' if planes else f'r % {channels}'}",
            f"    from_at = {f'(b * {size} + r % {size}) * {channels} + ch' if planes else 'r'}",
            f"    g = S.i32({k.tensor(index)}[from_at]) + {offset}",
            "    if g < 0:",
            f"        g += {whole}",
            f"    if g >= 0 and g < {whole} and g % S.get_local_size() == S.get_local_id():",
            f"        {target}[{moved if planes else 'g'}] = {raw_pointer(k, values)}[from_at]",
        ],
    )
