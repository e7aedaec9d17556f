"""What each step on blocks makes, and when it is refused."""

from __future__ import annotations

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc import te, tir
from compassc.analysis.interpret import Interpreter
from compassc.dsl import BuildManager
from compassc.ir.dtypes import INT32
from compassc.ir.exprs import Binary, Var
from tests.choosing import some


def chain(n=32, m=16):
    """A, B = A + 1, C = B * 2."""
    a = te.placeholder((n, m), "int32", name="A")
    b = te.compute((n, m), lambda i, j: a[i, j] + 1, name="B")
    c = te.compute((n, m), lambda i, j: b[i, j] * 2, name="C")
    return te.create_prim_func([a, c])


def blur(n=16):
    a = te.placeholder((n + 2,), "int32", name="A")
    b = te.compute((n + 2,), lambda i: a[i] * 3, name="B")
    c = te.compute((n,), lambda i: b[i] + b[i + 1] + b[i + 2], name="C")
    return te.create_prim_func([a, c])


def matmul(n=8, m=8, k=16):
    a, b = te.placeholder((n, k), "int32", name="A"), te.placeholder((k, m), "int32", name="B")
    r = te.reduce_axis((0, k), name="k")
    return te.create_prim_func([a, b, te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], r), name="C")])


def same(plain, s, *shapes):
    """Whether a schedule computes what its function does."""
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-9, 9, shape).astype("int32") for shape in shapes]
    found = [a.copy() for a in arrays]
    for module, given in ((plain.module(), arrays), (s.mod, found)):
        Interpreter(tir.lower(module, "X2_1204").entry_func)(*given)
    for a, b in zip(arrays, found, strict=True):
        np.testing.assert_array_equal(a, b)
    return True


def test_compute_at_computes_what_a_turn_needs():
    f = blur()
    s = tir.Schedule(f)
    outer, _ = s.split(s.get_loops("C")[0], [None, 4])
    s.compute_at("B", outer)
    assert s.get(s.get_loops("B")[1]).stop.value == 6
    low = tir.lower(s.mod, "X2_1204", simple_mode=True).script()
    assert "B = T.alloc((6,)" in low, low
    assert same(f, s, 18, 16)


def test_reverse_compute_at_follows_the_producer():
    f = chain()
    s = tir.Schedule(f)
    s.reverse_compute_at("C", s.get_loops("B")[0])
    assert len(s.get_loops("C")) == 2 and s.get(s.get_loops("C")[0]) is s.get(s.get_loops("B")[0])
    assert same(f, s, (32, 16), (32, 16))


def test_what_is_given_in_part_is_not_read_early():
    s = tir.Schedule(blur())
    outer, _ = s.split(s.get_loops("B")[0], [None, 6])
    with pytest.raises(tir.ScheduleError, match="needs more than one element"):
        s.reverse_compute_at("C", outer)


@pytest.mark.parametrize("more", [0, 1])
def test_points_that_read_beyond_what_is_given_are_not_left_out(more):
    """The last point of the reduction takes a number in place of an element: no turn of B's loops gives one for it."""
    a, k = te.placeholder((4, 3), "int32", name="A"), te.reduce_axis((0, 4 + more), name="k")
    b = te.compute((4, 3), lambda i, j: a[i, j] + 1, name="B")
    c = te.compute((1, 3), lambda i, j: te.sum(te.if_then_else(i + k < 4, b[i + k, j], te.const(7)), axis=k), name="C")
    f = te.create_prim_func([a, b, c])
    s = tir.Schedule(f)
    if not more:
        s.reverse_compute_at("C", s.get_loops("B")[1])
        assert same(f, s, (4, 3), (4, 3), (1, 3))
        return
    with pytest.raises(tir.ScheduleError, match="axis 'v_i' and 'v_k' goes beyond dimension 0 of 'B'"):
        s.reverse_compute_at("C", s.get_loops("B")[1])


@pytest.mark.parametrize("step", ["compute_inline", "reverse_compute_inline"])
def test_inlining_leaves_one_block(step):
    f = chain()
    s = tir.Schedule(f)
    getattr(s, step)("B" if step == "compute_inline" else "C")
    assert len(s.get_child_blocks("root")) == 1 and "T.alloc" not in s.mod.script()
    assert same(f, s, (32, 16), (32, 16))


def test_caches_become_transfers():
    f = chain(64, 32)
    s = tir.Schedule(f)
    s.compute_inline("B")
    i, _ = s.get_loops("C")
    tec, rows = s.split(i, [4, None])
    s.bind(tec, "threadIdx.x")
    s.read_at(rows, "C", 0, "lsram")
    s.write_at(rows, "C", 0, "lsram")
    lowered = tir.lower(s.mod, "X2_1204").script()
    assert lowered.count("S.dma_copy(") == 2 and "A_lsram = T.alloc((1, 32)" in lowered, lowered
    a, c = np.arange(64 * 32, dtype="int32").reshape(64, 32), np.zeros((64, 32), "int32")
    BuildManager("X2_1204").build(s.mod)(a, c)
    np.testing.assert_array_equal(c, (a + 1) * 2)


def test_reductions_are_taken_apart():
    f = matmul()
    s = tir.Schedule(f)
    _, _, k = s.get_loops("C")
    ko, _ = s.split(k, [4, None])
    made = s.rfactor(ko, 0)
    assert s.get(made).name_hint == "C_rf" and s.get(made).writes[0].buffer.data.name == "C_rf"
    begin = s.decompose_reduction(made, s.get_loops(made)[2])
    assert s.get(begin).name_hint == "C_rf_init" and s.get(made).name_hint == "C_rf_update" and not s.get(made).init
    assert same(f, s, (8, 16), (16, 8), (8, 8))


def test_layouts_and_padding():
    f = chain(10, 6)
    s = tir.Schedule(f)
    s.transform_layout("B", ("write", 0), lambda i, j: (j, i // 4, i % 4), pad_value=7)
    assert "T.alloc((6, 3, 4)" in s.mod.script()
    s.transform_block_layout("C", lambda i, j: (i * 6 + j,))
    assert [x.stop.value for x in map(s.get, s.get_loops("C"))] == [60]
    assert same(f, s, (10, 6), (10, 6))
    f = matmul(5, 6, 7)
    s = tir.Schedule(f)
    s.pad_einsum("C", [4, 4, 4])
    assert [x.stop.value for x in map(s.get, s.get_loops("C"))] == [8, 8, 8]
    assert same(f, s, (5, 7), (7, 6), (5, 6))


def test_notes_and_samples():
    s = tir.Schedule(chain(), seed=5)
    i, _ = s.get_loops("B")
    s.annotate(i, "k", 1)
    s.annotate(i, "k", 2)
    assert dict(s.get(i).annotations) == {"k": 1} and "annotations={'k': 1}" in s.mod.script()
    with pytest.raises(tir.ScheduleError, match="it has the annotation|the loop has the annotation"):
        s.split(i, [2, None])
    s.unannotate(i, "k")
    with pytest.raises(IndexError, match="'k'"):
        s.unannotate(i, "k")
    factors = s.sample_perfect_tile(i, 3, 4)
    assert np.prod([s.get(v) for v in factors]) == 32 and s.get(factors[-1]) <= 4
    made = s.split(i, factors)
    assert s.trace.decisions and len(made) == 3
    again = tir.Schedule(chain(), seed=77)
    s.trace.apply_to_schedule(again)
    assert again.mod.script() == s.mod.script()
    other = s.sample_categorical([3, 5], [0.5, 0.5], decision=1)
    assert s.get(other) == 5


REFUSED = {
    "compute_at of .* it is an output": lambda s: s.compute_at("C", s.get_loops("B")[0]),
    "it is an output": lambda s: s.compute_inline("C"),
    "the loop is an ancestor of block 'B'": lambda s: s.compute_at("B", s.get_loops("B")[0]),
    "no place 3 among its 1 reads": lambda s: s.cache_read("C", 3, "lsram"),
    "'sram' is no memory": lambda s: s.cache_read("C", 0, "sram"),
    "there is no memory 'warp'": lambda s: s.set_scope("B", 0, "warp"),
    "it is a parameter": lambda s: s.set_scope("C", 0, "lsram"),
    "it is no reduction": lambda s: s.decompose_reduction("B", s.get_loops("B")[0]),
    "rfactor of .*it is no reduction": lambda s: s.rfactor(s.get_loops("B")[0], 0),
    "there is no dimension 2": lambda s: s.storage_align("B", 0, 2, 8, 0),
    "takes 1 indices": lambda s: s.transform_layout("B", "B", lambda i: i),
    "not surely one to one": lambda s: s.transform_layout("B", ("write", 0), lambda i, j: (i + j,)),
    "say what it holds": lambda s: s.transform_layout("B", ("write", 0), lambda i, j: (i // 5, i % 5, j)),
    "no choice between": lambda s: s.decompose_padding("B", s.get_loops("B")[0]),
    "the decision is 4": lambda s: s.sample_categorical([1], [1.0], decision=4),
}


@pytest.mark.parametrize("message", REFUSED)
def test_steps_are_refused_with_the_reason(message):
    s = tir.Schedule(chain())
    before = s.mod
    with pytest.raises(CompassError, match=message):
        REFUSED[message](s)
    assert s.mod is before


def test_index_maps():
    m = tir.IndexMap.from_func(lambda i, j: (j // 4, i, j % 4))
    assert [e.value for e in m.map_shape([3, 8])] == [2, 3, 4]
    data = np.arange(24).reshape(3, 8)
    moved = m.map_ndarray(data)
    assert moved.shape == (2, 3, 4) and (moved == data.reshape(3, 2, 4).transpose(1, 0, 2)).all()
    assert tir.IndexMap.from_text(m.as_text()).is_equivalent_to(m)
    with pytest.raises(CompassError, match="one to one"):
        tir.IndexMap.from_func(lambda i, j: (i + j,)).inverse([3, 8])


def test_blocks_of_blocks():
    f = matmul()
    s = tir.Schedule(f)
    i, j, k = s.get_loops("C")
    _, inner = s.split(j, [2, 4])
    s.reorder(i, inner, k)
    made = s.blockize(inner)
    assert [s.get(b).name_hint for b in s.get_child_blocks(made)] == ["C_init", "C"]
    assert [a.stop.value for a in map(s.get, s.get_loops("C"))] == [4, 16]
    assert same(f, s, (8, 16), (16, 8), (8, 8))


def unrolled(f, name):
    """A function with its loop unrolled: another way to compute the same."""
    s = tir.Schedule(f)
    s.unroll(s.get_loops(name)[0])
    return s.mod.entry_func


def times3(n, kind="int32"):
    x = te.placeholder((n,), kind, name="X")
    return te.create_prim_func([x, te.compute((n,), lambda i: x[i] * 3, name="Y")])


def test_tensorize_puts_the_implementation_there():
    tir.TensorIntrin.register("test.times3", times3(6), unrolled(times3(6), "Y"), override=True)
    f = blur()
    s = tir.Schedule(f)
    _, inner = s.split(s.get_loops("B")[0], [3, 6])
    s.tensorize(inner, "test.times3")
    assert "T.unrolled(0, 6, 1)" in s.mod.script() and same(f, s, 18, 16)


@pytest.mark.parametrize(
    "name, message",
    [("test.none", "there is no intrinsic 'test.none'"), ("test.4", r"loops of \[6\], the description loops of \[4\]"),
     ("test.two", "the program has .*3.*, the description .*2")],
)  # fmt: skip
def test_what_does_not_match_is_told(name, message):
    x = te.placeholder((6,), "int32", name="X")
    two = te.create_prim_func([x, te.compute((6,), lambda i: x[i] * 2, name="Y")])
    tir.TensorIntrin.register("test.4", times3(4), times3(4), override=True)
    tir.TensorIntrin.register("test.two", two, two, override=True)
    s = tir.Schedule(blur())
    _, inner = s.split(s.get_loops("B")[0], [3, 6])
    before = s.mod
    with pytest.raises(tir.ScheduleError, match=message):
        s.tensorize(inner, name)
    assert s.mod is before


def test_intrinsics_are_registered_once():
    tir.TensorIntrin.register("test.once", times3(4), times3(4), override=True)
    with pytest.raises(ValueError, match="registered already"):
        tir.TensorIntrin.register("test.once", times3(4), times3(4))
    with pytest.raises(ValueError, match="different parameters"):
        tir.TensorIntrin.register("test.other", times3(4), times3(4, "int16"))
    assert tir.TensorIntrin.get("test.missing", allow_missing=True) is None


def test_what_is_computed_in_part_is_no_producer_to_inline_into():
    a = te.placeholder((4,), "int32", name="A")
    p = te.compute((6,), lambda i: te.if_then_else(te.all(i >= 1, i < 5), a[i - 1], te.const(5, "int32")), name="P")
    s = tir.Schedule(te.create_prim_func([a, p]))
    s.reindex("P", ("read", 0))
    with pytest.raises(tir.ScheduleError, match="does not compute all of it"):
        s.reverse_compute_inline("P")


def test_a_copy_does_not_overwrite_what_is_left_alone():
    from compassc.ir import parse_module

    text = chain().script()
    assert "T.axis.spatial(16, j_1)" in text
    holes = text.replace("T.axis.spatial(16, j_1)", "T.axis.spatial(16, (j_1 * 2))").replace(
        "for j_1 in T.serial(0, 16, 1)", "for j_1 in T.serial(0, 8, 1)"
    )
    s = tir.Schedule(parse_module(holes))
    with pytest.raises(tir.ScheduleError, match="does not surely write all of it"):
        s.cache_write("C", 0, "lsram")


def test_merge_keeps_what_depends_in_order():
    s = tir.Schedule(chain())
    x = te.placeholder((8,), "int32", name="x")
    a = te.compute((8,), lambda i: x[i] + 1, name="a")
    b = te.compute((8,), lambda i: a[(i + 1) % 8] + 1, name="b")
    c = te.compute((8,), lambda i: b[i] + a[i], name="c")
    s = tir.Schedule(te.create_prim_func([x, c]))
    before = s.mod
    with pytest.raises(tir.ScheduleError, match="'c' would be computed before 'b', on which it depends"):
        s.merge(s.get_loops("a")[0], s.get_loops("c")[0])
    assert s.mod is before
    s.merge(s.get_loops("b")[0], s.get_loops("c")[0])
    assert same(te.create_prim_func([x, c]), s, 8, 8)
    f = chain()
    s = tir.Schedule(f)
    s.reverse_compute_at("C", s.get_loops("B")[0])
    s.merge(s.get_loops("B")[1], s.get_loops("C")[1])
    assert same(f, s, (32, 16), (32, 16))
    with pytest.raises(tir.ScheduleError, match="in nests of their own"):
        s.merge(*s.get_loops("B"))


def test_regions_of_what_is_gone_are_forgotten():
    f = chain()
    s = tir.Schedule(f)
    s.annotate_buffer_access("C", 0, "read", lambda i, j: [(0, 32), (0, 16)])
    s.compute_inline("B")
    assert "explicit_read_region" not in s.mod.script() and same(f, s, (32, 16), (32, 16))


def test_text_of_a_map_keeps_indices_of_one_name_apart():
    i, j = Var("i", INT32), Var("i", INT32)
    m = tir.IndexMap([i, j], [Binary("sub", j, i), i])
    again = eval(m.as_python(), {})
    assert again(3, 10) == (7, 3)
    assert tir.IndexMap.from_text(m.as_text()).as_text() == m.as_text() == tir.IndexMap.from_func(again).as_text()


def test_an_intrinsic_stands_alone():
    f = times3(8)
    loop, block = f.body[-1], None
    inner = tir.Schedule(f)
    block = inner.get(inner.get_block("Y"))
    assert block.iter_values[0] is loop.loop_var
    broken = f.replace(body=(*f.body[:-1], block))
    with pytest.raises(tir.ScheduleError, match="no function that stands alone: .* used but not defined"):
        tir.TensorIntrin.register("test.open", broken, f, override=True)


def test_turns_without_points_do_nothing_in_a_block_of_blocks():
    f = chain(2, 4)
    s = tir.Schedule(f)
    _, inner = s.split(s.get_loops("C")[0], [5, None])
    s.blockize(inner)
    assert same(f, s, (2, 4), (2, 4))


def test_what_is_computed_again_begins_again():
    x, w = te.placeholder((12,), "int32", name="x"), te.reduce_axis((0, 3), "w")
    a = te.compute((10,), lambda i: te.sum(x[i + w], axis=w), name="a")
    b = te.compute((9,), lambda i: a[i] + a[i + 1], name="b")
    c = te.compute((9, 2), lambda i, j: b[i], name="c")
    f = te.create_prim_func([x, c])
    for block, loop in some(("a", s_loop) for s_loop in (("b", 0), ("c", 1))):
        s = tir.Schedule(f)
        if loop[0] == "c":
            s.compute_inline("b")
        outer = s.get_loops(loop[0])[loop[1]]
        s.compute_at(block, outer)
        with pytest.raises(tir.ScheduleError, match="it computes the same elements"):
            s.decompose_reduction(block, s.get_loops(loop[0])[0])
        s.decompose_reduction(block, s.get_loops(block)[loop[1] + 1])
        assert same(f, s, 12, (9, 2))


def test_an_update_is_not_padded_without_its_init():
    s = tir.Schedule(matmul(5, 6, 7))
    s.decompose_reduction("C", s.get_loops("C")[0])
    with pytest.raises(tir.ScheduleError, match="it updates 'C', whose init is in another block"):
        s.pad_einsum("C_update", [4, 4, 4])


def test_points_that_nobody_computes_are_not_inlined():
    """What pads has more points than what it reads."""
    x = te.placeholder((5,), "int32", name="X")
    a = te.compute((5,), lambda i: x[i] + 1, name="A")
    padded = te.compute((8,), lambda i: te.if_then_else(i < 5, a[i], 0), name="P")
    s = tir.Schedule(te.create_prim_func([x, padded]))
    before = s.mod
    with pytest.raises(tir.ScheduleError, match="'A' does not compute all points of its axis 'v_i'"):
        s.reverse_compute_inline("P")
    assert s.mod is before
