"""Steps on blocks that do a part only, keep values for a turn, or write elements again: refused, or right."""

import random

import numpy as np
import pytest

from compassc import te, tir
from compassc.analysis.interpret import Interpreter
from compassc.dsl import schedule
from compassc.dsl import script as S
from compassc.ir import exprs as E
from compassc.ir import parse_module
from compassc.ir.exprs import Binary
from compassc.tir.blocks import number, view
from tests.tir import random_kernels
from tests.tir.test_steps import same


@S.prim_func
def half(a: S.ptr("i32", "global"), b: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, b2, c2 = S.match_buffer(a, (16,)), S.match_buffer(b, (16,)), S.match_buffer(c, (16,))
    for i in range(8):
        with S.block("P"):
            vi = S.axis.spatial(8, i)
            b2[vi] = a2[vi] * 3
    for i in range(16):
        with S.block("C"):
            vi = S.axis.spatial(16, i)
            c2[vi] = b2[vi] + 1


@S.prim_func
def half_open(a: S.ptr("i32", "global"), b: S.ptr("i32", "global"), c: S.ptr("i32", "global"), n: S.i32):
    a2, b2, c2 = S.match_buffer(a, (n + 8,)), S.match_buffer(b, (n + 8,)), S.match_buffer(c, (n + 8,))
    for i in range(n):
        with S.block("P"):
            vi = S.axis.spatial(n, i)
            b2[vi] = a2[vi] * 3
    for i in range(n + 8):
        with S.block("C"):
            vi = S.axis.spatial(n + 8, i)
            c2[vi] = b2[vi] + 1


@S.prim_func
def last(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    a2, b2 = S.match_buffer(a, (16,)), S.match_buffer(b, (4,))
    for i in range(16):
        with S.block("P"):
            vi = S.axis.spatial(16, i)
            b2[vi // 4] = a2[vi]


@S.prim_func
def scatter(a: S.ptr("i32", "global"), j: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    a2, j2, b2 = S.match_buffer(a, (16,)), S.match_buffer(j, (16,)), S.match_buffer(b, (4,))
    for i in range(16):
        with S.block("P"):
            vi = S.axis.spatial(16, i)
            b2[j2[vi] & 3] = a2[vi]


@S.prim_func
def in_hand(a: S.ptr("i32", "global"), r: S.ptr("i32", "global")):
    a2, r2 = S.match_buffer(a, (4, 8)), S.match_buffer(r, (4, 8))
    t, o = S.alloc_buffer((8,), "i32"), S.alloc_buffer((4, 8), "i32", "shared")
    for i in range(4):
        for j in range(8):
            with S.block("T"):
                vi, vj = S.axis.remap("SS", [i, j])
                t[vj] = a2[vi, vj] * 2
        for j in range(8):
            with S.block("O"):
                vi, vj = S.axis.remap("SS", [i, j])
                o[vi, vj] = t[7 - vj] + 1
    for i, j in S.grid(4, 8):
        with S.block("R"):
            vi, vj = S.axis.remap("SS", [i, j])
            r2[vi, vj] = o[vi, vj] * 3


@S.prim_func
def goes_on(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    a2, b2 = S.match_buffer(a, (4, 8)), S.match_buffer(b, (4, 8))
    for i in range(4):
        with S.block("O"):
            vi = S.axis.spatial(4, i)
            for j in range(8):
                with S.block("U"):
                    vj = S.axis.spatial(8, j)
                    b2[vi, vj] = b2[vi, vj] + a2[vi, vj]


@S.prim_func
def from_before(a: S.ptr("i32", "global"), b: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, b2, c2 = S.match_buffer(a, (8,)), S.match_buffer(b, (8,)), S.match_buffer(c, (8,))
    for i in range(8):
        with S.block("P"):
            vi = S.axis.spatial(8, i)
            a2[vi] = a2[vi] + 1
    for i in range(8):
        with S.block("T"):
            vi = S.axis.spatial(8, i)
            b2[vi] = a2[vi] * 3
        with S.block("U"):
            vi = S.axis.spatial(8, i)
            c2[vi] = b2[7 - vi]


@S.prim_func
def corner(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    a2, b2 = S.match_buffer(a, (3,)), S.match_buffer(b, (4, 3))
    for i, j in S.grid(2, 1):
        with S.block("P"):
            vi, vj = S.axis.spatial(2, i), S.axis.spatial(1, j)
            b2[vi + 2, vj + 2] = a2[1 - vi] + vj


@S.prim_func
def every_second(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    a2, b2 = S.match_buffer(a, (8,)), S.match_buffer(b, (8,))
    for i in range(8):
        with S.block("P"):
            vi = S.axis.spatial(8, i)
            a2[vi] = a2[vi] + 1
    for i in range(4):
        with S.block("C"):
            vi = S.axis.spatial(8, i * 2)
            b2[vi] = a2[vi] * 3


def _corner_followed(s):
    copy = s.cache_write("P", 0, "lsram")
    other = s.reindex_cache_read(copy, 0, "global", lambda i, j: (i, j))
    s.reverse_compute_at(copy, s.get_loops(other)[0])


def _corner_copied(s):
    s.split(s.get_loops("P")[1], [None, 4])
    s.cache_write("P", 0, "lsram")


def _turned(s):
    outer, inner = s.split(s.get_loops("P")[0], [2, 8])
    s.reorder(inner, outer)


@pytest.mark.parametrize("kernel,step,reason", [
    (half, lambda s: s.cache_read("C", 0, "lsram"), "'P' does not surely write all that 'C' reads"),
    (half, lambda s: s.cache_write("P", 0, "lsram", ["C"]), "'P' does not surely write all that 'C' reads"),
    (half, lambda s: s.reverse_compute_at("C", s.get_loops("P")[0]), "not surely give all points of its axis 'vi'"),
    (half_open, lambda s: s.reverse_compute_at("C", s.get_loops("P")[0]), "not surely give all points of its axis 'vi'"),
    (last, _turned, "may write the same element of 'b2'"),
    (last, lambda s: s.parallel(s.get_loops("P")[0]), "may write the same element of 'b2'"),
    (last, lambda s: s.blockize("P"), "may write the same element of 'b2'"),
    (scatter, lambda s: s.bind(s.get_loops("P")[0], "threadIdx.x"), "may write the same element of 'b2'"),
    (in_hand, lambda s: s.compute_at("O", s.get_loops("R")[0]), "what 'T' writes is there in a turn of 'i' only"),
    (in_hand, lambda s: s.compute_inline("O"), "what 'T' writes is there in a turn of 'i' only"),
    (every_second, lambda s: s.reverse_compute_at("C", s.get_loops("P")[0]), "do not surely give all values of its axes"),
    (from_before, lambda s: s.reverse_compute_at("T", s.get_loops("P")[0]), "'U' reads other elements of 'b2'"),
    (goes_on, lambda s: s.cache_write("O", 0, "lsram"), "it goes on with what is in 'b2'"),
    (goes_on, lambda s: s.cache_read("U", 0, "lsram"), "it writes 'b2', too"),
])  # fmt: skip
def test_what_a_part_does_is_not_taken_for_all(kernel, step, reason):
    s = schedule.Schedule(kernel)
    with pytest.raises(tir.ScheduleError, match=reason):
        step(s)


@pytest.mark.parametrize("kernel,step,shapes", [
    (half, lambda s: s.pad_einsum("P", [3]), [16, 16, 16]),
    (half, lambda s: s.cache_write("P", 0, "lsram"), [16, 16, 16]),
    (corner, _corner_copied, [3, (4, 3)]),
    (corner, _corner_followed, [3, (4, 3)]),
    (in_hand, lambda s: s.bind(s.get_loops("T")[0], "threadIdx.x"), [(4, 8), (4, 8)]),
    (in_hand, lambda s: s.reverse_compute_inline("R"), [(4, 8), (4, 8)]),
    (goes_on, lambda s: s.cache_inplace("O", 0, "lsram"), [(4, 8), (4, 8)]),
    (goes_on, lambda s: s.cache_inplace("U", 0, "lsram"), [(4, 8), (4, 8)]),
])  # fmt: skip
def test_legal_steps_on_parts_are_right(kernel, step, shapes):
    arrays = [np.random.default_rng(1).integers(-9, 9, shape).astype("int32") for shape in shapes]
    results = []
    for change in (lambda s: None, step):
        s = schedule.Schedule(kernel)
        change(s)
        given = [a.copy() for a in arrays]
        Interpreter(tir.lower(s.mod, "X2_1204").entry_func)(*given)
        results.append(given)
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_goes_round_stays_with_its_readers():
    x = te.placeholder((12,), "int32", name="x")
    b = te.compute((12,), lambda i: x[i] * 3, name="b")
    c = te.compute((10,), lambda i: b[i] + b[i + 1] + b[i + 2], name="c")
    d = te.compute((10,), lambda i: c[i] + 1, name="d")
    f = te.create_prim_func([x, d])
    s = tir.Schedule(f)
    s.compute_at("b", s.get_loops("c")[0])
    s.rolling_buffer("b", 0)
    for step in (lambda: s.compute_at("c", s.get_loops("d")[0]), lambda: s.compute_inline("c")):
        with pytest.raises(tir.ScheduleError, match="what 'b' writes is there in a turn of 'i' only"):
            step()
    s.reverse_compute_at("d", s.get_loops("c")[0])
    assert same(f, s, 12, 10)


def test_a_consumer_of_one_element_of_many_is_not_folded_into_all():
    x = te.placeholder((8, 4), "int32", name="x")
    b = te.compute((8, 4), lambda i, j: x[i, j] + 1, name="b")
    f = te.create_prim_func([x, te.compute((8,), lambda i: b[i, 0], name="c")])
    s = tir.Schedule(f)
    with pytest.raises(tir.ScheduleError, match="of dimension 1 of 'b' it reads one element"):
        s.reverse_compute_inline("c")
    s.compute_inline("b")
    assert same(f, s, (8, 4), 8)


@pytest.mark.parametrize("index,refused", [(lambda i: 7 - i, True), (lambda i: i, False)])
def test_folding_into_a_producer_waits_for_what_its_loops_make(index, refused):
    x = te.placeholder((8,), "int32", name="x")
    a = te.compute((8,), lambda i: x[i] + 1, name="a")
    b = te.compute((8,), lambda i: x[i] * 2, name="b")
    f = te.create_prim_func([x, te.compute((8,), lambda i: a[index(i)] + b[i], name="c")])
    s = tir.Schedule(f)
    s.merge(s.get_loops("a")[0], s.get_loops("b")[0])
    if refused:
        with pytest.raises(tir.ScheduleError, match="a turn of 'i' does not surely write all that it reads of 'a'"):
            s.reverse_compute_inline("c")
    else:
        s.reverse_compute_inline("c")
    assert same(f, s, 8, 8)


@pytest.mark.parametrize("padding", [[1, 8], [4, 3]])
def test_padding_ends_where_the_sum_does(padding):
    a, k = te.placeholder((6, 8), "int32", name="A"), te.reduce_axis((0, 5), "k")
    f = te.create_prim_func([a, te.compute((6,), lambda i: te.sum(a[i, k], axis=k), name="c")])
    s = tir.Schedule(f)
    s.pad_einsum("c", padding)
    assert same(f, s, (6, 8), 6)


def test_conditions_that_read_keep_what_they_read():
    x = te.placeholder((16,), "int32", name="x")
    m = te.compute((16,), lambda i: x[i] % 2, name="m")
    p = te.compute((16,), lambda i: te.if_then_else(m[i] > 0, x[i], te.const(7, "int32")), name="p")
    f = te.create_prim_func([x, te.compute((16,), lambda i: m[15 - i] + p[i], name="q")])
    s = tir.Schedule(f)
    s.decompose_padding("p", s.get_loops("p")[0])
    with pytest.raises(tir.ScheduleError, match="all the consumer.* 1 of 2 are not"):
        s.compute_at("m", s.get_loops("q")[0])
    assert same(f, s, 16, 16)


@S.prim_func
def goes_through(a: S.ptr("i32", "global"), p: S.ptr("i32", "global")):
    a2, p2 = S.match_buffer(a, (8,)), S.match_buffer(p, (8,))
    for i in range(8):
        with S.block("A"):
            vi = S.axis.spatial(8, i)
            p2[vi] = p2[vi] - p2[7 - vi]
    for i in range(8):
        with S.block("B"):
            vi = S.axis.spatial(8, i)
            p2[vi] = p2[vi] - a2[vi]


@S.prim_func
def given_again(a: S.ptr("i32", "global"), q: S.ptr("i32", "global"), r: S.ptr("i32", "global")):
    a2, q2, r2 = S.match_buffer(a, (8,)), S.match_buffer(q, (4,)), S.match_buffer(r, (4,))
    for i in range(8):
        with S.block("A"):
            vi = S.axis.spatial(8, i)
            q2[vi // 2] = a2[vi]
    for k in range(4):
        with S.block("B"):
            vk = S.axis.spatial(4, k)
            r2[vk] = q2[vk] * 2


def test_blocks_follow_a_producer_that_gives_each_element_once():
    s = schedule.Schedule(given_again)
    with pytest.raises(tir.ScheduleError, match="'A' does not give each element once"):
        s.reverse_compute_at("B", s.get_loops("A")[0])


@S.prim_func
def kept_for_a_turn(a: S.ptr("i32", "global"), r: S.ptr("i32", "global")):
    a2, r2 = S.match_buffer(a, (4, 8)), S.match_buffer(r, (4, 8))
    b, t = S.alloc_buffer((4, 8), "i32"), S.alloc_buffer((8,), "i32")
    for i, j in S.grid(4, 8):
        with S.block("B"):
            vi, vj = S.axis.remap("SS", [i, j])
            b[vi, vj] = a2[vi, vj] * 2
    for i, j in S.grid(4, 8):
        with S.block("T"):
            vi, vj = S.axis.remap("SS", [i, j])
            t[vj] = b[vi, vj] + 1
        with S.block("R"):
            vi, vj = S.axis.remap("SS", [i, j])
            r2[vi, vj] = t[vj] + 3


def test_what_a_turn_keeps_is_not_made_in_other_loops():
    s = schedule.Schedule(kept_for_a_turn)
    with pytest.raises(tir.ScheduleError, match="may write the same element of 't'"):
        s.reverse_compute_inline("T")


def test_updates_that_read_other_elements_stay_in_order():
    s = schedule.Schedule(goes_through)
    outer, inner = s.split(s.get_loops("A")[0], [2, 4])
    with pytest.raises(tir.ScheduleError, match="the order of the points of 'A' matters"):
        s.reorder(inner, outer)


def test_blocks_of_a_turn_are_computed_where_they_are():
    s = schedule.Schedule(in_hand)
    with pytest.raises(tir.ScheduleError, match="may write the same element of 't'"):
        s.compute_at("T", s.get_loops("O")[1])


@pytest.mark.parametrize("step", ["unroll", "vectorize"])
def test_open_loops_are_refused_at_the_step(step):
    n = te.var("n")
    x = te.placeholder((n,), "int32", name="x")
    s = tir.Schedule(te.create_prim_func([x, te.compute((n,), lambda i: x[i] + 1, name="y")]))
    with pytest.raises(tir.ScheduleError, match=f"{step} of 'i': its extent n is not constant"):
        getattr(s, step)(s.get_loops("y")[0])


def test_an_axis_of_open_extent_is_an_axis_of_the_outer_block():
    n = te.var("n")
    x, k = te.placeholder((n, 8), "int32", name="x"), te.reduce_axis((0, 8), "k")
    s = tir.Schedule(te.create_prim_func([x, te.compute((n,), lambda i: te.sum(x[i, k], axis=k), name="y")]))
    s.blockize(s.get_loops("y")[1])
    given, found = np.arange(40, dtype="int32").reshape(5, 8), np.zeros(5, "int32")
    Interpreter(tir.lower(s.mod, "X2_1204").entry_func)(given, found, 5)
    np.testing.assert_array_equal(found, given.sum(1))


def test_intrinsics_of_two_buffers_do_not_get_one():
    a = te.placeholder((16,), "int32", name="a")
    desc = te.create_prim_func([a, te.compute((16,), lambda i: a[i] + 1, name="b")])
    tir.TensorIntrin.register("moves.inc", desc, desc, override=True)
    s = schedule.Schedule(up)
    with pytest.raises(tir.ScheduleError, match="b2 for both b and a"):
        s.tensorize(s.get_loops("U")[0], "moves.inc")


@S.prim_func
def up(b: S.ptr("i32", "global")):
    b2 = S.match_buffer(b, (16,))
    for i in range(16):
        with S.block("U"):
            vi = S.axis.spatial(16, i)
            b2[vi] = b2[vi] + 1


@pytest.mark.parametrize("together", [True, False])
def test_copies_by_an_index_come_after_what_makes_the_index(together):
    x = te.placeholder((8,), "int32", name="x")
    j = te.compute((8,), lambda i: (i * 3) % 8, name="j")
    f = te.create_prim_func([x, te.compute((8,), lambda i: x[j[i]] + 1, name="y")])
    s = tir.Schedule(f)
    if together:
        s.compute_at("j", s.get_loops("y")[0])
        with pytest.raises(tir.ScheduleError, match="'j' uses it, too, in the loops of 'y'"):
            s.reindex("y", "x")
    else:
        s.reindex("y", "x")
    assert same(f, s, 8, 8)


def test_the_init_of_a_block_has_no_copies_of_its_own():
    made = random_kernels.Written(random.Random(0))
    i, k = axes = made.axes("SR", made.sizes)
    given, total = made.given[0], made.changed[1]
    value = Binary("add", E.BufferLoad(view(total), (i.var,)), E.BufferLoad(view(given), (i.var, k.var)))
    first = made.store(total, [i.var], E.BufferLoad(view(given), (i.var, number(1))))
    block = made.block(axes, made.store(total, [i.var], value), (first,))
    made.body.append(made.nest(axes, (block,)))
    s = tir.Schedule(made.finished())
    s.blockize(s.get_loops(block.name_hint)[0])
    with pytest.raises(tir.ScheduleError, match="a block of an init"):
        s.cache_read(f"{block.name_hint}_init", 0, "lsram")


@S.prim_func
def three_of_five(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    a2, b2 = S.match_buffer(a, (5,)), S.match_buffer(b, (5,))
    for i in range(3):
        with S.block("P"):
            vi = S.axis.spatial(5, i)
            b2[vi] = a2[vi]


@pytest.mark.parametrize(
    "step",
    [
        lambda s, b: s.pad_einsum(b, [4]),
        lambda s, b: s.transform_block_layout(b, lambda i: (4 - i,)),
        lambda s, b: s.reindex(b, ("write", 0)),
    ],
)
def test_loops_that_give_some_values_of_an_axis_are_no_loops_over_it(step):
    s = schedule.Schedule(three_of_five)
    with pytest.raises(
        tir.ScheduleError, match="does not give all values of its axis|not surely computed at all points"
    ):
        step(s, s.get_block("P", "three_of_five"))


def test_an_init_in_some_turns_does_not_keep_the_others_from_memory():
    a = te.placeholder((6, 3, 2, 3, 10), "int32", name="a")
    axes = [te.reduce_axis((0, extent), name) for extent, name in ((2, "k"), (3, "n"), (10, "m"))]
    b = te.compute((6, 3), lambda i, j: te.sum(a[(i, j, *axes)], axis=axes), name="b")
    f = te.create_prim_func([a, te.compute((6, 3), lambda i, j: b[i, j] + 1, name="c")])
    s = tir.Schedule(f)
    s.fuse(*s.get_loops("b")[1:4])  # of its turns each sixth one begins a sum
    s.set_scope("b", 0, "lsram")
    assert "b_lsram_value" in tir.lower(s.mod, "X2_1204").script()
    assert same(f, s, (6, 3, 2, 3, 10), (6, 3))


def test_a_sum_begins_only_where_its_condition_lets_it():
    a = te.placeholder((6,), "int32", name="a")
    k = te.reduce_axis((0, 2), "k")
    f = te.create_prim_func([a, te.compute((3,), lambda i: te.sum(a[i * 2 + k], axis=k), name="b")])
    s = tir.Schedule(f)
    _, inner = s.split(s.fuse(*s.get_loops("b")), [4, 2])  # the last turn of the outer loop does nothing
    with pytest.raises(tir.ScheduleError, match="its condition joins loops that are reduced over and others"):
        s.decompose_reduction("b", inner)
    assert same(f, s, 6, 3)


def test_what_was_cut_from_padding_stays_cut_when_it_moves():
    x = te.placeholder((3, 4), "int32", name="x")
    t = te.compute((3, 4), lambda i, j: x[i, j] + 1, name="t")
    f = te.create_prim_func([x, te.compute((3, 4), lambda i, j: t[i, j] * 2, name="o")])
    s = tir.Schedule(f)
    s.pad_einsum("o", [3, 3])
    (cut,) = s.get_consumers("o")
    s.compute_at("o", s.get_loops(cut)[1])
    s.reverse_compute_inline(cut)
    s.reverse_compute_at("o", s.get_loops(s.get_producers("o")[0])[0])
    assert same(f, s, (3, 4), (3, 4))


UNFINISHED = """
@I.module(target="", entry="main")
class Module:
    @T.func
    def main(a: T.ptr("int32", "global"), b: T.ptr("int32", "global"), c: T.ptr("int32", "global")) -> T.void:
        a_1 = T.match_buffer(a, (4, 8), "int32")
        b_1 = T.match_buffer(b, (4,), "int32")
        c_1 = T.match_buffer(c, (4, 8), "int32")
        for i in T.serial(0, 4, 1):
            for j in T.serial(0, 8, 1):
                with T.block("P"):
                    vi = T.axis.spatial(4, i)
                    vj = T.axis.spatial(8, j)
                    a_1[vi, vj] = a_1[vi, vj] + 1
        for i in T.serial(0, 4, 1):
            for j in T.serial(0, 8, 1):
                with T.block("T"):
                    vi = T.axis.spatial(4, i)
                    vj = T.axis.reduce(8, j)
                    with T.init():
                        b_1[vi] = 0
                    b_1[vi] = b_1[vi] + a_1[vi, vj]
                with T.block("U"):
                    vi = T.axis.spatial(4, i)
                    vj = T.axis.spatial(8, j)
                    c_1[vi, vj] = b_1[vi] + vj
"""


def test_a_sum_that_is_read_while_it_is_made_stays_with_its_reader():
    s = tir.Schedule(parse_module(UNFINISHED))
    with pytest.raises(tir.ScheduleError, match="or reads them unfinished"):
        s.reverse_compute_at("T", s.get_loops("P")[1])


@pytest.mark.parametrize("turned,refused", [(lambda a, b: (a, b), False), (lambda a, b: (b, a), True)])
@pytest.mark.parametrize("factor", [2, 4])
def test_sums_begin_in_the_first_turn_whatever_the_order_of_loops(turned, refused, factor):
    a, k = te.placeholder((4, 5, 3), "int32", name="a"), te.reduce_axis((0, 3), "k")
    f = te.create_prim_func([a, te.compute((4, 5), lambda i, j: te.sum(a[i, j, k], axis=k), name="b")])
    s = tir.Schedule(f)
    s.reorder(*turned(*s.split(s.fuse(*s.get_loops("b")[1:]), [None, factor])))
    if refused:
        with pytest.raises(
            tir.LowerError, match="'b' begins its sums where its reduced axes do, which is not the first"
        ):
            tir.lower(s.mod, "X2_1204")
    else:
        assert same(f, s, (4, 5, 3), (4, 5))


def test_sums_of_parts_of_a_fused_loop_begin_in_any_order():
    a, k = te.placeholder((4, 6), "int32", name="a"), te.reduce_axis((0, 6), "k")
    f = te.create_prim_func([a, te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="b")])
    s = tir.Schedule(f)
    s.reorder(*s.split(s.fuse(*s.get_loops("b")), [4, 3, 2])[::-1])
    assert same(f, s, (4, 6), 4)


def test_what_goes_round_has_no_halves():
    x = te.placeholder((64,), "int32", name="x")
    k = te.reduce_axis((0, 48), "k")
    f = te.create_prim_func([x, te.compute((8,), lambda i: te.sum(x[i * 2 + k], axis=k), name="c")])
    s = tir.Schedule(f)
    copy = s.read_at(s.get_loops("c")[0], "c", 0, "lsram")
    s.annotate(copy, "double_buffer_scope", 0)
    assert "x_lsram_half" in tir.lower(s.mod, "X2_1204").script()
    assert same(f, s, 64, 8)
    s.rolling_buffer(copy, 0)
    assert "x_lsram_half" not in tir.lower(s.mod, "X2_1204").script()
    assert same(f, s, 64, 8)


@S.prim_func
def read_after(a: S.ptr("i32", "global"), b: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, b2, c2 = S.match_buffer(a, (4, 64)), S.match_buffer(b, (4, 64)), S.match_buffer(c, (64,))
    t = S.alloc_buffer((64,), "i32", "lsram")
    for i in range(4):
        for j in range(64):
            with S.block("T"):
                vi, vj = S.axis.remap("SS", [i, j])
                t[vj] = a2[vi, vj]
        for j in range(64):
            with S.block("B"):
                vi, vj = S.axis.remap("SS", [i, j])
                b2[vi, vj] = t[vj] * 3
    for j in range(64):
        with S.block("C"):
            vj = S.axis.remap("S", [j])
            c2[vj] = t[vj] + 1


def test_what_is_read_after_the_loop_is_in_one_place():
    a = np.arange(256, dtype="int32").reshape(4, 64)
    b, c = np.zeros_like(a), np.zeros(64, "int32")
    s = schedule.Schedule(read_after)
    s.annotate("T", "double_buffer_scope", 0)
    Interpreter(tir.lower(s.mod, "X2_1204").entry_func)(a, b, c)
    np.testing.assert_array_equal(b, a * 3)
    np.testing.assert_array_equal(c, a[-1] + 1)
