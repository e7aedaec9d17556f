"""What operators on known integers give, and operands that change nothing: the rules of C, for all that fold constants."""

from __future__ import annotations

from compass_core import operators
from compass_core.operators import OPERATORS

from .dtypes import DataType
from .exprs import ARITHMETIC

NEUTRAL = {"add": 0, "sub": 0, "mul": 1, "div": 1, "floordiv": 1, "shl": 0, "shr": 0}
"""The right operand that gives the left one."""
ABSORBING = {"mul": 0}
"""The operand that the result is equal to, whatever the other one is."""


def wrap(value: int, dtype: DataType) -> int:
    """The value a fixed-width integer holds after wrap-around (a bool: whether it is not zero)."""
    if dtype.is_bool:
        return int(value != 0)
    return operators.wrap(value, dtype.bits, dtype.is_int)


def fold(op: str, a: int, b: int, dtype: DataType) -> int | None:
    """The value of an operator on two integers of type `dtype`; None where C leaves it undefined."""
    if op in ("shl", "shr") and not 0 <= b < dtype.bits:
        return None
    value = OPERATORS[op].evaluate(a, b)
    return wrap(value, dtype) if op in ARITHMETIC else value
