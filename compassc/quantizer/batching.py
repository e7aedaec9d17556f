"""A graph for several samples at once: `compassc build --batch N`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compass_core.arrays import Array
from compass_core.errors import CompassError
from compassc.graph import Graph, Layer
from compassc.graph.dtypes import numpy_dtype
from compassc.graph.states import states_of
from compassc.quantizer.execute import Batches, Sample, near, run, stacked

CODE = "batch"


def batched(graph: Graph, floats: Graph, size: int) -> Graph:
    """The graph for so many samples along the first axis of each input and output.

    `floats`: the same in floats, in which two samples at once are tried against each by itself. CompassError where an input
    or output has no axis of one sample, layers have no form for several, or samples have to do with each other.
    """
    for what, tensors in (("input", graph.inputs), ("output", graph.outputs)):
        for t in tensors:
            if t.shape[:1] != (1,):
                shown = "x".join(map(str, t.shape)) or "scalar"
                raise CompassError(f"the {what} '{t.name}' is {shown}: it has no first axis of one sample", code=CODE,
                                   help="build without --batch")  # fmt: skip
    if states_of(graph):
        raise CompassError("the graph keeps states from run to run: its samples follow each other", code=CODE,
                           help="build without --batch")  # fmt: skip
    made = Batches(graph).of(size)
    for t, one in zip(made.outputs, graph.outputs, strict=True):
        if t.shape != (size, *one.shape[1:]):
            raise CompassError(f"the output '{t.name}' is {list(t.shape)} of {size} samples", code=CODE)
    two = [_drawn(floats, seed) for seed in (0, 1)]
    together = _outputs(Batches(floats).of(2), stacked(two))
    apart = [_outputs(floats, sample) for sample in two]
    for t in floats.outputs:
        if not near(np.concatenate([each[t.name] for each in apart]), together[t.name]):
            raise CompassError(
                f"the output '{t.name}' of a sample depends on the samples beside it",
                code=CODE,
                help="build without --batch",
            )
    return made


def _drawn(graph: Graph, seed: int) -> Sample:
    """Some inputs; whole numbers are 0 or 1, which every table of words has."""
    random = np.random.default_rng(seed)
    return {
        t.name: (random.integers(0, 2, t.shape) if t.is_integer else random.normal(size=t.shape)).astype(
            numpy_dtype(t.dtype)
        )
        for t in graph.inputs
    }


def _outputs(graph: Graph, inputs: Sample) -> dict[str, Array]:
    found: dict[str, Array] = {}
    ends = {t.name for t in graph.outputs}

    def seen(layer: Layer, _: Sequence[Array], made: Sequence[Array]) -> None:
        found.update({t.name: a for t, a in zip(layer.outputs, made, strict=True) if t.name in ends})

    with np.errstate(all="ignore"):
        run(graph, inputs, seen)
    return found
