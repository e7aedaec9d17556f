"""Float layers whose references are exact but slow, in float32: products, pooling, functions of one number.

Statistics do not need the references' float64; results differ from theirs in the last bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from inspect import signature

import numpy as np

from compass_core.arrays import Array
from compassc.graph import Layer
from compassc.layers.declare import LayerType, all_types, type_of
from compassc.layers.families.eltwise.reference import eltwise_body
from compassc.layers.threads import spread
from compassc.layers.window_products import STRIP, slices
from compassc.operators.calls import References
from compassc.operators.patterns import PatternKind
from compassc.quantizer.windowed import PER_ELEMENT, Fast, biases_of, convolution, pooling, rectifier

CONVERSIONS = ("Cast", "Quantize", "DeQuantize", "IsNaN", "IsInf", "FakeQuantWithMinMaxVars")
"""Functions of single numbers that take or give other types than float32, or are no part of float networks."""
Maker = Callable[[Layer], "Fast | None"]
"""What gives the one output of a layer for arrays of the shapes that it declares; None where the reference is to be asked."""


def product(rows: Array, filters: Array, biases: Array) -> Array:
    """rows [M, K] times the transposed filters [N, K], and biases [N]: many rows at a time."""
    (many, inner), outputs = rows.shape, len(filters)
    made, columns = np.empty((many, outputs), np.float32), filters.T

    def piece(at: slice) -> None:
        np.matmul(rows[at], columns, out=made[at])
        made[at] += biases

    spread(piece, slices(many, max(inner, outputs)))
    return made


def fully_connected(layer: Layer) -> Fast:
    weights = layer.constant("weights").astype(np.float32, copy=False)
    weights = weights.reshape(weights.shape[0], -1)
    biases, activated = biases_of(layer, len(weights)), rectifier(layer)

    def made(x: Array) -> Array:
        rows = np.ascontiguousarray(x.reshape(-1, weights.shape[1]), np.float32)
        return activated(product(rows, weights, biases).reshape(*x.shape[:-1], len(weights)))

    return made


def by_pieces(function: Callable[..., Array], *operands: Array) -> Array:
    """A function of single numbers of operands of one shape, in pieces that stay in the caches."""
    flat = [np.ascontiguousarray(x).reshape(-1) for x in operands]
    made = np.empty(flat[0].size, np.float32)

    def piece(at: slice) -> None:
        made[at] = function(*(x[at] for x in flat))

    spread(piece, slices(made.size, 1, STRIP))
    return made.reshape(operands[0].shape)


def erf(x: Array) -> Array:
    """The error function to 1e-6, by the approximation 7.1.26 of Abramowitz and Stegun."""
    bell = np.abs(x)
    t = bell * np.float32(0.3275911)
    t += 1
    np.divide(1, t, out=t)
    series = t * np.float32(1.061405429)
    for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series += np.float32(factor)
        series *= t
    bell *= bell
    series *= np.exp(np.negative(bell, out=bell), out=bell)
    np.subtract(1, series, out=series)
    np.copysign(series, x, out=series)
    return series


def gelu(x: Array) -> Array:
    made = erf(x * np.float32(0.5**0.5))
    made += 1
    made *= x * np.float32(0.5)
    return made


def function_of(layer: Layer) -> Fast | None:
    """A layer that is a function of single numbers by its reference; GELU and erf, whose references ask for one number
    after the other, by `erf`."""
    named = layer.type if layer.type != "Activation" else layer.word("method", "NONE")
    if named == "Erf":
        return partial(by_pieces, erf)
    if named == "GELU" and layer.word("approximate", "NONE") == "NONE":
        return partial(by_pieces, gelu)
    reference = type_of(layer.type).float
    if reference is None or layer.constants or layer.output.shape != layer.input.shape:
        return None
    return partial(by_pieces, lambda part: np.asarray(reference(layer, part)))


def eltwise(layer: Layer) -> Fast | None:
    """Two operands of one shape, with a rectifier whose numbers are the same everywhere."""
    if len({t.shape for t in layer.inputs}) > 1 or layer.word("with_activation", "NONE") in PER_ELEMENT:
        return None
    return partial(by_pieces, partial(eltwise_body, References(), layer)) if len(layer.inputs) == 2 else None


def moved(layer: Layer) -> Fast | None:
    shape = layer.output.shape
    return (lambda x: x.reshape(shape)) if layer.input.count == layer.output.count else None


@cache
def fast_layers() -> dict[str, Maker]:
    """By layer type."""
    functions = [d.name for d in all_types().values() if d.pattern is PatternKind.ELEMENTWISE and _is_of_one_number(d)]
    return {
        **dict.fromkeys(functions, function_of),
        **dict.fromkeys(("Convolution", "DepthwiseConv"), convolution),
        "FullyConnected": fully_connected,
        "Pooling": pooling,
        **dict.fromkeys(("Eltwise", "Add", "Sub", "Mul"), eltwise),
        "Reshape": moved,
    }


def _is_of_one_number(declared: LayerType) -> bool:
    """Whether an element follows from one other alone; lists of numbers may be one for each channel."""
    if (
        declared.float is None
        or declared.name in CONVERSIONS
        or any(a.kind in ("ints", "counts", "floats") for a in declared.attributes)
    ):
        return False
    return len(signature(declared.float).parameters) == 2
