"""A float graph run on many samples: several at once where the graph can be, each layer by its reference or faster.

Values are forgotten when the last layer that takes them is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import Protocol, TypeVar

import numpy as np

from compass_core.arrays import Array
from compass_core.errors import CompassError
from compassc.graph import Graph, Layer, LayerError, Tensor
from compassc.graph.dtypes import FLOAT_TYPES
from compassc.graph.run import Compute, run_layers
from compassc.graph.specialise import specialise
from compassc.graph.states import RECURRENT
from compassc.layers.costs import check_cost
from compassc.layers.declare import evaluate, evaluator
from compassc.layers.float_loops import Wanted
from compassc.layers.threads import blas_on_one_thread, keep_memory, processors, results, spread
from compassc.quantizer.fast_references import fast_layers
from compassc.quantizer.windowed import Fast, Watched

Sample = Mapping[str, Array]
"""Inputs by the names of their tensors."""
Seen = Callable[[Layer, Sequence[Array], Sequence[Array]], None]
"""`seen(layer, inputs, outputs)`: called for each layer as it is computed."""


class Watching(Protocol):
    """Sees layers as they are computed, and says before whether it wants the extremes of their output."""

    def __call__(self, layer: Layer, inputs: Sequence[Array], outputs: Sequence[Array]) -> None: ...

    def wanted(self, layer: Layer) -> Wanted | None: ...


Watch = TypeVar("Watch", bound=Watching)
One = TypeVar("One")
Step = Callable[[Sequence[Array], "Wanted | None"], "list[Array]"]
"""The outputs of a layer for its inputs; the extremes of its one output are wanted, and may be found on the way."""
RETYPED = ("Cast", "Quantize", "DeQuantize")
"""Layers that give what they take in another type."""
FEW = 4
"""Numbers of an axis along which loops are short."""
AT_ONCE = 64
"""The most samples that are run together."""
PARTS = 4
"""Groups of samples that processors share, or a multiple of it."""
MOST_BYTES = 1 << 25
"""Of all tensors of a batch together: with larger ones the caches are too small, and there is nothing to be saved."""
MOST_SIDE_BY_SIDE = 1 << 29
"""Bytes of all tensors of what processors run at the same time."""


def step(layer: Layer) -> Step:
    """How a float layer is computed. LayerError, here or then, when its form is not one the reference has."""
    maker = fast_layers().get(layer.type)
    if maker is None or any(t.dtype != "float32" for t in (*layer.inputs, *layer.outputs)):
        return partial(_without_gaps, evaluator(layer, shared=True))
    check_cost(layer)
    fast = maker(layer)
    if fast is None:
        return partial(_without_gaps, evaluator(layer, shared=True))
    watched = isinstance(fast, Watched)
    return partial(_computed, layer, fast, watched, [t.shape for t in layer.inputs], layer.output.shape)


def _without_gaps(
    referenced: Callable[[Sequence[Array]], list[Array]], inputs: Sequence[Array], _: Wanted | None
) -> list[Array]:
    """Statistics and loops would copy a view that has gaps, each for itself."""
    return [made if made.flags.c_contiguous else packed(made) for made in referenced(inputs)]


def packed(view: Array) -> Array:
    """A copy without gaps. NumPy goes along the last axis of it: where that is short, as of the channels of an image, one place in
    it after the other takes a sixth of the time."""
    if view.ndim < 2 or not 1 < view.shape[-1] <= FEW:
        return view.copy()
    made = np.empty(view.shape, view.dtype)
    for i in range(view.shape[-1]):
        made[..., i] = view[..., i]
    return made


def _computed(
    layer: Layer,
    fast: Fast,
    watched: bool,
    expected: list[tuple[int, ...]],
    declared: tuple[int, ...],
    inputs: Sequence[Array],
    wanted: Wanted | None,
) -> list[Array]:
    if [x.shape for x in inputs] != expected:
        return evaluate(layer, inputs)
    made = fast(*inputs, wanted=wanted) if watched else fast(*inputs)
    if made.shape != declared:
        raise LayerError(
            f"'{layer.output.name}' is declared as {list(declared)}, but the layer gives {list(made.shape)}"
        )
    return [made]


def compute(layer: Layer, inputs: Sequence[Array]) -> list[Array]:
    """What a float layer gives; LayerError when its form is not one the reference has."""
    return step(layer)(inputs, None)


class Steps:
    """`compute` for graphs that are run more than once: what layers are computed by is found out once."""

    def __init__(self) -> None:
        fast_layers()  # imports layer types, which is not left to threads that would do it at the same time
        self._known: dict[int, tuple[Layer, Step]] = {}

    def prepare(self, graph: Graph) -> None:
        """Finds it out for all layers, on all processors: samples that are begun at the same time would do so each for itself."""

        def one(layer: Layer) -> None:
            try:
                self._known[id(layer)] = layer, step(layer)
            except LayerError:
                return  # which it is again, and told, when its turn comes

        spread(one, [layer for layer in graph.layers if layer.type != "Input"])

    def __call__(self, layer: Layer, inputs: Sequence[Array], wanted: Wanted | None = None) -> list[Array]:
        found = self._known.get(id(layer))
        if found is None:
            found = self._known[id(layer)] = layer, step(layer)  # the layer lives on, and so its number is its own
        return found[1](inputs, wanted)


def run(graph: Graph, inputs: Sample, seen: Seen, computed: Compute = compute) -> None:
    """Runs a graph once, each layer by `computed`. CompassError naming a layer that cannot be computed."""
    with blas_on_one_thread(), np.errstate(all="ignore"):  # overflow shows in the results
        for layer, given, made in run_layers(graph, inputs, computed):
            seen(layer, given, made)


def run_all(
    graph: Graph,
    samples: Iterable[Sample],
    watch: Callable[[int], Watch],
    in_order: bool = True,
    by_itself: bool = False,
) -> Iterator[tuple[int, Watch]]:
    """Runs a graph on all samples, several together where that gives the same, and such groups on all processors.

    Gives the number of samples of each group, and what saw them: of `watch`, for the number of samples that lie one behind the
    other in the outputs; 1 where they do not. `in_order`: several together only where each sample's values stay in one piece.
    `by_itself`: one group after the other.
    """
    keep_memory()
    source, computed = iter(samples), Steps()
    first = list(islice(source, 2))
    size = even(at_once(graph), samples) if len(first) == 2 else 1
    batches, rows = together(graph, first, computed, size=size) if size > 1 else (None, False)
    if batches is None or in_order and not rows:
        size = 1

    def seen(group: list[Sample]) -> Watch:
        watching = watch(len(group) if rows else 1)

        def watched(layer: Layer, inputs: Sequence[Array]) -> list[Array]:
            return computed(layer, inputs, watching.wanted(layer))

        run(graph if batches is None or len(group) == 1 else batches.of(len(group)), stacked(group), watching, watched)
        return watching

    several = 1 if by_itself else _side_by_side(graph, size)
    computed.prepare(graph if batches is None else batches.of(size))
    for groups in _groups(_groups(chain(first, source), size), several):
        # with too few of them their layers are spread over the processors
        waves = [groups] if 2 * len(groups) > several else [[group] for group in groups]
        for wave in waves:
            yield from zip(map(len, wave), results(seen, wave), strict=True)


def _side_by_side(graph: Graph, size: int) -> int:
    """How many groups of samples are run at the same time; one where more would take too much memory."""
    many = processors()
    return many if many * size * _bytes_of_one(graph) <= MOST_SIDE_BY_SIDE else 1


def _groups(listed: Iterable[One], size: int) -> Iterator[list[One]]:
    """What is listed, `size` at a time, the last ones fewer."""
    source = iter(listed)
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
    return max(1, min(AT_ONCE, MOST_BYTES // max(_bytes_of_one(graph), 1)))


def even(size: int, samples: Iterable[Sample]) -> int:
    """How many samples, at most `size`, groups have that are as large as each other, and a multiple of `PARTS`, where it is known
    how many samples there are."""
    if not isinstance(samples, Sized) or len(samples) <= size:
        return size
    groups = -(-len(samples) // size)
    return -(-len(samples) // (-(-groups // PARTS) * PARTS))


def _bytes_of_one(graph: Graph) -> int:
    """Of all tensors of a sample together."""
    return sum(4 * t.count for layer in graph.layers if layer.type != "Constant" for t in layer.outputs)


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
    graph: Graph, two: Sequence[Sample], computed: Compute = compute, exact: bool = False, size: int = 2
) -> tuple[Batches | None, bool]:
    """The graph for several samples at once, and whether each sample's values stay in one piece in every tensor; None
    where it gives something else than for each of `two` samples. `exact`: integers count, too, and to the bit. `size`: of how
    many it will be asked for."""
    batches = Batches(graph)
    try:
        if not exact and all(map(partial(_sample_by_sample, size), graph.layers, batches.of(size).layers)):
            return batches, True
        pair = batches.of(2)
    except CompassError:
        return None, False

    def values(given: tuple[Graph, Sample]) -> dict[str, Array] | None:
        found: dict[str, Array] = {}

        def seen(layer: Layer, _: Sequence[Array], made: Sequence[Array]) -> None:
            if layer.type != "Constant":
                found.update(
                    {t.name: a for t, a in zip(layer.outputs, made, strict=True) if exact or t.dtype in FLOAT_TYPES}
                )

        try:
            run(*given, seen, computed)
        except CompassError:
            if given[0] is pair:
                return None
            raise
        return found

    *apart, both = results(values, [*((graph, sample) for sample in two), (pair, stacked(two))])
    if both is None:
        return None, False
    rows, alike = True, np.array_equal if exact else near
    for name, whole in both.items():
        each = np.stack([own[name].reshape(-1) for own in apart if own is not None])
        if each.size != whole.size:
            return None, False
        rows = rows and alike(each.reshape(-1), whole.reshape(-1))
        if not rows and not alike(np.sort(each, None), np.sort(whole, None)):
            return None, False
    return batches, rows


def _sample_by_sample(size: int, one: Layer, several: Layer) -> bool:
    """Whether a layer, of one sample and of `size`, is known to compute each index of the first axis from that index alone. Where
    all layers do, the graph need not be run to find out that samples stay apart."""
    tensors = list(zip((*one.inputs, *one.outputs), (*several.inputs, *several.outputs), strict=True))
    if any(a.shape[:1] != (1,) or b.shape != (size, *a.shape[1:]) for a, b in tensors):
        return False
    if several.type == "Transpose":
        return several.integers("perm")[:1] == [0]
    if several.type in ("Concat", "Softmax"):
        return several.axis("axis", -1) != 0
    same_rank = len(several.inputs) < 2 or len({len(t.shape) for t in (*several.inputs, *several.outputs)}) == 1
    return several.type == "Input" or several.type in RECURRENT or several.type in fast_layers() and same_rank


def near(a: Array, b: Array) -> bool:
    """Whether the values are the same but for the last bits of sums."""
    limit = 1e-4 * max(float(np.abs(a).max(initial=0)), 1e-6)
    return bool(np.abs(a - b).max(initial=0) <= limit)


class Rows:
    """Every tensor of a graph for some samples, the values of each sample behind those of the one before. Samples are run
    together where that gives the same."""

    def __init__(self, graph: Graph, computed: Compute | None = None, exact: bool = False) -> None:
        """`computed`: as `run` takes it, by default `Steps`. `exact`: "the same" is to the bit."""
        self.graph, self._computed, self._exact = graph, computed or Steps(), exact
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
