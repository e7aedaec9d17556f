"""Values inside layers whose ranges a quantised form needs, from their float inputs: by the layer's type.

The first axis is that of the layer's outputs, so that samples lie one behind the other in them, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from compass_core.arrays import Array
from compassc.graph import Layer
from compassc.layers.families.normalise.reference import _window_sums, counts_of, in_groups, norm_axes
from compassc.layers.families.pooling.reference import window_for
from compassc.layers.families.recurrent.reference import ACTIVATIONS, split_weights
from compassc.layers.windows import seen
from compassc.quantizer.numbers import sigmoid

Inside = Callable[..., Mapping[str, Array]]


def _flipped(layer: Layer, x: Array) -> Array:
    return np.flip(x, 1) if layer.word("direction", "FORWARD") == "REVERSE" else x


def _products(layer: Layer, gates: int, x: Array) -> tuple[Array, Array, Array, int]:
    """The sums of the inputs of all steps [steps, samples, ...], made at once, with the biases of as many; the weights of the state,
    transposed; all biases; the size of a cell. In the type that statistics are of."""
    wx, wh, cell = split_weights(layer, gates)
    biases = layer.constant("biases").reshape(-1).astype(np.float32)
    steps = np.ascontiguousarray(_flipped(layer, x).transpose(1, 0, 2), np.float32)
    sums = steps.reshape(-1, steps.shape[-1]) @ wx.astype(np.float32).T
    sums += biases[: len(wx)]
    return sums.reshape(*steps.shape[:2], -1), wh.astype(np.float32).T, biases, cell


def _in_steps(made: Mapping[str, list[Array]]) -> dict[str, Array]:
    """Values of each step as [samples, steps, ...]."""
    return {name: np.stack(values, 1) for name, values in made.items()}


def lstm(layer: Layer, x: Array, h: Array, c: Array) -> Mapping[str, Array]:
    """Sums before the gates, the gates, the cell state before and after each step."""
    sums, wh, _, cell = _products(layer, 4, x)
    forget = np.float32(layer.number("forget_bias", 0))
    hidden, state = (v.reshape(-1, cell).astype(np.float32) for v in (h, c))
    made: dict[str, list[Array]] = {name: [] for name in ("gates", "candidates", "cells", "hidden", "gates_out",
                                                          "candidates_out", "cells_out")}  # fmt: skip
    found: dict[str, Array] = {}
    if hidden.shape[0] == x.shape[0]:
        made["hidden"].append(hidden)  # it has the scale of the states that follow
    for t, xt in enumerate(sums):
        s = xt + hidden @ wh
        i, g, f, o = np.split(s, 4, -1)
        f = f + forget
        made["gates"] += [i, f, o]
        made["candidates"].append(g)
        i, g, f, o = sigmoid(i), np.tanh(g), sigmoid(f), sigmoid(o)
        made["gates_out"] += [i, f, o]
        made["candidates_out"].append(g)
        state = f * state + i * g
        found[f"cell_{t}"] = state
        made["cells"].append(state)
        made["cells_out"].append(np.tanh(state))
        hidden = o * made["cells_out"][-1]
        made["hidden"].append(hidden)
    return _in_steps(made) | found


def gru(layer: Layer, x: Array, h: Array) -> Mapping[str, Array]:
    sums, wh, biases, cell = _products(layer, 3, x)
    first, two = layer.type == "GRUv1", 2 * cell
    of_gates, of_candidate = np.ascontiguousarray(wh[:, :two]), np.ascontiguousarray(wh[:, two:])
    hidden = h.reshape(-1, cell).astype(np.float32)
    names = ("gates", "gates_out", "candidates", "candidates_out", "hidden", "recurrent")
    made: dict[str, list[Array]] = {name: [] for name in names}
    if hidden.shape[0] == x.shape[0]:
        made["hidden"].append(hidden)
    for xt in sums:
        gates = xt[:, :two] + hidden @ of_gates
        opened = sigmoid(gates)
        r, u = opened[:, :cell], opened[:, cell:]
        own = hidden @ of_candidate + biases[3 * cell :] if first else (r * hidden) @ of_candidate
        candidate = xt[:, two:] + (r * own if first else own)
        new = np.tanh(candidate)
        hidden = (1 - u) * new + u * hidden
        for name, value in zip(names, (gates, opened, candidate, new, hidden, own), strict=True):
            made[name].append(value)
    return _in_steps(made)


def rnn(layer: Layer, x: Array, h: Array) -> Mapping[str, Array]:
    """Sums before the activation, and the states."""
    products, wh, _, cell = _products(layer, 1, x)
    name = layer.word("activations", "TANH")
    hidden = h.reshape(-1, cell).astype(np.float32)
    made: dict[str, list[Array]] = {"sums": [], "hidden": [hidden] if hidden.shape[0] == x.shape[0] else []}
    for xt in products:
        sums = xt + hidden @ wh
        if name == "CLIP":
            hidden = np.clip(sums, layer.number("clip_min"), layer.number("clip_max"))
        else:
            hidden = ACTIVATIONS.get(name, np.tanh)(sums)
        made["sums"].append(sums)
        made["hidden"].append(hidden)
    return _in_steps(made)


def mean_squares(layer: Layer, mean: Array, variance: Array, shift: Array) -> Mapping[str, Array]:
    return {"squares": (mean.astype(np.float32) / counts_of(layer)) ** 2}


def normalised(layer: Layer, x: Array) -> Mapping[str, Array]:
    """Values less their mean, in deviations."""
    wide, axes = x.astype(np.float32, copy=False), norm_axes(layer)
    if layer.type == "GroupNorm":
        wide, _, axes = in_groups(layer, wide)
    away = wide - wide.mean(axes, keepdims=True)
    spread = np.sqrt(np.square(away).mean(axes, keepdims=True) + np.float32(layer.number("epsilon", 1e-5)))
    away /= spread
    return {"normalised": away}


def reduced_squares(layer: Layer, x: Array) -> Mapping[str, Array]:
    if layer.word("method") != "L2":
        return {}
    return {"squares": (x.astype(np.float32) ** 2).sum(tuple(layer.axes()))}


def pooled_squares(layer: Layer, x: Array) -> Mapping[str, Array]:
    if layer.word("method") != "L2":
        return {}
    window = window_for(layer, x.shape)
    views = seen(x.astype(np.float32) ** 2, window, tuple(layer.output.shape[1:-1]), 0.0)
    return {"squares": views.sum(tuple(range(-len(window.kernel), 0)))}


def window_squares(layer: Layer, x: Array) -> Mapping[str, Array]:
    total, cells = _window_sums(layer, x.astype(np.float32) ** 2)
    return {"squares": total / cells}


INSIDE: dict[str, Inside] = {
    "BasicLSTM": lstm,
    "GRUv1": gru,
    "GRUv3": gru,
    "RNN": rnn,
    "NormalizedMoments": mean_squares,
    **dict.fromkeys(("LayerNorm", "InstanceNorm", "GroupNorm", "MVN"), normalised),
    "Reduce": reduced_squares,
    "Pooling": pooled_squares,
    "GlobalPool": pooled_squares,
    "LRN": window_squares,
}
