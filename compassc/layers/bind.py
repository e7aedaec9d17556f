"""Layers of a graph as the references and kernels see them."""

from __future__ import annotations

from typing import Any

import numpy as np

from compassc.gbuilder import plugin_api
from compassc.gbuilder.graph import Node
from compassc.graph import Layer, Tensor
from compassc.graph.dtypes import numpy_dtype
from compassc.layers.arithmetic import Array


def layer_of(node: Node) -> Layer:
    """A node of the builder's graph as a layer."""
    return Layer(
        name=node.name,
        type=node.type.name,
        inputs=tuple(tensor_type(t) for t in node.inputs),
        outputs=tuple(tensor_type(t) for t in node.outputs),
        attributes=node.params,
        constants={key: array_of(t) for key, t in node.constants.items()},
    )


def tensor_type(tensor: plugin_api.Tensor) -> Tensor:
    limits: Any = tensor.limits
    return Tensor(
        tensor.name, tuple(tensor.shape), str(tensor.dtype), tensor.scale, tensor.zero_point, limits, tensor.axis
    )


def array_of(tensor: plugin_api.Tensor) -> Array:
    """The content of a constant."""
    return np.frombuffer(tensor.data or b"", numpy_dtype(str(tensor.dtype))).reshape(tensor.shape)
