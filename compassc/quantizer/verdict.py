"""The verdict on a quantised graph: how near its outputs are on samples that it was not calibrated with, which layers lose
most, and what to do about these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compassc.graph import Graph, Layer, LayerError, Tensor
from compassc.layers.declare import evaluate
from compassc.layers.real_values import to_raw, to_real
from compassc.quantizer.compare import MEASURED, Compared, outputs_of
from compassc.quantizer.data import Samples
from compassc.quantizer.execute import compute, run
from compassc.quantizer.job import is_float
from compassc.quantizer.settings import Settings
from compassc.quantizer.similarity import Similarity

NEAR_COSINE, NEAR_SQNR = 0.99, 20.0
"""Below one of them an output is a warning."""
ENOUGH, ENOUGH_SQNR = 0.999, 40.0
"""Outputs of this cosine, or a layer that keeps so many dB itself, need no advice."""
HELD_BACK = 5
"""Every fifth sample is kept from calibration, of as many at least."""
WORST = 3
LONELY = 30.0
"""A largest value so many times the root mean square is alone far out."""


@dataclass(frozen=True)
class Loss:
    """A layer's own error, its inputs being right: signal to error in dB of its worst output, and how many times the root mean
    square the largest value is."""

    layer: Layer
    sqnr: float
    reach: float


@dataclass(frozen=True)
class Verdict:
    """`outputs` of the graph over `samples` samples, which were `held_back` from calibration or not; the `worst` layers, the
    first one worst, with what to do."""

    outputs: tuple[Compared, ...]
    worst: tuple[tuple[Loss, str], ...]
    samples: int
    held_back: bool

    @property
    def cosine(self) -> float:
        """Of the worst output."""
        return min((row.cosine for row in self.outputs), default=1.0)

    @property
    def sqnr(self) -> float:
        """Of the worst output, in dB."""
        return min((row.sqnr for row in self.outputs), default=np.inf)

    @property
    def is_far(self) -> bool:
        """Whether an output is below what goes without a warning; so is one that is no number."""
        return not (self.cosine >= NEAR_COSINE and self.sqnr >= NEAR_SQNR)

    def lines(self) -> Iterator[str]:
        """The verdict as text."""
        many = "1 sample" if self.samples == 1 else f"{self.samples} samples"
        yield f"on {many} {'held back from calibration' if self.held_back else 'of the calibration'}:"
        for row in self.outputs:
            yield f"  output '{row.name}': cosine {row.cosine:.5f}, {_decibels(row.sqnr)}"
        for loss, advice in self.worst:
            yield f"  '{loss.layer.name}' ({loss.layer.type}) keeps {_decibels(loss.sqnr)}: {advice}"

    def check(self, min_cosine: float | None, min_sqnr: float | None) -> None:
        """CompassError where an output is further off than asked for."""
        faults = []
        if min_cosine is not None and not self.cosine >= min_cosine:
            faults.append(f"has a cosine of {self.cosine:.5f}, less than {min_cosine:g}")
        if min_sqnr is not None and not self.sqnr >= min_sqnr:
            faults.append(f"keeps {_decibels(self.sqnr)}, less than {min_sqnr:g} dB")
        if faults:
            help = "\n".join((*self.lines(), "--quantize auto looks for a mixture of forms that is near enough"))
            raise CompassError(f"the worst output {' and '.join(faults)}", code="quantize-settings", help=help)


def _decibels(ratio: float) -> str:
    return f"{ratio:.1f} dB" if np.isfinite(ratio) else "everything" if ratio > 0 else "nothing"


def parted(samples: Samples) -> tuple[Samples, Samples, bool]:
    """(samples to calibrate with, samples to measure on, whether these are others)."""
    count = len(samples)
    if count < HELD_BACK:
        return samples, samples.first(MEASURED), False
    held = list(range(HELD_BACK - 1, count, HELD_BACK))
    others = [i for i in range(count) if i % HELD_BACK != HELD_BACK - 1]
    return _picked(samples, others), _picked(samples, held[:: max(1, len(held) // MEASURED)][:MEASURED]), True


def _picked(samples: Samples, which: Sequence[int]) -> Samples:
    return Samples(len(which), lambda i: samples.get(which[i]))


def _as_float(t: Tensor, raw: Array, right: Array) -> Array:
    """What integers stand for, in the type of the float graph."""
    return to_real(t, raw).astype(right.dtype) if right.dtype.kind == "f" else right


def own_losses(graph: Graph, quantised: Graph, samples: Samples) -> list[Loss]:
    """What each layer of the quantised graph loses itself, against the float layer on what its integers stand for, in the
    graph's order."""
    layers = {layer.name: layer for layer in quantised.layers if layer.is_quantised}
    sums: dict[str, list[Similarity]] = {}
    most: dict[str, float] = {}

    def seen(layer: Layer, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        other = layers.get(layer.name)
        if other is None or layer.type == "Constant" or not any(is_float(t) for t in layer.outputs):
            return
        if layer.type == "Input":
            made = [to_raw(t, a) for a, t in zip(outputs, other.outputs, strict=True)]
        else:
            given = [to_raw(t, a) for a, t in zip(inputs, other.inputs, strict=True)]
            try:
                made = evaluate(other, given)
                given = [_as_float(t, a, b) for t, a, b in zip(other.inputs, given, inputs, strict=True)]
                with np.errstate(all="ignore"):
                    own = compute(layer, given)
                # a logarithm of what became 0 is none: then it counts that it became so
                outputs = [np.where(np.isfinite(a), a, b) for a, b in zip(own, outputs, strict=True)]
            except LayerError as error:
                raise quantised.error(other, f"the layer '{other.name}' of type {other.type}: {error}") from error
        of_layer = sums.setdefault(layer.name, [Similarity() for _ in outputs])
        most[layer.name] = max(most.get(layer.name, 0.0), *(float(np.abs(a).max(initial=0)) for a in outputs))
        for found, right, values, t in zip(of_layer, outputs, made, other.outputs, strict=True):
            found.add(to_real(t, values), right)

    for sample in samples:
        run(graph, sample, seen)
    found = []
    for layer in graph.layers:
        if layer.name in sums:
            worst = min(sums[layer.name], key=lambda s: s.sqnr)
            root = np.sqrt(worst.known / max(worst.count, 1))
            found.append(Loss(layers[layer.name], worst.sqnr, most[layer.name] / root if root else 0.0))
    return found


def judge(graph: Graph, quantised: Graph, settings: Settings, samples: Samples, held_back: bool) -> Verdict:
    """The verdict over all of these samples."""
    rows = tuple(outputs_of(graph, quantised, samples, None))
    losses = sorted(own_losses(graph, quantised, samples), key=lambda loss: loss.sqnr)
    near = all(row.cosine >= ENOUGH for row in rows)
    worst = tuple((loss, _advice(loss, settings, near)) for loss in losses[:WORST] if np.isfinite(loss.sqnr))
    return Verdict(rows, worst, len(samples), held_back)


def _advice(loss: Loss, settings: Settings, near: bool) -> str:
    """What helps a layer."""
    layer = loss.layer
    if near or loss.sqnr >= ENOUGH_SQNR:
        return "good enough"
    if loss.reach > LONELY and settings.of(layer).activation_strategy == "extrema":
        change, why = (
            "activation_strategy: 99.99percentile",
            f"its largest value is {loss.reach:.0f} times the usual one",
        )
    elif all(t.integer.bits > 8 for t in layer.outputs if t.is_integer):
        change, why = "float: float32", "16 bits are too few for it"
    else:
        change, why = "activation_bits: 16, table_bits: 0", "8 bits are too few for it"
    return f'{why}; in the settings, layers: {{"{layer.name}": {{{change}}}}}'
