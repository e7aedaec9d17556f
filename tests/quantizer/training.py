"""Small networks trained on scikit-learn's digits in seconds: enough of reverse-mode differentiation for them.

What training makes differs from machine to machine, so tests take the weights in `trained.npz`; `python -m
tests.quantizer.training` makes them anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from compassc.graph import Graph, GraphBuilder
from tests.digits import load_digits

Array = np.ndarray[Any, Any]
WEIGHTS = Path(__file__).with_name("trained.npz")
TRAINED = 1297
"""Samples that networks are trained on; the rest tell their accuracy."""


class Value:
    """An array, and how its gradient goes on to what it is made of."""

    def __init__(
        self, data: Array, parents: Sequence[Value] = (), back: Callable[[Array], Sequence[Array]] | None = None
    ):
        self.data, self.parents, self.back = np.asarray(data, np.float32), parents, back
        self.grad: Array = np.zeros_like(self.data)

    def __add__(self, other: Value) -> Value:
        return Value(self.data + other.data, (self, other), lambda g: (_fit(g, self), _fit(g, other)))

    def __mul__(self, other: Value) -> Value:
        return Value(self.data * other.data, (self, other),
                     lambda g: (_fit(g * other.data, self), _fit(g * self.data, other)))  # fmt: skip

    def __matmul__(self, other: Value) -> Value:
        def back(g: Array) -> Sequence[Array]:
            return _fit(g @ other.data.swapaxes(-1, -2), self), _fit(self.data.swapaxes(-1, -2) @ g, other)

        return Value(self.data @ other.data, (self, other), back)

    def relu(self) -> Value:
        return Value(np.maximum(self.data, 0), (self,), lambda g: (g * (self.data > 0),))

    def reshape(self, *shape: int) -> Value:
        return Value(self.data.reshape(shape), (self,), lambda g: (g.reshape(self.data.shape),))

    def transpose(self, *axes: int) -> Value:
        return Value(self.data.transpose(axes), (self,), lambda g: (g.transpose(np.argsort(axes)),))

    def mean(self, *axes: int) -> Value:
        count = np.prod([self.data.shape[a] for a in axes])
        return Value(self.data.mean(axes, keepdims=True), (self,),
                     lambda g: (np.broadcast_to(g / count, self.data.shape),))  # fmt: skip

    def softmax(self) -> Value:
        e = np.exp(self.data - self.data.max(-1, keepdims=True))
        p = e / e.sum(-1, keepdims=True)
        return Value(p, (self,), lambda g: (p * (g - (g * p).sum(-1, keepdims=True)),))

    def normal(self) -> Value:
        """Mean 0 and variance 1 along the last axis."""
        centred = self.data - self.data.mean(-1, keepdims=True)
        inverse = 1 / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        n = centred * inverse

        def back(g: Array) -> Sequence[Array]:
            return (inverse * (g - g.mean(-1, keepdims=True) - n * (g * n).mean(-1, keepdims=True)),)

        return Value(n, (self,), back)

    def conv(self, weights: Value) -> Value:
        """3 x 3 with a border of zeros; weights [3, 3, I, O]."""
        _, h, w, _ = self.data.shape
        wide = np.pad(self.data, ((0, 0), (1, 1), (1, 1), (0, 0)))
        taps = [(i, j) for i in range(3) for j in range(3)]
        made = sum(wide[:, i : i + h, j : j + w] @ weights.data[i, j] for i, j in taps)

        def back(g: Array) -> Sequence[Array]:
            into, of = np.zeros_like(wide), np.zeros_like(weights.data)
            for i, j in taps:
                into[:, i : i + h, j : j + w] += g @ weights.data[i, j].T
                of[i, j] = np.tensordot(wide[:, i : i + h, j : j + w], g, ((0, 1, 2), (0, 1, 2)))
            return into[:, 1:-1, 1:-1], of

        return Value(made, (self, weights), back)

    def backward(self, gradient: Array) -> None:
        order: list[Value] = []
        seen: set[int] = set()

        def visit(value: Value) -> None:
            if id(value) not in seen:
                seen.add(id(value))
                for parent in value.parents:
                    visit(parent)
                order.append(value)

        visit(self)
        self.grad = gradient
        for value in reversed(order):
            for parent, part in zip(value.parents, value.back(value.grad) if value.back else (), strict=True):
                parent.grad = parent.grad + part


def _fit(gradient: Array, value: Value) -> Array:
    """A gradient summed over the axes that were broadcast."""
    extra = gradient.ndim - value.data.ndim
    gradient = gradient.sum(tuple(range(extra))) if extra else gradient
    axes = tuple(i for i, n in enumerate(value.data.shape) if n == 1 and gradient.shape[i] > 1)
    return gradient.sum(axes, keepdims=True) if axes else gradient


Model = Callable[[dict[str, Value], Value], Value]


def trained(model: Model, shapes: dict[str, tuple[int, ...]], epochs: int, seed: int = 0) -> dict[str, Array]:
    """The parameters of a model after so many epochs with Adam."""
    random = np.random.default_rng(seed)
    x, labels = digits()
    size = {k: float(np.sqrt(2 / max(np.prod(s[:-1]), 1))) for k, s in shapes.items()}
    parameters = {k: Value(random.normal(0, size[k], s) if len(s) > 1 else np.zeros(s)) for k, s in shapes.items()}
    moments = [{k: np.zeros(s) for k, s in shapes.items()} for _ in range(2)]
    step = 0
    for _ in range(epochs):
        for batch in np.array_split(random.permutation(TRAINED), TRAINED // 64):
            step += 1
            out = model(parameters, Value(x[batch]))
            p = np.exp(out.data - out.data.max(-1, keepdims=True))
            p /= p.sum(-1, keepdims=True)
            p[np.arange(len(batch)), labels[batch]] -= 1
            out.backward(p / len(batch))
            for k, value in parameters.items():
                moments[0][k] = 0.9 * moments[0][k] + 0.1 * value.grad
                moments[1][k] = 0.99 * moments[1][k] + 0.01 * value.grad**2
                rate = 5e-3 * np.sqrt(1 - 0.99**step) / (1 - 0.9**step)
                value.data = (value.data - rate * moments[0][k] / (np.sqrt(moments[1][k]) + 1e-8)).astype(np.float32)
                value.grad = np.zeros_like(value.data)
    return {k: v.data for k, v in parameters.items()}


@cache
def digits() -> tuple[Array, Array]:
    """Pictures [N, 8, 8, 1] from -1 to 1 in a fixed order, and their labels."""
    images, labels = load_digits()
    order = np.random.default_rng(7).permutation(len(labels))
    return (images[order, :, :, None] / 8 - 1).astype(np.float32), labels[order]


def _parameters(name: str) -> dict[str, Array]:
    """The weights of a network as they were trained."""
    with np.load(WEIGHTS) as kept:
        return {k.partition(".")[2]: kept[k] for k in kept.files if k.startswith(f"{name}.")}


# -- the networks, as models and as graphs


CNN: dict[str, tuple[int, ...]] = {
    "w1": (3, 3, 1, 8), "b1": (8,), "w2": (3, 3, 8, 16), "b2": (16,), "w3": (256, 10), "b3": (10,),
}  # fmt: skip


def _cnn(p: dict[str, Value], x: Value) -> Value:
    y = (x.conv(p["w1"]) + p["b1"]).relu()
    y = (y.conv(p["w2"]) + p["b2"]).relu()
    n = y.data.shape[0]
    y = y.reshape(n, 4, 2, 4, 2, 16).mean(2, 4).reshape(n, 256)
    return y @ p["w3"] + p["b3"]


@cache
def cnn() -> Graph:
    """Two convolutions, mean pooling, a fully connected layer."""
    p = _parameters("cnn")
    g = GraphBuilder("cnn")
    x = g.input("x", (1, 8, 8, 1), "float32")
    for i, outputs in ((1, 8), (2, 16)):
        window = {**{f"{k}_{a}": v for k, v in (("kernel", 3), ("stride", 1), ("dilation", 1)) for a in "xy"},
                  **{f"pad_{s}": 1 for s in ("left", "right", "top", "bottom")}}  # fmt: skip
        (x,) = g.layer("Convolution", [x], name=f"conv{i}", outputs=[((1, 8, 8, outputs), "float32")],
                       attributes={"num_output": outputs, "group": 1, "with_activation": "RELU", **window},
                       constants={"weights": np.ascontiguousarray(p[f"w{i}"].transpose(3, 0, 1, 2)),
                                  "biases": p[f"b{i}"]})  # fmt: skip
    window = {f"{k}_{a}": v for k, v in (("kernel", 2), ("stride", 2), ("dilation", 1)) for a in "xy"}
    pads = {f"pad_{s}": 0 for s in ("left", "right", "top", "bottom")}
    (x,) = g.layer("Pooling", [x], name="pool", outputs=[((1, 4, 4, 16), "float32")],
                   attributes={"method": "AVG", "ceil_mode": False, "count_include_pad": False, **window, **pads})  # fmt: skip
    (x,) = g.layer("Reshape", [x], name="flat", outputs=[((1, 256), "float32")], attributes={"shape": [1, 256]})
    return g.finish([_dense(g, "head", x, p["w3"], p["b3"])])


def _dense(g: GraphBuilder, name: str, x: Any, weights: Array, biases: Array, activation: str = "NONE") -> Any:
    outputs = weights.shape[1]
    (y,) = g.layer("FullyConnected", [x], name=name, outputs=[((*x.shape[:-1], outputs), "float32")],
                   attributes={"num_output": outputs, "with_activation": activation},
                   constants={"weights": np.ascontiguousarray(weights.T), "biases": biases})  # fmt: skip
    return y


WIDTH, HEADS, STEPS = 16, 2, 8


def _transformer(p: dict[str, Value], x: Value) -> Value:
    n = x.data.shape[0]
    x = x.reshape(n, STEPS, 8) @ p["we"] + p["place"]
    y = x.normal() * p["g1"] + p["b1"]
    q, k, v = (
        (y @ p[f"w{name}"] + p[f"b{name}"]).reshape(n, STEPS, HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3)
        for name in "qkv"
    )
    scale = Value(np.float32((WIDTH // HEADS) ** -0.5))
    seen = (q @ k.transpose(0, 1, 3, 2) * scale).softmax() @ v
    x = x + (seen.transpose(0, 2, 1, 3).reshape(n, STEPS, WIDTH) @ p["wo"] + p["bo"])
    y = x.normal() * p["g2"] + p["b2"]
    x = x + ((y @ p["w1"] + p["c1"]).relu() @ p["w2"] + p["c2"])
    return (x.mean(1).reshape(n, WIDTH)) @ p["wh"] + p["bh"]


TRANSFORMER: dict[str, tuple[int, ...]] = {
    "we": (8, WIDTH), "place": (STEPS, WIDTH), "g1": (1, WIDTH), "b1": (WIDTH,), "g2": (1, WIDTH), "b2": (WIDTH,),
    **{f"w{k}": (WIDTH, WIDTH) for k in "qkvo"}, **{f"b{k}": (WIDTH,) for k in "qkvo"},
    "w1": (WIDTH, 32), "c1": (32,), "w2": (32, WIDTH), "c2": (WIDTH,), "wh": (WIDTH, 10), "bh": (10,),
}  # fmt: skip


@cache
def transformer() -> Graph:
    """One encoder block over the rows of a picture, and the mean of what it makes."""
    p = _parameters("transformer")
    g = GraphBuilder("transformer")
    x = g.input("x", (1, 8, 8, 1), "float32")
    (x,) = g.layer(
        "Reshape", [x], name="rows", outputs=[((1, STEPS, 8), "float32")], attributes={"shape": [1, STEPS, 8]}
    )
    x = _dense(g, "embed", x, p["we"], np.zeros(WIDTH, np.float32))
    place = g.constant(p["place"][None], "place")
    x = _sum(g, "placed", x, place)
    y = _norm(g, "norm1", x, p["g1"], p["b1"])
    heads = {}
    for name, perm in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        z = _dense(g, name, y, p[f"w{name}"] * (np.float32((WIDTH // HEADS) ** -0.5) if name == "q" else 1),
                   p[f"b{name}"] * (np.float32((WIDTH // HEADS) ** -0.5) if name == "q" else 1))  # fmt: skip
        shape = (1, STEPS, HEADS, WIDTH // HEADS)
        (z,) = g.layer(
            "Reshape", [z], name=f"{name}_heads", outputs=[(shape, "float32")], attributes={"shape": list(shape)}
        )
        moved = tuple(shape[i] for i in perm)
        (heads[name],) = g.layer(
            "Transpose", [z], name=f"{name}_moved", outputs=[(moved, "float32")], attributes={"perm": perm}
        )
    scores = _product(g, "scores", heads["q"], heads["k"], (1, HEADS, STEPS, STEPS))
    (weights,) = g.layer(
        "Softmax", [scores], name="attend", outputs=[(scores.shape, "float32")], attributes={"axis": 3}
    )
    seen = _product(g, "seen", weights, heads["v"], (1, HEADS, STEPS, WIDTH // HEADS))
    (seen,) = g.layer("Transpose", [seen], name="back", outputs=[((1, STEPS, HEADS, WIDTH // HEADS), "float32")],
                      attributes={"perm": [0, 2, 1, 3]})  # fmt: skip
    (seen,) = g.layer("Reshape", [seen], name="joined", outputs=[((1, STEPS, WIDTH), "float32")],
                      attributes={"shape": [1, STEPS, WIDTH]})  # fmt: skip
    x = _sum(g, "first", x, _dense(g, "o", seen, p["wo"], p["bo"]))
    y = _norm(g, "norm2", x, p["g2"], p["b2"])
    x = _sum(g, "second", x, _dense(g, "down", _dense(g, "up", y, p["w1"], p["c1"], "RELU"), p["w2"], p["c2"]))
    (x,) = g.layer(
        "Reduce", [x], name="mean", outputs=[((1, 1, WIDTH), "float32")], attributes={"method": "MEAN", "axis": [1]}
    )
    (x,) = g.layer("Reshape", [x], name="flat", outputs=[((1, WIDTH), "float32")], attributes={"shape": [1, WIDTH]})
    return g.finish([_dense(g, "head", x, p["wh"], p["bh"])])


def _sum(g: GraphBuilder, name: str, a: Any, b: Any) -> Any:
    (y,) = g.layer("Eltwise", [a, b], name=name, outputs=[(a.shape, "float32")],
                   attributes={"method": "ADD", "with_activation": "NONE"})  # fmt: skip
    return y


def _norm(g: GraphBuilder, name: str, x: Any, weights: Array, biases: Array) -> Any:
    (y,) = g.layer("LayerNorm", [x], name=name, outputs=[(x.shape, "float32")], attributes={"axis": [2], "epsilon": 1e-5},
                   constants={"weights": weights.reshape(-1), "biases": biases})  # fmt: skip
    return y


def _product(g: GraphBuilder, name: str, a: Any, b: Any, shape: tuple[int, ...]) -> Any:
    (y,) = g.layer(
        "MatMul", [a, b], name=name, outputs=[(shape, "float32")], attributes={"trans_a": False, "trans_b": False}
    )
    return y


if __name__ == "__main__":
    made = {"cnn": trained(_cnn, CNN, 5), "transformer": trained(_transformer, TRANSFORMER, 20)}
    np.savez_compressed(WEIGHTS, **{f"{name}.{k}": v for name, p in made.items() for k, v in p.items()})
