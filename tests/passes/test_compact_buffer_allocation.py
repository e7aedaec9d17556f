"""CompactBufferAllocation: memory has its place, and the size that is alive at once."""

from __future__ import annotations

import pytest
from block_functions import TARGET, after, on_grid, row_sums, scheduled, statements

from compassc import tir
from compassc.ir import stmts as S

NAME = "CompactBufferAllocation"


def memory(module):
    """Scope and size of what the function allocates, which stands at its beginning."""
    body = module.entry_func.body
    before = next(i for i, s in enumerate(body) if not isinstance(s, (S.Alloc, S.DeclBuffer)))
    found = [s for s in body[:before] if isinstance(s, S.Alloc)]
    assert found == statements(module, S.Alloc)
    return [(s.buffer.scope, [e.value for e in s.buffer.shape]) for s in found]


def test_all_rows_are_alive_between_two_nests():
    assert memory(after(row_sums(16, 8), NAME)) == [("lsram", [16])]
    assert memory(after(scheduled(row_sums(16, 8), "B", 0), NAME)) == [("shared", [16])]
    assert memory(on_grid(row_sums(16, 8), NAME)) == [("global", [16])]


def test_one_row_is_alive_in_a_loop():
    s = tir.Schedule(row_sums(16, 8))
    s.compute_at(s.get_block("B"), s.get_loops(s.get_block("C"))[0])
    assert memory(after(s.mod.replace(target=TARGET), NAME)) == [("lsram", [1])]


def test_memory_that_tecs_do_not_share_is_refused():
    s = tir.Schedule(row_sums(16, 8))
    s.set_scope(s.get_block("B"), 0, "lsram")
    s.bind(s.get_loops(s.get_block("B"))[0], "threadIdx.x")
    with pytest.raises(tir.LowerError, match="used by several TECs"):
        after(s.mod.replace(target=TARGET), NAME)
