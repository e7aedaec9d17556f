"""Which vector operation sums up the products of a layer, and what inputs, weights and sums look like for it.

Every format gives exact integer sums. 8-bit inputs are staged as uint8 (a signed one moved by 128) for dot products of
four; where weights or padding need more bits, and for 16-bit inputs, int16 (an unsigned one moved by 32768) for dot
products of two. What the move adds to the sums is taken off the biases. Sums beyond 32 bits are kept as pairs, to which
the 32-bit sums of a segment are added; weights whose segments' sums would not fit either are cut into two bytes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compass_core.arrays import Array
from compass_core.namedtuple import NamedTuple
from compassc.build import Expression, Value
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.families.linear.reference import (
    biases_around_shift,
    compact_weights,
    has_ahead_shift,
    summed_biases,
    zero_points_apart,
)
from compassc.layers.families.linear.tiles import Shape, filters_of, segment_words

INT32 = (-(2**31), 2**31 - 1)
BYTE, SHORT, FLOAT, WORD = "uint8", "int16", "float32", "int32"
PER_WORD = {BYTE: 4, SHORT: 2, FLOAT: 1}
"""The formats of operands in LSRAM, and the elements of the depth per word."""
PRODUCTS: dict[str, Callable[[Value, Value, Value], Expression]] = {BYTE: S.vqdpa, SHORT: S.vdpa, FLOAT: S.fma}
"""What adds the products of words to sums."""


class Format(NamedTuple):
    """`planes`: the weights [plane,O,...], plane i counts 256^i; `start`: what the sums start with, per output channel."""

    staged: str
    planes: Array
    start: Array
    pair: bool
    low: int = 0
    high: int = 0

    @property
    def per_word(self) -> int:
        return PER_WORD[self.staged]


def format_of(layer: Layer, s: Shape) -> Format:
    """The cheapest exact format of a convolution."""
    if layer.is_quantised or layer.type == "ConvInteger":
        return integer_format(layer.input, *terms_of(layer, s))
    biases = layer.constants.get("biases", np.zeros(s.outputs)).reshape(-1)
    if biases.size != s.outputs:
        raise LayerError(f"'biases' has {biases.size} values, but there are {s.outputs} output channels")
    return float_format(layer, filters_of(s, layer, layer.constant("weights")), biases)


def terms_of(layer: Layer, s: Shape) -> tuple[Array, Array, int | None]:
    """(weights [O,KH,KW,I/group], biases that are added to sums of products, the input at the border) of a convolution of
    integers; None where there is no border."""
    fill, biases = fill_of(layer), summed_biases(layer, s.outputs)
    if layer.type == "ConvInteger" and zero_points_apart(layer):
        weights = layer.constant("weights").astype(np.int64) - layer.integer("w_zero_point", 0)
        biases = biases - fill * weights.reshape(weights.shape[0], -1).sum(1)
    else:
        weights = compact_weights(layer)
    if layer.type != "ConvInteger" and has_ahead_shift(layer):
        biases, _ = biases_around_shift(layer, s.outputs)
    return filters_of(s, layer, weights), biases, fill if s.has_border else None


def fill_of(layer: Layer) -> int:
    """The input value that means 0."""
    if layer.type == "ConvInteger" and zero_points_apart(layer):
        return layer.integer("x_zero_point", 0)
    return -layer.input.scalar_zero


def float_format(layer: Layer, weights: Array, biases: Array) -> Format:
    """Products and sums in float32."""
    floats_only(layer)
    return Format(FLOAT, weights.astype(np.float32, copy=False)[None], biases.astype(np.float32), False)


def floats_only(layer: Layer) -> None:
    """LayerError where a layer with float parameters has a tensor that is no float."""
    for t in (*layer.inputs, *layer.outputs):
        if t.dtype not in ("float32", "float16", "bfloat16"):
            raise LayerError(f"'{t.name}' is {t.dtype}, which a {layer.type} with float parameters has no kernel for")


def integer_format(x: Tensor, weights: Array, biases: Array, fill: int | None, pairs: bool = True) -> Format:
    """The cheapest exact format for integer weights [O,...]; `fill`: the input at the border, None where there is none.

    low and high are the limits of the sums with biases. LayerError where no format is exact.
    """
    if x.integer.bits > 16:
        raise LayerError(f"products of {x.dtype} have no kernel")
    limits = np.iinfo(x.dtype)
    if fill is not None and not limits.min <= fill <= limits.max:
        raise LayerError(f"padding with {fill}, the negative zero point, does not fit {x.dtype}")
    lows, highs = min(x.low, fill or 0), max(x.high, fill or 0)
    signed, least, most = signed_sums(weights), int(weights.min(initial=0)), int(weights.max(initial=0))
    low, high = sums_range(signed, biases, lows, highs)
    span = int(low.min()), int(high.max())
    totals = signed[0] + signed[1]
    if x.integer.bits <= 8 and -128 <= least and most <= 127:
        offset = 128 if x.dtype == "int8" else 0
        start = biases - offset * totals
        if _fits(*sums_range(signed, start, lows + offset, highs + offset)):
            return Format(BYTE, weights.astype(np.int8, copy=False)[None], start, False, *span)
    offset = -32768 if x.dtype == "uint16" else 0
    start = biases - offset * totals
    small = -32768 <= least and most <= 32767
    if small and _fits(start, start) and _fits(*sums_range(signed, start, lows + offset, highs + offset)):
        return Format(SHORT, weights.astype(np.int16, copy=False)[None], start, False, *span)
    if not pairs:
        raise LayerError("its sums do not fit 32 bits, which no kernel here computes with")
    largest = max(-least, most)
    if max(map(abs, span)) >= 2**47 or largest >= 2**16:
        raise LayerError("its sums do not fit 48 bits, which no kernel here computes with")
    widest = max(abs(lows + offset), abs(highs + offset))
    if small and widest * largest * 2 * segment_words() <= INT32[1]:
        return Format(SHORT, weights.astype(np.int16, copy=False)[None], start, True, *span)
    return Format(SHORT, in_bytes(weights).astype(np.int16, copy=False), start, True, *span)


def in_bytes(weights: Array) -> Array:
    """Weights cut in two: [the lower byte, what is above it]."""
    wide = weights.astype(np.int16) if weights.dtype.itemsize == 1 else weights
    return np.stack([wide & 255, wide >> 8])


def signed_sums(weights: Array) -> tuple[Array, Array]:
    """Per output channel: the sums of the weights above 0, and of those below."""
    flat = weights.reshape(weights.shape[0], -1)
    kind = np.int32 if flat.dtype.itemsize <= 2 and flat.shape[1] < 1 << 15 else np.int64
    sums, positive = (w.sum(1, dtype=kind).astype(np.int64) for w in (flat, np.maximum(flat, 0)))
    return positive, sums - positive


def sums_range(signed: tuple[Array, Array], start: Array, low: int, high: int) -> tuple[Array, Array]:
    """Per output channel: what sums of any part of the products can be, for inputs low..high. `signed`: `signed_sums`."""
    (positive, negative), least, most = signed, min(low, 0), max(high, 0)
    return positive * least + negative * most + start, positive * most + negative * least + start


def _fits(low: Array, high: Array) -> bool:
    return bool(low.min(initial=0) >= INT32[0] and high.max(initial=0) <= INT32[1])
