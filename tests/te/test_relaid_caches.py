"""cache_write of a stage whose loops were split, fused and put in another order: memory laid out as the loops were."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compassc import te
from compassc.analysis.interpret import Interpreter

TARGET = "X2_1204"


def expression(kind, shape):
    a = te.placeholder(shape, "int32", name="a")
    if kind == "sum":
        k = te.reduce_axis((1, 4), "k")
        b = te.compute(shape, lambda *i: te.sum(a(*i) * k.var, axis=k), name="b")
        return a, b, lambda x: x * 6
    if kind == "largest":
        k = te.reduce_axis((0, shape[-1]), "k")
        b = te.compute(shape, lambda *i: te.max(a(*i[:-1], k), axis=k, where=k <= i[-1]), name="b")
        return a, b, lambda x: np.maximum.accumulate(x, axis=-1)
    b = te.compute(shape, lambda *i: a(*i) * 2 + i[0], name="b")
    return a, b, lambda x: x * 2 + np.arange(shape[0]).reshape(-1, *(1 for _ in shape[1:]))


def steps(draw, stage):
    """Splits, fuses and orders of the loops that are not reduced over."""
    for _ in range(draw(st.integers(0, 4))):
        loops = [a for a in stage.leaf_iter_vars if not a.is_reduction]
        step = draw(st.sampled_from(["split", "nparts", "fuse", "reorder", "one"]))
        if step in ("split", "nparts"):
            axis, size = draw(st.sampled_from(loops)), draw(st.integers(1, 5))
            stage.split(axis, **{"factor" if step == "split" else "nparts": size})
        elif step == "fuse" and len(loops) > 1:
            place = draw(st.integers(0, len(loops) - 2))
            stage.fuse(*loops[place : place + 2])
        elif step == "reorder":
            stage.reorder(*draw(st.permutations(loops)))
        elif step == "one":
            stage.fuse()


@settings(max_examples=150, deadline=None)
@given(st.data(), st.sampled_from(["map", "sum", "largest"]), st.lists(st.integers(1, 6), min_size=1, max_size=3))
def test_the_memory_is_laid_out_as_the_loops_were(data, kind, shape):
    a, b, meaning = expression(kind, tuple(shape))
    s = te.create_schedule(b)
    steps(data.draw, s[b])
    loops = [x.name for x in s[b].leaf_iter_vars if not x.is_reduction]
    copy = s.cache_write(b, "lsram")
    assert [x.name for x in copy.op.axis] == [f"{name}.c" for name in loops]
    assert math.prod(d.value for d in copy.shape) >= math.prod(shape)
    assert [x.name for x in s[b].leaf_iter_vars] == [x.name for x in b.op.axis] and not s[b].relations
    if data.draw(st.booleans()):
        s[copy].compute_at(s[b], data.draw(st.sampled_from(s[b].leaf_iter_vars)))
    module = te.lower(s, [a, b], target=TARGET)
    x = np.arange(math.prod(shape), dtype="int32").reshape(shape) * 7 % 23 - 9
    found = np.full(shape, 99, "int32")
    Interpreter(module.entry_func)(x, found)
    np.testing.assert_array_equal(found, meaning(x))
    assert te.lower(s.replayed(s.trace), [a, b], target=TARGET).script() == module.script()


def test_a_matrix_is_turned_for_its_reader():
    a, b, meaning = expression("map", (4, 6))
    s = te.create_schedule(b)
    i, j = b.op.axis
    s[b].reorder(j, i)
    copy = s.cache_write(b, "lsram")
    assert [d.value for d in copy.shape] == [6, 4] and [x.name for x in copy.op.axis] == ["i1.c", "i0.c"]
    x, found = np.arange(24, dtype="int32").reshape(4, 6), np.zeros((4, 6), "int32")
    te.build(s, [a, b], "llvm")(x, found)
    np.testing.assert_array_equal(found, meaning(x))


def test_annotated_loops_are_not_lost():
    _, b, _ = expression("map", (4, 6))
    s = te.create_schedule(b)
    s[b].unroll(b.op.axis[1])
    with pytest.raises(te.ScheduleError, match="cache_write of 'b': the axis 'i1' is annotated already"):
        s.cache_write(b, "lsram")
