"""Default schedules of operators on the NPU against the least that the operators have to do, in estimated cycles."""

from __future__ import annotations

import math

from benchmarks.core import Goal, Result
from benchmarks.topi_cases import ALL, CASES, Case
from compassc import te, topi
from compassc.dsl import BuildManager

from ._examples import TARGET

_MOST = {"int8": 3, "float16": 3, "float32": 3}
"""Not to become slower: the bound itself is no goal, it has no latencies, no loads of what is used again, no conversions."""
GOALS = {kind: Goal(f"{kind}, geometric mean of cycles over their bound", "x", _MOST[kind]) for kind in ALL}


def measure() -> dict[str, Result]:
    found = {kind: {c.name: _times(c, kind) for c in CASES if kind in c.kinds} for kind in ALL}
    return {kind: _summary(ratios) for kind, ratios in found.items()}


def _summary(ratios: dict[str, float]) -> Result:
    worst = sorted(ratios, key=ratios.__getitem__, reverse=True)[:6]
    mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
    return Result(mean, "most: " + ", ".join(f"{name} {ratios[name]:.0f}" for name in worst))


def _times(case: Case, kind: str) -> float:
    from compass_runtime.profile.run import profiled_call

    tensors, out, arrays = case.made(kind)
    module = te.lower(topi.schedule(out, TARGET), [*tensors, out], "operator", TARGET)
    cycles = profiled_call(BuildManager(TARGET).build(module).program, arrays).cycles
    return cycles / case.bound(kind, arrays, TARGET)
