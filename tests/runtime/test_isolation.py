"""One job, one process's memory, nobody else's: forks, other programs, faults of others, what is left behind."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from runtime_kernels import ADD, pointer, scalar
from soak import soak

import compass_runtime as rt
from compass_core.errors import CompassError
from compass_runtime import Program, clibrary, npu
from compass_runtime.driver import JobState, TensorType

HERE = Path(__file__).parent
PLUS = """
__kernel void k(__global int* a, __global int* b, int bad) {
  if (get_local_id(0) == 0) b[bad ? -(1 << 29) : 0] = a[0] + %d;
}
"""
WITH_CONSTANT = """
__kernel void k(__global int* a, __constant int* w, __global int* b, int bad) {
  if (get_local_id(0) == 0) b[bad ? -(1 << 29) : 0] = a[0] + w[0];
}
"""
# Surplus answers, each that of a job which is done; and all of low device memory but this TEC's own tasks overwritten.
FORGES = """
#define JOINED(a, b) a##b
#define ASSEMBLY JOINED(__as, m__)
__kernel void k(__global int* a, __global int* b) {
  uint reply[14] = {0};
  if (get_local_id(0) == 0)
    for (int i = 0; i < 5; i++) {
      long n = 44;
      ASSEMBLY volatile("movq $0x4000, %%r10\\n movq $0, %%r8\\n movq $0, %%r9\\n syscall" : "+a"(n)
                       : "D"(3l), "S"(reply), "d"(56l) : "rcx", "r8", "r9", "r10", "r11", "memory");
    }
  b[0] = a[0];
}
"""
OVERWRITES = """
__kernel void k(__global int* a, __global int* b) {
  if (get_local_id(0) == 0)
    for (long at = 0x10000; at < 0x1000000; at += 4) *(volatile __global int*)at = 0x41414141;
}
"""


@pytest.fixture(scope="module")
def plus(build):
    """A function: the path of a program that adds a number."""
    ends = pointer("a", "input", shape=(1,)), pointer("b", "output", shape=(1,)), scalar("bad")
    return lambda number: build(PLUS % number, *ends)


def add(program, value, bad=0):
    b = np.zeros(1, np.int32)
    program.call([np.full(1, value, np.int32), b, bad])
    return int(b[0])


def wrong_sums(program, first, job=None):
    """How many of 50 sums are wrong, by a call and by a job that was made before."""
    wrong = 0
    for value in range(first, first + 50):
        wrong += add(program, value) != value + 1
        if job is not None:
            wrong += int(job.run([np.full(1, value, np.int32)])["b"][0]) != value + 1
    return wrong


def in_child(function):
    """The exit status of a forked child in which the function gives it; 99 for an exception, which is shown."""
    child = os.fork()
    if child == 0:
        status = 99
        try:
            status = function()
        finally:
            if status == 99:
                sys.excepthook(*sys.exc_info())
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_parent_and_children_do_not_share_a_worker(plus):
    program = Program.load(plus(1))
    job = program.create_job(values={"bad": 0})
    assert wrong_sums(program, 0, job) == 0
    worker = job.device.worker.pid
    with multiprocessing.get_context("fork").Pool(3, BEFORE.update, ({"fork": (program, job)},)) as pool:
        theirs = [pool.apply_async(wrong_sums_of, (1000 * i,)) for i in range(1, 7)]
        mine = sum(wrong_sums(program, 0, job) for _ in range(5))
        assert [mine, *(one.get(60) for one in theirs)] == [0] * 7
    assert job.device.worker.pid == worker and job.device.alive


BEFORE = {}
"""What the processes of a pool have from before the fork: a program, and a job of it."""


def wrong_sums_of(first):
    program, job = BEFORE["fork"]
    return wrong_sums(program, first, job)


def test_a_child_has_its_own_results_after_a_fault_in_the_parent_and_the_other_way_round(plus):
    program = Program.load(plus(1))
    assert add(program, 1) == 2
    with pytest.raises(CompassError):
        add(program, 1, bad=1)

    def child():
        try:
            add(program, 1, bad=1)
        except CompassError as error:
            return wrong_sums(program, 7) if error.code == "kernel-segv" else 1
        return 1

    assert in_child(child) == 0
    assert wrong_sums(program, 0) == 0


def test_what_was_loaded_before_a_fork_is_to_be_loaded_again(plus):
    context = rt.Context()
    graph = context.load_graph(plus(1))
    job = context.create_job(graph, values={"bad": 0})
    context.load_tensor(job, 0, np.full(1, 41, np.int32))

    def child():
        with pytest.raises(CompassError, match="what was loaded into 'a' went"):
            context.finish_job(job)
        context.load_tensor(job, 0, np.full(1, 5, np.int32))
        context.finish_job(job)
        return int.from_bytes(context.get_tensor(job, TensorType.OUTPUT, 0), "little")

    assert in_child(child) == 6
    context.finish_job(job)
    assert int.from_bytes(context.get_tensor(job, TensorType.OUTPUT, 0), "little") == 42


def test_a_result_before_a_fork_is_the_parents(plus):
    context = rt.Context()
    job = context.create_job(context.load_graph(plus(1)), values={"bad": 0})
    context.load_tensor(job, 0, np.full(1, 41, np.int32))
    context.finish_job(job)

    def child():
        with pytest.raises(CompassError):
            context.get_tensor(job, TensorType.OUTPUT, 0)
        return 7

    assert in_child(child) == 7
    assert int.from_bytes(context.get_tensor(job, TensorType.OUTPUT, 0), "little") == 42


def test_locks_of_other_threads_do_not_hold_a_child(plus):
    program = Program.load(plus(1))
    job = program.create_job(values={"bad": 0})
    add(program, 1)
    held, done = threading.Event(), threading.Event()

    def hold():
        kept = next(iter(program.caller._jobs.values()))
        with job.lock, kept.lock, program._lock, program.caller._lock, npu._open_lock, job.device.lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        assert in_child(lambda: wrong_sums(program, 0, job)) == 0
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize("text", [FORGES, OVERWRITES], ids=["forges", "overwrites"])
def test_a_hostile_program_makes_no_other_wrong(build, plus, text):
    ends = pointer("a", "input", shape=(1,)), pointer("b", "output", shape=(1,))
    hostile = Program.load(build(text, *ends))
    honest = [
        Program.load(plus(1)),
        Program.load(build(ADD, pointer("a", "input"), pointer("b", "output"), scalar("n"))),
    ]
    for value in range(30):
        try:
            hostile.call([np.zeros(1, np.int32), np.zeros(1, np.int32)])
        except CompassError as error:
            assert error.code in {"worker-died", "job-refused", "kernel-segv"}
        assert add(honest[0], value) == value + 1
        b = np.zeros(2, np.int32)
        honest[1].call([np.full(2, value, np.int32), b, 2])
        assert b.tolist() == [value + 1] * 2


def test_programs_share_a_device_when_they_are_the_same_file(plus):
    one, same, other = Program.load(plus(1)), Program.load(plus(1).read_bytes()), Program.load(plus(2))
    devices = [program.graph().device for program in (one, same, other)]
    assert devices[0] is devices[1] and devices[0] is not devices[2]
    assert (add(one, 1), add(same, 1), add(other, 1)) == (2, 2, 3)
    del one
    assert add(same, 1) == 2  # what the other one had is free, and this one's is not


def test_more_programs_than_may_be_open_take_turns(plus, monkeypatch):
    monkeypatch.setattr(npu, "_most_open", lambda: 2)
    programs = [Program.load(plus(number)) for number in range(1, 6)]
    kept = programs[0].create_job(values={"bad": 0})
    kept.inputs[0].load(np.full(1, 70, np.int32))  # what is here alone is not thrown away for others
    for value in range(3):
        assert [add(program, value) for program in programs] == [value + n for n in range(1, 6)]
        assert sum(not device.is_held for device in npu._open) <= 2
    kept.execute()
    assert kept.outputs[0].fetch().tolist() == [71]


def test_a_fault_of_another_job_takes_no_content_without_a_word(plus):
    context = rt.Context()
    graph = context.load_graph(plus(1))
    ready, done, bad = (context.create_job(graph, values={"bad": int(i == 2)}) for i in range(3))
    for job in (ready, done, bad):
        context.load_tensor(job, 0, np.full(1, 41, np.int32))
    context.finish_job(done)
    with pytest.raises(CompassError):
        context.finish_job(bad)
    assert context.get_job_status(done) is JobState.DONE
    assert int.from_bytes(context.get_tensor(done, TensorType.OUTPUT, 0), "little") == 42
    with pytest.raises(CompassError, match="what was loaded into 'a' went"):
        context.finish_job(ready)
    context.load_tensor(ready, 0, np.full(1, 7, np.int32))
    context.finish_job(ready)
    assert int.from_bytes(context.get_tensor(ready, TensorType.OUTPUT, 0), "little") == 8


def test_constants_of_a_job_outlive_the_fault_of_another(build):
    ends = (
        pointer("a", "input", shape=(1,)),
        pointer("w", "const", shape=(1,)),
        pointer("b", "output", shape=(1,)),
        scalar("bad"),
    )
    program = Program.load(build(WITH_CONSTANT, *ends, consts={"w": np.full(1, 3, np.int32).tobytes()}))
    job = program.create_job(values={"bad": 0})
    job.set_constant("w", np.full(1, 500, np.int32))
    a = np.full(1, 1, np.int32)
    assert job.run([a])["b"].tolist() == [501]
    with pytest.raises(CompassError):
        program.create_job(values={"bad": 1}).run([a])
    assert job.run([a])["b"].tolist() == [501]


def test_faults_leave_nothing_behind():
    assert soak(45, 15) == []


LIBRARY = """
import ctypes as c, _ctypes, os, sys
import numpy as np
path, file, streams = sys.argv[1:4]
for stream in range(3 if streams == "closed" else 0):
    os.close(stream)
OUTPUT = 1

class Session:
    def __init__(self):
        self.lib = c.CDLL(path)
        self.lib.compass_error_detail.restype = c.c_char_p
        self.ctx = c.c_void_p()
        assert self.lib.aipu_init_context(c.byref(self.ctx)) == 0
        self.graph, self.job = c.c_uint64(), c.c_uint64()
        self("load_graph", file.encode(), c.byref(self.graph), None)
        self("create_job", self.graph, c.byref(self.job), None)

    def status(self, name, *args):
        return getattr(self.lib, "aipu_" + name)(self.ctx, *args)

    def __call__(self, name, *args):
        assert self.status(name, *args) == 0, (name, self.lib.compass_error_detail())

    def load(self, value):
        self.a = np.full(1, value, np.int32)
        self("load_tensor", self.job, 0, self.a.ctypes.data_as(c.c_void_p))

    def add(self, value):
        b = np.zeros(1, np.int32)
        self.load(value)
        self("finish_job", self.job, 20000)
        self("get_tensor", self.job, OUTPUT, 0, b.ctypes.data_as(c.c_void_p))
        return int(b[0])

    def wrong(self, first):
        return sum(self.add(value) != value + 1 for value in range(first, first + 50))

def ends(wanted, child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == wanted

def children():
    return open(f"/proc/self/task/{os.getpid()}/children").read().split()
"""
FORKS = """
session = Session()
assert session.wrong(0) == 0
session.load(77)
forked = []
for number in range(3):
    child = os.fork()
    if child == 0:
        refused = session.status("finish_job", session.job, 20000) != 0
        again = b"load it again" in session.lib.compass_error_detail()
        os._exit(session.wrong(1000 * number) + 60 * (not refused or not again))
    forked.append(child)
assert session.wrong(0) == 0
assert all(ends(0, child) for child in forked)
assert session.wrong(0) == 0 and len(children()) == 1
os._exit(42)
"""
CLOSES = """
for round in range(4):
    session = Session()
    assert session.add(1) == 2
    if round % 2:
        session("flush_job", session.job, None)  # runs in a thread of the library
    handle = session.lib._handle
    del session
    _ctypes.dlclose(handle)
    if not round:
        files = len(os.listdir("/proc/self/fd"))
    assert not children(), children()
    assert len(os.listdir("/proc/self/fd")) == files
    assert not any("libcompass_runtime" in line for line in open("/proc/self/maps"))
os._exit(42)
"""
ADDS = "os._exit(42 if Session().wrong(0) == 0 else 1)"
ENDLESS = """
__kernel void k(__global int* a, __global int* b) {
  b[0] = a[0] + 1;
  while (*(volatile __global int*)a == 41) {}
}
"""
CLOSES_ENDLESS = """
session = Session()
session.load(41)
session("flush_job", session.job, None)
handle = session.lib._handle
_ctypes.dlclose(handle)
assert not children()
os._exit(42)
"""


def run_library(script, file, streams="open"):
    """The exit status of a program that uses the C library."""
    command = [sys.executable, "-c", LIBRARY + script, str(clibrary.library_path()), str(file), streams]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize("streams", ["open", "closed"])
@pytest.mark.parametrize("script", [FORKS, CLOSES, ADDS], ids=["forks", "closes", "adds"])
def test_the_c_library_keeps_processes_apart_and_leaves_nothing(build, script, streams):
    file = build(ADD, pointer("a", "input", shape=(1,)), pointer("b", "output", shape=(1,)), scalar("n", value=1))
    assert run_library(script, file, streams) == (42, "")


def test_dlclose_ends_a_job_that_runs(build):
    file = build(ENDLESS, pointer("a", "input", shape=(1,)), pointer("b", "output", shape=(1,)))
    assert run_library(CLOSES_ENDLESS, file) == (42, "")


CLOSED = """
import os, sys
import numpy as np
for stream in range(3):
    os.close(stream)
from compass_runtime import Program
b = np.zeros(1, np.int32)
Program.load(sys.argv[1]).call([np.full(1, 41, np.int32), b, 0])
os._exit(int(b[0]))
"""


def test_a_program_with_closed_streams_runs_kernels(plus):
    assert subprocess.run([sys.executable, "-c", CLOSED, str(plus(1))], check=False).returncode == 42
