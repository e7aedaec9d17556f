"""Loops that stages are computed at, split and fused; loops of axes that are reduced over and of others, fused."""

from __future__ import annotations

import numpy as np
import pytest

from compassc import te
from compassc.analysis.interpret import Interpreter
from compassc.te.errors import ScheduleError

ROWS, COLUMNS = 7, 10


def two(target, steps):
    """What two stages compute after steps on the second one, at a loop of which the first one is computed."""
    a = te.placeholder((ROWS, COLUMNS), "int32", name="a")
    b = te.compute((ROWS, COLUMNS), lambda i, j: a[i, j] + 1, name="b")
    c = te.compute((ROWS, COLUMNS), lambda i, j: b[i, j] * 3, name="c")
    s = te.create_schedule(c.op)
    steps(s, b, c)
    given = np.random.default_rng(1).integers(-99, 99, (ROWS, COLUMNS)).astype("int32")
    found = np.zeros_like(given)
    te.build(s, [a, c], target)(given, found)
    np.testing.assert_array_equal(found, (given + 1) * 3)
    return s


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("place", [0, -1])
def test_a_stage_at_the_rows_of_a_triangle(split, place):
    """What is summed ends at the row: the axis of the rows and its loop have one name and are two variables."""
    a = te.placeholder((ROWS, ROWS), "int32", name="a")
    b = te.compute((ROWS, ROWS), lambda i, j: a[i, j] * 2, name="b")

    def row(i):
        k = te.reduce_axis((0, i + 1), "k")
        return te.sum(b[i, k], axis=k)

    c = te.compute((ROWS,), row, name="c")
    s = te.create_schedule(c.op)
    loops = s[c].split(c.op.axis[0], factor=4) if split else [c.op.axis[0]]
    s[b].compute_at(s[c], loops[place])
    given = np.random.default_rng(1).integers(-99, 99, (ROWS, ROWS)).astype("int32")
    found = np.zeros(ROWS, "int32")
    Interpreter(te.lower(s, [a, c], "k", target="X2_1204").entry_func)(given, found)
    np.testing.assert_array_equal(found, np.tril(given * 2).sum(1))


@pytest.mark.parametrize("target", ["llvm", "X2_1204"])
@pytest.mark.parametrize("how", [{"factor": 3}, {"nparts": 4}])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_stage_stays_at_the_inner_loop_of_a_split(target, how, axis):
    def steps(s, b, c):
        s[b].compute_at(s[c], c.op.axis[axis])
        _, inner = s[c].split(c.op.axis[axis], **how)
        assert s[b].attach_ivar is inner

    two(target, steps)


@pytest.mark.parametrize("target", ["llvm", "X2_1204"])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_stage_stays_at_the_loop_of_a_fusion(target, axis):
    def steps(s, b, c):
        s[b].compute_at(s[c], c.op.axis[axis])
        fused = s[c].fuse(*c.op.axis)
        assert s[b].attach_ivar is fused

    s = two(target, steps)
    again = s.replayed(te.Trace.from_json(s.trace.to_json()))
    assert again["b"].attach_ivar.name == s["b"].attach_ivar.name


def sums(target, steps):
    """The sum of each row after steps."""
    a = te.placeholder((ROWS, COLUMNS), "int32", name="a")
    k = te.reduce_axis((0, COLUMNS), name="k")
    c = te.compute((ROWS,), lambda i: te.sum(a[i, k], axis=k), name="c")
    s = te.create_schedule(c.op)
    steps(s, c, c.op.axis[0], k)
    given = np.random.default_rng(2).integers(-99, 99, (ROWS, COLUMNS)).astype("int32")
    found = np.zeros(ROWS, "int32")
    te.build(s, [a, c], target)(given, found)
    np.testing.assert_array_equal(found, given.sum(axis=1))


@pytest.mark.parametrize("target", ["llvm", "X2_1204"])
@pytest.mark.parametrize("parts", [None, 3, 5, 7])
@pytest.mark.parametrize("unrolled", [False, True])
def test_rows_and_what_is_summed_are_one_loop(target, parts, unrolled):
    """All results begin before the loop, however it is parted."""

    def steps(s, c, i, k):
        fused = s[c].fuse(i, k)
        inner = fused if parts is None else s[c].split(fused, parts)[1]
        if unrolled:
            s[c].unroll(inner)

    sums(target, steps)


def test_rows_inside_of_what_is_summed():
    def steps(s, c, i, k):
        outer, inner = s[c].split(k, 4)
        s[c].reorder(outer, i, inner)
        s[c].fuse(outer, i)

    sums("llvm", steps)


def test_steps_that_ask_for_loops_that_are_summed_over_alone():
    for step in (
        lambda s, c, fused: s.rfactor(c, fused),
        lambda s, c, fused: s.cache_write(c, "local"),
        lambda s, c, fused: s[c].parallel(fused),
        lambda s, c, fused: s[c].vectorize(fused),
    ):
        with pytest.raises(ScheduleError, match="reduced over"):
            sums("llvm", lambda s, c, i, k, step=step: step(s, c, s[c].fuse(i, k)))
