"""How the values of tensors are spread over many samples. Histograms of parts of the samples add up to that of all, in any
order."""

from __future__ import annotations

import math
from dataclasses import field

import numpy as np

from compass_core.arrays import Array
from compass_core.dataclass import dataclass

BINS = 96
"""The most bins of a histogram."""


@dataclass
class Histogram:
    """How often values occur: in bins of the width 2^exponent, of which the first begins at first * 2^exponent."""

    exponent: int = 0
    first: int = 0
    counts: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    low: float = math.inf
    high: float = -math.inf

    def add(self, values: Array) -> None:
        """Counts the finite values of an array."""
        flat = values.reshape(-1).astype(np.float64)
        flat = flat if np.isfinite(flat).all() else flat[np.isfinite(flat)]
        if not flat.size:
            return
        low, high = float(flat.min()), float(flat.max())
        one = Histogram(_exponent(low, high), low=low, high=high)
        bins = np.floor(np.ldexp(flat, -one.exponent)).astype(np.int64)
        one.first = int(bins.min())
        one.counts = np.bincount(bins - one.first).astype(np.int64)
        self.merge(one)

    def merge(self, other: Histogram) -> None:
        """Adds the counts of other values."""
        if not other.counts.size:
            return
        if not self.counts.size:
            self.exponent, self.first, self.counts = other.exponent, other.first, other.counts.copy()
            self.low, self.high = other.low, other.high
            return
        low, high = min(self.low, other.low), max(self.high, other.high)
        exponent = max(_exponent(low, high), self.exponent, other.exponent)
        parts = [(h.first >> exponent - h.exponent, h.widened(exponent)) for h in (self, other)]
        first = min(at for at, _ in parts)
        counts = np.zeros(max(at + len(c) for at, c in parts) - first, np.int64)
        for at, c in parts:
            counts[at - first : at - first + len(c)] += c
        self.exponent, self.first, self.counts, self.low, self.high = exponent, first, counts, low, high

    def widened(self, exponent: int) -> Array:
        """The counts of bins that are 2^exponent wide."""
        shift = exponent - self.exponent
        bins = (np.arange(len(self.counts)) + self.first) >> shift
        return np.bincount(bins - bins[0], self.counts).astype(np.int64)

    def edges(self) -> list[float]:
        """Where the bins begin, and the end of the last."""
        return [math.ldexp(self.first + i, self.exponent) for i in range(len(self.counts) + 1)]

    def as_data(self) -> dict[str, object]:
        return {"edges": self.edges(), "counts": self.counts.tolist(), "low": self.low, "high": self.high}


def _exponent(low: float, high: float) -> int:
    """The smallest for which all values from `low` to `high` lie in at most BINS bins."""
    span = high - low or max(abs(low), 1.0) / BINS
    exponent = math.frexp(span / BINS)[1] - 1
    while math.floor(math.ldexp(high, -exponent)) - math.floor(math.ldexp(low, -exponent)) >= BINS:
        exponent += 1
    return exponent
