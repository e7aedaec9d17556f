"""Steps on blocks of blocks, and on buffers of which an address is taken: right, or refused, for every step."""

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc import targets, te, tir
from compassc.analysis.interpret import Interpreter
from compassc.dsl import BuildManager, schedule
from compassc.dsl import script as S
from compassc.ir import parse_module

TARGET = "X2_1204"
NESTED = "outer_X_lsram_B_"


def product() -> tir.Schedule:
    """A reduction and a copy for it, in one block that has an axis of the reduction."""
    x, w = te.placeholder((2, 6), "int32", name="X"), te.placeholder((6,), "int32", name="W")
    k = te.reduce_axis((0, 6), name="k")
    b = te.compute((2,), lambda i: te.sum(x[i, k] * w[k], axis=k), name="B")
    s = tir.Schedule(te.create_prim_func([x, w, b]))
    copy = s.read_at(s.get_loops("B")[1], "B", 0, "lsram")
    s.blockize([copy, s.get_block("B")])
    return s


def outer(s, place):
    return s.get_loops(NESTED)[place]


STEPS_ON_NESTS = {
    "decompose_reduction": lambda s: s.decompose_reduction("B", s.add_unit_loop("B")),
    "rfactor": lambda s: s.rfactor(s.add_unit_loop("B"), 0),
    "loop_partition": lambda s: s.loop_partition(outer(s, 1), [2, None]),
    "parallel": lambda s: s.parallel(outer(s, 1)),
    "vectorize": lambda s: s.vectorize(outer(s, 1)),
    "bind": lambda s: s.bind(outer(s, 1), "threadIdx.x"),
    "bind rows": lambda s: s.bind(outer(s, 0), "threadIdx.x"),
    "reorder": lambda s: s.reorder(outer(s, 1), outer(s, 0)),
    "fuse": lambda s: s.fuse(outer(s, 0), outer(s, 1)),
    "split": lambda s: s.split(outer(s, 1), [None, 4]),
    "cache_write": lambda s: s.cache_write("B", 0, "lsram"),
    "cache_write outside": lambda s: s.cache_write(NESTED, 0, "lsram"),
    "write_at": lambda s: s.write_at(s.add_unit_loop("B"), "B", 0, "lsram"),
    "read_at": lambda s: s.read_at(s.add_unit_loop("B"), "B", 1, "lsram"),
    "reindex": lambda s: s.reindex("B", ("write", 0)),
    "reindex a read": lambda s: s.reindex("B", ("read", 0)),
    "transform_layout": lambda s: s.transform_layout("B", ("read", 0), lambda i, j: (j, i)),
    "transform_block_layout": lambda s: s.transform_block_layout(NESTED, lambda i, j: (j, i)),
    "unroll": lambda s: s.unroll(outer(s, 1)),
    "blockize": lambda s: s.blockize(outer(s, 1)),
    "merge": lambda s: s.merge(s.add_unit_loop("B"), s.add_unit_loop("X_lsram")),
    "reverse_compute_inline": lambda s: s.reverse_compute_inline("B"),
}


@pytest.mark.parametrize("step", STEPS_ON_NESTS)
def test_a_reduction_inside_of_a_block_goes_on(step):
    s = product()
    try:
        STEPS_ON_NESTS[step](s)
        module = tir.lower(s.mod, TARGET)
    except CompassError:
        assert step not in ("loop_partition", "split", "fuse", "cache_write", "unroll")
        return
    draw = np.random.default_rng(0)
    x, w, b = (
        draw.integers(-9, 9, (2, 6)).astype("int32"),
        draw.integers(-9, 9, 6).astype("int32"),
        np.zeros(2, "int32"),
    )
    Interpreter(module.entry_func)(x, w, b)
    np.testing.assert_array_equal(b, x @ w)


@S.prim_func
def by_address(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    a2 = S.match_buffer(a, (4, 8))
    b2 = S.match_buffer(b, (4, 8))
    t = S.alloc_buffer((4, 8), "int32", "lsram")
    for i, j in S.grid(4, 8):
        with S.block("T"):
            vi, vj = S.axis.remap("SS", [i, j])
            t[vi, vj] = a2[vi, vj] * 2
    for i in range(4):
        with S.block("V"):
            vi = S.axis.spatial(4, i)
            S.vstore(S.vload(t.addr_of((vi, 0))) + 1, b2.addr_of((vi, 0)))


MOVES = {
    "storage_align": lambda s: s.storage_align("T", 0, 0, 16, 4),
    "transform_layout": lambda s: s.transform_layout("T", ("write", 0), lambda i, j: (j, i)),
    "transform_layout of an output": lambda s: s.transform_layout("V", ("write", 0), lambda i, j: (j, i)),
    "unsafe_set_dtype": lambda s: s.unsafe_set_dtype("T", 0, "int16"),
    "cache_inplace": lambda s: s.cache_inplace("V", "b2", "lsram"),
    "cache_write": lambda s: s.cache_write("V", "b2", "lsram"),
    "reindex": lambda s: s.reindex("T", ("write", 0)),
}
STAYS = {
    "set_scope": lambda s: s.set_scope("T", 0, "shared"),
    "blockize": lambda s: s.blockize(s.get_loops("V")[0]),
    "unroll": lambda s: s.unroll(s.get_loops("V")[0]),
}


@pytest.mark.parametrize("step", MOVES)
def test_elements_that_are_reached_by_address_stay_where_they_are(step):
    s = schedule.Schedule(by_address)
    before = s.mod
    with pytest.raises(tir.ScheduleError, match=r"an address of '\w+' is taken|written by several blocks"):
        MOVES[step](s)
    assert s.mod is before


@pytest.mark.parametrize("step", STAYS)
def test_other_steps_know_nothing_of_addresses(step):
    s = schedule.Schedule(by_address)
    STAYS[step](s)
    a, b = np.arange(32, dtype="int32").reshape(4, 8), np.zeros((4, 8), "int32")
    BuildManager(TARGET).build(tir.lower(s.mod, TARGET))(a, b)
    np.testing.assert_array_equal(b, a * 2 + 1)


def test_partial_results_of_tecs_are_joined_in_memory_that_one_of_them_writes():
    """An accumulator in memory that all TECs see is no variable of each: all but one would store what it began with."""
    x = te.placeholder((3, 7, 5), "int32", name="X")
    rows, columns = te.reduce_axis((0, 7), name="r"), te.reduce_axis((0, 5), name="c")
    plain = te.create_prim_func([x, te.compute((3,), lambda i: te.max(x[i, rows, columns], [rows, columns]), name="B")])
    s = tir.Schedule(plain)
    outer = s.blockize(s.get_loops("B")[2])
    s.decompose_reduction(outer, s.get_loops(outer)[1])
    s.bind(s.get_loops("B")[-1], "threadIdx.x")
    given = np.random.default_rng(0).integers(-99, -9, (3, 7, 5)).astype("int32")
    made = np.zeros(3, "int32")
    targets.build(tir.lower(s.mod, TARGET), target=TARGET)(given, made)
    np.testing.assert_array_equal(made, given.max(axis=(1, 2)))


def test_what_a_block_around_indexes_is_no_axis_to_move_by():
    x = te.placeholder((3, 1, 2), "int32", name="X")
    s = tir.Schedule(te.create_prim_func([x, te.compute((3, 1, 2), lambda i, j, k: x[i, j, k] * 2 + 1, name="B")]))
    s.blockize(s.get_loops("B")[2])
    s.cache_read(
        "B", 0, "global"
    )  # a copy of what the block uses: here of all of it, at the places of the block around
    text = s.mod.script().replace("X_global = T.alloc((1, 1, 2)", "X_global = T.alloc((3, 1, 2)")
    text = text.replace("X_global[v0, v1, v2]", "X_global[(v_i_o + v0), v1, v2]")
    s = tir.Schedule(parse_module(text.replace("(X_global[0, v_j_o", "(X_global[v_i_o, v_j_o"), "<text>"))
    copy = s.get_block("X_global")
    before = s.mod.script()
    assert "[(v_i_o + v0), v1, v2] = " in before and "(X_global[v_i_o, v_j_o" in before
    for move in (s.reverse_compute_at, s.compute_at):
        with pytest.raises(tir.ScheduleError):
            move("B", s.get_loops(copy)[-1])
    assert s.mod.script() == before


def test_turns_of_a_sum_that_would_add_the_same_again_are_no_padding():
    """A window of one element is read without its axis: further turns would not meet zeros."""
    x = te.placeholder((4, 6), "int32", name="X")
    w = te.reduce_axis((0, 1), name="w")
    plain = te.create_prim_func([x, te.compute((4, 6), lambda i, j: te.sum(x[i + w, j], axis=w), name="B")])
    s = tir.Schedule(plain)
    s.cache_read("B", 0, "global")
    axes = [a.name for a in s.get(s.get_block("B")).vars]
    if len(axes) == 3:
        with pytest.raises(tir.ScheduleError):
            s.pad_einsum("B", [4, 4, 3])
    s.transform_block_layout("B", lambda i, j, k: [i, j, k])
    with pytest.raises(tir.ScheduleError, match="would add it again"):
        s.pad_einsum("B", [4, 4, 3])
    s.pad_einsum("B", [3, 4, 1])
    given, made = np.arange(24, dtype="int32").reshape(4, 6), np.zeros((4, 6), "int32")
    Interpreter(tir.lower(s.mod, TARGET).entry_func)(given, made)
    np.testing.assert_array_equal(made, given)


def test_functions_of_numbers_are_computed_in_vectors_and_in_the_memory_there_is():
    x = te.placeholder((64, 512), "float32", name="X")
    b = te.compute((64, 512), lambda i, j: te.exp(x[i, j]), name="B")
    f = te.create_prim_func([x, te.compute((64, 512), lambda i, j: b[i, j] * 2.0, name="C")])
    s = tir.Schedule(f)
    with pytest.raises(tir.LowerError, match="bytes, the schedule needs"):
        tir.lower(s.mod, TARGET)
    s.compute_inline("B")
    outer, _ = s.get_loops("C")
    s.read_at(outer, "C", 0, "lsram")
    s.write_at(outer, "C", 0, "lsram")
    s.vectorize(s.split(s.get_loops("C")[-1], [None, 8])[1])
    assert "float32x8" in tir.lower(s.mod, TARGET).script()
