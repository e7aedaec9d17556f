"""Schedules of written kernels, under the vendor's names."""

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc.dsl import BuildManager, schedule
from compassc.dsl import script as S


@S.prim_func
def double_and_add(a: S.ptr("fp32", "global"), b: S.ptr("fp32", "global"), n: S.i32):
    a2 = S.match_buffer(a, (n,))
    b2 = S.match_buffer(b, (n,))
    for i in range(n):
        with S.block("B"):
            vi = S.axis.spatial(n, i)
            b2[vi] = a2[vi] * 2.0 + 1.0


@S.prim_func
def row_sums(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    a2 = S.match_buffer(a, (8, 16))
    b2 = S.match_buffer(b, (8,))
    for i, k in S.grid(8, 16):
        with S.block("sum"):
            vi, vk = S.axis.remap("SR", [i, k])
            b2[vi] = b2[vi] + a2[vi, vk]


@S.prim_func
def with_more(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    a2 = S.match_buffer(a, (8,))
    b2 = S.match_buffer(b, (8,))
    b2[0] = 7
    for i in range(8):
        with S.block("B"):
            vi = S.axis.spatial(8, i)
            b2[vi] = a2[vi] + 1


def test_blocks_of_kernels_stay_blocks():
    s = schedule.Schedule(row_sums)
    text = s.mod.script()
    assert 'with T.block("sum"):' in text and "vk = T.axis.reduce(16, k)" in text
    i, k = s.get_loops("sum")
    s.reorder(k, i)
    a, b = np.arange(128, dtype="int32").reshape(8, 16), np.zeros(8, "int32")
    tec, _ = s.split(i, [4, None])
    s.reorder(tec, k)
    s.bind_tec(tec)
    BuildManager("X2_1204").build(s.mod)(a, b)
    np.testing.assert_array_equal(b, a.sum(1))


def test_the_recipe_for_element_wise_kernels():
    s = schedule.elementwise_unary(double_and_add, "X2_1204")
    a = np.random.default_rng(0).random(30_001).astype("float32")
    b = np.zeros_like(a)
    run = BuildManager("X2_1204").build(s.mod)
    run(a, b, len(a))
    np.testing.assert_array_equal(b, a * 2 + 1)
    assert "dma" in run.c_code.lower() and "__vload" in run.c_code


def test_blocks_do_not_pass_other_statements():
    s = schedule.Schedule(with_more)
    s.split(s.get_loops("B")[0], [2, 4])
    with pytest.raises(schedule.ScheduleError, match="statements that are in no block .*test_kernels_with_blocks.py"):
        s.cache_read("B", 0, "lsram")


def test_the_recipe_wants_two_arrays():
    with pytest.raises(CompassError, match="has 2 arrays"):
        schedule.elementwise_binary(double_and_add, "X2_1204")
