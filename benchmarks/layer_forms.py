"""Layers of one type each, as networks have them: float32, and the integers that the quantiser makes of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from compassc.graph import Graph
from compassc.graph.build import GraphBuilder
from compassc.quantizer import quantize_model

Array = np.ndarray[Any, np.dtype[Any]]
IMAGE, TOKENS = (1, 28, 28, 96), (1, 128, 256)
SAMPLES = 4


@dataclass(frozen=True)
class Form:
    """A layer: its inputs' shapes, its outputs', attributes and constants."""

    name: str
    type: str
    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    constants: dict[str, Array] = field(default_factory=dict)

    def graph(self) -> Graph:
        """The layer alone, on floats."""
        g = GraphBuilder(self.type)
        inputs = [g.input(f"x{i}", shape, "float32") for i, shape in enumerate(self.inputs)]
        made = g.layer(
            self.type,
            inputs,
            name="layer",
            outputs=[(shape, "float32") for shape in self.outputs],
            attributes=self.attributes,
            constants=self.constants,
        )
        return g.finish(made)

    def data(self) -> dict[str, Array]:
        """Values of the inputs, of some samples."""
        source = np.random.default_rng(0)
        return {
            f"x{i}": source.normal(0, 1, (SAMPLES, *shape[1:])).astype(np.float32)
            for i, shape in enumerate(self.inputs)
        }

    def quantised(self) -> Graph:
        """The same with 8 bits."""
        return quantize_model(self.graph(), self.data(), "int8").graph


def forms() -> Iterator[Form]:
    """All that are measured."""
    for make in (_elements, _windows, _rows, _moves):
        yield from make()


def _weights(*shape: int) -> dict[str, Array]:
    source = np.random.default_rng(1)
    spread = float(np.sqrt(1 / np.prod(shape[1:])))
    return {
        "weights": source.normal(0, spread, shape).astype(np.float32),
        "biases": source.normal(0, 0.1, shape[0]).astype(np.float32),
    }


def _per_channel(key: str, channels: int) -> dict[str, Array]:
    return {key: np.random.default_rng(2).normal(1, 0.2, channels).astype(np.float32)}


def _elements() -> Iterator[Form]:
    x, channels = IMAGE, IMAGE[-1]
    for method in ("ADD", "SUB", "MUL", "MAX"):
        yield Form(f"Eltwise {method}", "Eltwise", (x, x), (x,), {"method": method})
    yield Form("Add", "Add", (x, x), (x,))
    yield Form("Mul", "Mul", (x, x), (x,))
    yield Form("Mul by channel", "Mul", (x, (1, 1, 1, channels)), (x,))
    yield Form("Div", "Div", (x, x), (x,))
    yield Form("RELU", "Activation", (x,), (x,), {"method": "RELU"})
    yield Form("CLIP", "Activation", (x,), (x,), {"method": "CLIP", "clip_min": 0.0, "clip_max": 6.0})
    yield Form("LeakyRELU", "Activation", (x,), (x,), {"method": "LEAKYRELU", "negative_slope_value": 0.1})
    slopes = _per_channel("negative_slope", channels)
    yield Form("PRELU", "Activation", (x,), (x,), {"method": "PRELU"}, slopes)
    for method in ("SIGMOID", "TANH", "GELU", "SILU", "HARDSWISH"):
        yield Form(method.capitalize(), "Activation", (x,), (x,), {"method": method})
    affine = _per_channel("weights", channels) | {"biases": np.zeros(channels, np.float32)}
    yield Form("BatchNorm", "BatchNorm", (x,), (x,), {"axis": 3, "epsilon": 0.0}, affine)


def _window(kernel: int, stride: int = 1, pad: int | None = None) -> dict[str, Any]:
    pad = kernel // 2 if pad is None else pad
    return {
        "kernel_x": kernel, "kernel_y": kernel, "stride_x": stride, "stride_y": stride, "dilation_x": 1, "dilation_y": 1,
        "pad_left": pad, "pad_right": pad, "pad_top": pad, "pad_bottom": pad,
    }  # fmt: skip


def _windows() -> Iterator[Form]:
    x, (n, h, w, c) = IMAGE, IMAGE
    small = (n, h // 2, w // 2, c)
    conv = {"num_output": c, "group": 1, "with_activation": "RELU"}
    yield Form("Convolution 3x3", "Convolution", (x,), (x,), conv | _window(3), _weights(c, 3, 3, c))
    yield Form("Convolution 1x1", "Convolution", (x,), (x,), conv | _window(1), _weights(c, 1, 1, c))
    first = conv | {"num_output": 32} | _window(3, 2)
    yield Form(
        "Convolution of 3 channels",
        "Convolution",
        ((1, 112, 112, 3),),
        ((1, 56, 56, 32),),
        first,
        _weights(32, 3, 3, 3),
    )
    deep = {"num_output": c, "group": c, "multiplier": 1, "with_activation": "RELU"}
    yield Form("DepthwiseConv", "DepthwiseConv", (x,), (x,), deep | _window(3), _weights(c, 3, 3, 1))
    up = {"num_output": 32, "group": 1} | _window(2, 2, 0)
    yield Form("ConvTranspose", "ConvTranspose", (small,), ((n, h, w, 32),), up, _weights(32, 2, 2, c))
    pool = {"ceil_mode": False, "count_include_pad": False}
    yield Form("Pooling MAX", "Pooling", (x,), (small,), {"method": "MAX", **pool, **_window(2, 2, 0)})
    yield Form("Pooling AVG", "Pooling", (x,), (small,), {"method": "AVG", **pool, **_window(2, 2, 0)})
    yield Form("Pooling AVG of all", "Pooling", (x,), ((n, 1, 1, c),), {"method": "AVG", **pool, **_window(h, 1, 0)})
    yield Form("Reduce MEAN", "Reduce", (x,), ((n, 1, 1, c),), {"method": "MEAN", "axis": [1, 2]})
    size = {"method": "BILINEAR", "ratio_x": 2.0, "ratio_y": 2.0, "mode": "half_pixel"}
    yield Form("Resize", "Resize", (small,), (x,), size)


def _rows() -> Iterator[Form]:
    x, (_, t, c) = TOKENS, TOKENS
    yield Form("FullyConnected", "FullyConnected", ((1, c),), ((1, 512),), {"num_output": 512}, _weights(512, c))
    yield Form("MatMul", "MatMul", ((1, 4, t, 64), (1, 4, t, 64)), ((1, 4, t, t),), {"trans_a": False, "trans_b": True})
    yield Form("Softmax", "Softmax", (x,), (x,), {"axis": 2})
    yield Form("LogSoftmax", "LogSoftmax", (x,), (x,), {"axis": 2})
    affine = _per_channel("weights", c) | {"biases": np.zeros(c, np.float32)}
    yield Form("LayerNorm", "LayerNorm", (x,), (x,), {"axis": [2], "epsilon": 1e-5}, affine)
    image, channels = IMAGE, IMAGE[-1]
    per = _per_channel("weights", channels) | {"biases": np.zeros(channels, np.float32)}
    yield Form("InstanceNorm", "InstanceNorm", (image,), (image,), {"epsilon": 1e-5}, per)
    grouped = {"group": 8, "axis": 3, "epsilon": 1e-5}
    yield Form("GroupNorm", "GroupNorm", (image,), (image,), grouped, per)


def _moves() -> Iterator[Form]:
    x, (n, h, w, c) = IMAGE, IMAGE
    yield Form("Concat", "Concat", (x, x), ((n, h, w, 2 * c),), {"axis": 3})
    yield Form("Split", "Split", (x,), ((n, h, w, c // 2),) * 2, {"axis": 3, "splits": [c // 2, c // 2]})
    yield Form("Transpose", "Transpose", (x,), ((n, c, h, w),), {"perm": [0, 3, 1, 2]})
    pads = [[0, 0], [1, 1], [1, 1], [0, 0]]
    yield Form("Pad", "Pad", (x,), ((n, h + 2, w + 2, c),), {"mode": "CONSTANT", "pads": pads, "constant_value": 0.0})
    yield Form("ChannelShuffle", "ChannelShuffle", (x,), (x,), {"group": 4, "splits": 1})
    yield Form(
        "DepthToSpace", "DepthToSpace", (x,), ((n, 2 * h, 2 * w, c // 4),), {"block_size_x": 2, "block_size_y": 2}
    )
