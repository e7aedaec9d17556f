"""Runs a part of a data set through everything that is compared, and adds up what parts give."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compass_core.namedtuple import NamedTuple
from compassc.evaluation.measures import Histogram
from compassc.evaluation.metrics import Metric
from compassc.evaluation.subjects import FLOATS, FRAMEWORK, INTEGERS, SIMULATOR, Subjects, Values, outputs_of
from compassc.graph import Graph, Layer, LayerError, Tensor, text
from compassc.graph.dtypes import FLOAT_TYPES
from compassc.layers.real_values import stands_for_itself
from compassc.layers.threads import blas_on_one_thread
from compassc.models.model import Model
from compassc.quantizer import execute
from compassc.quantizer.similarity import Similarity

LOOKED_INTO = 1
"""Samples for which the simulator shows every tensor of a quantised model; the outputs are compared for all."""
Item = tuple[int, Mapping[str, Array], object]
"""The number of a sample, its inputs by tensor, its label."""


class Asked(NamedTuple):
    """What is measured: `metric`, None without labels; `detail`: histograms, too; `referenced`: the references compute only
    samples of smaller numbers, None for all; `labels`: what the labels are of, as errors call it; `rows`:
    the labels of what a run takes, each about one entry of the outputs' first axis."""

    metric: Metric | None = None
    detail: bool = False
    referenced: int | None = None
    labels: str = "the data"
    rows: int = 1


@dataclass
class Agreement:
    """How many arrays of the simulator are those of the references, bit for bit, where the model computes with integers
    alone; `first`: what differs first."""

    same: int = 0
    total: int = 0
    first: tuple[int, str] | None = None

    def add(self, same: bool, sample: int, name: str) -> None:
        self.same += same
        self.total += 1
        if not same and (self.first is None or (sample, name) < self.first):
            self.first = sample, name

    def merge(self, other: Agreement) -> None:
        self.same, self.total = self.same + other.same, self.total + other.total
        self.first = min((f for f in (self.first, other.first) if f is not None), default=None)


@dataclass
class LayerPart:
    """What was measured of a tensor. `own`: the error that its layer adds, given what the layer got. `outside`: how many
    of `values` float values lie beyond the range that the quantised tensor can hold."""

    similarity: Similarity = field(default_factory=Similarity)
    own: Similarity = field(default_factory=Similarity)
    histogram: Histogram = field(default_factory=Histogram)
    outside: int = 0
    values: int = 0

    def merge(self, other: LayerPart) -> None:
        self.similarity.merge(other.similarity)
        self.own.merge(other.own)
        self.histogram.merge(other.histogram)
        self.outside += other.outside
        self.values += other.values


@dataclass
class Part:
    """What some samples gave; parts add up to the whole."""

    count: int = 0
    kept: dict[str, dict[int, Any]] = field(default_factory=dict)
    """Subject -> sample -> what the metric keeps of it."""
    outputs: dict[str, Similarity] = field(default_factory=dict)
    """Subject -> how near its outputs are to those of the first one."""
    layers: dict[str, LayerPart] = field(default_factory=dict)
    agreement: Agreement = field(default_factory=Agreement)
    titles: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    """Subject -> how many samples it was asked for."""

    def merge(self, other: Part) -> None:
        """Adds what other samples gave."""
        self.count += other.count
        for name, kept in other.kept.items():
            self.kept.setdefault(name, {}).update(kept)
        for name, similarity in other.outputs.items():
            self.outputs.setdefault(name, Similarity()).merge(similarity)
        for name, layer in other.layers.items():
            self.layers.setdefault(name, LayerPart()).merge(layer)
        self.agreement.merge(other.agreement)
        self.titles.update(other.titles)
        for name, count in other.counts.items():
            self.counts[name] = self.counts.get(name, 0) + count


@dataclass(frozen=True)
class Content:
    """A model as bytes, for processes on other machines."""

    graph: tuple[str, bytes]
    floats: tuple[str, bytes] | None
    binary: bytes
    framework: bytes | None

    @classmethod
    def of(cls, model: Model, framework: bytes | None) -> Content:
        floats = text.write(model.floats) if model.quantised and model.floats is not None else None
        return cls(text.write(model.graph), floats, model.path.read_bytes(), framework)

    @property
    def key(self) -> str:
        """Tells contents apart."""
        parts = [
            self.graph[0].encode(),
            self.graph[1],
            *((self.floats[0].encode(), self.floats[1]) if self.floats else ()),
        ]
        return hashlib.sha256(b"\0".join([*parts, self.binary, self.framework or b""])).hexdigest()

    def subjects(self) -> Subjects:
        """What is compared, made of the bytes."""
        keep = TemporaryDirectory(prefix="compassc-")
        path = Path(keep.name, "aipu.bin")
        path.write_bytes(self.binary)
        graph = text.read(*self.graph, "")
        floats = text.read(*self.floats, "") if self.floats else graph
        model = Model(graph, floats, path, Path(keep.name))
        model._keep = keep
        return Subjects(model, self.framework)


_contents: dict[str, Content] = {}


@lru_cache(maxsize=2)
def _subjects(key: str) -> Subjects:
    return _contents[key].subjects()


def run_elsewhere(content: Content, key: str, items: Sequence[Item], asked: Asked) -> Part:
    """`run_part` in a process that has only bytes; what is made of them is kept for further parts."""
    _contents.clear()
    _contents[key] = content
    return run_part(_subjects(key), items, asked)


def run_part(subjects: Subjects, items: Sequence[Item], asked: Asked) -> Part:
    """Measures on some samples."""
    part = Part(titles={name: subjects.title(name) for name in subjects.names})
    first = [item for item in items if asked.referenced is None or item[0] < asked.referenced]
    with blas_on_one_thread():
        for some, by_references in ((first, True), (items[len(first) :], False)):
            size = subjects.at_once([sample for _, sample, _ in some]) if by_references else 1
            for i in range(0, len(some), size):
                _measure(subjects, some[i : i + size], part, asked, by_references)
    return part


def _measure(subjects: Subjects, items: Sequence[Item], part: Part, asked: Asked, by_references: bool) -> None:
    """Adds what some samples give that the references can compute together."""
    part.count += len(items)
    made = _outputs(subjects, items, part, asked.detail, by_references)
    known = made.get(subjects.names[0])
    for name, outputs in made.items():
        part.counts[name] = part.counts.get(name, 0) + len(items)
        for (number, _, label), own, right in zip(items, outputs, known or outputs, strict=True):
            if known is not None:
                part.outputs.setdefault(name, Similarity()).add(_flat(own), _flat(right), number)
            if asked.metric is not None:
                part.kept.setdefault(name, {}).update(_kept(asked.metric, asked, number, own, label))


def _kept(metric: Metric, asked: Asked, run: int, outputs: Sequence[Array], label: Any) -> dict[int, Any]:
    """What the metric keeps of the samples of a run, by their numbers."""
    found, first = {}, run * asked.rows
    for row in range(asked.rows):
        of_row = (outputs, label) if asked.rows == 1 else ([one[row] for one in outputs], label[row])
        try:
            found[first + row] = metric.of(*of_row)
        except CompassError as error:
            where = f"{asked.labels}, sample {first + row}: {error.message}"
            raise CompassError(where, code=error.code, help=error.help) from None
    return found


def _flat(arrays: Sequence[Array]) -> Array:
    return np.concatenate([a.reshape(-1) for a in arrays])


def _outputs(
    subjects: Subjects, items: Sequence[Item], part: Part, detail: bool, by_references: bool
) -> dict[str, list[list[Array]]]:
    """By subject the outputs for each sample; what there is to measure of single tensors goes into `part`."""
    model = subjects.model
    numbers, samples = [number for number, _, _ in items], [sample for _, sample, _ in items]
    raw_inputs = [model.raw_inputs(sample) for sample in samples]
    made: dict[str, list[list[Array]]] = {}
    if FRAMEWORK in subjects.names:
        made[FRAMEWORK] = [subjects.framework.run(sample) for sample in samples]
    if by_references and model.floats is not None:
        floats = subjects.floats.values(samples)
        made[FLOATS] = outputs_of(model.floats, floats)
        if detail:
            _spread(model, model.floats, floats, part)
    if by_references and model.quantised:
        integers = subjects.integers.values(raw_inputs)
        made[INTEGERS] = outputs_of(model.graph, integers)
    seen = [
        model.all_tensors(raw)
        if by_references and model.rpc_sess is None and (number < LOOKED_INTO or not model.quantised)
        else model.run(raw, raw=True)
        for number, raw in zip(numbers, raw_inputs, strict=True)
    ]
    made[SIMULATOR] = [outputs_of(model.graph, one)[0] for one in seen]
    if by_references and model.exact and model.quantised:
        _agree(seen, integers, numbers, part)
    if by_references and model.floats is not None:
        real = [subjects.real(one) for one in ([integers] if model.quantised else seen)]
        reals = real[0] if model.quantised else {name: np.stack([one[name] for one in real]) for name in real[0]}
        _compare(model.floats, floats, reals, numbers, part)
        if model.quantised:
            _own(subjects.floats.graph_of(len(items)), reals, numbers, part)
    return made


def _agree(seen: Sequence[Values], integers: Values, numbers: Sequence[int], part: Part) -> None:
    """Whether what the simulator gave for each sample is what the references did, which lies one behind the other."""
    for i, (number, one) in enumerate(zip(numbers, seen, strict=True)):
        for name, array in one.items():
            if name in integers:
                known = integers[name].reshape(len(numbers), -1)[i].astype(array.dtype)
                part.agreement.add(array.tobytes() == known.tobytes(), number, name)


def compared(graph: Graph) -> list[tuple[Layer, Tensor]]:
    """The tensors of a float graph that are compared with others, and their layers."""
    return [
        (layer, t)
        for layer in graph.layers
        if layer.type != "Constant"
        for t in layer.outputs
        if t.dtype in FLOAT_TYPES
    ]


def _compare(graph: Graph, floats: Values, reals: Values, numbers: Sequence[int], part: Part) -> None:
    """How near tensors are to those of the float graph."""
    for _, t in compared(graph):
        if t.name in reals and reals[t.name].size == floats[t.name].size:
            part.layers.setdefault(t.name, LayerPart()).similarity.add_rows(reals[t.name], floats[t.name], numbers)


def _own(graph: Graph, reals: Values, numbers: Sequence[int], part: Part) -> None:
    """The errors that layers add themselves: the float layer gets what the quantised one got."""
    known = {**reals, **_constants(graph)}
    for layer in graph.computing():
        inputs = [known[t.name] for t in layer.inputs if t.name in known and known[t.name].shape == t.shape]
        if len(inputs) < len(layer.inputs) or not any(t.dtype in FLOAT_TYPES for t in layer.outputs):
            continue
        try:
            outputs = execute.compute(layer, inputs)
        except LayerError:  # a form that only the quantised layer has; nothing is said of its own error then
            continue
        for t, right in zip(layer.outputs, outputs, strict=True):
            if t.name in reals and reals[t.name].size == right.size:
                part.layers.setdefault(t.name, LayerPart()).own.add_rows(reals[t.name], right, numbers)


def _constants(graph: Graph) -> dict[str, Array]:
    """Constant tensors of a graph by name."""
    return {
        layer.output.name: layer.constant("weights").reshape(layer.output.shape)
        for layer in graph.layers
        if layer.type == "Constant"
    }


def _spread(model: Model, graph: Graph, floats: Values, part: Part) -> None:
    """Histograms of the float graph's tensors, and how much lies beyond what the quantised ones hold."""
    built = model.graph.tensors()
    for _, t in compared(graph):
        layer = part.layers.setdefault(t.name, LayerPart())
        layer.histogram.add(floats[t.name])
        limits = range_of(built[t.name]) if t.name in built else None
        if limits is not None:
            values = floats[t.name]
            layer.outside += int(((values < limits[0]) | (values > limits[1])).sum())
            layer.values += values.size


def range_of(tensor: Tensor) -> tuple[float, float] | None:
    """The real numbers that a quantised tensor reaches, and half a step beyond; None for others, and for several scales."""
    if stands_for_itself(tensor) or isinstance(tensor.scale, tuple) or isinstance(tensor.zero, tuple):
        return None
    low, high = tensor.low - 0.5 + tensor.zero, tensor.high + 0.5 + tensor.zero
    return low / tensor.scale, high / tensor.scale
