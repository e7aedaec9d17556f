"""LowerBlocks: functions of blocks become plain loops; others are left alone."""

from __future__ import annotations

import pytest
from module_text import module_text

from compassc import passes, te
from compassc.ir import parse_module, walk_stmts
from compassc.ir import stmts as S


def row_sums(n: int, m: int):
    """Rows summed up, then doubled: two blocks, of which the first has an initial value and a memory of its own."""
    a = te.placeholder((n, m), "int32", name="A")
    k = te.reduce_axis((0, m), name="k")
    b = te.compute((n,), lambda i: te.sum(a[i, k], axis=k), name="B")
    return te.create_prim_func([a, te.compute((n,), lambda i: b[i] * 2, name="C")]).module()


def after(module):
    return passes.run_pipeline(("LowerBlocks",), module, passes.PassOptions(verify=True))


@pytest.mark.parametrize(("n", "m"), [(16, 64), (5, 3), (1, 1)])
def test_blocks_become_loops_and_memory_is_at_the_beginning(n, m):
    module = row_sums(n, m)
    assert any(isinstance(s, S.Block) for s in walk_stmts(module.entry_func.body))
    body = after(module).entry_func.body
    statements = list(walk_stmts(body))
    assert not any(isinstance(s, S.Block) for s in statements)
    allocated = [s for s in statements if isinstance(s, S.Alloc)]
    before = next(i for i, s in enumerate(body) if not isinstance(s, (S.Alloc, S.DeclBuffer)))
    assert set(map(id, allocated)) <= set(map(id, body[:before]))
    assert sum(s.buffer.shape[0].value for s in allocated) in (0, n)


def test_the_result_stays_when_it_runs_again():
    once = after(row_sums(4, 8))
    assert after(once) is once


def test_a_function_without_blocks_is_left_alone():
    module = parse_module(module_text("for i in T.tec(0, 4, 1):\n    p[i] = 1", 'p: T.ptr("int32", "global")'))
    assert after(module) is module
