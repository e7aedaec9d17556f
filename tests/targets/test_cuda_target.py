"""CUDA: the text, its PTX where NVRTC is installed, and launches by a driver that is emulated."""

from __future__ import annotations

import ctypes
import random

import numpy as np
import pytest

import compass_runtime as runtime
from compass_core.errors import CompassError
from compass_runtime import cuda_module
from compassc import te
from compassc.analysis.interpret import Interpreter
from compassc.targets import nvrtc
from tests.targets.emulated_cuda import emulated
from tests.te import random_schedules as cases


def matmul(n=20, m=33, k=17, name="matmul"):
    a, b = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    s = te.create_schedule(c.op)
    local = s.cache_write(c, "local")
    i, j = s[c].op.axis
    bx, tx = s[c].split(i, factor=4)
    by, ty = s[c].split(j, factor=8)
    s[c].reorder(bx, by, tx, ty)
    for axis, tag in ((bx, "blockIdx.x"), (by, "blockIdx.y"), (tx, "threadIdx.x"), (ty, "threadIdx.y")):
        s[c].bind(axis, te.thread_axis(tag))
    s[local].compute_at(s[c], ty)
    return te.build(s, [a, b, c], "cuda", name=name)


@pytest.fixture
def device(tmp_path):
    with emulated(tmp_path) as driver:
        yield driver


def test_the_text_and_its_launches():
    module = matmul()
    text, built = module.get_source(), module.imported_modules[0]
    assert 'extern "C" __global__ void matmul_kernel(' in text and "blockIdx.y" in text and "C_local[1]" in text
    launch = built.description["launches"][0]
    assert (tuple(launch["grid"]), tuple(launch["block"])) == ((5, 5, 1), (4, 8, 1))


def test_ptx_where_there_is_nvrtc():
    if nvrtc.library() is None:
        with pytest.raises(CompassError, match="'matmul' was built without NVRTC: there is no PTX"):
            matmul().get_source("ptx")
        return
    assert ".visible .entry matmul_kernel(" in matmul().get_source("ptx")
    with pytest.raises(CompassError, match="NVRTC refuses the CUDA C of 'bad'"):
        nvrtc.ptx("nonsense", "bad", "sm_75")


def test_without_a_device_launching_is_the_error(monkeypatch):
    monkeypatch.setattr(cuda_module.Driver, "_made", None)
    load = ctypes.CDLL

    def missing(name, *rest, **more):
        if name == "libcuda.so.1":
            raise OSError
        return load(name, *rest, **more)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    where = runtime.device("cuda", 0)
    assert where.exist is False
    arrays = [runtime.array(np.zeros(shape, "float32"), where) for shape in ((20, 17), (17, 33), (20, 33))]
    with pytest.raises(CompassError, match="no CUDA device to launch on"):
        matmul()(*arrays)


def test_launches(device, tmp_path):
    module = matmul()
    rng = np.random.default_rng(0)
    a, b, c = rng.random((20, 17), "f4"), rng.random((17, 33), "f4"), np.zeros((20, 33), "f4")
    module(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)
    module.export_library(tmp_path / "matmul.so")
    c[:] = 0
    runtime.load_module(tmp_path / "matmul.so")["matmul"](a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)
    assert device.launched == 2 and not device.memory
    assert runtime.device("cuda", 0).max_threads_per_block == 1024


def test_a_size_that_is_an_argument(device):
    n = te.var("n")
    a = te.placeholder((n,), "float16", name="a")
    b = te.compute((n,), lambda i: te.exp(a[i]), name="b")
    s = te.create_schedule(b)
    bx, tx = s[b].split(b.op.axis[0], factor=64)
    s[b].bind(bx, te.thread_axis("blockIdx.x"))
    s[b].bind(tx, te.thread_axis("threadIdx.x"))
    module = te.build(s, [n, a, b], "cuda")
    for size in (100, 1, 0):
        given, found = np.linspace(0, 1, size).astype("float16"), np.zeros(size, "float16")
        module(size, given, found)
        np.testing.assert_allclose(found, np.exp(given.astype("float32")), rtol=2e-3)


def test_workspaces_of_open_sizes(device):
    n = te.size_var("n")
    a = te.placeholder((n, 3), "int32", name="a")
    b = te.compute((n, 3), lambda i, j: a[i, j] * 2, name="b")
    c = te.compute((n,), lambda i: b[i, 0] + b[n - 1 - i, 2], name="c")
    s = te.create_schedule(c)
    for t in (b, c):
        for axis, tag in zip(s[t].split(t.op.axis[0], factor=64), ("blockIdx.x", "threadIdx.x")):
            s[t].bind(axis, te.thread_axis(tag))
    module = te.build(s, [a, c], "cuda")
    for size in (100, 1, 0):
        given, found = np.arange(size * 3, dtype="int32").reshape(size, 3), np.zeros(size, "int32")
        module(given, found)
        np.testing.assert_array_equal(found, given[:, 0] * 2 + given[::-1, 2] * 2)
    k = te.reduce_axis((0, n), "k")
    d = te.compute((n,), lambda i: te.sum(b[k, 0] * b[i, 0], axis=k), name="d")
    s = te.create_schedule(d)
    s[d].bind(d.op.axis[0], te.thread_axis("threadIdx.x"))
    s[b].compute_at(s[d], d.op.axis[0])
    with pytest.raises(te.LowerError, match="the memory of 'b' has no constant size"):
        te.build(s, [a, d], "cuda")


def test_a_workspace_beyond_32_bits_is_refused(device):
    n = te.size_var("n")
    a = te.placeholder((n,), "int8", name="a")
    b = te.compute((n, n), lambda i, j: a[i] + a[j], name="b")
    c = te.compute((n,), lambda i: b[i, n - 1 - i], name="c")
    s = te.create_schedule(c)
    for t in (b, c):
        s[t].bind(t.op.axis[0], te.thread_axis("blockIdx.x"))
    module, size = te.build(s, [a, c], "cuda"), 1 << 16
    with pytest.raises(CompassError, match="'workspace 0' would have 4,294,967,296 elements"):
        module(np.zeros(size, "int8"), np.zeros(size, "int8"))


def test_too_many_threads_are_refused():
    a = te.placeholder((4096,), name="a")
    b = te.compute((4096,), lambda i: a[i], name="b")
    s = te.create_schedule(b)
    s[b].bind(b.op.axis[0], te.thread_axis("threadIdx.x"))
    with pytest.raises(CompassError, match="4096 threads.*1024"):
        te.build(s, [a, b], "cuda")


def shared_matmul(n, m, k, tile=8, depth=4, threads=None):
    """A matrix product whose blocks keep tiles of both operands in shared memory, which all threads fill together."""
    a, b = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    s = te.create_schedule(c.op)
    local = s.cache_write(c, "local")
    copies = [s.cache_read(t, "shared", [local]) for t in (a, b)]
    xs = [te.thread_axis(f"threadIdx.{d}") for d in "xy"]
    bx, tx = s[c].split(s[c].op.axis[0], factor=tile)
    by, ty = s[c].split(s[c].op.axis[1], factor=tile)
    s[c].reorder(bx, by, tx, ty)
    for axis, thread in (
        (bx, te.thread_axis("blockIdx.x")),
        (by, te.thread_axis("blockIdx.y")),
        (tx, xs[0]),
        (ty, xs[1]),
    ):
        s[c].bind(axis, thread)
    s[local].compute_at(s[c], ty)
    outer, inner = s[local].split(s[local].op.reduce_axis[0], factor=depth)
    s[local].reorder(outer, inner, *s[local].op.axis)
    for copy in copies:
        s[copy].compute_at(s[local], outer)
        for axis, thread in zip(s[copy].op.axis, xs):
            s[copy].bind(s[copy].split(axis, nparts=threads or tile)[0], thread)
    return s, [a, b, c]


@pytest.mark.parametrize("sizes", [(16, 16, 16), (20, 33, 17)])
def test_threads_of_a_block_fill_shared_memory_together(device, sizes):
    n, m, k = sizes
    s, args = shared_matmul(n, m, k)
    module = te.build(s, args, "cuda", name="product")
    text = module.get_source()
    assert text.count("__syncthreads();") == 2 and "__shared__ float32 A_shared[32];" in text, text
    x, y = (np.random.default_rng(i).random(size, "float32") for i, size in enumerate(((n, k), (k, m))))
    z = np.zeros((n, m), "float32")
    module(x, y, z)
    np.testing.assert_allclose(z, x @ y, rtol=1e-5)
    assert device.launched == 1


@pytest.mark.parametrize("factored", [False, True])
@pytest.mark.parametrize("sizes", [(64, 64), (37, 45)])
@pytest.mark.parametrize("open_sizes", [False, True])
def test_threads_of_a_block_reduce_its_rows(device, factored, sizes, open_sizes):
    n, m = (te.var("n"), te.var("m")) if open_sizes else sizes
    a, k = te.placeholder((n, m), "int32", name="a"), te.reduce_axis((0, m), name="k")
    b = te.compute((n,), lambda i: te.sum(a[i, k], axis=k), name="b")
    s, thread = te.create_schedule(b.op), te.thread_axis("threadIdx.x")
    block, row = s[b].split(b.op.axis[0], factor=8)
    _, across = s[b].split(k, factor=16)
    if factored:
        part = s.rfactor(b, across)
        (across,) = s[b].op.reduce_axis
        s[part].compute_at(s[b], across)
    s[b].bind(block, te.thread_axis("blockIdx.x"))
    s[b].bind(row, te.thread_axis("threadIdx.y"))
    s[b].bind(across, thread)
    if factored:
        s[b].set_store_predicate(thread.var.equal(0))
    module = te.build(s, [a, b], "cuda")
    assert "__shared__ int32" in module.get_source()
    given = np.random.default_rng(0).integers(-9, 9, sizes).astype("int32")
    for _ in range(3):
        found = np.zeros(sizes[0], "int32")
        module(given, found)
        np.testing.assert_array_equal(found, given.sum(1))
    assert device.launched == 3


@pytest.mark.parametrize("bound", [(), ("up",), ("init", "up")])
@pytest.mark.parametrize("turned", [False, True])
def test_threads_wait_between_the_steps_of_a_scan(device, bound, turned):
    x, state = (te.placeholder((5, 8), "int32", name=name) for name in ("x", "state"))
    init = te.compute((1, 8), lambda t, i: x[0, i], name="init")
    up = te.compute((5, 8), lambda t, i: state[t - 1, 7 - i if turned else i] + x[t, i], name="up")
    scan = te.scan(init, up, state, inputs=[x])
    s, thread = te.create_schedule(scan.op), te.thread_axis((0, 8), "threadIdx.x")
    s[scan].env_threads([thread])
    for t in (init, up):
        if t.op.name in bound:
            s[t].bind(t.op.axis[1], thread)
    module = te.build(s, [x, scan], "cuda")
    assert ("__syncthreads" in module.get_source()) == (turned and "up" in bound)
    given, found = np.random.default_rng(0).integers(-9, 9, (5, 8)).astype("int32"), np.zeros((5, 8), "int32")
    wanted = given.copy()
    for step in range(1, 5):
        wanted[step] += wanted[step - 1][:: -1 if turned else 1]
    for _ in range(3):
        module(given, found)
        np.testing.assert_array_equal(found, wanted)


def test_blocks_that_would_wait_for_each_other_are_refused():
    x, state = (te.placeholder((5, 8), "int32", name=name) for name in ("x", "state"))
    init = te.compute((1, 8), lambda t, i: x[0, i], name="init")
    up = te.compute((5, 8), lambda t, i: state[t - 1, 7 - i] + x[t, i], name="up")
    scan = te.scan(init, up, state, inputs=[x])
    s = te.create_schedule(scan.op)
    s[up].bind(up.op.axis[1], te.thread_axis("blockIdx.x"))
    with pytest.raises(te.LowerError, match="blocks do not wait for each other"):
        te.build(s, [x, scan], "cuda")


def test_virtual_threads_are_unrolled(device):
    a = te.placeholder((64,), "int32", name="a")
    b = te.compute((64,), lambda i: a[i] * 2, name="b")
    s = te.create_schedule(b)
    virtual, thread = s[b].split(b.op.axis[0], factor=16)
    s[b].bind(virtual, te.thread_axis("vthread.x"))
    s[b].bind(thread, te.thread_axis("threadIdx.x"))
    module, found = te.build(s, [a, b], "cuda"), np.zeros(64, "int32")
    assert "#pragma unroll" in module.get_source()
    module(np.arange(64, dtype="int32"), found)
    np.testing.assert_array_equal(found, np.arange(64) * 2)


def test_threads_that_would_wait_for_ever_are_refused():
    s, args = shared_matmul(16, 16, 16, depth=16, threads=16)
    with pytest.raises(te.LowerError, match="is not bound to all that threadIdx.[xy] has"):
        te.build(s, args, "cuda")
    s, args = shared_matmul(256, 256, 4096, tile=32, depth=512)
    with pytest.raises(
        CompassError, match=r"needs 131,072 bytes of shared memory \('A_shared' 65,536, 'B_shared' 65,536\)"
    ):
        te.build(s, args, "cuda")
    a = te.placeholder((64,), name="a")
    b = te.compute((64,), lambda i: a[i] * 2, name="b")
    c = te.compute((64,), lambda i: b[i] + 1, name="c")
    s = te.create_schedule(c)
    outer, inner = s[c].split(c.op.axis[0], 8)
    s[c].bind(outer, te.thread_axis("blockIdx.x"))
    s[b].compute_at(s[c], outer)
    s[b].bind(s[b].op.axis[0], te.thread_axis("threadIdx.x"))
    with pytest.raises(te.LowerError, match=r"by the threads of a block together.*one of them"):
        te.build(s, [a, c], "cuda")
    s[b].set_scope("shared")
    s[c].bind(inner, te.thread_axis("threadIdx.x"))
    assert "__shared__" in te.build(s, [a, c], "cuda").get_source()


@pytest.mark.parametrize("seed", range(3000, 3012))
def test_random_schedules_on_cuda(device, seed):
    """Any legal steps give what the plain schedule gives."""
    draw = random.Random(seed)
    made = cases.case(draw)
    arrays = made.arrays(draw)
    plain, found = ([a.copy() for a in arrays] for _ in range(2))
    Interpreter(te.lower(te.create_schedule(made.outputs), made.args, "k", target="X2_1204").entry_func)(*plain)
    schedule = te.create_schedule(made.outputs)
    cases.steps(draw, schedule, draw.randint(1, 12))
    try:
        module = te.build(schedule, made.args, "cuda")
    except te.LowerError:
        return
    module(*found)
    for t, a, b in zip(made.args, plain, found, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=f"{t.name}\n{schedule.trace}\n{module.get_source()}")
