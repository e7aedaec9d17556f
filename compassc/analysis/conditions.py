"""Conditions that are joined by `and`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..ir import stmts as S
from ..ir.dtypes import BOOL
from ..ir.exprs import Binary, Expr, IntImm
from ..ir.stmts import Stmt

TRUE = IntImm(BOOL, 1)


def conjuncts(condition: Expr) -> list[Expr]:
    """The conditions that a condition joins; none where it is known to hold."""
    if isinstance(condition, Binary) and condition.op == "and":
        return [*conjuncts(condition.a), *conjuncts(condition.b)]
    return [] if isinstance(condition, IntImm) and condition.value else [condition]


def joined(conditions: Iterable[Expr]) -> Expr:
    """All conditions as one."""
    made: Expr | None = None
    for c in conditions:
        made = c if made is None else Binary("and", made, c)
    return TRUE if made is None else made


def nested(conditions: Sequence[Expr], body: Sequence[Stmt]) -> list[Stmt]:
    """Statements under conditions one in the other, the first one outermost; none of those that are known to hold."""
    made = tuple(body)
    for condition in reversed(conditions):
        if not (isinstance(condition, IntImm) and condition.value):
            made = (S.IfThenElse(condition, made, ()),)
    return list(made)


def guarded(conditions: Sequence[Expr], body: list[Stmt]) -> list[Stmt]:
    """Statements under conditions, all of which are one."""
    return [S.IfThenElse(joined(conditions), tuple(body), ())] if conditions and body else body
