"""Weights of float layers that are stored in fewer bits: the real numbers that they stand for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from compass_core.arrays import Array
from compassc import services
from compassc.graph import Layer, LayerError
from compassc.graph.dtypes import FLOAT_TYPES

FLOAT_FACTORS = ("scale0", "scale1", "scale2", "scale3", "zp0")
"""Constants of activations with scales per channel, and of weights with scales of two levels."""
INSTEAD = "quantise activations per tensor, and weights per tensor, channel or block ('weights_scale')"


def with_real_weights(layer: Layer) -> Layer:
    """A layer on floats whose weights are integers or 8-bit floats, with weights in float32; other layers as they are.

    A weight q stands for (q + `weights_zp`) / `weights_scale`: numbers, or one each per output channel or per block of a
    channel's weights. LayerError where they do not fit, and for layers on integers whose parameters are floats.
    """
    weights = layer.constants.get("weights")
    declared = services.layer_type(layer.type)
    is_linear = declared is not None and declared.filters is not None
    if not (is_linear or layer.type == "MatMul") or layer.is_quantised:
        return layer
    for key in FLOAT_FACTORS:
        if key in layer.constants:
            raise LayerError(f"'{key}' is given: factors in floats beside integers are not supported; {INSTEAD}")
    for t in (*layer.inputs, *layer.outputs):
        if t.dtype not in FLOAT_TYPES:
            raise LayerError(f"'{t.name}' is {t.dtype}, which a {layer.type} with float parameters does not take")
    if weights is None or weights.dtype.name in FLOAT_TYPES:
        return layer
    if not layer.has("weights_scale") and "weights_scale" not in layer.constants:
        raise LayerError(f"'weights' is {weights.dtype.name} in a layer of floats, but 'weights_scale' is missing")
    scale, zero = (_by_weight(layer, weights, key, default) for key, default in (("scale", 1.0), ("zp", 0.0)))
    real = (weights.astype(np.float32) + zero) * (np.float32(1) / scale)
    return replace(layer, constants={**layer.constants, "weights": real})


def _by_weight(layer: Layer, weights: Array, name: str, default: float) -> Array:
    """The scale or zero point, float32, to broadcast to the weights."""
    key = f"weights_{name}"
    given = layer.constants[key] if key in layer.constants else np.asarray(layer.numbers(key, [default]))
    flat, outputs = given.reshape(-1).astype(np.float32), weights.shape[0]
    if flat.size == 1:
        return flat.reshape(())
    if flat.size == outputs:
        return flat.reshape(outputs, *(1,) * (weights.ndim - 1))
    blocks = flat.size // outputs
    if weights.ndim == 2 and blocks and flat.size == outputs * blocks and weights.shape[1] % blocks == 0:
        return np.repeat(flat.reshape(outputs, blocks), weights.shape[1] // blocks, 1)
    raise LayerError(f"'{key}' has {flat.size} values for 'weights' of shape {list(weights.shape)}")
