"""Normalisations of real numbers by operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from compassc.graph import Layer, LayerError
from compassc.layers.families.normalise.reference import affine, norm_axes
from compassc.operators.calls import Calls, Operand, Outputs


def norm_body(call: Calls, layer: Layer, x: Operand) -> Outputs:
    """Layer, instance and RMS norms. Factors and addends that lie along the axes are the operator's, others follow it."""
    if len(layer.outputs) > 1:
        raise LayerError("the operators give no means")
    axes, shape = list(norm_axes(layer)), layer.input.shape
    own = [shape[a] for a in axes]
    along = layer.type != "InstanceNorm"
    given = {key: affine(layer, key) for key in ("weights", "biases")}

    def operand(key: str, neutral: float) -> Any:
        values = given.pop(key) if along else None
        if values is None:
            return call.constant(np.full(own, neutral, np.float32))
        wide = np.broadcast_to(values, [n if d in axes else 1 for d, n in enumerate(shape)])
        return call.constant(np.ascontiguousarray(wide.reshape(own)))

    epsilon = layer.number("epsilon", 1e-5)
    if layer.type == "RMSNorm":
        found = call("rms_norm", x, operand("weights", 1.0), axes, epsilon)
    else:
        found = call("layer_norm", x, operand("weights", 1.0), operand("biases", 0.0), axes, epsilon)
    for key, name in (("weights", "multiply"), ("biases", "add")):
        if (values := given.get(key)) is not None:
            found = call(name, found, call.constant(values))
    return found
