"""Steps of normalisations of bytes: sums by dot products, numbers of a position as scalars, products of 16 bits."""

from __future__ import annotations

import numpy as np

from compassc.build import Value
from compassc.graph import Layer
from compassc.layers.arithmetic import inverse_root_table
from compassc.layers.emit import requantise
from compassc.layers.source import KernelSource

MOST = 1 << 14
"""Bytes whose sums, and what is made of them on the way to their deviation, fit 32 bits."""


def deviation(k: KernelSource, layer: Layer, count: int) -> None:
    """`mean` and `factor` of the bytes whose sum is `total` and sum of squares `squares`; all are scalars."""
    table, n, move = (
        k.table(inverse_root_table().astype(np.uint16)),
        k.scalar(count),
        layer.factor("var_shift_value", 0),
    )
    k.do(f"mean = rounded_quotient(total, {n})")
    k.do(f"spread = squares - mean * (total + total) + {n} * mean * mean")
    spread = f"spread >> {k.scalar(min(move, 31))}" if move >= 0 else "S.i32(0)"
    k.do(f"factor = (inverse_root_of({spread}, {table}) + 32768) >> 16")


def normalised(k: KernelSource, layer: Layer, stored: str, prefix: str) -> Value:
    """Bytes around `mean` times `factor`, in the scale of the normalised values."""
    source, out = layer.input, layer.output.integer
    low, high = (-128, 127) if out.signed else (0, 255)
    span = (source.high - source.low) * 32768
    away = k.let(f"halves({stored}, 0 - mean)").name
    scale, shift = layer.scale_shift(prefix, of=1)
    product = k.let(f"products_by({away}, factor)", "int32", -span, span)
    return requantise(k, product, scale, shift + 8, 0, low, high)
