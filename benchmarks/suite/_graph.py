"""A graph of 50 layers: a residual network of convolutions, made as that of `examples/graph_cnn` is."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from ._examples import FOLDER

BLOCKS, CHANNELS, LAYERS = 14, 16, 50


def write_graph(folder: Path) -> tuple[Path, np.ndarray[Any, Any]]:
    """Writes graph.txt and weight.bin into `folder`; gives the path of the text, and an input."""
    sys.path.insert(0, str(FOLDER / "graph_cnn"))
    try:
        from graph import SIZE, Network
    finally:
        sys.path.pop(0)
    net = Network(np.random.default_rng(0))
    image = net.rng.normal(0, 1, (1, SIZE, SIZE, 3)).astype("float32")
    x = net.graph.input("x", image.shape, "float32"), image.astype("float64")
    trunk = net.conv(x, CHANNELS, 3, "RELU")
    for _ in range(BLOCKS):
        inner = net.conv(net.conv(trunk, CHANNELS, 3, "RELU", depthwise=True), CHANNELS, 1)
        trunk = net.add(trunk, inner)
    features = net.reshape(net.mean(net.gelu(net.layer_norm(net.max_pool(trunk)))), (1, CHANNELS))
    y = net.softmax(net.fully_connected(features, 10))
    layers = len(net.graph.tensors) - 1  # the first is the input
    assert layers == LAYERS, layers
    return net.graph.write(folder, [y[0]]), image
