"""Functions of blocks in the framework's script dialect: read, scheduled, built and run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from compass_core.errors import CompassError

pytestmark = pytest.mark.usefixtures("names")


def product():
    import tvm
    from tvm.script import tir as T

    @tvm.script.ir_module
    class Product:
        @T.prim_func
        def main(a: T.handle, b: T.handle, C: T.Buffer((8, 12), "int32")):
            T.func_attr({"global_symbol": "main", "tir.noalias": True})
            A = T.match_buffer(a, (8, 20), dtype="int32")
            B = T.match_buffer(b, [20, 12], "int32")
            D = T.alloc_buffer((8, 12), "int32")
            for i, j, k in T.grid(8, 12, 20):
                with T.block("D"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    T.reads(A[vi, vk], B[vk, vj])
                    T.writes(D[vi, vj])
                    with T.init():
                        D[vi, vj] = 0
                    D[vi, vj] += A[vi, vk] * B[vk, vj]
            for i, j in T.grid(8, 12):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = T.max(D[vi, vj], T.int32(-5)) + vj

    return Product


@pytest.mark.parametrize("target", ["llvm", "X2_1204"])
@pytest.mark.parametrize("scheduled", [False, True])
def test_a_module_is_scheduled_and_run(target, scheduled):
    import tvm

    s = tvm.tir.Schedule(product())
    if scheduled:
        i, j = s.get_loops("C")
        s.compute_at("D", i)
        s.vectorize(s.split(j, [None, 4])[1])
        with pytest.raises(tvm.tir.schedule.ScheduleError, match="reduced over, not spatial"):
            s.vectorize(s.get_loops("D")[2])
        s.decompose_reduction("D", s.get_loops("D")[2])
    draw = np.random.default_rng(0)
    a, b = draw.integers(-3, 4, (8, 20)).astype("int32"), draw.integers(-3, 4, (20, 12)).astype("int32")
    c = np.zeros((8, 12), "int32")
    tvm.build(s.mod, target=target)(a, b, c)
    np.testing.assert_array_equal(c, np.maximum(a @ b, -5) + np.arange(12))


def test_open_sizes_conditions_and_values():
    import tvm
    from tvm.script import tir as T

    scale = 3

    @T.prim_func
    def padded(a: T.handle, b: T.handle, m: T.int32):
        n = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n + 4,), "float32")
        for i in T.serial(n + 4):
            with T.block("pad"):
                vi = T.axis.spatial(n + 4, i)
                inside = T.if_then_else(T.all(vi >= 2, vi < n + 2), A[vi - 2], T.float32(0))
                if vi < m:
                    B[vi] = T.sqrt(inside) * scale
                else:
                    B[vi] = -1.0

    a, b = np.arange(5, dtype="f4"), np.zeros(9, "f4")
    tvm.build(padded, target="llvm")(a, b, 8)
    np.testing.assert_allclose(b, [*np.sqrt([0, 0, *a, 0]) * 3, -1], rtol=1e-6)


def test_a_part_of_a_loop_by_where():
    import tvm
    from tvm.script import tir as T

    @T.prim_func
    def tail(A: T.Buffer((10,), "int32")):
        for i, j in T.grid(3, 4):
            with T.block("tail"):
                vi = T.axis.spatial((0, 10), i * 4 + j)
                T.where(i * 4 + j < 10)
                A[vi] = vi * vi

    found = np.zeros(10, "int32")
    tvm.build(tail, target="X2_1204")(found)
    assert found.tolist() == [i * i for i in range(10)]


def test_what_is_not_read_is_an_error_with_its_place():
    from tvm.script import tir as T

    with pytest.raises(CompassError, match="has no Delete") as refused:

        @T.prim_func
        def loops(A: T.Buffer((4,), "int32")):
            del A

    lines = Path(__file__).read_text().splitlines()
    assert "del A" in lines[refused.value.span.line - 1] and refused.value.span.file == __file__
    with pytest.raises(CompassError, match=r"'A' has 1 dimensions, got 2"):

        @T.prim_func
        def dimensions(A: T.Buffer((4,), "int32")):
            A[0, 1] = 2

    with pytest.raises(CompassError, match="no T.match_buffer says what 'a' is"):

        @T.prim_func
        def unmatched(a: T.handle):
            pass

    with pytest.raises(CompassError, match="name 'nothing' is not defined"):

        @T.prim_func
        def unknown(A: T.Buffer((4,), "int32")):
            A[0] = nothing  # noqa: F821

    with pytest.raises(CompassError, match="stands in a block"):

        @T.prim_func
        def outside(A: T.Buffer((4,), "int32")):
            for i in range(4):
                vi = T.axis.spatial(4, i)
                A[vi] = 0

    with pytest.raises(CompassError, match="is over range or one of"):

        @T.prim_func
        def unordered(A: T.Buffer((4,), "int32")):
            for i in (0, 1):
                A[i] = 0


def copied(source, dest):
    """A description of a copy of 32 elements, its blocks in a root block, and an implementation."""
    from tvm.script import tir as T

    @T.prim_func
    def described(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (32,), "int32", offset_factor=1, scope=source)
        B = T.match_buffer(b, (32,), "int32", offset_factor=1, scope=dest)
        with T.block("root"):
            T.reads(A[0:32])
            T.writes(B[0:32])
            for i in range(32):
                with T.block("copy"):
                    vi = T.axis.remap("S", [i])
                    B[vi] = A[vi]

    @T.prim_func
    def implemented(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (32,), "int32", offset_factor=1, scope=source)
        B = T.match_buffer(b, (32,), "int32", offset_factor=1, scope=dest)
        with T.block("root"):
            T.reads(A[0:32])
            T.writes(B[0:32])
            for i in T.vectorized(32):
                B[i] = A[i]

    return described, implemented


def test_cached_stages_at_a_loop_are_described_in_root_blocks():
    import tvm
    from tvm.script import tir as T

    @T.prim_func
    def added(A: T.Buffer((256,), "int32"), B: T.Buffer((256,), "int32")):
        for i in range(256):
            with T.block("B"):
                vi = T.axis.spatial(256, i)
                B[vi] = A[vi] + 1

    tvm.tir.TensorIntrin.register("test.load", *copied("global", "lsram"), override=True)
    tvm.tir.TensorIntrin.register("test.store", *copied("lsram", "global"), override=True)
    s = tvm.tir.Schedule(added)
    outer, _ = s.split(s.get_loops("B")[0], [None, 32])
    read, written = s.cache_read("B", 0, "lsram"), s.cache_write("B", 0, "lsram")
    s.compute_at(read, outer)
    s.reverse_compute_at(written, outer)
    s.tensorize(s.get_loops(read)[-1], "test.load")
    s.tensorize(s.get_loops(written)[-1], "test.store")
    assert s.mod.script().count("T.vectorized") == 2
    a, b = np.arange(256, dtype="int32"), np.zeros(256, "int32")
    tvm.build(s.mod, target="X2_1204")(a, b)
    np.testing.assert_array_equal(b, a + 1)


def test_functions_without_a_schedule_are_plain_loops_that_run_once():
    """All TECs run what gives the same however many do, one TEC what reads what it writes."""
    from tvm.compass.dsl import BuildManager
    from tvm.script import tir as T

    @T.prim_func
    def added(A: T.Buffer((600,), "int32"), B: T.Buffer((600,), "int32")):
        for i in range(600):
            with T.block("B"):
                vi = T.axis.spatial(600, i)
                B[vi] = A[vi] + 1

    @T.prim_func
    def loop(A: T.Buffer((600,), "int32"), B: T.Buffer((600,), "int32")):
        for i in range(600):
            B[i] = A[i] + 1

    @T.prim_func
    def in_place(A: T.Buffer((600,), "int32"), B: T.Buffer((600,), "int32")):
        for i in range(600):
            A[i] = A[i] + 1
            B[i] = A[i]

    a, b = np.zeros(600, "int32"), np.zeros(600, "int32")
    text = "  for (int i = 0; i < 600; i += 1) {\n    B[i] = (A[i] + 1);\n  }\n  barrier(CLK_LOCAL_MEM_FENCE);\n}"
    for function in (added, loop):
        run = BuildManager("X2_1204").build(function)
        assert text in run.c_code
        run(a, b)
        assert (b == 1).all()
    run = BuildManager("X2_1204").build(in_place)
    for turn in range(1, 4):
        run(a, b)
        assert (a == turn).all() and (b == turn).all()


def test_steps_on_loops_that_blocks_use_themselves():
    import tvm
    from tvm.script import tir as T

    @T.prim_func
    def added(A: T.Buffer((50,), "int32"), B: T.Buffer((50,), "int32")):
        for i in range(50):
            with T.block("c"):
                T.reads(A[i])
                T.writes(B[i])
                B[i] = A[i] + i

    @T.prim_func
    def last(A: T.Buffer((50,), "int32"), B: T.Buffer((1,), "int32")):
        for i in range(50):
            with T.block("c"):
                B[0] = A[i]

    @T.prim_func
    def begun(B: T.Buffer((50,), "int32")):
        for i in range(49):
            with T.block("c"):
                with T.init():
                    B[i + 1] = 0
                B[i + 1] += B[i]

    s = tvm.tir.Schedule(added)
    outer, lanes = s.split(s.get_loops("c")[0], [None, 8])
    s.bind(outer, "threadIdx.x")
    s.vectorize(lanes)
    a, b = np.arange(50, dtype="int32"), np.zeros(50, "int32")
    tvm.build(s.mod, target="X2_1204")(a, b)
    np.testing.assert_array_equal(b, 2 * a)

    for function, reason in ((last, "may write the same element"), (begun, "reads other elements of what it writes")):
        s = tvm.tir.Schedule(function)
        with pytest.raises(tvm.tir.ScheduleError, match=reason):
            s.bind(s.get_loops("c")[0], "threadIdx.x")


@pytest.mark.parametrize("target", ["llvm", "X2_1204"])
def test_vectors_of_elements_have_ramps_as_indices(target):
    import tvm
    from tvm.script import tir as T

    @T.prim_func
    def mixed(A: T.Buffer((64,), "int32"), B: T.Buffer((4, 16), "int32")):
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi, T.Ramp(0, 2, 8)] = A[T.ramp(vi * 16 + 15, -2, 8)] + T.broadcast(vi, 8)
                B[vi, T.Ramp(1, 2, 8)] = A[T.Ramp(vi * 16, 1, 8)] * T.Broadcast(3, 8)

    a, b, want = np.arange(64, dtype="int32"), np.zeros((4, 16), "int32"), np.zeros((4, 16), "int32")
    want[:, 0::2] = a.reshape(4, 16)[:, 15::-2] + np.arange(4)[:, None]
    want[:, 1::2] = a.reshape(4, 16)[:, :8] * 3
    tvm.build(mixed, target=target)(a, b)
    np.testing.assert_array_equal(b, want)

    with pytest.raises(CompassError, match="8 elements of 'B' are int32, the value is int32"):

        @T.prim_func
        def scalar(B: T.Buffer((16,), "int32")):
            B[T.Ramp(0, 1, 8)] = T.int32(3)


def test_a_schedule_of_a_function_is_compared_and_its_trace_taken_again():
    import tvm
    from tvm.script import tir as T
    from tvm.tir.schedule.testing import assert_structural_equal_ignore_global_symbol, verify_trace_roundtrip

    @T.prim_func
    def doubled(a: T.handle, b: T.handle) -> None:
        A, B = T.match_buffer(a, (8, 4)), T.match_buffer(b, (8, 4))
        for i, j in T.grid(8, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2.0

    @T.prim_func
    def expected(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (8, 4))
        B = T.match_buffer(b, (8, 4))
        for f in range(32):
            with T.block("B"):
                vi, vj = T.axis.S(8, f // 4), T.axis.S(4, f % 4)
                T.reads([A[vi, vj]])
                T.writes([B[vi, vj]])
                B[vi, vj] = A[vi, vj] * 2.0

    s = tvm.tir.Schedule(doubled, debug_mask="all")
    i, j = s.get_loops(s.get_block("B"))
    s.fuse(i, j)
    assert_structural_equal_ignore_global_symbol(expected, s.mod["main"])
    verify_trace_roundtrip(sch=s, mod=doubled)
    with pytest.raises(ValueError, match="not structurally equal"):
        assert_structural_equal_ignore_global_symbol(doubled, s.mod["main"])
    with pytest.raises(tvm.tir.ScheduleError):
        s.reorder(i, j)
