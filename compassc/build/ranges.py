"""What integers of a kernel's expressions can be, from what their operands can be."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compass_core.operators import OPERATORS, Range
from compassc.build.values import Value, whole_range
from compassc.ir import exprs as E
from compassc.ir.dtypes import DataType


def range_of(x: object) -> Range:
    """The range of an operand: a value, or a literal."""
    if isinstance(x, Value):
        return x.range
    return (x, x) if isinstance(x, int) else (0, 0)


def kept(found: Range | None, t: DataType) -> Range:
    """The range where the type holds all of it; else everything that the type holds, for numbers wrap around."""
    whole = whole_range(t)
    return found if found is not None and whole[0] <= found[0] and found[1] <= whole[1] else whole


def of_operator(e: E.Expr, operands: Sequence[object]) -> Range:
    """The range of an operator's expression."""
    if not isinstance(e, E.Binary) or len(operands) != 2:
        return whole_range(e.data_type)
    if e.data_type.is_bool or not e.data_type.is_integer:
        return 0, 0
    rule = OPERATORS[e.op].range
    return kept(rule(range_of(operands[0]), range_of(operands[1])) if rule else None, e.data_type)


def of_operation(name: str, t: DataType, operands: Sequence[object]) -> Range:
    """The range of an operation's value, by its name and its type."""
    rule = RULES.get(name)
    if rule is None or not t.is_integer or t.is_bool:
        return whole_range(t)
    if any(isinstance(x, float) or (isinstance(x, Value) and not x.dtype.is_integer) for x in operands[:2]):
        return whole_range(t)
    return kept(rule([range_of(x) for x in operands]), t)


def _abs(x: Range) -> Range:
    return (0 if x[0] <= 0 <= x[1] else min(map(abs, x))), max(map(abs, x))


RULES: dict[str, Callable[[Sequence[Range]], Range]] = {
    "max": lambda x: (max(x[0][0], x[1][0]), max(x[0][1], x[1][1])),
    "min": lambda x: (min(x[0][0], x[1][0]), min(x[0][1], x[1][1])),
    "abs": lambda x: _abs(x[0]),
    "vsel": lambda x: (min(x[0][0], x[1][0]), max(x[0][1], x[1][1])),
    "vbcast": lambda x: x[0],
    "cast": lambda x: x[0],
}
"""Of operations whose range follows from those of their operands alone."""
