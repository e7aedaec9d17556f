"""Circular buffers in classic schedules, and what pragmas make of loops."""

from __future__ import annotations

import numpy as np
import pytest

from compassc import te
from compassc.analysis.interpret import Interpreter
from compassc.te.rolling_buffers import circular_of

TARGET = "X2_1204"


def windows(stride: int = 1, rows: int = 1):
    """Sums over windows of three rows of a stage that costs something."""
    out = 6
    height = (out - 1) * stride + 3
    a = te.placeholder((height, 4 * rows), "int32", name="a")
    b = te.compute((height, 4 * rows), lambda i, j: a[i, j] * 3 + i, name="b")
    k = te.reduce_axis((0, 3), "k")
    c = te.compute((out, 4 * rows), lambda i, j: te.sum(b[i * stride + k, j], axis=k), name="c")
    return a, b, c, te.create_schedule(c)


def run(s, args):
    a, c = args
    x = np.arange(a.shape[0].value * a.shape[1].value, dtype="int32").reshape(a.shape[0].value, -1) * 7 % 31
    found = np.zeros([d.value for d in c.shape], "int32")
    Interpreter(te.lower(s, args, target=TARGET).entry_func)(x, found)
    whole = np.zeros_like(found)
    Interpreter(te.lower(te.create_schedule(c), args, target=TARGET).entry_func)(x, whole)
    np.testing.assert_array_equal(found, whole)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("split", [None, 2, 4])
def test_only_new_rows_are_computed(stride, split):
    a, b, c, s = windows(stride)
    axis = c.op.axis[0]
    s[b].compute_at(s[c], axis if split is None else s[c].split(axis, factor=split)[1])
    s[b].rolling_buffer()
    text = te.lower(s, [a, c], target=TARGET, simple_mode=True).script()
    assert "b = T.alloc((3, 4)" in text and "T.truncmod(" in text and " == 0) or " in text
    run(s, [a, c])
    again = s.replayed(te.Trace.from_json(s.trace.to_json()))
    assert te.lower(again, [a, c], target=TARGET, simple_mode=True).script() == text


def test_the_bounds_say_what_is_kept():
    _, b, c, s = windows(2)
    s[b].compute_at(s[c], c.op.axis[0])
    s[b].rolling_buffer()
    found = circular_of(s[b], te.infer_bounds(s))
    assert (found.dim, found.extent, str(found.fresh)) == (0, 3, "((i * 2) + 1)")


@pytest.mark.parametrize(
    "place, message",
    [
        (lambda s, b, c: s[c].split(c.op.axis[1], factor=2)[0], "none of its dimensions|moves by|one turn"),
        (lambda s, b, c: s[c].op.reduce_axis[0], "none stays"),
    ],
)
def test_loops_without_windows_are_refused(place, message):
    a, b, c, s = windows()
    s[b].compute_at(s[c], place(s, b, c))
    s[b].rolling_buffer()
    with pytest.raises(te.LowerError, match=f"rolling_buffer of 'b': .*({message})"):
        te.lower(s, [a, c], target=TARGET)


def test_turns_that_are_shared_out_keep_nothing():
    a, b, c, s = windows()
    s[c].bind(c.op.axis[0], te.thread_axis("threadIdx.x"))
    s[b].compute_at(s[c], c.op.axis[0])
    s[b].rolling_buffer()
    with pytest.raises(te.LowerError, match="are shared out"):
        te.lower(s, [a, c], target=TARGET)


def test_small_loops_are_written_out():
    a = te.placeholder((4, 3, 100), "int32", name="a")
    b = te.compute((4, 3, 100), lambda i, j, k: a[i, j, k] + 1, name="b")
    s = te.create_schedule(b)
    i, j, k = b.op.axis
    s[b].reorder(k, i, j)
    s[b].pragma(k, "auto_unroll_max_step", 11)
    text = te.lower(s, [a, b], target=TARGET, simple_mode=True).script()
    assert text.count("T.unrolled(") == 1 and "T.unrolled(0, 3" in text
    s[b].pragma(k, "auto_unroll_max_step", 12)
    assert te.lower(s, [a, b], target=TARGET, simple_mode=True).script().count("T.unrolled(") == 2


def test_a_region_can_be_left_out():
    a = te.placeholder((4,), "int32", name="a")
    b = te.compute((4,), lambda i: a[i] + 1, name="b")
    s = te.create_schedule(b)
    s[b].pragma(b.op.axis[0], "debug_skip_region")
    assert "for" not in te.lower(s, [a, b], target=TARGET, simple_mode=True).script().split("def main")[1]


@pytest.mark.parametrize(
    "kind, value, message",
    [
        ("import_c", None, "takes the text of functions, or the path of a file, got None"),
        ("anything", None, "there is no 'anything'"),
        ("auto_unroll_max_step", "8", "the largest number of statements"),
        ("compass_dma_copy", None, "is for a copy, and 'b' computes something"),
    ],
)
def test_pragmas_that_mean_nothing_here(kind, value, message):
    _, b, _, s = windows()
    with pytest.raises(te.ScheduleError, match=message):
        s[b].pragma(b.op.axis[0], kind, value)
    assert not str(s.trace)
