"""What is kept of a tensor's values over all calibration samples: enough for every strategy, whatever the order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from math import isfinite, isnan
from pathlib import Path

import numpy as np

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compass_core.namedtuple import NamedTuple
from compassc.layers.float_loops import Extremes, counts, extremes

BINS = 4096
"""Of a histogram, half of them on each side of zero."""
MOST_BINNED = 1 << 16
"""Values of a batch that go into the histogram, evenly taken; smallest and largest are of all values."""
MOMENTUM = 0.9
FIELDS = ("least", "most", "running_least", "running_most", "mean", "std", "mad", "bound", "batches")


class NotFinite(ValueError):
    """Values that are no numbers, or infinite."""


def binned_step(many: int) -> int:
    """From one of so many values that goes into the histogram to the next."""
    return -(-many // MOST_BINNED)


class Portion(NamedTuple):
    """What a record takes of the values of some samples: what goes into its fields, by their names a number for each sample;
    and the values that are binned."""

    fields: Mapping[str, Sequence[float]]
    binned: Array

    @classmethod
    def of(
        cls,
        values: Array,
        histogram: bool = False,
        moments: bool = False,
        samples: int = 1,
        found: Extremes | None = None,
    ) -> Portion:
        """Of so many samples, one behind the other. NotFinite where a value is not. Where there are none, nothing is taken. `found`:
        the extremes of each sample, and each `binned_step`th value for a histogram, where they are known."""
        if not values.size:
            return cls({}, values)
        if found is None:
            # copied, for the values are forgotten before they are binned
            found = extremes(values.reshape(samples, -1), binned_step(values.size) if histogram else 0)
        least, most, binned = found
        if not all(map(isfinite, least)) or not all(map(isfinite, most)):
            raise NotFinite("NaN" if any(map(isnan, (*least, *most))) else "infinite values")
        fields = {"running_least": least, "running_most": most}
        if moments:
            rows = values.reshape(samples, -1)
            mean = rows.mean(1, dtype=np.float64)
            away = np.abs(rows - mean[:, None].astype(np.float32))
            spread = np.sqrt(np.square(away, dtype=np.float64).sum(1) / max(rows.shape[1] - 1, 1))
            mad = away.mean(1, dtype=np.float64)
            fields |= {"mean": mean.tolist(), "std": spread.tolist(), "mad": mad.tolist()}
        return cls(fields, binned)


@dataclass
class Record:
    """The statistics of one tensor.

    `least` and `most` of all samples; the running ones, `mean`, `std` and `mad` (mean distance from the mean) are of the
    first sample, and each further one counts a tenth. `counts`: how often values fell into equal bins from -bound to
    bound; empty where nobody asked for it.
    """

    least: float = np.inf
    most: float = -np.inf
    running_least: float = 0.0
    running_most: float = 0.0
    mean: float = 0.0
    std: float = 0.0
    mad: float = 0.0
    bound: float = 0.0
    batches: int = 0
    counts: Array = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def of(cls, values: Array, histogram: bool = True, moments: bool = True) -> Record:
        """The statistics of one array."""
        made = cls()
        made.observe(values, histogram, moments)
        return made

    @property
    def is_constant(self) -> bool:
        return self.least == self.most

    def observe(self, values: Array, histogram: bool = False, moments: bool = False) -> None:
        """Takes in the values of a sample. NotFinite where one is not."""
        self.take(Portion.of(values, histogram, moments))

    def take(self, portion: Portion, momentum: float = MOMENTUM) -> None:
        """Takes in what there is of some samples, in their order."""
        if not portion.fields:
            return
        fields = portion.fields
        least, most = min(fields["running_least"]), max(fields["running_most"])
        self.least, self.most = min(self.least, least), max(self.most, most)
        for key, each in fields.items():
            value = getattr(self, key) if self.batches else each[0]
            for new in each if self.batches else each[1:]:
                value = momentum * value + (1 - momentum) * new
            setattr(self, key, value)
        if portion.binned.size:
            self._count(portion.binned, max(abs(least), abs(most)))
        self.batches += len(fields["running_least"])

    def _count(self, values: Array, largest: float) -> None:
        if not self.counts.size:
            self.counts, self.bound = np.zeros(BINS), largest or 1.0
        while self.bound < largest:
            # bins become twice as wide, so that pairs of them join exactly
            quarter = BINS // 4
            self.counts = np.pad(self.counts.reshape(-1, 2).sum(1), quarter)
            self.bound *= 2
        found = counts(values, self.bound, BINS)
        self.counts += found[:BINS]
        self.counts[-1] += found[BINS]  # of the bound itself

    def histogram(self) -> tuple[Array, Array]:
        """(counts, centres of the bins) from the smallest to the largest value."""
        width = 2 * self.bound / BINS
        centres = -self.bound + width * (np.arange(BINS) + 0.5)
        inside = (centres + width / 2 >= self.least) & (centres - width / 2 <= self.most)
        return self.counts[inside], np.clip(centres[inside], self.least, self.most)


@dataclass
class Moments:
    """Of what a linear layer multiplies with its weights: the mean, and the mean of products of each two.

    One each per group of channels: [groups, inputs], and [groups, inputs, inputs] where it is asked for.
    """

    mean: Array
    products: Array | None
    rows: int = 0

    def observe(self, rows: Array, products: bool) -> None:
        """Takes rows [groups, many, inputs] in."""
        many = rows.shape[1]
        part = many / (self.rows + many)
        wide = rows.astype(np.float32)
        self.mean += (wide.mean(1, dtype=np.float64) - self.mean) * part
        if products and self.products is not None:
            now = wide.transpose(0, 2, 1) @ wide / np.float32(many)
            self.products += (now - self.products) * part
        self.rows += many


@dataclass(frozen=True)
class Calibration:
    """What calibration found: a record for each float tensor by its name, and for values inside layers by
    `LAYER/NAME`; the moments of linear layers' inputs by the layer. `samples`: how many there were."""

    records: Mapping[str, Record]
    moments: Mapping[str, Moments] = field(default_factory=dict)
    samples: int = 0

    def save(self, path: Path | str) -> None:
        """Writes an .npz file, as `load` reads it."""

        from compassc.quantizer import statistics_files

        statistics_files.save(self, Path(path))

    @classmethod
    def load(cls, path: Path | str) -> Calibration:
        """The calibration of a file that `save` wrote. CompassError for another file."""

        from compassc.quantizer import statistics_files

        return statistics_files.load(Path(path))
