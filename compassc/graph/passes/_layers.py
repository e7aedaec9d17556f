"""Queries about layers: their weights, and whether two tensors have the same content."""

from __future__ import annotations

from collections.abc import Sequence

from compassc import services
from compassc.graph.dtypes import FLOAT_TYPES
from compassc.graph.layer import Layer
from compassc.graph.methods import arithmetic_method
from compassc.graph.tensor import Tensor
from compassc.operators.patterns import Filters

RESHAPES = ("Reshape", "Squeeze", "Unsqueeze", "Flatten")
TRANSPOSES = ("Transpose", "Permute")
MOST_ELEMENTS = 1 << 24
"""Of a tensor that passes compute."""


def arithmetic(layer: Layer) -> str:
    """ADD, SUB, MUL or DIV of a layer of two floats without an activation; "" for all others."""
    return arithmetic_method(layer) if is_float(layer) else ""


def filters_of(layer: Layer) -> Filters | None:
    """How the weights of a linear layer lie; None for other layers."""
    declared = services.layer_type(layer.type)
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
