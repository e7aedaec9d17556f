"""From loops to what the NPU is fast with: what each step makes of a kernel, and that results stay."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from compassc import te
from compassc.analysis.interpret import Interpreter
from compassc.dsl import BuildManager

TARGET = "X2_1204"


def lowered(schedule, args):
    return te.lower(schedule, args, "k", target=TARGET)


def row_copy(shape, cut, scope="lsram"):
    """b = a[cut], through a copy in SRAM that one turn of the outermost loop has."""
    a = te.placeholder(shape, "int32", name="a")
    b = te.compute(cut, lambda *i: a[i] * 2, name="b")
    s = te.create_schedule(b)
    copy = s.cache_read(a, scope, [b])
    return a, b, s, copy


def test_a_copy_of_rows_is_one_transfer_with_strides():
    a, b, s, copy = row_copy((16, 40), (8, 24))
    s[copy].compute_at(s[b], s[b].split(b.op.axis[0], factor=4)[0])
    text = lowered(s, [a, b]).script()
    assert "S.dma_copy(T.addr(a_lsram, 0), T.addr(a, (i0_outer * 160)), 96, 160, 384, 96" in text
    a, b, s, copy = row_copy((16, 40), (8, 40))
    s[copy].compute_at(s[b], s[b].split(b.op.axis[0], factor=4)[0])
    assert "T.addr(a, (i0_outer * 160)), 640, 640, 640, 640" in lowered(s, [a, b]).script()


def test_tails_are_shorter_transfers():
    a, b, s, copy = row_copy((1000,), (1000,))
    outer, _ = s[b].split(b.op.axis[0], factor=64)
    s[copy].compute_at(s[b], outer)
    text = lowered(s, [a, b]).script()
    assert "T.addr(a, (i0_outer * 64)), 256, 256, 256, 256" in text  # the inside of the loop
    assert "T.addr(a, 960), 160, 160, 160, 160" in text  # the last turn


def test_padding_is_filled_where_there_is_some():
    a = te.placeholder((30, 30), "int32", name="a")
    padded = te.compute(
        (32, 32),
        lambda i, j: te.if_then_else(te.all(i >= 1, i < 31, j >= 1, j < 31), a[i - 1, j - 1], te.const(7)),
        name="p",
    )
    k = te.reduce_axis((0, 3), "k")
    b = te.compute((30, 32), lambda i, j: te.sum(padded[i + k, j], axis=k), name="b")
    s = te.create_schedule(b)
    s[padded].compute_at(s[b], s[b].split(b.op.axis[0], factor=5)[0])
    module = lowered(s, [a, b])
    text = module.script()
    assert text.count("S.dma_copy") >= 1 and "S.dma_memset(T.addr(p, 0), 896, 7" in text
    x, found = np.arange(900, dtype="int32").reshape(30, 30), np.zeros((30, 32), "int32")
    Interpreter(module.entry_func)(x, found)
    whole = np.full((32, 32), 7, "int32")
    whole[1:31, 1:31] = x
    np.testing.assert_array_equal(found, whole[:-2] + whole[1:-1] + whole[2:])


def test_small_copies_stay_loops():
    a, b, s, copy = row_copy((4, 40), (4, 4))
    s[copy].compute_at(s[b], b.op.axis[0])
    assert "dma" not in lowered(s, [a, b]).script()


def double_buffered(n):
    a = te.placeholder((n,), "int32", name="a")
    b = te.compute((n,), lambda i: a[i] * 3, name="b")
    s = te.create_schedule(b)
    out = s.cache_write(b, "lsram")
    copy = s.cache_read(a, "lsram", [out])
    outer, _ = s[b].split(b.op.axis[0], factor=16)
    for t in (out, copy):
        s[t].compute_at(s[b], outer)
        s[t].double_buffer()
    return a, b, s, outer


@pytest.mark.parametrize("bound", [False, True])
@pytest.mark.parametrize("early", [False, True])
def test_double_buffers_run_transfers_beside_the_work(bound, early):
    a, b, s, outer = double_buffered(200)
    if bound:
        s[b].bind(outer, te.thread_axis("threadIdx.x"))
    module = lowered(s, [a, b])
    text = module.script()
    assert 'a_lsram = T.alloc((2, 16), "int32", "lsram")' in text and "S.dma_copy(" not in text
    assert text.count("alloc_event") == 2 and text.count("free_events") == 2
    x, found = np.arange(200, dtype="int32"), np.zeros(200, "int32")
    Interpreter(module.entry_func, early=early)(x, found)
    np.testing.assert_array_equal(found, x * 3)
    found[:] = 0
    BuildManager(TARGET).build(module)(x, found)
    np.testing.assert_array_equal(found, x * 3)


def test_too_many_double_buffers_are_refused():
    tensors = [te.placeholder((64,), "int32", name=f"a{i}") for i in range(5)]
    b = te.compute((64,), lambda i: sum((t[i] for t in tensors[1:]), tensors[0][i]), name="b")
    s = te.create_schedule(b)
    outer, _ = s[b].split(b.op.axis[0], factor=16)
    for t in tensors:
        copy = s.cache_read(t, "lsram", [b])
        s[copy].compute_at(s[b], outer)
        s[copy].double_buffer()
    with pytest.raises(te.LowerError, match="5 double buffers .* need an event each, a TEC has 4"):
        lowered(s, [*tensors, b])


def test_bytes_are_multiplied_four_lanes_at_a_time():
    a, b = (te.placeholder((4, 100), "int8", name=n) for n in "ab")
    k = te.reduce_axis((0, 100), "k")
    c = te.compute((4, 4), lambda i, j: te.sum(a[i, k].astype("int32") * b[j, k].astype("int32"), axis=k), name="c")
    s = te.create_schedule(c)
    _, inner = s[c].split(k, factor=32)
    s[c].vectorize(inner)
    module = lowered(s, [a, b, c])
    text = module.script()
    assert "S.vqdpa(c_lanes" in text
    draw = np.random.default_rng(0)
    x, y = (draw.integers(-128, 128, (4, 100)).astype("int8") for _ in "xy")
    for run in (Interpreter(module.entry_func), BuildManager(TARGET).build(module)):
        found = np.zeros((4, 4), "int32")
        run(x, y, found)
        np.testing.assert_array_equal(found, x.astype("int32") @ y.astype("int32").T)


def test_sums_that_could_leave_32_bits_are_not_clipped():
    n = 1 << 20  # a lane adds 2**17 products of up to 2**14
    a = te.placeholder((n,), "int8", name="a")
    k = te.reduce_axis((0, n), "k")
    c = te.compute((1,), lambda i: te.sum(a[k].astype("int32") * a[k].astype("int32"), axis=k), name="c")
    s = te.create_schedule(c)
    s[c].vectorize(s[c].split(k, factor=32)[1])
    assert "vqdpa" not in lowered(s, [a, c]).script()


@pytest.mark.parametrize("reducer", ["sum", "max", "min", "prod"])
@pytest.mark.parametrize("kind", ["int32", "float32", "int16", "int8", "float16"])
def test_reductions_have_an_accumulator_of_lanes(reducer, kind):
    a = te.placeholder((3, 83), kind, name="a")
    k = te.reduce_axis((0, 83), "k")
    c = te.compute((3,), lambda i: getattr(te, reducer)(a[i, k], axis=k), name="c")
    s = te.create_schedule(c)
    s[c].vectorize(s[c].split(k, factor=32)[1])
    module = lowered(s, [a, c])
    assert ("c_lanes" in module.script()) == ((reducer, kind) != ("prod", "int8")), "there is no product of bytes"
    x, found = np.random.default_rng(0).integers(-9, 9, (3, 83)).astype(kind), np.zeros(3, kind)
    if reducer == "prod":
        x = np.where(x < 0, -1, np.where(x == 8, 2, 1)).astype(kind)
    BuildManager(TARGET).build(module)(x, found)
    np.testing.assert_array_equal(
        found, getattr(x, reducer)(axis=1, dtype=kind) if reducer in ("sum", "prod") else getattr(x, reducer)(axis=1)
    )


@pytest.mark.parametrize(("target", "operation"), [("X2_1204", "vqdpa"), ("X3P_1304", "vfmao")])
@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_products_of_halves_are_added_in_float32(target, operation, kind):
    a, b = (te.placeholder((5, 71), kind, name=n) for n in "ab")
    k = te.reduce_axis((0, 71), "k")
    c = te.compute((5,), lambda i: te.sum(a[i, k].astype("float32") * b[i, k].astype("float32"), axis=k), name="c")
    s = te.create_schedule(c)
    s[c].vectorize(s[c].split(k, factor=16)[1])
    module = te.lower(s, [a, b, c], "k", target=target)
    assert operation in module.script()
    draw = np.random.default_rng(0)
    x, y = (draw.integers(-9, 9, (5, 71)).astype("f4") for _ in "ab")
    found = np.zeros(5, "f4")
    halves = [v.astype("float16" if kind == "float16" else ml_dtypes.bfloat16) for v in (x, y)]
    BuildManager(target).build(module)(*halves, found)
    np.testing.assert_array_equal(found, (x * y).sum(1))


def test_elements_that_a_loop_adds_to_are_variables_in_it():
    a, b = te.placeholder((24, 8), name="a"), te.placeholder((8, 32), name="b")
    k = te.reduce_axis((0, 8), "k")
    c = te.compute((24, 32), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    s = te.create_schedule(c)
    _, _, rows, lanes = s[c].tile(*c.op.axis, 4, 8)
    s[c].reorder(k, rows, lanes)
    s[c].unroll(rows)
    s[c].vectorize(lanes)
    module = lowered(s, [a, b, c])
    text = module.script()
    assert text.count(": T.float32x8 = T.splat(T.float32(0.0), 8)") == 4 and text.count("= S.fma(c_value") == 4
    x, y = (np.random.default_rng(0).normal(0, 1, t).astype("float32") for t in ((24, 8), (8, 32)))
    found = np.zeros((24, 32), "float32")
    BuildManager(TARGET).build(module)(x, y, found)
    np.testing.assert_allclose(found, x @ y, rtol=1e-5, atol=1e-5)


def test_what_does_not_fit_is_refused_with_a_table():
    a, b, s, _ = row_copy((64, 1024), (64, 1024))
    with pytest.raises(te.LowerError, match=r"LSRAM of a TEC on X2_1204 has 32,768 bytes, the schedule needs 262,144"):
        lowered(s, [a, b])
    a = te.placeholder((4096,), "int32", name="a")
    t = a
    for number in range(4):
        before = t
        t = te.compute((4096,), lambda i: before[i] + 1, name=f"t{number}")  # noqa: B023 - called at once
    s = te.create_schedule(t)
    BuildManager(TARGET).build(lowered(s, [a, t]))  # t0 and t2 lie in one place


def test_a_guard_of_the_element_that_lanes_are_joined_to_stays():
    a = te.placeholder((4, 15), "int8", name="a")
    k = te.reduce_axis((0, 12), "k")
    b = te.compute((1, 15), lambda i, j: te.sum(a[i, j].astype("int32") * k, axis=k), name="b")
    s = te.create_schedule(b)
    local = s.cache_write(b, "lsram")
    _, lanes = s[local].split(local.op.reduce_axis[0], factor=4)
    s[local].vectorize(lanes)
    s[local].split(local.op.axis[0], nparts=3)
    module = lowered(s, [a, b])
    x, found = np.arange(60, dtype="int8").reshape(4, 15), np.zeros((1, 15), "int32")
    Interpreter(module.entry_func)(x, found)
    np.testing.assert_array_equal(found, x[:1] * np.int32(66))


def test_sizes_are_known_when_the_kernel_runs():
    n = te.size_var("n")
    a, b = (te.placeholder((n,), "float16", name=name) for name in "ab")
    c = te.compute((n,), lambda i: a[i] + b[i], name="c")
    s = te.create_schedule(c)
    local = s.cache_write(c, "lsram")
    copies = [s.cache_read(t, "lsram", [local]) for t in (a, b)]
    outer, _ = s[c].split(c.op.axis[0], factor=256)
    s[c].bind(outer, te.thread_axis("threadIdx.x"))
    for t in (local, *copies):
        s[t].compute_at(s[c], outer)
        s[t].double_buffer()
    s[local].vectorize(s[local].split(local.op.axis[0], factor=16)[1])
    run = BuildManager(TARGET).build(te.lower(s, [a, b, c, n], "k", target=TARGET))
    for size in (1, 255, 256, 3000):
        x, y = np.random.default_rng(0).normal(0, 1, (2, size)).astype("float16")
        found = np.zeros_like(x)
        run(x, y, found, size)
        np.testing.assert_array_equal(found, x + y)


def test_a_number_that_a_loop_keeps_is_seen_by_the_lanes_that_are_joined():
    """Both the sum and the number that it uses are variables in the loop."""
    a = te.placeholder((4, 64), "int32", name="a")
    k, j = (te.reduce_axis((0, 64), n) for n in "kj")
    top = te.compute((4,), lambda i: te.max(a[i, k], axis=k), name="top")
    out = te.compute((4,), lambda i: te.sum(te.Select(a[i, j] == top[i], 1, 0), axis=j), name="out")
    s = te.create_schedule(out)
    copy = s.cache_read(top, "lsram", [out])
    outer, inner = s[out].split(j, factor=32)
    s[copy].compute_at(s[out], outer)
    s[out].vectorize(s[out].split(inner, factor=16)[1])
    x, found = np.random.default_rng(0).integers(0, 5, (4, 64)).astype("i4"), np.zeros(4, "i4")
    BuildManager(TARGET).build(lowered(s, [a, out]))(x, found)
    np.testing.assert_array_equal(found, (x == x.max(1, keepdims=True)).sum(1))
