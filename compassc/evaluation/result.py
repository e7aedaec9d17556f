"""What an evaluation found, as numbers: for the terminal, the page and programs alike."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from compass_core.dataclass import dataclass
from compass_runtime.profile.result import LayerRun, Profile
from compassc.evaluation.measures import Histogram
from compassc.evaluation.running import Agreement, LayerPart, Part, compared, range_of
from compassc.evaluation.subjects import INTEGERS, SIMULATOR
from compassc.models.model import Model
from compassc.quantizer.similarity import Similarity


@dataclass(frozen=True)
class SubjectResult:
    """How a subject did on `samples`: `metrics` by name, and how near its outputs are to those of the first subject."""

    name: str
    title: str
    metrics: Mapping[str, float]
    similarity: Similarity
    samples: int

    def as_data(self) -> dict[str, object]:
        own = {"name": self.name, "title": self.title, "samples": self.samples, "metrics": dict(self.metrics)}
        return {**own, **self.similarity.as_data()}


@dataclass(frozen=True)
class LayerResult:
    """A tensor and the layer that makes it.

    `similarity`: to the float graph, with all errors of the layers before; `own`: with the error of this layer alone,
    where both graphs have what it takes. `limits`: the real numbers that the quantised tensor reaches. `outside`: the
    share of float values beyond them; `run`: the launch it is part of.
    """

    tensor: str
    layer: str
    type: str
    dtype: str
    bytes: int
    similarity: Similarity
    own: Similarity | None
    histogram: Histogram | None
    limits: tuple[float, float] | None
    outside: float
    launch: int | None
    run: LayerRun | None

    @property
    def cycles(self) -> float:
        """Of the launch."""
        return self.run.cycles if self.run else 0.0

    def as_data(self) -> dict[str, object]:
        return {
            "tensor": self.tensor,
            "layer": self.layer,
            "type": self.type,
            "dtype": self.dtype,
            "bytes": self.bytes,
            **self.similarity.as_data(),
            "own": self.own.as_data() if self.own else None,
            "limits": list(self.limits) if self.limits else None,
            "outside": self.outside,
            "launch": self.launch,
            "cycles": round(self.cycles, 1) if self.run else None,
            "histogram": self.histogram.as_data() if self.histogram else None,
        }


@dataclass(frozen=True)
class Evaluation:
    """What an evaluation found. `profile`: of the first sample's run."""

    model: Model
    part: Part
    metrics: Mapping[str, Mapping[str, float]]
    profile: Profile | None = None
    missing: str = ""
    """Why there is no reference of the model's framework."""
    rows: int = 1
    """Samples that a run takes, each with a label."""

    @property
    def samples(self) -> int:
        return self.part.count * self.rows

    @property
    def agreement(self) -> Agreement:
        """Of simulator and exact references, for a quantised model."""
        return self.part.agreement

    @cached_property
    def subjects(self) -> list[SubjectResult]:
        """In the order they are compared."""
        part, found = self.part, []
        for name, title in part.titles.items():
            count = part.counts.get(name, 0) * self.rows
            title = title if count == self.samples else f"{title}, {count} sample{'s' * (count != 1)}"
            similarity = part.outputs.get(name, Similarity())
            found.append(SubjectResult(name, title, self.metrics.get(name, {}), similarity, count))
        return found

    @cached_property
    def layers(self) -> list[LayerResult]:
        """In the graph's order."""
        made = self.model.graph.tensors()
        launches = self._launches()
        runs = self.profile.layers if self.profile else []
        found = []
        for layer, t in compared(self.model.floats) if self.model.floats is not None else ():
            part = self.part.layers.get(t.name, LayerPart())
            if not part.similarity.samples:
                continue
            built = made[t.name]
            at = launches.get(t.name)
            item = 2 if built.dtype.endswith("16") else 1 if built.dtype.endswith("8") else 4
            found.append(
                LayerResult(
                    t.name,
                    layer.name,
                    layer.type,
                    built.dtype,
                    built.count * item,
                    part.similarity,
                    part.own if part.own.samples else None,
                    part.histogram if part.histogram.counts.size else None,
                    range_of(built),
                    part.outside / part.values if part.values else 0.0,
                    at,
                    runs[at] if at is not None and at < len(runs) else None,
                )
            )
        return found

    @property
    def worst(self) -> list[LayerResult]:
        """Those farthest from the float graph first."""
        return sorted(self.layers, key=lambda row: _badness(row.similarity))

    def _launches(self) -> dict[str, int]:
        """The launch that makes a tensor, by the tensor's name; those inside of kernels, too."""
        note = self.model.program.note
        found: dict[str, int] = {}
        for i, launch in enumerate(note.launches if note else ()):
            found.update(dict.fromkeys((*launch.inner, *launch.outputs), i))
            for name in launch.names:
                layer = self._by_layer.get(name)
                found.update({t.name: i for t in layer.outputs} if layer is not None else {})
        return found

    @cached_property
    def _by_layer(self) -> Mapping[str, Any]:
        return {layer.name: layer for layer in self.model.graph.layers}

    def metric(self, name: str, subject: str = SIMULATOR) -> float:
        """A metric of a subject. KeyError where there is none."""
        return self.metrics[subject][name]

    def as_data(self) -> dict[str, object]:
        """Dictionaries, lists, numbers and texts."""
        return {
            "model": self.model.name,
            "target": self.model.target,
            "samples": self.samples,
            "missing": self.missing or None,
            "subjects": [subject.as_data() for subject in self.subjects],
            "simulator_equals_references": {"same": self.agreement.same, "of": self.agreement.total}
            if self.agreement.total
            else None,
            "cycles": self.profile.cycles if self.profile else None,
            "layers": [row.as_data() for row in self.layers],
        }

    @property
    def baseline(self) -> str:
        """What the layers of the float graph are compared with."""
        return INTEGERS if self.model.quantised else SIMULATOR


def _badness(similarity: Similarity) -> float:
    """For sorting: the signal to noise, of NaN below all."""
    return -math.inf if math.isnan(similarity.sqnr) else similarity.sqnr
