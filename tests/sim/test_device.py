"""The device around the vector unit: transfers that take their time, cores, shared memory, profiler marks, orders."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from sim_device import TCBS, Bench

from compass_sim import KernelFault, SimulatorError

HEAD = """
GEN_ASYNC_DMA_DIRECT_EXT2INT(kGlobal, kLsram);
GEN_ASYNC_DMA_DIRECT_INT2EXT(kLsram, kGlobal);
GEN_DMA_DIRECT_INT2EXT(kLsram, kGlobal);
"""
ENTRY = """
__COMPASS_ENTRY(entry) {
  k(__COMPASS_POINTER(__global int, 0), __COMPASS_POINTER(__global int, 1), __COMPASS_SCALAR(int, 2));
}
"""


def kernel(body: str) -> str:
    return f"{HEAD}__kernel void k(__global int* a, __global int* out, int n) {{\n{body}\n}}\n{ENTRY}"


ONE_TEC = "if (get_local_id(0)) { barrier(CLK_LOCAL_MEM_FENCE); return; }"
FETCH = f"""{ONE_TEC}
  int box[8] = {{-1, -1, -1, -1, -1, -1, -1, -1}};
  int event = alloc_event();
  AsyncDmaDirect_kGlobal_to_kLsram((int)box, (int)a, 32, 32, 32, 32, event);
  %s
  for (int i = 0; i < 8; i++) out[i] = box[i];
  barrier(CLK_LOCAL_MEM_FENCE);
"""


@pytest.mark.parametrize(
    ("wait", "arrives"),
    [
        ("", False),
        ("wait_events(2);", False),  # another event
        ("wait_events(1 << event);", True),
        ("free_events(1 << event);", True),
        ("AsyncDmaDirect_kGlobal_to_kLsram((int)(box + 7), (int)a, 4, 4, 4, 4, event);", True),  # the same event again
    ],
)
def test_data_arrives_when_its_event_is_waited_for(bench: Bench, wait: str, arrives: bool) -> None:
    data = np.arange(8, dtype=np.int32)
    a, out = bench.place(data), bench.place(np.full(8, 9, np.int32))
    bench.run(kernel(FETCH % wait), a, out, 0)
    assert bench.read(out, data).tolist() == (data.tolist() if arrives else [-1] * 8)


def test_barriers_and_the_end_of_a_kernel_wait_for_transfers(bench: Bench) -> None:
    text = kernel("""
  int box[8] = {5, 5, 5, 5, 5, 5, 5, 5};
  int tid = get_local_id(0);
  AsyncDmaDirect_kLsram_to_kGlobal((int)(out + tid * 8), (int)box, 32, 32, 32, 32, 1);
  if (n) {
    barrier(CLK_LOCAL_MEM_FENCE);
    a[tid] = out[(tid + 1) % 4 * 8];
  }
""")
    for barrier in (0, 1):
        a, out = bench.place(np.zeros(4, np.int32)), bench.place(np.zeros(32, np.int32))
        bench.run(text, a, out, barrier)
        assert (bench.read(out, np.zeros(32, np.int32)) == 5).all()
        assert bench.read(a, np.zeros(4, np.int32)).tolist() == [5 * barrier] * 4


@pytest.mark.parametrize(
    ("numbers", "says"),
    [
        ("0x10000, 0x10000, 0x10000, 0x10000", "a row has 65536 bytes, at most 65535"),
        ("16, 0x1000000, 32, 16", "the stride of the source"),
        ("16, 16, 32, 0x1000000", "the stride of the destination"),
        ("0x8000, 0x8000, 0x1000000, 0x8000", "the whole transfer"),
    ],
)
def test_asynchronous_copies_are_limited_by_the_descriptor(bench: Bench, numbers: str, says: str) -> None:
    text = kernel(f"AsyncDmaDirect_kLsram_to_kGlobal((int)out, (int)a, {numbers}, 0);")
    with pytest.raises(KernelFault, match=says) as caught:
        bench.run(text, 0x0200_0000, 0x0400_0000, 0)
    assert caught.value.kind == "dma"


def test_synchronous_copies_are_split_and_have_no_such_limit(bench: Bench) -> None:
    data = np.arange(0x44000, dtype=np.int32)
    a, out = bench.place(data), bench.place(np.zeros_like(data))
    text = kernel("if (get_local_id(0) == 0) DmaDirect_kLsram_to_kGlobal((int)out, (int)a, n, n, n, n);")
    bench.run(text, a, out, data.nbytes)
    assert (bench.read(out, data) == data).all()


WHERE_AM_I = """
  out[get_group_id(0) * 4 + get_local_id(0)] = get_local_id(0) + 10 * get_local_size(0);
"""


@pytest.mark.parametrize(("target", "kind"), [("X2_1204MP3", "x2"), ("X3P_1304MP4", "x3"), ("X2_1204", "x2")])
def test_groups_of_a_chain_all_run_on_any_number_of_cores(target: str, kind: str) -> None:
    with Bench(target) as bench:
        out = bench.place(np.zeros(40, np.int32))
        for _ in range(20):
            bench.run(kernel(WHERE_AM_I), 0, out, 0, groups=10, kind=kind)
        assert bench.read(out, np.zeros(40, np.int32)).tolist() == [40, 41, 42, 43] * 10


@pytest.mark.parametrize(("target", "kind"), [("X2_1204", "x2"), ("X3P_1304", "x3")])
def test_brief_groups_of_a_chain_never_wait_for_a_thread_that_nobody_wakes(target: str, kind: str) -> None:
    """100 groups take 30 microseconds; were they found by the thread that looks every 5 ms, it were 10 milliseconds or more."""
    text = kernel(WHERE_AM_I).replace("barrier(CLK_LOCAL_MEM_FENCE);", "")
    with Bench(target) as bench:
        out = bench.place(np.zeros(400, np.int32))
        times = [bench.run(text, 0, out, 0, groups=100, kind=kind).seconds for _ in range(11)]
    assert sorted(times)[5] < 0.005


MEET = """
  volatile __global int* flags = (volatile __global int*)out;
  int group = get_group_id(0), tid = get_local_id(0);
  flags[group * 4 + tid] = 1;
  for (int other = 0; other < n; other++)
    for (int i = 0; i < 4; i++)
      while (flags[other * 4 + i] == 0) {}
"""


@pytest.mark.parametrize(("target", "cores"), [("X2_1204MP3", 3), ("X3P_1304MP2", 2)])
def test_cores_work_at_the_same_time_where_nothing_depends(target: str, cores: int) -> None:
    """Every group waits until all others have begun."""
    kind = "x3" if target.startswith("X3") else "x2"
    with Bench(target) as bench:
        out = bench.place(np.zeros(16, np.int32))
        bench.run(kernel(MEET), 0, out, cores, groups=cores, kind=kind)
        with pytest.raises(KernelFault, match="time limit") as caught:  # a group more than there are cores
            bench.run(
                kernel(MEET),
                0,
                bench.place(np.zeros(16, np.int32)),
                cores + 1,
                groups=cores + 1,
                kind=kind,
                timeout=0.3,
            )
        assert len(caught.value.locations) == 4 * cores


IN_ORDER = """
  if (get_local_id(0) == 0) {
    for (int i = 0; i < n; i++) __asm__ volatile("pause");
    out[1 + get_group_id(0)] = out[0];
    out[0] = get_group_id(0) + 1;
  }
"""


def depend(bench: Bench, kind: str, groups: int) -> None:
    """Makes each group of a chain wait: odd ones for the one before, even ones for all before."""
    for group in range(groups):
        first = TCBS + 128 * (1 + (5 * group + 1 if kind == "x3" else 4 * group))
        flags = bench.worker.memory[first] & 0xF
        bench.write(first, bytes([flags | (0x10 if group % 2 else 0x20)]))
        bench.write(first + 120, (0x8000 | max(group - 1, 0)).to_bytes(2, "little"))  # read by X3 alone


@pytest.mark.parametrize(("target", "kind"), [("X2_1204MP3", "x2"), ("X3P_1304MP2", "x3")])
def test_groups_that_depend_run_one_after_another(target: str, kind: Literal["x2", "x3"]) -> None:
    with Bench(target) as bench:
        out = bench.place(np.zeros(8, np.int32))
        bench.run(kernel(IN_ORDER), 0, out, 2000, groups=6, kind=kind)
        depend(bench, kind, 6)
        for _ in range(5):
            bench.place(np.zeros(8, np.int32), out)
            bench.worker.dispatch(TCBS, 1 + 6 * (5 if kind == "x3" else 4), kind)
            assert bench.read(out, np.zeros(7, np.int32)).tolist() == [6, 0, 1, 2, 3, 4, 5]


def test_shared_arrays_have_the_size_of_the_targets_memory() -> None:
    text = kernel("__local int big[%d]; big[get_local_id(0)] = n; out[0] = big[n];")
    with Bench("X2_1204") as bench:
        out = bench.place(np.zeros(4, np.int32))
        bench.run(text % 65536, 0, out, 0)
        with pytest.raises(SimulatorError, match="kernel 'k' need 262148 bytes, but a core has 262144"):
            bench.run(text % 65537, 0, out, 0)
        bench.run(text % 65536, 0, out, 0)


def test_profiler_marks_are_returned_when_asked_for(bench: Bench) -> None:
    text = kernel("""
  __perf_record_tick_begin(n);
  barrier(CLK_LOCAL_MEM_FENCE);
  __perf_record_tick_end(n);
""")
    assert bench.run(text, 0, 0, 7).ticks == ()
    ticks = bench.run(text, 0, 0, 7, record=True).ticks
    assert sorted((t.tec, t.begin, t.id) for t in ticks) == [(tec, b, 7) for tec in range(4) for b in (False, True)]
    for tec in range(4):
        begin, end = (t for t in ticks if t.tec == tec)
        assert begin.begin and not end.begin and 0 <= begin.seconds <= end.seconds < 10


LOST_UPDATE = """
  __global int* sum = out;
  for (int i = 0; i < n; i++) { int old = *(volatile __global int*)sum; *(volatile __global int*)sum = old * 3 + 1; }
"""
LAST_WINS = "barrier(CLK_LOCAL_MEM_FENCE); out[0] = get_local_id(0); barrier(CLK_LOCAL_MEM_FENCE);"


def outcomes(bench: Bench, text: str, seeds: range, n: int = 3) -> list[int]:
    """What out[0] is after a run with each seed."""
    found = []
    out = bench.place(np.zeros(8, np.int32))
    for seed in seeds:
        bench.place(np.zeros(8, np.int32), out)
        bench.run(text, 0, out, n, seed=seed)
        found.append(int(bench.read(out, np.zeros(1, np.int32))[0]))
    return found


@pytest.mark.parametrize("body", [LOST_UPDATE, LAST_WINS])
def test_a_seed_gives_the_same_order_every_time_and_seeds_differ(body: str) -> None:
    with Bench() as one, Bench() as two:
        first = outcomes(one, kernel(body), range(1, 60), 20)
        assert first == outcomes(two, kernel(body), range(1, 60), 20)
        assert len(set(first)) > 1


def test_orders_do_not_change_what_is_synchronised(bench: Bench) -> None:
    text = kernel("""
  __local int box[4];
  int tid = get_local_id(0), sum = 0;
  for (int i = 0; i < n; i++) {
    box[tid] = i * 10 + tid;
    barrier(CLK_LOCAL_MEM_FENCE);
    sum += box[(tid + 1) & 3];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  out[tid] = sum;
""")
    assert set(outcomes(bench, text, range(1, 40), 5)) == {105}


def test_transfers_may_arrive_early_in_an_order(bench: Bench) -> None:
    """A kernel that changes the source of a transfer before it waits gets one or the other."""
    text = kernel(f"""{ONE_TEC}
  int box[8] = {{1}};
  AsyncDmaDirect_kLsram_to_kGlobal((int)out, (int)box, 4, 4, 4, 4, 0);
  __perf_record_tick_begin(1);
  box[0] = 2;
  wait_events(1);
  barrier(CLK_LOCAL_MEM_FENCE);
""")
    assert set(outcomes(bench, text, range(1, 30))) == {1, 2}
    assert outcomes(bench, text, range(1)) == [2]


LEFT = """
  __local int box[8];
  volatile int mine[8];
  volatile __local int* theirs = box;
  if (get_local_id(0) == 0) {
    out[0] = mine[3] + theirs[5];
    mine[3] = theirs[5] = 7;
  }
"""


def test_orders_begin_with_memory_that_no_other_run_filled(bench: Bench) -> None:
    assert outcomes(bench, kernel(LEFT), range(4))[1:] == [0, 0, 0]


def test_deadlocks_are_found_in_every_order() -> None:
    for seed in (1, 2, 3):
        with Bench() as bench, pytest.raises(KernelFault) as caught:
            bench.run(kernel("if (get_local_id(0) == 2) return; barrier(CLK_LOCAL_MEM_FENCE);"), 0, 0, 0, seed=seed)
        assert caught.value.kind == "deadlock"
