"""A nest of loops that runs over what a condition leaves of its axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compassc.analysis.arith import Arith
from compassc.analysis.conditions import conjuncts, joined
from compassc.analysis.simplify import Simplifier
from compassc.ir import stmts as S
from compassc.ir.exprs import Binary, Expr, Var
from compassc.ir.stmts import Body
from compassc.ir.visit import substitute_body
from compassc.tir.blocks import add, axes_of, constant, number, sub, uses
from compassc.tir.tree import edit


def cut_to(s: S.Block, nest: Body, loops: Sequence[S.For], condition: Expr, inside: S.Stmt) -> Body | None:
    """The nest around a block that runs where `condition` holds alone, with `inside` as what the block does. `loops`: those of
    the nest, which end earlier where one is an axis. None unless the condition bounds axes by numbers, and nothing else."""
    limits = _limits(s, condition)
    if limits is None:
        return None
    own = {x.loop_var: x for x in loops}
    shifted: dict[Var, Expr] = {}
    extents, bindings, stops = list(s.extents), list(s.iter_values), dict[Expr, Expr]()
    conditions = conjuncts(s.predicate)
    for i, (var, binding) in enumerate(zip(s.vars, s.iter_values)):
        if var not in limits:
            continue
        low, high = limits[var]
        if constant(s.starts[i]) != 0 or high <= low:
            return None
        extents[i] = number(high - low, var)
        shifted[var] = add(var, number(low, var))
        x = own.get(binding) if isinstance(binding, Var) else None
        others = [e for j, e in enumerate(s.iter_values) if j != i]
        alone = x is not None and not any(uses(e, (x.loop_var,)) for e in (*others, *conditions))
        if x is not None and alone and (constant(x.min), constant(x.stop)) == (0, constant(s.extents[i])):
            stops[binding] = extents[i]
        else:
            bindings[i] = sub(binding, number(low, var))
            conditions += [Binary("le", number(low, var), binding), Binary("lt", binding, number(high, var))]
    facts = Arith()
    for var, start, extent in zip(s.vars, s.starts, extents):
        facts.bind_loop(var, start, extent, number(1, var))
    simplify = Simplifier(facts).expr
    body = tuple([x.map(simplify, tuple) for x in substitute_body((inside,), shifted)])
    block = s.replace(extents=tuple(extents), iter_values=tuple(bindings), predicate=joined(conditions), body=body)
    return tuple([_with_stops(x, stops) for x in edit(nest, {s: (block,)})])


def _with_stops(s: S.Stmt, stops: Mapping[Expr, Expr]) -> S.Stmt:
    """Loops with other ends."""
    if not isinstance(s, S.For):
        return s
    return s.replace(stop=stops.get(s.loop_var, s.stop), body=tuple([_with_stops(x, stops) for x in s.body]))


def _limits(s: S.Block, condition: Expr) -> dict[Var, tuple[int, int]] | None:
    """The range that a condition leaves of each axis that it is about; None where it says anything else."""
    found: dict[Var, tuple[int, int]] = {}
    for c in conjuncts(condition):
        if not isinstance(c, Binary) or c.op not in ("lt", "le", "gt", "ge"):
            return None
        a, b, op = (c.a, c.b, c.op) if c.op in ("lt", "le") else (c.b, c.a, {"gt": "lt", "ge": "le"}[c.op])
        var, limit = (a, constant(b)) if isinstance(a, Var) else (b, constant(a))
        if not isinstance(var, Var) or var not in s.vars or limit is None:
            return None
        extent = constant(next(x.extent for x in axes_of(s) if x.var is var))
        if extent is None:
            return None
        low, high = found.get(var, (0, extent))
        if var is a:
            high = min(high, limit + (op == "le"))
        else:
            low = max(low, limit + (op == "lt"))
        found[var] = (low, high)
    return found
