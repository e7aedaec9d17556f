"""Calls of operators by name, in one of two meanings: arrays by the references, or tensors as an expression
(`compassc.operators.expressions`).

What is written in calls, such as the body of a layer type, is thereby a reference and an expression. Operators, and what
they are made of, are imported when one is called.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from compass_core.arrays import Array
from compassc import operators

if TYPE_CHECKING:
    from compassc.operators.declare import Operator
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
    found: dict[str, Operator] = importlib.import_module(f"{operators.__name__}.declare").OPERATORS
    return found


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


class References:
    """Calls on arrays."""

    def __call__(self, name: str, *operands: object, **attributes: object) -> Array:
        made: Array = all_operators()[name].evaluate(*operands, **attributes)
        return made

    def constant(self, array: Array) -> Array:
        return array
