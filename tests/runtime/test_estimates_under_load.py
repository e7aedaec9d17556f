"""Estimated cycles, and all that they come from, are the same on a busy machine as on an idle one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from harness import Example

from compass_runtime.calls import run_loaded
from compass_runtime.profile.collect import Counting, tasks_of
from compass_runtime.profile.costs import cost_model
from compass_runtime.profile.run import profiled_call
from compass_runtime.program import Program
from compassc.dsl import BuildManager

AT_ONCE, RUNS = 3, 2


@pytest.fixture(scope="module")
def busy() -> Iterator[None]:
    """A process per processor that only computes."""
    endless = [sys.executable, "-c", "while True: pass"]
    found = [subprocess.Popen(endless) for _ in os.sched_getaffinity(0)]
    yield
    for process in found:
        process.kill()
        process.wait()


@pytest.mark.parametrize("name", ["max_reduce", pytest.param("bitonic_sort", marks=pytest.mark.whole)])
def test_estimates_are_those_of_an_idle_machine(name: str, busy: None) -> None:
    """Tasks with their steps, counts and places, and the timeline that is made of them: of several simulators at once,
    none of which has a processor for each TEC."""
    example = Example(name)
    case = min(example.cases(1), key=lambda c: sum(np.size(v) for v in c.args.values()))
    built = BuildManager("X2_1204").build(example.kernel)

    def measured(_: int) -> list[Any]:
        program = Program.load(built.path)
        profiles = [profiled_call(program, case.fresh_args()) for _ in range(RUNS)]
        return [(p.cycles, p.tasks, p.timeline) for p in profiles]

    with ThreadPoolExecutor(AT_ONCE) as pool:
        first, *others = [one for found in pool.map(measured, range(AT_ONCE)) for one in found]
    assert len(others) == AT_ONCE * RUNS - 1 and first[0] > 0
    for other in others:
        assert other == first


def test_what_has_no_counters_has_no_cycles_of_the_clock() -> None:
    example = Example("max_reduce")
    built = BuildManager("X2_1204").build(example.kernel)
    program = Program.load(built.path)
    with program.caller.loaded(
        min(example.cases(1), key=lambda c: sum(map(np.size, c.args.values()))).fresh_args()
    ) as job:
        result = run_loaded(job, record=True)
    tasks = tasks_of(Counting(program, cost_model("X2_1204"), ()), result)
    assert len(tasks) == 4 and any(task.steps for task in tasks)
    assert all(task.cycles == 0 and all(step.cycles == 0 for step in task.steps) for task in tasks)
