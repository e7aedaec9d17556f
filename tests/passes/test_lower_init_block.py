"""LowerInitBlock: reductions begin before their loops."""

from __future__ import annotations

from block_functions import after, row_sums, statements

from compassc.ir import stmts as S


def test_the_beginning_is_a_block_before_the_loop():
    made = after(row_sums(4, 8), "LowerInitBlock")
    outer = statements(made, S.For)[0]
    first, loop = outer.body
    assert isinstance(first, S.Block) and not first.init and isinstance(loop, S.For)
    assert all(not b.init for b in statements(made, S.Block)) and len(statements(made, S.Block)) == 3


def test_blocks_that_reduce_nothing_stay():
    once = after(row_sums(4, 8), "LowerInitBlock")
    assert after(once, "LowerInitBlock").entry_func.script() == once.entry_func.script()
