"""Blocks for CUDA devices: threads, shared memory and the barriers that it needs, run by an emulated device."""

from __future__ import annotations

import numpy as np
import pytest

from compassc import targets, te, tir
from compassc.analysis.itermap import separates
from compassc.ir import parse_module
from compassc.ir.dtypes import INT32
from compassc.ir.exprs import Binary, IntImm, Var
from compassc.targets import nvrtc
from tests.targets import random_grids
from tests.targets.emulated_cuda import emulated
from tests.tir import random_blocks

BARRIER = "__syncthreads();"


@pytest.fixture
def device(tmp_path):
    with emulated(tmp_path) as driver:
        yield driver


def product(n, m, k, tile=8, depth=4, threads=None):
    """A matrix product with tiles of both operands in shared memory, which the threads of a block fill together."""
    a, b = te.placeholder((n, k), "int32", name="A"), te.placeholder((k, m), "int32", name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    s = tir.Schedule(te.create_prim_func([a, b, c]))
    block = s.get_block("C")
    local = s.cache_write(block, 0, "local")
    i, j, inner = s.get_loops(block)
    (bx, tx), (by, ty) = s.split(i, [None, tile]), s.split(j, [None, tile])
    pieces, inside = s.split(inner, [None, depth])
    s.reorder(bx, by, tx, ty, pieces, inside)
    for loop, tag in ((bx, "blockIdx.x"), (by, "blockIdx.y"), (tx, "threadIdx.x"), (ty, "threadIdx.y")):
        s.bind(loop, tag)
    s.reverse_compute_at(local, ty)
    for operand in (0, 1):
        copy = s.cache_read(block, operand, "shared")
        s.compute_at(copy, pieces)
        rows, columns = s.get_loops(copy)[-2:]
        halves = [s.split(x, [threads or tile, None]) for x in (rows, columns)]
        s.reorder(*(h[0] for h in halves), *(h[1] for h in halves))
        for (outer, _), tag in zip(halves, ("threadIdx.x", "threadIdx.y")):
            s.bind(outer, tag)
    return s


def check_product(module, n, m, k):
    draw = np.random.default_rng(0)
    a, b = (draw.integers(-9, 9, shape).astype("int32") for shape in ((n, k), (k, m)))
    c = np.zeros((n, m), "int32")
    module(a, b, c)
    np.testing.assert_array_equal(c, a @ b)


@pytest.mark.parametrize("sizes", [(16, 24, 16), (20, 33, 16)])
def test_threads_fill_tiles_together(device, sizes):
    module = targets.build(product(*sizes).mod, target="cuda")
    text = module.get_source()
    assert text.count(BARRIER) == 2 and text.count("__shared__") == 2, text
    check_product(module, *sizes)


@pytest.mark.skipif(nvrtc.library() is None, reason=f"no NVRTC: {nvrtc.HOW_TO_GET}")
def test_blocks_have_ptx():
    text = targets.build(product(16, 24, 16).mod, target="cuda").get_source("ptx")
    assert text.count("bar.sync") >= 2 and ".shared" in text


@pytest.mark.parametrize("missing", [0, 1])
def test_a_missing_barrier_is_found(device, missing):
    """What the other tests rest on: the emulated device gives wrong results where a barrier is left out."""

    def edit(text):
        parts = text.split(BARRIER)
        return BARRIER.join(parts[: missing + 1]) + BARRIER.join(parts[missing + 1 :])

    device.edit = edit
    module = targets.build(product(16, 24, 16).mod, target="cuda")
    with pytest.raises(AssertionError):
        for _ in range(4):
            check_product(module, 16, 24, 16)


def test_threads_that_wait_for_ever_are_found(device):
    device.edit = lambda text: text.replace(BARRIER, f"if (threadIdx.x) {BARRIER}", 1)
    with pytest.raises(AssertionError, match="where others do not come"):
        check_product(targets.build(product(16, 24, 16).mod, target="cuda"), 16, 24, 16)


def test_a_reduction_over_threads(device):
    x = te.placeholder((6, 64), "int32", name="x")
    r = te.reduce_axis((0, 64), name="r")
    y = te.compute((6,), lambda i: te.max(x[i, r], axis=r), name="y")
    z = te.compute((6, 64), lambda i, j: x[i, j] - y[i], name="z")
    s = tir.Schedule(te.create_prim_func([x, z]))
    row = s.get_loops("z")[0]
    s.bind(row, "blockIdx.x")
    s.bind(s.get_loops("z")[1], "threadIdx.x")
    s.compute_at(s.get_block("y"), row)
    s.set_scope("y", 0, "shared")
    s.bind(s.get_loops("y")[-1], "threadIdx.x")
    module = targets.build(s.mod, target="cuda")
    assert BARRIER in module.get_source()
    given, found = np.random.default_rng(0).integers(-99, 99, (6, 64)).astype("int32"), np.zeros((6, 64), "int32")
    for _ in range(3):
        module(given, found)
        np.testing.assert_array_equal(found, given - given.max(1, keepdims=True))


def test_one_thread_does_what_all_would_do_alike(device):
    """Sums that no loop of a thread tells apart are joined by one thread, the others wait."""
    text = """# compassc IR 1
@I.module(target="", entry="main")
class Module:
    @T.func
    def main(x: T.ptr("int32", "global"), y: T.ptr("int32", "global")) -> T.void:
        x_1 = T.match_buffer(x, (64,), "int32")
        y_1 = T.match_buffer(y, (64,), "int32")
        total = T.alloc((1,), "int32", "shared")
        for b in T.blockIdx_x(0, 1, 1):
            for k in T.serial(0, 64, 1):
                with T.block("total"):
                    v = T.axis.spatial(1, 0)
                    r = T.axis.reduce(64, k)
                    T.reads(x_1[r])
                    T.writes(total[v])
                    with T.init():
                        total[v] = 0
                    total[v] = (total[v] + x_1[r])
            for t in T.threadIdx_x(0, 64, 1):
                with T.block("y"):
                    i = T.axis.spatial(64, t)
                    T.reads(x_1[i], total[0])
                    T.writes(y_1[i])
                    y_1[i] = (x_1[i] * total[0])
"""
    module = targets.build(parse_module(text), target="cuda")
    assert BARRIER in module.get_source()
    x, y = np.arange(64, dtype="int32"), np.zeros(64, "int32")
    module(x, y)
    np.testing.assert_array_equal(y, x * x.sum())


def copied(step):
    """`y[i] = x[i] * 2` by way of a buffer, in 4 blocks of 8 threads, after a step."""
    x = te.placeholder((32,), "int32", name="x")
    b = te.compute((32,), lambda i: x[i] * 2, name="b")
    y = te.compute((32,), lambda i: b[i] + 1, name="y")
    s = tir.Schedule(te.create_prim_func([x, y]))
    for name in ("b", "y"):
        outer, inner = s.split(s.get_loops(name)[0], [4, 8])
        s.bind(outer, "blockIdx.x")
        s.bind(inner, "threadIdx.x")
    step(s)
    return targets.build(s.mod, target="cuda")


def test_memory_between_launches_is_of_the_device(device):
    module, found = copied(lambda s: None), np.zeros(32, "int32")
    module(np.arange(32, dtype="int32"), found)
    np.testing.assert_array_equal(found, np.arange(32) * 2 + 1)
    assert device.launched == 2


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (
            lambda s: s.set_scope("b", 0, "local"),
            "'b_local' is used by several launches but lies in the private memory",
        ),
        (
            lambda s: s.set_scope("b", 0, "shared"),
            "'b_shared' is used by several launches but lies in the shared memory",
        ),
        (lambda s: s.cache_read(s.get_block("y"), 0, "warp"), "memory 'warp'"),
    ],
)
def test_memory_that_threads_do_not_have_together_is_refused(step, said):
    with pytest.raises((te.LowerError, tir.ScheduleError), match=said):
        copied(step)


TURNED = """# compassc IR 1
@I.module(target="", entry="main")
class Module:
    @T.func
    def main(x: T.ptr("int32", "global"), y: T.ptr("int32", "global")) -> T.void:
        x_1 = T.match_buffer(x, (48,), "int32")
        y_1 = T.match_buffer(y, (8, 6, 6), "int32")
        s = T.alloc((12, 4), "int32", "shared")
        for t in T.threadIdx_x(0, 8, 1):
            for u in T.serial(0, 6, 1):
                with T.block("s"):
                    a = T.axis.spatial(48, ((t * 6) + u))
                    T.reads(x_1[a])
                    T.writes(s[(a // 4), (a % 4)])
                    s[(a // 4), (a % 4)] = x_1[a]
            for i in T.serial(0, 6, 1):
                for j in T.serial(0, 6, 1):
                    with T.block("y"):
                        a = T.axis.spatial(8, t)
                        b = T.axis.spatial(6, i)
                        c = T.axis.spatial(6, j)
                        T.reads(s[(((a * 6) + b) // 4), (((a * 6) + c) % 4)])
                        T.writes(y_1[a, b, c])
                        y_1[a, b, c] = s[(((a * 6) + b) // 4), (((a * 6) + c) % 4)]
"""


def test_indices_of_different_loops_are_no_parts_of_one_number(device):
    """The quotient by one loop and the remainder by another are what a neighbour wrote."""
    module = targets.build(parse_module(TURNED), target="cuda")
    assert BARRIER in module.get_source()
    x, y = np.arange(100, 148, dtype="int32"), np.zeros((8, 6, 6), "int32")
    module(x, y)
    a, b, c = np.ogrid[:8, :6, :6]
    np.testing.assert_array_equal(y, x.reshape(12, 4)[(a * 6 + b) // 4, (a * 6 + c) % 4])


NESTED = """# compassc IR 1
@I.module(target="", entry="main")
class Module:
    @T.func
    def main(x: T.ptr("int32", "global"), y: T.ptr("int32", "global")) -> T.void:
        x_1 = T.match_buffer(x, (64,), "int32")
        y_1 = T.match_buffer(y, ({size},), "int32")
        for t in T.threadIdx_x(0, 8, 1):
            for u in T.{kind}(0, 8, 1):
                with T.block("y"):
                    i = T.axis.{axis}(64, ((t * 8) + u))
                    T.reads(x_1[i])
                    T.writes(y_1[{place}])
                    y_1[{place}] = x_1[i]
"""


@pytest.mark.parametrize(
    ("size", "kind", "place", "said"),
    [
        (64, "threadIdx_x", "i", "inside of two loops that are bound to threadIdx.x, and depends on 't'"),
        (8, "serial", "(i % 8)", "writes elements of 'y' in several threads of threadIdx.x"),
    ],
)
def test_threads_that_are_not_apart_are_refused(size, kind, place, said):
    module = parse_module(NESTED.format(size=size, kind=kind, place=place, axis="spatial"))
    with pytest.raises(te.LowerError, match=said):
        targets.build(module, target="cuda")


@pytest.mark.parametrize("quotient", [3, 5, 12])
@pytest.mark.parametrize("remainder", [3, 4, 5, 12])
@pytest.mark.parametrize("inner", [1, 3, 4])
def test_indices_of_fused_loops_tell_threads_apart(quotient, remainder, inner):
    """Never where two threads have one element; and where all of a fused loop is in the indices, surely."""
    b, t = (Var(name, INT32, True) for name in "bt")
    fused = Binary("add", Binary("mul", b, IntImm(INT32, 8)), t)

    def by(op, e, n):
        return Binary(op, e, IntImm(INT32, n))

    outer = by("floordiv", fused, quotient * inner)
    places = [outer, by("floormod", by("floordiv", fused, inner), remainder), by("floormod", fused, inner)]
    seen = [{(f // (quotient * inner), f // inner % remainder, f % inner) for f in range(t, 56, 8)} for t in range(8)]
    apart = all(not seen[i] & seen[j] for i in range(8) for j in range(i))
    told = separates(places, {b: 7, t: 8}, t)
    assert apart or not told
    assert told or quotient != remainder


def test_random_grids_are_right(device):
    ends = [random_grids.run(seed) for seed in range(12)]
    assert sum(end == "right" for end, _ in ends) >= 4, ends


def test_random_steps_on_blocks_are_right_on_grids(device):
    ends = [random_blocks.run(seed, "cuda")[0] for seed in range(4000, 4008)]
    assert ends.count("right") >= 2, ends
