"""What surrounds a kernel: starting a worker, loading and starting a job, calling, many small jobs in a row.

The graph has 50 layers, a residual network; its job is started on a worker that runs already.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.core import Goal, Result, median, seconds
from benchmarks.loops import GROWING
from compass_core.targets import load
from compass_runtime import Program
from compass_sim import Worker
from compassc.dsl import BuildManager
from compassc.gbuilder.build import GraphOptions, build_model

from ._examples import TARGET, kernel
from ._graph import write_graph

GOALS = {
    "worker": Goal("start of a worker", "ms", 15),
    "start": Goal("loading and starting a job of 50 layers", "ms", 2),
    "call": Goal("ex(a, out) of vadd, 8 elements", "us", 40),
    "rate": Goal("jobs per second, kernel of 2k elements, one worker", "1/s", 1000, at_most=False),
}
STARTS, CALLS = 50, 2000


def measure() -> dict[str, Result]:
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        started = _job_starts(Path(folder))
    return {"worker": _worker_start(), "start": started, "call": _call(), "rate": _rate()}


def _worker_start() -> Result:
    target = load(TARGET)

    def start() -> float:
        begun = seconds(lambda: workers.append(Worker(target)))
        workers.pop().close()
        return begun

    workers: list[Worker] = []
    return Result(1e3 * median(start() for _ in range(STARTS)))


def _job_starts(folder: Path) -> Result:
    """From bytes of aipu.bin to the end of the first run, without the time the engine was busy."""
    graph, image = write_graph(folder)
    options = GraphOptions(work_dir=folder / "kernels")
    build_model(graph, folder / "weight.bin", folder / "aipu.bin", TARGET, options)
    data = (folder / "aipu.bin").read_bytes()
    parts = [_parts_of_a_start(data, image) for _ in range(STARTS)]
    what = ("load", "create", "start")
    detail = ", ".join(f"{n} {1e3 * median(p):.2f}" for n, p in zip(what, zip(*parts, strict=True), strict=True))
    return Result(1e3 * statistics.median(map(sum, parts)), detail)


def _parts_of_a_start(data: bytes, image: np.ndarray[Any, Any]) -> tuple[float, float, float]:
    begun = time.perf_counter()
    program = Program.load(data)
    loaded = time.perf_counter()
    job = program.create_job()
    created = time.perf_counter()
    job.inputs[0].load(image)
    busy = job.execute().seconds
    ended = time.perf_counter()
    job.close()
    return loaded - begun, created - loaded, ended - created - busy


def _call() -> Result:
    executor = BuildManager(TARGET).build(kernel("vadd"))
    a, out = np.arange(8, dtype="int32"), np.zeros(8, "int32")
    for _ in range(CALLS // 10):
        executor(a, out)
    return Result(1e6 * median(seconds(lambda: executor(a, out)) for _ in range(CALLS)))


def _rate() -> Result:
    """Calls with all their copies, not only runs."""
    loop = GROWING[0]
    executor, args = BuildManager(TARGET).build(loop.kernel()), loop.arguments(np.random.default_rng(0))
    executor(*args)
    rates = [100 / seconds(lambda: [executor(*args) for _ in range(100)]) for _ in range(CALLS // 100)]
    return Result(median(rates), f"ex(...) of {loop.name}")
