"""Calibration: what the values of each tensor are like while the float graph runs on samples."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np

from compass_core.arrays import Array
from compass_core.errors import CompassError
from compass_core.namedtuple import NamedTuple
from compassc.graph import Graph, Layer
from compassc.graph.dtypes import FLOAT_TYPES
from compassc.layers.float_loops import Extremes, Wanted
from compassc.layers.threads import spread
from compassc.quantizer.execute import Sample, run_all
from compassc.quantizer.inner_values import INSIDE, Inside
from compassc.quantizer.numbers import EPSILON
from compassc.quantizer.prepare import prepared
from compassc.quantizer.settings import Settings
from compassc.quantizer.statistics import Calibration, Moments, NotFinite, Portion, Record, binned_step
from compassc.quantizer.strategies import parse
from compassc.quantizer.tables import has_table
from compassc.quantizer.weight_operands import rows_of

WATCHED = ("Convolution", "DepthwiseConv", "Eltwise", "Add", "Sub", "Mul")
"""Layers whose loops may find extremes on the way."""


class _Wanted(NamedTuple):
    """What the settings need of the values of a layer; `inside`: of those inside it. `rows`: whether moments of what is
    multiplied with its weights."""

    histogram: bool
    moments: bool
    inside: Inside | None
    rows: bool


class _Observer:
    """Takes the values of all layers in, as far as the settings need them."""

    def __init__(self, graph: Graph, settings: Settings) -> None:
        self.graph, self.settings = graph, settings
        self.records: dict[str, Record] = {}
        self.moments: dict[str, Moments] = {}
        layers = {layer.name: (layer, settings.of(layer)) for layer in graph.layers}
        strategies = {name: parse(own.activation_strategy) for name, (_, own) in layers.items()}
        self.adaptive = {name for name, (_, own) in layers.items() if own.rounding == "adaptive"}
        self.wanted = {
            name: _Wanted(
                strategies[name].histogram,
                strategies[name].entry.moments,
                None if own.float else INSIDE.get(layer.type),
                not own.float and (settings.correct_biases or name in self.adaptive),
            )
            for name, (layer, own) in layers.items()
        }
        self.in_order = any(strategy.entry.running for strategy in strategies.values())
        """Whether the order of samples counts, so that each has to be known by itself."""
        self.by_itself = any(wanted.rows for wanted in self.wanted.values())
        """Whether moments are taken in while the graph runs, which therefore is done once at a time."""
        self.counted = {layer.input.name for layer in graph.layers if has_table(layer)}
        """Tensors whose values tell how large a table has to be."""

    def take(self, seen: _Watch) -> None:
        """What was seen of some samples, which are those behind the ones before."""
        taken = [(self.records.setdefault(name, Record()), portion) for name, portion in seen.portions.items()]
        spread(lambda each: each[0].take(each[1], self.settings.momentum), taken)

    def multiply(self, layer: Layer, inputs: Sequence[Array]) -> None:
        rows, products = rows_of(layer, inputs), layer.name in self.adaptive
        if rows is None:
            return
        groups, _, size = rows.shape
        if layer.name not in self.moments:
            zeros = np.zeros((groups, size, size)) if products else None
            self.moments[layer.name] = Moments(np.zeros((groups, size)), zeros)
        self.moments[layer.name].observe(rows, products)


class _Watch:
    """What is seen of the values of all layers for so many samples, one behind the other."""

    def __init__(self, observer: _Observer, samples: int) -> None:
        self.observer, self.samples = observer, samples
        self.portions: dict[str, Portion] = {}
        self._asked: Wanted | None = None

    def wanted(self, layer: Layer) -> Wanted | None:
        """What loops may find on the way, while the output of the layer that is next is in the caches."""
        self._asked = None
        if layer.type in WATCHED and (many := layer.output.count):
            step = binned_step(many) if self._counts(layer.name, layer.output.name) else 0
            self._asked = Wanted(self.samples, many // self.samples, step)
        return self._asked

    def _counts(self, layer: str, name: str) -> bool:
        """Whether a histogram of a tensor of a layer is wanted."""
        return self.observer.wanted[layer].histogram or name in self.observer.counted

    def __call__(self, layer: Layer, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        asked, self._asked = self._asked, None
        if layer.type == "Constant":
            return
        wanted = self.observer.wanted[layer.name]
        found = asked.found if asked and asked.done else None
        for t, values in zip(layer.outputs, outputs, strict=True):
            if t.dtype in FLOAT_TYPES:
                self._see(layer, t.name, values, wanted, found)
        for name, values in (wanted.inside(layer, *inputs) if wanted.inside else {}).items():
            self._see(layer, f"{layer.name}/{name}", values, wanted)
        if wanted.rows:
            self.observer.multiply(layer, inputs)

    def _see(self, layer: Layer, name: str, values: Array, wanted: _Wanted, found: Extremes | None = None) -> None:
        try:
            real = values.astype(np.float32, copy=False)
            counted = self._counts(layer.name, name)
            self.portions[name] = Portion.of(real, counted, wanted.moments, self.samples, found)
        except NotFinite as error:
            source = "the calibration data hold" if layer.type == "Input" else f"the layer '{layer.name}' makes"
            raise self.observer.graph.error(
                layer, f"{source} {error} in '{name}'", "every number has to be finite", "calibration-data"
            ) from None


def calibrate(
    graph: Graph,
    samples: Iterable[Sample],
    settings: Settings | None = None,
    done: Callable[[int], None] | None = None,
) -> Calibration:
    """The statistics of all tensors of a float graph over samples: inputs by the names of their tensors.

    `done(n)` is called after every n further samples. CompassError, naming the layer, where a value is NaN or infinite,
    and where there are no samples. An input that is the same number everywhere is a warning.
    """
    settings = settings or Settings()
    observer = _Observer(prepared(graph, settings), settings)
    count = 0
    # overflow shows in the results, and is told there
    with np.errstate(all="ignore"):
        watch = partial(_Watch, observer)
        for many, seen in run_all(observer.graph, samples, watch, observer.in_order, observer.by_itself):
            observer.take(seen)
            count += many
            if done:
                done(many)
    if not count:
        raise CompassError(
            "there are no calibration samples", code="calibration-data", help="give at least one, better a hundred"
        )
    for t in graph.inputs:
        record = observer.records.get(t.name)
        if record is not None and record.is_constant:
            warnings.warn(
                f"the input '{t.name}' is {record.least} everywhere in the calibration data: "
                "the ranges of all tensors are those of that one value",
                stacklevel=2,
            )
        elif record is not None and record.most - record.least < EPSILON:
            warnings.warn(
                f"the input '{t.name}' goes from {record.least:.3g} to {record.most:.3g} in the calibration data, which no scale "
                "tells apart: integers of it are 0",
                stacklevel=2,
            )
    return Calibration(observer.records, observer.moments, count)
