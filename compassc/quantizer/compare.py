"""How near a quantised graph is to its float graph: the real numbers that its tensors stand for, layer by layer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from compass_core.arrays import Array
from compass_core.errors import CompassError
from compass_core.namedtuple import NamedTuple
from compassc.graph import Graph, Layer, Tensor
from compassc.graph.run import Compute, run_graph
from compassc.layers.declare import evaluator
from compassc.layers.real_values import to_raw, to_real
from compassc.quantizer.data import Samples
from compassc.quantizer.execute import Sample, run
from compassc.quantizer.job import is_float
from compassc.quantizer.similarity import Similarity

MEASURED = 16
"""Samples that are measured on, as many at most: fewer say little about networks whose samples differ."""


def _references() -> Compute:
    """The references, for several runs of a graph: what does not depend on its inputs is looked at in the first one."""
    prepared: dict[int, tuple[Layer, Callable[[Sequence[Array]], list[Array]]]] = {}

    def compute(layer: Layer, inputs: Sequence[Array]) -> list[Array]:
        if id(layer) not in prepared:
            prepared[id(layer)] = layer, evaluator(layer)
        return prepared[id(layer)][1](inputs)

    return compute


def run_quantised(graph: Graph, inputs: Sample, compute: Compute | None = None) -> dict[str, Array]:
    """What every tensor of a quantised graph stands for, by name, for real inputs: computed by the references."""
    made = run_graph(graph, {t.name: to_raw(t, inputs[t.name]) for t in graph.inputs}, compute)
    return {name: to_real(t, made[name]) for name, t in graph.tensors().items()}


class Compared(NamedTuple):
    """A tensor of both graphs, over the samples: the cosine, the mean squared error, and the ratio of signal to error in
    decibels (infinite for equal ones)."""

    name: str
    layer: str
    type: str
    cosine: float
    mse: float
    sqnr: float


def similarity(
    graph: Graph, quantised: Graph, samples: Iterable[Sample], limit: int | None = MEASURED,
    evaluate: Callable[[Graph, Sample], Mapping[str, Array]] | None = None,
) -> list[Compared]:  # fmt: skip
    """Of each tensor that both graphs have and that holds real numbers, in the graph's order; over `limit` samples.

    `evaluate(quantised, inputs)` gives what tensors stand for: by default the references, or the simulator.
    """
    evaluate = evaluate or partial(run_quantised, compute=_references())
    sums: dict[str, Similarity] = {}
    others = quantised.tensors()
    for sample in _some(samples, limit):
        values = evaluate(quantised, sample)

        def seen(layer: Layer, _: Sequence[Array], made: Sequence[Array], values: Mapping[str, Array] = values) -> None:
            _compare(layer.outputs, made, values, sums)

        run(graph, sample, seen)
    places = {t.name: layer for layer in graph.layers for t in layer.outputs}
    return [
        Compared(name, places[name].name, places[name].type, s.cosine, s.mse, s.sqnr)
        for name in places
        if (s := sums.get(name)) is not None and name in others
    ]


def _compare(
    tensors: Sequence[Tensor], made: Sequence[Array], values: Mapping[str, Array], sums: dict[str, Similarity]
) -> None:
    for t, array in zip(tensors, made, strict=True):
        if is_float(t) and t.name in values:
            sums.setdefault(t.name, Similarity()).add(values[t.name], array)


Known = Sequence[tuple[Sample, Mapping[str, Array]]]
"""Samples, and the outputs of a float graph by name."""


def known_outputs(graph: Graph, samples: Iterable[Sample], limit: int | None = MEASURED) -> Known:
    """What a float graph gives for samples."""
    ends = {t.name for t in graph.outputs}
    found = []
    for sample in _some(samples, limit):
        made: dict[str, Array] = {}

        def seen(layer: Layer, _: Sequence[Array], outputs: Sequence[Array], made: dict[str, Array] = made) -> None:
            made.update({t.name: a for t, a in zip(layer.outputs, outputs, strict=True) if t.name in ends})

        run(graph, sample, seen)
        found.append((sample, made))
    return found


def outputs_of(
    graph: Graph, quantised: Graph, samples: Iterable[Sample], limit: int | None = MEASURED
) -> list[Compared]:
    """The outputs of the graph that hold real numbers."""
    return against(graph, quantised, known_outputs(graph, samples, limit))


def against(graph: Graph, quantised: Graph, known: Known) -> list[Compared]:
    """The outputs of the graph that hold real numbers, where what they should be is known."""
    ends = {t.name: t for t in quantised.outputs}
    sums: dict[str, Similarity] = {}
    compute = _references()
    for sample, right in known:
        made = run_graph(quantised, {t.name: to_raw(t, sample[t.name]) for t in quantised.inputs}, compute)
        for t in graph.outputs:
            if is_float(t) and t.name in ends:
                sums.setdefault(t.name, Similarity()).add(to_real(ends[t.name], made[t.name]), right[t.name])
    places = graph.producer()
    return [Compared(name, places[name].name, places[name].type, s.cosine, s.mse, s.sqnr) for name, s in sums.items()]


def output_cosine(graph: Graph, quantised: Graph, samples: Iterable[Sample], limit: int | None = MEASURED) -> float:
    """The smallest cosine of an output of the graph. CompassError where no output holds real numbers."""
    rows = outputs_of(graph, quantised, samples, limit)
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
