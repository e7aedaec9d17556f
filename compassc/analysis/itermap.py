"""Indices as digits of loops: whether expressions of loops run over a whole box, and over each point of it once.

An index such as `i_0 * 16 + i_1` or `(f // 4) % 8` is a sum of digits of loop variables, each with a scale. Where the
scales fit together like those of a number system the sum takes all values of a range; where no digit is used twice,
several indices do so independently of each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compass_core.namedtuple import NamedTuple
from compassc.analysis.structure import Interner
from compassc.ir.exprs import Binary, Expr, IntImm, Var

UNKNOWN = 1 << 30
"""Stands for an extent that is not known."""


class Digit(NamedTuple):
    """`(var // lower) % extent`, times `scale`."""

    var: Var
    lower: int
    extent: int
    scale: int


class Digits(NamedTuple):
    """A sum of digits on top of something that the loops do not change; `base` of it is known."""

    digits: tuple[Digit, ...]
    base: int
    moved: bool = False
    """Whether there is more in the base than is known."""

    @property
    def span(self) -> int:
        """The largest value above the base."""
        return sum((d.extent - 1) * d.scale for d in self.digits)


def digits_of(e: Expr, loops: Mapping[Var, int], down: bool = False) -> Digits | None:
    """An index by the digits of the loops (variable: extent, from 0 on); None for what is no such sum. `down`: digits that
    count down are some, too, for they take the same values: a digit then says which values there are, and not when."""
    if isinstance(e, IntImm):
        return Digits((), e.value)
    if isinstance(e, Var):
        if e not in loops:
            return Digits((), 0, True)
        return Digits((Digit(e, 1, loops[e], 1),) if loops[e] > 1 else (), 0)
    if not isinstance(e, Binary):
        return None
    a, b = digits_of(e.a, loops, down), digits_of(e.b, loops, down)
    if a is None or b is None:
        return None
    if not a.digits and not b.digits and (a.moved or b.moved):
        return Digits((), 0, True)
    if e.op == "add":
        return Digits((*a.digits, *b.digits), a.base + b.base, a.moved or b.moved)
    if e.op == "sub" and (down or not b.digits):
        return Digits((*a.digits, *b.digits), a.base - b.base - b.span, a.moved or b.moved)
    if e.op == "mul":
        return _scaled(a, b) or _scaled(b, a)
    if e.op in ("floordiv", "floormod") and not b.digits and not b.moved and b.base > 0 and not a.moved:
        return _divided(a, b.base, e.op == "floordiv")
    return None


def _scaled(a: Digits, by: Digits) -> Digits | None:
    if by.digits or by.moved or by.base <= 0:
        return None
    return Digits(tuple(d._replace(scale=d.scale * by.base) for d in a.digits), a.base * by.base, a.moved)


def _divided(a: Digits, by: int, quotient: bool) -> Digits | None:
    """The quotient or the remainder of a sum of digits by a number."""
    high: list[Digit] = []
    low: list[Digit] = []
    for d in a.digits:
        if d.scale % by == 0:
            high.append(d)
        elif by % d.scale == 0 and d.extent * d.scale > by and d.extent % (by // d.scale) == 0:
            step = by // d.scale
            high.append(Digit(d.var, d.lower * step, d.extent // step, by))
            low.append(Digit(d.var, d.lower, step, d.scale))
        else:
            low.append(d)
    rest = a.base % by
    if rest + sum((d.extent - 1) * d.scale for d in low) >= by:
        return None
    if quotient:
        return Digits(tuple(d._replace(scale=d.scale // by) for d in high), a.base // by)
    return Digits(tuple(low), rest)


def is_dense(digits: Digits) -> bool:
    """Whether the sum takes every value from its base on."""
    count = 1
    for d in sorted(digits.digits, key=lambda d: d.scale):
        if d.scale > count:
            return False
        count += d.scale * (d.extent - 1)
    return True


def is_injective(digits: Digits) -> bool:
    """Whether different digits make different sums."""
    count = 1
    for d in sorted(digits.digits, key=lambda d: d.scale):
        if d.scale < count:
            return False
        count = d.scale * d.extent
    return True


def disjoint(all_digits: Sequence[Digit]) -> bool:
    """Whether no part of a variable is used twice."""
    for i, a in enumerate(all_digits):
        for b in all_digits[:i]:
            if a.var is b.var and a.lower < b.lower * b.extent and b.lower < a.lower * a.extent:
                return False
    return True


def _forms(exprs: Sequence[Expr], loops: Mapping[Var, int]) -> list[Digits] | None:
    found = [f for e in exprs if (f := digits_of(e, loops)) is not None]
    return found if len(found) == len(exprs) else None


def covers(exprs: Sequence[Expr], loops: Mapping[Var, int]) -> bool:
    """Whether the indices together take every point of the box between their least and largest values."""
    forms = _forms(exprs, loops)
    if forms is None:
        return False
    return all(map(is_dense, forms)) and disjoint([d for f in forms for d in f.digits])


def once(exprs: Sequence[Expr], loops: Mapping[Var, int]) -> bool:
    """Whether different turns of the loops are different points."""
    forms = _forms(exprs, loops)
    if forms is None or not all(map(is_injective, forms)):
        return False
    digits = [d for f in forms for d in f.digits]
    return disjoint(digits) and all(complete(var, extent, digits) for var, extent in loops.items())


def separates(exprs: Sequence[Expr], loops: Mapping[Var, int], var: Var, down: bool = False) -> bool:
    """Whether points of different values of one loop are different, whatever the others are. `down`: as for `digits_of`."""
    forms = [
        f for f in (digits_of(e, loops, down) for e in (*exprs, *_whole(exprs))) if f is not None and is_injective(f)
    ]
    digits = [d for f in forms for d in f.digits]
    return complete(var, loops[var], digits)


def _whole(exprs: Sequence[Expr]) -> list[Expr]:
    """The indices with `x` for each pair of `x // n` and `x % n`: they tell the same apart."""
    keys, found = Interner(), list(exprs)
    for rest in exprs:
        parts = _by_number(rest, "mod")
        if parts is None:
            continue
        x, n = parts
        inner = _by_number(x, "div")
        wanted = [(keys.key(x), n), *([(keys.key(inner[0]), inner[1] * n)] if inner else [])]
        for quotient in found:
            of = _by_number(quotient, "div")
            if of is not None and (keys.key(of[0]), of[1]) in wanted:
                return _whole([*(e for e in found if e is not rest and e is not quotient), x])
    return found


def _by_number(e: Expr, op: str) -> tuple[Expr, int] | None:
    """What is divided by which number."""
    if isinstance(e, Binary) and e.op in (op, f"floor{op}") and isinstance(e.b, IntImm) and e.b.value > 0:
        return e.a, e.b.value
    return None


def complete(var: Var, extent: int, digits: Sequence[Digit]) -> bool:
    """Whether the digits of a variable make up the whole of it."""
    reached = 1
    for d in sorted((d for d in digits if d.var is var), key=lambda d: d.lower):
        if d.lower > reached:
            return False
        reached = max(reached, d.lower * d.extent)
    return reached >= extent


def bijective(exprs: Sequence[Expr], loops: Mapping[Var, int]) -> bool:
    """Whether the loops take every point of a box exactly once."""
    return covers(exprs, loops) and once(exprs, loops)
