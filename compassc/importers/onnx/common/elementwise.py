"""Operators on each element: those of the registry, and what is read of others."""

from __future__ import annotations

from functools import reduce

from compassc.importers.onnx.maker import Maker, Tensor, operator
from compassc.importers.onnx.names import ELEMENTWISE, Element
from compassc.importers.values import Refused


def _declare(name: str, element: Element) -> None:
    def one(b: Maker[Tensor], x: Tensor, **given: object) -> Tensor:
        return b.made(element.operator, x, **{**element.attributes, **given})

    def two(b: Maker[Tensor], x: Tensor, y: Tensor) -> Tensor:
        return b.made(element.operator, x, y)

    def several(b: Maker[Tensor], *xs: Tensor) -> Tensor:
        return reduce(lambda x, y: b.made(element.operator, x, y), xs)

    operator(name, attributes=tuple(element.attributes))((several, one, two)[element.inputs])


for _name, _element in ELEMENTWISE.items():
    _declare(_name, _element)


@operator("Softmax", "LogSoftmax", "Hardmax")
def of_rows(b: Maker[Tensor], x: Tensor, *, axis: int = 1) -> Tensor:
    """The form before opset 13: over all axes from `axis` on."""
    name, at = b.op, x.axis(axis)
    if all(size == 1 for size in x.shape[at + 1 :]):
        return b.onnx(name, x, axis=at)
    return b.shaped_as(b.onnx(name, b.onnx("Flatten", x, axis=at), axis=1), x)


@operator("Gelu")
def gelu(b: Maker[Tensor], x: Tensor, *, approximate: str = "none") -> Tensor:
    named = {"none": "gelu", "tanh": "gelu_tanh"}
    if approximate not in named:
        raise Refused(f"its attribute 'approximate' is {approximate}, which is not known")
    return b.made(named[approximate], x)
