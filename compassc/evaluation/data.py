"""Data sets with answers: samples, as calibration has them, and a label for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compass_core.reading import arrays
from compassc.graph import Graph
from compassc.models.ends import short_name
from compassc.quantizer import data
from compassc.quantizer.data import LABELS, Pictures, Samples
from compassc.quantizer.pictures import pictures_in
from compassc.quantizer.programs import program_of


@dataclass(frozen=True)
class DataSet:
    """Samples by number, and a label for each; None where there are no answers. `source`: where labels are, as errors call it.
    `rows`: of a model whose run takes several samples at once, so many labels belong to what a run takes."""

    samples: Samples
    labels: Sequence[object] | None = None
    source: str = "the data"
    rows: int = 1

    def __len__(self) -> int:
        return len(self.samples)

    def part(self, numbers: Sequence[int]) -> list[tuple[int, Mapping[str, Array], object]]:
        """Some of the samples, with their numbers and labels."""
        return [(i, self.samples[i], None if self.labels is None else self.labels[i]) for i in numbers]


def load(
    source: Any, graph: Graph, labels: Any = None, pictures: Pictures | None = None, limit: int | None = None
) -> DataSet:
    """The data set of a source: an .npz file with the inputs and `labels` by name, an .npy file, a folder of images (of
    which those below it are the classes), FILE.py:NAME of a data set class, arrays, or a sequence of samples.

    `labels`: an array, or the file of one, instead of what the source has. CompassError where names, shapes or numbers of
    samples do not fit.
    """
    graph = data.without_states(graph, source)
    found: Any = None
    name = next((f"'{one}'" for one in (labels, source) if isinstance(one, (str, Path))), "the data")
    if isinstance(source, (str, Path)):
        source, found = _opened(Path(source), graph)
    elif isinstance(source, Mapping):
        source, found = _apart({str(k): np.asarray(v) for k, v in source.items()}, graph)
    elif _has_labels(source, graph):
        found = _Second(source)
    whole = data.load(source, graph, pictures)
    samples = whole if limit is None else whole.first(limit)
    if labels is not None:
        found = arrays.load(Path(labels), "labels") if isinstance(labels, (str, Path)) else np.asarray(labels)
    rows = _rows(graph)
    if found is None or len(found) in (len(whole), len(samples)):
        return DataSet(samples, found, name)
    if len(found) != rows * len(whole):
        raise CompassError(
            f"there are {len(found)} labels for {rows * len(whole)} samples",
            code="evaluation-data",
            help="give one for each sample",
        )
    return DataSet(
        samples, [[found[i] for i in range(n * rows, n * rows + rows)] for n in range(len(whole))], name, rows
    )


def _rows(graph: Graph) -> int:
    """How many samples a run takes: what all inputs and outputs have along their first axis."""
    first = {t.shape[:1] for t in (*graph.inputs, *graph.outputs)}
    return next(iter(first))[0] if len(first) == 1 and () not in first else 1


def _opened(path: Path, graph: Graph) -> tuple[object, object]:
    """What a path holds, and the labels in it."""
    if path.is_dir():
        return path, _folders(path)
    if arrays.kind(path) == "npz":
        return _apart({name: arrays.load(path, name) for name in arrays.names_in(path)}, graph)
    program, colon, name = str(path).rpartition(":")
    if colon and program.endswith(".py") and not path.exists():
        dataset = program_of(Path(program), name)
        return dataset, _Second(dataset) if _has_labels(dataset, graph) else None
    return path, None


def _apart(named: Mapping[str, Array], graph: Graph) -> tuple[Mapping[str, Array], object]:
    """Arrays without the labels, and these."""
    inputs = {name for t in graph.inputs for name in (t.name, short_name(graph, t))}
    at = next((n for n in LABELS if n in named and n not in inputs and len(named) > 1), None)
    renamed = {short_name(graph, t): t.name for t in graph.inputs}
    rest = {renamed.get(n, n): a for n, a in named.items() if n != at}
    return rest, None if at is None else named[at]


def _folders(folder: Path) -> Sequence[object] | None:
    """The classes of images: the folders that they lie in, numbered in the order of their names."""
    files = pictures_in(folder)
    names = sorted({p.parent.name for p in files if p.parent != folder})
    if len(names) < 2 or any(p.parent.parent != folder for p in files):
        return None
    return [names.index(p.parent.name) for p in files]


def _has_labels(dataset: Any, graph: Graph) -> bool:
    """Whether the samples of a sequence are pairs of inputs and a label."""
    if isinstance(dataset, (Samples, np.ndarray)) or not hasattr(dataset, "__len__") or not len(dataset):
        return False
    first = dataset[0]
    several = (
        len(graph.inputs) > 1 and isinstance(first, (tuple, list)) and not isinstance(first[0], (tuple, list, Mapping))
    )
    return isinstance(first, (tuple, list)) and len(first) == 2 and not several


class _Second(Sequence[object]):
    """The labels of a sequence of pairs."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, index: Any) -> Any:
        return self._dataset[index][1]
