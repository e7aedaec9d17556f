"""How good a model is, by its outputs for samples whose answers are known."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from compass_core.arrays import Array
from compass_core.errors import CompassError, UsageError
from compass_core.errors.suggest import help_for
from compassc.evaluation.detection import MeanPrecision
from compassc.quantizer.programs import blamed

PLACES = (1, 5)


class Metric(Protocol):
    """A measure in two steps, of which the first may be done anywhere."""

    def of(self, outputs: Sequence[Array], label: object) -> object:
        """What is kept of a sample."""

    def total(self, kept: Sequence[Any]) -> Mapping[str, float]:
        """Numbers by their names, for what was kept of all samples in order."""


class TopK:
    """Classification: the share of samples whose class is the likeliest one, or among the five likeliest."""

    def of(self, outputs: Sequence[Array], label: object) -> tuple[int, int]:
        """The place of the right class, from 0, and how many there are. Of equal scores the first counts as higher.

        CompassError when the label is no class.
        """
        scores = np.asarray(outputs[0]).reshape(-1)
        right = np.asarray(label)
        if right.size != 1 or right.dtype.kind not in "iu" or not 0 <= int(right.reshape(-1)[0]) < scores.size:
            one = repr(right.reshape(-1)[0].item())[:40] if right.size == 1 else f"of the shape {list(right.shape)}"
            raise CompassError(
                f"the label {one} is none of the {scores.size} classes of the first output",
                code="evaluation-data",
                help=f"top-1 takes a whole number from 0 to {scores.size - 1}; for other tasks: --metric {OTHERS}",
            )
        at = int(right.reshape(-1)[0])
        better = int((scores > scores[at]).sum()) + int((scores[:at] == scores[at]).sum())
        return (scores.size if np.isnan(scores[at]) else better), scores.size

    def total(self, kept: Sequence[tuple[int, int]]) -> dict[str, float]:
        classes = max((n for _, n in kept), default=0)
        return {f"top-{k}": sum(at < k for at, _ in kept) / len(kept) for k in PLACES if k < classes and kept}


class Function:
    """A user's measure: `name(outputs, labels)` gives a number, or several by name.

    `outputs` has an array for each sample (a tuple of them where the model has several outputs), `labels` what the data
    set has for it.
    """

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        self._function = _loaded(path, name)

    def of(self, outputs: Sequence[Array], label: object) -> tuple[object, object]:
        return (outputs[0] if len(outputs) == 1 else tuple(outputs)), label

    def total(self, kept: Sequence[tuple[object, object]]) -> dict[str, float]:
        help = "it takes a list of outputs and a list of labels, and gives a number or several by name"
        with blamed(self.path, f"the metric '{self.name}' failed", code="evaluation-metric", help=help):
            found = self._function([outputs for outputs, _ in kept], [label for _, label in kept])
            named = found if isinstance(found, Mapping) else {self.name: found}
            return {str(key): float(value) for key, value in named.items()}

    def __reduce__(self) -> tuple[object, ...]:
        return Function, (self.path, self.name)


NAMED: dict[str, Callable[[], Metric]] = {
    "map": lambda: MeanPrecision(centred=False),
    "map-centred": lambda: MeanPrecision(centred=True),
}
"""Measures of other tasks than classification."""
OTHERS = " | ".join((*NAMED, "FILE.py:NAME"))


def metric_named(text: str | None) -> Metric:
    """The metric of `NAMED`, or for `FILE.py:NAME`; without a text `TopK`. UsageError when there is no such one."""
    if text is None:
        return TopK()
    if text in NAMED:
        return NAMED[text]()
    file, colon, name = text.rpartition(":")
    if not colon or not file.endswith(".py"):
        raise UsageError(f"'{text}' names no metric", code="usage", help=f"--metric {OTHERS}")
    return Function(Path(file).absolute(), name)


def _loaded(path: Path, name: str) -> Any:
    """The function of a Python file."""
    spec = importlib.util.spec_from_file_location(f"compassc_metric_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise UsageError(f"there is no file '{path}'", code="usage", help="--metric FILE.py:NAME")
    module = importlib.util.module_from_spec(spec)
    with blamed(path, "the file of the metric cannot be read", code="evaluation-metric"):
        spec.loader.exec_module(module)
    if not callable(found := getattr(module, name, None)):
        names = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise UsageError(
            f"'{path.name}' has no function '{name}'", code="usage", help=help_for(name, names, "functions")
        )
    return found
