"""Give loop variables with names longer than 20 characters the names i, j, k, ... by nesting depth.

Before: any module.
After: no loop variable has a name longer than 20 characters; names in use get a number appended.
"""

from __future__ import annotations

from ..analysis.statements import defined_vars
from ..ir import stmts as S
from ..ir.exprs import Var
from ..ir.names import NamePool
from ..ir.stmts import Body, IRModule, PrimFunc
from ..ir.visit import rename_vars, walk_stmts

NAME = "RenameLoopVariables"
LONGEST = 20
_LETTERS = "ijklmnopqrstuvwxyz"


def run(module: IRModule) -> IRModule:
    return module.map_functions(_function)


def _function(f: PrimFunc) -> PrimFunc:
    if not any(type(s) is S.For and len(s.loop_var.name) > LONGEST for s in walk_stmts(f.body)):
        return f
    taken = {v.name for v in (*f.params, *defined_vars(f.body))}
    mapping: dict[Var, Var] = {}
    _collect(f.body, 0, taken, mapping)
    return f.replace(body=rename_vars(f.body, mapping))


def _collect(body: Body, depth: int, taken: set[str], mapping: dict[Var, Var]) -> None:
    for s in body:
        long = False
        if type(s) is S.For and len(s.loop_var.name) > LONGEST:
            long = True
            letter = _LETTERS[min(depth, len(_LETTERS) - 1)]
            mapping[s.loop_var] = Var(NamePool(taken).take(letter), s.loop_var.dtype, s.loop_var.nonneg)
        for nested in s.bodies():
            _collect(nested, depth + long, taken, mapping)
