"""Values of the index arithmetic: numbers, and linear forms of numbers that differ between iterations."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

from compass_core.dataclass import dataclass
from compass_core.operators import OPERATORS, wrap

LIMIT = 1 << 64
"""Every type's numbers are nearer to 0. What a sum or product has beyond is not followed: types cut it anyway."""
_HUGE = 1 << 256
_ROUNDING = 2.0**-22
_LARGEST_FLOAT = 2.0**128 - 2.0**104
"""The largest relative difference of a float32 result from the one computed here."""


class Counter:
    """The number of an iteration, `first` to `last`, of a loop whose iterations are looked at together."""

    __slots__ = ("active", "first", "last")

    def __init__(self, first: int, last: int) -> None:
        self.first, self.last, self.active = first, last, True


class Split(Exception):
    """Iterations from `at` on behave otherwise than those before."""

    def __init__(self, counter: Counter, at: int) -> None:
        self.counter, self.at = counter, at


class Form:
    """`sum(factor * counter)` plus some number in `low..high`; `low == high`: exactly that number.

    `reason` says what the value depends on, for what has no useful bounds.
    """

    __slots__ = ("high", "low", "reason", "terms")

    def __init__(self, terms: dict[Counter, int], low: Any, high: Any, reason: str = "") -> None:
        self.terms, self.low, self.high, self.reason = terms, low, high, reason


@dataclass(frozen=True)
class Address:
    """A byte offset into a tensor parameter; `root` None is memory of the kernel's own."""

    root: str | None
    offset: Linear


Linear = int | float | Form
"""A number, or what it is in each iteration."""
Value = Linear | Address | None
"""What variables are; None is what a function gives that returns nothing."""
Env = dict[str, Value]
"""Variables by name."""


def unknown(reason: str) -> Form:
    """A number, which may be any."""
    return Form({}, -LIMIT, LIMIT, reason)


_NUMBERS = frozenset((int, float, bool, Form))


def number(value: Value) -> Linear:
    """A value that is used as a number."""
    return value if isinstance(value, (int, float, Form)) else unknown("a pointer is used as a number")


def numbers(values: list[Value]) -> list[Linear]:
    """Values that are used as numbers, as mostly all of them are."""
    return cast("list[Linear]", values) if _NUMBERS.issuperset(map(type, values)) else [number(x) for x in values]


def bounds(value: object) -> tuple[Any, Any]:
    """The least and the largest number a value can be."""
    if not isinstance(value, Form):
        return value, value
    low, high = value.low, value.high
    for counter, factor in value.terms.items():
        a, b = factor * counter.first, factor * counter.last
        low, high = (low + a, high + b) if a < b else (low + b, high + a)
    return low, high


def is_exact(value: object) -> bool:
    """Whether a value is known for each iteration."""
    return not isinstance(value, Form) or value.low == value.high


def reason_of(*values: object) -> str:
    """Why bounds of these values say little."""
    for value in values:
        if type(value) is Form and value.reason:
            return value.reason
    return ""


def between(low: Any, high: Any, reason: str = "") -> Linear:
    """A value in `low..high`."""
    if low == high:
        exact: Linear = low
        return exact
    return Form({}, low, high, reason)


def hull(a: Linear, b: Linear, reason: str) -> Linear:
    """A value that is `a` or `b`."""
    if not isinstance(a, Form) and not isinstance(b, Form) and a == b:
        return a
    (low, high), (least, most) = bounds(a), bounds(b)
    return between(min(low, least), max(high, most), reason_of(a, b) or reason)


def either(a: Value, b: Value, reason: str) -> Value:
    """A value that is `a` or `b`."""
    if a is b:
        return a
    if isinstance(a, Address) and isinstance(b, Address):
        if a.root == b.root:
            return Address(a.root, hull(a.offset, b.offset, reason))
        return unknown(reason or "a pointer may point to several tensors")
    if isinstance(a, (Address, type(None))) or isinstance(b, (Address, type(None))):
        return unknown(reason or "a pointer may be several things")
    return hull(a, b, reason)


def unknown_like(value: object, why: str) -> Form | Address:
    """What may stand in the place of a value."""
    return Address(value.root, unknown(why)) if isinstance(value, Address) else unknown(why)


def add(a: Linear, b: Linear, factor: int = 1) -> Linear:
    """`a + factor * b`."""
    if not isinstance(a, Form) and not isinstance(b, Form):
        return a + factor * b
    terms: dict[Counter, int] = dict(a.terms) if isinstance(a, Form) else {}
    low, high = (a.low, a.high) if isinstance(a, Form) else (a, a)
    if not isinstance(b, Form):
        return Form(terms, low + factor * b, high + factor * b, reason_of(a))
    for counter, f in b.terms.items():
        total = terms.get(counter, 0) + factor * f
        if total:
            terms[counter] = total
        else:
            del terms[counter]
    ends = factor * b.low, factor * b.high
    low, high = low + min(ends), high + max(ends)
    if not terms and low == high:
        exact: Linear = low
        return exact
    return Form(terms, low, high, reason_of(a, b))


def scale(a: Form, factor: Any) -> Linear:
    """`factor * a`."""
    if not factor:
        return 0
    if abs(factor) >= LIMIT or any(abs(f * factor) >= LIMIT for f in a.terms.values()):
        return unknown(a.reason or "the index arithmetic leaves every address")
    ends = a.low * factor, a.high * factor
    return Form({c: f * factor for c, f in a.terms.items()}, min(ends), max(ends), a.reason)


# ------------------------------------------------------------------------------------------------- operators


def apply(op: str, args: Sequence[Linear], may_split: bool) -> Linear:
    """The value of an operator. `may_split`: raise Split where its iterations are better looked at in two parts."""
    special = _SPECIAL.get(op)
    if special is not None:
        return special(op, args, may_split)
    a, b = args
    if type(a) is int and type(b) is int:
        return _exact(op, a, b)
    if type(a) is float or type(b) is float or _is_float(a) or _is_float(b):
        return _float(op, a, b, may_split)
    if not isinstance(a, Form) and not isinstance(b, Form):
        return _exact(op, a, b)
    rule = _ON_FORMS.get(op)
    found = rule(op, a, b, may_split) if rule is not None else None
    return _by_ranges(op, a, b) if found is None else found


def _exact(op: str, a: Any, b: Any) -> Linear:
    if op in ("shl", "shr") and not 0 <= b < 64:
        return unknown(f"the index arithmetic shifts by {b}")
    result = OPERATORS[op].evaluate(a, b)
    return result if -LIMIT < result < LIMIT else unknown("the index arithmetic leaves every address")


def _by_ranges(op: str, a: Linear, b: Linear) -> Linear:
    """The range of the result, from the ranges of both operands."""
    operator = OPERATORS[op]
    over = bounds(a), bounds(b)
    found = operator.range(*over) if operator.range is not None else None
    reason = reason_of(a, b) or f"the index arithmetic cannot be followed at `{op}`"
    if found is None:
        return Form({}, 0, 1, reason) if operator.truth else unknown(reason)
    return between(*found, reason_of(a, b)) if -_HUGE < found[0] <= found[1] < _HUGE else unknown(reason)


def _is_float(value: object) -> bool:
    return isinstance(value, Form) and type(value.low) is float


def _followed(value: object) -> bool:
    """Whether the ends of a floating value are known: floats go beyond what is any whole number, and may be no numbers."""
    low, high = bounds(value)
    most = LIMIT - 1 if isinstance(value, Form) and not _is_float(value) else _LARGEST_FLOAT
    return bool(-most <= low and high <= most)


def _float(op: str, a: Linear, b: Linear, may_split: bool) -> Linear:
    """Floating point: the kernel rounds after each operation, so that the result is known roughly."""
    over = bounds(a), bounds(b)
    reason = reason_of(a, b) or "an address depends on floating point arithmetic"
    operator = OPERATORS[op]
    if not all(map(_followed, (a, b))):
        return Form({}, 0, 1, reason) if operator.truth else unknown(reason)
    if operator.truth:
        return between(*(operator.range(*over) or (0, 1)), reason) if operator.range else Form({}, 0, 1, reason)
    if op == "div":
        if over[1][0] <= 0 <= over[1][1]:
            return unknown(reason)
        ends = [x / y for x in over[0] for y in over[1]]
    elif op in ("add", "sub", "mul", "min", "max") and operator.range is not None:
        ends = [float(x) for x in operator.range(*over) or (-LIMIT, LIMIT)]
    else:
        return unknown(reason)
    if not all(abs(x) <= _LARGEST_FLOAT for x in ends):
        return unknown(reason)
    return Form({}, min(ends) - abs(min(ends)) * _ROUNDING, max(ends) + abs(max(ends)) * _ROUNDING, reason)


def _sum(op: str, a: Linear, b: Linear, may_split: bool) -> Linear | None:
    return add(a, b, 1 if op == "add" else -1)


def _product(op: str, a: Linear, b: Linear, may_split: bool) -> Linear | None:
    if isinstance(a, Form):
        return None if isinstance(b, Form) else scale(a, b)
    return scale(b, a) if isinstance(b, Form) else _exact(op, a, b)


def _shift(op: str, a: Any, b: Any, may_split: bool) -> Linear | None:
    if isinstance(b, Form) or not 0 <= b < 64:
        return None
    return scale(a, 1 << b) if op == "shl" else _quotient("floordiv", a, 1 << b, may_split)


def _quotient(op: str, a: Linear, b: Linear, may_split: bool) -> Linear | None:
    """`(b * x + rest) // b` is x, where the rest is in 0..b-1."""
    parts = _divided(op, a, b)
    if parts is None:
        return None
    whole, rest = parts
    low, high = bounds(rest)
    return whole if low // b == high // b == 0 else add(whole, _by_ranges("floordiv", rest, b))


def _remainder(op: str, a: Linear, b: Linear, may_split: bool) -> Linear | None:
    parts = _divided("floordiv" if op == "floormod" else "div", a, b)
    if parts is None:
        return None
    rest = parts[1]
    low, high = bounds(rest)
    return rest if low // b == high // b == 0 else _by_ranges("floormod", rest, b)


def _divided(op: str, a: Linear, b: Any) -> tuple[Linear, Linear] | None:
    """`a` as b * whole + rest, where rounding down by `b` is what `op` does; the rest keeps what `b` does not divide."""
    if isinstance(b, Form) or b <= 0 or not isinstance(a, Form) or (op == "div" and bounds(a)[0] < 0):
        return None
    shift = a.low // b
    whole = Form({c: f // b for c, f in a.terms.items() if f % b == 0}, shift, shift)
    rest = Form({c: f for c, f in a.terms.items() if f % b}, a.low - shift * b, a.high - shift * b, a.reason)
    return (whole if whole.terms else shift), (rest if rest.terms or rest.low != rest.high else rest.low)


def _mask(op: str, a: Linear, b: Any, may_split: bool) -> Linear | None:
    if isinstance(a, Form) and not isinstance(b, Form) and b >= 0 and b & (b + 1) == 0:
        return _remainder("floormod", a, b + 1, may_split)
    return None


def _least(op: str, a: Linear, b: Linear, may_split: bool) -> Linear | None:
    difference = add(a, b, -1)
    low, high = bounds(difference)
    if op == "max":
        low, high = -high, -low
    if high <= 0:
        return a
    if low >= 0:
        return b
    _split(difference, 0, may_split)
    return None


def _compare(op: str, a: Linear, b: Linear, may_split: bool) -> Linear | None:
    difference = add(a, b, -1)
    found = OPERATORS[op].range(bounds(difference), (0, 0))  # type: ignore[misc]
    if found is not None and found[0] == found[1]:
        return found[0]
    _split(difference, 1 if op in ("le", "gt") else 0, may_split)
    if op in ("eq", "ne"):
        _split(difference, 1, may_split)
    return None


def _split(difference: Linear, at: int, may_split: bool) -> None:
    """Raises Split between the iterations in which a difference is below `at` and the others, if one loop decides."""
    if not may_split or not isinstance(difference, Form) or difference.low != difference.high:
        return
    if len(difference.terms) != 1:
        return
    ((counter, factor),) = difference.terms.items()
    if not counter.active:
        return
    rest = at - difference.low  # the iterations k with factor * k < rest are below
    first = -(-rest // factor) if factor > 0 else rest // factor + 1
    if counter.first < first <= counter.last:
        raise Split(counter, first)


def _convert(op: str, args: Sequence[Any], may_split: bool) -> Linear:
    """`["i32", e]`: cut to a type."""
    (a,) = args
    least, most = _RANGES[op]
    low, high = (a, a) if type(a) is int else bounds(a)
    if least <= low and high <= most:
        same: Linear = a
        return same
    if not isinstance(a, Form):
        return wrap(a, int(op[1:]), op[0] == "i")
    return Form({}, least, most, a.reason or f"the index arithmetic leaves the range of {op}")


def _to_int(op: str, args: Sequence[Linear], may_split: bool) -> Linear:
    (a,) = args
    if not isinstance(a, Form):
        return int(a) if math.isfinite(a) else unknown(f"the index arithmetic converts {a} to a whole number")
    if not _is_float(a):
        return a
    low, high = bounds(a)
    if not -LIMIT < low <= high < LIMIT:  # or no number
        return unknown(a.reason)
    return between(int(low), int(high), a.reason)


def _to_float(op: str, args: Sequence[Linear], may_split: bool) -> Linear:
    low, high = bounds(args[0])
    if not -(1 << 24) <= low <= high <= 1 << 24:
        return Form({}, low - abs(low) * _ROUNDING, high + abs(high) * _ROUNDING, reason_of(args[0]))
    return float(low) if low == high else Form({}, float(low), float(high), reason_of(args[0]))


def _not(op: str, args: Sequence[Linear], may_split: bool) -> Linear:
    (a,) = args
    if isinstance(a, Form):
        low, high = bounds(a)
        return 0 if low > 0 or high < 0 else Form({}, 0, 1, a.reason)
    return int(not a)


def _negated_bits(op: str, args: Sequence[Linear], may_split: bool) -> Linear:
    return add(-1, args[0], -1)


def _absolute(op: str, args: Sequence[Linear], may_split: bool) -> Linear:
    (a,) = args
    low, high = bounds(a)
    if low >= 0:
        return a
    return add(0, a, -1) if high <= 0 else between(0, max(-low, high), reason_of(a))


def _ceildiv(op: str, args: Sequence[Linear], may_split: bool) -> Linear:
    a, b = args
    return apply("div", [add(add(a, b), -1), b], may_split)


def _strided(op: str, args: Sequence[Linear], may_split: bool) -> Linear:
    """Bytes from the first row's start to the last row's end, of a copy of `size` bytes in rows."""
    width, stride, size = args
    if isinstance(width, Form) or width <= 0:
        return between(0, bounds(size)[1], reason_of(width, stride, size))
    rows = apply("div", [add(add(size, width), -1), width], may_split)
    if bounds(rows)[1] <= 0:
        return 0
    return add(apply("mul", [add(rows, -1), stride], may_split), width)


def _between(op: str, args: Sequence[Linear], may_split: bool) -> Linear:
    return between(bounds(args[0])[0], bounds(args[1])[1], reason_of(*args))


Rule = Callable[[str, Linear, Linear, bool], Linear | None]
_ON_FORMS: dict[str, Rule] = {
    **dict.fromkeys(("add", "sub"), _sum),
    "mul": _product,
    **dict.fromkeys(("div", "floordiv"), _quotient),
    **dict.fromkeys(("mod", "floormod"), _remainder),
    **dict.fromkeys(("shl", "shr"), _shift),
    "bitand": _mask,
    **dict.fromkeys(("min", "max"), _least),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge"), _compare),
}
_BITS = (8, 16, 32, 64)
_RANGES = {
    **{f"i{bits}": (-(1 << bits - 1), (1 << bits - 1) - 1) for bits in _BITS},
    **{f"u{bits}": (0, (1 << bits) - 1) for bits in _BITS},
}
INTEGERS = tuple(_RANGES)
_SPECIAL: dict[str, Callable[[str, Sequence[Linear], bool], Linear]] = {
    **dict.fromkeys(INTEGERS, _convert),
    "int": _to_int,
    "float": _to_float,
    "not": _not,
    "bitnot": _negated_bits,
    "abs": _absolute,
    "ceildiv": _ceildiv,
    "strided": _strided,
    "between": _between,
}
