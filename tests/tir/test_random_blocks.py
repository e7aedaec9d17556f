"""Any legal steps on any blocks give what plain loops give; see `random_blocks` for all of them."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from compassc import te, tir
from compassc.analysis.interpret import Interpreter
from compassc.dsl import BuildManager
from tests.te.random_cases import case
from tests.tir import random_blocks as cases

COUNT, SIMULATED = 100, 4


def test_random_steps_on_blocks_are_right():
    ends, taken = Counter(), Counter()
    for seed in range(COUNT):
        end, steps = cases.run(seed)
        ends[end == "right"] += 1
        taken += steps
    assert ends[True] > COUNT * 2 // 3, ends
    rare = {"rolling_buffer", "decompose_padding"}  # they have tests of their own
    assert all(taken[name] for name in cases.STEPS.keys() - rare), taken


@pytest.mark.parametrize("seed", range(1000, 1000 + SIMULATED))
def test_the_simulator_agrees_about_blocks(seed):
    draw = random.Random(seed)
    made = case(draw, statements=False)
    arrays = made.arrays(draw)
    s = tir.Schedule(cases.function(made), seed=1)
    cases.steps(draw, s, 8)
    plain, found = ([a.copy() for a in arrays] for _ in range(2))
    Interpreter(te.lower(te.create_schedule(made.outputs), made.args, "k", target=cases.TARGET).entry_func)(*plain)
    try:
        module = tir.lower(s.mod, cases.TARGET)
    except tir.LowerError:
        pytest.skip("this schedule has no program")
    BuildManager(cases.TARGET).build(module)(*found)
    for t, a, b in zip(made.args, plain, found, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=t.name)
