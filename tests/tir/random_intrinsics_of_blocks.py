"""Intrinsics for random blocks: described by what is in a block, done by the same loops from their ends on."""

from __future__ import annotations

import random

from compassc import tir
from compassc.analysis.statements import defined_vars
from compassc.analysis.structure import variables
from compassc.ir import stmts as S
from compassc.ir.dtypes import VOID
from compassc.ir.exprs import Binary, Buffer, Expr, IntImm, Var
from compassc.ir.visit import all_exprs, rename_vars, substitute_body, walk_stmts
from compassc.tir.blocks import renamed
from compassc.tir.regions import touched


def tensorize(draw: random.Random, s: tir.Schedule, name: str, loop: tir.LoopRV) -> None:
    """Makes an intrinsic of what is in a loop, and has it do that."""
    trial = s.copy()
    block = trial.get(trial.blockize(loop))
    tir.TensorIntrin.register(name, *_functions(s.buffers("main"), block), override=True)
    s.tensorize(loop, name)


def _functions(buffers: dict[Var, Buffer], block: S.Block) -> tuple[S.PrimFunc, S.PrimFunc]:
    own = {*buffers, *defined_vars(block.body)}
    own |= {v for s in walk_stmts(block.body) if isinstance(s, S.Block) for v in s.vars}
    free = {v for e in all_exprs(block.body) for v in variables(e)} - own
    body = substitute_body(block.body, {v: IntImm(v.dtype, 0) for v in free})
    found = touched(body)
    used = [d for d in dict.fromkeys([*found.reads, *found.writes]) if d in buffers]
    made = []
    for backwards in (False, True):
        own = {d: Var(f"p{i}", d.dtype) for i, d in enumerate(used)}
        inner = rename_vars(renamed(body, {}), own)
        params = tuple(own.values())
        views = tuple(S.DeclBuffer(Buffer(own[d], buffers[d].dtype, buffers[d].shape)) for d in used)
        made.append(S.PrimFunc("tile", params, (*views, *(_backwards(inner) if backwards else inner)), VOID))
    return made[0], made[1]


def _backwards(body: S.Body) -> S.Body:
    """Loops from their last turn on."""
    made = []
    for s in body:
        if isinstance(s, S.For):
            last = Binary("sub", Binary("sub", s.stop, IntImm(s.loop_var.dtype, 1)), s.loop_var)
            inner = _bound(s.body, {s.loop_var: last})
            made.append(s.replace(body=_backwards(inner)))
        else:
            made.append(s)
    return tuple(made)


def _bound(body: S.Body, mapping: dict[Var, Expr]) -> S.Body:
    return substitute_body(body, mapping)
