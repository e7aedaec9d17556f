"""Blocks in the IR, functions of blocks, and the steps on their loops."""

from __future__ import annotations

import json

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc import te, tir
from compassc.analysis.interpret import Interpreter
from compassc.dsl import BuildManager
from compassc.ir import parse_module, structural_equal
from compassc.ir.verify import VerifyError, verify


def row_sums(n=16, m=64, dtype="float32"):
    a = te.placeholder((n, m), dtype, name="A")
    k = te.reduce_axis((0, m), name="k")
    b = te.compute((n,), lambda i: te.sum(a[i, k], axis=k), name="B")
    c = te.compute((n,), lambda i: b[i] * 2, name="C")
    return te.create_prim_func([a, c])


def scaled(n=100):
    a = te.placeholder((n,), name="A")
    return te.create_prim_func([a, te.compute((n,), lambda i: a[i] * 2.0, name="B")])


def test_a_function_of_blocks_reads_as_declared():
    text = row_sums().script()
    for line in (
        'with T.block("B"):',
        "v_k = T.axis.reduce(64, k)",
        "T.reads(A_1[v_i, v_k])",
        "T.writes(B[v_i])",
        "with T.init():",
    ):
        assert line in text, text


def test_blocks_read_back_and_are_verified():
    module = row_sums().module()
    verify(module)
    assert structural_equal(parse_module(module.script()), module)
    doubled = module.entry_func.replace(body=(*module.entry_func.body, module.entry_func.body[-1]))
    with pytest.raises(VerifyError):
        verify(doubled.module())


@pytest.mark.parametrize(
    "line, wrong",
    [
        ("T.reads(A_1[v_i, v_k])", "T.reads(3)"),
        ("T.axis.reduce(64, k)", "T.axis.odd(64, k)"),
        ('with T.block("B"):', "with open(1):"),
    ],
)
def test_damaged_blocks_are_refused(line, wrong):
    text = row_sums().script()
    assert line in text
    with pytest.raises(CompassError):
        parse_module(text.replace(line, wrong))


def test_the_whole_way_to_the_simulator():
    s = tir.Schedule(row_sums(dtype="int32"))
    i, _ = s.get_loops("B")
    outer, _ = s.split(i, [None, 4])
    s.bind(outer, "threadIdx.x")
    (j,) = s.get_loops("C")
    _, lanes = s.split(j, [None, 8])
    s.vectorize(lanes)
    a, c = np.arange(16 * 64, dtype="int32").reshape(16, 64), np.zeros(16, "int32")
    BuildManager("X2_1204").build(s.mod)(a, c)
    np.testing.assert_array_equal(c, a.sum(1) * 2)


def test_a_placeholder_that_is_missing():
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] + 1.0, name="B")
    with pytest.raises(CompassError, match="'A' is needed but not among the arguments"):
        te.create_prim_func([b])


def test_split_guards_what_it_does_not_divide():
    s = tir.Schedule(scaled())
    (i,) = s.get_loops("B")
    outer, inner = s.split(i, [None, 16])
    assert s.get(outer).stop.value == 7 and s.get(inner).stop.value == 16
    assert "T.where((((i_0 * 16) + i_1) < 100))" in s.mod.script()
    with pytest.raises(tir.ScheduleError, match="removed"):
        s.get(i)


def test_split_without_predicate():
    s = tir.Schedule(scaled())
    s.split(s.get_loops("B")[0], [None, 16], disable_predication=True)
    assert "T.where" not in s.mod.script()


REFUSED = {
    "factor 1 is 0": lambda s, i, k, j: s.split(i, [None, 0]),
    "2 factors are left open": lambda s, i, k, j: s.split(i, [None, -1]),
    "is not surely its extent 16 or more": lambda s, i, k, j: s.split(i, [3, 4]),
    "'i' is not directly around 'i'": lambda s, i, k, j: s.fuse(i, j),
    "do not stand one within the other": lambda s, i, k, j: s.reorder(i, j),
    "the loop '.' is given twice": lambda s, i, k, j: s.reorder(i, i),
    "reduced over, not spatial": lambda s, i, k, j: s.parallel(k),
    "Cannot find a block with the name: D": lambda s, i, k, j: s.get_block("D"),
    "is none of blockIdx.x": lambda s, i, k, j: s.bind(i, "warp"),
    "split: loop is a LoopRV, got int": lambda s, i, k, j: s.split(3, [2, None]),
    "'B' of|the root block": lambda s, i, k, j: s.add_unit_loop(s.get_block("root")),
    "is no order of its 2 axes": lambda s, i, k, j: s.reorder_block_iter_var("B", [0, 0]),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_not_legal_is_refused_and_changes_nothing(message):
    s = tir.Schedule(row_sums())
    i, k = s.get_loops("B")
    (j,) = s.get_loops("C")
    before, steps = s.mod, len(s.trace)
    with pytest.raises(CompassError, match=message):
        REFUSED[message](s, i, k, j)
    assert s.mod is before
    assert all(x.kind.startswith("Get") for x in s.trace.insts[steps:])


@pytest.mark.parametrize("factors", [[4, None], [None, 4], [3, None, 2]])
@pytest.mark.parametrize("bound", [0, 1])
def test_tecs_reduce_a_part_each(factors, bound):
    """A loop of a reduction that is bound: the TECs' parts meet in shared memory."""
    s = tir.Schedule(row_sums())
    _, k = s.get_loops("B")
    s.bind(s.split(k, factors)[bound], "threadIdx.x")
    text = tir.lower(s.mod, "X2_1204", simple_mode=True).script()
    assert "B_rf = T.alloc" in text and '"shared"' in text
    a, c = np.random.default_rng(0).integers(-9, 9, (16, 64)).astype("float32"), np.zeros(16, "float32")
    Interpreter(tir.lower(s.mod, "X2_1204").entry_func)(a, c)
    np.testing.assert_array_equal(c, a.sum(1) * 2)


def test_an_unknown_reduction_is_not_shared_out():
    s = tir.Schedule(row_sums())
    i, k = s.get_loops("B")
    s.bind(s.fuse(i, k), "threadIdx.x")
    with pytest.raises(tir.LowerError, match="'B' reduces over 'i_k_fused', which is bound to threadIdx_x"):
        tir.lower(s.mod, "X2_1204")


def test_lanes_are_of_a_reduction_or_not():
    s = tir.Schedule(row_sums())
    both = s.fuse(*s.get_loops("B"))
    with pytest.raises(tir.ScheduleError, match="'B' is reduced over it in part only"):
        s.vectorize(both)


def test_traces_say_which_step_does_not_fit():
    s = tir.Schedule(row_sums())
    s.get_loops("B")
    rows, decisions = json.loads(json.dumps(s.trace.as_json()))
    for damaged, message in (
        ([["Nothing", [], [], []]], "step 0: there is no instruction 'Nothing'"),
        ([*rows, ["Unroll", ["l9"], [], []]], "step 2, Unroll: 'l9' was not made"),
        ([rows[0], ["GetLoops", ["b0"], [], ["l1"]]], "step 1, GetLoops: it gives 2 values, not 1"),
    ):
        with pytest.raises(tir.ScheduleError, match=message):
            tir.Trace.apply_json_to_schedule([damaged, decisions], tir.Schedule(row_sums()))


def test_queries():
    s = tir.Schedule(row_sums())
    names = lambda blocks: [s.get(b).name_hint for b in blocks]
    assert names(s.get_child_blocks("root")) == ["B", "C"]
    assert names(s.get_producers("C")) == ["B"] and names(s.get_consumers("B")) == ["C"]
    assert names(s.get_output_blocks("root")) == ["C"]


def test_copies_are_independent():
    s = tir.Schedule(row_sums(), seed=3)
    i, _ = s.get_loops("B")
    other = s.copy()
    other.split(i, [4, 4])
    s.unroll(i)
    assert "unrolled" in s.mod.script() and "unrolled" not in other.mod.script()


@pytest.mark.parametrize("of", [te.create_schedule, None])
def test_padding_reads_only_what_is_there(of):
    a = te.placeholder((7,), "int32", name="A")
    b = te.compute((9,), lambda i: te.if_then_else(te.all(i >= 1, i < 8), a[i - 1], te.const(5, "int32")), name="B")
    module = te.create_prim_func([a, b]) if of is None else te.lower(of(b.op), [a, b], "padded", "X2_1204")
    given, found = np.arange(7, dtype="int32"), np.zeros(9, "int32")
    BuildManager("X2_1204").build(module)(given, found)
    np.testing.assert_array_equal(found, np.pad(given, 1, constant_values=5))
