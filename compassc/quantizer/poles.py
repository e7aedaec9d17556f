"""Functions with a pole at 0, such as logarithms: small numbers count for them as much as large ones, which integers of one step
do not hold together. What they take stays a float, back to where it is computed by more than numbers at one place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from glob import escape

from compassc.graph import Graph, Layer
from compassc.layers.families.activation.reference import function_of
from compassc.quantizer.settings import Settings
from compassc.quantizer.statistics import Calibration

POLES = frozenset(("LOG", "Rsqrt", "Reciprocal"))
"""Methods and layer types."""
POWERS = frozenset("Add Sub Mul Eltwise Square Abs Pow Exp Sqrt Reduce".split())
"""Layer types that such numbers are made by."""
PART = 1 / 16
"""Of the smallest number that calibration saw: rounding to integers may be off by no more."""


def with_float_poles(graph: Graph, calibration: Calibration | None, settings: Settings) -> Settings:
    """The settings with float32 for functions whose inputs reach over more than their integers, and for what makes these."""
    if calibration is None:
        return settings
    producer = graph.producer()
    found: dict[str, None] = {}
    for layer in graph.layers:
        if function_of(layer) in POLES and not settings.of(layer).float and _is_too_wide(layer, calibration, settings):
            found.update(dict.fromkeys(_chain(layer, producer)))
    floats = tuple((escape(name), {"float": "float32"}) for name in found)
    return replace(settings, layers=(*settings.layers, *floats)) if floats else settings


def _is_too_wide(layer: Layer, calibration: Calibration, settings: Settings) -> bool:
    """Whether rounding changes the smallest number that goes into a layer by more than a part of it."""
    record, own = calibration.records.get(layer.input.name), settings.of(layer)
    if record is None or not record.batches or record.least <= 0:
        return False
    steps = (1 << (own.activation_bits - own.force_signed)) - 1
    return record.most / steps / 2 > PART * record.least


def _chain(layer: Layer, producer: Mapping[str, Layer]) -> Iterator[str]:
    """The layer, and those that make what it takes number by number."""
    waiting, seen = [layer], set[str]()
    while waiting:
        last = waiting.pop()
        if last.name in seen:
            continue
        seen.add(last.name)
        yield last.name
        for t in last.inputs:
            before = producer[t.name]
            if before.type in POWERS or function_of(before) in ("SQUARE", "EXP"):
                waiting.append(before)
