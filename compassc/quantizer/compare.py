"""How near a quantised graph is to its float graph: the real numbers that its tensors stand for, layer by layer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from compass_core.errors import CompassError
from compassc.graph import Graph, Layer, Tensor
from compassc.graph.dtypes import numpy_dtype
from compassc.layers.arithmetic import Array, dequantise
from compassc.layers.chain import run_graph
from compassc.quantizer.data import Samples
from compassc.quantizer.execute import Sample, run
from compassc.quantizer.job import is_float
from compassc.quantizer.numbers import stored


def real_numbers(values: Array, t: Tensor) -> Array:
    """What the elements of a tensor stand for, float32; integers that are what they look like as they are."""
    if is_float(t):
        return values.astype(np.float32)
    if t.scale == 1.0 and t.zero == 0:
        return values
    shape = [1] * values.ndim
    if isinstance(t.scale, tuple):
        shape[t.axis if t.axis is not None else -1] = len(t.scale)
        return dequantise(values.astype(np.int64), np.reshape(t.scale, shape), np.reshape(t.zero, shape))
    return dequantise(values.astype(np.int64), t.scalar_scale, t.scalar_zero)


def as_stored(values: Array, t: Tensor) -> Array:
    """Real numbers as an input of a quantised graph holds them; integers as they are."""
    if is_float(t) or values.dtype.kind in "iub" or t.scale == 1.0 and t.zero == 0:
        return values.astype(numpy_dtype(t.dtype), copy=False)
    return stored(values, t)


def run_quantised(graph: Graph, inputs: Sample) -> dict[str, Array]:
    """What every tensor of a quantised graph stands for, by name, for real inputs: computed by the references."""
    made = run_graph(graph, {t.name: as_stored(inputs[t.name], t) for t in graph.inputs})
    return {name: real_numbers(made[name], t) for name, t in graph.tensors().items()}


class Similarity(NamedTuple):
    """Of a tensor in both graphs, over the samples: the cosine, the mean squared error, and the ratio of signal to
    error in decibels (infinite for equal ones)."""

    name: str
    layer: str
    type: str
    cosine: float
    mse: float
    sqnr: float


class Sums:
    """Sums of products of two arrays, sample by sample."""

    def __init__(self) -> None:
        self.ab = self.aa = self.bb = self.ee = 0.0
        self.count = 0

    def add(self, a: Array, b: Array) -> None:
        """`a` is what is right."""
        x, y = (v.reshape(-1).astype(np.float64) for v in (a, b))
        self.ab += float(x @ y)
        self.aa += float(x @ x)
        self.bb += float(y @ y)
        self.ee += float(((x - y) ** 2).sum())
        self.count += x.size

    @property
    def cosine(self) -> float:
        """1 where both are zero everywhere, 0 where one of them is."""
        if not self.aa or not self.bb:
            return 1.0 if self.aa == self.bb else 0.0
        return self.ab / float(np.sqrt(self.aa) * np.sqrt(self.bb))

    @property
    def mse(self) -> float:
        return self.ee / max(self.count, 1)

    @property
    def sqnr(self) -> float:
        if not self.ee:
            return float("inf")
        return 10 * float(np.log10(self.aa / self.ee)) if self.aa else float("-inf")


def similarity(
    graph: Graph, quantised: Graph, samples: Iterable[Sample], limit: int | None = 8,
    evaluate: Callable[[Graph, Sample], Mapping[str, Array]] = run_quantised,
) -> list[Similarity]:  # fmt: skip
    """Of each tensor that both graphs have and that holds real numbers, in the graph's order; over `limit` samples.

    `evaluate(quantised, inputs)` gives what tensors stand for: the references, or the simulator.
    """
    sums: dict[str, Sums] = {}
    others = quantised.tensors()
    for sample in _some(samples, limit):
        values = evaluate(quantised, sample)

        def seen(layer: Layer, _: Sequence[Array], made: Sequence[Array], values: Mapping[str, Array] = values) -> None:
            _compare(layer.outputs, made, values, sums)

        run(graph, sample, seen)
    places = {t.name: layer for layer in graph.layers for t in layer.outputs}
    return [
        Similarity(name, places[name].name, places[name].type, s.cosine, s.mse, s.sqnr)
        for name in places
        if (s := sums.get(name)) is not None and name in others
    ]


def _compare(
    tensors: Sequence[Tensor], made: Sequence[Array], values: Mapping[str, Array], sums: dict[str, Sums]
) -> None:
    for t, array in zip(tensors, made, strict=True):
        if is_float(t) and t.name in values:
            sums.setdefault(t.name, Sums()).add(array, values[t.name])


def output_cosine(graph: Graph, quantised: Graph, samples: Iterable[Sample], limit: int | None = 8) -> float:
    """The smallest cosine of an output of the graph. CompassError where no output holds real numbers."""
    ends = {t.name for t in graph.outputs}
    rows = [row for row in similarity(graph, quantised, samples, limit) if row.name in ends]
    if not rows:
        raise CompassError(
            "no output of the graph holds real numbers, of which a cosine could be told", code="calibration-data"
        )
    return min(row.cosine for row in rows)


def _some(samples: Iterable[Sample], limit: int | None) -> Iterable[Sample]:
    if limit is None:
        return samples
    if isinstance(samples, Samples):
        return samples.first(limit)
    return [s for s, _ in zip(samples, range(limit), strict=False)]
