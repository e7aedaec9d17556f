"""Steps of normalisations of bytes: sums by dot products, numbers of a position as scalars, products of 16 bits."""

from __future__ import annotations

import numpy as np

from compass_core.namedtuple import NamedTuple
from compassc.build import Expression, Value
from compassc.dsl import script as S
from compassc.graph import Layer
from compassc.layers.arithmetic import inverse_root_table
from compassc.layers.lane_arithmetic import inverse_root_of, rounded_quotient
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.requantise import requantise
from compassc.layers.vectors import halves, products_by

MOST = 1 << 14
"""Bytes whose sums, and what is made of them on the way to their deviation, fit 32 bits."""


class Deviation(NamedTuple):
    """The mean of a position's bytes, and the factor that brings them to the scale of the normalised values; scalars."""

    mean: Value
    factor: Value


def deviation(k: LayerKernel, layer: Layer, count: int, total: Value, squares: Value) -> Deviation:
    """That of bytes with a sum and a sum of squares, scalars."""
    table, n = k.table(inverse_root_table().astype(np.uint16)), k.number(count)
    move = layer.factor("var_shift_value", 0)
    mean = k.held("mean", rounded_quotient(total, n))
    spread: Expression = k.held("spread", squares - mean * (total + total) + n * mean * mean)
    spread = spread >> k.number(min(move, 31)) if move >= 0 else S.i32(0)
    return Deviation(mean, k.held("factor", (inverse_root_of(spread, table) + 32768) >> 16))


def normalised(k: LayerKernel, layer: Layer, stored: Expression, d: Deviation, prefix: str) -> Value:
    """Bytes around their mean times the factor, in the scale of the normalised values."""
    source, out = layer.input, layer.output.integer
    low, high = (-128, 127) if out.signed else (0, 255)
    span = (source.high - source.low) * 32768
    away = k.let(halves(stored, 0 - d.mean))
    scale, shift = layer.scale_shift(prefix, of=1)
    product = k.let(products_by(away, d.factor), low=-span, high=span)
    return requantise(k, product, scale, shift + 8, 0, low, high)
