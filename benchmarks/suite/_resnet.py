"""A residual network of bottleneck blocks with random weights, as Compass IR: 50 layers with weights as usual."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from compassc.gbuilder.writer import GraphWriter

STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))
"""Channels inside the bottlenecks of each stage, and how many there are."""
CLASSES = 1000


class ResNet:
    """The network under construction; `dtype` is float32 or int8."""

    def __init__(self, dtype: str, width: int, seed: int = 0) -> None:
        """`width`: the channels of the stages are multiplied by `width / 64`."""
        self.graph = GraphWriter(f"resnet_{dtype}")
        self.dtype = dtype
        self._width = width
        self._rng = np.random.default_rng(seed)
        self._shapes: dict[str, tuple[int, ...]] = {}

    @property
    def quantised(self) -> bool:
        return self.dtype == "int8"

    def _layer(self, kind: str, bottoms: list[str], shape: Sequence[int], /, **given: Any) -> str:
        if self.quantised:
            given |= {"layer_top_scale": [16.0], "layer_top_zp": [0], "layer_top_range": [[-128, 127]]}
        name = self.graph.layer(kind, bottoms, shape, self.dtype, **given)
        self._shapes[name] = tuple(shape)
        return name

    def input(self, shape: Sequence[int]) -> str:
        given = {"layer_top_scale": [16.0], "layer_top_zp": [0]} if self.quantised else {}
        name = self.graph.input("x", shape, self.dtype, **given)
        self._shapes[name] = tuple(shape)
        return name

    def _weights(self, outputs: int, *inner: int) -> dict[str, Any]:
        depth = int(np.prod(inner))
        if not self.quantised:
            weights = self._rng.standard_normal((outputs, *inner), np.float32) * np.float32((2 / depth) ** 0.5)
            return {"weights": weights, "biases": np.zeros(outputs, np.float32)}
        weights = self._rng.integers(-127, 128, (outputs, *inner), np.int8)
        shift = 7 + round(np.log2(depth) / 2)
        return {
            "weights": weights,
            "biases": self._rng.integers(-500, 500, outputs).astype(np.int32),
            "weights_scale": 100.0,
            "weights_zp": 0,
            "scale_value": 1,
            "shift_value": shift,
        }

    def conv(self, x: str, outputs: int, kernel: int, stride: int = 1, activation: str = "RELU") -> str:
        n, h, w, c = self._shapes[x]
        pad = kernel // 2
        size = [(d + 2 * pad - kernel) // stride + 1 for d in (h, w)]
        window = {
            "kernel_x": kernel,
            "kernel_y": kernel,
            "stride_x": stride,
            "stride_y": stride,
            "dilation_x": 1,
            "dilation_y": 1,
            "pad_left": pad,
            "pad_right": pad,
            "pad_top": pad,
            "pad_bottom": pad,
        }
        return self._layer(
            "Convolution",
            [x],
            (n, *size, outputs),
            num_output=outputs,
            group=1,
            with_activation=activation,
            **window,
            **self._weights(outputs, kernel, kernel, c),
        )

    def add(self, a: str, b: str) -> str:
        how = {"scale_value": [1, 1, 1], "shift_value": 0} if self.quantised else {}
        return self._layer("Eltwise", [a, b], self._shapes[a], method="ADD", with_activation="RELU", **how)

    def pool(self, x: str) -> str:
        n, h, w, c = self._shapes[x]
        return self._pooling(x, (n, h // 2, w // 2, c), "MAX", (2, 2), 2)

    def _pooling(
        self, x: str, shape: tuple[int, ...], method: str, kernel: tuple[int, int], stride: int, **more: Any
    ) -> str:
        """A pooling without padding; `kernel` is height and width."""
        return self._layer(
            "Pooling",
            [x],
            shape,
            method=method,
            kernel_x=kernel[1],
            kernel_y=kernel[0],
            stride_x=stride,
            stride_y=stride,
            pad_left=0,
            pad_right=0,
            pad_top=0,
            pad_bottom=0,
            dilation_x=1,
            dilation_y=1,
            ceil_mode=False,
            **more,
        )

    def bottleneck(self, x: str, inner: int, stride: int) -> str:
        outer = 4 * inner
        y = self.conv(self.conv(self.conv(x, inner, 1), inner, 3, stride), outer, 1, activation="NONE")
        if self._shapes[x] != self._shapes[y]:
            x = self.conv(x, outer, 1, stride, activation="NONE")
        return self.add(x, y)

    def build(self, size: int) -> str:
        """The whole network for images of `size`; gives its output."""
        x = self.pool(self.conv(self.input((1, size, size, 3)), self._width, 7, 2))
        for number, (channels, blocks) in enumerate(STAGES):
            for block in range(blocks):
                x = self.bottleneck(x, channels * self._width // 64, 2 if number and not block else 1)
        n, h, w, c = self._shapes[x]
        x = self._pooling(x, (n, 1, 1, c), "AVG", (h, w), 1, count_include_pad=False)
        x = self._layer("Reshape", [x], (n, c), shape=[n, c])
        return self._layer("FullyConnected", [x], (n, CLASSES), num_output=CLASSES, **self._weights(CLASSES, c))


def write_resnet(folder: Path, dtype: str = "int8", width: int = 64, size: int = 224) -> Path:
    """Writes graph.txt and weight.bin into `folder`; gives the path of the text."""
    net = ResNet(dtype, width)
    return net.graph.write(folder, [net.build(size)])
