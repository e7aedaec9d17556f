"""The operators on integers: the value of each, and its range over ranges of operands.

One table for everything that computes with a kernel's scalars before the kernel runs: folding of constants, ranges of
values, sizes of tensors, and PySim's scalars. `div` and `mod` cut towards zero, as C's `/` and `%` do; `floordiv` and
`floormod` round down. None of them fails: `x / 0` and `x % 0` are 0, as they are on the NPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compass_core.namedtuple import NamedTuple

Range = tuple[int, int]
"""The least and the largest value something can have."""
RangeRule = Callable[[Range, Range], "Range | None"]


class Operator(NamedTuple):
    """`evaluate`: the exact result on two whole numbers, before it is cut to a type (see `wrap`).

    `range`: the least and largest result over two ranges; None when the rule cannot tell, or there is no rule. `truth`:
    the result is 0 or 1, whatever the operands' type. `c`, `python`: the operator in C and in Python; empty where the
    language has none.
    """

    evaluate: Callable[[int, int], int]
    range: RangeRule | None
    truth: bool
    c: str
    python: str


def wrap(value: int, bits: int, signed: bool) -> int:
    """The value that an integer of `bits` bits holds: `value` modulo 2**bits."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value


def is_power_of_two(value: int) -> bool:
    """Whether `value` is 1, 2, 4, ..."""
    return value > 0 and value & (value - 1) == 0


def div(a: int, b: int) -> int:
    """The quotient cut towards zero; 0 for a divisor of 0."""
    if not b:
        return 0
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def mod(a: int, b: int) -> int:
    """The remainder of `div`, with the sign of the dividend; 0 for a divisor of 0."""
    return a - div(a, b) * b if b else 0


def floordiv(a: int, b: int) -> int:
    """The quotient rounded down; 0 for a divisor of 0."""
    return a // b if b else 0


def floormod(a: int, b: int) -> int:
    """The remainder of `floordiv`, with the sign of the divisor; 0 for a divisor of 0."""
    return a % b if b else 0


# ------------------------------------------------------------------------------------------------------------- ranges


def _corners(rule: Callable[[int, int], int]) -> RangeRule:
    """The range of an operator that is monotone in each operand."""

    def over(a: Range, b: Range) -> Range:
        values = [rule(x, y) for x in a for y in b]
        return min(values), max(values)

    return over


def _quotients(rule: Callable[[int, int], int]) -> RangeRule:
    corners = _corners(rule)
    return lambda a, b: corners(a, b) if b[0] > 0 else None


def _mod_range(a: Range, b: Range) -> Range | None:
    if b[0] <= 0:
        return None
    if 0 <= a[0] and a[1] < b[0]:
        return a
    return max(a[0], 1 - b[1]) if a[0] < 0 else 0, min(a[1], b[1] - 1) if a[1] >= 0 else 0


def _floormod_range(a: Range, b: Range) -> Range | None:
    if b[0] <= 0:
        return None
    if b[0] == b[1] and a[0] // b[0] == a[1] // b[0]:
        return a[0] % b[0], a[1] % b[0]
    return 0, b[1] - 1 if a[0] < 0 else min(a[1], b[1] - 1)


def _bitand_range(a: Range, b: Range) -> Range | None:
    tops = [r[1] for r in (a, b) if r[0] >= 0]
    return (0, min(tops)) if tops else None


def _bits_range(a: Range, b: Range) -> Range | None:
    if a[0] < 0 or b[0] < 0:
        return None
    return 0, (1 << max(a[1], b[1]).bit_length()) - 1


def _shift_range(rule: Callable[[int, int], int]) -> RangeRule:
    corners = _corners(rule)
    return lambda a, b: corners(a, b) if 0 <= b[0] <= b[1] < 64 else None


def _equality(same: bool) -> RangeRule:
    def over(a: Range, b: Range) -> Range:
        if a[0] == a[1] == b[0] == b[1]:
            return (int(same),) * 2
        return (int(not same),) * 2 if a[1] < b[0] or b[1] < a[0] else (0, 1)

    return over


def _value(evaluate: Callable[[int, int], int], range: RangeRule | None, c: str = "", python: str = "") -> Operator:
    return Operator(evaluate, range, False, c, python)


def _truth(evaluate: Callable[[int, int], Any], range: RangeRule | None, c: str, python: str) -> Operator:
    return Operator(lambda a, b: int(evaluate(a, b)), range, True, c, python)


def _ordered(evaluate: Callable[[int, int], bool]) -> RangeRule:
    return _corners(lambda a, b: int(evaluate(a, b)))


OPERATORS: dict[str, Operator] = {
    "add": _value(lambda a, b: a + b, lambda a, b: (a[0] + b[0], a[1] + b[1]), "+", "+"),
    "sub": _value(lambda a, b: a - b, lambda a, b: (a[0] - b[1], a[1] - b[0]), "-", "-"),
    "mul": _value(lambda a, b: a * b, _corners(lambda a, b: a * b), "*", "*"),
    "div": _value(div, _quotients(div), "/"),
    "mod": _value(mod, _mod_range, "%"),
    "floordiv": _value(floordiv, _quotients(floordiv), python="//"),
    "floormod": _value(floormod, _floormod_range, python="%"),
    "min": _value(min, _corners(min)),
    "max": _value(max, _corners(max)),
    "bitand": _value(lambda a, b: a & b, _bitand_range, "&", "&"),
    "bitor": _value(lambda a, b: a | b, _bits_range, "|", "|"),
    "bitxor": _value(lambda a, b: a ^ b, _bits_range, "^", "^"),
    "shl": _value(lambda a, b: a << b, _shift_range(lambda a, b: a << b), "<<", "<<"),
    "shr": _value(lambda a, b: a >> b, _shift_range(lambda a, b: a >> b), ">>", ">>"),
    "eq": _truth(lambda a, b: a == b, _equality(True), "==", "=="),
    "ne": _truth(lambda a, b: a != b, _equality(False), "!=", "!="),
    "lt": _truth(lambda a, b: a < b, _ordered(lambda a, b: a < b), "<", "<"),
    "le": _truth(lambda a, b: a <= b, _ordered(lambda a, b: a <= b), "<=", "<="),
    "gt": _truth(lambda a, b: a > b, _ordered(lambda a, b: a > b), ">", ">"),
    "ge": _truth(lambda a, b: a >= b, _ordered(lambda a, b: a >= b), ">=", ">="),
    "and": _truth(lambda a, b: a and b, _corners(lambda a, b: int(bool(a and b))), "&&", "and"),
    "or": _truth(lambda a, b: a or b, _corners(lambda a, b: int(bool(a or b))), "||", "or"),
}
"""Every operator with two operands, by its name in the IR."""

DIVISIONS = frozenset(("div", "mod", "floordiv", "floormod"))
"""The operators that divide. A checked run reports a divisor of 0; any other run continues with the result above."""
