"""Layers of a graph as the references and kernels see them."""

from __future__ import annotations

from typing import Any

import numpy as np

from compassc.gbuilder.graph import Node
from compassc.gbuilder.plugin_api import Tensor
from compassc.layers.arithmetic import Array
from compassc.layers.layer import Layer, TensorType
from compassc.layers.storage import numpy_dtype


def layer_of(node: Node) -> Layer:
    """A node of the builder's graph as a layer."""
    return Layer(
        name=node.name,
        type=node.type.name,
        inputs=[tensor_type(t) for t in node.inputs],
        outputs=[tensor_type(t) for t in node.outputs],
        attributes=node.params,
        constants={key: array_of(t) for key, t in node.constants.items()},
    )


def tensor_type(tensor: Tensor) -> TensorType:
    limits: Any = tensor.limits
    return TensorType(
        tuple(tensor.shape), str(tensor.dtype), tensor.name, tensor.scale, tensor.zero_point, limits, tensor.axis
    )


def array_of(tensor: Tensor) -> Array:
    """The content of a constant."""
    return np.frombuffer(tensor.data or b"", numpy_dtype(str(tensor.dtype))).reshape(tensor.shape)
