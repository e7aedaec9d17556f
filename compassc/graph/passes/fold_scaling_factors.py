"""Fold factors and addends per channel, and batch normalisation, into convolutions and matrix products of floats.

    BatchNorm(Convolution(x)) -> Convolution(x)
    Convolution(x) * constant + constant -> Convolution(x)
    Convolution(x * constant) -> Convolution(x)
    MatMul(x, y) * number -> MatMul(x, y), fused_multiplier
    x * constant + constant -> BatchNorm(x)

Sums and products are put together otherwise: results are the same within the rounding of float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compass_core.arrays import Array
from compassc import services
from compassc.graph.edit import GraphEditor, Rule, rewrite
from compassc.graph.graph import Graph
from compassc.graph.layer import Layer
from compassc.graph.methods import ARITHMETIC_TYPES, is_activated
from compassc.graph.passes._layers import arithmetic, filters_of, is_float
from compassc.graph.tensor import Tensor
from compassc.operators.patterns import Filters

NAME = "FoldScalingFactors"


def _linear(edit: GraphEditor, tensor: Tensor) -> Layer | None:
    """A linear layer of floats whose result only one layer uses, without an activation."""
    layer = edit.sole(tensor)
    if layer is None or filters_of(layer) is None or is_activated(layer) or not is_float(layer):
        return None
    return layer if "weights" in layer.constants else None


def _per_channel(array: Array, shape: Sequence[int]) -> Array | None:
    """One number per channel, which is the last axis; None for other constants."""
    import numpy as np

    if array.size == 1:
        return np.full(shape[-1], array.reshape(-1)[0], np.float64)
    if array.ndim > len(shape) or array.size != shape[-1] or array.shape[-1] != shape[-1]:
        return None
    return array.reshape(-1).astype(np.float64)


def _changed(layer: Layer, end: Layer, factor: Array, addend: Array) -> list[Layer]:
    """The linear layer with its result times `factor` plus `addend`, per output channel."""
    import numpy as np

    weights = layer.constants["weights"]
    biases = layer.constants.get("biases", np.zeros(factor.size, weights.dtype))
    if filters_of(layer) is Filters.TRANSPOSED:  # [O/group, window..., I]: a factor for each group's own channels
        group = layer.integer("group", 1)
        own, inner = weights.shape[0], weights.shape[-1] // group
        spread = np.repeat(factor.reshape(group, own).T, inner, 1)
        scaled = weights * spread.reshape(own, *(1,) * (weights.ndim - 2), inner * group)
    else:
        scaled = weights * factor.reshape(-1, *(1,) * (weights.ndim - 1))
    made = {"weights": scaled.astype(weights.dtype), "biases": (biases * factor + addend).astype(biases.dtype)}
    return [replace(layer, outputs=end.outputs, constants={**layer.constants, **made})]


def behind(edit: GraphEditor, layer: Layer) -> Sequence[Layer] | None:
    """linear + constant, linear - constant, linear * constant, linear / constant -> linear"""
    import numpy as np

    method = arithmetic(layer)
    for i, tensor in enumerate(layer.inputs if method else ()):
        source, array = _linear(edit, tensor), edit.constant(layer.inputs[1 - i])
        if source is None or array is None or tensor.shape != layer.output.shape or (method == "DIV" and i):
            continue
        value = _per_channel(array, tensor.shape)
        if value is None or (method == "DIV" and not value.all()):
            continue
        one, none = np.ones_like(value), np.zeros_like(value)
        if method == "ADD":
            return _changed(source, layer, one, value)
        if method == "SUB":
            return _changed(source, layer, one if i == 0 else -one, -value if i == 0 else value)
        return _changed(source, layer, value if method == "MUL" else 1 / value, none)
    return None


def batch_norm(edit: GraphEditor, layer: Layer) -> Sequence[Layer] | None:
    """batch_norm(linear) -> linear"""
    import numpy as np

    last = len(layer.input.shape) - 1
    source = _linear(edit, layer.input)
    if source is None or not is_float(layer) or is_activated(layer) or layer.axis("axis", last) != last:
        return None
    if not {"weights", "biases"} <= layer.constants.keys():
        return None
    factor, addend = (layer.constants[key].astype(np.float64) for key in ("weights", "biases"))
    return _changed(source, layer, factor, addend)


def before(edit: GraphEditor, layer: Layer) -> Sequence[Layer] | None:
    """linear(x * constant) -> linear(x)"""
    if not is_float(layer) or "weights" not in layer.constants or layer.integer("group", 1) != 1:
        return None
    product = edit.sole(layer.input)
    if product is None or arithmetic(product) != "MUL":
        return None
    for i, x in enumerate(product.inputs):
        array = edit.constant(product.inputs[1 - i])
        value = None if array is None or x.shape != product.output.shape else _per_channel(array, x.shape)
        weights = layer.constants["weights"]
        if value is not None and value.size == weights.shape[-1]:
            scaled = (weights * value).astype(weights.dtype)
            return [replace(layer, inputs=(x,), constants={**layer.constants, "weights": scaled})]
    return None


def multiplier(edit: GraphEditor, layer: Layer) -> Sequence[Layer] | None:
    """matmul * number, matmul / number -> matmul"""
    method = arithmetic(layer)
    for i, tensor in enumerate(layer.inputs if method in ("MUL", "DIV") else ()):
        source, factor = edit.sole(tensor), edit.number(layer.inputs[1 - i])
        if source is None or source.type != "MatMul" or not factor or tensor.shape != layer.output.shape:
            continue
        if (method == "DIV" and i) or not is_float(source):
            continue
        known = source.number("fused_multiplier", 1.0)
        value = known * factor if method == "MUL" else known / factor
        return [replace(source, outputs=layer.outputs, attributes={**source.attributes, "fused_multiplier": value})]
    return None


def factor_and_addend(edit: GraphEditor, layer: Layer) -> Sequence[Layer] | None:
    """x * a + b, x * a - b -> batch_norm(x), with a number per channel"""
    import numpy as np

    method = arithmetic(layer)
    for i, tensor in enumerate(layer.inputs if method == "ADD" else layer.inputs[:1] if method == "SUB" else ()):
        product, addend = edit.sole(tensor), edit.constant(layer.inputs[1 - i])
        if product is None or addend is None or arithmetic(product) != "MUL":
            continue
        for j, x in enumerate(product.inputs):
            factor = edit.constant(product.inputs[1 - j])
            rank = len(x.shape)
            if factor is None or x.shape != layer.output.shape or rank < 2 or factor.size + addend.size <= 2:
                continue
            weights, biases = _per_channel(factor, x.shape), _per_channel(addend, x.shape)
            if weights is None or biases is None:
                continue
            made = {"weights": weights, "biases": -biases if method == "SUB" else biases}
            kept = {key: array.astype(np.float32) for key, array in made.items()}
            return [replace(layer, type="BatchNorm", inputs=(x,), attributes={"axis": rank - 1}, constants=kept)]
    return None


def rules() -> dict[str, Sequence[Rule]]:
    """The rules by layer type, as the types are declared."""
    types = services.layer_types().values()
    return {
        **{kind: [behind, multiplier, factor_and_addend] for kind in ARITHMETIC_TYPES},
        **{declared.name: [before] for declared in types if declared.filters is Filters.BY_OUTPUT},
        "BatchNorm": [batch_norm],
    }


def run(graph: Graph) -> Graph:
    return rewrite(graph, rules())
