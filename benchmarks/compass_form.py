"""A network of `benchmarks.networks` as a Compass IR graph with weights."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.networks import SIZE, Array, Layer, Network, Quantised, integer_weights
from compassc.gbuilder.writer import GraphWriter

Scales = Mapping[str, Quantised]


def write_graph(net: Network, folder: Path, scales: Scales | None = None) -> Path:
    """Writes graph.txt and weight.bin, quantised where there are scales; gives the path of the text."""
    graph = GraphWriter(net.name)
    names = {"x": graph.input("x", (1, SIZE, SIZE, 3), *_type("x", scales)[:1], **_type("x", scales)[1])}
    for layer in net.layers:
        x = [names[name] for name in layer.inputs]
        dtype, given = _type(layer.name, scales)
        kind, shape, own = _FORMS[layer.kind](layer, net, scales)
        names[layer.name] = graph.layer(kind, x, (1, *shape), dtype, **given, **own)
        if layer.kind == "mean":
            names[layer.name] = graph.layer(
                "Reshape", [names[layer.name]], (1, *layer.shape), dtype, **given, shape=[1, *layer.shape]
            )
    return graph.write(folder, [names[net.layers[-1].name]])


def _type(name: str, scales: Scales | None) -> tuple[str, dict[str, Any]]:
    """The data type of a tensor, and what the graph says of its scale."""
    if scales is None:
        return "float32", {}
    limits = [-128, 127] if scales[name].signed else [0, 255]
    given = {"layer_top_scale": [scales[name].scale], "layer_top_zp": [0], "layer_top_range": [limits]}
    return scales[name].dtype, given


def _window(layer: Layer) -> dict[str, Any]:
    pads = {f"pad_{side}": layer.pad for side in ("left", "right", "top", "bottom")}
    axes = {f"{key}_{a}": getattr(layer, key) for key in ("kernel", "stride") for a in "xy"}
    return {**axes, **pads, "dilation_x": 1, "dilation_y": 1}


def _factors(ratios: Array) -> tuple[Array, Array]:
    """Multipliers of 15 bits and shifts: ratio = multiplier / 2^shift."""
    shift = np.floor(np.log2(32767 / ratios)).astype(np.int64)
    return np.rint(ratios * np.exp2(shift)).astype(np.uint16), shift.astype(np.int8)


def _products(layer: Layer, scales: Scales | None) -> dict[str, Any]:
    """Weights with the channels last, biases and the requantisation per channel."""
    assert layer.weights is not None
    order = (0, 2, 3, 1) if layer.weights.ndim == 4 else (0, 1)
    if scales is None:
        return {"weights": np.ascontiguousarray(layer.weights.transpose(order)), "biases": layer.biases}
    x, y = scales[layer.inputs[0]], scales[layer.name]
    weights, biases, scale = integer_weights(layer, x)
    multipliers, shifts = _factors(y.scale / (x.scale * scale))
    return {
        "weights": np.ascontiguousarray(weights.transpose(order)),
        "biases": biases,
        "scale": multipliers,
        "shift": shifts,
        "weights_scale": scale.astype(np.float32),
        "weights_zp": 0,
    }


def _conv(layer: Layer, net: Network, scales: Scales | None) -> tuple[str, tuple[int, ...], dict[str, Any]]:
    kind = "DepthwiseConv" if layer.groups > 1 else "Convolution"
    given = {"num_output": layer.shape[-1], "group": layer.groups, "with_activation": layer.activation}
    return kind, layer.shape, {**given, **_window(layer), **_products(layer, scales)}


def _dense(layer: Layer, net: Network, scales: Scales | None) -> tuple[str, tuple[int, ...], dict[str, Any]]:
    return "FullyConnected", layer.shape, {"num_output": layer.shape[0], **_products(layer, scales)}


def _add(layer: Layer, net: Network, scales: Scales | None) -> tuple[str, tuple[int, ...], dict[str, Any]]:
    given: dict[str, Any] = {"method": "ADD", "with_activation": layer.activation}
    if scales is None:
        return "Eltwise", layer.shape, given
    ratios = [scales[layer.name].scale / scales[name].scale for name in layer.inputs]
    shift = 14 - int(np.ceil(np.log2(max(ratios))))
    factors = [round(ratio * 2.0**shift) for ratio in ratios]
    return "Eltwise", layer.shape, {**given, "scale_value": [1, *factors], "shift_value": shift}


def _max(layer: Layer, net: Network, scales: Scales | None) -> tuple[str, tuple[int, ...], dict[str, Any]]:
    return "Pooling", layer.shape, {"method": "MAX", "ceil_mode": False, **_window(layer)}


def _mean(layer: Layer, net: Network, scales: Scales | None) -> tuple[str, tuple[int, ...], dict[str, Any]]:
    given = {"method": "AVG", "ceil_mode": False, "count_include_pad": False}
    return "Pooling", (1, 1, *layer.shape), {**given, **_window(layer)}


_FORMS = {"conv": _conv, "dense": _dense, "add": _add, "max": _max, "mean": _mean}
