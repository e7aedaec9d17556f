"""Scopes of blocks: which block needs which, what is known of them, references to them, buffers with padding."""

from __future__ import annotations

import numpy as np
import pytest

from compassc import te, tir
from compassc.analysis.interpret import Interpreter
from compassc.ir.exprs import Binary, BufferLoad
from compassc.ir.stmts import Alloc, BufferStore, DeclBuffer
from compassc.ir.visit import Rewriter, rewrites
from compassc.tir.roots import root_block
from compassc.tir.scopes import CachedFlags, DepKind, dependencies
from compassc.tir.suggested_layouts import suggest_index_map
from tests.tir.test_steps import blur, chain, matmul, same


def kinds(s: tir.Schedule) -> list[tuple[str, str, str]]:
    return [(d.src.name_hint, d.dst.name_hint, d.kind.name) for d in dependencies(s.tree("main"), None)]


def flags(s: tir.Schedule, name: str) -> CachedFlags:
    return s.state._get_cached_flags(s.get_sref(s.get_block(name)))


def test_what_is_read_is_covered_wherever_its_block_is_moved_to():
    s = tir.Schedule(blur(), debug_mask="all")
    assert kinds(s) == [("B", "C", "RAW")]
    outer, _ = s.split(s.get_loops("C")[0], [None, 4])
    s.compute_at("B", outer)
    assert all(all(flags(s, name)) for name in ("C", "root"))
    assert flags(s, "B") == CachedFlags(False, True, True)  # turns overlap: an axis is no sum of parts of its own


def test_an_init_and_its_sum_depend_in_two_ways():
    s = tir.Schedule(matmul())
    s.decompose_reduction("C", s.get_loops("C")[1])
    assert kinds(s) == [("C_init", "C_update", "RAW"), ("C_init", "C_update", "WAW")]
    assert all(flags(s, "root"))


def test_a_buffer_that_is_overwritten_is_no_pipeline():
    """What is read before it is written leaves its writer uncovered; a part that nobody wrote leaves its reader so."""
    a, b = te.placeholder((8,), "int32", name="A"), te.placeholder((8,), "int32", name="B")
    c = te.compute((8,), lambda i: b[i] + 1, name="C")
    f = te.create_prim_func([a, b, c])
    again = tir.Schedule(te.create_prim_func([a, te.compute((8,), lambda i: a[i] * 2, name="D")]))
    (d,) = again.tree("main").blocks.values()
    store = d.body[0].replace(
        buffer=next(x.buffer for x in f.body if isinstance(x, DeclBuffer) and x.buffer.name == "B")
    )
    later = again.mod.entry_func.body[-1].replace(body=(d.replace(body=(store.replace(value=te.const(0).as_expr()),)),))
    s = tir.Schedule(f.replace(body=(*f.body, later)))
    assert kinds(s) == [("C", "D", "WAR")]
    assert flags(s, "D") == CachedFlags(True, False, True) and flags(s, "root") == CachedFlags(True, True, False)
    assert DepKind.WAR == 2


def test_axes_that_share_a_loop_are_no_independent_sums():
    f = te.create_prim_func([te.compute((8, 8), lambda i, j: i + j, name="C")])
    s = tir.Schedule(f)
    assert flags(s, "C").affine_binding
    (block,) = s.tree("main").blocks.values()
    i = s.get(s.get_loops("C")[0]).loop_var
    bound = s.mod.entry_func.with_body(
        tir.tree.edit(s.mod.entry_func.body, {block: (block.replace(iter_values=(i, i)),)})
    )
    assert not flags(tir.Schedule(bound), "C").affine_binding


def test_references_lead_to_what_is_around():
    s = tir.Schedule(chain())
    block = s.get_sref(s.get_block("C"))
    outer, inner = (s.get_sref(x) for x in s.get_loops("C"))
    root = s.get_sref(s.get_block("root"))
    assert block.parent == inner and inner.parent == outer and outer.parent == root and root.parent is None
    assert root.stmt is root_block(s.mod.entry_func.body) is s.get(s.get_block("root"))
    assert [b.name for b in root.stmt.alloc_buffers] == ["B"] and len(root.stmt.body) == 2
    (dep,) = s.state.get_block_scope(root).get_deps_by_dst(block)
    assert dep.src.stmt.name_hint == "B" and dep.dst == block
    assert s.state.get_sref(chain().body[-1]) is None


def sums():
    a, k = te.placeholder((10, 3), "int32", name="A"), te.reduce_axis((0, 3), name="k")
    b = te.compute((10,), lambda i: te.sum(a[i, k], k), name="B")
    return te.create_prim_func([a, te.compute((10,), lambda i: b[i] * 2, name="C")]), ((10, 3), (10,))


def copies():
    a = te.placeholder((10,), "int32", name="A")
    b = te.compute((10,), lambda i: a[i] + 1, name="B")
    return te.create_prim_func([a, te.compute((10,), lambda i: b[i] * 2, name="C")]), ((10,), (10,))


@pytest.mark.parametrize("make", [sums, copies])
@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("pad", [7, lambda i, j: i + j])
def test_padding_is_written_and_changes_nothing_else(make, moved, pad):
    """Whoever writes the buffer goes over its new elements where its axes are loops; else another block fills them."""
    f, shapes = make()
    s = tir.Schedule(f, debug_mask="all")
    if moved:
        s.split(s.get_loops("B")[0], [None, 5])
    s.transform_layout("B", ("write", 0), lambda i: (i // 4, i % 4), pad_value=pad)
    assert same(f, s, *shapes)
    assert ("buffer_B_padding" in s.tree("main").blocks) == moved
    out = _with_result(s.mod.entry_func, "B")
    arrays = [np.arange(np.prod(x), dtype="int32").reshape(x) for x in shapes]
    found = np.full((3, 4), -1, "int32")
    Interpreter(tir.lower(out.module(), "X2_1204").entry_func)(*arrays, found)
    wanted = [7, 7] if isinstance(pad, int) else [2 + 2, 2 + 3]
    assert found[2, 2:].tolist() == wanted and -1 not in found


def _with_result(f, name):
    """The function with one of its buffers as a parameter more."""
    (alloc,) = (x for x in f.body if isinstance(x, Alloc) and x.buffer.name == name)
    body = [DeclBuffer(x.buffer) if x is alloc else x for x in f.body]
    return f.replace(
        params=(*f.params, alloc.buffer.data), body=tuple(sorted(body, key=lambda x: not isinstance(x, DeclBuffer)))
    )


class _WithTransposed(Rewriter):
    """What is stored, plus the element at the other side of the diagonal."""

    @rewrites(BufferStore)
    def rewrite_store(self, s: BufferStore) -> BufferStore:
        return s.replace(value=Binary("add", s.value, BufferLoad(s.buffer, s.indices[::-1])))


def test_other_elements_of_a_buffer_with_padding_stay_those():
    a = te.placeholder((6, 6), "int32", name="A")
    f = _WithTransposed().function(te.create_prim_func([a, te.compute((6, 6), lambda i, j: a[i, j] + 1, name="B")]))
    s = tir.Schedule(f)
    s.transform_layout("B", ("write", 0), lambda i, j: (i, j // 4, j % 4), pad_value=0)
    x = np.arange(36, dtype="int32").reshape(6, 6)
    plain, padded = x * 10, np.pad(x * 10, ((0, 0), (0, 2))).reshape(6, 2, 4)
    for function, out in ((f, plain), (s.mod.entry_func, padded)):
        Interpreter(tir.lower(function.module(), "X2_1204").entry_func)(x, out)
    np.testing.assert_array_equal(padded.reshape(6, 8)[:, :6], plain)


def test_of_padding_that_the_caller_fills_it_is_said_what_it_holds():
    f, _ = copies()
    s = tir.Schedule(f, debug_mask="all")
    s.transform_layout("B", ("read", 0), lambda i: (i // 4, i % 4), pad_value=0)
    assert "S.assume(" in s.mod.script()
    assert next(iter(s.tree("main").blocks)) == "buffer_A_assumptions"


def test_a_part_that_blocks_in_a_block_fill_is_filled():
    """Copies of what a block of blocks writes, and what is computed with it, follow it as they follow a plain one."""
    f = chain(32, 16)
    s = tir.Schedule(f, debug_mask="all")
    i, j = s.get_loops("B")
    io, ii = s.split(i, [None, 8])
    jo, ji = s.split(j, [None, 4])
    s.reorder(io, jo, ii, ji)
    s.blockize(ii)
    s.reverse_compute_at("C", jo)
    s.cache_write("B_o", 0, "shared")
    assert flags(s, "C").region_cover and same(f, s, (32, 16), (32, 16))


def test_steps_without_records_and_the_mark_at_their_end():
    s = tir.Schedule._create_non_traced(chain())
    s.split(s.get_loops("B")[0], [4, None])
    assert s.trace is None
    s = tir.Schedule(chain())
    block = s.get_block("B")
    s.annotate(block, "key", 3)
    assert s.trace.as_python()[-1] == 'sch.annotate(block_or_loop=b0, ann_key="key", ann_val=3)'
    s.enter_postproc()
    assert s.trace.pop() is None and block.same_as(block) and not block.same_as(s.get_block("B"))


@pytest.mark.parametrize("factors", [(8, 4), (2, 16), (32, 1)])
def test_the_suggested_layout_has_the_elements_in_the_order_of_the_loops(factors):
    s = tir.Schedule(chain(32, 16))
    i, j = s.get_loops("B")
    (io, ii), (jo, ji) = s.split(i, [None, factors[0]]), s.split(j, [None, factors[1]])
    s.reorder(io, jo, ji, ii)
    block, loops = s.get(s.get_block("B")), [s.get(x) for x in (io, jo, ji, ii)]
    (buffer,) = (a.buffer for a in s.mod.entry_func.body if isinstance(a, Alloc))
    found = suggest_index_map(buffer, block.iter_values, loops)
    elements = np.arange(512).reshape(32, 16)
    turns = np.ndindex(*(x.stop.value for x in loops))
    in_order = [elements[a * factors[0] + d, b * factors[1] + c] for a, b, c, d in turns]
    assert found.map_ndarray(elements).ravel().tolist() == in_order
    assert suggest_index_map(buffer, [loops[3].loop_var * 2, loops[1].loop_var], loops) is None
    assert suggest_index_map(buffer, block.iter_values, loops, loops[0].loop_var < 1) is None
