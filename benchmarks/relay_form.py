"""A network of `benchmarks.networks` as a Relay module, in float32."""

from __future__ import annotations

from benchmarks.networks import SIZE, Layer, Network
from compassc import relay
from compassc.relay.builders import build


def _activated(value: relay.Expr, activation: str) -> relay.Expr:
    if activation == "NONE":
        return value
    return build("nn.relu", value) if activation == "RELU" else build("clip", value, 0.0, 6.0)


def _layer(layer: Layer, x: list[relay.Expr]) -> relay.Expr:
    window = {"strides": (layer.stride,) * 2, "padding": (layer.pad,) * 2}
    if layer.kind == "add":
        return build("add", *x)
    if layer.kind == "max":
        return build("nn.max_pool2d", *x, (layer.kernel,) * 2, **window)
    if layer.kind == "mean":
        return build("nn.batch_flatten", build("nn.global_avg_pool2d", *x))
    assert layer.weights is not None and layer.biases is not None
    weights, biases = relay.const(layer.weights), relay.const(layer.biases)
    if layer.kind == "dense":
        return build("nn.bias_add", build("nn.dense", *x, weights), biases)
    size, channels = (layer.kernel,) * 2, layer.shape[-1]
    made = build("nn.conv2d", *x, weights, **window, groups=layer.groups, kernel_size=size, channels=channels)
    return build("nn.bias_add", made, biases)


def relay_module(net: Network) -> relay.IRModule:
    """The module; its input is `x`, [1, 3, SIZE, SIZE]."""
    x = relay.var("x", shape=(1, 3, SIZE, SIZE))
    values: dict[str, relay.Expr] = {"x": x}
    for layer in net.layers:
        values[layer.name] = _activated(_layer(layer, [values[n] for n in layer.inputs]), layer.activation)
    return relay.IRModule.from_expr(relay.Function([x], values[net.layers[-1].name]))
