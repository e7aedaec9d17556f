"""Remainders of whole numbers: `coeff * n + base` for some n, for all values of an expression."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import gcd, lcm

from compass_core.dataclass import dataclass
from compassc.analysis.conditions import conjuncts
from compassc.ir import exprs as E
from compassc.ir.exprs import Binary, Expr, IntImm, Var


@dataclass(frozen=True)
class ModularSet:
    """All numbers `coeff * n + base`. A `coeff` of 0 is the number `base` alone; nothing is known where it is 1. `base` is
    not negative and less than `coeff`, where that is not 0."""

    coeff: int
    base: int

    @staticmethod
    def of(coeff: int, base: int) -> ModularSet:
        """The set by any of its bases."""
        size = abs(coeff)
        return ModularSet(size, base % size if size else base)

    def joined(self, other: ModularSet) -> ModularSet:
        """What holds of the numbers of both."""
        size = gcd(self.coeff, other.coeff)
        if size == 0:
            return self if self.base == other.base else _ALL
        one, two = self.base % size, other.base % size
        return ModularSet.of(size if one == two else gcd(one, two, size), one)

    def met(self, other: ModularSet) -> ModularSet:
        """The numbers that are of both; this set where there are none."""
        if 0 in (self.coeff, other.coeff):
            return self if self.coeff == 0 else other
        size = lcm(self.coeff, other.coeff)
        both = (n for n in range(self.base, size, self.coeff) if n % other.coeff == other.base)
        base = next(both, None) if size // self.coeff <= _TRIED else None
        return self if base is None else ModularSet.of(size, base)


_ALL = ModularSet(1, 0)
_TRIED = 1 << 12
"""How many numbers are looked at for one that is of two sets."""
Known = Mapping[Var, ModularSet]
NotNegative = Callable[[Expr], bool]


def modular_set(e: Expr, known: Known, not_negative: NotNegative) -> ModularSet:
    """What is known of the remainders of an expression that does not overflow. `known`: of variables; `not_negative`: whether an expression is
    known not to be."""

    def of(x: Expr) -> ModularSet:
        return modular_set(x, known, not_negative)

    if isinstance(e, IntImm):
        return ModularSet(0, e.value)
    if isinstance(e, Var):
        return known.get(e, _ALL)
    if isinstance(e, E.Cast) and getattr(e.value.dtype, "is_integer", False) and e.dtype.bits >= e.value.dtype.bits:
        return of(e.value)
    if isinstance(e, E.Select):
        return of(e.true_value).joined(of(e.false_value))
    if not isinstance(e, Binary):
        return _ALL
    if e.op in ("min", "max"):
        return of(e.a).joined(of(e.b))
    a, b = of(e.a), of(e.b)
    if e.op in ("add", "sub"):
        return ModularSet.of(gcd(a.coeff, b.coeff), a.base + b.base if e.op == "add" else a.base - b.base)
    if e.op == "mul":
        return ModularSet.of(gcd(a.coeff * b.coeff, a.coeff * b.base, a.base * b.coeff), a.base * b.base)
    return _divided(e, a, b.base, not_negative) if b.coeff == 0 else _ALL


def _divided(e: Binary, a: ModularSet, by: int, not_negative: NotNegative) -> ModularSet:
    """Of the quotient or remainder of a division by a number, and of shifts and bits that are such."""
    op = e.op
    if op == "shr" and by >= 0:
        op, by = "floordiv", 1 << by
    elif op == "bitand" and by >= 0 and by & (by + 1) == 0:
        op, by = "floormod", by + 1
    if by == 0:
        return _ALL
    if op in ("floormod", "mod"):
        size = gcd(a.coeff, by)
        exact = op == "floormod" or a.base % size == 0 or not_negative(e.a)
        return ModularSet.of(size, a.base) if exact else _ALL
    if op in ("floordiv", "div") and a.coeff % by == 0:
        exact = op == "floordiv" or a.base == 0 or (by > 0 and not_negative(e.a))
        return ModularSet.of(a.coeff // by, a.base // by) if exact else _ALL
    return _ALL


def congruences(condition: Expr) -> dict[Var, ModularSet]:
    """What a condition says of remainders of variables: `x % 4 == 3`."""
    found: dict[Var, ModularSet] = {}
    for c in conjuncts(condition):
        if (
            not isinstance(c, Binary)
            or c.op != "eq"
            or not isinstance(c.a, Binary)
            or c.a.op not in ("floormod", "mod")
        ):
            continue
        var, by = c.a.a, c.a.b
        if isinstance(var, Var) and isinstance(by, IntImm) and isinstance(c.b, IntImm) and by.value > 0:
            plain = c.a.op == "floormod" or c.b.value == 0
            if plain and 0 <= c.b.value < by.value:
                new = ModularSet(by.value, c.b.value)
                found[var] = found[var].met(new) if var in found else new
    return found
