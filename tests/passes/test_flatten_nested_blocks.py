"""FlattenNestedBlocks: the innermost blocks stay, and the functions are marked that are being lowered."""

from __future__ import annotations

from block_functions import TARGET, after, row_sums, statements
from module_text import module_text

from compassc import tir
from compassc.ir import parse_module
from compassc.ir import stmts as S

NAME = "FlattenNestedBlocks"


def test_a_block_around_others_is_loops():
    s = tir.Schedule(row_sums(8, 16))
    s.blockize(s.get_loops(s.get_block("B"))[1])
    module = s.mod.replace(target=TARGET)
    assert "B_o" in {b.name_hint for b in statements(module, S.Block)}
    made = after(module, NAME)
    assert "B_o" not in {b.name_hint for b in statements(made, S.Block)} > {"B", "C"}
    assert all(not [x for x in b.body if isinstance(x, S.Block)] for b in statements(made, S.Block))
    assert made.entry_func.attr("expressions") is True and made.entry_func.attr("scalar_loops") == []


def test_a_function_without_blocks_is_left_alone():
    module = parse_module(module_text("for i in T.tec(0, 4, 1):\n    p[i] = 1", 'p: T.ptr("int32", "global")'))
    assert after(module, NAME) is module
