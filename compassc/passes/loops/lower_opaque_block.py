"""Put the statements of blocks in the places of the blocks.

Before: functions of innermost blocks. After: there are no blocks; a condition of one is an If, the init of a reduction
that still is in it one for the first turn.
"""

from __future__ import annotations

from compassc.analysis.conditions import conjuncts, joined, nested
from compassc.ir import stmts as S
from compassc.ir.exprs import Binary, Expr, Var
from compassc.ir.stmts import Body, IRModule, Stmt
from compassc.ir.visit import substitute_body
from compassc.passes.loops._functions import on_blocks
from compassc.tir.blocks import axes_of

NAME = "LowerOpaqueBlock"


def run(module: IRModule) -> IRModule:
    return on_blocks(module, lambda f: f.replace(body=_dissolved(f.body)))


def _dissolved(body: Body) -> Body:
    """The statements of all blocks in place of them."""
    made: list[Stmt] = []
    for s in body:
        if isinstance(s, S.Block):
            made += _statements(s)
        else:
            made.append(s.map(lambda e: e, _dissolved))
    return tuple(made)


def _statements(s: S.Block) -> Body:
    mapping: dict[Var, Expr] = dict(zip(s.vars, s.iter_values))
    body = _dissolved(substitute_body(s.body, mapping))
    if s.init:
        first = [Binary("eq", a.binding, a.start) for a in axes_of(s) if a.is_reduction]
        init = substitute_body(s.init, mapping)
        body = (*(init if not first else (S.IfThenElse(joined(first), init, ()),)), *body)
    return tuple(nested(conjuncts(s.predicate), body))
