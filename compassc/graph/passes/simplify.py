"""Simplify arithmetic of floats.

    x + 0, x - 0, x * 1, x / 1, x ^ 1, -(-x) -> x
    0 - x, x * -1 -> Negative(x)
    x ^ 2 -> Square(x), x ^ 0.5 -> Sqrt(x)
    RELU(RELU(x)) -> RELU(x), Abs(Abs(x)) -> Abs(x)
    (x + a) + b -> x + (a + b), (x * a) * b -> x * (a * b)
    Cast(x) -> x        where it changes nothing

Results are the same bit for bit but for the last two sums and products of constants, which are within rounding; a sum
with 0 may turn -0 into 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from compassc.graph.edit import GraphEditor, Rule, rewrite
from compassc.graph.graph import Graph
from compassc.graph.layer import Layer
from compassc.graph.passes._layers import arithmetic, is_float, same_type
from compassc.graph.patterns import Fusion, Match, Pattern, anything, by_type, call, known
from compassc.graph.tensor import Tensor

NAME = "Simplify"


def _as_it_is(match: Match, x: Tensor) -> Sequence[Layer] | None:
    """x for the pattern, where the layer does not widen it."""
    y = match.root.output
    if not is_float(match.root) or x.shape != y.shape or not same_type(x, y):
        return None
    return match.edit.instead(match.root, x)


def _x(match: Match) -> Sequence[Layer] | None:
    return _as_it_is(match, match["x"])


def _as(kind: str) -> Callable[[Match], Sequence[Layer] | None]:
    """A layer of a type on x."""

    def make(match: Match) -> Sequence[Layer] | None:
        root, x = match.root, match["x"]
        same = is_float(root) and x.shape == root.output.shape and x.dtype == root.output.dtype
        return match.layer(kind, [x]) if same else None

    return make


def _joined(method: str) -> Callable[[Match], Sequence[Layer] | None]:
    """x with both constants as one."""

    def make(match: Match) -> Sequence[Layer] | None:
        edit, root, x = match.edit, match.root, match["x"]
        inner = match.layers["inner"]
        if not is_float(root) or arithmetic(inner) != method or x.shape != root.output.shape:
            return None
        if edit.sole(inner.output) is None or inner.output.shape != x.shape:
            return None
        a, b = match.array("a"), match.array("b")
        both = (a + b if method == "ADD" else a * b).astype(a.dtype)
        made = edit.tensor(f"{root.name}_constant", match["a"], both.shape)
        constant = Layer(f"{root.name}_constant", "Constant", (), (made,), {}, {"weights": both}, root.span)
        return [constant, replace(root, inputs=(x, made))]

    return make


def same_cast(edit: GraphEditor, layer: Layer) -> Sequence[Layer] | None:
    """cast(x) -> x"""
    same = layer.input.shape == layer.output.shape and same_type(layer.input, layer.output)
    return edit.instead(layer, layer.input) if same else None


x, a, b = anything("x"), known("a"), known("b")


def _power(exponent: float) -> Pattern:
    return call("Pow", x, exponent) | call("Pow", x, exponent=exponent)


FUSIONS: tuple[Fusion, ...] = (
    *(
        Fusion(pattern, _x)
        for pattern in (x + 0, x - 0, x * 1, x / 1, _power(1.0), call("Negative", call("Negative", x)))
    ),
    *(Fusion(pattern, _as("Negative")) for pattern in (call("Sub", 0, x), x * -1)),
    Fusion(_power(2.0), _as("Square")),
    Fusion(_power(0.5), _as("Sqrt")),
    *(Fusion(call(kind, call(kind, x)), _as(kind)) for kind in ("RELU", "Abs")),
    Fusion(call("Add", call("Add", x, a, name="inner"), b), _joined("ADD")),
    Fusion(call("Mul", call("Mul", x, a, name="inner"), b), _joined("MUL")),
)
RULES: dict[str, Sequence[Rule]] = {**by_type(FUSIONS), "Cast": [same_cast]}


def run(graph: Graph) -> Graph:
    return rewrite(graph, RULES)
