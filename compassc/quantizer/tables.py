"""Tables of functions of numbers of more than 8 bits: as many entries as accuracy asks for, each at the integer that the
lookup has it at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from compass_core.arrays import Array
from compass_core.errors import CompassError
from compassc.graph import Layer
from compassc.layers.declare import evaluate
from compassc.layers.families.activation.reference import FUNCTIONS, PLAIN, RECTIFIERS, method_of, table_base
from compassc.layers.real_values import to_real
from compassc.quantizer.job import Job, NotQuantised
from compassc.quantizer.numbers import exact_positions, real, stored
from compassc.quantizer.similarity import Similarity
from compassc.quantizer.statistics import BINS

Function = Callable[[Array], Array]
"""Of float32 numbers."""
TYPES = frozenset((*FUNCTIONS, *PLAIN))
"""Layer types with such tables."""
NEAR = 66.0
"""The ratio of signal to error of a function, in dB, that a table is large enough for: 65, and one more since it is estimated of
a histogram."""
OF_ROUNDING = 1.0
"""dB below what rounding the results alone leaves: no table of integers is asked for more."""
SIZES = (10, 11, 12)
"""Powers of two of entries, fewest first. 2^13 entries leave too little of the LSRAM to tiles."""
EXACT = 8
"""Bits of integers that have an entry each."""
FASTER_AS_FLOATS = frozenset(
    "HARDSWISH HARDSIGMOID TANH EXP LOG ERF SQUARE SOFTSIGN SHRINK THRESHOLDEDRELU FLOOR CEIL TRUNC ROUND "
    "Sqrt Rsqrt Reciprocal Sine Cosine Pow Softmax LogSoftmax".split()
)
"""Methods and layer types whose float32 kernel takes fewer cycles than the lookup between entries, conversions from and to
16 bits included."""


def check_floats(job: Job, name: str) -> None:
    """NotQuantised where a function, by its method or layer type, of more than 8 bits is faster and better in float32, and
    the settings do not ask for a table."""
    if not job.settings.table_bits and job.input.integer.bits > EXACT and name in FASTER_AS_FLOATS:
        raise NotQuantised("", "float32")


def has_table(layer: Layer) -> bool:
    """Whether a layer is a function of its operand that a table holds."""
    return layer.type in TYPES and (layer.type in PLAIN or method_of(layer) not in ("NONE", "CRELU", *RECTIFIERS))


def fitted(job: Job, function: Function, make: Callable[[Array], Layer]) -> Layer:
    """The layer with the smallest table that is near enough to its function, on the values that calibration saw.

    `make(at)` makes the layer with entries for the integers `at` of its input. NotQuantised where no table is near enough.
    """
    source = job.input
    bits, first = source.integer.bits, source.low if job.layer.type in PLAIN else table_base(source)
    if bits <= EXACT:
        return make(exact_positions(first, bits, bits))
    values = np.arange(source.low, source.high + 1)
    x = real(values, source)
    with np.errstate(all="ignore"):
        want = function(x).astype(np.float64)
    weights = _weights(job, x) * np.isfinite(want)
    want = np.where(np.isfinite(want), want, 0.0)
    best = -np.inf
    for items in [n for n in SIZES if n < bits] or [bits]:
        made = make(exact_positions(first, bits, items))
        out = made.output
        rounded = _ratio(to_real(out, stored(want.astype(np.float32), out)), want, weights)
        best = max(best, _ratio(to_real(out, _results(made, values)), want, weights))
        if best >= min(NEAR, rounded - OF_ROUNDING):
            return made
    raise NotQuantised(f"tables of integers keep {best:.0f} dB of the function, less than {NEAR:.0f}", "float32")


def _results(layer: Layer, values: Array) -> Array:
    """What the layer makes of integers, by its reference."""
    given, made = (replace(t, shape=values.shape) for t in (layer.input, layer.output))
    return evaluate(replace(layer, inputs=(given,), outputs=(made,)), [values])[0]


def _ratio(made: Array, want: Array, weights: Array) -> float:
    """Signal to error in dB, of values that come up as often as `weights` says."""
    root = np.sqrt(weights)
    found = Similarity()
    with np.errstate(all="ignore"):
        found.add(np.where(weights > 0, made, 0.0) * root, want * root)
    return found.sqnr if not np.isnan(found.sqnr) else -np.inf


def _weights(job: Job, x: Array) -> Array:
    """How often each of the input's numbers comes up; those of the calibrated range alike where nothing tells more.

    What is in the bins of the smallest and the largest value counts as these, where tables are worst and limits before the
    layer may have put many.
    """
    try:
        record = job.record(job.layer.inputs[0].name)
    except CompassError:  # a tensor whose scale the model brought along has no statistics
        return np.ones(x.shape)
    if not record.counts.size:
        return ((x >= record.least) & (x <= record.most)).astype(np.float64)
    bins = np.clip(((x + record.bound) * (BINS / (2 * record.bound))).astype(np.int64), 0, BINS - 1)
    found: Array = (record.counts / np.maximum(np.bincount(bins, minlength=BINS), 1))[bins]
    for value in (record.least, record.most):
        at = int(np.abs(x - np.float32(value)).argmin())
        found[bins == bins[at]] = 0.0
        found[at] = record.counts[bins[at]]
    return found
