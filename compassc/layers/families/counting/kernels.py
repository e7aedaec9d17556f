"""Kernels of counts: lanes are elements; the bins of a histogram are counted one element after the other."""

from __future__ import annotations

import numpy as np

from compassc.build import Address, Expression
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError
from compassc.layers.families.counting.reference import bins_of, top_sizes, zero_sizes
from compassc.layers.kernel import Kernel
from compassc.layers.kernels import kernel
from compassc.layers.lane_arithmetic import across_sum
from compassc.layers.layer_kernel import LayerKernel, kernel_of_macro
from compassc.layers.vectors import clamp, load, narrow, wide_kind


@S.macro
def among_top(
    x: Address, targets: Address, y: Address, rows: Expression, classes: Expression, most: Expression, dtype: str,
    to: str, kind: str,
) -> None:  # fmt: skip
    """Whether fewer than `most` elements of a row are larger than that of its target."""
    none = S.vbcast(S.i32(0), lanes=32)
    for n in range(S.get_local_id(), rows, S.get_local_size()):
        target = S.i32(targets[n])
        larger = none + 0
        inside = target >= 0 and target < classes
        own = x + n * classes
        if inside:
            value = S.cast(own[target], kind)
            for j in range(0, classes, 32):
                mask = S.tail_mask(S.min(classes - j, 32), 32)
                hit = (load(own + j, mask, dtype, 32) > value) & mask
                larger = larger + S.vsel(none + 1, none, hit)
        found = S.i32(0)
        if inside and across_sum(larger)[0] < most:
            found = S.i32(1)
        y[n] = narrow(found, to)


@kernel("InTopK")
def in_top_k(layer: Layer) -> Kernel:
    rows, classes = top_sizes(layer)
    x, y = layer.input, layer.output
    if wide_kind(y) != "int32" or wide_kind(layer.inputs[1]) != "int32":
        raise LayerError(f"targets are {layer.inputs[1].dtype} and results {y.dtype}, expected whole numbers")
    return kernel_of_macro(
        among_top,
        x=x,
        targets=layer.inputs[1],
        y=y,
        rows=rows,
        classes=classes,
        most=layer.integer("k"),
        dtype=x.dtype,
        to=y.dtype,
        kind=wide_kind(x),
    )


@S.macro
def zeros_of(
    x: Address, y: Address, rows: Expression, size: Expression, dtype: str, to: str, zero: Expression,
    scale: Expression | None = None, half: Expression | None = None, offset: Expression | None = None,
    low: Expression | float = 0, high: Expression | float = 0,
) -> None:  # fmt: skip
    """The share of a row's elements that are 0, in the output's scale where there is one."""
    none = S.vbcast(S.i32(0), lanes=32)
    for n in range(S.get_local_id(), rows, S.get_local_size()):
        zeros = none + 0
        for j in range(0, size, 32):
            mask = S.tail_mask(S.min(size - j, 32), 32)
            hit = (load(x + (n * size + j), mask, dtype, 32) == zero) & mask
            zeros = zeros + S.vsel(none + 1, none, hit)
        number = across_sum(zeros)[0]
        if scale is None:
            y[n] = narrow(S.cast(number, "float32") / S.cast(size, "float32"), to)
        else:
            y[n] = narrow(clamp((number * scale + half) / size - offset, low, high), to)


@kernel("ZeroFraction")
def zero_fraction(layer: Layer) -> Kernel:
    rows, size = zero_sizes(layer)
    x, y = layer.input, layer.output
    if (wide_kind(y) == "int32") != layer.is_quantised:
        raise LayerError(f"{x.dtype} to {y.dtype} has no kernel")
    given: dict[str, int] = {}
    if layer.is_quantised:
        scale = layer.integer("output_scale")
        if size * abs(scale) + size // 2 >= 2**31 or scale < 0:
            raise LayerError(f"'output_scale' {scale} times {size} elements does not fit 32 bits")
        given = {"scale": scale, "half": size // 2, "offset": y.scalar_zero, "low": y.low, "high": y.high}
    zero = 0.0 if wide_kind(x) == "float32" else -x.scalar_zero if layer.is_quantised else 0
    k = LayerKernel()
    with k.active():
        numbers = {name: k.number(value) for name, value in given.items()}
        zeros_of(k.tensor(x), k.tensor(y), k.number(rows), k.number(size), x.dtype, y.dtype, zero, **numbers)
    return k.kernel()


@S.macro
def counted(
    x: Address, y: Address, rows: Expression, size: Expression, bins: Expression, low: Expression, high: Expression,
    span: Expression, real_bins: Expression, to: str, whole: bool, closed: bool,
) -> None:  # fmt: skip
    """How many elements of a row are in each bin from low to high."""
    for n in range(S.get_local_id(), rows, S.get_local_size()):
        for b in range(bins):
            y[n * bins + b] = narrow(S.i32(0) if whole else S.fp32(0), to)
        for e in range(size):
            value = S.cast(x[n * size + e], "float32")
            if value >= low and (value <= high if closed else value < high):
                at = clamp(S.cast((value - low) * real_bins / span, "int32"), 0, bins - 1)
                y[n * bins + at] = narrow(
                    S.i32(y[n * bins + at]) + 1 if whole else S.cast(y[n * bins + at], "float32") + 1.0, to
                )


@kernel("Count")
def count(layer: Layer) -> Kernel:
    rows, size, bins, low, high = bins_of(layer)
    x, y = layer.input, layer.output
    whole = wide_kind(y) == "int32"
    wide_kind(x)
    if (y.integer.high if y.is_integer else {"float32": 1 << 24}.get(y.dtype, 256)) < size:
        raise LayerError(f"{y.dtype} does not count {size} elements")
    first, last = np.float32(low), np.float32(high)
    return kernel_of_macro(
        counted,
        x=x,
        y=y,
        rows=rows,
        size=size,
        bins=bins,
        low=float(first),
        high=float(last),
        span=float(np.float32(last - first)),
        real_bins=float(bins),
        to=y.dtype,
        whole=whole,
        closed=layer.flag("discrete", True),
    )
