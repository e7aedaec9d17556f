"""Kernels of counts: lanes are elements; the bins of a histogram are counted one element after the other."""

from __future__ import annotations

import numpy as np

from compassc.graph import Layer, LayerError
from compassc.layers.emit import wide_kind
from compassc.layers.families.counting.reference import bins_of, top_sizes, zero_sizes
from compassc.layers.kernels import kernel
from compassc.layers.scripts import Substitutions, script
from compassc.layers.source import Kernel

TOP = """
none = S.vbcast(S.i32(0), lanes=32)
for n in range(S.get_local_id(), rows, S.get_local_size()):
    target = S.i32(targets[n])
    larger = none + 0
    inside = target >= 0 and target < classes
    own = x + n * classes
    if inside:
        value = $value
        for j in range(0, classes, 32):
            mask = S.tail_mask(S.min(classes - j, 32), 32)
            hit = (load(own + j, mask, "$dtype", 32) > value) & mask
            larger = larger + S.vsel(none + 1, none, hit)
    found = S.i32(0)
    if inside and across_sum(larger)[0] < most:
        found = S.i32(1)
    y[n] = narrow(found, "$to")
"""


@kernel("InTopK")
def in_top_k(layer: Layer) -> Kernel:
    rows, classes = top_sizes(layer)
    x, y = layer.input, layer.output
    if wide_kind(y) != "int32" or wide_kind(layer.inputs[1]) != "int32":
        raise LayerError(f"targets are {layer.inputs[1].dtype} and results {y.dtype}, expected whole numbers")
    value = 'S.cast(own[target], "float32")' if wide_kind(x) == "float32" else "S.i32(own[target])"
    return script(
        TOP,
        None,
        {"value": value, "dtype": x.dtype, "to": y.dtype},
        x=x,
        targets=layer.inputs[1],
        y=y,
        rows=rows,
        classes=classes,
        most=layer.integer("k"),
    )


ZEROS = """
none = S.vbcast(S.i32(0), lanes=32)
for n in range(S.get_local_id(), rows, S.get_local_size()):
    zeros = none + 0
    for j in range(0, size, 32):
        mask = S.tail_mask(S.min(size - j, 32), 32)
        hit = (load(x + (n * size + j), mask, "$dtype", 32) == $zero) & mask
        zeros = zeros + S.vsel(none + 1, none, hit)
    number = across_sum(zeros)[0]
    y[n] = narrow($result, "$to")
"""


@kernel("ZeroFraction")
def zero_fraction(layer: Layer) -> Kernel:
    rows, size = zero_sizes(layer)
    x, y = layer.input, layer.output
    if (wide_kind(y) == "int32") != layer.is_quantised:
        raise LayerError(f"{x.dtype} to {y.dtype} has no kernel")
    words: Substitutions = {
        "dtype": x.dtype,
        "to": y.dtype,
        "zero": "0.0" if wide_kind(x) == "float32" else "0",
        "result": 'S.cast(number, "float32") / S.cast(size, "float32")',
    }
    given: dict[str, int] = {}
    if layer.is_quantised:
        scale = layer.integer("output_scale")
        if size * abs(scale) + size // 2 >= 2**31 or scale < 0:
            raise LayerError(f"'output_scale' {scale} times {size} elements does not fit 32 bits")
        words |= {"zero": str(-x.scalar_zero), "result": "clamp((number * scale + half) / size - offset, low, high)"}
        given = {"scale": scale, "half": size // 2, "offset": y.scalar_zero, "low": y.low, "high": y.high}
    return script(ZEROS, None, words, x=x, y=y, rows=rows, size=size, **given)


COUNT = """
for n in range(S.get_local_id(), rows, S.get_local_size()):
    for b in range(bins):
        y[n * bins + b] = $nothing
    for e in range(size):
        value = S.cast(x[n * size + e], "float32")
        if value >= low and value $compare high:
            at = clamp(S.cast((value - low) * real_bins / span, "int32"), 0, bins - 1)
            y[n * bins + at] = $more
"""


@kernel("Count")
def count(layer: Layer) -> Kernel:
    rows, size, bins, low, high = bins_of(layer)
    x, y = layer.input, layer.output
    whole = wide_kind(y) == "int32"
    wide_kind(x)
    if (y.integer.high if y.is_integer else {"float32": 1 << 24}.get(y.dtype, 256)) < size:
        raise LayerError(f"{y.dtype} does not count {size} elements")
    words: Substitutions = {
        "compare": "<=" if layer.flag("discrete", True) else "<",
        "nothing": f'narrow({"S.i32(0)" if whole else "S.fp32(0)"}, "{y.dtype}")',
        "more": f'narrow({"S.i32(y[n * bins + at]) + 1" if whole else _real_sum()}, "{y.dtype}")',
    }
    first, last = np.float32(low), np.float32(high)
    return script(
        COUNT,
        None,
        words,
        x=x,
        y=y,
        rows=rows,
        size=size,
        bins=bins,
        low=float(first),
        high=float(last),
        span=float(np.float32(last - first)),
        real_bins=float(bins),
    )


def _real_sum() -> str:
    return 'S.cast(y[n * bins + at], "float32") + 1.0'
