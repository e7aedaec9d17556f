"""Illegal classic steps: each is an error at the step that names the stage, the axis and the reason."""

from __future__ import annotations

import numpy as np
import pytest

from compassc import te
from compassc.analysis.interpret import Interpreter

TARGET = "X2_1204"


def program():
    a = te.placeholder((8, 6), "int32", name="a")
    b = te.compute((8, 6), lambda i, j: a[i, j] * 2, name="b")
    k = te.reduce_axis((0, 6), "k")
    c = te.compute((8,), lambda i: te.sum(b[i, k], axis=k), name="c")
    return te.create_schedule(c), a, b, c, k


def split_before(s, a, b, c, k):
    s[c].split(c.op.axis[0], 2)
    s[b].compute_at(s[c], c.op.axis[0])


def factored_before(s, a, b, c, k):
    s.rfactor(c, s[c].split(k, 2)[0])
    s.rfactor(c, k)


def lost_loop(step):
    def take(s, a, b, c, k):
        s[b].compute_at(s[c], k)
        step(s, c, k)

    return take


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (split_before, "compute_at of 'b': the axis 'i' of 'c' was split or fused already"),
        (lambda s, a, b, c, k: s[b].compute_at(s[c], b.op.axis[1]), "compute_at of 'b': the axis 'j' is not an axis of 'c'"),
        (lambda s, a, b, c, k: s[c].compute_at(s[a], k), "compute_at of 'c': 'a' has no loops"),
        (factored_before, "rfactor of 'c': the axis 'k' is not one of its axes"),
        (lost_loop(lambda s, c, k: s.cache_write(c, "lsram")), "cache_write of 'c': 'b' is computed at the axis 'k'"),
        (lost_loop(lambda s, c, k: s.rfactor(c, k)), "rfactor of 'c': 'b' is computed at the axis 'k'"),
        (
            lambda s, a, b, c, k: s[c].split(c.op.axis[0], factor=b.op.axis[1] + 1),
            r"split of 'i' in 'c': \(j \+ 1\) depends on the axis 'j'",
        ),
        (lambda s, a, b, c, k: s.cache_read(a, "lsram", []), "cache_read of 'a': give a reader at least"),
        (lambda s, a, b, c, k: s[a].compute_root(), "compute_root of 'a': it is given to the kernel, not computed"),
        (
            lambda s, a, b, c, k: s[a].env_threads([te.thread_axis("threadIdx.x")]),
            "env_threads of 'a': it is given to the kernel, not computed",
        ),
    ],
)  # fmt: skip
def test_illegal_steps(step, message):
    s, *tensors = program()
    with pytest.raises(te.ScheduleError, match=message):
        step(s, *tensors)


def test_an_error_of_lowering_names_the_line_that_lowers():
    s, _, _, c, _ = program()
    with pytest.raises(te.LowerError, match="'a' is read but not among the arguments") as error:
        te.lower(s, [c], target=TARGET)
    assert error.value.span.file == __file__


def running_sum():
    x = te.placeholder((8, 4), "int32", name="x")
    state = te.placeholder((8, 4), "int32", name="state")
    init = te.compute((1, 4), lambda i, j: x[0, j], name="init")
    update = te.compute((8, 4), lambda t, j: state[t - 1, j] + x[t, j], name="update")
    return x, init, update, te.scan(init, update, state, name="scan")


def test_a_scan_begins_before_its_loop():
    _, init, _, scan = running_sum()
    s = te.create_schedule(scan)
    with pytest.raises(te.ScheduleError, match="compute_at of 'init': it is the beginning of the scan 'scan'"):
        s[init].compute_at(s[scan], scan.op.scan_axis)


@pytest.mark.parametrize("early", [False, True])
def test_threads_that_reduce_parts_compute_there_what_these_need(early):
    s, a, b, c, k = program()
    s[c].bind(k, te.thread_axis("threadIdx.x"))
    s[b].compute_at(s[c], k)
    module = te.lower(s, [a, c], target=TARGET)
    given, found = np.arange(48, dtype="int32").reshape(8, 6), np.full(8, 99, "int32")
    Interpreter(module.entry_func, early=early)(given, found)
    np.testing.assert_array_equal(found, given.sum(1, dtype="int32") * 2)


def test_copies_stand_in_the_loop_of_a_scan():
    x, _, update, scan = running_sum()
    s = te.create_schedule(scan)
    row = s.cache_read(x, "lsram", [update])
    s[row].compute_at(s[scan], scan.op.scan_axis)
    module = te.lower(s, [x, scan], target=TARGET)
    assert "x_lsram = T.alloc((1, 4)" in module.script()
    given, found = np.arange(32, dtype="int32").reshape(8, 4), np.zeros((8, 4), "int32")
    Interpreter(module.entry_func)(given, found)
    np.testing.assert_array_equal(found, given.cumsum(0))


def test_a_part_of_a_scan_is_no_output():
    _, _, update, scan = running_sum()
    with pytest.raises(te.ScheduleError, match="create_schedule: 'update' is a part of the scan 'scan' and no output"):
        te.create_schedule([scan, update])
