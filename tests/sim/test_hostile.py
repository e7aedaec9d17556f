"""Kernels that attack their worker, and through it the parent: what they may do to themselves stays with them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sim_device import Bench
from test_sandbox import HARM, expect, harm

from compass_sim import KernelFault, RunResult, SimulatorError, Worker, memory_map, worker

HERE = Path(__file__).parent
MIB = 1 << 20
# Makes what it can find of the engine writable, from a return address that the engine left on the stack, and writes over
# all of it but the page that it stands on.
OVERWRITE = """
  long here = ((long)__builtin_frame_address(0) | 0xfffff) + 1 - 72;
  long engine = *(long*)here & ~4095l;
  for (long page = engine - (96l << 12); page < engine + (96l << 12); page += 4096)
    if (call(10, page, 4096, 7, 0) == 0)
      for (long i = 0; i < 4096; i += 8) *(volatile long*)(page + i) = %s;
"""
FORGED = """
  uint reply[14];
  for (int i = 0; i < 14; i++) reply[i] = 0;
  for (int i = 0; i < %d; i++) call(44, 3, (long)reply, 56, 0x4000);
"""


@pytest.mark.parametrize(
    ("number", "arguments"),
    [
        (234, (1, 1, 19, 0)),  # tgkill: nothing stops the worker
        (62, (0, 19, 0, 0)),  # kill
        (14, (0, 0, 0, 8)),  # rt_sigprocmask
        (13, (11, 0, 0, 8)),  # rt_sigaction
        (25, (4096, 4096, 8192, 1)),  # mremap
        (9, (0, 4096, 3, 0x21)),  # mmap, shared
        (9, (0, 4096, 3, 0x122)),  # mmap of what grows by itself: no limit counts it
        (28, (65536, 4096, 100, 0)),  # madvise: a page of the host declared broken
        (28, (65536, 4096, 14, 0)),  # huge pages
        (149, (65536, 4096, 0, 0)),  # mlock
        (202, (65536, 6, 0, 0)),  # futex with priorities
        (202, (65536, 0, 0, 0)),  # futex that others share
        (72, (5, 4, 0, 0)),  # fcntl: the lifeline stays what it is
        (3, (5, 0, 0, 0)),  # close
        (33, (3, 5, 0, 0)),  # dup2
        (157, (1, 0, 0, 0)),  # prctl
        (160, (2, 0, 0, 0)),  # setrlimit
        (302, (0, 2, 0, 0)),  # prlimit
        (56, (0x10000, 0, 0, 0)),  # clone, a thread
        (435, (0, 0, 0, 0)),  # clone3
        (425, (8, 0, 0, 0)),  # io_uring_setup
        (46, (3, 0, 0, 0)),  # sendmsg, which could send descriptors
        (222, (0, 0, 65536, 0)),  # timer_create
    ],
)
def test_no_call_reaches_beyond_the_worker(shared_hostile: Bench, number: int, arguments: tuple[int, ...]) -> None:
    out = shared_hostile.place(np.array([number, *arguments], np.int64))
    fault = expect(shared_hostile, harm("out[0] = call(out[0], out[1], out[2], out[3], out[4]);"), out, 3)
    assert isinstance(fault, KernelFault)
    assert fault.kind == "system-call" and f"system call {number} " in fault.message


@pytest.fixture(scope="module")
def shared_hostile():
    with Bench() as bench:
        yield bench


@pytest.mark.parametrize("value", ["0", "-1l", "0xccccccccccccccccl", "here"])
@pytest.mark.parametrize("then", ["", "for (;;) {}"])
def test_an_engine_that_is_overwritten_is_an_error_and_no_more(bench: Bench, value: str, then: str) -> None:
    error = expect(bench, harm(OVERWRITE % value + then), bench.place(np.zeros(4, np.int64)), 3, timeout=0.5)
    assert error.code in {"worker-died", "kernel-timeout", "kernel-segv", "kernel-illegal", "kernel-system-call"}


@pytest.mark.parametrize("surplus", [1, 2, 3])
def test_a_report_that_nobody_asked_for_is_not_believed(bench: Bench, surplus: int) -> None:
    error = expect(bench, harm(FORGED % surplus), bench.place(np.zeros(4, np.int64)), 3)
    assert error.code == "worker-died" and "nobody asked for" in error.message


def test_an_answer_byte_by_byte_ends_at_the_deadline(bench: Bench) -> None:
    text = """
      long beat[2] = {1, 0};
      for (;;) { call(44, 3, (long)beat, 1, 0x4000); call(35, (long)beat, 0, 0, 0); }
    """
    begun = time.monotonic()
    error = expect(bench, harm(text), bench.place(np.zeros(4, np.int64)), 3, timeout=0.2)
    assert error.code in {"kernel-timeout", "worker-died"}
    assert time.monotonic() - begun < 50  # 56 seconds of bytes


MAPS = """
  for (long size = 1l << 30; size >= 4096; size >>= 1)
    for (;;) {
      long at = call9(0, size, 3, %s);
      if (at < 0 && at > -4096) break;
      out[4] += size;
    }
"""
CALL9 = """
static long call9(long a, long b, long c, long d) {
  long n = 9;
  __asm__ volatile("movq %5, %%r10\\n movq $-1, %%r8\\n movq $0, %%r9\\n syscall" : "+a"(n)
                   : "a"(n), "D"(a), "S"(b), "d"(c), "r"(d) : "rcx", "r8", "r9", "r10", "r11", "memory");
  return n;
}
"""


@pytest.mark.parametrize("flags", ["0x22", "0x4022"])
def test_a_worker_gets_no_more_memory_than_its_limit(flags: str) -> None:
    with Bench() as bench:
        bench.worker.close()
        bench.worker = Worker(memory_limit=64 * MIB)
        out = bench.place(np.zeros(8, np.int64))
        bench.run(CALL9 + harm(MAPS % flags), out, 3)
        got = int(bench.read(out, np.zeros(8, np.int64))[4])
        assert 0 < got <= 256 * MIB
        assert len(bench.worker.memory) == 64 * MIB


def test_no_address_has_memory_beyond_the_limit() -> None:
    with Bench() as bench:
        bench.worker.close()
        bench.worker = Worker(memory_limit=64 * MIB)
        with pytest.raises(KernelFault, match="64 MiB") as caught:
            bench.run(harm("*(volatile int*)0x90000000l = 1;"), bench.place(np.zeros(4, np.int64)), 3)
        assert caught.value.kind == "memory"


@pytest.mark.parametrize(
    ("limit", "size"),
    [
        (0, memory_map.WINDOW_HIGH),
        (64 * MIB, 64 * MIB),
        (64 * MIB + 1, 64 * MIB + 4096),
        (2048 * MIB, 2560 * MIB),
        (1 << 40, memory_map.WINDOW_HIGH),
    ],
)
def test_device_memory_is_as_long_as_what_may_be_in_use(limit: int, size: int) -> None:
    assert memory_map.file_size(limit, checks=False) == size
    assert memory_map.file_size(limit, checks=True) == memory_map.WINDOW_HIGH


def test_a_worker_has_no_files_but_its_own() -> None:
    inherited = os.open("/etc/hostname", os.O_RDONLY)
    os.set_inheritable(inherited, True)
    try:
        with Bench() as bench:
            files = Path(f"/proc/{bench.worker.pid}/fd")
            links = {int(f.name): os.readlink(f) for f in files.iterdir()}
    finally:
        os.close(inherited)
    assert sorted(links) == [0, 1, 2, 3, 4, 5]
    assert {links[i] for i in range(3)} == {"/dev/null"}


PARENT = """
import sys, threading
sys.path.insert(0, {here!r})
from sim_device import Bench
from test_hostile import OVERWRITE, harm
bench = Bench()
def begin():  # the thread that started it goes first
    bench.worker.close()
    bench.worker = type(bench.worker)()
thread = threading.Thread(target=begin)
thread.start()
thread.join()
print(bench.worker.pid, flush=True)
bench.run(harm({statement!r}), 0x100000, 3, timeout=100.0)
"""


@pytest.mark.parametrize(
    "statement",
    [
        "for (;;) {}",
        OVERWRITE % 0,
        OVERWRITE % "here" + "for (;;) {}",
        f"for (long at = 0x10000; at < {memory_map.ENGINE_LOW:#x}l; at += 4096) call(11, at, 4096, 0, 0); for (;;) {{}}",  # munmap
    ],
    ids=["loops", "overwrites", "overwrites-loops", "unmaps"],
)
def test_a_worker_ends_with_its_parent_whatever_it_did(statement: str) -> None:
    text = PARENT.format(here=str(HERE), statement=statement)
    parent = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert parent.stdout is not None
    with parent.stdout:
        worker = int(parent.stdout.readline())
        time.sleep(0.3)
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
    assert gone(worker)


def gone(pid: int) -> bool:
    """Whether a process that is not our child ends soon; what remains of it may wait for its new parent."""
    for _ in range(500):
        try:
            state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0]
        except OSError:
            return True
        if state in "ZX":
            return True
        time.sleep(0.01)
    return False


def test_a_stopped_worker_ends_with_its_parent_and_at_the_deadline(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else may stop it; the parent still ends it."""
    monkeypatch.setattr(worker, "_GRACE", 0.1)
    os.kill(bench.worker.pid, signal.SIGSTOP)
    with pytest.raises((KernelFault, SimulatorError)):
        bench.run(HARM % "out[0] = 1;", bench.place(np.zeros(4, np.int64)), 3, timeout=0.2)
    assert not bench.worker.alive


def test_closed_standard_streams_are_no_descriptors_of_ours() -> None:
    text = f"""
import os, sys
sys.path.insert(0, {str(HERE)!r})
import numpy as np
from sim_device import Bench
from test_sandbox import HARM
for stream in range(3):
    os.close(stream)
with Bench() as bench:
    out = bench.place(np.zeros(4, np.int64))
    bench.run(HARM % 'printf("to nobody"); out[0] = 42;', out, 0)
    os._exit(int(bench.read(out, np.zeros(1, np.int64))[0]))
"""
    assert subprocess.run([sys.executable, "-c", text], check=False).returncode == 42


def test_forked_children_leave_the_worker_to_their_parent(bench: Bench) -> None:
    out = bench.place(np.zeros(4, np.int64))
    child = os.fork()
    if child == 0:
        try:
            bench.worker.dispatch(0x100000, 1)
        except SimulatorError as error:
            bench.worker.close()
            os._exit(7 if error.code == "worker-ended" and not bench.worker.alive else 1)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    result = bench.run(HARM % "out[0] = 42;", out, 0)
    assert isinstance(result, RunResult) and bench.read(out, np.zeros(1, np.int64))[0] == 42
