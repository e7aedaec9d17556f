"""Whether a condition of loops follows from the ranges of the axes that are bound to them."""

from __future__ import annotations

from collections.abc import Sequence

from compassc.analysis.arith import Arith, Linear
from compassc.analysis.simplify import Simplifier
from compassc.ir.exprs import Binary, Expr, IntImm
from compassc.tir.blocks import Axis, constant


def implied(condition: Expr, axes: Sequence[Axis], facts: Arith, simplifier: Simplifier) -> bool:
    """Whether `condition` holds wherever each axis is in its range. False where that is not found out.

    Of `e < c` it is found out where the binding of an axis is `m * e` plus something that is not negative, or a quotient
    of such a sum.
    """
    condition = simplifier.expr(condition)
    if isinstance(condition, IntImm):
        return bool(condition.value)
    if not isinstance(condition, Binary) or condition.op not in ("lt", "le"):
        return False
    difference = facts.exact(condition.a).add(facts.exact(condition.b), -1)
    limit = -1 if condition.op == "lt" else 0  # difference <= limit
    for axis in axes:
        start, extent = constant(axis.start), constant(axis.extent)
        if start is None or extent is None:
            same = facts.interner.same
            if (
                condition.op == "lt"
                and start == 0
                and same(condition.a, axis.binding)
                and same(condition.b, axis.extent)
            ):
                return True
            continue
        for form, low, high in _ranges(axis.binding, start, start + extent - 1, facts):
            if _follows(difference, limit, form, high, facts) or _follows(
                difference, limit, Linear().add(form, -1), -low, facts
            ):
                return True
    return False


def _ranges(e: Expr, low: int, high: int, facts: Arith) -> list[tuple[Linear, int, int]]:
    """What else has a known range when `low <= e <= high`: what a quotient is made of."""
    found = [(facts.exact(e), low, high)]
    if isinstance(e, Binary) and e.op == "floordiv" and isinstance(e.b, IntImm) and e.b.value > 0:
        by = e.b.value
        found += _ranges(e.a, low * by, high * by + by - 1, facts)
    return found


def _follows(difference: Linear, limit: int, form: Linear, most: int, facts: Arith) -> bool:
    """Whether `form <= most` makes `difference <= limit`: `m * difference <= form + rest <= most + rest`."""
    ratios = {form.terms[k] // f for k, f in difference.terms.items() if k in form.terms and form.terms[k] % f == 0}
    for m in ratios:
        if m <= 0:
            continue
        rest = Linear().add(difference, m).add(form, -1)
        above = facts.bounds(rest)[1] + most
        if above < m * (limit + 1):
            return True
    return False
