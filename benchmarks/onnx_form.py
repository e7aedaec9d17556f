"""A network of `benchmarks.networks` as an ONNX model: in float32, or with QuantizeLinear and DequantizeLinear around
every tensor.

All quantised tensors are uint8 there, signed ones with the zero point 128, and rectifiers are left to the rounding: the
form that ONNX Runtime has its fastest kernels for. Needs `onnx`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.networks import SIZE, Array, Layer, Network, Quantised, integer_weights

OPSET = 17


class Model:
    """An ONNX graph under construction; `names` are the tensors by the network's names."""

    def __init__(self, net: Network, scales: Mapping[str, Quantised] | None) -> None:
        self.net, self.scales = net, scales
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.names = {"x": "x"}
        self._count = 0

    def constant(self, array: Array) -> str:
        self._count += 1
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), f"constant{self._count}"))
        return f"constant{self._count}"

    def node(self, kind: str, *inputs: str, **attributes: object) -> str:
        self._count += 1
        self.nodes.append(helper.make_node(kind, list(inputs), [f"value{self._count}"], **attributes))
        return f"value{self._count}"

    def rounded(self, name: str, value: str) -> str:
        """The value after being stored: quantised and back."""
        if self.scales is None:
            return value
        q = self.scales[name]
        scale = self.constant(np.float32(1 / q.scale))
        zero = self.constant(np.uint8(128 if q.signed else 0))
        return self.node("DequantizeLinear", self.node("QuantizeLinear", value, scale, zero), scale, zero)

    def parameters(self, layer: Layer) -> list[str]:
        """Weights and biases of a layer."""
        assert layer.weights is not None and layer.biases is not None
        if self.scales is None:
            return [self.constant(layer.weights), self.constant(layer.biases)]
        x = self.scales[layer.inputs[0]]
        weights, biases, scale = integer_weights(layer, x)
        zeros = np.zeros(len(scale))
        return [
            self.node(
                "DequantizeLinear",
                self.constant(weights),
                self.constant((1 / scale).astype(np.float32)),
                self.constant(zeros.astype(np.int8)),
                axis=0,
            ),
            self.node(
                "DequantizeLinear",
                self.constant(biases),
                self.constant((1 / scale / x.scale).astype(np.float32)),
                self.constant(zeros.astype(np.int32)),
                axis=0,
            ),
        ]

    def layer(self, layer: Layer) -> None:
        x = [self.names[name] for name in layer.inputs]
        window = {"kernel_shape": [layer.kernel] * 2, "strides": [layer.stride] * 2, "pads": [layer.pad] * 4}
        if layer.kind == "conv":
            y = self.node("Conv", *x, *self.parameters(layer), group=layer.groups, **window)
        elif layer.kind == "dense":
            y = self.node("Gemm", *x, *self.parameters(layer), transB=1)
        elif layer.kind == "add":
            y = self.node("Add", *x)
        elif layer.kind == "max":
            y = self.node("MaxPool", *x, **window)
        else:
            y = self.rounded(layer.name, self.node("GlobalAveragePool", *x))
            y = self.node("Flatten", y)
        if self.scales is not None:
            pass  # the scales are of what the activation leaves: rounding limits the values as it does
        elif layer.activation == "RELU":
            y = self.node("Relu", y)
        elif layer.activation == "RELU6":
            y = self.node("Clip", y, self.constant(np.float32(0)), self.constant(np.float32(6)))
        self.names[layer.name] = self.rounded(layer.name, y)

    def build(self, outputs: list[str]) -> bytes:
        self.names["x"] = self.rounded("x", "x")
        for layer in self.net.layers:
            self.layer(layer)
        made = [helper.make_tensor_value_info(self.names[name], TensorProto.FLOAT, None) for name in outputs]
        image = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, SIZE, SIZE])
        graph = helper.make_graph(self.nodes, self.net.name, [image], made, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
        return bytes(model.SerializeToString())


def onnx_model(net: Network, scales: Mapping[str, Quantised] | None = None, outputs: list[str] | None = None) -> bytes:
    """The model, quantised where there are scales; its outputs are the network's, or those that are named."""
    return Model(net, scales).build(outputs or [net.layers[-1].name])
