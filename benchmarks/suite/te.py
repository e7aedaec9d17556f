"""Schedules of tensor expressions against the kernels by hand of the same operators, and what lowering them takes.

Both work on the same data, times are taken by turns, results are compared. Values are how many times as fast the schedule
is: by the engine's clock, and in cycles as profiles estimate them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.core import Goal, Result, median, median_ratio, seconds, side_by_side
from benchmarks.loops import EXAMPLES, GROWING
from benchmarks.te_forms import Form, compared, goals
from compassc import te
from compassc.dsl import BuildManager

from ._examples import TARGET

ROUNDS = 25
GOALS = {
    **goals("schedules against kernels by hand"),
    "lowering": Goal("lowering of a schedule of ten stages", "ms", 50),
    "step": Goal("a step of it", "ms", 1),
}


def measure() -> dict[str, Result]:
    return compared(_compare) | _lowering()


def _compare(form: Form) -> dict[str, Result]:
    from compass_runtime.profile.run import profiled_call

    loop = {loop.name: loop for loop in (*EXAMPLES, *GROWING)}[form.name]
    by_hand = BuildManager(TARGET).build(loop.kernel()).program
    schedule, tensors = form.make()
    made = BuildManager(TARGET).build(te.lower(schedule, tensors, form.name, TARGET)).program
    given = loop.arguments(np.random.default_rng(0))
    own = [np.copy(given[i]) for i in form.arguments]
    with by_hand.caller.loaded(given) as one, made.caller.loaded(own) as other:
        hand, ours = side_by_side([lambda: one.execute().seconds, lambda: other.execute().seconds], ROUNDS)
        by_hand.caller.store(one, given)
        made.caller.store(other, own)
    _check(form.name, given[form.arguments[-1]], own[-1])
    cycles = [profiled_call(program, args).cycles for program, args in ((by_hand, given), (made, own))]
    return {
        f"{form.name} time": Result(
            median_ratio(hand, ours), f"{1e6 * median(ours):.0f} us, by hand {1e6 * median(hand):.0f} us"
        ),
        f"{form.name} cycles": Result(cycles[0] / cycles[1], f"{cycles[1]:,}, by hand {cycles[0]:,}"),
    }


def _check(what: str, want: np.ndarray[Any, Any], got: np.ndarray[Any, Any]) -> None:
    """ValueError when results differ by more than other orders and roundings explain."""
    wide_want, wide_got = want.astype("float64"), got.astype("float64")
    if not np.allclose(wide_want, wide_got, rtol=1e-2, atol=2e-3 * np.abs(wide_want).max()):
        raise ValueError(f"{what}: the result is not the kernel's, so its time says nothing")


def ten_stages() -> tuple[te.Schedule, Sequence[te.Tensor]]:
    """A chain of ten element-wise stages on tiles, each computed where the next one needs it."""
    a = te.placeholder((1 << 16,), name="a")
    tensors = [a]
    for number in range(10):
        tensors.append(_next(tensors[-1], number))
    s = te.create_schedule(tensors[-1])
    last = tensors[-1]
    outer, inner = s[last].split(last.op.axis[0], factor=1024)
    s[last].bind(outer, te.thread_axis("threadIdx.x"))
    for t in tensors[1:-1]:
        s[t].compute_at(s[last], outer)
        s[t].vectorize(s[t].split(t.op.axis[0], factor=8)[1])
    s[last].vectorize(s[last].split(inner, factor=8)[1])
    return s, [a, last]


def _next(before: te.Tensor, number: int) -> te.Tensor:
    made: te.Tensor = te.compute(before.shape, lambda i: before[i] * 2.0 + float(number), name=f"t{number}")
    return made


def _lowering() -> dict[str, Result]:
    schedule, tensors = ten_stages()
    lowering = [seconds(lambda: te.lower(schedule, tensors, "k", TARGET)) for _ in range(15)]
    steps = [seconds(ten_stages) / len(schedule.trace) for _ in range(15)]
    return {"lowering": Result(1e3 * median(lowering)), "step": Result(1e3 * median(steps), "with its expressions")}
