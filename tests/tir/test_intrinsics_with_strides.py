"""Implementations of intrinsics that are kernels and take strides."""

import numpy as np
import pytest

from compassc import te, tir
from compassc.dsl import BuildManager
from compassc.dsl import script as S

TARGET = "X2_1204"
ROWS, COLUMNS = 4, 8


@S.prim_func
def triple_rows(x: S.ptr("i32", "lsram"), y: S.ptr("i32", "lsram"), x_stride_0: S.i32, y_stride_0: S.i32):
    for i in range(4):
        S.vstore(S.vload(x + i * x_stride_0) * 3, y + i * y_stride_0)


@S.prim_func
def triple_together(x: S.ptr("i32", "lsram"), y: S.ptr("i32", "lsram")):
    for i in range(4):
        S.vstore(S.vload(x + i * 8) * 3, y + i * 8)


@S.prim_func
def with_more(x: S.ptr("i32", "lsram"), y: S.ptr("i32", "lsram"), count: S.i32):
    S.vstore(S.vload(x) * count, y)


def tripled(rows: int, columns: int):
    a = te.placeholder((rows, columns), "int32", name="A")
    return te.create_prim_func([a, te.compute((rows, columns), lambda i, j: a[i, j] * 3, name="B")])


def tiles(rows: int, columns: int):
    """The loop of a tile of a copy in LSRAM that is wider than the tile."""
    f = tripled(rows, columns)
    s = tir.Schedule(f)
    s.cache_read("B", 0, "lsram")
    s.cache_write("B", 0, "lsram")
    i, j = s.get_loops("B")
    i, ii = s.split(i, [None, ROWS])
    j, jj = s.split(j, [None, COLUMNS])
    s.reorder(i, j, ii, jj)
    return s, ii


def run(s, rows, columns):
    a, b = np.arange(rows * columns, dtype="int32").reshape(rows, columns), np.zeros((rows, columns), "int32")
    BuildManager(TARGET).build(tir.lower(s.mod, TARGET))(a, b)
    np.testing.assert_array_equal(b, a * 3)


@pytest.mark.parametrize("columns", [8, 24])
def test_strides_are_those_of_the_program(columns):
    tir.TensorIntrin.register("test.strides", tripled(ROWS, COLUMNS), triple_rows, override=True)
    s, tile = tiles(8, columns)
    s.tensorize(tile, "test.strides")
    assert "x_stride_0" not in s.mod.script() and "vload" in s.mod.script()
    run(s, 8, columns)


def test_without_strides_elements_lie_together():
    tir.TensorIntrin.register("test.together", tripled(ROWS, COLUMNS), triple_together, override=True)
    s, tile = tiles(8, COLUMNS)
    s.tensorize(tile, "test.together")
    run(s, 8, COLUMNS)
    s, tile = tiles(8, 24)
    before = s.mod
    with pytest.raises(tir.ScheduleError, match="do not lie one after another in 'A_lsram'"):
        s.tensorize(tile, "test.together")
    assert s.mod is before


def test_an_address_keeps_strides_as_they_are():
    tir.TensorIntrin.register("test.strides", tripled(ROWS, COLUMNS), triple_rows, override=True)
    s, tile = tiles(8, 24)
    s.tensorize(tile, "test.strides")
    with pytest.raises(tir.ScheduleError, match="an address of 'A_lsram' is taken"):
        s.storage_align("A_lsram", 0, 0, 32, 8)


def test_further_parameters_are_strides():
    with pytest.raises(tir.ScheduleError, match="'count' in its implementation alone, which is no stride"):
        tir.TensorIntrin.register("test.more", tripled(1, COLUMNS), with_more, override=True)
