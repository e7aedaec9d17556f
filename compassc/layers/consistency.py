"""What can be said about a layer from the declaration of its type, before a reference or a kernel looks at it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache, reduce
from typing import TYPE_CHECKING, Any

from compassc.graph import Layer, LayerError
from compassc.layers.broadcast import common_shape

if TYPE_CHECKING:
    from compassc.layers.declare import LayerType


def _one(layer: Layer, key: str) -> int:
    """A whole number, alone or in a list."""
    found = layer.integers(key)
    if len(found) != 1:
        raise LayerError(f"'{key}' is {layer.attributes[key]!r}, expected a whole number")
    return found[0]


KINDS: dict[str, Callable[[Layer, str], Any]] = {
    "int": _one,
    "ints": Layer.integers,
    "float": Layer.number,
    "floats": Layer.numbers,
    "flag": Layer.flag,
    "pairs": Layer.pairs,
}
"""Kinds of attributes and what reads them; it refuses values of other kinds."""
LONGEST = 60
"""Letters of a value in a description."""


def described(layer: Layer) -> str:
    """Tensors, attributes and constants of a layer in a line."""
    parts = [f"{t.name} {t.dtype} {list(t.shape)}" for t in (*layer.inputs, *layer.outputs)]
    for key, value in layer.attributes.items():
        text = repr(value)
        parts.append(f"'{key}' {text if len(text) <= LONGEST else text[:LONGEST] + '...'}")
    parts += [f"'{key}' {array.dtype.name} {list(array.shape)}" for key, array in layer.constants.items()]
    return ", ".join(parts)


@cache
def _inputs_of(reference: Callable[..., Any]) -> tuple[int, int]:
    """The smallest and the largest number of inputs a reference takes; -1: any."""
    _, *given = inspect.signature(reference).parameters.values()
    many = any(p.kind is p.VAR_POSITIONAL for p in given)
    plain = [p for p in given if p.kind is p.POSITIONAL_OR_KEYWORD]
    return sum(p.default is p.empty for p in plain), -1 if many else len(plain)


def check(declared: LayerType, layer: Layer) -> None:
    """LayerError where inputs, attributes, constants or shapes are none that a type declares, with what they are."""
    reference = declared.quantised if layer.is_quantised and declared.quantised else declared.float
    if reference is not None:
        least, most = _inputs_of(reference)
        if len(layer.inputs) < least or 0 <= most < len(layer.inputs):
            names = [t.name for t in layer.inputs]
            raise LayerError(f"it has {len(names)} inputs {names}, expected '{declared.inputs}'")
    if not layer.outputs and declared.outputs:
        raise LayerError(f"it has no output, expected '{declared.outputs}'")
    for attribute in declared.attributes:
        if layer.attributes.get(attribute.name) not in (None, "None") and attribute.kind in KINDS:
            KINDS[attribute.kind](layer, attribute.name)
    for constant in declared.constants:
        array = layer.constants.get(constant.name)
        if array is not None and constant.shape == "[2^n]" and array.size & (array.size - 1) | (array.size == 0):
            raise LayerError(f"the table '{constant.name}' has {array.size} entries, expected a power of two")
    _check_shape(declared, layer)


def _check_shape(declared: LayerType, layer: Layer) -> None:
    joined = declared.fusion.name in ("ELEMENTWISE", "BROADCAST") and not _gives_places(layer)
    if not layer.inputs or not (joined or declared.same_shape):
        return
    shapes = [t.shape for t in layer.inputs]
    expected = reduce(common_shape, shapes) if joined else shapes[0]
    if layer.type == "Activation" and layer.word("method", "NONE") == "CRELU":
        expected = _doubled(expected, layer.axis("axis", 0))
    for t in layer.outputs if joined else layer.outputs[:1]:
        if t.shape != expected:
            raise LayerError(
                f"'{t.name}' is declared as {list(t.shape)}, but the inputs {[list(s) for s in shapes]} give {list(expected)}"
            )


def _doubled(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """The shape of positive and negative parts behind each other along an axis."""
    return (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :])


def _gives_places(layer: Layer) -> bool:
    """Whether it is the form of a choice that has the condition alone."""
    return layer.type in ("Where", "Select") and len(layer.inputs) == 1
