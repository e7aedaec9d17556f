"""A small convolutional network with random weights, as Compass IR and as NumPy.

`python graph.py FOLDER` writes graph.txt and weight.bin, an input x.npy, and what the network gives for it, y.npy.
"""

import math
import sys
from pathlib import Path

import numpy as np

from compassc.gbuilder.writer import GraphWriter

SIZE, CLASSES = 16, 10
erf = np.vectorize(math.erf)


class Network:
    """The same network twice: every method adds a layer to `graph` and computes it in double precision.

    A value is (name of the tensor, array).
    """

    def __init__(self, rng):
        self.rng = rng
        self.graph = GraphWriter("cnn")

    def layer(self, kind, values, result, **given):
        name = self.graph.layer(kind, [name for name, _ in values], result.shape, "float32", **given)
        return name, result

    def conv(self, value, outputs, kernel, activation="NONE", depthwise=False):
        _, x = value
        channels, pad = x.shape[3], kernel // 2
        weights = self.rng.normal(0, 0.3, (outputs, kernel, kernel, 1 if depthwise else channels)).astype("float32")
        biases = self.rng.normal(0, 0.1, outputs).astype("float32")
        padded = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), (1, 2))
        how = "nhwcyx,cyxi->nhwc" if depthwise else "nhwiyx,oyxi->nhwo"
        y = np.einsum(how, windows, weights) + biases
        window = {
            "kernel_x": kernel,
            "kernel_y": kernel,
            "stride_x": 1,
            "stride_y": 1,
            "dilation_x": 1,
            "dilation_y": 1,
            "pad_left": pad,
            "pad_right": pad,
            "pad_top": pad,
            "pad_bottom": pad,
        }
        given = {"weights": weights, "biases": biases, "num_output": outputs, "with_activation": activation}
        kind, group = ("DepthwiseConv", channels) if depthwise else ("Convolution", 1)
        return self.layer(
            kind, [value], np.maximum(y, 0) if activation == "RELU" else y, group=group, **given, **window
        )

    def add(self, a, b):
        return self.layer("Eltwise", [a, b], a[1] + b[1], method="ADD", with_activation="NONE")

    def max_pool(self, value):
        n, h, w, c = value[1].shape
        y = value[1].reshape(n, h // 2, 2, w // 2, 2, c).max((2, 4))
        return self.layer(
            "Pooling",
            [value],
            y,
            method="MAX",
            kernel_x=2,
            kernel_y=2,
            stride_x=2,
            stride_y=2,
            pad_left=0,
            pad_right=0,
            pad_top=0,
            pad_bottom=0,
            ceil_mode=False,
        )

    def gelu(self, value):
        y = value[1] * 0.5 * (1 + erf(value[1] / math.sqrt(2)))
        return self.layer("Activation", [value], y, method="GELU", approximate="NONE")

    def concat(self, *values):
        return self.layer("Concat", values, np.concatenate([v[1] for v in values], -1), axis=3)

    def layer_norm(self, value):
        x = value[1]
        weights, biases = (self.rng.normal(1, 0.1, x.shape[-1]).astype("float32") for _ in range(2))
        y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * weights + biases
        return self.layer("LayerNorm", [value], y, axis=[3], epsilon=1e-5, weights=weights, biases=biases)

    def mean(self, value):
        return self.layer("Reduce", [value], value[1].mean((1, 2), keepdims=True), method="MEAN", axis=[1, 2])

    def reshape(self, value, shape):
        return self.layer("Reshape", [value], value[1].reshape(shape), shape=list(shape))

    def fully_connected(self, value, outputs):
        weights = self.rng.normal(0, 0.5, (outputs, value[1].shape[-1])).astype("float32")
        biases = self.rng.normal(0, 0.1, outputs).astype("float32")
        y = value[1] @ weights.T.astype("float64") + biases
        return self.layer("FullyConnected", [value], y, weights=weights, biases=biases, num_output=outputs)

    def softmax(self, value):
        e = np.exp(value[1] - value[1].max(-1, keepdims=True))
        return self.layer("Softmax", [value], e / e.sum(-1, keepdims=True), axis=1)


def network(seed=0):
    """The network, its input and its output, each as (name, array)."""
    net = Network(np.random.default_rng(seed))
    image = net.rng.normal(0, 1, (1, SIZE, SIZE, 3)).astype("float32")
    x = net.graph.input("x", image.shape, "float32"), image.astype("float64")
    stem = net.conv(x, 16, 3, "RELU")
    inner = net.conv(net.conv(stem, 16, 3, "RELU", depthwise=True), 16, 1)
    block = net.add(stem, inner)  # the stem's output must outlive the two layers in between
    pooled = net.max_pool(block)
    left = net.gelu(net.conv(pooled, 24, 3))
    right = net.conv(pooled, 8, 1, "RELU")
    joined = net.layer_norm(net.concat(left, right))
    features = net.reshape(net.mean(joined), (1, 32))
    y = net.softmax(net.fully_connected(features, CLASSES))
    return net, x, y


def main(folder):
    net, x, y = network()
    net.graph.write(folder, [y[0]])
    np.save(folder / "x.npy", x[1].astype("float32"))
    np.save(folder / "y.npy", y[1].astype("float32"))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
