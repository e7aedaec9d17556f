"""Mixed precision: as few layers as needed get more bits, until the outputs are near enough to the float graph's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from glob import escape
from typing import Any

from compass_core.errors import CompassError
from compassc.graph import Graph, Layer, LayerError
from compassc.layers.arithmetic import Array
from compassc.layers.declare import evaluate
from compassc.layers.reals import to_raw, to_real
from compassc.quantizer.compare import output_cosine
from compassc.quantizer.convert import quantize_with_reasons
from compassc.quantizer.data import Samples
from compassc.quantizer.execute import run
from compassc.quantizer.job import is_float
from compassc.quantizer.model import Outcome
from compassc.quantizer.settings import Settings
from compassc.quantizer.similarity import Similarity
from compassc.quantizer.statistics import Calibration

TRIED = 4
"""Samples that a choice is measured on; the result is on all that `output_cosine` takes."""
WIDER: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("16-bit activations", {"activation_bits": 16, "table_bits": 0}),
    ("float16", {"float": "float16"}),
)
"""What layers get, the cheaper first."""


def own_errors(graph: Graph, quantised: Graph, samples: Samples) -> dict[str, float]:
    """By layer, the part of its outputs that is error when its inputs are right; the largest of its outputs."""
    layers = {layer.name: layer for layer in quantised.layers if layer.is_quantised}
    sums: dict[str, list[Similarity]] = {}

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
            except LayerError as error:
                raise quantised.error(other, f"the layer '{other.name}' of type {other.type}: {error}") from error
        of_layer = sums.setdefault(layer.name, [Similarity() for _ in outputs])
        for found, right, values, t in zip(of_layer, outputs, made, other.outputs, strict=True):
            found.add(to_real(t, values), right)

    for sample in samples.first(TRIED):
        run(graph, sample, seen)
    return {name: max(s.error / s.known if s.known else s.error for s in of_layer) for name, of_layer in sums.items()}


def raised(graph: Graph, samples: Samples, calibration: Calibration, settings: Settings, wanted: float) -> Outcome:
    """The quantised graph whose outputs have at least the cosine `wanted`, with more bits for as few layers as a search
    by the layers' own errors finds. CompassError where even half floats are not near enough."""
    made = quantize_with_reasons(graph, calibration, settings)
    best = output_cosine(graph, made.graph, samples)
    if best >= wanted:
        return Outcome(made.graph, calibration, made.floats, settings, {}, best)
    errors = own_errors(graph, made.graph, samples)
    order = sorted(errors, key=lambda name: -errors[name])
    for label, given in WIDER:

        def attempt(many: int, given: Mapping[str, Any] = given, label: str = label) -> Outcome:
            chosen = settings.overridden({escape(name): given for name in order[:many]})
            found = quantize_with_reasons(graph, calibration, chosen)
            cosine = output_cosine(graph, found.graph, samples)
            return Outcome(found.graph, calibration, found.floats, chosen, dict.fromkeys(order[:many], label), cosine)

        found = fewest(attempt, len(order), wanted)
        if found.cosine is not None and found.cosine >= wanted:
            return found
        best = max(best, found.cosine or best)
    raise CompassError(
        f"no choice of bits brings the outputs to a cosine of {wanted}; the best one is {best:.8f}",
        code="quantize-settings",
        help="ask for less, or for --quantize fp16",
    )


def fewest(attempt: Callable[[int], Outcome], most: int, wanted: float) -> Outcome:
    """The attempt with the fewest layers that is near enough, by doubling and halving; the last one where none is."""
    low, high = 0, 1
    found = attempt(min(high, most))
    while (found.cosine or 0) < wanted and high < most:
        low, high = high, min(2 * high, most)
        found = attempt(high)
    if (found.cosine or 0) < wanted:
        return found
    while high - low > 1:
        middle = (low + high) // 2
        tried = attempt(middle)
        if (tried.cosine or 0) >= wanted:
            high, found = middle, tried
        else:
            low = middle
    return found
