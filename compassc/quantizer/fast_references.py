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
from compassc.layers.families.activation.reference import FUNCTIONS, is_approximated, method_of
from compassc.layers.families.eltwise.reference import METHODS, eltwise_body, method_in
from compassc.layers.float_loops import FUNCTIONS as LOOPS
from compassc.layers.float_loops import PAIRS, Wanted, aligned, each, finish, pairs
from compassc.layers.threads import at_work, spread
from compassc.layers.window_products import STRIP, slices
from compassc.operators.calls import References
from compassc.operators.patterns import PatternKind
from compassc.quantizer.windowed import (
    LIMITS,
    PER_ELEMENT,
    Fast,
    Watched,
    biases_of,
    convolution,
    limits_of,
    pooling,
    rectifier,
)

CONVERSIONS = ("Cast", "Quantize", "DeQuantize", "IsNaN", "IsInf", "FakeQuantWithMinMaxVars")
"""Functions of single numbers that take or give other types than float32, or are no part of float networks."""
Maker = Callable[[Layer], "Fast | None"]
"""What gives the one output of a layer for arrays of the shapes that it declares; None where the reference is to be asked."""


def product(rows: Array, filters: Array, biases: Array, limits: tuple[float, float] = LIMITS["NONE"]) -> Array:
    """rows [M, K] times the transposed filters [N, K], and biases [N], within limits: many rows at a time."""
    (many, inner), outputs = rows.shape, len(filters)
    made, columns = np.empty((many, outputs), np.float32), filters.T

    def piece(at: slice) -> None:
        np.matmul(rows[at], columns, out=made[at])
        finish(made[at], biases, *limits)

    spread(piece, slices(many, max(inner, outputs)))
    return made


def fully_connected(layer: Layer) -> Fast:
    weights = layer.constant("weights").astype(np.float32, copy=False)
    weights = weights.reshape(weights.shape[0], -1)
    biases, limits, activated = biases_of(layer, len(weights)), limits_of(layer), rectifier(layer)

    def made(x: Array) -> Array:
        rows = np.ascontiguousarray(x.reshape(-1, weights.shape[1]), np.float32)
        sums = product(rows, weights, biases, limits).reshape(*x.shape[:-1], len(weights))
        return activated(sums) if activated else sums

    return made


def by_pieces(function: Callable[..., None], *operands: Array) -> Array:
    """What `function(*operands, out)` writes of single numbers of operands of one shape, in pieces that stay in the caches."""
    flat = [np.ascontiguousarray(x).reshape(-1) for x in operands]
    made = np.empty(flat[0].size, np.float32)

    def piece(at: slice) -> None:
        function(*(x[at] for x in flat), made[at])

    spread(piece, slices(made.size, 1, STRIP))
    return made.reshape(operands[0].shape)


def function_of(layer: Layer) -> Fast | None:
    """A layer that is a function of single numbers, by the loops for it or by its reference."""
    method = method_of(layer) if layer.type in FUNCTIONS else ""
    if method.lower() in LOOPS and layer.word("approximate", "NONE") == "NONE" and not is_approximated(layer):
        return partial(by_pieces, partial(each, method.lower()))
    reference = type_of(layer.type).float
    if reference is None or layer.constants or layer.output.shape != layer.input.shape:
        return None
    return partial(by_pieces, partial(_written, partial(reference, layer)))


def _written(function: Callable[..., object], *given: Array) -> None:
    *operands, out = given
    out[...] = function(*operands)


class Pairs(Watched):
    """A function of two operands of one shape, whose rectifier is no more than limits."""

    def __init__(self, name: str, limits: tuple[float, float]) -> None:
        self._write = partial(pairs, name, limits)

    def __call__(self, *inputs: Array, wanted: Wanted | None = None) -> Array:
        if not at_work():
            return by_pieces(self._write, *inputs)
        a, b = map(np.ascontiguousarray, inputs)
        made = aligned(a.size).reshape(a.shape)
        self._write(a, b, made, wanted)
        return made


def eltwise(layer: Layer) -> Fast | None:
    """Two operands of one shape, with a rectifier whose numbers are the same everywhere."""
    if len({t.shape for t in layer.inputs}) > 1 or layer.word("with_activation", "NONE") in PER_ELEMENT:
        return None
    if len(layer.inputs) != 2:
        return None
    name = METHODS[method_in(layer)]
    if name in PAIRS and rectifier(layer) is None:
        return Pairs(name, limits_of(layer))
    return partial(by_pieces, partial(_written, partial(eltwise_body, References(), layer)))


def moved(layer: Layer) -> Fast | None:
    shape = layer.output.shape
    return (lambda x: x.reshape(shape)) if layer.input.count == layer.output.count else None


def constant(layer: Layer) -> Fast | None:
    values = layer.constant("weights")
    if values.dtype != np.float32 or values.size != layer.output.count:
        return None
    shaped = values.reshape(layer.output.shape)
    return lambda: shaped


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
        "Constant": constant,
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
