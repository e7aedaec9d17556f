"""The verifier of graphs: rules for any graph and for each stage; all faults are reported at once.

A graph that was imported has known shapes. After the passes nothing is left that nobody uses. After quantisation every
layer computes with integers that stand for numbers, or says that it does not (`unquantifiable`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import Enum

from compass_core.errors import CompassError, together
from compassc import services
from compassc.graph.build import writable
from compassc.graph.dtypes import IR_DTYPES, numpy_dtype
from compassc.graph.graph import SOURCES, Graph
from compassc.graph.layer import Layer
from compassc.graph.tensor import LayerError, Tensor


class Stage(Enum):
    """The stage of a graph; each stage has the guarantees of the earlier ones."""

    ANY = 0
    IMPORTED = 1
    OPTIMISED = 2
    QUANTISED = 3


def check(graph: Graph, stage: Stage = Stage.ANY) -> None:
    """CompassError about everything that is wrong with a graph."""
    if found := faults(graph, stage):
        raise together(found)


def faults(graph: Graph, stage: Stage = Stage.ANY) -> list[CompassError]:
    """The faults of a graph and its sub-graphs; empty when there are none."""
    found = [*_structure(graph), *_ends(graph)]
    for layer in graph.layers:
        found += [graph.error(layer, f"the layer '{layer.name}': {text}") for text in _layer(layer)]
    if not found:  # what follows relies on it
        found += [graph.error(layer, f"the layer '{layer.name}': {text}") for layer, text in _stage(graph, stage)]
    for inner in graph.subgraphs.values():
        found += faults(inner, stage)
    return found


def _structure(graph: Graph) -> Iterator[CompassError]:
    """Names that are taken, tensors that nobody makes, or not before they are used, or otherwise than users see them."""
    layers: set[str] = set()
    made: dict[str, Tensor] = {}
    everything = {t.name for layer in graph.layers for t in layer.outputs}
    for layer in graph.layers:
        if layer.name in layers:
            yield graph.error(layer, f"the name '{layer.name}' is taken by another layer")
        layers.add(layer.name)
        for t in layer.inputs:
            if t.name not in everything:
                yield graph.error(layer, f"the layer '{layer.name}' uses '{t.name}', which no layer makes")
            elif t.name not in made:
                yield graph.error(layer, f"the layer '{layer.name}' uses '{t.name}' before it is made")
            elif made[t.name] != t:
                yield graph.error(layer, f"the layer '{layer.name}' takes {_words(t)}, which is {_words(made[t.name])}")
        for t in layer.outputs:
            if t.name in made:
                yield graph.error(layer, f"the tensor '{t.name}' is produced twice")
            made[t.name] = t


def _ends(graph: Graph) -> Iterator[CompassError]:
    made = graph.producer()
    for t in graph.inputs:
        if t.name not in made or made[t.name].type != "Input":
            yield graph.error(None, f"the input '{t.name}' is made by no Input layer")
    listed = {t.name for t in graph.inputs}
    for layer in graph.layers:
        for t in layer.outputs if layer.type == "Input" else ():
            if t.name not in listed:
                yield graph.error(layer, f"'{t.name}' is made by an Input layer, but no input of the graph")
    for t in graph.outputs:
        known = next((o for o in made[t.name].outputs if o.name == t.name), None) if t.name in made else None
        if known is None:
            yield graph.error(None, f"the output '{t.name}' is made by no layer")
        elif known != t:
            yield graph.error(None, f"the output {_words(t)} is {_words(known)}")


def _words(t: Tensor) -> str:
    quantised = f" (scale {t.scale}, zero point {t.zero})" if (t.scale, t.zero) != (1.0, 0) else ""
    return f"'{t.name}' as {t.dtype} of shape {list(t.shape)}{quantised}"


def _layer(layer: Layer) -> Iterator[str]:
    """The faults of a single layer."""
    for name in (layer.name, layer.type, *(t.name for t in layer.outputs)):
        if name != writable(name):
            yield f"the text cannot hold the name {name!r}"
    for t in layer.outputs:
        yield from _tensor(t)
    if layer.type == "Constant":
        yield from _constant(layer)
    yield from _declared(layer)


def _tensor(t: Tensor) -> Iterator[str]:
    if t.dtype not in IR_DTYPES:
        yield f"'{t.name}' is of the type '{t.dtype}', which does not exist"
    if any(n < -1 for n in t.shape):
        yield f"'{t.name}' has the shape {list(t.shape)}"
    scales = t.scale if isinstance(t.scale, tuple) else (t.scale,)
    if any(not math.isfinite(s) or s <= 0 for s in scales):
        yield f"'{t.name}' has the scale {t.scale}, expected positive numbers"
    for what, given in (("scales", t.scale), ("zero points", t.zero)):
        many = len(given) if isinstance(given, tuple) else 1
        if many > 1 and (t.axis is None or not -len(t.shape) <= t.axis < len(t.shape) or t.shape[t.axis] != many):
            yield f"'{t.name}' has {many} {what}, but the shape {list(t.shape)} and the axis {t.axis}"
    if t.limits and t.limits[0] > t.limits[1]:
        yield f"'{t.name}' has the range {list(t.limits)}"


def _constant(layer: Layer) -> Iterator[str]:
    if len(layer.outputs) != 1 or layer.inputs:
        yield f"a Constant has one output and no inputs, not {len(layer.outputs)} and {len(layer.inputs)}"
    elif "weights" not in layer.constants:
        yield "the constant 'weights' is missing"
    elif layer.output.dtype in IR_DTYPES:
        array, t = layer.constants["weights"], layer.output
        if array.size != t.count or array.dtype != numpy_dtype(t.dtype):
            yield f"its content is {array.dtype} of shape {list(array.shape)}, its tensor {_words(t)}"


def _declared(layer: Layer) -> Iterator[str]:
    """Attributes that are not of the kind that the layer's type declares, and shapes that do not follow from the inputs.

    Types that are not declared are plugins' business.
    """
    declared = services.layer_type(layer.type)
    if declared is None or declared.refused or layer.type in SOURCES:
        return
    for attribute in declared.attributes:
        if layer.has(attribute.name) and (fault := attribute.fault(layer.attributes[attribute.name])):
            yield f"'{attribute.name}' is {layer.attributes[attribute.name]!r}, expected {fault}"
    if any(-1 in t.shape for t in (*layer.inputs, *layer.outputs)):
        return
    try:
        inferred = services.layer_shapes(layer)
    except LayerError as error:
        yield str(error)
        return
    if inferred is not None and inferred != [t.shape for t in layer.outputs]:
        names = ", ".join(f"'{t.name}' {list(t.shape)}" for t in layer.outputs)
        yield f"its inputs make {', '.join(str(list(s)) for s in inferred)}, but it has {names}"


def _stage(graph: Graph, stage: Stage) -> Iterator[tuple[Layer, str]]:
    used = {t.name for layer in graph.layers for t in layer.inputs} | {t.name for t in graph.outputs}
    for layer in graph.layers:
        if stage.value >= Stage.IMPORTED.value and any(n < 0 for t in layer.outputs for n in t.shape):
            yield layer, "its shape is not known"
        dead = layer.type != "Input" and not any(t.name in used for t in layer.outputs)
        if stage.value >= Stage.OPTIMISED.value and dead:
            yield layer, "nobody uses what it makes"
        whole = layer.type in SOURCES or layer.is_quantised or layer.flag("unquantifiable", False)
        if stage is Stage.QUANTISED and not whole:
            yield layer, "it is not quantised, and not marked as unquantifiable"
