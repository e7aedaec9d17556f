"""PySim: time per operation, operations per second on the examples, and what running the TECs as threads costs.

Times per operation and those of examples are processor time, so that other programs do not count, the former in single-thread
mode; the comparison of the modes is wall time.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.core import Goal, Result, median, median_ratio, seconds, side_by_side
from compassc import ops, pysim
from compassc.dsl import BuildManager
from compassc.language.functions import PyPrimFunc

from ._examples import FOLDER, TARGET, example_names, kernel
from ._pysim_kernels import SCALAR_OPS, VECTOR_OPS, addressed_operations, nothing, scalar_operations, vector_operations

LEAST = {
    "tile_attention": 9180,
    "tile_conv3x3": 95400,
    "tile_layer_norm": 9180,
    "tile_matmul": 9180,
    "tile_softmax": 9180,
}
"""Operations per second on tiles: 20 times what they were at first, 459 where they were slowest, 4,770 in tile_conv3x3."""
GOALS = {
    "vector": Goal("PySim, a vector operation", "us", 2),
    "addressed": Goal("PySim, a vector operation of loops as they are written (a + off + i * 8)", "us", 2),
    "scalar": Goal("PySim, a scalar element operation", "us", 1.5),
    "threads": Goal("PySim, TECs as threads against one after another (dynamic_add)", "x", 1.3),
    **{name: Goal(f"PySim on {name}", "operations/s", LEAST.get(name), at_most=False) for name in example_names()},
}
_KERNELS = (nothing, vector_operations, addressed_operations, scalar_operations)
LOOPS = 4000
TECS = 4
ROUNDS = 5
LAUNCHES = 21
"""Of an example, most of them after Python has seen its code some times."""


@contextmanager
def _mode(single: bool) -> Iterator[None]:
    name = "COMPASS_PYSIM_SINGLE_THREAD"
    before = os.environ.get(name)
    os.environ[name] = "1" if single else "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def measure() -> dict[str, Result]:
    results = {}
    with _mode(single=True):
        samplers = [functools.partial(_processor_time, k) for k in _KERNELS]
        empty, vector, addressed, scalar = side_by_side(samplers, ROUNDS)
    rows = (("vector", VECTOR_OPS, vector), ("addressed", VECTOR_OPS / 16, addressed), ("scalar", SCALAR_OPS, scalar))
    for key, count, times in rows:
        each = [1e6 * (t - e * count / 8) / (LOOPS * TECS * count) for t, e in zip(times, empty, strict=True)]
        results[key] = Result(median(each), f"{1e6 / median(each):.0f} in a second of processor time")
    results["threads"] = _threads()
    return results | {name: _example(name) for name in example_names()}


def _processor_time(function: PyPrimFunc) -> float:
    data = np.zeros(LOOPS + 8, "int32")
    return _processor_seconds(lambda: function(data, LOOPS))


def _threads() -> Result:
    function = kernel("dynamic_add")
    BuildManager(TARGET).build(function)
    n = 16 * 2000
    a, out = np.ones(n, "float16"), np.zeros(n, "float16")

    def sample(single: bool) -> float:
        with _mode(single):
            return seconds(lambda: function(a, a, out, n))

    threads, single = side_by_side([lambda: sample(False), lambda: sample(True)], ROUNDS)
    return Result(median_ratio(threads, single), f"{1000 * median(threads):.0f} ms and {1000 * median(single):.0f} ms")


def _largest_case(name: str) -> Any:
    """The case of an example with the most data."""
    sys.path.insert(0, str(FOLDER))  # where `check.py` finds `case`
    try:
        spec = importlib.util.spec_from_file_location(f"check_{name}", FOLDER / name / "check.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        cases = list(module.cases(np.random.default_rng(1)))
    finally:
        sys.path.remove(str(FOLDER))
    return max(cases, key=lambda case: sum(a.nbytes for a in case.args.values() if isinstance(a, np.ndarray)))


def _operations(run: Callable[[], object]) -> int:
    """How many operations, operators and element accesses the kernel code of a run makes."""
    found: list[bool] = []
    inside = (*(str(Path(package.__file__).parent) + os.sep for package in (pysim, ops)), "<PySim ")
    helpers = ("bound", "named", "loop", "counted")

    def profile(frame: Any, event: str, _arg: Any) -> None:
        if event == "call" and frame.f_back is not None and frame.f_back.f_code.co_filename.startswith(str(FOLDER)):
            file, name = frame.f_code.co_filename, frame.f_code.co_name
            if name not in helpers and file.startswith(inside):
                found.append(True)

    threading.setprofile(profile)
    try:
        run()
    finally:
        threading.setprofile(None)
    return len(found)


def _example(name: str) -> Result:
    function, case = kernel(name), _largest_case(name)
    BuildManager(TARGET).build(function)

    def run() -> None:
        function(*case.fresh_args())

    run()
    count = _operations(run)
    taken = median(_processor_seconds(run) for _ in range(LAUNCHES))
    return Result(count / taken, f"{count} in {1000 * taken:.1f} ms")


def _processor_seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start
