"""Calls of operators by name on tensors: expressions."""

from __future__ import annotations

from compass_core.arrays import Array
from compassc import te
from compassc.operators.calls import all_operators
from compassc.operators.implementations import definition
from compassc.te.tensor import Tensor


def define(name: str, *operands: object, **attributes: object) -> Tensor:
    """The expression of an operator of tensors, and numbers: that for the kind of target at hand (`implementations`)."""
    return definition(all_operators()[name], *operands, **attributes)(*operands, **attributes)


class Expressions:
    """Calls on tensors. `constants`: the placeholders of what is known, with their values."""

    def __init__(self) -> None:
        self.constants: list[tuple[Tensor, Array]] = []

    def __call__(self, name: str, *operands: object, **attributes: object) -> Tensor:
        return define(name, *operands, **attributes)

    def constant(self, array: Array) -> Tensor:
        held = te.placeholder(array.shape, array.dtype.name, name=f"c{len(self.constants)}")
        self.constants.append((held, array))
        return held
