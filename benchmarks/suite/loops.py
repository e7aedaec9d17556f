"""The simulator's engine against hand-written C and against PoCL, on the examples and on ten kernels of growing size.

All three run the same algorithm on the same data and are timed by turns: the engine by its own clock, C by its own,
PoCL by OpenCL's. Results are compared, so that the times are of the same work. Values are how many times as fast the
engine is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks import native, opencl
from benchmarks.core import Goal, Result, median, median_ratio, seconds, side_by_side
from benchmarks.loops import EXAMPLES, GROWING, Array, Loop
from compassc.dsl import BuildManager

from ._examples import TARGET

LOOPS = (*EXAMPLES, *GROWING)
GOALS = {
    "c": Goal("examples and growing kernels, geometric mean, against C", "x", 0.9, at_most=False),
    "shared": Goal("those that the engine shares out among threads, against C", "x"),
    "opencl": Goal("the same, against PoCL", "x", 1.2, at_most=False),
    **{loop.name: Goal(f"{loop.name} against C", "x") for loop in LOOPS},
}
BRIEF = 5e-6
"""Seconds; a job that took less is left to one thread by the engine (sim/engine/pace.c)."""
MOST_ROUNDS, LEAST_ROUNDS, BUDGET = 300, 15, 0.7
"""Rounds of a loop: as many as take `BUDGET` seconds."""


@dataclass(frozen=True)
class _Row:
    """A loop measured: how many times as fast as C the engine is, and as PoCL where there is one; its seconds."""

    against_c: float
    against_opencl: float | None
    seconds: float
    detail: str


def measure() -> dict[str, Result]:
    device = opencl.device()
    rows = {loop.name: _compare(loop, device) for loop in LOOPS}
    results = {name: Result(row.against_c, row.detail) for name, row in rows.items()}
    shared_out = [row.against_c for row in rows.values() if row.seconds > BRIEF]
    against_opencl = [row.against_opencl for row in rows.values() if row.against_opencl is not None]
    results["c"] = Result(_geometric_mean([row.against_c for row in rows.values()]))
    results["shared"] = Result(_geometric_mean(shared_out), f"{len(shared_out)} of {len(rows)}")
    if against_opencl:
        results["opencl"] = Result(_geometric_mean(against_opencl))
    else:
        results["opencl"] = Result(None, "pyopencl or PoCL is not installed")
    return results


def _compare(loop: Loop, device: object) -> _Row:
    executor = BuildManager(TARGET).build(loop.kernel())
    args = loop.arguments(np.random.default_rng(0))
    outputs = [i for i, p in enumerate(executor.params) if p["role"] == "output"]
    others = [*args, *([loop.table()] if loop.table else [])]
    by_hand = native.Function(loop.name, others)
    portable = opencl.Kernel(device, loop.name, others, loop.items, loop.group) if device is not None else None
    with executor.program.caller.loaded(args) as job:
        samplers = [lambda: job.execute().seconds, by_hand.seconds, *([portable.seconds] if portable else [])]
        once = seconds(lambda: [sample() for sample in samplers for _ in range(2)]) / 2
        rounds = max(LEAST_ROUNDS, min(MOST_ROUNDS, int(BUDGET / once)))
        engine, *rest = side_by_side(samplers, rounds)
        executor.program.caller.store(job, args)
    for i in outputs:
        copy = by_hand.arrays[i]
        assert copy is not None
        _check(f"{loop.name} in C", args[i], copy, loop.exact)
        if portable:
            _check(f"{loop.name} in OpenCL", args[i], portable.fetch(i, args[i]), False)
    detail = ", ".join(
        f"{who} {1e6 * median(times):.0f} us"
        for who, times in zip(("engine", "C", "PoCL"), [engine, *rest], strict=False)
    )
    against_opencl = median_ratio(rest[1], engine) if portable else None
    return _Row(median_ratio(rest[0], engine), against_opencl, median(engine), detail)


def _check(what: str, want: Array, got: Array, exact: bool) -> None:
    """ValueError when results differ: bit by bit, or by more than other orders and roundings explain."""
    wide_want, wide_got = want.astype("float64"), got.astype("float64")
    near = np.allclose(wide_want, wide_got, rtol=1e-2, atol=2e-3 * np.abs(wide_want).max())
    if want.tobytes() != got.tobytes() if exact else not near:
        raise ValueError(f"{what}: the result is not the kernel's, so its time says nothing")


def _geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))
