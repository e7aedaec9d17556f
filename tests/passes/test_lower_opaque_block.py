"""LowerOpaqueBlock: statements take the places of their blocks."""

from __future__ import annotations

from block_functions import after, row_sums, statements

from compassc.ir import stmts as S


def test_there_are_no_blocks_and_a_beginning_is_a_condition():
    made = after(row_sums(4, 8), "LowerOpaqueBlock")
    assert not statements(made, S.Block) and len(statements(made, S.BufferStore)) == 3
    (condition,) = statements(made, S.IfThenElse)
    assert isinstance(condition.then_case[0], S.BufferStore) and condition.else_case is None


def test_where_a_beginning_has_its_block_there_is_no_condition():
    made = after(row_sums(4, 8), "LowerInitBlock", "LowerOpaqueBlock")
    assert not statements(made, S.IfThenElse) and len(statements(made, S.BufferStore)) == 3
    assert after(made, "LowerOpaqueBlock") is made
