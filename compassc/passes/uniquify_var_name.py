"""Give every variable of a function a name of its own.

Before: any module.
After: no two variables of a function, storage included, have the same name: the first one met keeps it, later ones get
`_1`, `_2`, ... appended.
"""

from __future__ import annotations

from ..ir.exprs import Var
from ..ir.stmts import IRModule, PrimFunc
from ..ir.visit import rename_vars
from ._blocks import defined_vars

NAME = "UniquifyVarName"


def run(module: IRModule) -> IRModule:
    return module.map_functions(_function)


def _function(f: PrimFunc) -> PrimFunc:
    seen: dict[str, Var] = {}
    next_number: dict[str, int] = {}
    mapping: dict[Var, Var] = {}
    for var in (*f.params, *defined_vars(f.body)):
        name = var.name
        if seen.setdefault(name, var) is var:
            continue
        n = next_number.get(name, 0) + 1
        while f"{name}_{n}" in seen:
            n += 1
        next_number[name] = n
        mapping[var] = Var(f"{name}_{n}", var.dtype, var.nonneg)
        seen[mapping[var].name] = mapping[var]
    if not mapping:
        return f
    params = tuple(mapping.get(p, p) for p in f.params)
    return f.replace(params=params, body=rename_vars(f.body, mapping))
