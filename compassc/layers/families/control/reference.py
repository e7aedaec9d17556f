"""References of control layers whose result depends on shapes alone."""

from __future__ import annotations

from compass_core.arrays import Array
from compassc.graph import Layer, LayerError, Tensor


def chosen(layer: Layer) -> int:
    """The place of the first input that has elements."""
    found = [i for i, t in enumerate(layer.inputs) if t.count]
    if not found:
        raise LayerError("no input has elements")
    x, y = layer.inputs[found[0]], layer.output
    if (x.shape, x.dtype) != (y.shape, y.dtype):
        raise LayerError(f"'{x.name}' is {_words(x)}, but the output {_words(y)}")
    return found[0]


def _words(tensor: Tensor) -> str:
    return f"{tensor.dtype} {list(tensor.shape)}"


def first_with_elements(layer: Layer, *inputs: Array) -> Array:
    return inputs[chosen(layer)]
