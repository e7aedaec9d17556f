"""Make the inside of a loop twice where a guard is only needed at its edge.

Before: a loop around others, inside of which conditions say whether an element exists. After: where the conditions hold
for all turns of the inner loops, they are gone: the loop is two loops where it is known from which turn on they may not
hold, else its body is an If with both forms.
"""

from __future__ import annotations

from compassc.analysis.conditions import conjuncts, joined
from compassc.analysis.statements import counts_up, fresh_copy
from compassc.analysis.structure import variables
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.exprs import Binary, Expr, IntImm, Var
from compassc.ir.stmts import Body, IRModule, Stmt
from compassc.ir.visit import Rewritten, rename_vars, rewrites, walk_stmts
from compassc.passes.loops._facts import Scoped, Sum
from compassc.passes.loops._functions import on_entry
from compassc.te.machine import is_barrier

NAME = "LoopPartition"
MOST = 400
"""Statements from which on a body is not made twice."""
_UNBOUNDED = 1 << 28


def run(module: IRModule) -> IRModule:
    return on_entry(module, lambda f: _Partition(f).function(f))


class _Partition(Scoped):
    @rewrites(S.For)
    def rewrite_for(self, s: S.For) -> Rewritten:
        inside = list(walk_stmts(s.body))
        plain = s.kind in ("vectorized", "unrolled") or not any(isinstance(x, S.For) for x in inside)
        if plain or len(inside) > MOST or any(map(is_barrier, inside)):
            return self.inside(s)
        mark = self.facts.mark()
        self.enter(s)
        cond, guards = self._holds_for_all(s, inside)
        edge = None if cond is None else self._edge(s, cond)
        self.facts.release(mark)
        if cond is None:
            return self.inside(s)
        fast = _without(s.body, guards)
        if edge is not None and s.kind != "serial" or not isinstance(s.min, IntImm):
            cond = cond if edge is None else Binary("lt", s.loop_var, IntImm(s.loop_var.data_type, edge))
            edge = None
        if edge is None:
            return self.inside(s.replace(body=(S.IfThenElse(cond, fast, fresh_copy(s.body)),)))
        first = Var(s.loop_var.name, s.loop_var.dtype, s.loop_var.nonneg)
        main = s.replace(
            loop_var=first, stop=IntImm(s.loop_var.data_type, edge), body=rename_vars(fast, {s.loop_var: first})
        )
        rest = s.replace(min=IntImm(s.loop_var.data_type, edge), body=fresh_copy(s.body))
        return [self.inside(main), self.inside(rest)]

    def _holds_for_all(self, s: S.For, inside: list[Stmt]) -> tuple[Expr | None, list[S.IfThenElse]]:
        """A condition on the turn of this loop under which guards hold in all turns of the inner loops, and these guards.
        None where there are none such."""
        mark = self.facts.mark()
        loops = [x for x in inside if isinstance(x, S.For)]
        for loop in loops:
            self.enter(loop)
        most = {loop.loop_var: self.facts.range_of(loop.loop_var)[1] for loop in loops}
        conditions: dict[int, Expr] = {}
        guards: list[S.IfThenElse] = []
        for guard in (x for x in inside if isinstance(x, S.IfThenElse) and not x.else_case):
            parts = conjuncts(guard.condition)
            if not any(s.loop_var in variables(c) and variables(c) & set(most) for c in parts):
                continue
            found = [self._strongest(c, most) for c in parts]
            needed = [c for c in found if c is not None and not (isinstance(c, IntImm) and c.value)]
            if None not in found and needed and all(s.loop_var in variables(c) for c in needed):
                guards.append(guard)
                conditions |= {self.facts.interner.key(c): c for c in needed}
        self.facts.release(mark)
        return joined(conditions.values()) if conditions else None, guards

    def _strongest(self, cond: Expr, most: dict[Var, int]) -> Expr | None:
        """What has to hold so that `cond` does for all values of the inner variables; None where it is not known."""
        if not isinstance(cond, Binary) or cond.op not in ("lt", "le") or not cond.a.dtype.is_integer:
            return None
        form = Sum.of(Binary("sub", cond.a, cond.b), list(most), self.facts)
        if form is None or any(factor > 0 and most[v] >= _UNBOUNDED for v, factor in form.factors.items()):
            return None
        reached = sum(factor * most[v] for v, factor in form.factors.items() if factor > 0)
        return self.simplify(Binary(cond.op, form.rest, IntImm(form.rest.data_type, -reached)))

    def _edge(self, s: S.For, cond: Expr) -> int | None:
        """The turn from which on a condition fails, where it holds before; None where that is not a number."""
        if not isinstance(s.stop, IntImm) or not (isinstance(s.min, E.Call) or counts_up(s)):
            return None
        if not isinstance(cond, Binary) or cond.op not in ("lt", "le"):
            return None
        form = Sum.of(Binary("sub", cond.a, cond.b), [s.loop_var], self.facts)
        rest = None if form is None else self.simplify(form.rest)
        if form is None or not isinstance(rest, IntImm) or form.factors.get(s.loop_var, 0) <= 0:
            return None
        limit = -rest.value + (1 if cond.op == "le" else 0)  # factor * var < limit
        return max(0, min(s.stop.value, -(-limit // form.factors[s.loop_var])))


def _without(body: Body, guards: list[S.IfThenElse]) -> Body:
    made: list[Stmt] = []
    for s in body:
        if any(s is g for g in guards):
            assert isinstance(s, S.IfThenElse)
            made += _without(s.then_case, guards)
        else:
            made.append(s.map(lambda e: e, lambda inner: _without(inner, guards)))
    return tuple(made)
