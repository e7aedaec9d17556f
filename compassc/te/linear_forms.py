"""Expressions as linear ones of some variables, and the values of these for which conditions hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compassc.analysis.arith import NEGATED, SWAPPED, Arith
from compassc.analysis.conditions import conjuncts
from compassc.analysis.simplify import Simplifier
from compassc.analysis.structure import Interner
from compassc.ir.exprs import Binary, Expr, IntImm, Unary, Var
from compassc.ir.operators import as_expr, binary, kind_of
from compassc.ir.visit import walk_exprs
from compassc.te.analyzer import variable_of
from compassc.te.int_sets import IntervalSet, everything, int_set, interval_of, neg_inf, nothing, pos_inf

_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq"}


def detect_linear_equation(expr: object, variables: Sequence[object]) -> list[Expr]:
    """The factors of variables in an expression and what is left: `[a, b, c]` for `a * x + b * y + c`, where a, b and c are
    without the variables; an empty list where it is not linear in them."""
    wanted = [variable_of(v) for v in variables]
    form = _linear(as_expr(expr), wanted)
    simplify = Simplifier(Arith()).expr
    return [] if form is None else [simplify(e) for e in form]


def _linear(e: Expr, wanted: Sequence[Var]) -> list[Expr] | None:
    zero = IntImm(kind_of(e), 0)
    if isinstance(e, Var) and e in wanted:
        return [*(IntImm(kind_of(e), int(v is e)) for v in wanted), zero]
    if not _uses(e, wanted):
        return [*(zero for _ in wanted), e]
    if not isinstance(e, Binary) or e.op not in ("add", "sub", "mul"):
        return None
    a, b = _linear(e.a, wanted), _linear(e.b, wanted)
    if a is None or b is None:
        return None
    if e.op != "mul":
        return [binary(e.op, x, y) for x, y in zip(a, b)]
    if _uses(e.a, wanted) and _uses(e.b, wanted):
        return None
    form, by = (b, e.a) if _uses(e.b, wanted) else (a, e.b)
    return [binary("mul", x, by) for x in form]


def _uses(e: Expr, wanted: Sequence[Var]) -> bool:
    return any(x in wanted for x in walk_exprs(e) if isinstance(x, Var))


def _comparisons(e: Expr) -> list[Binary] | None:
    """A condition as comparisons that hold together; None for what is none."""
    made: list[Binary] = []
    for c in conjuncts(e):
        if isinstance(c, Unary) and c.op == "not" and isinstance(c.a, Binary) and c.a.op in NEGATED:
            c = Binary(NEGATED[c.a.op], c.a.a, c.a.b)
        if not isinstance(c, Binary) or c.op not in _MIRRORED:
            return None
        if c.op in SWAPPED:
            c = Binary(SWAPPED[c.op], c.b, c.a)
        least, most = c.b, c.a
        if isinstance(least, Binary) and least.op == "min" and c.op != "eq":
            parts = [Binary(c.op, most, x) for x in (least.a, least.b)]
        elif isinstance(most, Binary) and most.op == "max" and c.op != "eq":
            parts = [Binary(c.op, x, least) for x in (most.a, most.b)]
        else:
            parts = [c]
        made += parts
    return made


def detect_clip_bound(expr: object, variables: Sequence[object]) -> list[Expr | None]:
    """The least and the largest value of each variable for which a condition holds (None where it says nothing): comparisons
    joined by and, each about one of the variables, which has the factor 1 or -1. An empty list for other conditions."""
    wanted = [variable_of(v) for v in variables]
    comparisons = _comparisons(as_expr(expr))
    found: dict[Var, list[Expr | None]] = {v: [None, None] for v in wanted}
    simplify = Simplifier(Arith()).expr
    for c in comparisons or ():
        about = [v for v in wanted if _uses(c, [v])]
        form = _linear(binary("sub", c.a, c.b), about)  # form <= 0, < 0 or == 0
        factor = None if len(about) != 1 or form is None else simplify(form[0])
        if form is None or not isinstance(factor, IntImm) or factor.value not in (1, -1):
            return []
        limit = binary("add", form[1], IntImm(kind_of(form[1]), 1)) if c.op == "lt" else form[1]
        ends = [(factor.value, limit)] if c.op != "eq" else [(1, form[1]), (-1, form[1])]
        for side, rest in ends:
            end = simplify(binary("sub", IntImm(kind_of(rest), 0), rest) if factor.value > 0 else rest)
            place, which = int(side > 0), "min" if side > 0 else "max"
            old = found[about[0]][place]
            found[about[0]][place] = end if old is None else simplify(binary(which, old, end))
    return [] if comparisons is None else [e for ends in found.values() for e in ends]


def deduce_bound(
    var: object, cond: object, hint_map: Mapping[Var, object], relax_map: Mapping[Var, object]
) -> IntervalSet:
    """The values of a variable for which a condition (comparisons joined by and) holds whatever values the variables of
    `relax_map` have; those of `hint_map` stand still in it, and their values only tell signs. A set that may be smaller than the
    largest such one; nothing where none is found."""
    v = variable_of(var)
    low: Expr = neg_inf()
    high: Expr = pos_inf()
    comparisons = _comparisons(as_expr(cond))
    if comparisons is None:
        return nothing()
    facts = Arith()
    for known, domain in {**hint_map, **relax_map}.items():
        ends = interval_of(domain)
        if isinstance(ends.min_value, IntImm) and isinstance(ends.max_value, IntImm):
            facts.bind(known, ends.min_value.value, ends.max_value.value)
    for c in comparisons:
        found = _deduced(v, c, facts, {k: d for k, d in relax_map.items() if k is not v})
        if found is None or found.is_nothing():
            return nothing()
        low = (
            found.min_value
            if low is neg_inf()
            else low
            if found.min_value is neg_inf()
            else binary("max", low, found.min_value)
        )
        high = (
            found.max_value
            if high is pos_inf()
            else high
            if found.max_value is pos_inf()
            else binary("min", high, found.max_value)
        )
    return IntervalSet(low, high)


def _deduced(v: Var, c: Binary, facts: Arith, relaxed: Mapping[Var, object]) -> IntervalSet | None:
    """The values for which `c.a < c.b`, `<=` or `==` holds for all values of relaxed variables."""
    simplify = Simplifier(facts).expr
    form = _linear(binary("sub", c.a, c.b), [v])
    if form is None:
        return None
    factor, rest = simplify(form[0]), simplify(form[1])
    if _uses(factor, list(relaxed)):
        return None
    ends = int_set(rest, relaxed, simplify)
    one, zero = (IntImm(kind_of(rest), n) for n in (1, 0))
    if c.op == "eq":
        if not (isinstance(factor, IntImm) and factor.value in (1, -1) and ends.min_value is ends.max_value):
            return None
        value = simplify(binary("mul", rest, IntImm(kind_of(rest), -factor.value)))
        return IntervalSet(value, value)
    if ends.max_value is pos_inf():
        return None
    most = binary("sub", zero, ends.max_value)  # factor * v <= most
    if c.op == "lt":
        most = binary("sub", most, one)
    most = simplify(most)
    least, largest = facts.range_of(factor)
    if least == largest == 0:
        return everything() if facts.range_of(most)[0] >= 0 else None
    if least > 0:
        return IntervalSet(neg_inf(), simplify(binary("floordiv", most, factor)))
    if largest < 0:  # v >= most / factor, rounded up
        up = simplify(binary("sub", zero, factor))
        return IntervalSet(simplify(binary("sub", zero, binary("floordiv", most, up))), pos_inf())
    return None


def detect_common_subexpr(expr: object, threshold: int) -> dict[Expr, int]:
    """The parts of an expression that are there as often as a number says, or more often, each with how often it is there
    without those that are in a larger part of the result. A part stands for all that are equal to it."""
    interner = Interner()
    counts: dict[int, int] = {}
    found: dict[int, Expr] = {}
    for e in walk_exprs(as_expr(expr)):
        if e.children():
            key = interner.key(e)
            found.setdefault(key, e)
            counts[key] = counts.get(key, 0) + 1
    kept: dict[Expr, int] = {}
    for key in sorted(found, key=lambda k: -sum(1 for _ in walk_exprs(found[k]))):
        if counts[key] < max(threshold, 1):
            continue
        kept[found[key]] = counts[key]
        for inner in walk_exprs(found[key]):
            k = interner.key(inner)
            if k != key and k in counts:
                counts[k] -= counts[key]
    return kept


__all__ = ["deduce_bound", "detect_clip_bound", "detect_common_subexpr", "detect_linear_equation"]
