"""What functions of operators ask for that layers and expressions share: whoever makes either."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from compass_core.arrays import Array
from compass_core.reading.budget import Budget
from compassc.importers.declare import Table
from compassc.importers.onnx.window import Asked
from compassc.importers.values import ModelTensor

COMMON = Table("compassc.importers.onnx.common", None, (Asked,))
"""Operators of ONNX that are the same of layers and of expressions: parts of both tables."""
operator = COMMON.operator
Tensor = TypeVar("Tensor", bound=ModelTensor)


class Making(Protocol[Tensor]):
    """Makes tensors of tensors; axes are the model's, and may be counted from the end. `name`: of the node; `budget`: what the model
    may cost to read."""

    name: str
    budget: Budget

    def made(self, name: str, *xs: Tensor, **attributes: object) -> Tensor:
        """What an operator of the registry (`compassc.operators`) makes."""

    def known(self, array: Array) -> Tensor:
        """A tensor whose content is known."""

    def numbers(self, x: Tensor, what: str) -> list[int]:
        """The numbers of a tensor, which must be known; `what` it is in the node."""

    def room(self, *sizes: int, each: int = 8) -> tuple[int, ...]:
        """The shape of an array that is to be made, of elements of `each` bytes, for which the model's budget has room."""

    def reshape(self, x: Tensor, sizes: Sequence[int], /) -> Tensor:
        """The elements of a tensor in another shape."""

    def shaped_as(self, x: Tensor, like: Tensor, /) -> Tensor:
        """The elements of a tensor in the shape of another one."""

    def squeeze(self, x: Tensor, axes: Sequence[int], /) -> Tensor:
        """Without axes of one element."""

    def unsqueeze(self, x: Tensor, axes: Sequence[int], /) -> Tensor:
        """With further axes of one element, at places of the result."""

    def transpose(self, x: Tensor, perm: Sequence[int], /) -> Tensor:
        """The axes in another order."""

    def concat(self, *xs: Tensor, axis: int) -> Tensor:
        """Tensors behind each other along an axis."""

    def split(self, x: Tensor, axis: int, sizes: Sequence[int], /) -> list[Tensor]:
        """Parts of an axis, one behind the other."""

    def sliced(
        self, x: Tensor, begin: Sequence[int], end: Sequence[int], step: Sequence[int], axes: Sequence[int], /
    ) -> Tensor:
        """Part of some axes (`compassc.importers.values.spans`)."""


class Maker(Making[Tensor], Protocol[Tensor]):
    """Makes tensors of the nodes of a model. `op`: the node's operator."""

    op: str

    def onnx(self, name: str, *inputs: Tensor | None, **attributes: object) -> Tensor:
        """The first result of an operator of ONNX, in its newest form."""

    def onnx_all(self, name: str, *inputs: Tensor | None, **attributes: object) -> list[Tensor]:
        """All results of an operator of ONNX that has several."""

    def outputs(self) -> list[bool]:
        """Which of the node's outputs have names."""
