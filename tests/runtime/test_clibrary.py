"""libcompass_runtime: the C library gives what the Python runtime gives, and the driver's status for what is wrong."""

from __future__ import annotations

import ctypes as c
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from runtime_kernels import ADD, pointer, scalar

from compass_core.aipubin import layout, write
from compass_core.hostcc.clang import find_clang
from compass_runtime import Program, clibrary
from compass_runtime.status import Status
from compassc.gbuilder.build import GraphOptions, build_model
from compassc.gbuilder.writer import GraphWriter
from tests.choosing import some

INPUT, OUTPUT = 0, 1
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def library():
    lib = c.CDLL(str(clibrary.library_path()))
    lib.compass_error_detail.restype = c.c_char_p
    lib.detail = lambda: lib.compass_error_detail().decode()
    return lib


class Ctx:
    """A context of the library; functions give the status' name, or the value that was asked for."""

    def __init__(self, library):
        self.lib, self.ctx = library, c.c_void_p()
        assert library.aipu_init_context(c.byref(self.ctx)) == 0

    def __call__(self, name, *args):
        return Status(getattr(self.lib, f"aipu_{name}")(self.ctx, *args))

    def new(self, name, *args):
        """An id or count made by a function whose last but one argument is where it goes."""
        value = c.c_uint64()
        status = self(name, *args, c.byref(value), None)
        assert status == 0, (status.name, self.lib.detail())
        return c.c_uint64(value.value)

    def load(self, content):
        return self.new("load_graph_helper", content, len(content))

    def run(self, job, inputs, outputs, initial=False):
        for i, array in enumerate(inputs):
            assert self("load_tensor", job, i, array.ctypes.data_as(c.c_void_p)) == 0
        for i, array in enumerate(outputs):
            assert not initial or self("load_output_tensor", job, i, array.ctypes.data_as(c.c_void_p)) == 0
        status = self("finish_job", job, 10_000)
        for i, array in enumerate(outputs):
            assert status or self("get_tensor", job, OUTPUT, i, array.ctypes.data_as(c.c_void_p)) == 0
        return status


@pytest.fixture
def ctx(library):
    made = Ctx(library)
    yield made
    assert made("deinit_context") == 0


def test_a_c_program_and_its_header_in_cpp(tmp_path, build):
    path = build(
        ADD, pointer("a", "input", shape=(1024,)), pointer("b", "output", shape=(1024,)), scalar("n", value=1024)
    )
    clibrary.link_program([ROOT / "examples/c_api/run.c"], tmp_path / "run")
    done = subprocess.run([tmp_path / "run", path], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("1 2 3\n", "", 0)
    done = subprocess.run([tmp_path / "run", tmp_path / "none.bin"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "error 0xc: cannot open" in done.stdout
    (tmp_path / "h.cpp").write_text(
        "#include <compass_runtime.h>\n"
        'int f(aipu_ctx_handle_t *ctx, uint64_t *id) { return aipu_load_graph(ctx, "x", id); }\n'
    )
    command = [
        find_clang().path,
        "-fsyntax-only",
        "-Wall",
        "-Werror",
        "-nostdlibinc",
        "-ffreestanding",
        f"-I{clibrary.include_folder()}",
        tmp_path / "h.cpp",
    ]
    subprocess.run(command, check=True)


@pytest.mark.parametrize("target", ["X2_1204", "X2_1204MP3", "X3P_1304", "X3S_1304MP2"])
def test_results_agree_with_the_python_runtime_on_every_family(ctx, build, target):
    text = """
    __kernel void k(__global int* a, __constant int* w, __global int* sum, int s) {
      for (int i = get_local_id(0); i < 100; i += get_local_size(0)) sum[i] += a[i] * w[i & 3] + s;
    }
    """
    path = build(
        text,
        pointer("a", "input", shape=(100,)),
        pointer("w", "const", shape=(4,)),
        pointer("sum", "output", shape=(100,), read=True),
        scalar("s", value=7),
        target=target,
        consts={"w": np.arange(4, dtype=np.int32).tobytes()},
    )
    a, start = np.arange(100, dtype=np.int32), np.full(100, 1000, np.int32)
    expected = Program.load(path).create_job().run([a], initial={"sum": start})["sum"]
    job = ctx.new("create_job", ctx.load(path.read_bytes()))
    for _ in range(2):
        found = start.copy()
        assert ctx.run(job, [a], [found], initial=True) == 0
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("target", ["X2_1204", "X3P_1304"])
def test_a_graph_of_several_launches(ctx, tmp_path, target):
    graph, shape = GraphWriter(), (2, 30)
    x = graph.input("x", shape, "float32")
    y = graph.layer("Activation", [x], shape, "float32", method="RELU")
    z = graph.layer("Eltwise", [x, y], shape, "float32", method="ADD", with_activation="NONE")
    text = graph.write(
        tmp_path, [graph.layer("Eltwise", [z, y], shape, "float32", method="ADD", with_activation="NONE")]
    )
    options = GraphOptions(work_dir=tmp_path / "kernels")
    path = build_model(text, tmp_path / "weight.bin", tmp_path / "aipu.bin", target, options).path
    a, found = np.linspace(-3, 3, 60, dtype=np.float32).reshape(shape), np.zeros(shape, np.float32)
    assert ctx.run(ctx.new("create_job", ctx.load(path.read_bytes())), [a], [found]) == 0
    np.testing.assert_array_equal(found, (a + np.maximum(a, 0)) + np.maximum(a, 0))


def test_counts_and_descriptors(ctx, add_fixed):
    class Desc(c.Structure):
        _fields_ = [
            ("id", c.c_uint32),
            ("size", c.c_uint32),
            ("scale", c.c_float),
            ("zero", c.c_int32),
            ("dtype", c.c_uint32),
        ]

    graph = ctx.load(add_fixed.read_bytes())
    job, count, desc = ctx.new("create_job", graph), c.c_uint32(), Desc()
    assert (graph.value, job.value) == (1 << 32, (1 << 32) + 1)
    for number in (graph, job):
        for kind, expected in ((INPUT, 1), (OUTPUT, 1), (2, 0), (4, 0)):
            assert ctx("get_tensor_count", number, kind, c.byref(count)) == 0
            assert count.value == expected
    assert ctx("get_tensor_descriptor", job, OUTPUT, 0, c.byref(desc)) == 0
    assert (desc.id, desc.size, desc.scale, desc.zero, desc.dtype) == (0, 32, 1.0, 0, 7)


def test_many_jobs_of_one_graph_in_threads(library, ctx, add_fixed):
    graph = ctx.load(add_fixed.read_bytes())

    def one(seed):
        job = ctx.new("create_job", graph)
        assert ctx("rewrite_rodata", job, 8, 3 + seed % 4) == 0
        for k in range(5):
            a, b = np.full(8, seed * 10 + k, np.int32), np.zeros(8, np.int32)
            assert ctx.run(job, [a], [b], initial=True) == 0
            assert (b == np.where(np.arange(8) < 3 + seed % 4, a + 1, 0)).all()
        return ctx("clean_job", job) == 0

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(one, range(40)))


def test_a_flushed_job_is_waited_for_and_calls_back(ctx, add_fixed):
    called = []
    callback = c.CFUNCTYPE(c.c_int, c.c_uint64, c.c_int)(lambda job, state: called.append((job, state)) or 0)
    job, state = ctx.new("create_job", ctx.load(add_fixed.read_bytes())), c.c_int()
    assert ctx("flush_job", job, callback) == 0
    assert ctx("flush_job", job, None) is Status.INVALID_OP
    assert ctx("get_job_status", job, c.byref(state), -1) == 0
    assert (state.value, called) == (1, [(job.value, 1)])


def test_a_context_can_be_ended_while_a_kernel_runs_for_ever(library, build):
    text = """
    __kernel void k(__global int* a, __global int* b) {
      while (a[0] == 0) {}
      b[0] = 5;
    }
    """
    path = build(text, pointer("a", "input", shape=(1,)), pointer("b", "output", shape=(1,)))
    context, ended = Ctx(library), []
    callback = c.CFUNCTYPE(c.c_int, c.c_uint64, c.c_int)(lambda job, state: ended.append(state) or 0)
    graph = context.load(path.read_bytes())
    for _ in range(3):
        assert context("flush_job", context.new("create_job", graph), callback) == 0
    closing = Thread(target=context, args=("deinit_context",), daemon=True)
    closing.start()
    closing.join(60)
    assert not closing.is_alive() and ended == [2, 2, 2]
    assert context("deinit_context") is Status.INVALID_CTX


def test_contexts_come_and_go_in_all_threads(library):
    def one(_):
        made, message = Ctx(library), c.c_char_p()
        assert all(made("get_error_message", 0, c.byref(message)) == 0 for _ in range(20))
        return made("deinit_context")

    with ThreadPoolExecutor(16) as pool:
        assert set(pool.map(one, range(500))) == {0}


LARGE = 50_000
OPEN = """
import ctypes, sys
library, data = ctypes.CDLL(sys.argv[1]), open(sys.argv[2], "rb").read()
context, value = ctypes.c_void_p(), ctypes.c_uint64()
assert library.aipu_init_context(ctypes.byref(context)) == 0
assert library.aipu_load_graph_helper(context, data, len(data), ctypes.byref(value), None) == 0
assert library.aipu_create_job(context, value, ctypes.byref(value), None) == 0
assert library.aipu_deinit_context(context) == 0
"""


def test_loading_takes_as_long_as_the_file_is_large(build, tmp_path):
    """What took quadratic or cubic time would take minutes: many tensors and launches, and a comment to search in."""
    path = build(
        ADD,
        pointer("a", "input", shape=(1,)),
        pointer("b", "output", shape=(1,)),
        scalar("n", value=1),
        target="X3P_1304",
    )
    content = Program.load(path).content
    (bss,), (launch,) = content.features.bss, content.subgraphs
    inputs = tuple(layout.SubSection(size=4, type=layout.Kind.INPUT, id=i) for i in range(LARGE))
    others = (section for section in bss.reuses if all(s.type != layout.Kind.INPUT for s in section.subs))
    features = layout.FeatureMaps((layout.Bss((*others, layout.ReuseSection(64, subs=inputs)), bss.statics),))
    launches = tuple(
        layout.Subgraph(launch.text_offset, launch.params_size, id=i, precursors=None) for i in range(LARGE // 5)
    )
    large = replace(
        content, features=features, subgraphs=launches, graph_json=b"", kernel=None, comment="target:" * LARGE
    )
    (tmp_path / "large.bin").write_bytes(write(large))
    command = [sys.executable, "-c", OPEN, clibrary.library_path(), tmp_path / "large.bin"]
    subprocess.run(command, check=True, timeout=30)


def test_after_a_fault_the_next_job_runs(ctx, library, build):
    text = """
    __kernel void k(__global int* a, __global int* b) {
      if (a[0] == 1) b[-(1 << 29)] = 1;
      while (a[0] == 2) {}
      b[0] = 5;
    }
    """
    path = build(text, pointer("a", "input", shape=(1,)), pointer("b", "output", shape=(1,)))
    job, b = ctx.new("create_job", ctx.load(path.read_bytes())), np.zeros(1, np.int32)
    assert ctx.run(job, [np.array([1], np.int32)], []) is Status.JOB_EXCEPTION
    assert re.match(r"k\.cl:5: TEC \d faulted \(signal 11", library.detail())
    assert ctx("get_tensor", job, OUTPUT, 0, b.ctypes.data_as(c.c_void_p)) is Status.INVALID_OP
    assert ctx.run(job, [np.array([0], np.int32)], [b]) == 0
    assert ctx("load_tensor", job, 0, np.array([2], np.int32).ctypes.data_as(c.c_void_p)) == 0
    assert ctx("finish_job", job, 200) is Status.JOB_TIMEOUT
    b[0] = 0
    assert ctx.run(job, [np.array([0], np.int32)], [b]) == 0 and b[0] == 5


def test_wrong_use_has_the_drivers_status(ctx, library, add_fixed, build):
    data, value, graph = (
        np.zeros(8, np.int32).ctypes.data_as(c.c_void_p),
        c.c_uint64(),
        ctx.load(add_fixed.read_bytes()),
    )
    job = ctx.new("create_job", graph)
    open_sizes = build(ADD, pointer("a", "input"), pointer("b", "output"), scalar("n"))
    unknown = ctx.load(open_sizes.read_bytes())
    out = c.byref(value)
    for args, status in (
        (("load_graph", b"/none/at/all", out, None), Status.OPEN_FILE_FAIL),
        (("load_graph", None, out, None), Status.NULL_PTR),
        (("load_graph_helper", b"x" * 80, 80, out, None), Status.GVERSION_UNSUPPORTED),
        (("create_job", c.c_uint64(5), out, None), Status.INVALID_GRAPH_ID),
        (("create_job", unknown, out, None), Status.ZERO_TENSOR_SIZE),
        (("clean_job", c.c_uint64(graph.value + 9)), Status.INVALID_JOB_ID),
        (("get_tensor", job, OUTPUT, 0, data), Status.INVALID_OP),
        (("load_tensor", job, 1, data), Status.INVALID_TENSOR_ID),
        (("load_tensor", job, 0, None), Status.NULL_PTR),
        (("get_tensor_count", job, 6, out), Status.INVALID_TENSOR_TYPE),
        (("rewrite_rodata", job, 6, 0), Status.INVALID_SIZE),
        (("rewrite_rodata", job, 4000, 0), Status.INVALID_SIZE),
        (("create_job", graph, out, (c.c_uint32 * 24)(0x200)), Status.INVALID_QOS),
        (("create_job", graph, out, (c.c_uint32 * 24)(0x002)), Status.INVALID_PARTITION_ID),
        (("create_job", graph, out, (c.c_uint32 * 24)(0, 1)), Status.OP_NOT_SUPPORTED),
        (("config_job", job, c.c_uint64(0x80), None), Status.OP_NOT_SUPPORTED),
        (("config_global", c.c_uint64(1), None), Status.INVALID_CONFIG),
        (("config_global", c.c_uint64(0x20000), None), Status.OP_NOT_SUPPORTED),
        (("unload_graph", c.c_uint64(77)), Status.INVALID_GRAPH_ID),
    ):
        assert (args[0], ctx(*args)) == (args[0], status)
        assert library.detail()
    assert (
        ctx("create_job", graph, out, (c.c_uint32 * 24)(0x100))
        == 0
        == ctx("config_job", job, c.c_uint64(0x10000), None)
    )
    assert Status(library.aipu_unload_graph(None, graph)) is Status.NULL_PTR
    assert Status(library.aipu_unload_graph(c.c_void_p(8), graph)) is Status.INVALID_CTX
    assert ctx("unload_graph", graph) == 0
    assert ctx("finish_job", job, -1) is Status.INVALID_JOB_ID


def test_a_file_takes_no_more_memory_than_files_may(ctx, library, build, add_fixed, monkeypatch):
    shape = (1 << 27,)  # two of 512 MiB, from a file of a few kilobytes
    large = build(
        ADD, pointer("a", "input", shape=shape), pointer("b", "output", shape=(*shape, 2)), scalar("n", value=8)
    )
    out = c.byref(c.c_uint64())
    graph, small = ctx.load(large.read_bytes()), ctx.load(add_fixed.read_bytes())
    assert ctx("create_job", graph, out, None) is Status.BUF_ALLOC_FAIL
    assert "COMPASS_TENSOR_MEMORY" in library.detail()
    assert ctx("create_job", small, out, None) == 0
    monkeypatch.setenv("COMPASS_TENSOR_MEMORY", "2000")
    assert ctx("create_job", graph, out, None) == 0
    monkeypatch.setenv("COMPASS_TENSOR_MEMORY", "0")
    assert ctx("create_job", small, out, None) is Status.BUF_ALLOC_FAIL


def test_every_status_has_its_text(ctx):
    text = c.c_char_p()
    for status in some(Status):
        assert ctx("get_error_message", int(status), c.byref(text)) == 0
        assert text.value.decode() == status.text


def test_damaged_files_are_refused_or_run_but_never_harm(ctx, add_fixed):
    whole = bytearray(add_fixed.read_bytes())
    notes = whole.index(b"compilermsg\0")
    rng = np.random.default_rng(5)
    value, refused = c.c_uint64(), 0
    for i in range(3000):
        data = bytearray(whole)
        if i % 3 == 0:
            del data[int(rng.integers(0, len(data))) :]
        for _ in range(int(rng.integers(1, 4))):
            at = int(rng.integers(0, 52)) if i % 5 == 0 else int(rng.integers(notes - 12, len(whole)))
            if at < len(data):
                data[at] = int(rng.choice([0, 1, 4, 0x7F, 0xFF, int(rng.integers(256))]))
        status = ctx("load_graph_helper", bytes(data), len(data), c.byref(value), None)
        refused += status != 0
        if status == 0:
            job = c.c_uint64()
            if ctx("create_job", value, c.byref(job), None) == 0:
                assert ctx("clean_job", job) == 0
            assert ctx("unload_graph", value) == 0
    assert refused > 1000
