"""The end of a layer whose sums are beyond 32 bits: pairs of a high word and 16 low bits, requantised to 32-bit lanes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from compass_core.arrays import Array
from compassc import build
from compassc.build import Expression
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError
from compassc.graph.dtypes import INTEGER_TYPES
from compassc.ir.dtypes import INT32
from compassc.layers import vectors
from compassc.layers.arithmetic import TRUNCATED_DTYPES
from compassc.layers.emit import INT32_MAX, limited, operand, rectify, requantise
from compassc.layers.rectify import slopes_of
from compassc.layers.source import KernelSource
from compassc.layers.steps import LANES, Steps
from compassc.layers.vectors import requantised

DOUBLE_EXACT = 2**53
"""The reference multiplies in float64, whose integers are exact up to here."""


class Pair(NamedTuple):
    """The numbers `high` * 65536 + `low` (16 bits), two variables of the kernel, which are from `least` to `most`."""

    high: build.Value
    low: build.Value
    least: int
    most: int

    @property
    def span(self) -> tuple[int, int]:
        return self.least, self.most


def held_pair(span: tuple[int, int] = (0, 0)) -> Pair:
    """The sums that a kernel of text has in its variables `high` and `low`."""
    high, low = (build.variable(name, INT32.with_lanes(LANES)) for name in ("high", "low"))
    return Pair(high, low, *span)


def finish_pair(k: Steps, layer: Layer, pair: Pair, scale: Array, shift: Array, method: str = "") -> build.Value:
    """The output's value of sums.

    `method`: the rectifier, where it is not the layer's fused one.
    """
    method, out = method or layer.word("with_activation", "NONE"), layer.output
    if out.dtype in TRUNCATED_DTYPES:
        raise LayerError(f"requantisation to {out.dtype} of sums beyond 32 bits is not implemented")
    low, high = out.low, out.high
    if method == "CLIP":
        extra = 8 if INTEGER_TYPES[out.dtype].bits <= 8 else 0
        inner = (layer.integer("clip_min"), layer.integer("clip_max"))
        clipped = requantise_pair(k, pair, scale, shift - extra, 0, *inner)
        return requantise(k, clipped, 1, extra, out.scalar_zero, low, high)
    if method in ("RELU", "RELU6"):
        k.paste(vectors.positive_pair, pair.high, pair.low)
        pair = pair._replace(least=0, most=max(pair.most, 0))
    elif method in ("LEAKYRELU", "PRELU"):
        pair = _leaked(k, layer, method, pair)
    elif method != "NONE":
        raise LayerError(f"the fused activation {method} of sums beyond 32 bits has no kernel")
    return requantise_pair(k, pair, scale, shift, out.scalar_zero, low, high)


def _leaked(k: Steps, layer: Layer, method: str, pair: Pair) -> Pair:
    """Negative sums times the slope."""
    kind = layer.output.integer
    single = method == "LEAKYRELU"
    slopes = np.asarray([layer.integer("negative_slope_value")]) if single else slopes_of(layer).astype(np.int64)
    shift, steepest = layer.integer("negative_slope_shift", kind.bits), int(np.abs(slopes).max())
    if not 1 <= shift <= 31 or steepest >> 16 or -min(pair.least, 0) * steepest >= DOUBLE_EXACT:
        raise LayerError(
            f"'negative_slope_shift' is {shift}: sums down to {pair.least} times the slope {steepest} over it have no kernel"
        )
    high, low = pair.high, pair.low
    turned = bool((slopes < 0).any())
    below = k.let(high < 0) if turned else None
    negative = k.let(high < 0)
    k.paste(vectors.scale_pair, high, low, operand(k, np.abs(slopes)), k.number(shift), negative)
    if below is not None:
        k.paste(vectors.negate_pair, high, low, below & (operand(k, slopes) < high * 0))
    largest = -(min(pair.least, 0) * steepest >> shift) + 1
    if not single and not kind.signed:
        k.assign(low, S.vsel(0, low, high < 0))
        k.assign(high, S.max(high, 0))
        return pair._replace(least=0, most=max(pair.most, largest))
    return pair._replace(least=-largest, most=max(pair.most, largest if turned else 0))


def requantise_pair(
    k: Steps, pair: Pair, scale: Array, shift: Array, zero: int, low: int, high: int, bits: int = 48
) -> build.Value:
    """round(pair * scale / 2^shift) - zero, within low..high. `bits`: from the pair's first bit that is not 0 on."""
    if max(abs(low), abs(high)) + abs(zero) >= 2**18:
        raise LayerError(f"results up to {high} of sums beyond 32 bits have no kernel")
    scales, shifts = (a.reshape(-1) for a in np.broadcast_arrays(scale, shift))
    scales, shifts = _positive(scales, shifts)
    largest = max(map(abs, pair.span)) * int(scales.max())
    exact = largest < DOUBLE_EXACT or bits + int(scales.max()).bit_length() <= 53
    if shifts.max() > (62 if largest < 1 << 62 else 44) or (shifts.max() > 35 and not exact):
        raise LayerError(f"a shift of {int(shifts.max())} of sums beyond 32 bits has no kernel")
    drop = np.clip(shifts - 12, 1, 31)
    columns = [operand(k, _one(c)) for c in (scales, (1 << (drop - 1)) - 1, drop, shifts - drop)]
    result = k.let(pair.high, low=-(2**30), high=2**30)
    k.paste(vectors.requantise_pair, result, pair.low, *columns)
    return limited(k, k.shifted(result, -zero), low, high)


def requantise_sum(
    k: Steps, total: build.Value | Pair, scale: Array, shift: Array, zero: int, low: int, high: int
) -> build.Value:
    """As `emit.requantise`, of sums of either size."""
    if isinstance(total, Pair):
        return requantise_pair(k, total, scale, shift, zero, low, high)
    return requantise(k, total, scale, shift, zero, low, high)


def rescale_pair(k: KernelSource, high: str, low: str, largest: int, scale: int, shift: int, bits: int) -> int:
    """The variables `high` and `low` become round(pair * scale / 2^shift), of at most `bits` bits; gives the largest."""
    if scale == 1 and shift == 0:
        return largest
    more = max(1 - shift, 0)
    scale, shift = scale << more, shift + more
    made = -(-largest * scale // (1 << shift))
    if scale >> 16 or scale < 0 or shift > 31 or largest * scale >= DOUBLE_EXACT or made >> (bits - 1):
        raise LayerError(f"sums of up to {largest} times {scale} over 2^{shift} have no kernel")
    k.do(f"scale_pair({high}, {low}, {k.scalar(scale)}, {k.scalar(shift)}, {high} == {high})")
    return made


def _one(numbers: Array) -> Array:
    """A single number where all are the same."""
    return numbers[:1] if (numbers == numbers[:1]).all() else numbers


def _positive(scales: Array, shifts: Array) -> tuple[Array, Array]:
    """The same factors with shifts of at least 1, which their multipliers of 16 bits must allow."""
    more = np.maximum(1 - shifts, 0)
    if more.max() > 16 or (scales << more).max() >= 1 << 16 or scales.min() < 0:
        raise LayerError(f"the shift {int(shifts.min())} of sums beyond 32 bits has no kernel")
    return scales << more, shifts + more


def finish_sums(k: Steps, layer: Layer, sums: build.Value | Pair, scale: Array, shift: Array) -> build.Value:
    """The output's value of sums of either size, after the layer's own rectifier."""
    if isinstance(sums, Pair):
        return finish_pair(k, layer, sums, scale, shift)
    return rectify(k, layer, layer.word("with_activation", "NONE"), sums, scale, shift)


def finish_ahead(
    k: Steps, layer: Layer, sums: build.Value | Pair, amount: int, biases: Array, scale: Array, shift: Array
) -> build.Value:
    """The output's value of sums that are shifted, and limited to 32 bits, ahead of biases.

    `scale`, `shift`: those that are left.
    """
    if isinstance(sums, Pair):
        value = shifted_pair(k, sums, amount)
    elif amount:
        low, high = (round(v / 2**amount) for v in (sums.low, sums.high))
        value = k.let(requantised(sums, 1, k.number(amount)), low=low - 1, high=high + 1)
    else:
        value = sums
    low, high = value.low + int(biases.min()), value.high + int(biases.max())
    total: build.Value | Pair = value
    if low < -INT32_MAX or high > INT32_MAX:
        words = (value >> 16) + operand(k, biases >> 16), (value & 0xFFFF) + operand(k, biases & 0xFFFF)
        total = carried(k, *words, low, high)
    elif biases.any():
        total = k.let(value + operand(k, biases), low=low, high=high)
    return finish_sums(k, layer, total, scale, shift)


def carried(k: Steps, high: Expression, low: Expression, least: int, most: int) -> Pair:
    """The numbers `high` * 65536 + `low`, of which `low` may have more than 16 bits."""
    whole = k.let(low)
    return Pair(k.let(high + (whole >> 16)), k.let(whole & 0xFFFF), least, most)


FARTHEST = 46
"""The largest shift of `vectors.shift_far`."""


def shifted_pair(k: Steps, pair: Pair, shift: int) -> build.Value:
    """The sums over 2^shift, to the nearest, limited to int32."""
    if not 0 <= shift <= FARTHEST:
        raise LayerError(f"the shift {shift} of its sums is beyond what kernels compute")
    magnitude = max(map(abs, pair.span))
    largest = -(-magnitude >> shift)
    low = -largest
    if largest > INT32_MAX:
        # the largest number whose value fits: above it all are the same
        top, last = ((1 << (15 + shift)) - 1, 65536 - (1 << shift)) if shift <= 16 else (INT32_MAX, 65535)
        k.paste(vectors.limit_pair, pair.high, pair.low, k.number(top), k.number(last))
        low, largest = -(2**31), INT32_MAX
    k.paste(vectors.shift_near if shift <= 16 else vectors.shift_far, pair.high, pair.low, k.number(shift))
    return k.let(pair.high, low=low, high=largest)


def saturated_pair(k: Steps, pair: Pair) -> build.Value:
    """The sums, at most what 32 bits hold."""
    least, most = -(2**31), INT32_MAX
    top = S.vsel(most, (pair.high << 16) | pair.low, pair.high > 32767)
    return k.let(S.vsel(least, top, pair.high < -32768), low=least, high=most)
