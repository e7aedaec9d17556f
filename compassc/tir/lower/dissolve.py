"""Blocks become statements: nested ones first, then the beginnings of reductions, then the rest."""

from __future__ import annotations

from compassc.ir import stmts as S
from compassc.ir.exprs import Binary, Expr, Var
from compassc.ir.stmts import Body, PrimFunc, Stmt
from compassc.ir.visit import substitute_body
from compassc.te.errors import LowerError, ScheduleError
from compassc.tir.beginnings import begins_first
from compassc.tir.blocks import axes_of, conjuncts, joined
from compassc.tir.canonical import EXPLICIT, canonical
from compassc.tir.decompose import decomposed, reduction_loops
from compassc.tir.tree import Tree


def flattened(function: PrimFunc) -> PrimFunc:
    """The function with the innermost blocks only: those around them are loops and conditions."""
    tree = Tree(function)
    for block in tree.blocks.values():
        if block.init and tree.inside(block):
            check_begins_first(tree, block)
    body = _flat(function.body, [])  # what the user said of regions is for schedules alone
    return canonical(function.replace(body=body))


def check_begins_first(tree: Tree, block: S.Block) -> None:
    """LowerError where the beginning of a reduction, which stays a condition inside of its loops, is not known to come
    before what is joined to it."""
    if not begins_first(tree, block):
        raise LowerError(
            f"'{block.name_hint}' begins its sums where its reduced axes do, which is not the first turn in this order of loops",
            "decompose_reduction it first, or keep the order of the loops that were made of a fused one",
        )


def _flat(body: Body, conditions: list[Expr]) -> Body:
    made: list[Stmt] = []
    for s in body:
        if not isinstance(s, S.Block):
            made.append(s.map(lambda e: e, lambda inner: _flat(inner, conditions)))
            continue
        s = s.replace(annotations=tuple((k, v) for k, v in s.annotations if k not in EXPLICIT.values()))
        outer = [*conditions, *conjuncts(s.predicate)]
        if not any(isinstance(x, S.Block) for x in _inside(s.body)):
            made.append(s.replace(predicate=joined(outer)))
            continue
        mapping: dict[Var, Expr] = dict(zip(s.vars, s.iter_values))
        first = [Binary("eq", a.binding, a.start) for a in axes_of(s) if a.is_reduction]
        made += _flat(_inlined(s.init, mapping), [*outer, *first])
        made += _flat(_inlined(s.body, mapping), outer)
    return tuple(made)


def _inside(body: Body) -> list[Stmt]:
    return [x for s in body for x in (s, *(y for b in s.bodies() for y in _inside(b)))]


def _inlined(body: Body, mapping: dict[Var, Expr]) -> Body:
    return substitute_body(body, mapping)


def with_beginnings(function: PrimFunc) -> PrimFunc:
    """The function with the beginning of each reduction before the loops that it reduces over, where that is possible;
    elsewhere it stays a condition inside of them."""
    for name in Tree(function).blocks:
        tree = Tree(function)
        block = tree.blocks[name]
        loops = reduction_loops(tree, block)
        if not block.init or not loops or any(s.kind.startswith("threadIdx") for s in loops):
            continue
        try:
            body = decomposed(tree, block, loops[0], (f"{name}#init", name))
        except ScheduleError:
            check_begins_first(tree, block)
            continue
        function = function.replace(body=body)
    return canonical(function)


def dissolved(body: Body) -> Body:
    """The statements of all blocks in place of them."""
    made: list[Stmt] = []
    for s in body:
        if isinstance(s, S.Block):
            made += _statements(s)
        else:
            made.append(s.map(lambda e: e, dissolved))
    return tuple(made)


def _statements(s: S.Block) -> Body:
    mapping: dict[Var, Expr] = dict(zip(s.vars, s.iter_values))
    body = dissolved(substitute_body(s.body, mapping))
    if s.init:
        first = [Binary("eq", a.binding, a.start) for a in axes_of(s) if a.is_reduction]
        init = substitute_body(s.init, mapping)
        body = (*(init if not first else (S.IfThenElse(joined(first), init, ()),)), *body)
    for condition in reversed(conjuncts(s.predicate)):
        body = (S.IfThenElse(condition, body, ()),)
    return body
