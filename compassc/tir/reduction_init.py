"""Whether a reduction that begins by a condition, in the turn of the first values of its axes, begins in its first turn.

Where no digit of a loop is used twice, the turns of an element differ in the digits that are reduced over, and the one
where these are 0 comes first: in whatever order loops stand, each counts up. Loops that stand in the order of the number
that they make (`i_0 * 4 + i_1`, `i_0` outside) count as one loop of that number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compassc.analysis.conditions import conjuncts
from compassc.analysis.itermap import Digit, complete, digits_of, disjoint, is_injective
from compassc.analysis.simplify import negate
from compassc.ir import stmts as S
from compassc.ir.exprs import Binary, Expr, Var
from compassc.ir.visit import rewrite
from compassc.tir.blocks import Axis, add, at, axes_of, constant, loop_extent, uses
from compassc.tir.tree import Tree

Terms = tuple[tuple[Var, int], ...]


def begins_first(tree: Tree, block: S.Block) -> bool:
    """Whether the first turn that reaches an element is the one where all axes that are reduced over begin."""
    loops = tree.loops_around(block, all_of_them=True)
    if any(constant(s.min) is None for s in loops):
        return False
    counted = {s.loop_var: loop_extent(s) for s in loops}
    values: dict[Var, Expr] = {s.loop_var: add(s.min, s.loop_var) if counted[s.loop_var] > 1 else s.min for s in loops}
    axes, conditions = _of_loops(tree, block, values)
    numbers = _Numbers([s.loop_var for s in loops], counted)
    bindings = [numbers.named(a.binding) for a in axes]
    conditions = [numbers.named(c) for c in conditions]
    extents = numbers.extents(conditions)
    if any(uses(e, numbers.parts()) for e in bindings):
        return False
    forms = [digits_of(e, extents) for e in bindings]
    spatial: list[Digit] = []
    reduced: list[Digit] = []
    for a, form in zip(axes, forms):
        if form is None or not a.is_reduction and not is_injective(form):
            return False
        if a.is_reduction and (form.moved or form.base != constant(a.start)):
            return False
        (reduced if a.is_reduction else spatial).extend(form.digits)
    if not disjoint([*spatial, *reduced]):
        return False
    over = {d.var for d in reduced}
    first = min((numbers.places(v)[0] for v in over), default=len(loops))
    later = [v for v in extents if numbers.places(v)[1] >= first and v not in numbers.parts()]
    return all(complete(v, extents[v], [*spatial, *reduced]) for v in later) and all(
        not uses(c, over) or _lets_less(c, extents) for c in conditions
    )


def _of_loops(tree: Tree, block: S.Block, values: dict[Var, Expr]) -> tuple[list[Axis], list[Expr]]:
    """The axes of a block and the conditions that it is done under, by loops."""
    axes, conditions = [*axes_of(block), *tree.implied_axes(block)], conjuncts(block.predicate)
    below: S.Stmt = block
    for above in tree.around(block):
        if isinstance(above, S.Block):
            outer: dict[Var, Expr] = dict(zip(above.vars, above.iter_values))
            axes = [a._replace(binding=at(a.binding, outer)) for a in axes]
            conditions = [*(at(c, outer) for c in conditions), *conjuncts(above.predicate)]
        elif isinstance(above, S.IfThenElse):
            holds = any(s is below for s in above.then_case)
            conditions.append(above.condition if holds else negate(above.condition))
        below = above
    return [a._replace(binding=at(a.binding, values)) for a in axes], [at(c, values) for c in conditions]


def _lets_less(condition: Expr, extents: Mapping[Var, int]) -> bool:
    """Whether a condition that lets some numbers of loops pass lets all smaller ones pass."""
    if not isinstance(condition, Binary) or condition.op not in ("lt", "le"):
        return False
    a, b = digits_of(condition.a, extents), digits_of(condition.b, extents)
    return a is not None and b is not None and not b.digits


class _Numbers:
    """Variables for the numbers that several loops make, in whose order they stand."""

    def __init__(self, order: Sequence[Var], counted: Mapping[Var, int]) -> None:
        self.order, self.counted = order, counted
        self.made: dict[Terms, Var] = {}

    def named(self, e: Expr) -> Expr:
        """An expression with variables for the numbers that it divides or compares."""

        def divided(x: Expr) -> Expr | None:
            if not isinstance(x, Binary) or x.op not in ("floordiv", "floormod", "lt"):
                return None
            terms = self._terms(x.a)
            if terms is None or len(terms) < 2 or x.op == "lt" and terms not in self.made:
                return None
            return Binary(x.op, self.made.setdefault(terms, Var(f"n{len(self.made)}", x.a.dtype)), x.b)

        return rewrite(e, divided)

    def extents(self, conditions: Sequence[Expr]) -> dict[Var, int]:
        """How many values the loops and the numbers have."""
        found = dict(self.counted)
        for terms, var in self.made.items():
            outer, scale = terms[0]
            found[var] = scale * self.counted[outer]
            bounds = [constant(c.b) for c in conditions if isinstance(c, Binary) and c.op == "lt" and c.a is var]
            found[var] = min([found[var], *(n for n in bounds if n is not None)])
        return found

    def parts(self) -> set[Var]:
        """The loops that make numbers."""
        return {v for terms in self.made for v, _ in terms}

    def places(self, var: Var) -> tuple[int, int]:
        """The places of the outermost and the innermost loop of a variable."""
        terms = next((terms for terms, made in self.made.items() if made is var), ((var, 1),))
        return self.order.index(terms[0][0]), self.order.index(terms[-1][0])

    def _terms(self, e: Expr) -> Terms | None:
        """Loops with their scales, where they stand in the order of the sum and it takes each value once."""
        scales = _linear(e)
        if scales is None or not scales.keys() <= self.counted.keys():
            return None
        count = 1
        for v in sorted(scales, key=self.order.index, reverse=True):
            if scales[v] != count:
                return None
            count *= self.counted[v]
        return tuple((v, scales[v]) for v in self.order if v in scales)


def _linear(e: Expr) -> dict[Var, int] | None:
    """The scales of variables in a sum without a constant."""
    if isinstance(e, Var):
        return {e: 1}
    if constant(e) == 0:
        return {}
    if not isinstance(e, Binary):
        return None
    a = _linear(e.a)
    factor = constant(e.b)
    if e.op == "mul" and a is not None and factor is not None:
        return {v: n * factor for v, n in a.items()}
    b = _linear(e.b)
    if e.op != "add" or a is None or b is None or a.keys() & b.keys():
        return None
    return {**a, **b}
