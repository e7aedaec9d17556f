"""Examples of the steps on blocks (`compassc.tir`)."""

from __future__ import annotations

from typing import Any

from compassc.reference.primitives import Example, Family
from compassc.tir.annotations import Notes
from compassc.tir.blockize import Blockizing
from compassc.tir.caching import Caching
from compassc.tir.index_caching import IndexCaching
from compassc.tir.inlining import Inlining
from compassc.tir.layouts import Layouts
from compassc.tir.loops import Loops
from compassc.tir.partition import Partitioning
from compassc.tir.placement import Placement
from compassc.tir.reductions import Reductions
from compassc.tir.sampling import Sampling

_CHAIN = """
from compassc import tir

A = te.placeholder((32, 16), "int32", name="A")
B = te.compute((32, 16), lambda i, j: A[i, j] + 1, name="B")
C = te.compute((32, 16), lambda i, j: B[i, j] * 2, name="C")
s = tir.Schedule(te.create_prim_func([A, C]), seed=1)
"""
_BLUR = """
from compassc import tir

A = te.placeholder((18,), "int32", name="A")
B = te.compute((18,), lambda i: A[i] * 3, name="B")
C = te.compute((16,), lambda i: B[i] + B[i + 1] + B[i + 2], name="C")
s = tir.Schedule(te.create_prim_func([A, C]), seed=1)
"""
_SUMS = """
from compassc import tir

A = te.placeholder((8, 64), "int32", name="A")
k = te.reduce_axis((0, 64), name="k")
B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
s = tir.Schedule(te.create_prim_func([A, B]), seed=1)
"""
_GATHER = """
from compassc import tir

A = te.placeholder((40,), "int32", name="A")
B = te.compute((6, 5), lambda i, j: A[i * 3 + j // 2] + A[(i * 3 + j // 2) + j], name="B")
s = tir.Schedule(te.create_prim_func([A, B]), seed=1)
"""
_PADDED = """
from compassc import tir

A = te.placeholder((8,), "int32", name="A")
P = te.compute((10,), lambda i: te.if_then_else(te.all(i >= 1, i < 9), A[i - 1], te.const(0, "int32")), name="P")
s = tir.Schedule(te.create_prim_func([A, P]), seed=1)
"""
_MATMUL = """
from compassc import tir

A, B = te.placeholder((6, 7), "int32", name="A"), te.placeholder((7, 5), "int32", name="B")
k = te.reduce_axis((0, 7), name="k")
C = te.compute((6, 5), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
s = tir.Schedule(te.create_prim_func([A, B, C]), seed=1)
"""
_SPLIT = """
i, j = s.get_loops("C")
outer, inner = s.split(i, [4, None])
"""
EXAMPLES = {
    "split": Example(
        _BLUR + '(i,) = s.get_loops("C")\n', "outer, inner = s.split(i, [None, 5])", "s.split(i, [None, 0])"
    ),
    "fuse": Example(_CHAIN + 'i, j = s.get_loops("C")\n', "s.fuse(i, j)", "s.fuse(j, i)"),
    "reorder": Example(_CHAIN + 'i, j = s.get_loops("C")\n', "s.reorder(j, i)", 's.reorder(i, s.get_loops("B")[0])'),
    "merge": Example(
        _CHAIN, 's.merge(s.get_loops("B")[1], s.get_loops("C")[1])', 's.merge(s.get_loops("B")[0], s.get_loops("C")[1])'
    ),
    "add_unit_loop": Example(_BLUR, 's.add_unit_loop("C")'),
    "reorder_block_iter_var": Example(_CHAIN, 's.reorder_block_iter_var("C", [1, 0])'),
    "parallel": Example(_CHAIN, 's.parallel(s.get_loops("C")[0])'),
    "vectorize": Example(_CHAIN, 's.vectorize(s.get_loops("C")[1])'),
    "bind": Example(_CHAIN + _SPLIT.lstrip(), 's.bind(outer, "threadIdx.x")', 's.bind(outer, "warp")'),
    "unroll": Example(_CHAIN, 's.unroll(s.get_loops("C")[1])'),
    "compute_at": Example(
        _BLUR + 'outer, _ = s.split(s.get_loops("C")[0], [None, 4])\n',
        's.compute_at("B", outer)',
        's.compute_at("C", s.get_loops("B")[0])',
    ),
    "reverse_compute_at": Example(
        _CHAIN, 's.reverse_compute_at("C", s.get_loops("B")[0])', 's.reverse_compute_at("B", s.get_loops("C")[0])'
    ),
    "compute_inline": Example(_CHAIN, 's.compute_inline("B")', 's.compute_inline("C")'),
    "reverse_compute_inline": Example(_CHAIN, 's.reverse_compute_inline("C")', 's.reverse_compute_inline("B")'),
    "cache_read": Example(_CHAIN, 's.cache_read("B", 0, "lsram")', 's.cache_read("B", 1, "lsram")'),
    "cache_write": Example(_CHAIN, 's.cache_write("C", 0, "lsram")', 's.cache_write("C", 0, "sram")'),
    "cache_inplace": Example(
        _SUMS + 's.decompose_reduction("B", s.get_loops("B")[0])\n', 's.cache_inplace("B_update", 0, "lsram")'
    ),
    "read_at": Example(_CHAIN + _SPLIT.lstrip(), 's.read_at(outer, "C", 0, "lsram")'),
    "write_at": Example(_CHAIN + _SPLIT.lstrip(), 's.write_at(outer, "C", 0, "lsram")'),
    "reindex": Example(_BLUR, 's.reindex("B", ("read", 0))', 's.reindex("C", ("read", 0))'),
    "decompose_reduction": Example(
        _SUMS + 'i, k = s.get_loops("B")\n',
        's.decompose_reduction("B", k)',
        's.decompose_reduction("B", s.split(k, [4, None])[1])',
    ),
    "rfactor": Example(
        _SUMS + 'outer, _ = s.split(s.get_loops("B")[1], [4, None])\n',
        "s.rfactor(outer, 0)",
        's.rfactor(s.get_loops("B")[0], 0)',
    ),
    "storage_align": Example(_CHAIN, 's.storage_align("B", 0, 0, 32, 8)', 's.storage_align("B", 0, 5, 32, 8)'),
    "set_scope": Example(_CHAIN, 's.set_scope("B", 0, "lsram")', 's.set_scope("C", 0, "lsram")'),
    "unsafe_set_dtype": Example(_CHAIN, 's.unsafe_set_dtype("B", 0, "int16")'),
    "set_axis_separator": Example(
        _CHAIN, 's.set_axis_separator("B", ("write", 0), [1])', 's.set_axis_separator("B", ("write", 0), [2])'
    ),
    "loop_partition": Example(
        _CHAIN,
        's.loop_partition(s.get_loops("C")[0], [2, 4])',
        's.loop_partition(s.get_loops("C")[0], [16, 16])',
    ),
    "rolling_buffer": Example(
        _BLUR + 's.compute_at("B", s.get_loops("C")[0])\n', 's.rolling_buffer("B", 0)', 's.rolling_buffer("C", 0)'
    ),
    "reindex_cache_read": Example(
        _MATMUL,
        's.reindex_cache_read("C", 0, "lsram", lambda i, j, k: (k, i))',
        's.reindex_cache_read("C", 0, "lsram", lambda i, j, k: (j, i))',
    ),
    "reindex_cache_write": Example(
        _MATMUL,
        's.reindex_cache_write("C", 0, "lsram", lambda i, j, k: (j, i))',
        's.reindex_cache_write("C", 0, "lsram", lambda i, j, k: (i + j,))',
    ),
    "cache_index": Example(_GATHER, 's.cache_index("B", "lsram")', 's.cache_index("B", "lsram", -1)'),
    "annotate": Example(_CHAIN, 's.annotate(s.get_loops("C")[0], "note", 1)'),
    "unannotate": Example(
        _CHAIN + 's.annotate(s.get_loops("C")[0], "note", 1)\n',
        's.unannotate(s.get_loops("C")[0], "note")',
        's.unannotate(s.get_loops("C")[0], "other")',
    ),
    "unsafe_hide_buffer_access": Example(_CHAIN, 's.unsafe_hide_buffer_access("C", "read", [0])'),
    "annotate_buffer_access": Example(
        _CHAIN, 's.annotate_buffer_access("C", 0, "read", lambda i, j: ((i, i + 1), (0, 16)))'
    ),
    "transform_layout": Example(
        _CHAIN,
        's.transform_layout("B", ("write", 0), lambda i, j: (j, i))',
        's.transform_layout("B", ("write", 0), lambda i, j: (i + j,))',
    ),
    "transform_block_layout": Example(
        _CHAIN,
        's.transform_block_layout("C", lambda i, j: (i * 16 + j,))',
        's.transform_block_layout("C", lambda i, j: (i, i))',
    ),
    "decompose_padding": Example(_PADDED, 's.decompose_padding("P", s.get_loops("P")[0])'),
    "pad_einsum": Example(_MATMUL, 's.pad_einsum("C", [4, 4, 4])', 's.pad_einsum("C", [4, 4])'),
    "blockize": Example(
        _CHAIN + _SPLIT.lstrip(), "s.blockize(inner)", 's.blockize([s.get_block("C"), s.get_block("C")])'
    ),
    "tensorize": Example(
        _BLUR
        + 'X = te.placeholder((6,), "int32", name="X")\nf = te.create_prim_func([X, te.compute((6,), lambda i: X[i] * 3, name="Y")])\ng = tir.Schedule(f)\ng.unroll(g.get_loops("Y")[0])\ntir.TensorIntrin.register("example.times3", f, g.mod.entry_func, override=True)\nouter, inner = s.split(s.get_loops("B")[0], [3, 6])\n',
        's.tensorize(inner, "example.times3")',
        's.tensorize(outer, "example.times3")',
    ),
    "sample_categorical": Example(
        _BLUR + '(i,) = s.get_loops("C")\n',
        "s.unroll(i) if s.get(s.sample_categorical([0, 1], [0.1, 0.9])) else None",
        "s.sample_categorical([0, 1], [1.0])",
    ),
    "sample_perfect_tile": Example(_CHAIN + 'i, j = s.get_loops("C")\n', "s.split(i, s.sample_perfect_tile(i, 2, 8))"),
    "sample_partitioned_tile": Example(
        _CHAIN + 'i, j = s.get_loops("C")\n', "s.split(i, s.sample_partitioned_tile(i, 3, 1, 4))"
    ),
    "sample_compute_location": Example(_BLUR, 's.compute_at("B", s.sample_compute_location("B"))'),
}


def _show(variables: dict[str, Any], full: bool) -> str:
    """The function of the schedule `s` as it is now, without what every function begins with."""
    lines = variables["s"].mod.entry_func.script().split("-> T.void:\n")[1].rstrip().splitlines()
    return "\n".join(line[8:] for line in lines if "match_buffer" not in line)


_OWNERS = (
    Loops,
    Placement,
    Inlining,
    Caching,
    IndexCaching,
    Notes,
    Layouts,
    Reductions,
    Blockizing,
    Partitioning,
    Sampling,
)
FAMILY = Family("Steps on blocks", "blocks", _OWNERS, _show, EXAMPLES)
