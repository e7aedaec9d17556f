"""Bounds of loops are evaluated once."""

from __future__ import annotations

import pytest
from vector_text import after, unchanged

LOOP = "t: T.int32 = n\nfor i in T.serial({}, 1):\n    {}"


@pytest.mark.parametrize(
    ("bounds", "body"),
    [
        ("0, t", "b[i] = 1"),
        ("0, a[0]", "t = (t + a[i])"),
        ('0, S.ceildiv(t, 4, dtype="int32")', "b[i] = 1"),
        ("0, 8", "t = (t + 1)"),
    ],
)
def test_bounds_that_stay_the_same_stay_in_place(bounds, body):
    assert unchanged("FreezeLoopBounds", LOOP.format(bounds, body))


@pytest.mark.parametrize(
    ("bounds", "body", "line"),
    [
        ("0, (t + 1)", "t = 1", "i_stop: T.int32 = (t + 1)"),
        ("t, 9", "t = 1", "i_start: T.int32 = t"),
        ("0, a[0]", "b[i] = 1", "i_stop: T.int32 = a[0]"),
        ("0, a[0]", 'S.vstore(T.splat(i, 8), T.addr(b, 0), 1, dtype="void")', "i_stop: T.int32 = a[0]"),
    ],
)
def test_bounds_that_the_loop_could_change_are_fixed_before_it(bounds, body, line):
    lines = after("FreezeLoopBounds", LOOP.format(bounds, body))
    assert lines[1] == line and line.split(":")[0] in lines[2]
