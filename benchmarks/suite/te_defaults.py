"""Default schedules of operators against the kernels by hand of the same, in estimated cycles and by the engine's clock."""

from __future__ import annotations

import numpy as np

from benchmarks.core import Result, median, median_ratio, side_by_side
from benchmarks.loops import EXAMPLES, GROWING
from benchmarks.te_forms import Form, compared, goals
from compassc import te, topi
from compassc.dsl import BuildManager

from ._examples import TARGET

ROUNDS = 15
GOALS = goals("default schedules against kernels by hand")


def measure() -> dict[str, Result]:
    return compared(_compare)


def _compare(form: Form) -> dict[str, Result]:
    from compass_runtime.profile.run import profiled_call

    loop = {loop.name: loop for loop in (*EXAMPLES, *GROWING)}[form.name]
    by_hand = BuildManager(TARGET).build(loop.kernel()).program
    _, tensors = form.make()
    made = BuildManager(TARGET).build(te.lower(topi.schedule(tensors[-1], TARGET), tensors, form.name, TARGET)).program
    given = loop.arguments(np.random.default_rng(0))
    own = [np.copy(given[i]) for i in form.arguments]
    with by_hand.caller.loaded(given) as one, made.caller.loaded(own) as other:
        hand, ours = side_by_side([lambda: one.execute().seconds, lambda: other.execute().seconds], ROUNDS)
        by_hand.caller.store(one, given)
        made.caller.store(other, own)
    want, got = (x.astype("float64") for x in (given[form.arguments[-1]], own[-1]))
    if not np.allclose(want, got, rtol=1e-2, atol=2e-3 * np.abs(want).max()):
        raise ValueError(f"{form.name}: the result is not the kernel's, so its time says nothing")
    cycles = [profiled_call(program, args).cycles for program, args in ((by_hand, given), (made, own))]
    times = f"{1e6 * median(ours):.0f} us, by hand {1e6 * median(hand):.0f} us"
    return {
        f"{form.name} time": Result(median_ratio(hand, ours), times),
        f"{form.name} cycles": Result(cycles[0] / cycles[1], f"{cycles[1]:,}, by hand {cycles[0]:,}"),
    }
