"""Checks of a layer against the declaration of its type, before a reference or a kernel uses it."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable
from functools import cache, reduce
from operator import is_
from typing import TYPE_CHECKING, Any

from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.broadcast import common_shape

if TYPE_CHECKING:
    from compassc.layers.declare import LayerType


def _one(layer: Layer, key: str) -> int:
    """A whole number, alone or in a list."""
    found = layer.integers(key)
    if len(found) != 1:
        raise LayerError(f"'{key}' is {layer.attributes[key]!r}, expected a whole number")
    return found[0]


def _counts(layer: Layer, key: str) -> None:
    if min(layer.integers(key), default=1) < 1:
        raise LayerError(f"'{key}' is {layer.attributes[key]}, expected at least 1")


def _count(layer: Layer, key: str) -> None:
    _one(layer, key)
    _counts(layer, key)


def _measure(layer: Layer, key: str) -> None:
    if layer.number(key) < 0:
        raise LayerError(f"'{key}' is {layer.attributes[key]}, expected a number that is not negative")


def _words(layer: Layer, key: str) -> None:
    found = layer.attributes[key]
    listed = found if isinstance(found, (list, tuple)) else [found]
    if not all(isinstance(word, str) for word in listed):
        raise LayerError(f"'{key}' is {found!r}, expected words")


def _word(layer: Layer, key: str) -> None:
    if not isinstance(layer.attributes[key], str):
        raise LayerError(f"'{key}' is {layer.attributes[key]!r}, expected a word")


KINDS: dict[str, tuple[str, Callable[[Layer, str], Any]]] = {
    "int": ("a whole number", _one),
    "ints": ("whole numbers", Layer.integers),
    "count": ("a whole number above 0", _count),
    "counts": ("whole numbers above 0", _counts),
    "float": ("a number", Layer.number),
    "measure": ("a number that is not negative", _measure),
    "floats": ("numbers", Layer.numbers),
    "flag": ("true or false", Layer.flag),
    "word": ("a word", _word),
    "words": ("words", _words),
    "pairs": ("pairs of whole numbers", Layer.pairs),
}
"""Kinds of attributes: a description, and the reader, which refuses values of other kinds."""
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
def _inputs_of(reference: Callable[..., object]) -> tuple[int, int]:
    """The smallest and the largest number of inputs a reference takes; -1: any."""
    _, *given = inspect.signature(reference).parameters.values()
    many = any(p.kind is p.VAR_POSITIONAL for p in given)
    plain = [p for p in given if p.kind is p.POSITIONAL_OR_KEYWORD]
    return sum(p.default is p.empty for p in plain), -1 if many else len(plain)


def fault_of(kind: str, value: Any) -> str:
    """What was expected in place of a value of the wrong kind; "" for a value of the right one."""
    words, read = KINDS[kind]
    try:
        read(Layer("", "", attributes={"value": value}), "value")
    except LayerError:
        return words
    return ""


def check(declared: LayerType, layer: Layer) -> None:
    """LayerError where inputs, attributes, constants or shapes differ from those that the type declares. A layer that has passed
    is not looked at again as long as it has the same values: references are asked once for each sample."""
    values = [declared.name, *layer.attributes, *layer.attributes.values(), *layer.constants, *layer.constants.values()]
    passed = layer.__dict__.get(_PASSED)
    if passed is not None and len(passed) == len(values) and all(map(is_, passed, values)):
        return
    _check(declared, layer)
    object.__setattr__(layer, _PASSED, values)


_PASSED = "_passed"
"""The attribute of a layer that holds what it had when it was found right."""


def _check(declared: LayerType, layer: Layer) -> None:
    reference = declared.quantised if layer.is_quantised and declared.quantised else declared.float
    if reference is not None:
        least, most = _inputs_of(reference)
        if len(layer.inputs) < least or 0 <= most < len(layer.inputs):
            names = [t.name for t in layer.inputs]
            raise LayerError(f"it has {len(names)} inputs {names}, expected '{declared.inputs}'")
    if not layer.outputs and declared.outputs:
        raise LayerError(f"it has no output, expected '{declared.outputs}'")
    if 0 < _most_outputs(declared.outputs) < len(layer.outputs):
        names = [t.name for t in layer.outputs]
        raise LayerError(f"it has {len(names)} outputs {names}, expected '{declared.outputs}'")
    for t in (*layer.inputs, *layer.outputs):
        if t.is_integer:
            _check_quantisation(t)
    for attribute in declared.attributes:
        if layer.attributes.get(attribute.name) not in (None, "None"):
            KINDS[attribute.kind][1](layer, attribute.name)
            if attribute.told is not None:
                _agree(layer, attribute.name, _told(attribute.told, layer))
    for key in ACTIVATION_NUMBERS:
        if layer.has(key):
            layer.numbers(key)
    if layer.is_quantised:
        _check_tables(layer)
        # refuses multipliers and shifts that no layer has
        layer.scale_shift(needed=False)
    _check_clip(layer)
    for constant in declared.constants if layer.is_quantised else ():
        array = layer.constants.get(constant.name)
        if array is not None and constant.shape == "[2^n]" and array.size & (array.size - 1) | (array.size == 0):
            raise LayerError(f"the table '{constant.name}' has {array.size} entries, expected a power of two")
    _check_shape(declared, layer)
    from compassc.layers.type_constraints import check_constants, check_laws

    check_constants(layer, {constant.name: constant.shape for constant in declared.constants})
    check_laws(layer)


ACTIVATION_NUMBERS = ("clip_min", "clip_max", "negative_slope_value", "negative_slope_shift")
"""Attributes of the activation that may be fused into a layer of any type."""


@cache
def _most_outputs(outputs: str) -> int:
    """How many outputs a type has at most, by the words of its declaration; 0: any number."""
    return 0 if "..." in outputs else re.sub(r"\([^)]*\)", "", outputs).count(",") + 1


def _check_quantisation(t: Tensor) -> None:
    """LayerError for scales and zero points that no tensor has."""
    scales = t.scale if isinstance(t.scale, tuple) else (t.scale,)
    zeros = t.zero if isinstance(t.zero, tuple) else (t.zero,)
    for scale in scales:
        if not 0 < scale < math.inf:
            raise LayerError(f"'{t.name}' has the scale {scale:g}, expected a number above 0")
    limit = (1 << t.integer.bits) - 1
    for zero in zeros:
        if not -limit <= zero <= limit or zero != int(zero):
            raise LayerError(f"'{t.name}' is {t.dtype}, but has the zero point {zero:g}, expected {-limit} to {limit}")
    many = max(len(scales), len(zeros))
    fits = many in t.shape if t.axis is None else -len(t.shape) <= t.axis < len(t.shape) and t.shape[t.axis] == many
    if many > 1 and not fits:
        where = "of any dimension" if t.axis is None else f"of the dimension {t.axis}"
        raise LayerError(
            f"'{t.name}' has {many} scales or zero points, but they are not one for each index {where} of {list(t.shape)}"
        )


def _check_tables(layer: Layer) -> None:
    """LayerError where a table of a quantised layer is empty."""
    for key, array in layer.constants.items():
        if (key.startswith("lut") or key.endswith("lut")) and not array.size:
            raise LayerError(f"the table '{key}' has the shape {list(array.shape)}, expected entries")


def _told(told: Callable[[Layer], object], layer: Layer) -> Any:
    """What the tensors tell; None where they have not the dimensions for it, which the laws of the type refuse."""
    try:
        return told(layer)
    except IndexError:
        return None


def _agree(layer: Layer, key: str, told: object) -> None:
    """LayerError where an attribute contradicts the tensors, which tell nothing by None; -1 in a list matches any size."""
    if told is None:
        return
    if isinstance(told, list):
        given = layer.integers(key)
        same = len(given) == len(told) and all(g in (-1, t) for g, t in zip(given, told, strict=True))
    else:
        same = layer.integer(key) == told
    if not same:
        shapes = [list(t.shape) for t in (*layer.inputs, *layer.outputs)]
        raise LayerError(f"'{key}' is {layer.attributes[key]}, but its tensors {shapes} say {told}")


def _check_clip(layer: Layer) -> None:
    kinds = (layer.type.upper(), *(str(layer.attributes.get(key)).upper() for key in ("method", "with_activation")))
    if "CLIP" in kinds and layer.has("clip_min") and layer.has("clip_max"):
        low, high = layer.number("clip_min"), layer.number("clip_max")
        if low > high:
            raise LayerError(f"'clip_min' is {low:g}, but 'clip_max' is {high:g}")


def _check_shape(declared: LayerType, layer: Layer) -> None:
    joined = declared.pattern.name in ("ELEMENTWISE", "BROADCAST") and not _gives_places(layer)
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
