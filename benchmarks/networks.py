"""Networks that are measured, as lists of layers with random weights, and the scales of their quantised forms.

A network is written as a Compass IR graph by `compass_form` and as an ONNX model by `onnx_form`: the same layers, the
same weights and, quantised, the same scales in both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
SIZE, CLASSES = 224, 1000
RESIDUAL_STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))
"""Channels and first stride of the stages of ResNet-18, two blocks each."""
INVERTED_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
"""Expansion, channels, blocks and first stride of the stages of MobileNetV2."""


@dataclass(frozen=True)
class Layer:
    """`kind`: conv, add, max, mean (of the whole image) or dense. Names of tensors are the layers' own.

    `weights` [outputs, inputs of a group, ky, kx], or [outputs, inputs] of a dense layer; `activation` as Compass IR
    names it.
    """

    name: str
    kind: str
    inputs: tuple[str, ...]
    shape: tuple[int, ...]
    """Of the output: height, width and channels, or features."""
    weights: Array | None = None
    biases: Array | None = None
    kernel: int = 1
    stride: int = 1
    pad: int = 0
    groups: int = 1
    activation: str = "NONE"


@dataclass
class Network:
    """A network under construction, of images of `SIZE` squared and three channels; batch 1."""

    name: str
    layers: list[Layer] = field(default_factory=list)
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {"x": (SIZE, SIZE, 3)} | {layer.name: layer.shape for layer in self.layers}

    def image(self) -> Array:
        """An input, [1, height, width, 3]."""
        return np.random.default_rng(1).normal(0, 1, (1, SIZE, SIZE, 3)).astype(np.float32)

    def _add(self, kind: str, inputs: tuple[str, ...], shape: tuple[int, ...], **given: Any) -> str:
        name = f"{kind}{len(self.layers)}"
        self.layers.append(Layer(name, kind, inputs, shape, **given))
        return name

    def conv(
        self, x: str, outputs: int, kernel: int, stride: int = 1, groups: int = 1, activation: str = "NONE"
    ) -> str:
        h, w, c = self.shapes[x]
        pad, inner = kernel // 2, c // groups
        size = [(d + 2 * pad - kernel) // stride + 1 for d in (h, w)]
        spread = np.sqrt(2 / (inner * kernel * kernel))
        weights = self.rng.normal(0, spread, (outputs, inner, kernel, kernel)).astype(np.float32)
        biases = self.rng.normal(0, 0.1, outputs).astype(np.float32)
        return self._add(
            "conv",
            (x,),
            (*size, outputs),
            weights=weights,
            biases=biases,
            kernel=kernel,
            stride=stride,
            pad=pad,
            groups=groups,
            activation=activation,
        )

    def add(self, a: str, b: str, activation: str = "NONE") -> str:
        return self._add("add", (a, b), self.shapes[a], activation=activation)

    def head(self, x: str) -> None:
        """The mean of the image, and the classes."""
        features = self.shapes[x][-1]
        mean = self._add("mean", (x,), (features,), kernel=self.shapes[x][0])
        weights = self.rng.normal(0, np.sqrt(1 / features), (CLASSES, features)).astype(np.float32)
        biases = self.rng.normal(0, 0.1, CLASSES).astype(np.float32)
        self._add("dense", (mean,), (CLASSES,), weights=weights, biases=biases)


def resnet18() -> Network:
    net = Network("ResNet-18")
    x = net.conv("x", 64, 7, 2, activation="RELU")
    h, w, c = net.shapes[x]
    x = net._add("max", (x,), (h // 2, w // 2, c), kernel=3, stride=2, pad=1)
    for channels, first in RESIDUAL_STAGES:
        for stride in (first, 1):
            y = net.conv(net.conv(x, channels, 3, stride, activation="RELU"), channels, 3)
            if net.shapes[x] != net.shapes[y]:
                x = net.conv(x, channels, 1, stride)
            x = net.add(y, x, "RELU")
    net.head(x)
    return net


def mobilenet_v2() -> Network:
    net = Network("MobileNetV2")
    x = net.conv("x", 32, 3, 2, activation="RELU6")
    for expansion, channels, blocks, first in INVERTED_STAGES:
        for stride in (first, *(1,) * (blocks - 1)):
            inner = expansion * net.shapes[x][-1]
            y = net.conv(x, inner, 1, activation="RELU6") if expansion > 1 else x
            y = net.conv(net.conv(y, inner, 3, stride, groups=inner, activation="RELU6"), channels, 1)
            x = net.add(x, y) if net.shapes[x] == net.shapes[y] else y
    net.head(net.conv(x, 1280, 1, activation="RELU6"))
    return net


NETWORKS: dict[str, Callable[[], Network]] = {"resnet18": resnet18, "mobilenet": mobilenet_v2}


@dataclass(frozen=True)
class Quantised:
    """How a tensor's real numbers are integers: real = integer / scale, of 8 bits."""

    scale: float
    signed: bool

    @property
    def dtype(self) -> str:
        return "int8" if self.signed else "uint8"


def quantised(net: Network, reals: Mapping[str, Array]) -> dict[str, Quantised]:
    """Scales of all tensors from what they hold for one input; tensors that are never negative are unsigned."""
    found = {}
    for name, values in reals.items():
        signed = bool(values.min() < 0)
        found[name] = Quantised((127 if signed else 255) / float(np.abs(values).max()), signed)
    for layer in net.layers:
        if layer.kind == "max":
            found[layer.name] = found[layer.inputs[0]]
    return found


def integer_weights(layer: Layer, x: Quantised) -> tuple[Array, Array, Array]:
    """(weights of 8 bits, biases of 32 bits, the weights' scale per output channel)."""
    assert layer.weights is not None and layer.biases is not None
    flat = layer.weights.reshape(len(layer.weights), -1)
    scale = 127 / np.abs(flat).max(1).astype(np.float64)
    wide = np.rint(layer.weights * scale.reshape(-1, *[1] * (layer.weights.ndim - 1)))
    return wide.astype(np.int8), np.rint(layer.biases * scale * x.scale).astype(np.int32), scale
