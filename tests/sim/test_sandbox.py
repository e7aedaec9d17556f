"""Kernels that mean harm: each ends in an error that says what it did, the caller lives, and the next job runs."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from sim_device import TCBS, Bench, compile_kernel

from compass_core.errors import CompassError
from compass_sim import KernelFault, SimulatorError, Worker

SYSCALL = """
static long call(long n, long a, long b, long c, long d) {
  __asm__ volatile("movq %5, %%r10\\n syscall" : "+a"(n) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(d) : "rcx", "r10", "r11", "memory");
  return n;
}
"""
HARM = """
__kernel void k(__global long* out, int n) {
  if (get_local_id(0) == 1) { %s }
  barrier(CLK_LOCAL_MEM_FENCE);
}
__COMPASS_ENTRY(entry) { k(__COMPASS_POINTER(__global long, 0), __COMPASS_SCALAR(int, 1)); }
"""
OPEN, SOCKET, FORK, CLONE, EXECVE, KILL, PTRACE, UNLINK = 2, 41, 57, 56, 59, 62, 101, 87


def harm(statement: str) -> str:
    return SYSCALL + HARM % statement


def expect(bench: Bench, text: str, *words: int, timeout: float = 10.0) -> CompassError:
    """The error of a run; the next job on a new worker is right."""
    with pytest.raises((KernelFault, SimulatorError)) as caught:
        bench.run(text, *words, timeout=timeout)
    if not bench.worker.alive:
        bench.worker.close()
        bench.worker = Worker()
    out = bench.place(np.zeros(4, np.int64))
    bench.run(HARM % "out[0] = 42;", out, 0)
    assert bench.read(out, np.zeros(1, np.int64))[0] == 42
    return caught.value


PATH = 0x0300_0000
"""Where the tests put the name of a file."""


@pytest.mark.parametrize(
    ("number", "arguments"),
    [
        (OPEN, (PATH, 0, 0, 0)),
        (257, (-100, PATH, 0, 0)),  # openat
        (SOCKET, (2, 1, 0, 0)),
        (FORK, (0, 0, 0, 0)),
        (CLONE, (17, 0, 0, 0)),
        (EXECVE, (PATH, 0, 0, 0)),
        (KILL, (1, 9, 0, 0)),
        (PTRACE, (16, 1, 0, 0)),
        (UNLINK, (PATH, 0, 0, 0)),
        (1, (1, PATH, 1, 0)),  # write
        (44, (0, PATH, 1, 0)),  # sendto, to another file than the parent's
        (234, (1, 1, 12, 0)),  # tgkill of another process
        (9, (0, 4096, 3, 1)),  # mmap of a file
        (203, (1, 128, PATH, 0)),  # sched_setaffinity of another process
        (203, (0, 128, PATH, 0)),  # and of the thread itself: only the engine's own way of naming it is allowed
        (0x4000_0000 | 39, (0, 0, 0, 0)),  # the other numbering of calls
    ],
)
def test_system_calls_are_faults_that_name_the_tec(bench: Bench, number: int, arguments: tuple[int, ...]) -> None:
    bench.write(PATH, b"/bin/sh\0")
    out = bench.place(np.array([number, *arguments], np.int64))
    fault = expect(bench, harm("out[0] = call(out[0], out[1], out[2], out[3], out[4]);"), out, 3)
    assert isinstance(fault, KernelFault)
    assert (fault.kind, fault.tec) == ("system-call", 1) and str(number) in fault.message


def test_the_old_system_call_gate_is_closed(bench: Bench) -> None:
    fault = expect(bench, harm('__asm__ volatile("int $0x80" : : "a"(20) : "memory");'), 0x100000, 3)
    assert isinstance(fault, KernelFault) and fault.kind == "system-call"


def test_filling_device_memory_ends_before_the_host_suffers() -> None:
    with Bench() as bench:
        bench.worker.close()
        bench.worker = Worker(memory_limit=64 << 20)
        text = harm("for (long i = 0; i < (1l << 30); i += 4096) ((__global char*)0x40000000l)[i] = 1;")
        with pytest.raises(KernelFault, match="64 MiB") as caught:
            bench.run(text, 0x100000, 3)
        assert caught.value.kind == "memory"


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        (
            '__asm__ volatile("movabsq $0x1234567890, %%rax; jmpq *%%rax" : : : "rax");',
            "may not touch|outside",
        ),  # a jump to nowhere
        (
            '__asm__ volatile("movl $0x10001, %%eax; jmpq *%%rax" : : : "rax");',
            "may not touch|does not have|outside",
        ),  # a jump into data
        ('__asm__ volatile("hlt");', "outside|may not"),
        ('__asm__ volatile("movq $0, %%rsp; pushq %%rax" : : : "memory");', "may not touch|outside"),
        ("for (;;) out[0]++;", "time limit"),
        ("for (;;) call(34, 0, 0, 0, 0);", "time limit"),  # pause
        ("call(60, 3, 0, 0, 0);", "system call 60"),  # exit of a TEC's thread
        ("call(231, 3, 0, 0, 0);", "ended without a report"),  # exit of the process
    ],
)
def test_wild_code_ends_in_a_clear_error(bench: Bench, statement: str, says: str) -> None:
    import re

    error = expect(
        bench, harm(statement), bench.place(np.zeros(16, np.int64)), 3, timeout=0.2 if says == "time limit" else 60
    )
    assert re.search(says, error.message), error.message


def test_a_kernel_that_destroys_its_control_blocks_hurts_only_itself(bench: Bench) -> None:
    text = harm(f"for (long i = 0; i < 1024; i++) ((__global long*){TCBS}l)[i] = 0x4141414141414141l;")
    bench.run(text, 0, 3)
    with pytest.raises(SimulatorError, match="leaves device memory|entry record|outside device memory|no tasks"):
        bench.worker.dispatch(TCBS, 5)
    assert bench.worker.alive
    bench.run(HARM % "out[0] = 42;", bench.place(np.zeros(1, np.int64)), 0)


def test_forged_reports_are_not_believed(bench: Bench) -> None:
    """Kernel code that writes to the parent itself: wrong sizes, states and text."""
    socket = """
  uint reply[12];
  for (int i = 0; i < 12; i++) reply[i] = 0xffffffffu;
  for (long fd = 0; fd < 64; fd++) call(44, fd, (long)reply, 48, 0x4000);
"""
    error = expect(bench, harm("out[n] = 1;" + socket), bench.place(np.zeros(16, np.int64)), 3)
    assert error.code in {"worker-died", "kernel-system-call"}


def test_the_worker_is_under_the_filter_and_limits(bench: Bench) -> None:
    status = Path(f"/proc/{bench.worker._process.pid}/status").read_text(encoding="utf-8")
    if not bench.worker.unprotected:
        assert "Seccomp:\t2" in status and "NoNewPrivs:\t1" in status


def test_hundreds_of_jobs_leak_nothing(bench: Bench) -> None:
    pid = bench.worker._process.pid

    def resident() -> int:
        lines = Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()
        return int(lines[1])

    data = np.arange(32, dtype=np.int64)
    a = bench.place(data)
    text = 'printf("hello %d\\n", n); out[get_local_id(0)] = n;'
    for i in range(50):
        bench.run(HARM % text, a, i)
    mine, theirs = len(os.listdir("/proc/self/fd")), resident()
    head, count = bench.chain(bench.load(compile_kernel(HARM % text))["entry"])
    for _ in range(500):
        bench.worker.dispatch(head, count)
    assert len(os.listdir("/proc/self/fd")) == mine
    assert resident() - theirs < 64  # pages


def test_workers_that_fault_leave_no_files_and_no_memory_behind() -> None:
    def run_and_fault() -> None:
        with Bench() as bench, pytest.raises(KernelFault):
            bench.run(harm("out[0] = call(57, 0, 0, 0, 0);"), 0x100000, 3)

    run_and_fault()
    files = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        run_and_fault()
    assert len(os.listdir("/proc/self/fd")) == files


@pytest.mark.parametrize("format", ["%s", "%v8hlx %s %s %s"])
@pytest.mark.parametrize("address", ["16", "0x7ffffffff000", "-1l"])
def test_printf_follows_no_pointer_out_of_the_worker(bench: Bench, format: str, address: str) -> None:
    pointer = f"(__private char*)({address})"
    error = expect(bench, harm(f'printf("{format}", {pointer}, {pointer});'), 0x100000, 3)
    assert isinstance(error, KernelFault) and error.tec == 1


def test_printf_writes_nothing(bench: Bench) -> None:
    out = bench.place(np.full(4, 7, np.int64))
    done = bench.run(HARM % 'printf("%n|%hn|%*n", &out[0], &out[1], 5, &out[2]);', out, 0)
    assert done.printf == "%n|%hn|%*n"
    assert (bench.read(out, np.zeros(4, np.int64)) == 7).all()
