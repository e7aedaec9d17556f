"""The number of groups as a number: one per core of the target.

Before: any module.
After: there is no call of `get_num_groups`; on a target of one core none of `get_group_id` either.
"""

from __future__ import annotations

from compass_core import targets

from ..ir import exprs as E
from ..ir.dtypes import INT32
from ..ir.stmts import IRModule
from ..ir.visit import Rewriter, rewrites

NAME = "LowerGrid"


def run(module: IRModule) -> IRModule:
    cores = targets.load(module.target).cores
    return module.map_functions(lambda f: _Grid(cores).function(f))


class _Grid(Rewriter):
    interest = E.flags_of_calls("get_num_groups", "get_group_id")

    def __init__(self, cores: int) -> None:
        super().__init__()
        self.cores = cores

    @rewrites(E.Call)
    def rewrite_call(self, e: E.Call) -> E.Expr:
        if e.op == "get_num_groups":
            return E.IntImm(INT32, self.cores)
        if e.op == "get_group_id" and self.cores == 1:
            return E.IntImm(INT32, 0)
        return e.map(self.expr)
