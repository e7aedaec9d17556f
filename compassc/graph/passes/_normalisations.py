"""Normalisations that models spell out: means, variances and roots become one layer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compass_core.arrays import Array
from compassc.graph.edit import GraphEditor, Rule
from compassc.graph.layer import Layer
from compassc.graph.methods import ARITHMETIC_TYPES, arithmetic_method
from compassc.graph.passes._activations import root, square
from compassc.graph.patterns import Fusion, Match, Pattern, anything, call, number
from compassc.graph.tensor import Tensor

X = anything("x")


def _mean(x: Pattern, name: str) -> Pattern:
    return call("Reduce", x, method="MEAN", name=name)


_CENTRED = X - _mean(X, "mean")
_VARIANCE = _mean(square(_CENTRED), "variance") | call("Reduce", X, method="VARIANCE", name="variance")
_SPREAD = _VARIANCE + number("epsilon")
NORMALISED = (
    _CENTRED / root(_SPREAD)
    | _CENTRED * call("Reciprocal", root(_SPREAD))
    | _CENTRED * call("Pow", _SPREAD, -0.5)
    | _CENTRED * call("Rsqrt", _SPREAD)
)
_SQUARES = _mean(square(X), "variance") + number("epsilon")
ROOT_MEAN_SQUARE = (
    X / root(_SQUARES)
    | X * call("Reciprocal", root(_SQUARES))
    | X * call("Pow", _SQUARES, -0.5)
    | X * call("Rsqrt", _SQUARES)
)
_EXP = call("Exp", X)


def _axes(m: Match, name: str) -> list[int]:
    axes = m.layers[name].attributes["axis"]
    return list(axes) if isinstance(axes, (list, tuple)) else [axes]  # type: ignore[list-item]


def _trailing(axes: Sequence[int], rank: int) -> bool:
    return list(axes) == list(range(rank - len(axes), rank))


def _normalised(m: Match) -> Sequence[Layer] | None:
    """Over the last axes a LayerNorm, over spatial ones an InstanceNorm, otherwise an MVN."""
    x, axes = m["x"], _axes(m, "variance")
    if x.shape != m.root.output.shape or ("mean" in m.layers and _axes(m, "mean") != axes):
        return None
    rank, epsilon = len(x.shape), m.number("epsilon")
    if _trailing(axes, rank):
        size = [x.shape[a] for a in axes]
        ones, zeros = np.ones(size, np.float32), np.zeros(size, np.float32)
        return m.layer("LayerNorm", [x], axis=axes, epsilon=epsilon, weights=ones, biases=zeros)
    if axes == list(range(1, rank - 1)):
        ones, zeros = np.ones(x.shape[-1], np.float32), np.zeros(x.shape[-1], np.float32)
        return m.layer("InstanceNorm", [x], axis=axes, epsilon=epsilon, weights=ones, biases=zeros)
    return m.layer("MVN", [x], axis=axes, epsilon=epsilon)


def _root_mean_square(m: Match) -> Sequence[Layer] | None:
    x, axes = m["x"], _axes(m, "variance")
    if x.shape != m.root.output.shape or not _trailing(axes, len(x.shape)):
        return None
    ones = np.ones([x.shape[a] for a in axes], np.float32)
    return m.layer("RMSNorm", [x], axis=axes, epsilon=m.number("epsilon"), weights=ones)


def _softmax(m: Match) -> Sequence[Layer] | None:
    axes = _axes(m, "total")
    return m.layer("Softmax", [m["x"]], axis=axes[0]) if len(axes) == 1 else None


FUSIONS = (
    Fusion(NORMALISED, _normalised),
    Fusion(ROOT_MEAN_SQUARE, _root_mean_square),
    Fusion(_EXP / call("Reduce", _EXP, method="SUM", name="total"), _softmax),
)

WEIGHTED = ("LayerNorm", "RMSNorm", "InstanceNorm", "BatchNorm", "GroupNorm")


def _fitting(norm: Layer, array: Array) -> Array | None:
    """Factors or addends in the shape that the norm's weights have; None when they are others."""
    weights = norm.constants["weights"]
    rank = len(norm.output.shape)
    if array.size == 1:
        return np.full(weights.shape, array.reshape(-1)[0], np.float32)
    if array.ndim > rank:
        return None
    full = array.reshape((1,) * (rank - array.ndim) + array.shape)
    if norm.type in ("BatchNorm", "GroupNorm"):
        axes = [norm.axis("axis", rank - 1)]
    elif norm.type == "InstanceNorm":
        axes = [rank - 1]
    else:
        axes = norm.axes("axis", -1)
    if any(d != 1 for a, d in enumerate(full.shape) if a not in axes):
        return None
    return np.broadcast_to(full, [norm.output.shape[a] if a in axes else 1 for a in range(rank)]).reshape(weights.shape)


def _source(edit: GraphEditor, layer: Layer) -> tuple[Layer, Array, int] | None:
    """A norm that only this layer uses, the constant operand, and its place."""
    for i, tensor in enumerate(layer.inputs):
        other: Tensor = layer.inputs[1 - i]
        norm = edit.sole(tensor)
        array = edit.constant(other)
        if norm is not None and norm.type in WEIGHTED and array is not None and tensor.shape == layer.output.shape:
            fitting = _fitting(norm, array.astype(np.float32))
            if fitting is not None and "weights" in norm.constants:
                return norm, fitting, i
    return None


def scale_of_norm(edit: GraphEditor, layer: Layer) -> Sequence[Layer] | None:
    """norm * constant -> norm"""
    found = _source(edit, layer) if arithmetic_method(layer) == "MUL" else None
    if found is None:
        return None
    norm, factor, _ = found
    constants = {k: v.astype(np.float32) * factor for k, v in norm.constants.items() if k in ("weights", "biases")}
    return [_again(norm, layer, constants)]


def addend_of_norm(edit: GraphEditor, layer: Layer) -> Sequence[Layer] | None:
    """norm + constant, norm - constant -> norm"""
    method = arithmetic_method(layer)
    found = _source(edit, layer) if method in ("ADD", "SUB") else None
    if found is None or (method == "SUB" and found[2] == 1):
        return None
    norm, addend, _ = found
    before = norm.constants.get("biases", np.zeros(norm.constants["weights"].shape, np.float32)).astype(np.float32)
    return [_again(norm, layer, {"biases": before + (addend if method == "ADD" else -addend)})]


def _again(norm: Layer, end: Layer, constants: dict[str, Array]) -> Layer:
    return Layer(
        norm.name, norm.type, norm.inputs, end.outputs, norm.attributes, {**norm.constants, **constants}, norm.span
    )


RULES: dict[str, list[Rule]] = {type: [scale_of_norm, addend_of_norm] for type in ARITHMETIC_TYPES}
