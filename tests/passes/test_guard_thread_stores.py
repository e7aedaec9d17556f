"""GuardThreadStores: one thread stores what all would, and what several would join is refused."""

from __future__ import annotations

import pytest
from block_functions import TARGET, after, on_grid, row_sums, scheduled, statements

from compassc import te
from compassc.ir import stmts as S

NAME = "GuardThreadStores"


def test_what_all_threads_of_a_grid_do_alike_one_does():
    module = scheduled(row_sums(4, 8), "C", 0)
    kinds = [s.kind for s in statements(on_grid(module, NAME), S.For)]
    assert kinds.count("threadIdx_x") == 1, "a launch that no thread is bound in has none"
    a = te.placeholder((4, 4), "int32", name="A")
    b = te.compute((4, 4), lambda i, j: a[i, j], name="B")
    apart = scheduled(te.create_prim_func([a, b]).module(), "B", 1)
    assert len(statements(on_grid(apart, NAME), S.For)) == 2


def test_tecs_do_not_join_into_one_element():
    module = scheduled(row_sums(4, 8), "B", 1)
    with pytest.raises(te.LowerError, match="the TECs would join into one element"):
        after(module, "FlattenNestedBlocks", "CompactBufferAllocation", NAME)


def test_others_stay():
    module = row_sums(4, 8).replace(target=TARGET)
    assert after(module, NAME) is module
