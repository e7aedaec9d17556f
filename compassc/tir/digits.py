"""Quotients and remainders of sums in the forms that block functions have them in."""

from __future__ import annotations

from math import gcd

from compassc.analysis.arith import Arith, Linear
from compassc.analysis.simplify import Simplifier
from compassc.ir.exprs import Binary, Expr, IntImm
from compassc.ir.visit import rewrite
from compassc.tir.blocks import add, mul, number


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


def sum_of(form: Linear, facts: Arith, like: Expr) -> Expr:
    """A sum as an expression of the type of another one."""
    made: Expr = number(form.const, like)
    for key, factor in form.terms.items():
        made = add(made, mul(facts.atoms[key], number(factor, like)))
    return made
