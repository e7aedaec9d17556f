"""Mark variables that hold the number of a TEC or of a group, or how many there are, as never negative.

Before: any module.
After: a variable defined as `get_local_id()`, `get_group_id()` or their number and never changed is `nonneg`.
"""

from __future__ import annotations

from ..analysis.statements import mutable_vars
from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.stmts import IRModule, PrimFunc
from ..ir.visit import rename_vars, walk_stmts

NAME = "AnnotateNonNegative"
_SIZES = ("get_local_id", "get_local_size", "get_group_id", "get_num_groups")


def run(module: IRModule) -> IRModule:
    return module.map_functions(_function)


def _function(f: PrimFunc) -> PrimFunc:
    found = [s.var for s in walk_stmts(f.body) if type(s) is S.Let and type(s.value) is E.Call and s.value.op in _SIZES]
    if not found:
        return f
    mutable = mutable_vars(f)
    mapping = {v: E.Var(v.name, v.dtype, True) for v in found if not v.nonneg and v not in mutable}
    return f.replace(body=rename_vars(f.body, mapping)) if mapping else f
