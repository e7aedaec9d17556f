"""One range for the tensors that meet at a Concat or in a sum, where theirs are near each other: they need not be
rescaled there."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from compassc.graph import Graph, Layer
from compassc.quantizer.job import is_float
from compassc.quantizer.rules.moves import MOVES
from compassc.quantizer.settings import Settings
from compassc.quantizer.statistics import Record
from compassc.quantizer.strategies import Range, parse

SUMS = ("Eltwise", "Add", "Sub")
"""Layers whose inputs take one scale; those of a Concat and its output do."""
KEEPING = ("Resize", "Interp", "Pad", "Split", "CropAndResize", "ROIPooling", "MaxRoiPool")
"""Layers that hand the scale of their input on, besides those that only move elements."""


def unified(graph: Graph, record: Callable[[str], Record], settings: Settings) -> dict[str, Range]:
    """Ranges of tensors by name, instead of their own: of those that meet, where the largest is at most `settings.unify`
    times the smallest."""
    if settings.unify <= 1:
        return {}
    groups: dict[str, set[str]] = {}
    for layer in graph.layers:
        if not meets(layer) or settings.of(layer).float:
            continue
        names = {decider(graph, t.name) for t in layer.inputs}
        _join(groups, names | {layer.output.name} if layer.type == "Concat" else names)
    producers = graph.producer()
    made: dict[str, Range] = {}
    for group in {id(g): g for g in groups.values()}.values():
        if any(producers[name].type == "Constant" for name in group):
            continue
        ranges = {name: range_of(producers[name], record(name), settings) for name in group}
        if alike(ranges, settings):
            whole = min(low for low, _ in ranges.values()), max(high for _, high in ranges.values())
            made |= dict.fromkeys(group, whole)
    return made


def meets(layer: Layer) -> bool:
    """Whether the inputs of a layer are brought to one scale."""
    sums = layer.type in SUMS and str(layer.attributes.get("method", "")).upper() != "MUL"
    return (layer.type == "Concat" or sums) and all(is_float(t) for t in (*layer.inputs, layer.output))


def given_ranges(graph: Graph) -> dict[str, Range]:
    """Ranges of tensors that go into a Quantize layer, by name: those for which its scale was made."""
    found: dict[str, Range] = {}
    for layer in graph.layers:
        if layer.type != "Quantize" or isinstance(layer.output.scale, tuple) or not is_float(layer.input):
            continue
        t = layer.output
        if t.zero or not t.integer.signed:
            found[layer.input.name] = (
                (t.low + t.scalar_zero) / t.scalar_scale,
                (t.high + t.scalar_zero) / t.scalar_scale,
            )
        else:
            reach = (t.high - t.low) / 2 / t.scalar_scale
            found[layer.input.name] = -reach, reach
    return found


def _join(groups: dict[str, set[str]], names: set[str]) -> None:
    """Joins the groups of names."""
    joined = set(names)
    for name in names:
        joined |= groups.get(name, set())
    groups.update(dict.fromkeys(joined, joined))


def decider(graph: Graph, name: str) -> str:
    """The tensor whose range decides the scale of another one: through layers that keep it."""
    producers, keeping = graph.producer(), {*MOVES.split(), *KEEPING}
    while True:
        layer = producers[name]
        pools = layer.type == "Pooling" and str(layer.attributes.get("method", "")).upper() in ("MAX", "AVG")
        if not (layer.type in keeping or pools) or not layer.inputs:
            return name
        name = layer.input.name


def range_of(layer: Layer, record: Record, settings: Settings) -> Range:
    own = settings.of(layer)
    return parse(own.activation_strategy).range(record, own.activation_bits, own.mode != "asymmetric")


def alike(ranges: Mapping[str, Range], settings: Settings) -> bool:
    """Whether ranges are near each other and on the same sides of zero."""
    reaches = [max(-low, high) for low, high in ranges.values()]
    sides = {low < 0 for low, _ in ranges.values()}
    near = min(reaches) > 0 and max(reaches) <= settings.unify * min(reaches)
    return near and (len(sides) == 1 or settings.common.force_signed)
