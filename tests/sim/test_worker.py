"""The worker: runs chains of tasks, many times, side by side; and what a kernel does wrong stays in its process."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import pytest
from sim_device import PARAMS, TCBS, TEXT, Bench, compile_kernel

from compass_sim import KernelFault, SimulatorError, Worker, mailbox, memory_map
from compass_sim.lines import locate
from tests.choosing import some

ADD = """
__kernel void add(__global int* a, __global int* b, int n) {
  int tid = get_local_id(0);
  for (int i = tid; i < n; i += get_local_size(0)) {
    __vstore((__vload((__global int8*)(a + i * 8), ALL_TRUE_w) + (int8)(tid + 1)), (__global int8*)(b + i * 8), ALL_TRUE_w);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}
__COMPASS_ENTRY(entry) { add(__COMPASS_POINTER(__global int, 0), __COMPASS_POINTER(__global int, 1), __COMPASS_SCALAR(int, 2)); }
"""
SHARED_MEMORY = """
__kernel void pass_on(__global int* out, int rounds) {
  __local int box[4];
  int tid = get_local_id(0);
  int sum = 0;
  for (int i = 0; i < rounds; i++) {
    box[tid] = i * 10 + tid;
    barrier(CLK_LOCAL_MEM_FENCE);
    sum += box[(tid + 1) & 3];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  out[tid] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
}
__COMPASS_ENTRY(entry) { pass_on(__COMPASS_POINTER(__global int, 0), __COMPASS_SCALAR(int, 1)); }
"""


def expect_fault(bench: Bench, text: str, *words: int, timeout: float = 20.0) -> KernelFault:
    """The fault a kernel ends in; afterwards its worker is gone and says so, and a new one works."""
    with pytest.raises(KernelFault) as caught:
        bench.run(text, *words, timeout=timeout)
    assert not bench.worker.alive
    with pytest.raises(SimulatorError, match="ended"):
        bench.worker.dispatch(TCBS, 1)
    return caught.value


def line_of(fault: KernelFault, text: str) -> int:
    """The line of the kernel text that a fault points at."""
    assert fault.pc is not None
    place = locate(compile_kernel(text), fault.pc)
    assert place is not None and place[0].endswith("kernel.py")
    return place[1]


@pytest.mark.parametrize("kind", ["x2", "x3"])
@pytest.mark.parametrize("tasks", [1, 3, 4])
def test_tasks_share_the_work(bench: Bench, kind: str, tasks: int) -> None:
    data = np.arange(8 * 13, dtype=np.int32)
    a, b = bench.place(data), bench.place(np.zeros_like(data))
    result = bench.run(ADD, a, b, 13, kind=kind, tasks=tasks, groups=2)
    assert (bench.read(b, data) == data + np.repeat(np.arange(13) % tasks + 1, 8)).all()
    assert result.seconds > 0 and result.printf == ""


def test_barriers_and_shared_memory(bench: Bench) -> None:
    rounds = 500
    out = bench.place(np.zeros(4, np.int32))
    bench.run(SHARED_MEMORY, out, rounds)
    expected = [sum(i * 10 + (tid + 1) % 4 for i in range(rounds)) for tid in range(4)]
    assert bench.read(out, np.zeros(4, np.int32)).tolist() == expected


def test_many_jobs_on_one_worker_and_changing_code(bench: Bench) -> None:
    data = np.arange(32, dtype=np.int32)
    a, b = bench.place(data), bench.place(data)
    for i in range(60):
        bench.run(ADD.replace("tid + 1", f"tid + {i % 3}"), a, b, 4)
        assert (bench.read(b, data) == data + np.repeat(np.arange(4) + i % 3, 8)).all()
    head, count = bench.chain(TEXT + 64)
    for _ in range(300):
        bench.worker.dispatch(head, count)


def test_chains_of_many_kernels_run_each_one_that_is_named(bench: Bench) -> None:
    """More kernels than the engine remembers, in one text, twice."""
    many = range(70)
    text = "".join(
        f"__kernel void k{i}(__global int* a) {{ if (get_local_id(0) == 0) a[{i}] = 10 * a[{i}] + {i} % 7 + 1; }}\n"
        f"__COMPASS_ENTRY(entry{i}) {{ k{i}(__COMPASS_POINTER(__global int, 0)); }}\n"
        for i in many
    )
    entries = bench.load(compile_kernel(text), [f"entry{i}" for i in many])
    places = bench.place(np.zeros(len(many), np.int32))
    bench.parameters(places)
    named = [entries[f"entry{i}"] for i in (*many, *reversed(many))]
    head, count = bench.chain(0, groups=len(named), tasks=1)
    for number, spc in enumerate(named):
        bench.write(TCBS + 128 * (number + 1) + 12, spc.to_bytes(4, "little"))
    bench.worker.dispatch(head, count)
    assert bench.read(places, np.zeros(len(many), np.int32)).tolist() == [11 * (i % 7 + 1) for i in many]


@pytest.mark.parametrize("other", ["tid + 1", "tid - 1"])
@pytest.mark.parametrize("met", ["", "barrier(CLK_LOCAL_MEM_FENCE);"])
def test_tasks_that_were_brief_may_wait_for_each_other_the_next_time(bench: Bench, met: str, other: str) -> None:
    """A brief group runs on one thread; when its tasks then wait for others, which have not begun or were left at a barrier,
    these get threads after all."""
    text = f"""
__kernel void k(__global int* flags) {{
  int tid = get_local_id(0), other = {other};
  volatile __global int* flag = flags;
  {met}
  if (flags[8])
    while (other >= 0 && other < 4 && !flag[other]) {{}}
  flag[tid] = 1;
}}
__COMPASS_ENTRY(entry) {{ k(__COMPASS_POINTER(__global int, 0)); }}
"""
    flags = bench.place(np.zeros(16, np.int32))
    for _ in range(3):
        bench.run(text, flags)
    bench.place(np.array([0] * 8 + [1] * 8, np.int32), flags)
    bench.run(text, flags)
    assert bench.read(flags, np.zeros(4, np.int32)).tolist() == [1, 1, 1, 1]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one processor only")
def test_threads_that_help_keep_off_the_main_threads_processor(bench: Bench) -> None:
    """But for jobs that take long, as any may where other processes are busy: then they may go anywhere."""
    alone = ADD.replace("barrier(CLK_LOCAL_MEM_FENCE);", "")
    data = np.arange(8 * 5000, dtype=np.int32)
    a, b = bench.place(data), bench.place(data)
    pid = bench.worker._process.pid
    everywhere = os.sched_getaffinity(pid)
    assert everywhere == os.sched_getaffinity(0)
    for _ in range(200):
        bench.run(alone, a, b, 5000)
        threads = [int(thread) for thread in os.listdir(f"/proc/{pid}/task") if int(thread) != pid]
        apart = [allowed for allowed in map(os.sched_getaffinity, threads) if allowed != everywhere]
        if apart:
            break
    assert len(apart) >= 4 and all(allowed == apart[0] for allowed in apart)
    assert len(everywhere - apart[0]) == 1


def test_static_storage_starts_each_job_as_the_object_has_it(bench: Bench) -> None:
    text = """
__kernel void k(__global int* out) {
  __local int count[1];
  if (get_local_id(0) == 0) { out[0] = count[0]; count[0] = out[1]; }
  barrier(CLK_LOCAL_MEM_FENCE);
}
__COMPASS_ENTRY(entry) { k(__COMPASS_POINTER(__global int, 0)); }
"""
    out = bench.place(np.array([99, 7], np.int32))
    for _ in range(2):
        bench.run(text, out)
        assert bench.read(out, np.zeros(1, np.int32))[0] == 0


def test_workers_side_by_side_do_not_see_each_other() -> None:
    data = np.arange(32, dtype=np.int32)
    with Bench() as one, Bench() as two:
        places = [(bench.place(data * k), bench.place(data)) for k, bench in ((1, one), (2, two))]
        for bench, (a, b) in some(zip((one, two), places, strict=True)):
            bench.run(ADD, a, b, 4)
        for k, (bench, (_, b)) in some(enumerate(zip((one, two), places, strict=True), 1)):
            assert (bench.read(b, data) == data * k + np.repeat(np.arange(1, 5), 8)).all()


WRONG = """
__kernel void wrong(__global int* a, int n) {
  if (get_local_id(0) == 2) {
    %s
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}
__COMPASS_ENTRY(entry) { wrong(__COMPASS_POINTER(__global int, 0), __COMPASS_SCALAR(int, 1)); }
"""


@pytest.mark.parametrize(
    ("statement", "pointer", "kind", "says"),
    [
        ("a[n] = 1;", 0, "segv", "null pointer"),
        ("__vstore((int8)1, (__global int8*)(a + n), ALL_TRUE_w);", 0xFFFFF000, "segv", "not part of device memory"),
        ("a[(long)n << 40] = 1;", 0x100000, "segv", "not a device address"),
        ("MemsetDDR(a, 64, 5, 2, 0);", 0x100, "segv", "null pointer"),
        ("a[0] = n / (n - 3);", 0x100000, "arithmetic", "divided"),
        (f"((__global int*){memory_map.ENGINE_LOW:#x}ul)[0] = 1;", 0, "segv", "read-only"),
        ('__asm__ volatile("ud2");', 0, "illegal", "does not have"),
        ("AIFF(a, a, a, 0);", 0x100000, "unsupported", "AIFF"),
    ],
)
def test_faults_name_tec_and_line(bench: Bench, statement: str, pointer: int, kind: str, says: str) -> None:
    text = WRONG % statement
    fault = expect_fault(bench, text, pointer, 3)
    assert (fault.kind, fault.tec) == (kind, 2)
    assert says in " ".join((fault.message, *(note.message for note in fault.notes)))
    assert line_of(fault, text) == 4


def test_printed_text_survives_a_fault(bench: Bench) -> None:
    fault = expect_fault(bench, WRONG % 'printf("before %d\\n", n); a[0] = 1;', 0, 3)
    assert fault.printed == "before 3\n"


def test_stack_overflow_is_told_from_other_faults(bench: Bench) -> None:
    text = """
_CLC_NOINLINE int deep(__global int* a, int n);
__kernel void k(__global int* a, int n) { a[0] = deep(a, n); barrier(CLK_LOCAL_MEM_FENCE); }
_CLC_NOINLINE int deep(__global int* a, int n) {
  int big[300];
  for (int i = 0; i < 300; i++) big[i] = a[i];
  return n ? deep(a, n - 1) + big[n & 255] : big[1];
}
__COMPASS_ENTRY(entry) { k(__COMPASS_POINTER(__global int, 0), __COMPASS_SCALAR(int, 1)); }
"""
    fault = expect_fault(bench, text, bench.place(np.zeros(512, np.int32)), 1000000)
    assert fault.kind == "segv" and "stack" in fault.notes[0].message


def test_endless_loop_ends_at_the_time_limit(bench: Bench) -> None:
    text = WRONG % "for (int i = 0; n; i++) a[i & 7] = i;"
    for limit in (0.3, 1.0, 5.0, 25.0):  # until the machine has given all of them a turn
        fault = expect_fault(bench, text, bench.place(np.zeros(8, np.int32)), 3, timeout=limit)
        assert fault.kind == "timeout"
        if [at.state for at in fault.locations].count("at a barrier") == 3:
            break
    waiting = [at.pc for at in fault.locations if at.state == "at a barrier"]
    assert len(waiting) == 3 and len(set(waiting)) == 1 and waiting[0] is not None and fault.tec == 2
    assert line_of(fault, text) == 4


def test_time_may_end_before_all_tecs_have_begun(bench: Bench) -> None:
    """With fewer processors than TECs, some tasks wait for a while for others to end."""
    text = (WRONG % "for (int i = 0; n == 0; i++) a[i & 7] = i;").replace("get_local_id(0) == 2", "n == 0")
    fault = expect_fault(bench, text, bench.place(np.zeros(8, np.int32)), 0, timeout=0.002)
    assert fault.kind == "timeout"
    assert {at.state for at in fault.locations} <= {"running", "not started"} and len(fault.locations) == 4


def test_barrier_that_one_tec_misses_is_a_deadlock(bench: Bench) -> None:
    text = WRONG % "return;"
    fault = expect_fault(bench, text, 0, 3)
    assert fault.kind == "deadlock"
    assert [at.state for at in fault.locations].count("finished") == 1
    assert line_of(fault, text) == 6


LEAVE = """
__kernel void k(__global int* a, int n) {
  int tid = get_local_id(0);
  a[tid] = 1;
  %s
  __compass_last_barrier();
}
__COMPASS_ENTRY(entry) { k(__COMPASS_POINTER(__global int, 0), __COMPASS_SCALAR(int, 1)); }
"""


@pytest.mark.parametrize(
    ("missed", "who"),
    [
        ("if (tid == 2) return;", "TECs 0, 1, 3 wait for ever"),
        ("if (tid == 2) barrier(CLK_LOCAL_MEM_FENCE);", "TEC 2 waits for ever"),
    ],
)
def test_the_last_barrier_is_one_that_all_must_reach(bench: Bench, missed: str, who: str) -> None:
    """TECs do not wait at it, but one that does not come, or comes once too often, is found all the same."""
    fault = expect_fault(bench, LEAVE % missed, bench.place(np.zeros(4, np.int32)), 0)
    assert fault.kind == "deadlock" and fault.pc is not None
    assert fault.message.startswith(who)


def test_tecs_at_the_last_barrier_let_those_at_another_one_go_on(bench: Bench) -> None:
    body = "if (tid == 2) { barrier(CLK_LOCAL_MEM_FENCE); a[2] = a[0] + a[1] + a[3]; return; }"
    at = bench.place(np.zeros(4, np.int32))
    for _ in range(100):
        bench.run(LEAVE % body, at, 0)
        assert bench.read(at, np.zeros(4, np.int32)).tolist() == [1, 1, 3, 1]


def test_dead_worker_is_an_error(bench: Bench) -> None:
    os.kill(bench.worker._process.pid, signal.SIGKILL)
    with pytest.raises(SimulatorError, match="gone"):
        bench.run(ADD, 0, 0, 0)
    with Worker() as fresh:
        assert fresh.alive


@pytest.mark.parametrize(
    ("offset", "value", "says"),
    [
        (TCBS + 128 + 12, 0x55, "outside device memory"),
        (TCBS + 128 + 12, TEXT + 8, "entry record"),
        (TCBS + 128 + 56, memory_map.ENGINE_LOW, "parameters"),
        (TCBS + 128 + 34, 99, "more than a core has"),
        (TCBS + 128 * 4 + 4, TCBS + 128, "longer"),
        (TCBS + 128 * 3, 0x41, "before all"),
        (TEXT, 0, "host code"),
        (TEXT + 12, 0xFFFFFFC0, "damaged"),
    ],
)
def test_damaged_chains_are_refused_and_the_worker_lives(bench: Bench, offset: int, value: int, says: str) -> None:
    data = np.arange(32, dtype=np.int32)
    a = bench.place(data)
    bench.run(ADD, a, a, 4)
    head, count = bench.chain(TEXT + 64)
    keep = bytes(bench.worker.memory[offset : offset + 4])
    bench.write(offset, value.to_bytes(4, "little"))
    with pytest.raises(SimulatorError, match=says):
        bench.worker.dispatch(head, count)
    bench.write(offset, keep)
    bench.worker.dispatch(head, count)


def test_damaged_objects_never_hurt_the_worker(bench: Bench) -> None:
    """Each byte of the ELF header and section table, and samples of the rest, overwritten: refused, or run."""
    elf = compile_kernel("__COMPASS_ENTRY(entry) { }")
    tables = int.from_bytes(elf[40:48], "little")
    rng = np.random.default_rng(1)
    for at in [*range(64), *range(tables, len(elf), 7), *rng.integers(0, len(elf), 100).tolist()]:
        bad = bytearray(elf)
        bad[at] ^= 0xFF
        spc = bench.load(bytes(bad))["entry"]
        try:
            bench.worker.dispatch(*bench.chain(spc), timeout=5)
        except SimulatorError:
            assert bench.worker.alive, at
        except KernelFault:
            bench.worker = Worker()


def test_unknown_function_is_named(bench: Bench) -> None:
    text = "int nobody(void);\n__COMPASS_ENTRY(entry) { *(__global int*)4096 = nobody(); }"
    with pytest.raises(SimulatorError, match="nobody"):
        bench.run(text)


def test_what_is_written_lies_in_memory_whatever_its_size() -> None:
    worker = Worker()
    start = memory_map.WINDOW_LOW
    sizes = (0, 1, memory_map.PAGE - 1, memory_map.PAGE, 5 * memory_map.PAGE + 3)
    for seed, size in enumerate(sizes):
        for offset in (0, 4093):
            data = np.random.default_rng(seed).integers(1, 256, size, "uint8").tobytes()
            worker.clear_memory()
            worker.write(start + offset, data)
            found = worker.memory[start : start + offset + size + memory_map.PAGE]
            assert found == bytes(offset) + data + bytes(memory_map.PAGE)
    worker.close()
    for size in sizes:
        with pytest.raises(ValueError, match="closed"):
            worker.write(start, bytes(size))


def test_memory_map_matches_the_engine() -> None:
    import re

    from compass_sim.engine import source_folder

    text = (source_folder() / "ranges.h").read_text(encoding="utf-8")
    defines = {name: int(value, 0) for name, value in re.findall(r"#define (\w+) (0x[0-9a-f]+|\d+)u", text)}
    assert defines == {name: getattr(memory_map, name) for name in defines} and "ENGINE_LOW" in defines


def test_arguments(bench: Bench) -> None:
    text = """
__kernel void k(__global float* out, char c, ushort u, half h, bf16 b, float f, bool q, uint w) {
  out[0] = c; out[1] = u; out[2] = h; out[3] = (float)b; out[4] = f; out[5] = q; out[6] = w;
}
__COMPASS_ENTRY(entry) {
  k(__COMPASS_POINTER(__global float, 0), __COMPASS_SCALAR(char, 1), __COMPASS_SCALAR(ushort, 2),
    __COMPASS_SCALAR(half, 3), __COMPASS_SCALAR(bf16, 4), __COMPASS_SCALAR(float, 5), __COMPASS_SCALAR(bool, 6),
    __COMPASS_SCALAR(uint, 7));
}
"""
    out = bench.place(np.zeros(7, np.float32))
    bench.run(text, out, -5, 0xFFFF_8001, 0x3E00, 0x4040, 0x3FC00000, 1, 1 << 31)
    assert bench.read(out, np.zeros(7, np.float32)).tolist() == [-5, 0x8001, 1.5, 3.0, 1.5, 1, 2.0**31]


def test_parameters_may_not_hide_behind_the_window(bench: Bench) -> None:
    assert PARAMS < memory_map.ENGINE_LOW
    with pytest.raises(SimulatorError, match="leaves device memory"):
        bench.worker.dispatch(memory_map.ENGINE_LOW, 1)


@pytest.mark.parametrize("look", [0.0, mailbox.LOOK])
@pytest.mark.parametrize("says", ["", 'printf("a");'])
def test_requests_by_memory_and_by_the_socket_run_once_each(
    bench: Bench, says: str, look: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine looks for some 100 us: pauses around that long meet it while it looks, leaves, and sleeps. A parent that looks
    for no time sends each request twice."""
    monkeypatch.setattr(mailbox, "LOOK", look)
    kernel = f"""
__kernel void k(volatile __global int* out, int n) {{ out[0] += 1; for (int i = 0; i < n; i++) out[1] = i; {says} }}
__COMPASS_ENTRY(entry) {{ k(__COMPASS_POINTER(__global int, 0), __COMPASS_SCALAR(int, 1)); }}
"""
    out = bench.place(np.zeros(2, np.int32))
    bench.run(kernel, out, 0, tasks=1)
    chain = bench.chain(bench.load(compile_kernel(kernel))["entry"], tasks=1)
    for i in range(1000):
        time.sleep(i % 4 // 3 * (i % 10) * 30e-6)
        bench.parameters(out, i % 25 * 3000)
        assert bench.worker.dispatch(*chain).printf == ("a" if says else "")
    assert bench.read(out, np.zeros(2, np.int32))[0] == 1001


def test_small_jobs_go_by_memory(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    out = bench.place(np.zeros(32, np.int32))
    bench.run(ADD, out, out, 4)
    chain = bench.chain(TEXT + 64)
    by_socket: list[bytes] = []
    send = Worker._send
    monkeypatch.setattr(Worker, "_send", lambda worker, message: (by_socket.append(message), send(worker, message)))
    for _ in range(300):
        bench.worker.dispatch(*chain)
    assert len(by_socket) < 300
