"""Small networks of the usual kinds, as ONNX models with random weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Net:
    """A model under construction: `net(op, inputs..., attributes...)` adds a node and gives its output's name."""

    def __init__(self, opset: int = 17, seed: int = 0) -> None:
        self.opset = opset
        self.random = np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []

    def input(self, name: str, *shape: int | str | None, kind: int = TensorProto.FLOAT) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def constant(self, value: Any, dtype: Any = np.float32) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def ints(self, *values: int) -> str:
        return self.constant(values, np.int64)

    def weights(self, *shape: int, scale: float | None = None) -> str:
        size = float(np.sqrt(np.prod(shape[1:]))) if scale is None else 1 / scale
        return self.constant(self.random.standard_normal(shape) / size)

    def __call__(self, op: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        names = [f"t{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, f"{op.lower()}{len(self.nodes)}", **attributes))
        return names[0] if outputs == 1 else names

    def model(self, *outputs: str) -> onnx.ModelProto:
        ends = [helper.make_empty_tensor_value_info(name) for name in outputs]
        graph = helper.make_graph(self.nodes, "net", self.inputs, ends, self.constants)
        opsets = {n.domain: 1 for n in self.nodes} | {"": self.opset}
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid(*o) for o in opsets.items()], ir_version=8)
        return onnx.shape_inference.infer_shapes(made, data_prop=True)

    # -- parts

    def conv(
        self,
        x: str,
        inputs: int,
        outputs: int,
        size: int = 3,
        stride: int = 1,
        group: int = 1,
        act: str = "",
        norm: bool = True,
    ) -> str:
        pad = size // 2
        y = self(
            "Conv",
            x,
            self.weights(outputs, inputs // group, size, size),
            kernel_shape=[size, size],
            pads=[pad] * 4,
            strides=[stride, stride],
            group=group,
        )
        if norm:
            mean, bias = self.weights(outputs, scale=0.1), self.weights(outputs, scale=0.1)
            var = self.constant(1 + self.random.random(outputs))
            y = self("BatchNormalization", y, self.constant(np.ones(outputs)), bias, mean, var)
        return self(act, y) if act else y

    def dense(self, x: str, inputs: int, outputs: int) -> str:
        """As PyTorch exports a linear layer of more than two dimensions."""
        return self(
            "Add",
            self("MatMul", x, self.weights(inputs, outputs, scale=inputs**-0.5)),
            self.weights(outputs, scale=0.1),
        )

    def layer_norm(self, x: str, size: int) -> str:
        """Spelled out, as exports below opset 17 are."""
        centred = self("Sub", x, self("ReduceMean", x, axes=[-1]))
        variance = self("ReduceMean", self("Pow", centred, self.constant(2.0)), axes=[-1])
        spread = self("Sqrt", self("Add", variance, self.constant(1e-5)))
        scaled = self("Mul", self("Div", centred, spread), self.constant(1 + 0.1 * self.random.standard_normal(size)))
        return self("Add", scaled, self.weights(size, scale=0.1))

    def gelu(self, x: str) -> str:
        half = self("Add", self("Erf", self("Div", x, self.constant(np.sqrt(2)))), self.constant(1.0))
        return self("Mul", self("Mul", x, half), self.constant(0.5))


def residual() -> onnx.ModelProto:
    net = Net()
    x = net.conv(net.input("x", "batch", 3, 16, 16), 3, 8, act="Relu")
    for outputs, stride in ((8, 1), (16, 2)):
        inputs = 8
        y = net.conv(net.conv(x, inputs, outputs, stride=stride, act="Relu"), outputs, outputs)
        skip = x if stride == 1 else net.conv(x, inputs, outputs, size=1, stride=stride)
        x = net("Relu", net("Add", y, skip))
    flat = net("Flatten", net("GlobalAveragePool", x))
    return net.model(net("Gemm", flat, net.weights(10, 16), net.weights(10), transB=1))


def depthwise() -> onnx.ModelProto:
    net = Net(13)
    x = net.conv(net.input("x", 1, 3, 16, 16), 3, 8, stride=2)
    clipped = net("Clip", net("Add", x, net.constant(3.0)), net.constant(0.0), net.constant(6.0))
    x = net("Div", net("Mul", x, clipped), net.constant(6.0))
    y = net.conv(x, 8, 24, size=1, act="Relu")
    y = net("Clip", net.conv(y, 24, 24, group=24), net.constant(0.0), net.constant(6.0))
    squeeze = net.conv(net("GlobalAveragePool", y), 24, 8, size=1, act="Relu", norm=False)
    y = net("Mul", y, net("Sigmoid", net.conv(squeeze, 8, 24, size=1, norm=False)))
    x = net("Add", x, net.conv(y, 24, 8, size=1))
    shuffled = net("Transpose", net("Reshape", x, net.ints(1, 2, 4, 8, 8)), perm=[0, 2, 1, 3, 4])
    x = net("Reshape", shuffled, net.ints(1, 8, 8, 8))
    return net.model(net("Softmax", net("Flatten", net("GlobalAveragePool", x)), axis=-1))


def transformer() -> onnx.ModelProto:
    net, width, heads, steps = Net(), 32, 4, 12
    x = net.input("x", 1, steps, width)
    normed = net.layer_norm(x, width)

    def split(*perm: int) -> str:
        y = net("Reshape", net.dense(normed, width, width), net.ints(1, steps, heads, width // heads))
        return net("Transpose", y, perm=list(perm))

    query, key, value = split(0, 2, 1, 3), split(0, 2, 3, 1), split(0, 2, 1, 3)
    scores = net("Div", net("MatMul", query, key), net.constant(np.sqrt(width // heads)))
    seen = net("MatMul", net("Softmax", scores, axis=-1), value)
    joined = net("Reshape", net("Transpose", seen, perm=[0, 2, 1, 3]), net.ints(1, steps, width))
    x = net("Add", x, net.dense(joined, width, width))
    y = net.dense(net.gelu(net.dense(net.layer_norm(x, width), width, 4 * width)), 4 * width, width)
    return net.model(net.layer_norm(net("Add", x, y), width))


def lstm() -> onnx.ModelProto:
    net, size, hidden, steps = Net(), 12, 16, 8
    x = net("Transpose", net.input("x", 1, steps, size), perm=[1, 0, 2])
    w, r = net.weights(2, 4 * hidden, size, scale=0.2), net.weights(2, 4 * hidden, hidden, scale=0.2)
    y, _, _ = net(
        "LSTM", x, w, r, net.weights(2, 8 * hidden, scale=0.1), outputs=3, hidden_size=hidden, direction="bidirectional"
    )
    y = net("Reshape", net("Transpose", y, perm=[0, 2, 1, 3]), net.ints(0, 0, -1))
    last = net("Gather", y, net.constant(-1, np.int64), axis=0)
    return net.model(net("LogSoftmax", net.dense(last, 2 * hidden, 5), axis=-1))


def unet() -> onnx.ModelProto:
    net = Net()
    x = net.input("x", 1, 3, 16, 16)
    top = net.conv(x, 3, 8, act="Relu")
    middle = net.conv(net("MaxPool", top, kernel_shape=[2, 2], strides=[2, 2]), 8, 16, act="Relu")
    bottom = net.conv(net("MaxPool", middle, kernel_shape=[2, 2], strides=[2, 2]), 16, 16, act="Relu")
    up = net("ConvTranspose", bottom, net.weights(16, 16, 2, 2), net.weights(16), kernel_shape=[2, 2], strides=[2, 2])
    x = net.conv(net("Concat", up, middle, axis=1), 32, 16, act="Relu")
    shape = net("Slice", net("Shape", x), net.ints(0), net.ints(2))
    sizes = net("Concat", shape, net.ints(16, 16), axis=0)
    up = net("Resize", x, "", "", sizes, mode="linear", coordinate_transformation_mode="half_pixel")
    x = net.conv(net("Concat", up, top, axis=1), 24, 8, act="Relu")
    return net.model(net("Sigmoid", net.conv(x, 8, 1, size=1, norm=False)))


def detector() -> onnx.ModelProto:
    net, anchors, classes = Net(), 2, 3
    x = net.conv(net.input("x", 1, 3, 16, 16), 3, 16, stride=2)
    x = net("Mul", x, net("Sigmoid", x))
    levels = [x, net.conv(x, 16, 16, stride=2, act="LeakyRelu")]
    found = []
    for level, size in zip(levels, (8, 4), strict=True):
        raw = net.conv(level, 16, anchors * (5 + classes), size=1, norm=False)
        rows = net("Reshape", raw, net.ints(1, anchors, 5 + classes, size, size))
        rows = net("Sigmoid", net("Transpose", rows, perm=[0, 1, 3, 4, 2]))
        xy, wh, rest = net("Split", rows, net.ints(2, 2, 1 + classes), outputs=3, axis=-1)
        grid = np.stack(np.meshgrid(np.arange(size), np.arange(size)), -1)[None, None] - 0.5
        xy = net("Mul", net("Add", net("Mul", xy, net.constant(2.0)), net.constant(grid)), net.constant(16 / size))
        wh = net("Pow", net("Mul", wh, net.constant(2.0)), net.constant(2.0))
        joined = net("Concat", xy, wh, rest, axis=-1)
        found.append(net("Reshape", joined, net.ints(1, -1, 5 + classes)))
    return net.model(net("Concat", *found, axis=1))


NETWORKS = {
    "residual": residual,
    "depthwise": depthwise,
    "transformer": transformer,
    "lstm": lstm,
    "unet": unet,
    "detector": detector,
}
