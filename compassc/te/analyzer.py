"""What is known of whole numbers, for programs that ask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import IntEnum
from typing import ClassVar

from compass_core.dataclass import dataclass
from compassc.analysis.arith import Arith
from compassc.analysis.simplify import Simplifier
from compassc.ir.errors import ExpressionTypeError
from compassc.ir.exprs import Binary, Expr, IntImm, Var
from compassc.ir.iter_vars import IterVar, Range
from compassc.ir.operators import as_expr, kind_of
from compassc.ir.visit import substitute
from compassc.te.int_sets import IntervalSet, int_set
from compassc.te.modular import ModularSet, congruences, modular_set


@dataclass(frozen=True)
class ConstIntBound:
    """The least and the largest value that an expression can have."""

    POS_INF: ClassVar[int] = (1 << 63) - 1
    NEG_INF: ClassVar[int] = -((1 << 63) - 1)

    min_value: int
    max_value: int


class Analyzer:
    """Simplifies and compares expressions of whole numbers by what is known of their variables."""

    def __init__(self) -> None:
        self._facts = Arith()
        self._values: dict[Var, Expr] = {}
        self._congruences: dict[Var, ModularSet] = {}

    def bind(self, var: object, value: object, allow_override: bool = False) -> None:
        """Say what a variable is: a value, or a Range that it is in."""
        v = variable_of(var)
        if isinstance(value, Range):
            self._facts.bind_loop(v, value.min, Binary("add", value.min, value.extent), IntImm(kind_of(v), 1))
        else:
            self._values[v] = as_expr(value)

    def _of(self, given: object) -> Expr:
        """An expression with the values of its variables."""
        return substitute(as_expr(given), self._values)

    def simplify(self, expr: object, steps: int = 2) -> Expr:
        """The expression in a simpler form."""
        made, simplifier = self._of(expr), Simplifier(self._facts).expr
        for _ in range(max(steps, 1)):
            made = simplifier(made)
        return made

    rewrite_simplify = canonical_simplify = simplify

    def can_prove(self, cond: object, strength: object = None) -> bool:
        """Whether a condition holds for all values that its variables can have. `strength` changes nothing: it is always
        looked for by all that is known."""
        e = Simplifier(self._facts).expr(self._of(cond))
        return isinstance(e, IntImm) and bool(e.value)

    def can_prove_equal(self, lhs: object, rhs: object) -> bool:
        """Whether two expressions are always equal."""
        return self._facts.difference(self._of(lhs), self._of(rhs)) == (0, 0)

    def can_prove_greater_equal(self, expr: object, lower_bound: int) -> bool:
        """Whether an expression is at least a number."""
        return self._facts.range_of(self._of(expr))[0] >= lower_bound

    def can_prove_less(self, expr: object, upper_bound: int) -> bool:
        """Whether an expression is less than a number."""
        return self._facts.range_of(self._of(expr))[1] < upper_bound

    def const_int_bound(self, expr: object) -> ConstIntBound:
        """The least and the largest value of an expression."""
        e = self._of(expr)
        low, high = self._facts.range_of(e)
        return ConstIntBound(int(low), int(high))

    @contextmanager
    def constraint_scope(self, constraint: object) -> Iterator[None]:
        """A condition holds within this context."""
        mark, before = self._facts.mark(), self._congruences
        holds = self._of(constraint)
        self._facts.assume(holds)
        known = {v: c.met(before[v]) if v in before else c for v, c in congruences(holds).items()}
        self._congruences = {**before, **known}
        try:
            yield
        finally:
            self._facts.release(mark)
            self._congruences = before

    def update(self, var: object, info: object, override: bool = False) -> None:
        """Say what numbers a variable can be: a ConstIntBound, or a ModularSet. ExpressionTypeError (a TypeError) for others.
        `override`: what was known of remainders is given up."""
        v = variable_of(var)
        if isinstance(info, ModularSet):
            known = self._congruences.get(v)
            met = info if known is None or override else known.met(info)
            self._congruences = {**self._congruences, v: met}
        elif isinstance(info, ConstIntBound):
            self._facts.bind(v, info.min_value, info.max_value)
        else:
            raise ExpressionTypeError(f"'{v.name}' is updated with a {type(info).__name__}", "give a ConstIntBound")

    def int_set(self, expr: object, dom_map: Mapping[Var, object] | None = None) -> IntervalSet:
        """A set with all values of an expression while variables take those of their domains (sets or Ranges); the others stand
        still."""
        return int_set(self._of(expr), dom_map or {}, Simplifier(self._facts).expr)

    def modular_set(self, expr: object) -> ModularSet:
        """What is known of the remainders of an expression."""
        return modular_set(self._of(expr), self._congruences, lambda e: self._facts.range_of(e)[0] >= 0)


def variable_of(given: object) -> Var:
    """The variable that is given, or that of an axis. ExpressionTypeError for others."""
    e = given.var if isinstance(given, IterVar) else as_expr(given)
    if not isinstance(e, Var):
        raise ExpressionTypeError(f"expected a variable, got {given!r}")
    return e


class ProofStrength(IntEnum):
    """How much a proof may cost."""

    DEFAULT = 0
    SYMBOLIC_BOUND = 1


__all__ = ["Analyzer", "ConstIntBound", "ModularSet", "ProofStrength"]
