"""How near tensors are to others, over many samples. What was measured of parts of the samples adds up to that of all, in any
order."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compassc.layers.threads import blas_on_one_thread
from compassc.layers.window_products import STRIP, slices


@dataclass
class Similarity:
    """How near arrays are to known ones, all samples taken together; `lowest` is the cosine of the sample that is worst,
    `at` its number."""

    samples: int = 0
    count: int = 0
    dot: float = 0.0
    known: float = 0.0
    made: float = 0.0
    error: float = 0.0
    lowest: float = math.inf
    at: int = -1

    def add(self, made: Array, known: Array, sample: int = -1) -> None:
        """A sample's array, and what it should be, and its number; infinities and NaN make the cosine NaN."""
        self.add_rows(made, known, [sample])

    def add_rows(self, made: Array, known: Array, samples: Sequence[int]) -> None:
        """The same for several samples, whose values lie one behind the other."""
        a, b = made.reshape(len(samples), -1), known.reshape(len(samples), -1)
        for number, own, right in zip(samples, a, b, strict=True):
            one = Similarity(1, own.size)
            for at in slices(own.size, 1, STRIP):
                one._add_piece(own[at].astype(np.float64), right[at].astype(np.float64))
            one.lowest, one.at = one.cosine, number
            self.merge(one)

    def _add_piece(self, a: Array, b: Array) -> None:
        with blas_on_one_thread(), np.errstate(invalid="ignore", over="ignore"):
            difference = a - b
            self.dot += float(a @ b)
            self.known += float(b @ b)
            self.made += float(a @ a)
            self.error += float(difference @ difference)

    def merge(self, other: Similarity) -> None:
        """Adds what was measured on other samples."""
        for name in ("samples", "count", "dot", "known", "made", "error"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        worse = other.lowest < self.lowest or (math.isnan(other.lowest) and not math.isnan(self.lowest))
        if worse or (other.lowest == self.lowest and other.at < self.at):
            self.lowest, self.at = other.lowest, other.at

    @property
    def cosine(self) -> float:
        """Of the angle between both; 1 where both are zero, 0 where one is."""
        if not (math.isfinite(self.dot) and math.isfinite(self.known) and math.isfinite(self.made)):
            return math.nan
        if self.known == 0 or self.made == 0:
            return 1.0 if self.known == self.made else 0.0
        return max(-1.0, min(1.0, self.dot / math.sqrt(self.known) / math.sqrt(self.made)))

    @property
    def mse(self) -> float:
        """The mean of squared differences."""
        return self.error / self.count if self.count else 0.0

    @property
    def sqnr(self) -> float:
        """Signal to noise in dB: infinite where nothing differs."""
        if not (math.isfinite(self.error) and math.isfinite(self.known)):
            return math.nan
        if self.error == 0:
            return math.inf
        return 10 * math.log10(self.known / self.error) if self.known else -math.inf

    @property
    def same(self) -> bool:
        return self.error == 0

    def as_data(self) -> dict[str, float | None]:
        """Numbers; None for those that are not finite."""
        shown = {"cosine": self.cosine, "mse": self.mse, "sqnr_db": self.sqnr, "worst_cosine": self.lowest}
        return {k: v if math.isfinite(v) else None for k, v in shown.items()} | {"worst_sample": self.at}
