"""A float graph run on many samples: several at once where the graph can be, each layer by its reference or faster.

Values are forgotten when the last layer that takes them is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from compass_core.errors import CompassError
from compassc.graph import Graph, Layer, LayerError
from compassc.graph.dtypes import FLOAT_TYPES, numpy_dtype
from compassc.graph.specialise import specialise
from compassc.layers.arithmetic import Array
from compassc.layers.declare import evaluate
from compassc.quantizer.fast import FAST

Sample = Mapping[str, Array]
"""Inputs by the names of their tensors."""
Seen = Callable[[Layer, Sequence[Array], Sequence[Array]], None]
"""`seen(layer, inputs, outputs)`: called for each layer as it is computed."""
AT_ONCE = 16
"""The most samples that are run together."""
MOST_BYTES = 1 << 28
"""Of all tensors of a batch together."""


def compute(layer: Layer, inputs: Sequence[Array]) -> list[Array]:
    """What a float layer gives; LayerError when its form is not one the reference has."""
    fast = FAST.get(layer.type)
    if fast is not None and all(t.dtype == "float32" for t in (*layer.inputs, *layer.outputs)):
        made = fast(layer, *inputs)
        if made is not None:
            if made.shape != layer.output.shape:
                raise LayerError(
                    f"'{layer.output.name}' is declared as {list(layer.output.shape)}, but the layer gives {list(made.shape)}"
                )
            return [made]
    return evaluate(layer, inputs)


def run(graph: Graph, inputs: Sample, seen: Seen) -> None:
    """Runs a graph once. CompassError naming a layer that cannot be computed."""
    values: dict[str, Array] = {}
    for layer, done in _order(graph):
        if layer.type == "Input":
            made = [inputs[t.name].astype(numpy_dtype(t.dtype), copy=False) for t in layer.outputs]
            given: list[Array] = []
        else:
            given = [values[t.name] for t in layer.inputs]
            try:
                made = compute(layer, given)
            except LayerError as error:
                raise graph.error(layer, f"the layer '{layer.name}' of type {layer.type}: {error}") from error
        seen(layer, given, made)
        values.update(zip([t.name for t in layer.outputs], made, strict=True))
        for name in done:
            del values[name]


def _order(graph: Graph) -> Iterator[tuple[Layer, list[str]]]:
    """The layers, each with the tensors that nobody needs after it."""
    last = {t.name: i for i, layer in enumerate(graph.layers) for t in layer.outputs}
    last |= {t.name: i for i, layer in enumerate(graph.layers) for t in layer.inputs}
    after: dict[int, list[str]] = {}
    for name, i in last.items():
        after.setdefault(i, []).append(name)
    for i, layer in enumerate(graph.layers):
        yield layer, after.get(i, [])


def run_all(graph: Graph, samples: Iterable[Sample], seen: Seen, done: Callable[[int], None] | None = None) -> int:
    """Runs a graph on all samples, together where that gives the same; gives how many there were.

    `seen` gets arrays of one or of several samples. `done(n)` after every n further samples.
    """
    waiting: list[Sample] = []
    batched: Graph | None = None
    size, count = 1, 0
    tried = False
    for sample in samples:
        waiting.append(sample)
        if not tried and len(waiting) == 2:
            tried = True
            size = at_once(graph)
            batched = together(graph, size, waiting) if size > 1 else None
        if not tried:
            continue
        if batched is None or len(waiting) == size:
            count += _flush(graph, batched, waiting, size, seen, done)
            waiting = []
    return count + _flush(graph, None, waiting, size, seen, done)


def _flush(
    graph: Graph,
    batched: Graph | None,
    waiting: list[Sample],
    size: int,
    seen: Seen,
    done: Callable[[int], None] | None,
) -> int:
    if batched is not None and len(waiting) == size:
        run(batched, stacked(waiting), seen)
    else:
        for sample in waiting:
            run(graph, sample, seen)
    if done and waiting:
        done(len(waiting))
    return len(waiting)


def stacked(samples: Sequence[Sample]) -> Sample:
    return {name: np.concatenate([s[name] for s in samples]) for name in samples[0]}


def at_once(graph: Graph) -> int:
    """How many samples are run together; 1 where inputs have no axis of samples."""
    if not graph.inputs or any(not t.shape or t.shape[0] != 1 for t in graph.inputs):
        return 1
    bytes_of_one = sum(4 * t.count for layer in graph.layers if layer.type != "Constant" for t in layer.outputs)
    return max(1, min(AT_ONCE, MOST_BYTES // max(bytes_of_one, 1)))


def together(graph: Graph, size: int, two: Sequence[Sample]) -> Graph | None:
    """The graph for `size` samples at once; None where it gives something else than for each of `two` samples."""
    try:
        pair, many = (specialise(graph, {t.name: (n, *t.shape[1:]) for t in graph.inputs}) for n in (2, size))
    except CompassError:
        return None
    apart: dict[str, list[Array]] = {}

    def one(layer: Layer, _: Sequence[Array], made: Sequence[Array]) -> None:
        apart.setdefault(layer.name, []).extend(made)

    for sample in two:
        run(graph, sample, one)
    joined: dict[str, list[Array]] = {}
    try:
        run(pair, stacked(two), lambda layer, _, made: joined.update({layer.name: list(made)}))
    except CompassError:
        return None
    for layer in graph.layers:
        if layer.type == "Constant":
            continue
        many_outputs = len(layer.outputs)
        for i, t in enumerate(layer.outputs):
            if t.dtype in FLOAT_TYPES and not _same(apart[layer.name][i::many_outputs], joined[layer.name][i]):
                return None
    return many


def _same(apart: Sequence[Array], joined: Array) -> bool:
    """Whether the values of two samples together are those of each."""
    each = np.concatenate([a.reshape(-1) for a in apart]).astype(np.float32)
    flat = joined.reshape(-1).astype(np.float32)
    if each.size != flat.size:
        # what does not depend on the sample comes once
        return apart[0].size == flat.size and all(np.array_equal(a.reshape(-1), flat) for a in apart)
    limit = 1e-4 * max(float(np.abs(each).max(initial=0)), 1e-6)
    return bool(np.abs(np.sort(each) - np.sort(flat)).max(initial=0) <= limit)
