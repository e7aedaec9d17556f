"""Calibration: what the values of each tensor are like while the float graph runs on samples."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from compass_core.arrays import Array
from compass_core.errors import CompassError
from compassc.graph import Graph, Layer
from compassc.graph.dtypes import FLOAT_TYPES
from compassc.quantizer.execute import Sample, run_all
from compassc.quantizer.inner_values import INSIDE
from compassc.quantizer.numbers import EPSILON
from compassc.quantizer.prepare import prepared
from compassc.quantizer.settings import LayerSettings, Settings
from compassc.quantizer.statistics import Calibration, Moments, NotFinite, Record
from compassc.quantizer.strategies import parse
from compassc.quantizer.tables import has_table
from compassc.quantizer.weight_operands import rows_of


class _Observer:
    """Takes the values of all layers in, as far as the settings need them."""

    def __init__(self, graph: Graph, settings: Settings) -> None:
        self.graph, self.settings = graph, settings
        self.records: dict[str, Record] = {}
        self.moments: dict[str, Moments] = {}
        self.wanted = {layer.name: settings.of(layer) for layer in graph.layers}
        self.counted = {layer.input.name for layer in graph.layers if has_table(layer)}
        """Tensors whose values tell how large a table has to be."""

    @property
    def in_order(self) -> bool:
        """Whether the order of samples counts, so that each has to be known by itself."""
        return any(parse(w.activation_strategy).entry.running for w in self.wanted.values())

    def __call__(self, layer: Layer, inputs: Sequence[Array], outputs: Sequence[Array], samples: int) -> None:
        if layer.type == "Constant":
            return
        wanted = self.wanted[layer.name]
        for t, values in zip(layer.outputs, outputs, strict=True):
            if t.dtype in FLOAT_TYPES:
                self._observe(layer, t.name, values, wanted, samples)
        if wanted.float:
            return
        inside = INSIDE.get(layer.type)
        for name, values in (inside(layer, *inputs) if inside else {}).items():
            self._observe(layer, f"{layer.name}/{name}", values, wanted, samples)
        if self.settings.correct_biases or wanted.rounding == "adaptive":
            self._multiply(layer, inputs, wanted.rounding == "adaptive")

    def _observe(self, layer: Layer, name: str, values: Array, wanted: LayerSettings, samples: int) -> None:
        strategy = parse(wanted.activation_strategy)
        record = self.records.setdefault(name, Record())
        try:
            record.observe(
                values.astype(np.float32, copy=False), strategy.histogram or name in self.counted, strategy.entry.moments,
                self.settings.momentum, samples,
            )  # fmt: skip
        except NotFinite as error:
            source = "the calibration data hold" if layer.type == "Input" else f"the layer '{layer.name}' makes"
            raise self.graph.error(
                layer, f"{source} {error} in '{name}'", "every number has to be finite", "calibration-data"
            ) from None

    def _multiply(self, layer: Layer, inputs: Sequence[Array], products: bool) -> None:
        rows = rows_of(layer, inputs)
        if rows is None:
            return
        groups, _, size = rows.shape
        if layer.name not in self.moments:
            zeros = np.zeros((groups, size, size)) if products else None
            self.moments[layer.name] = Moments(np.zeros((groups, size)), zeros)
        self.moments[layer.name].observe(rows, products)


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
    # overflow shows in the results, and is told there
    with np.errstate(all="ignore"):
        count = run_all(observer.graph, samples, observer, done, observer.in_order)
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
