"""Queries about layers: their function, and whether two tensors have the same content."""

from __future__ import annotations

from collections.abc import Sequence

from compassc import services
from compassc.graph.dtypes import FLOAT_TYPES
from compassc.graph.layer import Layer
from compassc.graph.tensor import Tensor
from compassc.operators.patterns import Filters

RESHAPES = ("Reshape", "Squeeze", "Unsqueeze", "Flatten")
TRANSPOSES = ("Transpose", "Permute")
MOST_ELEMENTS = 1 << 24
"""Of a tensor that passes compute."""
ARITHMETIC = {"Add": "ADD", "Sub": "SUB", "Mul": "MUL", "Div": "DIV"}
"""The method of Eltwise that each type is."""

RECTIFIERS = {"RELU": "RELU", "RELU6": "RELU6", "LeakyRELU": "LEAKYRELU"}
"""The method of Activation that each type is."""


def is_activated(layer: Layer) -> bool:
    """Whether an activation follows inside the layer."""
    return str(layer.attributes.get("with_activation", "NONE")).upper() != "NONE"


def arithmetic(layer: Layer) -> str:
    """ADD, SUB, MUL or DIV of a layer of two floats without an activation; "" for all others."""
    if is_activated(layer) or len(layer.inputs) != 2 or not is_float(layer):
        return ""
    method = layer.attributes.get("method", "") if layer.type == "Eltwise" else ARITHMETIC.get(layer.type, "")
    return str(method).upper() if str(method).upper() in ARITHMETIC.values() else ""


def rectifier(layer: Layer) -> str:
    """RELU, RELU6 or LEAKYRELU of such a layer; "" for all others."""
    method = RECTIFIERS.get(layer.type, layer.attributes.get("method", "") if layer.type == "Activation" else "")
    return str(method).upper() if str(method).upper() in RECTIFIERS.values() else ""


def filters_of(layer: Layer) -> Filters | None:
    """How the weights of a linear layer lie; None for other layers."""
    declared = services.layer_types().get(layer.type)
    filters: Filters | None = None if declared is None else declared.filters
    return filters


def is_float(layer: Layer) -> bool:
    """Whether all tensors of a layer are floats."""
    return all(t.dtype in FLOAT_TYPES for t in (*layer.inputs, *layer.outputs))


def same_type(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same element type, scale and zero point."""
    return (one.dtype, one.scale, one.zero, one.limits, one.axis) == (
        other.dtype,
        other.scale,
        other.zero,
        other.limits,
        other.axis,
    )


def moves_nothing(shape: Sequence[int], perm: Sequence[int]) -> bool:
    """Whether a transpose leaves all elements in their order: only axes of size 1 change places."""
    kept = [axis for axis in perm if shape[axis] != 1]
    return kept == sorted(kept)
