"""Let one layer do what several do: the same type, inputs, attributes and constants.

    a = Exp(x), b = Exp(x), a + b -> a = Exp(x), a + a

Equal constants become one, too. Layers that make outputs of the graph stay.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from compass_core.arrays import content_of
from compassc.graph.graph import Graph
from compassc.graph.layer import Layer
from compassc.graph.tensor import Tensor
from compassc.graph.values import format_value

NAME = "CommonSubexprElim"


def run(graph: Graph) -> Graph:
    inner = {name: run(sub) for name, sub in graph.subgraphs.items()}
    changed = any(inner[name] is not graph.subgraphs[name] for name in inner)
    ends = {t.name for t in graph.outputs}
    by: dict[str, Tensor] = {}
    first: dict[Hashable, Layer] = {}
    kept = []
    for layer in graph.layers:
        if any(t.name in by for t in layer.inputs):
            layer = replace(layer, inputs=tuple(by.get(t.name, t) for t in layer.inputs))
        known = first.setdefault(_key(layer), layer) if layer.type != "Input" else layer
        if known is layer or any(t.name in ends for t in layer.outputs):
            kept.append(layer)
        else:
            by |= {old.name: new for old, new in zip(layer.outputs, known.outputs, strict=True)}
    if not by and not changed:
        return graph
    return replace(graph, layers=tuple(kept), subgraphs=inner)


def _key(layer: Layer) -> Hashable:
    """A key of everything about a layer except its name and the names of its outputs."""
    return (
        layer.type,
        tuple(t.name for t in layer.inputs),
        tuple(replace(t, name="") for t in layer.outputs),
        tuple(sorted((key, format_value(value)) for key, value in layer.attributes.items())),
        tuple(sorted((key, a.dtype.name, a.shape, _content(content_of(a))) for key, a in layer.constants.items())),
    )


def _content(data: memoryview) -> bytes:
    """The bytes, or a hash of many that no two contents share."""
    from hashlib import sha256

    return bytes(data) if len(data) <= 64 else sha256(data).digest()
