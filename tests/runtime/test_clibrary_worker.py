"""What libcompass_runtime tells its worker, and what it makes of a worker that does not answer as it should."""

from __future__ import annotations

import ctypes as c
import struct
import sys

import numpy as np
import pytest
from runtime_kernels import ADD, pointer, scalar

from compass_core import targets
from compass_runtime import clibrary
from compass_runtime.status import Status

SIMULATION = 0x10000
REPLY = struct.Struct("<IIIIiIIIQQ8s")
ENGINE = """#!{python} -IS
import pathlib, socket, struct, sys
home = pathlib.Path({home!r})
(home / "arguments").write_text(" ".join(sys.argv[1:]))
parent = socket.socket(fileno=3)
parent.sendall((home / "hello").read_bytes())
while request := parent.recv(32, socket.MSG_WAITALL):
    answer = (home / "answer").read_bytes()
    parent.sendall(answer[:48] + request[24:] + answer[56:] if len(answer) >= 56 else answer)
    if (home / "end").exists():
        break
"""


class Simulation(c.Structure):
    _fields_ = [
        ("log_level", c.c_uint32),
        ("verbose", c.c_bool),
        ("log_file_path", c.c_char_p),
        ("json_filename", c.c_char_p),
        ("print_subg_info", c.c_bool),
        ("plugin_name", c.c_char_p),
        ("simulator", c.c_char_p),
        ("npu_arch_desc", c.c_char_p),
        ("rest", c.c_uint64 * 8),
    ]


class Session:
    """A context of the library whose worker is a program that answers what the test says."""

    def __init__(self, library, home):
        self.lib, self.home, self.ctx = library, home, c.c_void_p()
        engine = home / "engine"
        engine.write_text(ENGINE.format(python=sys.executable, home=str(home)))
        engine.chmod(0o755)
        (home / "hello").write_bytes(bytes(REPLY.size))
        assert library.aipu_init_context(c.byref(self.ctx)) == 0
        config = Simulation(simulator=str(engine).encode())
        assert self("config_global", c.c_uint64(SIMULATION), c.byref(config)) == 0

    def __call__(self, name, *args):
        return Status(getattr(self.lib, f"aipu_{name}")(self.ctx, *args))

    def job(self, path):
        graph, job, data = c.c_uint64(), c.c_uint64(), path.read_bytes()
        assert self("load_graph_helper", data, len(data), c.byref(graph), None) == 0, self.detail()
        assert self("create_job", graph, c.byref(job), None) == 0
        return job

    def run(self, job, answer):
        (self.home / "answer").write_bytes(answer)
        return self("finish_job", job, 500)

    def detail(self):
        return self.lib.compass_error_detail().decode()


@pytest.fixture
def session(tmp_path):
    library = c.CDLL(str(clibrary.library_path()))
    library.compass_error_detail.restype = c.c_char_p
    made = Session(library, tmp_path)
    yield made
    assert made("deinit_context") == 0


@pytest.mark.parametrize("target", ["X2_1204", "X2_1204MP3", "X3P_1304MP4"])
def test_a_worker_simulates_the_target_of_the_file(session, build, target):
    ends = pointer("a", "input", shape=(8,)), pointer("b", "output", shape=(8,)), scalar("n", value=8)
    session.job(build(ADD, *ends, target=target))
    wanted = targets.load(target)
    *device, memory = map(int, (session.home / "arguments").read_text().split())
    assert device == [wanted.cores, wanted.tecs, wanted.gsram_bytes]
    assert memory > 1 << 20


def test_files_for_other_targets_get_a_worker_of_their_own(session, build, add_fixed):
    ends = pointer("a", "input", shape=(8,)), pointer("b", "output", shape=(8,)), scalar("n", value=8)
    jobs = []
    for path, cores in ((add_fixed, "1"), (build(ADD, *ends, target="X2_1204MP3"), "3")):
        jobs.append(session.job(path))
        assert (session.home / "arguments").read_text().split()[0] == cores
    (session.home / "arguments").unlink()
    for job in (*jobs, *jobs):
        assert session.run(job, REPLY.pack(*[0] * 10, b"")) == 0
    assert not (session.home / "arguments").exists()  # both went on


def test_a_worker_without_its_filter_is_warned_of(session, add_fixed, capfd):
    (session.home / "hello").write_bytes(reply(message=b"no filter here"))
    session.job(add_fixed)
    warning = "compass simulator: warning: no filter here; run only kernels that you trust\n"
    assert capfd.readouterr().err == warning


@pytest.mark.parametrize(("hello", "why"), [(b"", "does not start"), (b"busy", "cannot be used: busy")])
def test_a_worker_that_does_not_start_is_an_error(session, add_fixed, hello, why):
    (session.home / "hello").write_bytes(reply(status=2, message=hello) if hello else b"")
    (session.home / "answer").write_bytes(b"")
    if not hello:
        (session.home / "engine").write_text("#!/none/at/all\n")
    graph, data = c.c_uint64(), add_fixed.read_bytes()
    assert session("load_graph_helper", data, len(data), c.byref(graph), None) is Status.OPEN_DEV_FAIL
    assert why in session.detail()


def reply(status=0, fault=0, locations=0, message=b"", message_size=None, printed=0, tail=b""):
    size = len(message) if message_size is None else message_size
    return REPLY.pack(status, fault, 1, 11, 0, locations, size, printed, 0, 0, b"") + message + tail


@pytest.mark.parametrize(
    ("answer", "status", "detail"),
    [
        (reply(), Status.SUCCESS, None),
        (reply(message_size=2**32 - 1), Status.DEV_ABNORMAL, "damaged"),
        (reply(printed=2**32 - 1), Status.DEV_ABNORMAL, "damaged"),
        (reply(locations=2**32 - 1), Status.DEV_ABNORMAL, "damaged"),
        (reply(locations=2**28, message_size=2**30, printed=2**31), Status.DEV_ABNORMAL, "damaged"),
        (reply()[:20], Status.DEV_ABNORMAL, "damaged"),
        (reply(printed=100, tail=b"short"), Status.DEV_ABNORMAL, "damaged"),
        (reply(status=2, message=b"x" * 5000), Status.JOB_DISPATCH_FAIL, "refuses the job: xxx"),
        (reply(status=77, message=b"\xff%s%n"), Status.JOB_EXCEPTION, None),
        (reply(status=1, fault=1), Status.JOB_EXCEPTION, "TEC 1 faulted (signal 11"),
        (reply(status=1, fault=8), Status.JOB_EXCEPTION, "TEC 1 made the system call"),
    ],
    ids=["done", "message", "printed", "locations", "all", "header", "ends", "refused", "status", "signal", "call"],
)
def test_answers_are_checked_before_they_are_used(session, add_fixed, answer, status, detail):
    job = session.job(add_fixed)
    (session.home / "end").touch()
    assert session.run(job, answer) is status, session.detail()
    assert detail is None or detail in session.detail()
    (session.home / "end").unlink()
    if session.run(job, reply()) is not Status.SUCCESS:  # that worker had ended: the loss is noticed, and made good
        assert session.run(job, reply()) is Status.SUCCESS


def test_shared_arrays_must_fit_the_memory_of_a_core(build):
    library = c.CDLL(str(clibrary.library_path()))
    library.compass_error_detail.restype = c.c_char_p
    text = """
    __kernel void k(__global int* a, __global int* b) {
      __local int all[%d];
      all[get_local_id(0)] = a[0];
      barrier(CLK_LOCAL_MEM_FENCE);
      b[0] = all[0];
    }
    """
    for words, target, status in ((40000, "X2_1204", 0), (40000, "X3P_1304", Status.JOB_DISPATCH_FAIL)):
        path = build(text % words, pointer("a", "input", shape=(1,)), pointer("b", "output", shape=(1,)), target=target)
        ctx, graph, job = c.c_void_p(), c.c_uint64(), c.c_uint64()
        assert library.aipu_init_context(c.byref(ctx)) == 0
        assert library.aipu_load_graph(ctx, str(path).encode(), c.byref(graph), None) == 0
        assert library.aipu_create_job(ctx, graph, c.byref(job), None) == 0
        assert library.aipu_load_tensor(ctx, job, 0, np.ones(1, np.int32).ctypes.data_as(c.c_void_p)) == 0
        assert library.aipu_finish_job(ctx, job, 5000) == status
        assert not status or "160000 bytes" in library.compass_error_detail().decode()
        assert library.aipu_deinit_context(ctx) == 0
