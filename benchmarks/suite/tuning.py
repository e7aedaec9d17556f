"""Tuning: candidates that are built, run and checked in a second, on one processor and on two."""

import resource
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.core import Goal, Result
from compassc.cluster.processes import processes
from compassc.dsl import script as S
from compassc.tuning.kernel_task import KernelTask
from compassc.tuning.kernels import Autotuned
from compassc.tuning.measure import MeasureOptions
from compassc.tuning.space import Candidate
from compassc.tuning.task import Task
from compassc.tuning.workers import ClusterWorkers

from ._examples import TARGET

GOALS = {
    "rate": Goal("candidates per second of one process, small kernels", "1/s", 20, at_most=False),
    "work": Goal("processor time of a candidate, all processes", "ms", 50),
    "two": Goal("candidates per second of two workers, of those of one", "x", 1.7, at_most=False),
}
SIZE, COUNT = 4096, 96


@S.autotune(space={"TILE": [16 * n for n in range(1, 33)], "LANES": [8, 16], "TURNS": [1, 2, 3]}, key=["n"])
def scaled(TILE: int, LANES: int, TURNS: int) -> Any:
    """TURNS x, tile by tile."""

    @S.prim_func
    def scaled(x: S.ptr("i32", "global"), y: S.ptr("i32", "global"), n: S.i32):  # type: ignore[valid-type]
        tile = S.alloc(TILE, "i32", scope="lsram")
        for at in range(S.get_local_id() * TILE, n, S.get_local_size() * TILE):
            size = S.min(TILE, n - at)
            S.dma_copy(tile, x + at, size)
            for i in range(0, TILE, LANES):
                tile[i : i + LANES] = tile[i : i + LANES] * 3 + TURNS - TURNS
            S.dma_copy(y + at, tile, size)

    return scaled


def measure() -> dict[str, Result]:
    assert isinstance(scaled, Autotuned)
    task = KernelTask.of_sizes(scaled, TARGET, {"n": SIZE})
    candidates = list(task.space.grid())[: 2 * COUNT]
    one, work = _timed(task, candidates[:COUNT], ClusterWorkers())
    rates = {}
    for jobs in (2, 1):  # what the first leaves in caches is not to help two
        with processes(jobs) as cluster:
            workers = ClusterWorkers(cluster)
            _timed(task, candidates[:32], workers)  # they import what they need
            rates[jobs] = _timed(task, candidates[COUNT:], workers)[0]
    return {"rate": Result(one), "work": Result(work), "two": Result(rates[2] / rates[1], f"{rates[2]:.1f}/s")}


def _timed(task: Task, candidates: Sequence[Candidate], workers: ClusterWorkers) -> tuple[float, float]:
    """Candidates per second, and milliseconds of processor time of each, here and in programs that were started."""
    before, start = _processor_seconds(), time.perf_counter()
    found = [result for group in workers.measure(task, candidates, MeasureOptions()) for _, result in group]
    seconds, work = time.perf_counter() - start, _processor_seconds() - before
    assert all(result.ok for result in found), [result.message for result in found if not result.ok][:3]
    return len(found) / seconds, 1e3 * work / len(found)


def _processor_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)
