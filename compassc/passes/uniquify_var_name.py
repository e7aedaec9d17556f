"""Give every variable of a function a name of its own.

Before: any module.
After: no two variables of a function, storage included, have the same name: the first one met keeps it, later ones get
`_1`, `_2`, ... appended.
"""

from __future__ import annotations

from ..analysis.statements import defined_vars
from ..ir.exprs import Var
from ..ir.names import NamePool
from ..ir.stmts import IRModule, PrimFunc
from ..ir.visit import rename_vars

NAME = "UniquifyVarName"


def run(module: IRModule) -> IRModule:
    return module.map_functions(_function)


def _function(f: PrimFunc) -> PrimFunc:
    names = NamePool()
    mapping: dict[Var, Var] = {}
    for var in dict.fromkeys((*f.params, *defined_vars(f.body))):
        name = names.take(var.name)
        if name != var.name:
            mapping[var] = Var(name, var.dtype, var.nonneg)
    if not mapping:
        return f
    params = tuple(mapping.get(p, p) for p in f.params)
    return f.replace(params=params, body=rename_vars(f.body, mapping))
