"""Quotients and remainders of sums in the forms that block functions have them in."""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

from compassc.analysis.arith import Arith, Linear
from compassc.analysis.itermap import digits_of, is_dense, is_injective
from compassc.analysis.simplify import Simplifier
from compassc.ir.exprs import Binary, Expr, IntImm, Var
from compassc.ir.visit import rewrite
from compassc.tir.blocks import add, constant, mul, number, sub


def split_digit(e: Expr) -> Expr | None:
    """A digit of a number as block functions write it: `x % (a * b) // a` for `x // a % b`."""
    if isinstance(e, Binary) and e.op == "floormod" and isinstance(e.b, IntImm):
        inner = e.a
        if isinstance(inner, Binary) and inner.op == "floordiv" and isinstance(inner.b, IntImm):
            whole = IntImm(e.b.dtype, inner.b.value * e.b.value)
            return Binary("floordiv", Binary("floormod", inner.a, whole), inner.b)
    return None


def apart(e: Expr, facts: Arith) -> Expr:
    """An index with quotients and remainders of sums by what they depend on: `(x * 4 + y) // 8` is `x // 2` where y is 0 to
    3, and `(x * 4 + y) % 8` is `x % 2 * 4 + y`."""
    simplify = Simplifier(facts).expr

    def part(x: Expr) -> Expr | None:
        if not isinstance(x, Binary) or x.op not in ("floordiv", "floormod") or not isinstance(x.b, IntImm):
            return None
        by, form = x.b.value, facts.exact(x.a)
        for g in sorted({gcd(f, by) for f in form.terms.values()} - {1, by}, reverse=by > 0):
            whole = Linear({k: f // g for k, f in form.terms.items() if f % g == 0}, form.const // g)
            rest = Linear({k: f for k, f in form.terms.items() if f % g}, form.const % g)
            low, high = facts.bounds(rest)
            if by <= 0 or low < 0 or high >= g:
                continue
            high_part = Binary(x.op, sum_of(whole, facts, x), number(by // g, x))
            return high_part if x.op == "floordiv" else add(mul(high_part, number(g, x)), sum_of(rest, facts, x))
        return None

    return simplify(rewrite(simplify(e), part))


def ranges_of(
    index: Expr, axes: Mapping[Var, int], start: Expr, count: int, facts: Arith
) -> dict[Var, tuple[Expr, int]] | None:
    """The first value and the number of values of the axes (variable: extent, from 0 on) that are the digits of an index,
    where the index has `count` values from `start` on: all combinations of them, and no others. None where they are not such,
    or where that is not known."""
    form = digits_of(index, axes)
    if form is None or form.moved or {d.lower for d in form.digits} != {1}:
        return None
    if not is_dense(form) or not is_injective(form) or any(d.extent != axes[d.var] for d in form.digits):
        return None
    simplify = Simplifier(facts).expr
    begin = simplify(sub(start, number(form.base, start)))
    aligned = simplify(Binary("floormod", begin, number(count, start)))
    whole = max(d.scale * d.extent for d in form.digits)
    if not isinstance(aligned, IntImm) or aligned.value:
        return None
    found: dict[Var, tuple[Expr, int]] = {}
    for d in form.digits:
        low, high = d.scale, d.scale * d.extent
        if count % high == 0 and (high < whole or constant(begin) == 0):
            continue
        if count % high == 0 or not (low % count == 0 or (count % low == 0 and (high % count == 0 or high == whole))):
            return None
        first = begin if high == whole else Binary("floormod", begin, number(high, start))
        value = apart(Binary("floordiv", first, number(low, start)), facts)
        found[d.var] = value, max(count // low, 1)
    return found


def sum_of(form: Linear, facts: Arith, like: Expr) -> Expr:
    """A sum as an expression of the type of another one."""
    made: Expr = number(form.const, like)
    for key, factor in form.terms.items():
        made = add(made, mul(facts.atoms[key], number(factor, like)))
    return made
