"""HARD_SWISH of integers of 8 bits as runtimes of TFLite compute it: by numbers of 16 bits, which are rounded at every step."""

from __future__ import annotations

import numpy as np

from compass_core.arrays import Array
from compassc.importers.onnx.operators.quantised import Levels

LOW, HIGH = -(1 << 15), (1 << 15) - 1
FINER = 7
"""Bits that numbers of 8 bits get behind the point."""


def _multiplier(value: np.float32) -> tuple[int, int]:
    """A positive number as q * 2^(e - 15), with q of 15 bits: (q, e)."""
    part, exponent = np.frexp(np.float64(value))
    whole, exponent = int(np.floor(part * 2**31 + 0.5)), int(exponent)
    if whole == 1 << 31:
        whole, exponent = whole >> 1, exponent + 1
    return min((whole + (1 << 15)) >> 16, HIGH), exponent


def _divided(x: Array, by: int) -> Array:
    """Quotients cut towards zero."""
    return np.asarray(np.sign(x) * (np.abs(x) // by))


def _high_half(x: Array, y: Array | int, rounds: bool) -> Array:
    """The high half of twice the product of numbers of 16 bits, halves up or cut."""
    product = np.asarray(x * y, np.int64)
    nudge = np.where(product >= 0, 1 << 14, 1 - (1 << 14)) if rounds else 0
    return np.minimum(_divided(product + nudge, 1 << 15), HIGH)


def _shifted(x: Array, bits: int) -> Array:
    """Numbers times 2^bits, within 16 bits; to the right halves away from zero."""
    if bits >= 0:
        found: Array = np.clip(x << bits, LOW, HIGH)
        return found
    mask = (1 << -bits) - 1
    return np.asarray((x >> -bits) + ((x & mask) > (mask >> 1) + (x < 0)))


def hard_swish(numbers: Array, own: Levels, out: Levels) -> Array:
    """The integers of x * min(max(x + 3, 0), 6) / 6 for integers of x. Both levels are of one scale and 8 bits."""
    fine = np.float32(own.scale[0]) * np.float32(1 / (1 << FINER))
    multiplier, exponent = _multiplier(np.float32(fine / np.float32(out.scale[0])))
    factor, more = _multiplier(np.float32(fine / np.float32(3 / (1 << 15))))
    x = (numbers.astype(np.int64) - int(own.zero[0])) << FINER
    gate = _high_half(_shifted(x, more - 1) if more > 0 else x, factor, True)
    gate = (_shifted(gate, 1 if more > 0 else more) + (1 << 15)) >> 1
    made = _high_half(gate, _high_half(x, multiplier, True), False)
    made = _shifted(made, exponent) + int(out.zero[0])
    kind = np.iinfo(out.dtype)
    return np.clip(made, kind.min, kind.max).astype(out.dtype)
