"""Patterns of layers, written in the form of what they match.

    x = anything("x")
    FUSIONS = [Fusion(x * call("Sigmoid", x), lambda m: m.layer("Activation", [m["x"]], method="SILU"))]

A `Fusion` is a rule of `compassc.graph.edit`. What it takes away must not be used elsewhere for the layers to go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compassc.graph.edit import GraphEditor, Rule
from compassc.graph.layer import Layer
from compassc.graph.methods import ARITHMETIC, is_activated
from compassc.graph.tensor import Tensor

UNARY_METHODS = {"Sigmoid": "SIGMOID", "Tanh": "TANH", "Softplus": "SOFTPLUS", "Relu": "RELU"}


@dataclass(frozen=True, eq=False)
class Pattern:
    """A pattern of how a tensor is computed. `+ - * /` and `call` combine patterns; numbers match constants of that value:
    halves exactly, others within 1e-5 of them."""

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
        first = self.options if isinstance(self, Alternatives) else (self,)
        return Alternatives((*first, *(other.options if isinstance(other, Alternatives) else (other,))))


Operand = Pattern | float


@dataclass(frozen=True, eq=False)
class Wildcard(Pattern):
    """Any tensor; the same one where the name is the same."""

    name: str


@dataclass(frozen=True, eq=False)
class ConstantPattern(Pattern):
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
    given: Mapping[str, object]
    name: str = ""


@dataclass(frozen=True, eq=False)
class Alternatives(Pattern):
    options: tuple[Pattern, ...]


def anything(name: str) -> Pattern:
    """Any tensor; the same one where the name is the same."""
    return Wildcard(name)


def known(name: str) -> Pattern:
    """A constant tensor."""
    return ConstantPattern(name)


def number(name: str) -> Pattern:
    """A constant tensor of one number."""
    return ConstantPattern(name, True)


def call(type: str, *inputs: Operand, name: str = "", **given: object) -> Pattern:
    """The output of a layer; `Add` to `Div`, and activations, match all layers that compute them."""
    return Call(type, tuple(i if isinstance(i, Pattern) else Number(float(i)) for i in inputs), given, name)


@dataclass
class Match:
    """A match of a pattern: tensors and layers by name."""

    edit: GraphEditor
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
        import numpy as np

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
        options = self.pattern.options if isinstance(self.pattern, Alternatives) else (self.pattern,)
        return tuple({t for o in options if isinstance(o, Call) for t in _types(o.type)})

    def __call__(self, edit: GraphEditor, layer: Layer) -> Sequence[Layer] | None:
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


def _equals(found: float | None, wanted: float) -> bool:
    """Whether a constant is the number of a pattern. Models spell numbers such as the root of 2 with few digits."""
    if found is None or (2 * wanted).is_integer():
        return found == wanted
    return abs(found - wanted) <= 1e-5 * abs(wanted)


def _is(layer: Layer, pattern: Call) -> bool:
    if layer.type not in _types(pattern.type) or is_activated(layer):
        return False
    if layer.type == "Eltwise" and layer.attributes["method"] != ARITHMETIC.get(pattern.type, ""):
        return pattern.type == "Eltwise" and all(layer.attributes.get(k) == v for k, v in pattern.given.items())
    if pattern.type in UNARY_METHODS and layer.attributes["method"] != UNARY_METHODS[pattern.type]:
        return False
    return all(layer.attributes.get(key) == value for key, value in pattern.given.items())


def _layers(edit: GraphEditor, pattern: Pattern, layer: Layer, match: Match, root: bool) -> Iterator[Match]:
    if isinstance(pattern, Alternatives):
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


def _all(edit: GraphEditor, pairs: list[tuple[Pattern, Tensor]], match: Match) -> Iterator[Match]:
    if not pairs:
        yield match
        return
    (pattern, tensor), rest = pairs[0], pairs[1:]
    for found in _tensor(edit, pattern, tensor, match):
        yield from _all(edit, rest, found)


def _tensor(edit: GraphEditor, pattern: Pattern, tensor: Tensor, match: Match) -> Iterator[Match]:
    if isinstance(pattern, Wildcard):
        bound = match.tensors.get(pattern.name)
        if bound is None:
            yield replace(match, tensors=match.tensors | {pattern.name: tensor})
        elif bound.name == tensor.name:
            yield match
    elif isinstance(pattern, Number):
        if _equals(edit.number(tensor), pattern.value):
            yield match
    elif isinstance(pattern, ConstantPattern):
        if edit.constant(tensor) is not None and (not pattern.number or edit.number(tensor) is not None):
            yield replace(match, tensors=match.tensors | {pattern.name: tensor})
    else:
        producer = edit.producer(tensor)
        if tensor.name not in edit.ends:
            yield from _layers(edit, pattern, producer, match, False)
