"""Convolutions and matrix products that take over what stands behind them: addends, factors, activations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from compassc.graph.layer import Layer
from compassc.graph.tensor import Tensor
from compassc.importers.fusions.normalisations import _method
from compassc.importers.rewriting import Array, Editing, Rule

LINEAR = ("Convolution", "DepthwiseConv", "Convolution3D", "ConvTranspose", "ConvTranspose3D", "FullyConnected")
ACTIVATED = (*LINEAR, "Eltwise")
"""Types that may have an activation of their own."""


def _linear(edit: Editing, tensor: Tensor) -> Layer | None:
    """A linear layer whose result only one layer uses, without an activation."""
    layer = edit.sole(tensor)
    if layer is None or layer.type not in LINEAR or layer.attributes.get("with_activation", "NONE") != "NONE":
        return None
    return layer


def _per_channel(array: Array, shape: Sequence[int]) -> Array | None:
    """One number per output channel, which is the last axis; None for other constants."""
    if array.size == 1:
        return np.full(shape[-1], array.reshape(-1)[0], np.float64)
    if array.ndim > len(shape) or array.size != shape[-1] or array.shape[-1] != shape[-1]:
        return None
    return array.reshape(-1).astype(np.float64)


def _changed(layer: Layer, end: Layer, factor: Array, addend: Array) -> Layer:
    """The linear layer with its result times `factor` plus `addend`, per output channel."""
    weights, biases = layer.constants["weights"], layer.constants["biases"]
    outputs = biases.size
    if layer.type.startswith("ConvTranspose"):  # [O/group, window..., I]: a factor for each group's own channels
        group = int(str(layer.attributes.get("group", 1)))
        own, inner = weights.shape[0], weights.shape[-1] // group
        spread = np.repeat(factor.reshape(group, own).T, inner, 1)
        scaled = weights * spread.reshape(own, *(1,) * (weights.ndim - 2), inner * group)
    else:
        scaled = weights * factor.reshape(outputs, *(1,) * (weights.ndim - 1))
    constants = {
        **layer.constants,
        "weights": scaled.astype(weights.dtype),
        "biases": (biases * factor + addend).astype(biases.dtype),
    }
    return Layer(layer.name, layer.type, layer.inputs, end.outputs, layer.attributes, constants, layer.span)


def arithmetic(edit: Editing, layer: Layer) -> Sequence[Layer] | None:
    """linear + constant, linear - constant, linear * constant -> linear"""
    method = _method(layer)
    for i, tensor in enumerate(layer.inputs[:2]):
        source = _linear(edit, tensor)
        array = edit.constant(layer.inputs[1 - i]) if len(layer.inputs) == 2 else None
        if source is None or array is None or tensor.shape != layer.output.shape:
            continue
        value = _per_channel(array, tensor.shape)
        if value is None or (method == "DIV" and i):
            continue
        one, none = np.ones_like(value), np.zeros_like(value)
        changes = {
            "ADD": (one, value),
            "SUB": (one, -value) if i == 0 else (-one, value),
            "MUL": (value, none),
            "DIV": (1 / value if (value != 0).all() else one, none),
        }
        if method not in changes or (method == "DIV" and not (value != 0).all()):
            continue
        return [_changed(source, layer, *changes[method])]
    return None


def batch_norm(edit: Editing, layer: Layer) -> Sequence[Layer] | None:
    """BatchNorm of a linear layer -> linear"""
    source = _linear(edit, layer.input)
    last = len(layer.input.shape) - 1
    if source is None or layer.axis("axis", last) != last or layer.attributes.get("with_activation", "NONE") != "NONE":
        return None
    return [_changed(source, layer, layer.constants["weights"].astype(np.float64),
                     layer.constants["biases"].astype(np.float64))]  # fmt: skip


def activation(edit: Editing, layer: Layer) -> Sequence[Layer] | None:
    """Activations that layers may have at their end: RELU, RELU6, CLIP, LEAKYRELU."""
    method = str(layer.attributes["method"])
    source = edit.sole(layer.input)
    if source is None or source.type not in ACTIVATED or source.attributes.get("with_activation", "NONE") != "NONE":
        return None
    keys = {"RELU": (), "RELU6": (), "LEAKYRELU": ("negative_slope_type", "negative_slope_value")}.get(method)
    if keys is None or source.output.dtype != layer.output.dtype:
        return None
    if layer.output.dtype not in ("float32", "float16", "bfloat16"):
        return None
    given = {**source.attributes, "with_activation": method, **{k: layer.attributes[k] for k in keys}}
    return [Layer(source.name, source.type, source.inputs, layer.outputs, given, source.constants, source.span)]


def multiplier(edit: Editing, layer: Layer) -> Sequence[Layer] | None:
    """A matrix product times a number -> the product with a fused_multiplier"""
    method = _method(layer)
    if method not in ("MUL", "DIV"):
        return None
    for i, tensor in enumerate(layer.inputs):
        source, factor = edit.sole(tensor), edit.number(layer.inputs[1 - i])
        if source is None or source.type != "MatMul" or factor is None or tensor.shape != layer.output.shape:
            continue
        if not factor or (method == "DIV" and i):
            continue
        before = float(str(source.attributes.get("fused_multiplier", 1.0)))
        value = before * factor if method == "MUL" else before / factor
        return [replace(source, outputs=layer.outputs, attributes={**source.attributes, "fused_multiplier": value})]
    return None


def factor_and_addend(edit: Editing, layer: Layer) -> Sequence[Layer] | None:
    """x * a + b with numbers per channel -> BatchNorm"""
    if _method(layer) not in ("ADD", "SUB") or not layer.output.dtype.startswith("float"):
        return None
    for i, tensor in enumerate(layer.inputs):
        source, addend = edit.sole(tensor), edit.constant(layer.inputs[1 - i])
        if source is None or addend is None or _method(source) != "MUL" or (i and _method(layer) == "SUB"):
            continue
        for j, x in enumerate(source.inputs):
            factor = edit.constant(source.inputs[1 - j])
            rank = len(x.shape)
            if factor is None or x.shape != layer.output.shape or rank < 2 or factor.size + addend.size <= 2:
                continue
            both = [_per_channel(v, x.shape) for v in (factor, addend)]
            if both[0] is None or both[1] is None:
                continue
            sign = -1 if _method(layer) == "SUB" else 1
            return [Layer(
                layer.name, "BatchNorm", (x,), layer.outputs, {"axis": rank - 1, "epsilon": 0.0},
                {"weights": both[0].astype(np.float32), "biases": (sign * both[1]).astype(np.float32)}, layer.span,
            )]  # fmt: skip
    return None


RULES: dict[str, list[Rule]] = {
    "Add": [arithmetic, factor_and_addend],
    "Sub": [arithmetic, factor_and_addend],
    "Mul": [arithmetic, multiplier],
    "Div": [arithmetic, multiplier],
    "Eltwise": [arithmetic, factor_and_addend, multiplier],
    "BatchNorm": [batch_norm],
    "Activation": [activation],
}
