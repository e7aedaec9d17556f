"""Reshapes and transposes that go out of the way of other layers, and meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compassc.graph.layer import Layer
from compassc.importers.rewriting import Editing, Rule

ELEMENTWISE = (
    "Activation Abs Ceil Cosine Cosh Erf Exp Floor Log Negative Reciprocal Round Rsqrt Sign Sine Sinh Sqrt Square Tan Cast"
).split()


def behind(edit: Editing, layer: Layer) -> Sequence[Layer] | None:
    """f(reshape(linear)) -> reshape(f(linear)), so that f can join the linear layer"""
    move = edit.sole(layer.input)
    if move is None or move.type not in ("Reshape", "Transpose") or "negative_slope" in layer.constants:
        return None
    source = edit.sole(move.input)
    if source is None or source.type in ("Input", "Constant", "Reshape", "Transpose"):
        return None
    inner = edit.tensor(layer.name, move.input.shape, layer.output.dtype)
    first = replace(layer, inputs=(move.input,), outputs=(inner,))
    return [first, replace(move, name=f"{move.name}_moved", inputs=(inner,), outputs=layer.outputs)]


def reshapes(edit: Editing, layer: Layer) -> Sequence[Layer] | None:
    """reshape(reshape(x)) -> reshape(x), or nothing where the shapes are one"""
    before = edit.producer(layer.input)
    if before.type == "Reshape":
        return [replace(layer, inputs=before.inputs)]
    return None


def transposes(edit: Editing, layer: Layer) -> Sequence[Layer] | None:
    """transpose(transpose(x)) -> transpose(x)"""
    before = edit.producer(layer.input)
    if before.type != "Transpose":
        return None
    perm = [before.attributes["perm"][p] for p in layer.attributes["perm"]]  # type: ignore[index, union-attr]
    return [replace(layer, inputs=before.inputs, attributes={**layer.attributes, "perm": perm})]


RULES: dict[str, list[Rule]] = {
    **{type: [behind] for type in ELEMENTWISE},
    "Reshape": [reshapes],
    "Transpose": [transposes],
}
