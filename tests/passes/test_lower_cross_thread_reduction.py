"""LowerCrossThreadReduction: TECs reduce a part each, one of them joins the parts."""

from __future__ import annotations

from block_functions import after, row_sums, scheduled, statements

from compassc.ir import stmts as S

NAME = "LowerCrossThreadReduction"


def test_parts_are_in_memory_of_all():
    made = after(scheduled(row_sums(4, 8), "B", 1), NAME)
    assert [b.name_hint for b in statements(made, S.Block)].count("B_part") == 1
    scopes = [s.buffer.scope for s in statements(made, S.Alloc)]
    assert "shared" in scopes and len(scopes) == 2


def test_a_reduction_that_one_tec_does_stays():
    for module in (row_sums(4, 8), scheduled(row_sums(4, 8), "B", 0)):
        assert after(module, NAME) is module
