"""dynamic_add works for any number of elements: nothing is written beyond the last, whatever the tail."""

from __future__ import annotations

import numpy as np
from harness import Example, check_identical
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.choosing import some

EXAMPLE = Example("dynamic_add")
LONGEST = 5000
SIZES = st.one_of(st.sampled_from((0, 1, 15, 16, 17, 63, 64, 65, 4095, 4097)), st.integers(0, LONGEST))


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(n=SIZES, seed=st.integers(0, 2**32 - 1))
def test_any_bits_of_any_size(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 2**16, (2, n), dtype="uint16").view("float16")
    a, b = np.nan_to_num(a), np.nan_to_num(b)  # which NaN an addition gives is not specified
    with np.errstate(over="ignore"):
        expected = a + b
    simulated, interpreted = np.full((2, n + 40), 7, "float16")
    EXAMPLE.executor(a, b, simulated, n)
    EXAMPLE.kernel(a, b, interpreted, n)
    assert (simulated.view("uint16") == interpreted.view("uint16")).all()
    assert (simulated[:n].view("uint16") == expected.view("uint16")).all()
    assert (simulated[n:] == 7).all()


def test_stated_sizes() -> None:
    for case in some(EXAMPLE.cases(0)):
        check_identical(case, EXAMPLE.run_python(case), case.expected, "simulator and NumPy")
