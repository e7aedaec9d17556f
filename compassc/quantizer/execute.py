"""A float graph run on many samples: several at once where the graph can be, each layer by its reference or faster.

Values are forgotten when the last layer that takes them is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice

import numpy as np

from compass_core.arrays import Array
from compass_core.errors import CompassError
from compassc.graph import Graph, Layer, LayerError, Tensor
from compassc.graph.dtypes import FLOAT_TYPES
from compassc.graph.run import Compute, run_layers
from compassc.graph.specialise import specialise
from compassc.graph.states import RECURRENT
from compassc.layers.costs import check_cost
from compassc.layers.declare import evaluate
from compassc.layers.threads import blas_on_one_thread, keep_memory
from compassc.quantizer.fast_references import fast_layers

Sample = Mapping[str, Array]
"""Inputs by the names of their tensors."""
Seen = Callable[[Layer, Sequence[Array], Sequence[Array]], None]
"""`seen(layer, inputs, outputs)`: called for each layer as it is computed."""
SeenOfSome = Callable[[Layer, Sequence[Array], Sequence[Array], int], None]
"""The same with the number of samples that lie one behind the other in the outputs; 1 where they do not."""
RETYPED = ("Cast", "Quantize", "DeQuantize")
"""Layers that give what they take in another type."""
AT_ONCE = 64
"""The most samples that are run together."""
MOST_BYTES = 1 << 25
"""Of all tensors of a batch together: with larger ones the caches are too small, and there is nothing to be saved."""


def compute(layer: Layer, inputs: Sequence[Array]) -> list[Array]:
    """What a float layer gives; LayerError when its form is not one the reference has."""
    fast = fast_layers().get(layer.type)
    if fast is not None and all(t.dtype == "float32" for t in (*layer.inputs, *layer.outputs)):
        check_cost(layer)
        made = fast(layer, *inputs)
        if made is not None:
            if made.shape != layer.output.shape:
                raise LayerError(
                    f"'{layer.output.name}' is declared as {list(layer.output.shape)}, but the layer gives {list(made.shape)}"
                )
            return [made]
    return evaluate(layer, inputs)


def run(graph: Graph, inputs: Sample, seen: Seen, computed: Compute = compute) -> None:
    """Runs a graph once, each layer by `computed`. CompassError naming a layer that cannot be computed."""
    with blas_on_one_thread(), np.errstate(all="ignore"):  # overflow shows in the results
        for layer, given, made in run_layers(graph, inputs, computed):
            seen(layer, given, made)


def run_all(
    graph: Graph,
    samples: Iterable[Sample],
    seen: SeenOfSome,
    done: Callable[[int], None] | None = None,
    in_order: bool = True,
) -> int:
    """Runs a graph on all samples, several together where that gives the same; gives how many there were.

    `in_order`: only where each sample's values stay in one piece. `done(n)` after every n further samples.
    """
    keep_memory()
    source = iter(samples)
    first = list(islice(source, 2))
    size = at_once(graph) if len(first) == 2 else 1
    batches, rows = together(graph, first) if size > 1 else (None, False)
    if batches is None or in_order and not rows:
        size = 1
    count = 0
    for group in _groups(chain(first, source), size):
        if batches is not None and len(group) > 1:
            run(batches.of(len(group)), stacked(group), _with(seen, len(group) if rows else 1))
        else:
            for sample in group:
                run(graph, sample, _with(seen, 1))
        count += len(group)
        if done:
            done(len(group))
    return count


def _with(seen: SeenOfSome, samples: int) -> Seen:
    return lambda layer, inputs, outputs: seen(layer, inputs, outputs, samples)


def _groups(samples: Iterable[Sample], size: int) -> Iterator[list[Sample]]:
    """The samples, `size` at a time, the last ones fewer."""
    source = iter(samples)
    while group := list(islice(source, size)):
        yield group


def stacked(samples: Sequence[Sample]) -> Sample:
    if len(samples) == 1:
        return samples[0]
    return {name: np.concatenate([s[name] for s in samples]) for name in samples[0]}


def at_once(graph: Graph) -> int:
    """How many samples are run together; 1 where inputs have no axis of samples."""
    if not graph.inputs or any(not t.shape or t.shape[0] != 1 for t in graph.inputs):
        return 1
    bytes_of_one = sum(4 * t.count for layer in graph.layers if layer.type != "Constant" for t in layer.outputs)
    return max(1, min(AT_ONCE, MOST_BYTES // max(bytes_of_one, 1)))


class Batches:
    """A graph for several samples at once, by their number."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._made: dict[int, Graph] = {}

    def of(self, size: int) -> Graph:
        """CompassError where there is none."""
        if size not in self._made:
            shapes = {t.name: (size, *t.shape[1:]) for t in self.graph.inputs}
            self._made[size] = specialise(repeated(self.graph, size), shapes)
        return self._made[size]


def repeated(graph: Graph, size: int) -> Graph:
    """The graph with constants that belong to a sample, such as a token for the class or the first state of a recurrent
    layer, once per sample."""
    makers, joined = graph.producer(), set()
    for layer in graph.layers:
        given = layer.inputs if layer.type == "Concat" else layer.inputs[1:] if layer.type in RECURRENT else ()
        found = {t.name: _constant_behind(makers, t) for t in given}
        constant = {t.name for t in found.values() if t is not None and t.shape[:1] == (1,)}
        if len([t for t in found.values() if t is not None]) < len(layer.inputs):
            joined |= constant
    layers = []
    for layer in graph.layers:
        if layer.type == "Constant" and layer.output.name in joined:
            own = layer.output
            made = replace(own, shape=(size, *own.shape[1:]))
            content = np.repeat(layer.constants["weights"].reshape(own.shape), size, 0)
            layer = replace(layer, outputs=(made,), constants={"weights": content})
        layers.append(layer)
    return replace(graph, layers=tuple(layers))


def _constant_behind(makers: Mapping[str, Layer], t: Tensor) -> Tensor | None:
    """The constant tensor that a tensor is, in another type perhaps; None for others."""
    layer = makers[t.name]
    if layer.type in RETYPED:
        return _constant_behind(makers, layer.input)
    return layer.output if layer.type == "Constant" else None


def together(
    graph: Graph, two: Sequence[Sample], computed: Compute = compute, exact: bool = False
) -> tuple[Batches | None, bool]:
    """The graph for several samples at once, and whether each sample's values stay in one piece in every tensor; None
    where it gives something else than for each of `two` samples. `exact`: integers count, too, and to the bit."""
    batches = Batches(graph)
    try:
        pair = batches.of(2)
    except CompassError:
        return None, False
    apart: dict[str, list[Array]] = {}

    def one(layer: Layer, _: Sequence[Array], made: Sequence[Array]) -> None:
        for t, values in zip(layer.outputs, made, strict=True):
            apart.setdefault(t.name, []).append(values)

    for sample in two:
        run(graph, sample, one, computed)
    same, rows, alike = True, True, np.array_equal if exact else near

    def both(layer: Layer, _: Sequence[Array], made: Sequence[Array]) -> None:
        nonlocal same, rows
        for t, values in zip(layer.outputs, made, strict=True):
            if layer.type != "Constant" and (exact or t.dtype in FLOAT_TYPES):
                each, whole = np.stack([a.reshape(-1) for a in apart[t.name]]), values.reshape(-1)
                as_many = each.size == whole.size
                rows = rows and as_many and alike(each.reshape(-1), whole)
                same = same and as_many and (rows or alike(np.sort(each, None), np.sort(whole)))

    try:
        run(pair, stacked(two), both, computed)
    except CompassError:
        return None, False
    return (batches, rows) if same else (None, False)


def near(a: Array, b: Array) -> bool:
    """Whether the values are the same but for the last bits of sums."""
    limit = 1e-4 * max(float(np.abs(a).max(initial=0)), 1e-6)
    return bool(np.abs(a - b).max(initial=0) <= limit)


class Rows:
    """Every tensor of a graph for some samples, the values of each sample behind those of the one before. Samples are run
    together where that gives the same."""

    def __init__(self, graph: Graph, computed: Compute = compute, exact: bool = False) -> None:
        """`exact`: "the same" is to the bit."""
        self.graph, self._computed, self._exact = graph, computed, exact
        self._batches: Batches | None = None
        self._known = at_once(graph) == 1

    def at_once(self, samples: Sequence[Sample]) -> int:
        """How many are run together; found out with the first two."""
        if not self._known and len(samples) > 1:
            found, rows = together(self.graph, samples[:2], self._computed, self._exact)
            self._batches, self._known = found if rows else None, True
        return at_once(self.graph) if self._batches is not None else 1

    def graph_of(self, many: int) -> Graph:
        """The graph that runs so many samples together."""
        return self.graph if many == 1 or self._batches is None else self._batches.of(many)

    def values(self, samples: Sequence[Sample]) -> dict[str, Array]:
        """By the names of tensors; those of `graph_of(len(samples))` where so many are run together."""
        size = self.at_once(samples)
        if len(samples) > size:
            parts = [self.values(samples[i : i + size]) for i in range(0, len(samples), size)]
            return {name: np.concatenate([np.atleast_1d(part[name]) for part in parts]) for name in parts[0]}
        made: dict[str, Array] = {}

        def seen(layer: Layer, _: Sequence[Array], outputs: Sequence[Array]) -> None:
            made.update(zip([t.name for t in layer.outputs], outputs, strict=True))

        run(self.graph_of(len(samples)), stacked(samples), seen, self._computed)
        return made
