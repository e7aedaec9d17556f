"""S.assert_ and S.assume: told by PySim and checked runs, nothing in plain runs, and what the compiler makes of promises."""

from typing import Any

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc.dsl import BuildManager
from compassc.dsl import script as S

LONG = "this text is longer than the sixty-three bytes that a name of a buffer has room for, but not twice"


@S.prim_func
def stated(x: S.ptr("i32", "global"), y: S.ptr("i32", "global"), n: S.i32):
    S.assume(n % 16 == 0)
    if S.get_local_id() == 0:
        for i in range(0, n, 8):
            m = S.tail_mask(n - i, 8)
            v = S.vload(x + i, m)
            S.assert_(S.vall(v >= 0), LONG)
            S.vstore(v + 1, y + n // 16 * 16 - n + i, m)
        y[0] = n % 8


def arrays(bad: int = -1) -> list[Any]:
    x = np.arange(64, dtype="int32")
    if bad >= 0:
        x[bad] = -1
    return [x, np.zeros(64, "int32")]


@pytest.fixture(scope="module")
def executor() -> Any:
    return BuildManager("X2_1204").build(stated)


def test_what_holds_is_not_told(executor: Any) -> None:
    for run in (executor, stated, lambda *a: executor.check(*a, modes="all")):
        x, y = arrays()
        run(x, y, 32)
        assert y[:32].tolist() == [0, *range(2, 33)]


@pytest.mark.parametrize(("bad", "n", "said"), [(5, 32, LONG), (-1, 24, "S.assume says does not hold")])
def test_what_does_not_hold_is_told(executor: Any, bad: int, n: int, said: str) -> None:
    for run in (stated, lambda *a: executor.check(*a, modes="assert")):
        with pytest.raises(CompassError, match=said) as raised:
            run(*arrays(bad), n)
        assert raised.value.span.line in (17, 22)


def test_plain_runs_look_at_nothing(executor: Any) -> None:
    x, y = arrays(5)
    executor(x, y, 32)
    assert y[5] == 0


@S.prim_func
def promised(y: S.ptr("i32", "global"), n: S.i32, k: S.i32):
    S.assume((n & 7) == 4 and k >= 0 and k < 100)
    y[0] = n % 4
    y[1] = (n + 4) % 8
    y[2] = (n + 5) % 8
    y[3] = (n + 4) // 8 * 16
    y[4] = S.min(k, 200)
    y[5] = n % 16
    for i in range(4, n, 8):
        y[6] = S.min(n - i, 8)


def test_promises_take_away_what_is_not_needed() -> None:
    text = BuildManager("X2_1204").build(promised).c_code
    for line in ("y[0] = 0;", "y[1] = 0;", "y[2] = 1;", "y[3] = ((n * 2) + 8);", "y[4] = k;", "y[6] = 8;"):
        assert line in text, text
    assert "y[5] = (n & 15);" in text or "y[5] = n & 15" in text, text


@S.prim_func
def inside(y: S.ptr("i32", "global"), n: S.i32):
    if n > 3:
        S.assume(n % 8 == 0)
        y[0] = n % 8
    y[1] = n % 8
    n = n + 1
    S.assume(n % 8 == 0)
    y[2] = n % 8


def test_a_promise_holds_to_the_end_of_its_block_and_of_what_does_not_change() -> None:
    text = BuildManager("X2_1204").build(inside).c_code
    assert text.count("n & 7)") + text.count("n & 7;") >= 3, text
