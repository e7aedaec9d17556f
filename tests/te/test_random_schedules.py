"""Any legal steps on any expressions give what the plain schedule gives; see `random_schedules` for all of them."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from compassc import te
from compassc.analysis.interpret import Interpreter
from compassc.dsl import BuildManager
from tests.te import random_schedules as cases

COUNT, SIMULATED, ON_HOST = 300, 6, 25


def test_random_schedules_are_right():
    ends, taken = Counter(), Counter()
    for seed in range(COUNT):
        end, steps = cases.run(seed)
        ends[end == "right"] += 1
        taken += steps
    assert ends[True] > COUNT // 2, ends
    assert all(taken[name] for name in cases._STEPS), taken


def test_the_host_agrees():
    ends = Counter(cases.run(seed, "llvm -opt-level=1")[0] == "right" for seed in range(2000, 2000 + ON_HOST))
    assert ends[True] > ON_HOST // 2, ends


@pytest.mark.parametrize("seed", range(1000, 1000 + SIMULATED))
def test_the_simulator_agrees(seed):
    """A schedule through all further passes and clang, in one run."""
    draw = random.Random(seed)
    made = cases.case(draw)
    arrays = made.arrays(draw)
    schedule = te.create_schedule(made.outputs)
    cases.steps(draw, schedule, 8)
    try:
        module = te.lower(schedule, made.args, "k", target="X2_1204")
    except te.LowerError:
        pytest.skip("this schedule has no program")
    plain, found = ([a.copy() for a in arrays] for _ in range(2))
    whole = te.lower(te.create_schedule(made.outputs), made.args, "k", target="X2_1204", simple_mode=True)
    Interpreter(whole.entry_func)(*plain)
    run = BuildManager("X2_1204").build(module)
    run.check(*found, modes="race,bounds,dma")
    run(*found)
    for t, a, b in zip(made.args, plain, found, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=t.name)
