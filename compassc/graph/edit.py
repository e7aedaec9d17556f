"""Rewriting a graph: rules look at one layer and what it is made of, and give other layers.

def negative_twice(edit: GraphEditor, layer: Layer) -> Sequence[Layer] | None:
    before = edit.producer(layer.input)
    return edit.instead(layer, before.input) if before.type == "Negative" else None

graph = rewrite(graph, {"Negative": [negative_twice]})
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from compass_core.arrays import Array
from compassc.graph.graph import Graph
from compassc.graph.layer import Layer
from compassc.graph.tensor import Tensor

MOST_SWEEPS = 12
"""Of all layers; what rules still find then is left."""


class GraphEditor:
    """A graph while it is rewritten. Its inputs and outputs keep their names."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.layers: dict[str, Layer] = {layer.name: layer for layer in graph.layers}
        self.ends = {t.name for t in graph.outputs}
        self._producers = {t.name: layer for layer in graph.layers for t in layer.outputs}
        self._users: dict[str, dict[str, Layer]] = {}
        for layer in graph.layers:
            self._use(layer)
        self._new = 0

    def _use(self, layer: Layer) -> None:
        for tensor in layer.inputs:
            self._users.setdefault(tensor.name, {})[layer.name] = layer

    # -- looking

    def producer(self, tensor: Tensor) -> Layer:
        """The layer that makes a tensor."""
        return self._producers[tensor.name]

    def users(self, tensor: Tensor) -> list[Layer]:
        """The layers that a tensor goes into."""
        return list(self._users.get(tensor.name, {}).values())

    def sole(self, tensor: Tensor) -> Layer | None:
        """The layer that makes a tensor which one layer alone uses, as its only output."""
        layer = self._producers[tensor.name]
        alone = len(self._users.get(tensor.name, ())) == 1 and tensor.name not in self.ends
        return layer if alone and len(layer.outputs) == 1 else None

    def constant(self, tensor: Tensor) -> Array | None:
        """The content of a constant tensor."""
        layer = self._producers[tensor.name]
        return layer.constants["weights"] if layer.type == "Constant" else None

    def number(self, tensor: Tensor) -> float | None:
        """The one number that all elements of a constant tensor are."""
        array = self.constant(tensor)
        if array is None or not array.size or (array != array.flat[0]).any():
            return None
        return float(array.flat[0])

    # -- changing

    def tensor(self, name: str, like: Tensor, shape: Sequence[int] | None = None) -> Tensor:
        """A tensor under a new name that begins with `name`, of the type of another one."""
        self._new += 1
        while (made := f"{name}_{self._new}") in self._producers:
            self._new += 1
        return replace(like, name=made, shape=tuple(like.shape if shape is None else shape))

    def put(self, old: Layer, new: Sequence[Layer]) -> None:
        """Replaces a layer; the new ones make its tensors. Those whose names are taken get others."""
        del self.layers[old.name]
        for tensor in old.inputs:
            self._users[tensor.name].pop(old.name, None)
        for layer in new:
            while layer.name in self.layers:
                self._new += 1
                layer = replace(layer, name=f"{layer.name}_{self._new}")
            self.layers[layer.name] = layer
            self._producers.update((t.name, layer) for t in layer.outputs)
            self._use(layer)

    def instead(self, layer: Layer, given: Tensor) -> list[Layer] | None:
        """Lets the users of a layer's one output use `given`; None when that cannot be.

        The result is what a rule returns: the layer goes. Where its output is one of the graph, `given` takes its name,
        which it cannot when it is an end of the graph, too.
        """
        made = layer.output
        if made.name not in self.ends:
            for user in self.users(made):
                self._feed(user, {made.name: given})
            return []
        source = self._producers[given.name]
        if given.name in self.ends or source.type == "Input":
            return None
        renamed = replace(given, name=made.name)
        for user in self.users(given):
            if user.name != layer.name:
                self._feed(user, {given.name: renamed})
        # until the layer is gone, two make the tensor
        self.put(source, [replace(source, outputs=tuple(renamed if t == given else t for t in source.outputs))])
        for user in self.users(made):
            if user.name != layer.name:
                self._feed(user, {made.name: renamed})
        return []

    def _feed(self, user: Layer, by: Mapping[str, Tensor]) -> None:
        self.put(user, [replace(user, inputs=tuple(by.get(t.name, t) for t in user.inputs))])

    def remove(self, layer: Layer) -> None:
        """Removes an unused layer."""
        self.put(layer, [])

    def sweep(self) -> bool:
        """Removes unused layers, but no inputs; returns whether there were any."""
        found = False
        for layer in reversed(list(self.ordered())):
            unused = not any(self._users.get(t.name) or t.name in self.ends for t in layer.outputs)
            if unused and layer.type != "Input":
                self.remove(layer)
                found = True
        return found

    def ordered(self) -> Iterator[Layer]:
        """The layers, producers first, else in the order of the graph."""
        done: set[str] = set()
        place = {layer.name: i for i, layer in enumerate(self.graph.layers)}
        for start in sorted(self.layers.values(), key=lambda n: place.get(n.name, len(place))):
            stack = [(start, False)]
            while stack:
                layer, entered = stack.pop()
                if layer.name in done:
                    continue
                if entered:
                    done.add(layer.name)
                    yield layer
                    continue
                stack.append((layer, True))
                stack += [(self._producers[t.name], False) for t in reversed(layer.inputs)]

    def finish(self) -> Graph:
        """The graph as it is now."""
        layers = tuple(self.ordered())
        tensors = {t.name: t for layer in layers for t in layer.outputs}
        return replace(self.graph, layers=layers, outputs=tuple(tensors[t.name] for t in self.graph.outputs))


Rule = Callable[[GraphEditor, Layer], "Sequence[Layer] | None"]
"""A rule: the layers that replace a layer and make its tensors; None to keep it."""


def rewrite(graph: Graph, rules: Mapping[str, Sequence[Rule]]) -> Graph:
    """The graph after the rules, which stand by the type of the layer that they look at, until none applies.

    Layers that nobody uses any more go. The graph itself when no rule applies. Sub-graphs are rewritten, too.
    """
    inner = {name: rewrite(sub, rules) for name, sub in graph.subgraphs.items()}
    if any(inner[name] is not graph.subgraphs[name] for name in inner):
        graph = replace(graph, subgraphs=inner)
    edit = GraphEditor(graph)
    changed = False
    for _ in range(MOST_SWEEPS):
        if not _sweep(edit, rules):
            break
        changed = True
        edit.sweep()
    return edit.finish() if changed else graph


def _sweep(edit: GraphEditor, rules: Mapping[str, Sequence[Rule]]) -> bool:
    changed = False
    for name in [n.name for n in edit.ordered()]:
        layer = edit.layers.get(name)
        for rule in rules.get(layer.type, ()) if layer else ():
            assert layer is not None, "it has rules"
            found = rule(edit, layer)
            if found is not None:
                edit.put(layer, found)
                changed = True
                break
    return changed
