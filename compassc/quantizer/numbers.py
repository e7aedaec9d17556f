"""How the numbers of a quantised layer follow from ranges: scales, zero points, multipliers, biases, tables.

A quantised value q of a tensor with scale s and zero point z stands for (q + z) / s. All of it is in float32, as the
definition has it: another precision would give other integers now and then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compass_core.namedtuple import NamedTuple
from compassc.graph import Tensor
from compassc.graph.dtypes import integer_type, numpy_dtype
from compassc.layers.arithmetic import approximate_factor, quantise
from compassc.layers.families.activation.reference import table_base

F32 = np.float32
EPSILON = F32(1.1920929e-07)
"""A range below it is no range: the scale is that of the steps themselves."""
WIDEST = 32767
"""The largest multiplier."""

FULL, RESTRICTED, ASYMMETRIC = "symmetric_full_range", "symmetric_restricted_range", "asymmetric"
MODES = (FULL, RESTRICTED, ASYMMETRIC)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


class Levels(NamedTuple):
    """Scale and zero point (numbers, or arrays per channel), and the integers they are of."""

    scale: Any
    zero: Any
    low: int
    high: int
    dtype: str

    def tensor(self, like: Tensor) -> Tensor:
        """A tensor of this quantisation, under the name and in the shape of another."""
        return Tensor(like.name, like.shape, self.dtype, float(self.scale), int(self.zero), (self.low, self.high))

    def of(self, values: Array) -> Array:
        """The integers of real numbers, int64; one scale for each index of the first axis where there are several."""
        scale, zero = (np.asarray(v).reshape(np.shape(v) + (1,) * (values.ndim - np.ndim(v))) for v in self[:2])
        return quantise(values, scale, zero, self.low, self.high)


def limits_of(bits: int, signed: bool, mode: str = FULL) -> tuple[int, int]:
    """The smallest and largest integer."""
    if not signed:
        return 0, (1 << bits) - 1
    high = (1 << (bits - 1)) - 1
    return (-high if mode == RESTRICTED else -high - 1), high


def type_of(bits: int, signed: bool) -> str:
    """The type that stores integers of so many bits."""
    prefix = "" if signed else "u"
    return f"aligned_{prefix}int{4 if bits <= 4 else 12}" if bits <= 4 or 8 < bits <= 12 else integer_type(bits, signed)


def levels(low: Array | float, high: Array | float, mode: str, bits: int, signed: bool) -> Levels:
    """Scale and zero point for real numbers from `low` to `high`, which are numbers or arrays per channel."""
    least, most = (np.asarray(v, F32) for v in (low, high))
    least, most = np.minimum(least, F32(0)), np.maximum(most, F32(0))
    smallest, largest = limits_of(bits, signed, mode)
    steps = F32(largest - smallest)
    symmetric = mode != ASYMMETRIC
    span = np.maximum(np.abs(least), np.abs(most)) * F32(2 if signed else 1) if symmetric else most - least
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scale = steps / np.where((span < EPSILON) | np.isnan(span), steps, span).astype(F32)
    zero = np.zeros(scale.shape, np.int64)
    if not symmetric:
        bound = (1 << (bits - 1)) - 1
        zero = np.clip(np.rint(scale * least) - F32(smallest), -bound, bound).astype(np.int64)
    if scale.ndim == 0:
        return Levels(F32(scale), int(zero), smallest, largest, type_of(bits, signed))
    return Levels(scale.astype(F32), zero, smallest, largest, type_of(bits, signed))


@dataclass(frozen=True)
class Factor:
    """multiplier / 2^shift: what sums are requantised with; one, or one per channel."""

    multiplier: Array
    shift: Array
    bits: int
    """Of the multiplier, before it was brought to a common shift."""

    @property
    def type(self) -> str:
        return "uint8" if self.bits <= 8 else "uint16"

    def attributes(self, prefix: str = "") -> dict[str, int | str]:
        """The keys of a layer that holds it as numbers."""
        return {
            f"{prefix}scale_value": int(self.multiplier),
            f"{prefix}scale_type": self.type,
            f"{prefix}shift_value": int(self.shift),
            f"{prefix}shift_type": "int8",
        }

    def constants(self) -> dict[str, Array]:
        """The constants of a layer that has one for each channel."""
        return {
            "scale": np.asarray(self.multiplier).astype(self.type),
            "shift": np.asarray(self.shift).astype(np.int8),
        }


def factor(ratio: object, bits: int, shift_limit: int = 31) -> Factor:
    """The multiplier and shift for a ratio, or for several. OverflowError where a ratio is none that they can hold."""
    found = np.asarray(ratio, F32)
    if not np.isfinite(found).all() or (found <= 0).any():
        raise OverflowError(f"the ratio of scales {found.reshape(-1)[:4].tolist()} is beyond what a layer holds")
    multiplier, shift = approximate_factor(found, bits, shift_limit)
    if np.abs(shift).max() > 127:
        raise OverflowError(f"the ratio of scales {float(found.max())} needs a shift of {int(shift.min())}")
    return Factor(multiplier, shift, bits)


# -- weights


Ratio = Callable[[Array], Array]
"""`ratio(weights' scale)`: of the output's scale to that of the sums."""


def common_shift(
    low: Array, high: Array, groups: int, mode: str, bits: int, ratio: Ratio, multiplier_bits: int
) -> tuple[Levels, Factor]:
    """Scales per channel whose factors have one shift. Channels share a scale where one of them would have no factor."""
    channels = len(low)
    many = min(groups, channels)
    while True:
        found = _by_runs(low, high, many, mode, bits)
        made = _with_one_shift(factor(ratio(found.scale), multiplier_bits))
        if made.multiplier.min() > 0 or many == 1:
            return found, made
        many >>= 1


def _by_runs(low: Array, high: Array, many: int, mode: str, bits: int) -> Levels:
    """Scales of runs of neighbouring channels, repeated for each channel."""
    channels = len(low)
    run = -(-channels // many)
    pad = (0, many * run - channels)
    lowest, highest = np.pad(low, pad).reshape(many, run).min(1), np.pad(high, pad).reshape(many, run).max(1)
    found = levels(lowest, highest, mode, bits, True)
    scale, zero = (np.repeat(v, run)[:channels] for v in (found.scale, found.zero))
    return found._replace(scale=scale, zero=zero)


def _with_one_shift(each: Factor) -> Factor:
    shift = max(0, int(each.shift.max()))
    multiplier = each.multiplier << (shift - each.shift)
    excess = multiplier.max() / WIDEST
    if excess > 1:
        drop = int(np.ceil(np.log2(excess)))
        shift, multiplier = shift - drop, multiplier >> drop
    return Factor(multiplier, np.full_like(multiplier, shift), 16)


def extremes(weights: Array) -> tuple[Array, Array]:
    """The smallest and the largest weight of each output channel (the first axis), 0 included."""
    flat = weights.reshape(len(weights), -1).astype(F32)
    return np.minimum(flat.min(1), F32(0)), np.maximum(flat.max(1), F32(0))


# -- biases


def quantised_biases(biases: Array, scale: object, bits: int, absorbed: Array | int = 0, effective: int = 0) -> Array:
    """Biases in the scale of the sums, with what the input's zero point adds; in float32, as int64.

    `effective`: the high bits that are used; lower ones are cleared.
    """
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    whole = quantise(biases.astype(F32), np.asarray(scale, F32), 0, low, high)
    if np.any(np.asarray(absorbed)):
        total = whole.astype(F32) + np.asarray(absorbed).astype(F32)
        whole = np.clip(total.astype(np.float64), low, high).astype(np.int64)
    return cleared(whole, effective or bits)


def cleared(values: Array, effective: int, least: int = 0) -> Array:
    """The values without the low bits that a range of `effective` bits has no room for; at least `least` of them."""
    high, low = max(int(values.max(initial=1)), 1), min(int(values.min(initial=-1)), -1)
    room = 1 << (effective - 1)
    drop = max(int(np.ceil(max(np.log2(high / (room - 1)), np.log2(-low / room)))), least)
    return (values >> drop) << drop if drop > 0 else values


# -- tables


def positions(low: int, high: int, many: int) -> Array:
    """Integers from `low` to `high` in so many steps, in float32 from both ends."""
    if many == 1:
        return np.full(1, low, F32)
    step = F32(F32(high) - F32(low)) / F32(many - 1)
    at = np.arange(many)
    front = F32(low) + step * at.astype(F32)
    back = F32(high) - step * (many - 1 - at).astype(F32)
    return np.where(at < many // 2, front, back).astype(F32)


USUAL_ITEMS = 10
"""Entries of a table are two to the power of it where the settings do not say how many, and the layer does not either."""


def exact_positions(low: int, bits: int, items: int) -> Array:
    """The integers of `bits` bits at which the lookup has the entries of a table of 2^items, the first one at `low`."""
    return (low + (1 << max(bits - items, 0)) * np.arange(1 << min(items, bits))).astype(F32)


def index_positions(bits: int, items: int, most: int = 0) -> Array:
    """The numbers from 0 to 2^bits - 1 that a table of 2^items, at most 2^most, items is taken at: from end to end, as the
    definition has it, or with `items` 0 where the lookup has them."""
    most = min(most or bits, bits)
    if not items:
        return exact_positions(0, bits, min(USUAL_ITEMS, most))
    return positions(0, (1 << bits) - 1, 1 << min(items, most))


def table_positions(t: Tensor, bits: int) -> Array:
    """The values of a tensor that a table of 2^bits items is taken at; with `bits` 0 those where the lookup has them."""
    if not bits:
        return exact_positions(table_base(t), t.integer.bits, USUAL_ITEMS)
    many = 1 << min(t.integer.bits, bits)
    if t.integer.signed and t.low == -t.high:
        return np.append(F32(t.low), positions(t.low, t.high, many - 1))
    return positions(t.low, t.high, many)


def real(values: Array, t: Tensor) -> Array:
    """What values of a tensor stand for, float32."""
    return (values.astype(F32) + F32(t.scalar_zero)) * (F32(1) / F32(t.scalar_scale))


def stored(values: Array, t: Tensor) -> Array:
    """Real numbers as the tensor's integers, in its type; what is no number counts as 0."""
    return quantise(values, t.scalar_scale, t.scalar_zero, t.low, t.high).astype(numpy_dtype(t.dtype))
