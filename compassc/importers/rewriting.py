"""Rewriting of layers that other layers compute better: rules as data, patterns that look like what they match.

    x = anything("x")
    FUSIONS = [Fusion(x * call("Sigmoid", x), lambda m: m.layer("Activation", [m["x"]], method="SILU"))]

A rule looks at one layer and what it is made of. `Fusion` is a rule by a pattern; a function of (graph, layer) that gives
layers, or None, is one too. What a rule takes away must not be used elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from compassc.graph.graph import Graph
from compassc.graph.layer import Layer
from compassc.graph.tensor import Tensor

Array = np.ndarray[Any, Any]
MOST_SWEEPS = 12
ARITHMETIC = {"Add": "ADD", "Sub": "SUB", "Mul": "MUL", "Div": "DIV"}
UNARY_METHODS = {"Sigmoid": "SIGMOID", "Tanh": "TANH", "Softplus": "SOFTPLUS", "Relu": "RELU"}


class Editing:
    """A graph while it is rewritten."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.layers: dict[str, Layer] = {layer.name: layer for layer in graph.layers}
        self.producers = {t.name: layer for layer in graph.layers for t in layer.outputs}
        self.users: dict[str, dict[str, Layer]] = {}
        for layer in graph.layers:
            self._use(layer)
        self.ends = {t.name for t in graph.outputs}
        self._new = 0

    def _use(self, layer: Layer) -> None:
        for tensor in layer.inputs:
            self.users.setdefault(tensor.name, {})[layer.name] = layer

    def producer(self, tensor: Tensor) -> Layer:
        return self.producers[tensor.name]

    def sole(self, tensor: Tensor) -> Layer | None:
        """The layer that makes a tensor which one layer alone uses, as its only output."""
        layer = self.producers[tensor.name]
        alone = len(self.users.get(tensor.name, ())) == 1 and tensor.name not in self.ends
        return layer if alone and len(layer.outputs) == 1 else None

    def constant(self, tensor: Tensor) -> Array | None:
        """The content of a constant tensor."""
        layer = self.producers[tensor.name]
        return layer.constants["weights"] if layer.type == "Constant" else None

    def number(self, tensor: Tensor) -> float | None:
        """The one number of a constant tensor."""
        array = self.constant(tensor)
        if array is None or not array.size or (array != array.flat[0]).any():
            return None
        return float(array.flat[0])

    def tensor(self, name: str, shape: Sequence[int], dtype: str) -> Tensor:
        """A tensor under a new name."""
        self._new += 1
        return Tensor(f"{name}_fused{self._new}", tuple(shape), dtype)

    def put(self, old: Layer, new: Sequence[Layer]) -> None:
        """Replaces a layer; the new ones make its tensors."""
        del self.layers[old.name]
        for tensor in old.inputs:
            self.users[tensor.name].pop(old.name, None)
        for layer in new:
            while layer.name in self.layers:
                self._new += 1
                layer = replace(layer, name=f"{layer.name}_{self._new}")
            self.layers[layer.name] = layer
            self.producers.update((t.name, layer) for t in layer.outputs)
            self._use(layer)

    def bypass(self, layer: Layer) -> bool:
        """Lets the users of a layer that changes nothing use its input; False when an output of the graph is in the way."""
        made, given = layer.output, layer.input
        if made.name in self.ends:
            return False
        for user in list(self.users.get(made.name, {}).values()):
            self.put(user, [replace(user, inputs=tuple(given if t.name == made.name else t for t in user.inputs))])
        return True

    def sweep(self) -> None:
        """Forgets layers that nobody uses any more, and passes by those that change nothing."""
        for layer in list(self.layers.values()):
            if self.layers.get(layer.name) is layer and _changes_nothing(layer):
                self.bypass(layer)
        for layer in reversed(list(self.ordered())):
            unused = not any(self.users.get(t.name) or t.name in self.ends for t in layer.outputs)
            if unused and layer.type != "Input":
                del self.layers[layer.name]
                for tensor in layer.inputs:
                    self.users[tensor.name].pop(layer.name, None)

    def ordered(self) -> Iterator[Layer]:
        """The layers, producers first."""
        done: set[str] = set()
        for start in list(self.layers.values()):
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
                stack += [(self.producers[t.name], False) for t in reversed(layer.inputs)]

    def finish(self) -> Graph:
        layers = tuple(self.ordered())
        return replace(self.graph, layers=layers)


def _changes_nothing(layer: Layer) -> bool:
    if layer.type == "Transpose":
        return layer.integers("perm") == list(range(len(layer.output.shape)))
    return layer.type == "Reshape" and replace(layer.input, name="") == replace(layer.output, name="")


Rule = Callable[[Editing, Layer], "Sequence[Layer] | None"]


def rewrite(graph: Graph, rules: Mapping[str, Sequence[Rule]]) -> Graph:
    """The graph after the rules, which stand by the type of the layer that they look at, until none applies."""
    edit = Editing(graph)
    for _ in range(MOST_SWEEPS):
        changed = False
        for layer in list(edit.ordered()):
            for rule in rules.get(layer.type, ()):
                if layer.name not in edit.layers or edit.layers[layer.name] is not layer:
                    break
                found = rule(edit, layer)
                if found is not None:
                    edit.put(layer, found)
                    changed = True
                    break
        edit.sweep()
        if not changed:
            break
    return edit.finish()


# -- patterns


@dataclass(frozen=True, eq=False)
class Pattern:
    """What a tensor is made by. `+ - * /` and `call` make patterns of patterns; numbers match constants of that value."""

    def __add__(self, other: Operand) -> Pattern:
        return call("Add", self, other)

    def __radd__(self, other: Operand) -> Pattern:
        return call("Add", self, other)

    def __sub__(self, other: Operand) -> Pattern:
        return call("Sub", self, other)

    def __mul__(self, other: Operand) -> Pattern:
        return call("Mul", self, other)

    def __rmul__(self, other: Operand) -> Pattern:
        return call("Mul", self, other)

    def __truediv__(self, other: Operand) -> Pattern:
        return call("Div", self, other)

    def __or__(self, other: Pattern) -> Pattern:
        first = self.options if isinstance(self, Either) else (self,)
        return Either((*first, *(other.options if isinstance(other, Either) else (other,))))


Operand = Pattern | float


@dataclass(frozen=True, eq=False)
class Anything(Pattern):
    """Any tensor; the same one where the name is the same."""

    name: str


@dataclass(frozen=True, eq=False)
class Known(Pattern):
    """A constant tensor."""

    name: str
    number: bool = False


@dataclass(frozen=True, eq=False)
class Number(Pattern):
    value: float


@dataclass(frozen=True, eq=False)
class Call(Pattern):
    """A layer. `name` keeps the layer in the match; `given`: attributes it must have."""

    type: str
    inputs: tuple[Pattern, ...]
    given: Mapping[str, Any]
    name: str = ""


@dataclass(frozen=True, eq=False)
class Either(Pattern):
    options: tuple[Pattern, ...]


def anything(name: str) -> Pattern:
    """Any tensor; the same one where the name is the same."""
    return Anything(name)


def known(name: str) -> Pattern:
    """A constant tensor."""
    return Known(name)


def number(name: str) -> Pattern:
    """A constant tensor of one number."""
    return Known(name, True)


def call(type: str, *inputs: Operand, name: str = "", **given: object) -> Pattern:
    """What a layer makes; `Add` to `Div`, and activations, stand for all layers that compute them."""
    return Call(type, tuple(i if isinstance(i, Pattern) else Number(float(i)) for i in inputs), given, name)


@dataclass
class Match:
    """What a pattern was found to stand for: tensors, and layers, by name."""

    edit: Editing
    root: Layer
    tensors: dict[str, Tensor] = field(default_factory=dict)
    layers: dict[str, Layer] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Tensor:
        return self.tensors[name]

    def number(self, name: str) -> float:
        value = self.edit.number(self.tensors[name])
        assert value is not None
        return value

    def array(self, name: str) -> Array:
        array = self.edit.constant(self.tensors[name])
        assert array is not None
        return array

    def layer(self, type: str, inputs: Sequence[Tensor], **given: object) -> list[Layer]:
        """The layer instead of the pattern's root: arrays are constants, the rest attributes."""
        constants = {k: v for k, v in given.items() if isinstance(v, np.ndarray)}
        attributes: dict[str, object] = {k: v for k, v in given.items() if k not in constants and v is not None}
        return [Layer(self.root.name, type, tuple(inputs), self.root.outputs, attributes, constants, self.root.span)]  # type: ignore[arg-type]


@dataclass(frozen=True)
class Fusion:
    """A rule by a pattern; `make` gives the layers, or None when it does not hold after all."""

    pattern: Pattern
    make: Callable[[Match], Sequence[Layer] | None]

    @property
    def types(self) -> tuple[str, ...]:
        """The types of the layers it looks at."""
        options = self.pattern.options if isinstance(self.pattern, Either) else (self.pattern,)
        return tuple({t for o in options if isinstance(o, Call) for t in _types(o.type)})

    def __call__(self, edit: Editing, layer: Layer) -> Sequence[Layer] | None:
        for match in _layers(edit, self.pattern, layer, Match(edit, layer), True):
            found = self.make(match)
            if found is not None:
                return found
        return None


def _types(type: str) -> tuple[str, ...]:
    if type in ("Add", "Sub", "Mul"):
        return type, "Eltwise"
    return ("Activation",) if type in UNARY_METHODS else (type,)


def by_type(rules: Sequence[Fusion]) -> dict[str, list[Rule]]:
    """Rules by the types of layers that they look at."""
    found: dict[str, list[Rule]] = {}
    for rule in rules:
        for type in rule.types:
            found.setdefault(type, []).append(rule)
    return found


def _is(layer: Layer, pattern: Call) -> bool:
    if layer.type not in _types(pattern.type) or layer.attributes.get("with_activation", "NONE") != "NONE":
        return False
    if layer.type == "Eltwise" and layer.attributes["method"] != ARITHMETIC.get(pattern.type, ""):
        return pattern.type == "Eltwise" and all(layer.attributes.get(k) == v for k, v in pattern.given.items())
    if pattern.type in UNARY_METHODS and layer.attributes["method"] != UNARY_METHODS[pattern.type]:
        return False
    return all(layer.attributes.get(key) == value for key, value in pattern.given.items())


def _layers(edit: Editing, pattern: Pattern, layer: Layer, match: Match, root: bool) -> Iterator[Match]:
    if isinstance(pattern, Either):
        for option in pattern.options:
            yield from _layers(edit, option, layer, match, root)
        return
    if not isinstance(pattern, Call) or not _is(layer, pattern) or len(pattern.inputs) != len(layer.inputs):
        return
    orders = [layer.inputs]
    if len(layer.inputs) == 2 and pattern.type in ("Add", "Mul"):
        orders.append(layer.inputs[::-1])
    for inputs in orders:
        start = replace(match, tensors=dict(match.tensors), layers=dict(match.layers))
        if pattern.name:
            start.layers[pattern.name] = layer
        yield from _all(edit, list(zip(pattern.inputs, inputs, strict=True)), start)


def _all(edit: Editing, pairs: list[tuple[Pattern, Tensor]], match: Match) -> Iterator[Match]:
    if not pairs:
        yield match
        return
    (pattern, tensor), rest = pairs[0], pairs[1:]
    for found in _tensor(edit, pattern, tensor, match):
        yield from _all(edit, rest, found)


def _tensor(edit: Editing, pattern: Pattern, tensor: Tensor, match: Match) -> Iterator[Match]:
    if isinstance(pattern, Anything):
        bound = match.tensors.get(pattern.name)
        if bound is None:
            yield replace(match, tensors=match.tensors | {pattern.name: tensor})
        elif bound.name == tensor.name:
            yield match
    elif isinstance(pattern, Number):
        value = edit.number(tensor)
        if value is not None and abs(value - pattern.value) <= 1e-5 * max(1e-3, abs(pattern.value)):
            yield match
    elif isinstance(pattern, Known):
        if edit.constant(tensor) is not None and (not pattern.number or edit.number(tensor) is not None):
            yield replace(match, tensors=match.tensors | {pattern.name: tensor})
    else:
        producer = edit.producer(tensor)
        if tensor.name not in edit.ends:
            yield from _layers(edit, pattern, producer, match, False)
