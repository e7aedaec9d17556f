"""Strategies: which range of values a tensor's integers stand for, as functions of its statistics.

A strategy is written as a word, with a number before it and numbers in brackets behind it where it takes some:
`extrema`, `mean`, `3std`, `99.99percentile`, `kld`, `aciq_gauss`, `mse`. Every range includes 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from compass_core.arrays import Array
from compass_core.errors import CompassError
from compass_core.errors.suggest import help_for
from compass_core.namedtuple import NamedTuple
from compassc.quantizer.statistics import Record

Range = tuple[float, float]


class Wanted(NamedTuple):
    """What a range is for: integers of so many bits, the same on both sides of zero or not; and the numbers that the
    strategy's text gives."""

    bits: int
    symmetric: bool
    number: float | None
    listed: tuple[float, ...] = ()


Strategy = Callable[[Record, Wanted], Range]


class Entry(NamedTuple):
    """A strategy with what it looks at: a histogram, moments, values that depend on the samples' order."""

    range: Strategy
    summary: str
    histogram: bool = False
    moments: bool = False
    running: bool = False


class Chosen(NamedTuple):
    """A strategy as a text names it."""

    entry: Entry
    number: float | None
    listed: tuple[float, ...]

    @property
    def histogram(self) -> bool:
        """Whether it looks at the histogram; a part of the extrema does not."""
        return self.entry.histogram and not (self.entry.range is _percentile and (self.number or 1.0) <= 1)

    def range(self, record: Record, bits: int, symmetric: bool) -> Range:
        """The range for a record, 0 included. CompassError where the record lacks what the strategy looks at."""
        varied = record.least < record.most
        if varied and (self.histogram and not record.counts.any() or self.entry.moments and not record.std):
            raise CompassError(
                "the statistics were not made for this strategy",
                code="calibration-data",
                help="calibrate again with the same settings",
            )
        low, high = self.entry.range(record, Wanted(bits, symmetric, self.number, self.listed))
        return min(low, 0.0), max(high, 0.0)


def _extrema(r: Record, w: Wanted) -> Range:
    many = 1.0 if w.number is None else w.number
    return many * r.least, many * r.most


def _mean(r: Record, w: Wanted) -> Range:
    return r.running_least, r.running_most


def _std(r: Record, w: Wanted) -> Range:
    many = 3.0 if w.number is None else w.number
    return max(r.running_least, r.mean - many * r.std), min(r.running_most, r.mean + many * r.std)


def _percentile(r: Record, w: Wanted) -> Range:
    """Up to 1 the number is a part of the extrema; above, percent of the values."""
    number = 1.0 if w.number is None else w.number
    if number <= 1:
        return number * r.least, number * r.most
    counts, centres = r.histogram()
    share = np.cumsum(counts) / max(counts.sum(), 1)
    tail = (1 - number / 100) / 2
    low = centres[min(int(np.searchsorted(share, tail)), len(centres) - 1)]
    high = centres[min(int(np.searchsorted(share, 1 - tail)), len(centres) - 1)]
    return float(low), float(high)


LAPLACE = {4: 5.03, 5: 6.2, 6: 7.41, 7: 8.64, 8: 9.89, 9: 11.16, 10: 12.44, 11: 13.73, 12: 15.02, 13: 16.33, 14: 17.64,
           15: 18.95, 16: 20.27}  # fmt: skip
GAUSS = {4: 2.55, 5: 2.93, 6: 3.28, 7: 3.61, 8: 3.92, 9: 4.21, 10: 4.49, 11: 4.75, 12: 4.99, 13: 5.24, 14: 5.47,
         15: 5.69, 16: 5.89}  # fmt: skip
"""How many times the spread is the best range, by bits, where values are distributed so."""


def _analytic(factors: dict[int, float], spread: str) -> Strategy:
    def found(r: Record, w: Wanted) -> Range:
        number = 1.0 if w.number is None else w.number
        reach = factors.get(w.bits, factors[8]) * getattr(r, spread)
        if w.symmetric:
            bound = abs(r.mean) + number * reach
            # no further than there are values, for wider steps would gain nothing
            return max(-bound, r.least), min(bound, r.most)
        low = max(r.running_least, r.mean - reach)
        return low, min(low + 2 * reach * number, r.most)

    return found


def _mse(r: Record, w: Wanted) -> Range:
    """The part of the extrema with the smallest mean squared error of rounding inside and cutting outside."""
    counts, centres = r.histogram()
    total = max(counts.sum(), 1)
    best, chosen = np.inf, 1.0
    for part in np.geomspace(1.0, 0.01, 150):
        low, high = min(part * r.least, 0.0), max(part * r.most, 0.0)
        reach = 2 * max(-low, high) if w.symmetric and low < 0 else high - low
        step = reach / ((1 << w.bits) - 1)
        cut = centres - np.clip(centres, low, high)
        inside = counts[(centres >= low) & (centres <= high)].sum()
        error = ((cut * cut * counts).sum() + inside * step * step / 12) / total
        if error < best:
            best, chosen = error, float(part)
    return chosen * r.least, chosen * r.most


def _kld(r: Record, w: Wanted) -> Range:
    """The widest of the best windows of the histogram by the divergence of what the integers can tell apart."""
    counts, centres = r.histogram()
    bins, wanted = len(counts), 1 << w.bits
    if bins <= wanted:
        return r.least, r.most
    keep = max(int(w.number or 10), 2)
    low, high = _start(r, counts, bins, wanted)
    steps = max(low + 1, bins - high)
    every = max(1, steps // 256)
    found = []
    for k in range(0, steps, every):
        first, last = max(low - k, 0), min(high + k, bins - 1)
        found.append((_divergence(counts, first, last, wanted), first, last))
    best = sorted(found, key=lambda f: f[0])[:keep]
    _, first, last = max(best, key=lambda f: f[2] - f[1])
    half = (centres[1] - centres[0]) / 2 if bins > 1 else 0.0
    return max(float(centres[first]) - half, r.least), min(float(centres[last]) + half, r.most)


def _start(r: Record, counts: Array, bins: int, wanted: int) -> tuple[int, int]:
    """The smallest window: at the end where zero is, else around the fullest bin."""
    if r.least >= 0:
        return 0, wanted - 1
    if r.most <= 0:
        return bins - wanted, bins - 1
    peak = int(counts.argmax())
    if peak < bins // 2:
        low = max(peak - wanted // 2, 0)
        return low, low + wanted - 1
    high = min(peak + wanted // 2, bins - 1)
    return high - wanted + 1, high


def _divergence(counts: Array, first: int, last: int, wanted: int) -> float:
    inside = counts[first : last + 1]
    p = inside.copy()
    p[0] += counts[:first].sum()
    p[-1] += counts[last + 1 :].sum()
    size = len(inside) // wanted
    groups = np.minimum(np.arange(len(inside)) // size, wanted - 1)
    sums = np.bincount(groups, inside, wanted)
    used = np.bincount(groups, inside != 0, wanted)
    q = np.where(inside != 0, (sums / np.maximum(used, 1))[groups], 0) + 1e-12
    p, q = p / p.sum(), q / q.sum()
    at = p > 0
    return float((p[at] * np.log(p[at] / q[at])).sum())


def _weighted(r: Record, w: Wanted) -> Range:
    """Between the scales of both sides; the numbers are weights a, b, c, and d, a bound of the deviation."""
    a, b, c, d = (*w.listed, *(0.5, 0.5, 0.5, np.inf)[len(w.listed) :])
    steps = (1 << w.bits) - 1
    above, below = max(r.running_most, 0.0), abs(min(r.running_least, 0.0))
    if not above or not below:
        return r.running_least, r.running_most
    alpha = a if above > below else b if r.std > d else c
    scale = alpha * steps / above + (1 - alpha) * steps / below
    return -steps / scale, steps / scale


STRATEGIES: dict[str, Entry] = {
    "extrema": Entry(_extrema, "from the smallest to the largest value of all samples, N (1) times"),
    "mean": Entry(_mean, "the running mean of the samples' smallest and largest values", running=True),
    "std": Entry(_std, "N (3) standard deviations around the mean", moments=True, running=True),
    "percentile": Entry(_percentile, "N percent of the values; up to 1 that part of the extrema", histogram=True),
    "mse": Entry(_mse, "the part of the extrema with the smallest mean squared error", histogram=True),
    "kld": Entry(_kld, "the widest of the N (10) ranges with the smallest divergence of histograms", histogram=True),
    "aciq_laplace": Entry(_analytic(LAPLACE, "mad"), "the best for Laplace's distribution", moments=True, running=True),
    "aciq_gauss": Entry(_analytic(GAUSS, "std"), "the best for a normal distribution", moments=True, running=True),
    "weighted_scale_param": Entry(
        _weighted, "between the scales of both sides, by weights in brackets", moments=True, running=True
    ),
}
"""Strategies by name."""
_TEXT = re.compile(r"(?P<number>\d+(\.\d*)?|\.\d+)?(?P<name>[a-z_]+)(\[(?P<listed>[^\]]*)\])?")


def parse(text: str) -> Chosen:
    """The strategy that a text such as `3std` names. ValueError for one that names none."""
    found = _TEXT.fullmatch(text.strip().lower())
    name = found["name"] if found else text
    if found is None or name not in STRATEGIES:
        raise ValueError(f"a strategy; {help_for(name, STRATEGIES, 'strategies')}")
    try:
        listed = tuple(float(part) for part in (found["listed"] or "").split(",") if part.strip())
    except ValueError:
        raise ValueError(f"numbers in the brackets of '{text}'") from None
    number = float(found["number"]) if found["number"] else None
    if number is not None and not number > 0:
        raise ValueError(f"a number above 0 before '{name}'")
    if name == "percentile" and number is not None and not 0 < number <= 100:
        raise ValueError("a percentile above 0 and up to 100")
    return Chosen(STRATEGIES[name], number, listed)
