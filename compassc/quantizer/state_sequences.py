"""Samples of graphs with states: each sample gets the states that the samples before it lead to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from compass_core.arrays import Array
from compassc.graph import Graph, Layer
from compassc.graph.dtypes import numpy_dtype
from compassc.graph.states import states_of
from compassc.layers.declare import evaluate
from compassc.layers.real_values import to_raw, to_real
from compassc.quantizer.data import Samples
from compassc.quantizer.execute import compute, run


def followed(graph: Graph, samples: Samples) -> Samples:
    """Samples, which follow each other, with states in real numbers where they have none: those that the graph makes of the
    samples before. `graph`: of floats, or of integers."""
    states = [(graph.inputs[s.input], graph.outputs[s.output], s.initial) for s in states_of(graph)]
    if not states or not len(samples) or any(into.name in samples[0] for into, _, _ in states):
        return samples
    wanted = {out.name for _, out, _ in states}
    whole = any(t.is_integer and t.scale != 1.0 for t in graph.tensors().values())
    kept: dict[str, Array] = {into.name: np.full(into.shape, initial, np.float32) for into, _, initial in states}
    listed = []
    for sample in samples:
        listed.append(kept)
        made: dict[str, Array] = {}

        def seen(layer: Layer, _: Sequence[Array], outputs: Sequence[Array], made: dict[str, Array] = made) -> None:
            pairs = zip(layer.outputs, outputs, strict=True)
            made.update((t.name, to_real(t, a)) for t, a in pairs if t.name in wanted)

        real = {**sample, **kept}
        run(graph, {t.name: to_raw(t, real[t.name]) for t in graph.inputs}, seen, evaluate if whole else compute)
        kept = {into.name: made[out.name] for into, out, _ in states}
    types = {into.name: numpy_dtype(into.dtype) for into, _, _ in states if not into.is_integer}

    def get(index: int) -> Mapping[str, Array]:
        own = {name: a.astype(types[name], copy=False) if name in types else a for name, a in listed[index].items()}
        return {**samples[index], **own}

    return Samples(len(samples), get)
