"""CompactBufferAllocation: memory has its place, and the size that is alive at once."""

from __future__ import annotations

from itertools import product

import pytest
from block_functions import TARGET, after, on_grid, row_sums, scheduled, statements

from compassc import te, tir
from compassc.ir import stmts as S
from compassc.te.machine import Use, machine_for

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


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_strides_of_several_dimensions_are_as_asked_for(order):
    a = te.placeholder((4, 5, 6), "int32", name="a")
    b = te.compute((4, 5, 6), lambda *i: a[i] + 1, name="B")
    c = te.compute((4, 5, 6), lambda *i: b[i] * 2, name="C")
    s = tir.Schedule(te.create_prim_func([a, c]))
    wanted = ((16, 8), (8, 0))
    for dim in order:
        s.storage_align(s.get_block("B"), 0, dim, *wanted[dim])
    ((_, (_, rows, columns)),) = memory(after(s.mod.replace(target=TARGET), NAME))
    assert columns % 8 == 0 and rows * columns % 16 == 8


def test_strides_of_open_memory_are_refused():
    n = te.size_var("n")
    a = te.placeholder((n, n), "int32", name="a")
    b = te.compute((n, n), lambda *i: a[i] + 1, name="B")
    s = tir.Schedule(te.create_prim_func([a, te.compute((n, n), lambda *i: b[i] * 2, name="C")]))
    s.storage_align(s.get_block("B"), 0, 0, 16, 8)
    with pytest.raises(tir.LowerError, match="storage_align of 'B': its memory has no constant size"):
        tir.lower(s.mod, "llvm")


def test_memory_is_of_all_who_use_it_or_refused():
    uses = [Use(*given) for given in product(*[(False, True)] * 3, ([], ["threadIdx_x"], ["blockIdx_x"]))]
    found = set()
    for target, chosen, use in product(("cuda", TARGET), ("global", "shared", "lsram", "private"), uses):
        grid = target == "cuda"
        try:
            scope = machine_for(target).memory_of("a", chosen, use)
        except te.LowerError:
            assert chosen != "global", "who says nothing gets memory"
            continue
        found.add((grid, scope))
        together = use.launches or use.apart if grid else use.bound and not use.alone
        if scope in ("private", "lsram"):
            assert not together
        elif scope == "shared" and grid:
            assert not use.launches and "blockIdx_x" not in use.apart
        elif scope == "shared":
            assert not use.alone
        assert chosen in ("global", scope) or (grid and chosen == "lsram" and scope == "private")
    assert found == {(True, s) for s in ("private", "shared", "global")} | {
        (False, s) for s in ("private", "lsram", "shared")
    }
