"""Calls of operators by name, in one of two meanings: arrays by the references, or tensors as an expression.

What is written in calls, such as the body of a layer type, is thereby a reference and an expression.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from functools import cache
from typing import Protocol, TypeAlias, TypeVar

from compass_core.arrays import Array
from compassc import operators, te
from compassc.operators.declare import OPERATORS, Operator
from compassc.operators.implementations import definition
from compassc.te.tensor import Tensor

Operand: TypeAlias = "Array | Tensor"
"""What a call takes besides numbers."""
Outputs: TypeAlias = "Operand | Sequence[Operand]"
"""What a body of calls makes."""


@cache
def all_operators() -> dict[str, Operator]:
    """Every operator by name."""
    for module in pkgutil.iter_modules(operators.__path__):
        importlib.import_module(f"{operators.__name__}.{module.name}")
    return OPERATORS


X = TypeVar("X", bound="Array | Tensor")
"""What a body is of: arrays, or tensors."""
X_co = TypeVar("X_co", bound="Array | Tensor", covariant=True)


class CallOperator(Protocol[X_co]):
    """`call("add", a, b)`: what the operator makes of operands, which are all arrays or all tensors, and numbers. What operators
    with several results make is their sequence."""

    def __call__(self, name: str, *operands: object, **attributes: object) -> X_co: ...


class CallsOn(CallOperator[X_co], Protocol[X_co]):
    """Calls on arrays, or on tensors, and numbers."""

    def constant(self, array: Array) -> X_co:
        """An operand that is known."""


Calls: TypeAlias = CallsOn[Operand]
"""Calls in either meaning."""


def define(name: str, *operands: object, **attributes: object) -> Tensor:
    """The expression of an operator of tensors, and numbers: that for the kind of target at hand (`implementations`)."""
    return definition(all_operators()[name], *operands, **attributes)(*operands, **attributes)


class References:
    """Calls on arrays."""

    def __call__(self, name: str, *operands: object, **attributes: object) -> Array:
        made: Array = all_operators()[name].evaluate(*operands, **attributes)
        return made

    def constant(self, array: Array) -> Array:
        return array


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
