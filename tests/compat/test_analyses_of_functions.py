"""Analyses and passes of functions of blocks under the framework's names."""

from __future__ import annotations

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc import te, tir
from compassc.analysis.interpret import Interpreter
from compassc.compat import block_passes, tir_analysis
from compassc.ir import stmts as S
from compassc.ir.visit import substitute_body, walk_stmts
from tests.choosing import some


def sums() -> S.PrimFunc:
    """Rows summed up, then doubled."""
    a = te.placeholder((4, 8), "int32", name="A")
    k = te.reduce_axis((0, 8), name="k")
    b = te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="B")
    return te.create_prim_func([a, te.compute((4,), lambda i: b[i] * 2 + 1, name="C")])


def products() -> S.PrimFunc:
    """A product of matrices in tiles, one loop of which runs side by side."""
    a, b = (te.placeholder((6, 6), "int32", name=n) for n in "AB")
    k = te.reduce_axis((0, 6), name="k")
    made = te.compute((6, 6), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = tir.Schedule(te.create_prim_func([a, b, made]))
    i, j, r = s.get_loops(s.get_block("C"))
    outer, inner = s.split(i, [None, 4])
    ro, ri = s.split(r, [2, 3])
    s.reorder(outer, j, ro, inner, ri)
    s.parallel(outer)
    return s.mod.entry_func


def largest() -> S.PrimFunc:
    """The largest of all elements, in a memory without axes."""
    a = te.placeholder((3, 5), "int32", name="A")
    i, j = te.reduce_axis((0, 3), name="i"), te.reduce_axis((0, 5), name="j")
    return te.create_prim_func([a, te.compute((1,), lambda n: te.max(a[i, j], axis=[i, j]), name="C")])


SAMPLES = {"sums": sums, "products": products, "largest": largest}


def ran(f: S.PrimFunc) -> np.ndarray:
    """What a function computes of counted numbers."""
    buffers = {s.buffer.data: s.buffer for s in f.body if isinstance(s, S.DeclBuffer)}
    shapes = [tuple(e.value for e in buffers[p].shape) for p in f.params]
    arrays = [np.arange(np.prod(shape), dtype="int32").reshape(shape) % 7 - 2 for shape in shapes]
    Interpreter(f)(*arrays)
    return arrays[-1]


@pytest.mark.parametrize("sample", SAMPLES)
def test_passes_leave_what_is_computed(sample):
    f = SAMPLES[sample]()
    wanted, module = ran(f), f.module()
    for names in some(
        (["LowerInitBlock"], ["LowerInitBlock", "ConvertBlocksToOpaque"], ["ConvertForLoopsToSerial"], ["OOBChecker"])
    ):
        made = module
        for name in names:
            made = block_passes.named(name)(made)
        assert ran(made.entry_func).tolist() == wanted.tolist()
        blocks = [s for s in walk_stmts(made.entry_func.body) if isinstance(s, S.Block)]
        assert blocks and ("LowerInitBlock" not in names or not any(b.init for b in blocks))
        assert "ConvertBlocksToOpaque" not in names or not any(b.vars for b in blocks)
        loops = [s for s in walk_stmts(made.entry_func.body) if isinstance(s, S.For)]
        assert "ConvertForLoopsToSerial" not in names or {s.kind for s in loops} == {"serial"}


@pytest.mark.usefixtures("names")
def test_forms_of_passes():
    import tvm

    module = tvm.tir.transform.LowerInitBlock()(tvm.IRModule({"main": sums()}))
    (block,) = [s for s in walk_stmts(module["main"].body) if isinstance(s, S.Block) and "reduce" in s.kinds]
    assert isinstance(block.body[0], S.IfThenElse) and str(block.body[0].condition) == f"({block.vars[1].name} == 0)"
    opaque = tvm.tir.transform.ConvertBlocksToOpaque()(module)
    (inner,) = [s for s in walk_stmts(opaque["main"].body) if isinstance(s, S.Block) and s.name_hint == "B"]
    assert inner.vars == () and inner.reads[0].starts[0].name == "i"
    with pytest.raises(CompassError, match="begins a reduction"):
        tvm.tir.transform.ConvertBlocksToOpaque()(tvm.IRModule({"main": sums()}))
    assert tvm.tir.transform.Filter(lambda f: True)(module).functions == module.functions
    with pytest.raises(CompassError, match="is not kept"):
        tvm.tir.transform.Filter(lambda f: False)(module)
    assert tvm.tir.transform.AnnotateEntryFunc()(module).entry_func.attr("tir.is_entry_func")


def test_variables_that_are_used_and_not_defined():
    f = sums()
    assert tir_analysis.undefined_vars(f) == [] and tir_analysis.verify_ssa(f)
    x, y = te.var("x"), te.var("y")
    assert tir_analysis.undefined_vars(y + x * y) == [y, x] and tir_analysis.undefined_vars(y + x, [y]) == [x]
    loop = next(s for s in f.body if isinstance(s, S.For))
    assert loop.loop_var not in tir_analysis.undefined_vars(loop)
    inner = tir_analysis.undefined_vars(loop.body)
    assert loop.loop_var in inner and {v.name for v in inner} >= {"A", "B"}
    twice = f.replace(body=(*f.body, loop))
    assert not tir_analysis.verify_ssa(twice)


def test_memory_of_functions():
    f = sums()
    assert tir_analysis.calculate_workspace_bytes(f, 1) == 16 and tir_analysis.calculate_workspace_bytes(f, 64) == 64
    assert list(tir_analysis.calculate_allocated_bytes(f).values()) == [16]
    assert tir_analysis.calculate_allocated_bytes(f.module()) == {f.name: tir_analysis.calculate_allocated_bytes(f)}
    assert tir_analysis.calculate_constant_bytes(f, 16) == 0
    assert not tir_analysis.is_pure_function(f)
    with pytest.raises(CompassError, match="not pure"):
        tir_analysis.is_pure_function(f, assert_on_error=True)


def test_accesses_of_functions():
    f = sums()
    places = {b.name: s for b, s in tir_analysis.detect_buffer_access_lca(f).items()}
    blocks = {s.name_hint: s for s in walk_stmts(f.body) if isinstance(s, S.Block)}
    assert places["B"] is None and places["A"] is blocks["B"] and places["C"] is blocks["C"]
    buffers = {s.buffer.data: s.buffer for s in f.body if isinstance(s, (S.DeclBuffer, S.Alloc))}
    reads, writes = tir_analysis.get_block_read_write_region(blocks["C"], buffers)
    assert [r.buffer.name for r in reads] == ["B"] and [r.buffer.name for r in writes] == ["C"]
    assert tir_analysis.find_anchor_block(f.module()) is blocks["B"]
    assert tir_analysis.verify_memory(f) and not tir_analysis.verify_memory(f.with_attr("target", "cuda"))


def test_operations_of_functions():
    f = sums()
    assert tir_analysis.estimate_tir_flops(f) == 4 * 8 + 4 * 2 == tir_analysis.estimate_tir_flops(f.module())
    assert tir_analysis.estimate_tir_flops(products()) == 2 * (2 * 4) * 6 * (2 * 3)


def test_accesses_that_are_always_out_of_bounds_are_refused():
    f = sums()
    block = next(s for s in walk_stmts(f.body) if isinstance(s, S.Block) and s.name_hint == "C")
    further = substitute_body(block.body, {block.vars[0]: block.vars[0] + 9})
    wrong = f.replace(body=_with(f.body, block, block.replace(body=further)))
    with pytest.raises(CompassError, match="is accessed at"):
        tir_analysis.check_bounds(wrong.module())
    assert tir_analysis.check_bounds(f.module()).entry_func is f


def _with(body, old, new):
    return tuple(new if s is old else s.map(lambda e: e, lambda b: _with(b, old, new)) for s in body)


@pytest.mark.parametrize("limits, kept", [
    ({"max_threads_per_block": 32}, True), ({"max_threads_per_block": 31}, False), ({"max_thread_x": 4}, True),
    ({"max_thread_y": 7}, False), ({"max_vthread": 1, "max_kernels": 1, "max_vector_bytes": 4}, True), ({"max_kernels": 0}, False),
    ({"max_shared_memory_per_block": 255}, False), ({"max_shared_memory_per_block": 256}, True),
])  # fmt: skip
def test_limits_of_threads(limits, kept):
    a = te.placeholder((8, 8), "int32", name="A")
    s = tir.Schedule(te.create_prim_func([a, te.compute((8, 8), lambda i, j: a[i, j] + 1, name="B")]))
    block = s.get_block("B")
    i, j = s.get_loops(block)
    outer, inner = s.split(j, [2, 4])
    s.reorder(outer, i, inner)
    for loop, thread in ((outer, "blockIdx.x"), (i, "threadIdx.y"), (inner, "threadIdx.x")):
        s.bind(loop, thread)
    s.cache_read(block, 0, "shared")
    found = tir_analysis.verify_gpu_code(s.mod.entry_func, limits)
    assert found is kept
    with pytest.raises(CompassError, match="no limit 'max_magic'"):
        tir_analysis.verify_gpu_code(s.mod.entry_func, {"max_magic": 1})
