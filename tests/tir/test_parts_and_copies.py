"""Loops in parts, circular buffers, copies by index, partial results of several values, blocks side by side."""

from __future__ import annotations

import itertools
import json
import random

import numpy as np
import pytest

from compassc import targets, te, tir
from compassc.analysis.interpret import Interpreter
from compassc.dsl import BuildManager
from tests.te.random_cases import LARGEST
from tests.tir.random_intrinsics_of_blocks import tensorize
from tests.tir.test_steps import blur, chain, matmul, same

TARGET = "X2_1204"


def replayed(f, s):
    """The schedule that the trace of another one makes, by its JSON."""
    again = tir.Schedule(f)
    again.trace.apply_json_to_schedule(json.dumps(s.trace.as_json()), again)
    assert again.mod.script() == s.mod.script()


def test_turns_in_parts():
    f = chain(9, 4)
    s = tir.Schedule(f)
    parts = s.loop_partition(s.get_loops("B")[0], [2, 4])
    assert [(x.min.value, x.stop.value) for x in map(s.get, parts)] == [(0, 2), (2, 6), (6, 9)]
    assert {"B_i_common", "B_i0_partition", "B_i1_partition", "B_i2_partition"} <= set(s.tree("main").blocks)
    replayed(f, s)
    assert same(f, s, (9, 4), (9, 4))


@pytest.mark.parametrize("inside_first", [True, False])
def test_parts_of_a_reduction_begin_once(inside_first):
    f = matmul()
    s = tir.Schedule(f)
    i, j, k = s.get_loops("C")
    outer, inner = s.split(k, [4, None])
    s.reorder(outer, i, j, inner)
    for loop in (inner, j) if inside_first else (j,):
        s.loop_partition(loop, [1, None] if loop is inner else [3, None])
    assert same(f, s, (8, 16), (16, 8), (8, 8))


@pytest.mark.parametrize("window,stride,tile", list(itertools.product((2, 3, 5), (1, 2), (1, 2))))
def test_a_buffer_goes_round(window, stride, tile):
    """What a turn needs of the turn before is kept: fewer elements are computed, in less memory."""
    n = 12
    a = te.placeholder((n, 4), "int32", name="A")
    b = te.compute((n, 4), lambda i, j: a[i, j] * 3, name="B")
    w = te.reduce_axis((0, window), "w")
    c = te.compute(((n - window) // stride + 1, 4), lambda i, j: te.sum(b[i * stride + w, j], axis=w), name="C")
    f = te.create_prim_func([a, c])
    s = tir.Schedule(f)
    outer, _ = s.split(s.get_loops("C")[0], [None, tile])
    s.compute_at("B", outer)
    alive = (tile - 1) * stride + window
    if stride * tile >= alive:
        with pytest.raises(tir.ScheduleError, match="no dimension has parts that overlap"):
            s.rolling_buffer("B", 0)
        return
    s.rolling_buffer("B", 0)
    assert s.buffers("main")[s.get(s.get_block("B")).writes[0].buffer.data].shape[0].value == alive
    replayed(f, s)
    assert same(f, s, (n, 4), tuple(d.value for d in c.shape))
    with pytest.raises(tir.ScheduleError):
        s.parallel(s.get_loops("C")[0])


def test_copies_in_another_layout():
    f = matmul()
    s = tir.Schedule(f)
    s.reindex_cache_read("C", 0, "lsram", lambda i, j, k: (k // 4, i, k % 4))
    s.reindex_cache_write("C", 0, "lsram", lambda i, j, k: (j, i))
    assert "A_lsram = T.alloc((4, 8, 4)" in s.mod.script()
    replayed(f, s)
    assert same(f, s, (8, 16), (16, 8), (8, 8))


def test_indices_are_computed_before():
    x = te.placeholder((40,), "int32", name="x")
    y = te.compute((6, 5), lambda i, j: x[i * 3 + j // 2] + x[(i * 3 + j // 2) + j] * x[j], name="y")
    f = te.create_prim_func([x, y])
    for least, count in ((0, 2), (2, 1), (3, 0)):
        s = tir.Schedule(f)
        assert len(s.cache_index("y", "lsram", least)) == count
        replayed(f, s)
        assert same(f, s, 40, (6, 5))


def test_parts_of_a_copy_back_are_refused():
    f = chain(9, 4)
    s = tir.Schedule(f)
    s.loop_partition(s.get_loops("C")[0], [2, None])
    with pytest.raises(tir.ScheduleError, match="not surely computed at all points"):
        s.reindex_cache_write("C", 0, "lsram", lambda i, j: (i, j))


FIRST = te.comm_reducer(
    lambda a, b: (te.if_then_else(a[1] >= b[1], a[0], b[0]), te.max(a[1], b[1])),
    lambda i, v: (te.const(0, i), te.min_value(v)),
    "first",
)
PAIR = te.comm_reducer(
    lambda a, b: (a[0] + b[0], te.max(a[1], b[1])), lambda i, v: (te.const(0, i), te.min_value(v)), "pair"
)
ODD = te.comm_reducer(
    lambda a, b: (te.if_then_else(a[1] > b[0], a[0], b[0]), te.if_then_else(a[1] > b[0], a[1], b[1])),
    lambda i, v: (te.min_value(i), te.min_value(v)),
    "odd",
)


@pytest.mark.parametrize("reducer,along,refused", [
    (LARGEST, 0, ""), (LARGEST, 1, ""), (PAIR, 1, ""),
    (FIRST, 1, "no matching reducer|order in which it joins"),
    (ODD, 0, "it matters how what it joins is grouped"),
])  # fmt: skip
def test_several_values_in_parts(reducer, along, refused):
    x, k = te.placeholder((6, 20), "int32", name="x"), te.reduce_axis((0, 20), "k")
    made = te.compute((6,), lambda i: reducer((k.var, x[i, k]), k), name="v")
    f = te.create_prim_func([x, *made])
    s = tir.Schedule(f)
    loops = s.split(s.get_loops("v")[1], [None, 5])
    if refused:
        with pytest.raises(tir.ScheduleError, match=refused):
            s.rfactor(loops[along], 0)
        return
    s.rfactor(loops[along], 0)
    given = np.random.default_rng(0).integers(-3, 3, (6, 20)).astype("int32")
    results = []
    for module in (f.module(), s.mod):
        arrays = [given.copy(), np.zeros(6, "int32"), np.zeros(6, "int32")]
        Interpreter(tir.lower(module, TARGET).entry_func)(*arrays)
        results.append(arrays)
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_block_of_neighbours():
    f = chain()
    s = tir.Schedule(f)
    s.reverse_compute_at("C", s.get_loops("B")[1])
    outer = s.blockize([s.get_block("B"), s.get_block("C")])
    assert s.get(outer).name_hint == "outer_B_C_" and [s.get(b).name_hint for b in s.get_child_blocks(outer)] == [
        "B",
        "C",
    ]
    replayed(f, s)
    assert same(f, s, (32, 16), (32, 16))


def sums_of_sums():
    A = te.placeholder((12, 16), "int32", name="A")
    k, m = te.reduce_axis((0, 3), "k"), te.reduce_axis((0, 3), "m")
    B = te.compute((10, 16), lambda i, j: te.sum(A[i + k, j], axis=k), name="B")
    return te.create_prim_func([A, te.compute((8, 16), lambda i, j: te.sum(B[i + m, j], axis=m), name="C")])


@pytest.mark.parametrize("rows", [1, 2, 4])
@pytest.mark.parametrize("sums_outside", [False, True])
def test_sums_go_round(rows, sums_outside):
    f = sums_of_sums()
    s = tir.Schedule(f)
    i, _ = s.split(s.get_loops("C")[0], [None, rows])
    s.compute_at("B", i)
    if sums_outside:
        s.reorder(*reversed(s.get_loops("B")[1:]))
    s.rolling_buffer("B", 0)
    block = s.get(s.get_block("B"))
    assert block.init and [e.value for e in s.buffers("main")[block.writes[0].buffer.data].shape] == [rows + 2, 16]
    replayed(f, s)
    assert same(f, s, (12, 16), (8, 16))


@pytest.mark.parametrize("columns_outside", [False, True])
@pytest.mark.parametrize("tile", [(2, 2), (4, 2), (2, 8), (8, 4)])
def test_planes_go_round_along_the_outermost_loop_that_overlaps(tile, columns_outside):
    """Of both dimensions only what is new is computed; memory is that of a turn in the rolled one."""
    a = te.placeholder((10, 10), "int32", name="A")
    b = te.compute((10, 10), lambda i, j: a[i, j] * 3, name="B")
    k, m = te.reduce_axis((0, 3), "k"), te.reduce_axis((0, 3), "m")
    c = te.compute((8, 8), lambda i, j: te.sum(b[i + k, j + m], axis=[k, m]), name="C")
    f = te.create_prim_func([a, c])
    s = tir.Schedule(f)
    i, j, *_ = s.get_loops("C")
    (io, ii), (jo, ji) = s.split(i, [None, tile[0]]), s.split(j, [None, tile[1]])
    outside = [jo, io] if columns_outside else [io, jo]
    s.reorder(*outside, ii, ji)
    s.compute_at("B", outside[1])
    s.rolling_buffer("B", 0)
    overlapping = [(d, t) for d, t in ((1, tile[1]), (0, tile[0])) if t < 8]
    rolled, size = overlapping[0] if columns_outside else overlapping[-1]
    wanted = [10, 10]
    wanted[rolled] = size + 2
    block = s.get(s.get_block("B"))
    assert [e.value for e in s.buffers("main")[block.writes[0].buffer.data].shape] == wanted
    assert block.kinds[rolled] == "opaque" and block.kinds[1 - rolled] == "spatial"
    replayed(f, s)
    assert same(f, s, (10, 10), (8, 8))
    for loop in outside:
        if s.get(loop).stop.value > 1:  # what a turn finds is of the turn before
            with pytest.raises(tir.ScheduleError):
                s.parallel(loop)
    if len(overlapping) > 1:
        with pytest.raises(tir.ScheduleError):
            s.reorder(*reversed(outside))


def test_boundaries_of_physical_dimensions():
    f = chain(8, 12)
    s = tir.Schedule(f)
    s.transform_layout("B", ("write", 0), lambda i, j: (j, te.AXIS_SEPARATOR, i))
    assert s.get(s.get_block("B")).writes[0].buffer.axis_separators == (1,)
    assert s.get(s.get_block("C")).reads[0].buffer.axis_separators == (1,)
    replayed(f, s)
    with pytest.raises(tir.ScheduleError, match="no ascending places between its 2 dimensions"):
        s.set_axis_separator("B", "B", [2])
    assert same(f, s, (8, 12), (8, 12))


def test_copies_of_a_loop_are_for_its_blocks_alone():
    x = te.placeholder((8, 40), "int32", name="x")
    b = te.compute((8, 40), lambda i, j: x[i, j] * 2, name="b")
    f = te.create_prim_func([x, b, te.compute((8, 40), lambda i, j: x[7 - i, j] + b[i, j], name="c")])
    s = tir.Schedule(f)
    copy = s.read_at(s.get_loops("b")[0], "b", 0, "lsram")
    assert [s.get(r).name_hint for r in s.get_consumers(copy)] == ["b"]
    replayed(f, s)
    assert same(f, s, (8, 40), (8, 40), (8, 40))


def test_halves_of_copies():
    f = chain(64, 32)
    s = tir.Schedule(f)
    s.compute_inline("B")
    tec, rows = s.split(s.get_loops("C")[0], [4, None])
    s.bind(tec, "threadIdx.x")
    copy = s.read_at(rows, "C", 0, "lsram")
    s.write_at(rows, "C", 0, "lsram")
    for block in (copy, "C"):
        s.annotate(block, "double_buffer_scope", 0)
    text = tir.lower(s.mod, TARGET).script()
    assert text.count("S.async_dma_copy(") == 3 and text.count("T.alloc((2, 1, 32)") == 2, text
    a, c = np.arange(64 * 32, dtype="int32").reshape(64, 32), np.zeros((64, 32), "int32")
    run = BuildManager(TARGET).build(s.mod)
    run(a, c)
    np.testing.assert_array_equal(c, (a + 1) * 2)
    s.unannotate("C", "double_buffer_scope")
    s.annotate("C", "double_buffer_scope", 7)
    with pytest.raises(tir.LowerError, match="the place of a buffer that it writes, not 7"):
        tir.lower(s.mod, TARGET)


def test_errors_show_the_places():
    f = blur()
    s = tir.Schedule(f)
    with pytest.raises(tir.ScheduleError) as caught:
        s.compute_at("C", s.get_loops("B")[0])
    lines = str(caught.value).splitlines()
    assert lines[0].endswith("compute_at of 'C' at 'i': it is an output block")
    marks = {x.split()[-1]: lines[i - 1].strip() for i, x in enumerate(lines) if "^^^" in x}
    assert marks == {"Loop#0": "for i in T.serial(0, 18, 1):", "Block#0": 'with T.block("C"):'}
    brief = tir.Schedule(f, error_render_level="fast")
    with pytest.raises(tir.ScheduleError) as caught:
        brief.compute_at("C", brief.get_loops("B")[0])
    assert "ScheduleError: compute_at of 'C' at 'i'" in str(caught.value) and "\n" not in str(caught.value)
    silent = tir.Schedule(f, error_render_level="none")
    with pytest.raises(tir.ScheduleError, match=r"ScheduleError: \(not rendered\)"):
        silent.compute_at("C", silent.get_loops("B")[0])
    with pytest.raises(tir.ScheduleError, match="ScheduleError: Cannot find a block with the specified name"):
        brief.get_block("no")
    with pytest.raises(tir.ScheduleError, match="Cannot find a block with the name: no"):
        s.get_block("no")


@pytest.mark.parametrize("target", ["llvm -opt-level=0"])
def test_schedules_of_blocks_run_here(target):
    f = matmul(32, 32, 32)
    s = tir.Schedule(f)
    i, j, k = s.get_loops("C")
    jo, ji = s.split(j, [None, 8])
    s.reorder(i, jo, k, ji)
    s.vectorize(ji)
    s.parallel(i)
    a, b = (np.random.default_rng(n).integers(-9, 9, (32, 32)).astype("int32") for n in range(2))
    c = np.zeros((32, 32), "int32")
    targets.build(tir.lower(s.mod, target), target=target)(a, b, c)
    np.testing.assert_array_equal(c, a @ b)


@pytest.mark.parametrize("side", ["read", "write"])
def test_what_is_updated_is_not_copied_on_one_side(side):
    s = tir.Schedule(matmul())
    _, _, k = s.get_loops("C")
    s.decompose_reduction("C", k)
    outer = s.blockize(s.get_loops("C_update")[2])  # alone in its scope
    assert s.get(outer).name_hint == "C_update_o"
    with pytest.raises(tir.ScheduleError, match="reads and writes 'C'"):
        s.reindex("C_update", (side, 0))
    with pytest.raises(tir.ScheduleError, match="reads and writes 'C'"):
        getattr(s, f"reindex_cache_{side}")("C_update", 0, "lsram", lambda k: (0,))


def test_an_init_is_not_merged_with_what_it_begins():
    f = matmul()
    s = tir.Schedule(f)
    s.blockize(s.get_loops("C")[0])
    with pytest.raises(tir.ScheduleError, match="in the init of a reduction"):
        s.merge(s.get_loops("C_init")[1], s.get_loops("C")[1])


def test_intrinsics_read_the_indices_that_the_program_reads():
    """An index that is read from memory is compared, and found again in the implementation."""
    x = te.placeholder((9,), "int32", name="x")
    y = te.compute((6, 4), lambda i, j: x[(i * 3) // 2] * 2, name="y")
    f = te.create_prim_func([x, y])
    s = tir.Schedule(f)
    s.cache_index("y", "lsram")
    tensorize(random.Random(0), s, "test.gather", s.get_loops("y")[1])
    assert same(f, s, 9, (6, 4))


def test_parts_move_with_the_loops_that_they_need():
    f = chain(6, 9)
    s = tir.Schedule(f)
    s.loop_partition(s.get_loops("B")[1], [4, None])
    common = s.get_block("B_j_common")
    assert [v.name for v in s.get(common).vars] == ["v_i"]
    s.compute_at(common, s.get_loops("C")[0])
    assert same(f, s, (6, 9), (6, 9))


def test_parts_of_a_fused_reduction_begin_it_all():
    """A loop of which a part is spatial: later parts begin reductions, so that the step is refused."""
    s = tir.Schedule(small_row_sums())
    fused = s.fuse(*s.get_loops("B"))
    before = s.mod
    with pytest.raises(tir.ScheduleError, match="'B' reduces over it in part only"):
        s.loop_partition(fused, [1, None])
    assert s.mod is before
    s = tir.Schedule(small_row_sums())
    s.decompose_reduction("B", s.get_loops("B")[0])
    s.loop_partition(s.fuse(*s.get_loops("B_update")), [1, 3, None])
    x, b = np.arange(12, dtype="int32").reshape(3, 4), np.zeros(3, "int32")
    Interpreter(tir.lower(s.mod, "X2_1204").entry_func)(x, b)
    np.testing.assert_array_equal(b, x.sum(1))


def small_row_sums():
    x, k = te.placeholder((3, 4), "int32", name="X"), te.reduce_axis((0, 4), name="k")
    return te.create_prim_func([x, te.compute((3,), lambda i: te.sum(x[i, k], axis=k), name="B")])


def test_a_part_of_a_reduction_is_not_copied_alone():
    x = te.placeholder((4, 28), "int32", name="X")
    axes = [te.reduce_axis((0, n), name=f"r{n}") for n in (4, 28)]
    b = te.compute((1,), lambda i: te.sum(x[axes[0], axes[1]] + i, axis=axes), name="B")
    s = tir.Schedule(te.create_prim_func([x, te.compute((1,), lambda i: b[i] + 1, name="C")]))
    s.loop_partition(s.get_loops("B")[2], [1, None])
    before = s.mod
    with pytest.raises(tir.ScheduleError, match="it reduces a part only"):
        s.cache_write("B", 0, "local")
    assert s.mod is before


@pytest.mark.parametrize("factor", [2, 3, 4])
@pytest.mark.parametrize("step", ["reverse_compute_at", "cache_write"])
def test_turns_beyond_an_axis_give_nothing(factor, step):
    """A block whose axis ends before its loop: what is beyond was not written, though it is within the buffer."""
    x = te.placeholder((6,), "int32", name="X")
    b = te.compute((6,), lambda i: x[i] + 1, name="B")
    f = te.create_prim_func([x, te.compute((6,), lambda i: b[i] * 2, name="C")])
    s = tir.Schedule(f)
    s.transform_block_layout("B", lambda i: (i // 3, i % 3))
    outer, _ = s.split(s.get_loops("B")[1], [None, factor])
    before = s.mod
    try:
        s.reverse_compute_at("C", outer) if step == "reverse_compute_at" else s.cache_write("B", 0, "lsram")
    except tir.ScheduleError:
        assert s.mod is before and (factor != 3 or step == "reverse_compute_at")
    values, found = np.arange(6, dtype="int32"), np.zeros(6, "int32")
    Interpreter(tir.lower(s.mod, TARGET).entry_func)(values, found)
    np.testing.assert_array_equal(found, (values + 1) * 2)


def test_what_goes_on_with_a_buffer_is_not_copied_from_nothing():
    s = tir.Schedule(small_row_sums())
    s.decompose_reduction("B", s.get_loops("B")[0])
    s.blockize(s.get_loops("B_update")[1])
    before = s.mod
    with pytest.raises(tir.ScheduleError, match="'B_update': it goes on with what is in 'B'"):
        s.cache_write("B_update", 0, "local")
    assert s.mod is before
