"""Random graphs with much to simplify: moves that cancel, factors and addends, constants, layers that are there twice."""

from __future__ import annotations

from typing import Any

import numpy as np

from compassc.graph import Graph, GraphBuilder, Tensor


class Messy:
    """A graph in the making, on one input. `integers`: int8 tensors, and layers that move elements only."""

    def __init__(self, seed: int, integers: bool = False) -> None:
        self.source = np.random.default_rng(seed)
        self.build = GraphBuilder("messy")
        self.integers = integers
        quantised: dict[str, Any] = {"scale": 2.5, "zero": 3} if integers else {}
        self.made = [self.build.input("x", (1, 4, 3, 6), "int8" if integers else "float32", **quantised)]

    def pick(self, options: list[Any]) -> Any:
        return options[int(self.source.integers(len(options)))]

    def add(self, kind: str, inputs: list[Tensor], shape: Any, constants: Any = None, /, **given: Any) -> Tensor:
        like = inputs[0]
        out = Tensor("", tuple(shape), like.dtype, like.scale, like.zero)
        made = self.build.layer(kind, inputs, name=kind, outputs=[out], attributes=given, constants=constants)[0]
        self.made.append(made)
        return made

    def array(self, *shape: int) -> np.ndarray:
        return self.source.normal(1, 0.5, shape).astype("float32")

    def constant(self, *shape: int) -> Tensor:
        return self.build.constant(self.array(*shape), "constant")

    def number(self, value: float) -> Tensor:
        return self.build.constant(np.asarray([value], "float32"), "number")

    # -- layers on x

    def transpose(self, x: Tensor) -> Tensor:
        perm = [int(i) for i in self.source.permutation(len(x.shape))]
        return self.add("Transpose", [x], [x.shape[i] for i in perm], perm=perm)

    def reshape(self, x: Tensor) -> Tensor:
        first = self.pick([n for n in (1, 2, 3, 4, 6) if x.count % n == 0])
        shape = self.pick([(first, x.count // first), (1, first, x.count // first), x.shape, (1, *x.shape)])
        return self.add("Reshape", [x], shape, shape=list(shape))

    def nothing(self, x: Tensor) -> Tensor:
        n = len(x.shape)
        kind, given = self.pick(
            [
                ("NoOp", {}),
                ("Tile", {"repeats": [1] * n}),
                ("Pad", {"pads": [[0, 0]] * n, "mode": "CONSTANT"}),
                ("Slice", {"begin": [0] * n, "end": list(x.shape), "strides": [1] * n}),
                ("Crop", {"crops": [[0, s] for s in x.shape]}),
            ]
        )
        return self.add(kind, [x], x.shape, **given)

    def turned(self, x: Tensor) -> Tensor:
        ends = {"begin": [s - 1 for s in x.shape], "end": [-s - 1 for s in x.shape]}
        return self.add("Slice", [x], x.shape, **ends, strides=[-1] * len(x.shape))

    def concat(self, x: Tensor) -> Tensor:
        others = [t for t in self.made if t.shape == x.shape]
        axis = int(self.source.integers(len(x.shape)))
        shape = [2 * n if i == axis else n for i, n in enumerate(x.shape)]
        return self.add("Concat", [x, self.pick(others)], shape, axis=axis) if x.count < 2000 else x

    def function(self, x: Tensor) -> Tensor:
        kind, given = self.pick(
            [
                ("Negative", {}),
                ("Abs", {}),
                ("RELU", {}),
                ("Activation", {"method": "TANH"}),
                ("Activation", {"method": "RELU"}),
                ("Sigmoid", {}),
            ]
        )
        return self.add(kind, [x], x.shape, **given)

    def arithmetic(self, x: Tensor) -> Tensor:
        kind = self.pick(["Add", "Sub", "Mul", "Div"])
        other = self.pick(
            [
                lambda: self.number(0.0),
                lambda: self.number(1.0),
                lambda: self.number(-1.0),
                lambda: self.number(2.5),
                lambda: self.constant(x.shape[-1]),
                lambda: self.constant(*x.shape),
                lambda: self.pick([t for t in self.made if t.shape == x.shape]),
            ]
        )()
        if kind == "Div" and (other.count != 1 or not self.build.producer(other).constants["weights"].all()):
            kind = "Mul"
        inputs = [x, other] if kind == "Div" or self.pick([True, False]) else [other, x]
        if kind == "Div" or self.pick([True, False]):
            return self.add(kind, inputs, x.shape)
        return self.add("Eltwise", inputs, x.shape, method=kind.upper())

    def rectified(self, x: Tensor) -> Tensor:
        total = self.add("Eltwise", [x, x], x.shape, method="ADD")
        return self.add("Activation", [total], x.shape, method=self.pick(["RELU", "RELU6"]))

    def power(self, x: Tensor) -> Tensor:
        absolute = self.add("Abs", [x], x.shape)
        return self.add("Pow", [absolute, self.number(self.pick([0.5, 1.0, 2.0]))], x.shape)

    def linear(self, x: Tensor) -> Tensor:
        if len(x.shape) == 4 and self.pick([True, True, False]):
            constants = {"weights": self.array(5, 2, 1, x.shape[-1]), "biases": self.array(5)}
            window = {"kernel_x": 1, "kernel_y": 2, "stride_x": 1, "stride_y": 1, "pad_top": 1, "num_output": 5}
            shape = (*x.shape[:1], x.shape[1], x.shape[2], 5)
            return self.add("Convolution", [x], shape, constants, **window, group=1, with_activation="NONE")
        constants = {"weights": self.array(4, x.shape[-1]), "biases": self.array(4)}
        return self.add("FullyConnected", [x], (*x.shape[:-1], 4), constants, num_output=4)

    def normalised(self, x: Tensor) -> Tensor:
        constants = {"weights": self.array(x.shape[-1]), "biases": self.array(x.shape[-1])}
        return self.add("BatchNorm", [x], x.shape, constants, axis=len(x.shape) - 1)

    def product(self, x: Tensor) -> Tensor:
        if len(x.shape) < 2:
            return x
        return self.add("MatMul", [x, x], (*x.shape[:-2], x.shape[-2], x.shape[-2]), trans_a=False, trans_b=True)

    def folded(self, x: Tensor) -> Tensor:
        return self.add("Mul", [x, self.add("Abs", [self.constant(*x.shape)], x.shape)], x.shape)

    def twice(self, x: Tensor) -> Tensor:
        layer = self.build.producer(x)
        if layer.type in ("Input", "Constant") or len(layer.outputs) != 1:
            return x
        return self.add(layer.type, list(layer.inputs), x.shape, dict(layer.constants), **layer.attributes)


MOVES = ("transpose", "reshape", "nothing", "turned", "concat", "twice")
FLOATS = (
    *MOVES,
    "rectified",
    "transpose",
    "reshape",
    "function",
    "function",
    "arithmetic",
    "arithmetic",
    "arithmetic",
    "power",
    "linear",
    "linear",
    "normalised",
    "product",
    "folded",
)


def messy(seed: int, integers: bool = False, most: int = 25) -> Graph:
    """The graph of a seed; some of its tensors are outputs."""
    made = Messy(seed, integers)
    for _ in range(int(made.source.integers(2, most))):
        recent = [t for t in made.made[-3:] if 0 < t.count < 3000 and len(t.shape) <= 5] or made.made[:1]
        getattr(made, made.pick(list(MOVES if integers else FLOATS)))(made.pick(recent))
    outputs = dict.fromkeys([made.made[-1], made.pick(made.made[1:]), made.pick(made.made[1:])])
    return made.build.finish(list(outputs))
