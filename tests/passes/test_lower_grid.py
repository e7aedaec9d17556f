"""LowerGrid: the number of groups is known."""

import pytest

from compass_core import targets
from compassc import pass_manager
from compassc.dsl import parse
from compassc.dsl import script as S
from compassc.ir import exprs as E
from compassc.ir.visit import walk_exprs, walk_stmts


@S.prim_func
def part() -> S.i32:
    return S.get_num_groups() * 2


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    for i in range(S.get_group_id(), n, S.get_num_groups()):
        a[i] = part() + S.get_group_id()


@pytest.mark.parametrize("name", ["X2_1204", "X2_1204MP3", "X3P_1304MP4"])
def test_numbers_of_groups_are_numbers(name):
    module = pass_manager.run_pipeline(("LowerGrid",), parse(k, name))
    found = [e for f in module.functions for s in walk_stmts(f.body) for root in s.exprs() for e in walk_exprs(root)]
    calls = {e.op for e in found if type(e) is E.Call}
    cores = targets.load(name).cores
    assert calls == ({"get_group_id"} if cores > 1 else set())
    assert sum(type(e) is E.IntImm and e.value == cores for e in found) >= 2
